#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""readwaits.py FILE.h5 STEP REPORT TRACE [OPTION]... - the tables that joule waits --hdf5 has
written of the step are what REPORT waits --json tells of the trace."""
import json
import math
import subprocess
import sys

import h5py

KEYS = {"Pattern": "pattern", "Path": "path", "Process": "process", "Node": "node",
        "Communicator": "communicator", "Rank": "rank", "Count": "count",
        "TimeNs": "time_ns", "LongestNs": "longest_ns", "State1J": "state1_j",
        "ESPJ": "esp_j", "ESPBWJ": "esp_bw_j", "UsedJ": "used_j",
        "UsedUncertainJ": "used_uncertain_j"}
UNITS = {"Ns": b"ns", "J": b"J"}


def told(by):
    command = [sys.argv[3], "waits", "--json", *sys.argv[5:], *by, sys.argv[4]]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def compare(table, lines):
    assert len(table) == len(lines), (table, len(lines))
    for row, line in zip(table, lines):
        for column in table.dtype.names:
            value, wanted = row[column], line.get(KEYS[column])
            if isinstance(value, bytes):
                assert value.decode() == wanted, (column, value, line)
            elif wanted is None:
                assert math.isnan(value) or value == 4294967295, (column, value, line)
            else:
                assert abs(value - wanted) < 1e-6, (column, value, line)
        assert set(line) <= {KEYS[column] for column in table.dtype.names}, line
    for column in table.dtype.names:
        unit = table.attrs.get("Joule Unit " + column)
        ends = [u for end, u in UNITS.items() if column.endswith(end)]
        assert (list(unit) if unit is not None else []) == ends, column


with h5py.File(sys.argv[1], "r") as file:
    waits = file["Steps"][sys.argv[2]]["Waits"]
    assert set(waits) == {"All", "Paths", "Patterns", "Processes"}, list(waits)
    whole = told([])
    compare(waits["All"], whole["waits"])
    compare(waits["Patterns"], whole["patterns"])
    compare(waits["Paths"], told(["--by=path"])["waits"])
    compare(waits["Processes"], told(["--by=process"])["waits"])
    assert waits.attrs["Joule Whole"] == [whole["is_whole"]]
    print(len(waits["All"]), "rows")
