#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""checkpage.py FILE SUM - whether a page of `joule waits` is whole and closed.

Its policy allows the script and the style that are in it and nothing else, no
element asks for another file, its data can be read, and its values have this sum.
"""
import base64
import hashlib
import html.parser
import json
import math
import struct
import sys


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.policy, self.inside = [], None, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in given:
            assert name not in ("src", "href", "style") and not name.startswith("on"), given
        if given.get("http-equiv") == "Content-Security-Policy":
            assert self.policy is None and not self.found
            self.policy = given["content"]
        if tag in ("script", "style"):
            self.inside = [tag, given.get("type"), ""]
            self.found.append(self.inside)

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside:
            self.inside[2] += text


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def floats(text):
    raw = base64.b64decode(text, validate=True)
    return struct.unpack("<%df" % (len(raw) // 4), raw)


raw = open(sys.argv[1], "rb").read()
page = Page(raw.decode())
style, data, script = page.found
assert [style[:2], data[:2], script[:2]] == [
    ["style", None], ["script", "application/json"], ["script", None]], page.found
assert page.policy == (
    "default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'"
    % (hash_of(script[2]), hash_of(style[2]))), page.policy
for bad in "<>&\u2028\u2029":
    assert bad not in data[2], hex(ord(bad))
assert all(c >= " " or c == "\n" for c in data[2])
known = json.loads(data[2])
count = len(known["processes"])
total = 0
for run in known["values"]:
    metric, path, first, values = run.split(" ")
    values = floats(values)
    assert values[0] != 0 and values[-1] != 0
    assert int(first) + len(values) <= count
    assert int(metric) < len(known["metrics"]) and int(path) < len(known["paths"])
    total += math.fsum(values)
assert math.isclose(total, float(sys.argv[2]), rel_tol=1e-6), (total, sys.argv[2])
for power in known["powers"]:
    assert len(floats(power["s"])) == len(floats(power["watts"])) <= 4096
