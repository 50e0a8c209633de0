#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""readtrace.py chrome|paraver PATH REGIONS [COUNTER VALUE LEAST MOST]... - read a trace
strictly: so many regions begin and end on it, properly within each other, and there is
power on it; and (chrome) the mean of that value of a counter is from LEAST to MOST.

readtrace.py waits PATH JSON - of Paraver, by joule waits --paraver: waits and messages are
those of the document that joule waits --json has printed."""
import collections
import json
import re
import sys

# Of counters: at what time which values began.
counters = collections.defaultdict(list)


def mean(counter, value):
    """Over the time in which it is known; the last event is its end."""
    series = counters[counter]
    total = time = 0
    for (begin, values), (end, _) in zip(series, series[1:]):
        if value in values:
            total += values[value] * (end - begin)
            time += end - begin
    return total / time if time else None


def chrome(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names, stacks, began, powers, last = set(), collections.defaultdict(list), 0, 0, -1
    for e in events:
        lane = (e["pid"], e["tid"])
        if e["ph"] == "M":
            names.add((e["name"], lane if e["name"] == "thread_name" else e["pid"]))
            continue
        assert ("process_name", e["pid"]) in names, e
        assert e["ph"] == "C" or ("thread_name", lane) in names, e
        assert e["ts"] >= last, "out of order: %s" % e
        last = e["ts"]
        if e["ph"] == "B":
            stacks[lane].append(e["name"])
            began += 1
        elif e["ph"] == "E":
            assert stacks[lane].pop() == e["name"], e
        elif e["ph"] == "C":
            assert all(w >= 0 for w in e["args"].values()), e
            powers += e["name"] == "power W" and bool(e["args"])
            assert not e["args"] or "C-states" not in e["name"] or \
                sum(e["args"].values()) < 100.01, e
            counters[e["name"]].append((e["ts"], e["args"]))
        else:
            raise AssertionError(e)
    assert not any(stacks.values())
    return began, powers


def header(line):
    """Nodes, and of each application the threads of its tasks."""
    m = re.fullmatch(r"#Paraver \(\d\d/\d\d/\d{4} at \d\d:\d\d\):(\d+)_ns:"
                     r"(\d+)\(([\d,]+)\):(\d+):(.*)\n", line)
    assert m, line
    assert len(m[3].split(",")) == int(m[2])
    applications = m[5].split("):")
    assert len(applications) == int(m[4]), line
    tasks = []
    for text in applications:
        count, rest = text.rstrip(")").split("(")
        threads = [tuple(map(int, t.split(":"))) for t in rest.split(",")]
        assert len(threads) == int(count), line
        assert all(1 <= node <= int(m[2]) for _, node in threads), line
        tasks.append([t for t, _ in threads])
    return int(m[1]), tasks


def paraver(path):
    with open(path + ".pcf", encoding="utf-8") as file:
        types = set(re.findall(r"^\d+ +(\d+) ", file.read(), re.M))
    depth, began, powers, last = collections.Counter(), 0, 0, 0
    with open(path + ".prv", encoding="utf-8") as file:
        end, tasks = header(file.readline())
        for line in file:
            f = list(map(int, line.strip().split(":")))
            assert f[0] == 2 and len(f) >= 8 and len(f) % 2 == 0, line
            lane = tuple(f[2:5])
            assert f[1] == 0 and 1 <= lane[0] <= len(tasks), line
            assert 1 <= lane[1] <= len(tasks[lane[0] - 1]), line
            assert 1 <= lane[2] <= tasks[lane[0] - 1][lane[1] - 1], line
            assert last <= f[5] <= end, line
            last = f[5]
            for kind, value in zip(f[6::2], f[7::2]):
                assert str(kind) in types, line
                if kind == 60000019:
                    depth[lane] += 1 if value else -1
                    assert depth[lane] >= 0, line
                    began += value > 0
                powers += 501000001 <= kind < 502000000
    assert not any(depth.values())
    with open(path + ".row", encoding="utf-8") as file:
        m = re.search(r"^LEVEL THREAD SIZE (\d+)\n((?:.*\n)*)", file.read(), re.M)
    assert int(m[1]) == sum(map(sum, tasks)) == m[2].count("\n")
    return began, powers


def labels(path):
    """Of each type of event, the names of its values."""
    types, inside = {}, []
    with open(path + ".pcf", encoding="utf-8") as file:
        for line in file:
            m = re.fullmatch(r"(\d+) +(\d+) +(\S.*)\n", line)
            if not line.strip():
                inside = []
            elif line == "EVENT_TYPE\n":
                inside = None
            elif inside is None and m:
                inside = [types.setdefault(int(m[2]), {"name": m[3]})]
            elif inside and line != "VALUES\n":
                value, text = line.split(None, 1)
                inside[0][int(value)] = text.strip()
    return types


def waits(path, document):
    types, found, messages, last = labels(path), collections.Counter(), 0, 0
    until, now = {}, collections.defaultdict(int)
    with open(path + ".prv", encoding="utf-8") as file:
        end, tasks = header(file.readline())
        for line in file:
            f = list(map(int, line.strip().split(":")))
            assert {1: len(f) == 8, 2: len(f) >= 8 and len(f) % 2 == 0,
                    3: len(f) == 15}[f[0]], line
            assert f[1] == 0 and f[2] == 1 and 1 <= f[3] <= len(tasks[0]), line
            assert 1 <= f[4] <= tasks[0][f[3] - 1] and last <= f[5] <= end, line
            last, lane = f[5], (f[3], f[4])
            if f[0] == 1:
                assert until.get(lane, 0) == f[5] < f[6] <= end, line
                until[lane] = f[6]
            elif f[0] == 3:
                assert f[5] <= f[6] and f[11] <= f[12] <= end and f[7:9] == [0, 1], line
                assert 1 <= f[9] <= len(tasks[0]) and f[10] == 1, line
                messages += 1
            elif f[6] == 502000001:
                begin, pattern, ns = now.pop(lane, None) or (None, 0, 0)
                assert (f[7] == 0) == (begin is not None) and f[8] == 502000002, line
                if f[7] == 0:
                    assert f[5] - begin == ns and f[9] == 0, line
                    found[types[f[6]][pattern], "count"] += 1
                    found[types[f[6]][pattern], "time_ns"] += ns
                else:
                    now[lane] = (f[5], f[7], f[9])
            else:
                assert f[7] in types[f[6]], line
    assert not any(now.values()) and set(until.values()) == {end}
    with open(document, encoding="utf-8") as file:
        json_waits = json.load(file)
    for p in json_waits["patterns"]:
        name = p["pattern"].replace("_", " ")
        for key in "count", "time_ns":
            assert "completion" in name or p[key] == sum(
                n for (text, k), n in found.items() if (text.lower(), k) == (name, key)), p
    assert messages == json_waits["messages"], messages
    print(len(json_waits["patterns"]), "patterns,", messages, "messages")


if sys.argv[1] == "waits":
    waits(*sys.argv[2:])
    sys.exit()
regions, powers = {"chrome": chrome, "paraver": paraver}[sys.argv[1]](sys.argv[2])
print(regions, "regions,", powers, "events of power")
bad = regions != int(sys.argv[3]) or powers < 10
for counter, value, least, most in zip(*[iter(sys.argv[4:])] * 4):
    found = mean(counter, value)
    print(counter, value, found)
    bad = bad or found is None or not float(least) <= found <= float(most)
sys.exit(bad)
