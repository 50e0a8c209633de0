#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""checkcubex.py FILE SUM|JSON - whether a profile of `joule waits --cubex` is one that
CubeLib reads, and its values have this sum, or are the numbers of this file, which has
the JSON of the same trace.

It reads the file as CubeLib 4.4 does: by its own steps through the tar file, rows in the
depth-first order of call paths, values in the order of locations, children of a metric
within their parent.
"""
import json
import math
import re
import struct
import sys
import tarfile
import xml.etree.ElementTree as xml

EMPTY = 512 * b"\0"


def members(raw):
    """As CubeLib goes from header to header: a full last block is one too many."""
    found, at = {}, 0
    while raw[at:at + 512] not in (EMPTY, b""):
        header = raw[at:at + 512]
        assert header[257:265] == b"ustar\x0000" and header[156:157] == b"0"
        without = header[:148] + 8 * b" " + header[156:]
        assert int(header[148:154], 8) == sum(without)
        name = header[:100].rstrip(b"\0").decode()
        size = int(header[124:135], 8)
        assert name not in found and size > 0
        found[name] = raw[at + 512:at + 512 + size]
        assert len(found[name]) == size
        at += 512 + (size // 512 + 1) * 512
    assert raw[at:] == 2 * EMPTY
    return found


def text(element, tag):
    found = element.findall(tag)
    assert len(found) == 1, (element.tag, tag)
    return found[0].text or ""


def tags(element):
    return [child.tag for child in element]


path, wanted = sys.argv[1:]
raw = open(path, "rb").read()
files = members(raw)
with tarfile.open(path) as tar:
    assert {m.name: tar.extractfile(m).read() for m in tar} == files
anchor = files.pop("anchor.xml")
# The scanner of CubeLib knows these lines as they are, and no empty elements.
assert anchor.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<cube version="4.4">\n')
assert not re.search(rb"<[^!?][^>]*/>", re.sub(rb"<attr [^>]*/>", b"", anchor))
cube = xml.fromstring(anchor)
assert tags(cube)[-3:] == ["metrics", "program", "system"]
assert set(tags(cube)[:-3]) <= {"attr"}

# Metrics, in the order of the document.
metrics = {}
for metric in cube.iter("metric"):
    number = int(metric.get("id"))
    assert number == len(metrics) and metric.get("type") == "EXCLUSIVE"
    assert tags(metric)[:6] == ["disp_name", "uniq_name", "dtype", "uom", "url", "descr"]
    assert set(tags(metric)[6:]) <= {"metric"}
    metrics[number] = metric
names = [text(m, "uniq_name") for m in metrics.values()]
assert all(re.fullmatch("wait_[A-Za-z0-9_]+", name) for name in names)

# Regions, and call paths in depth-first order.
regions = {}
program = cube.find("program")
for region in program.findall("region"):
    assert tags(region) == ["name", "mangled_name", "paradigm", "role", "url", "descr"]
    regions[int(region.get("id"))] = text(region, "name")
assert sorted(regions) == list(range(len(regions)))
assert len(set(regions.values())) == len(regions)
paths = []


def go(cnode, above):
    assert int(cnode.get("id")) == len(paths)
    paths.append(above + [regions[int(cnode.get("calleeId"))]])
    mine = paths[-1]
    for child in cnode:
        assert child.tag == "cnode"
        go(child, mine)


for cnode in program.findall("cnode"):
    go(cnode, [])
assert paths

# Locations: a thread of each process.
places = []
for node in cube.find("system/systemtreenode").findall("systemtreenode"):
    assert text(node, "class") == "node" and text(node, "name")
    for group in node.findall("locationgroup"):
        assert tags(group) == ["name", "rank", "type", "location"]
        assert text(group, "type") == "process"
        location = group.find("location")
        assert tags(location) == ["name", "rank", "type"]
        assert text(location, "type") == "thread"
        assert int(location.get("Id")) == int(group.get("Id")) == len(places)
        places.append((text(node, "name"), text(group, "name"), int(text(group, "rank"))))

# Values of each metric: {(path, location): value}
values = {}
for number, metric in metrics.items():
    values[number] = {}
    index = files.pop("%d.index" % number, None)
    data = files.pop("%d.data" % number, None)
    assert (index is None) == (data is None)
    if index is None:
        continue
    assert index[:11] == b"CUBEX.INDEX" and data[:10] == b"CUBEX.DATA"
    order = "<" if index[11:15] == b"\1\0\0\0" else ">"
    one, version, kind, count = struct.unpack(order + "IHBI", index[11:22])
    assert (one, version, kind) == (1, 0, 1)
    rows = struct.unpack("%s%dI" % (order, count), index[22:])
    assert rows and list(rows) == sorted(set(rows)) and rows[-1] < len(paths)
    form = {"DOUBLE": "d", "UINT64": "Q"}[text(metric, "dtype")]
    numbers = struct.unpack("%s%d%s" % (order, count * len(places), form), data[10:])
    for i, value in enumerate(numbers):
        if value != 0:
            values[number][rows[i // len(places)], i % len(places)] = value
assert not files, files.keys()

# Of a metric alone, without those below it.
own = {}
for number, metric in metrics.items():
    own[number] = dict(values[number])
    for child in metric.findall("metric"):
        for key, value in values[int(child.get("id"))].items():
            own[number][key] = own[number].get(key, 0) - value
    for key, value in own[number].items():
        assert value >= -1e-9 * values[number].get(key, 0), (number, key, value)
found = math.fsum(v for of in own.values() for v in of.values())
if not wanted.startswith("/"):
    assert math.isclose(found, float(wanted), rel_tol=1e-9), (found, wanted)
    sys.exit()

# What the other command tells of each pattern, path and process.
# XML has no U+FFFF: its three bytes are shown as others that are no character.
known = json.loads(open(wanted).read().replace("\uffff", 3 * "\ufffd"))
expected = {}


def expect(metric, wait, value):
    key = metric, wait["path"], wait["node"] or "unknown", wait["process"]
    expected[key] = expected.get(key, 0) + value


for wait in known["waits"]:
    pattern = wait["pattern"]
    if pattern.endswith("completion"):
        expect("wait_" + pattern, wait, wait["time_ns"] / 1e9)
        continue
    expect("wait_time_" + pattern, wait, wait["time_ns"] / 1e9)
    expect("wait_count_" + pattern, wait, wait["count"])
    for member, kind in (("used_j", "energy"), ("esp_j", "esp"), ("esp_bw_j", "esp_bw")):
        if member in wait:
            expect("wait_%s_%s" % (kind, pattern), wait, wait[member])
expected = {key: value for key, value in expected.items() if value != 0}
got = {}
for number, metric in metrics.items():
    if metric.find("metric") is not None:
        continue
    for (row, place), value in values[number].items():
        key = (names[number], "/".join(paths[row][1:])) + places[place][:2]
        got[key] = got.get(key, 0) + value
assert got.keys() == expected.keys(), got.keys() ^ expected.keys()
for key, value in expected.items():
    assert math.isclose(got[key], value, rel_tol=1e-9, abs_tol=2e-6 if "esp" in key[0] or
                        "energy" in key[0] else 0), (key, got[key], value)
