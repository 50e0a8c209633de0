# SPDX-License-Identifier: GPL-2.0-or-later
#
# overhead_sums.awk - figures of a table by process and thread, in the order in which
# these were first named; for overhead.awk and instructions.awk, which print them.

# put PROCESS THREAD COLUMN VALUE - to be added to it
function put(process, thread, column, value,    key) {
    key = process SUBSEP thread
    if (!(key in known)) {
        known[key] = 1
        order[++lines] = key
    }
    sum[key, column] += value
    there[key, column] = 1
}

# A cell of the table: empty where nothing was put.
function number(key, column, format) {
    return (key, column) in there ? sprintf(format, sum[key, column]) : ""
}
