/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqfault.h - reads and writes of simulated sysfs files that go wrong, and
 * the log of all writes.
 *
 * The log has a line a write: CLOCK_BOOTTIME ns, process id, its name, path,
 * what was written (without the newline at its end, control characters as
 * '?', "-" for nothing) and "ok" or the errno's name.  The process id is 0
 * for a process that the simulator cannot see.
 */
#ifndef SIM_FREQFAULT_H
#define SIM_FREQFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

#define SIM_FAULT_RULES 32

struct sim_freqfault {
    struct rule {
        char pattern[96]; /* fnmatch(3) of the path */
        bool write;
        int error;
        uint64_t from, count; /* fails at the [from]th, [count] times */
        uint64_t seen;
    } rules[SIM_FAULT_RULES];
    size_t rule_count;
    int log_fd; /* -1: no log */
    uint64_t writes;
};

/*
 * "read|write PATTERN ERRNO [NTH [COUNT]]": the NTH read or write from now on
 * of a file that fits PATTERN fails with ERRNO (a name as EBUSY), and those
 * after it, COUNT in all (1; 0: for ever).  Or "off".  0, or -1 with errno
 * and a sentence.
 */
int sim_freqfault_add(struct sim_freqfault *fault, char *text,
                      struct joule_error *err);

/* 0, or the errno value with which this one fails. */
int sim_freqfault_strike(struct sim_freqfault *fault, const char *path,
                         bool write);

/* A line of the log; [error] 0: it went well. */
void sim_freqfault_log(struct sim_freqfault *fault, int64_t mono_ns, pid_t pid,
                       const char *path, const char *buf, size_t count,
                       int error);

#endif
