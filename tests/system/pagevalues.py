#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pagevalues.py JSON PAGE - the seconds of a page of `joule waits --html` against those
of --json: the same pattern, call path and process, and nothing else."""

import base64
import json
import re
import struct
import sys


def path_of(paths, i):
    name = paths[i]["name"]
    parent = paths[i]["parent"]
    return name if parent < 0 else path_of(paths, parent) + "/" + name


def page_values(text):
    page = json.loads(re.search('id="data">(.*?)</script>', text, re.S).group(1))
    for line in page["values"]:
        metric, path, first, values = line.split(" ")
        metric = page["metrics"][int(metric)]
        values = base64.b64decode(values)
        for i, value in enumerate(struct.unpack(f"<{len(values) // 4}f", values)):
            if value > 0 and metric["unit"] == "s":
                yield (metric["id"].removeprefix("time."),
                       path_of(page["paths"], int(path)),
                       page["processes"][int(first) + i]["name"]), value


def json_values(document):
    sums = {}
    for w in document["waits"]:
        key = w["pattern"], w["path"], w["process"]
        sums[key] = sums.get(key, 0) + w["time_ns"] / 1e9
    return sums


wanted = json_values(json.load(open(sys.argv[1])))
found = dict(page_values(open(sys.argv[2]).read()))
off = [k for k in wanted.keys() | found.keys()
       if abs(wanted.get(k, 0) - found.get(k, 0)) > 1e-6 * wanted.get(k, 0)]
for key in off[:9]:
    print(key, wanted.get(key), found.get(key))
print(len(wanted), "values")
sys.exit(bool(off) or not wanted)
