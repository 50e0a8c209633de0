/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_reader.h - read an OTF2 archive, as Score-P and EZTrace write it, and tell
 * what its MPI calls have waited for.
 *
 *     joule_definitions_init(&definitions);
 *     joule_trace_read(&reading, &definitions, &facts, &err);
 *     ... facts, and what reading.take was given ...
 *     joule_trace_facts_free(&facts);
 *     joule_definitions_free(&definitions);
 *
 * All locations are read side by side, a round of events at a time, by several
 * threads, so that memory grows with what is open and with the number of locations
 * (libotf2 has two buffers of the archive's chunk size, most often 1 MiB, and an open
 * file for each), not with events.
 * The waits are the same whatever the number of threads and the size of rounds.
 *
 * Times are ns since the trace's clock was 0, corrected by the archive's clock
 * offsets (libotf2 interpolates between them).
 *
 * libotf2 may crash where an archive is damaged on purpose: read in a process that
 * may die.  Its messages are silenced for the whole process.
 */
#ifndef JOULE_WAITS_TRACE_READER_H
#define JOULE_WAITS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/waits/matcher.h"
#include "tools/waits/definitions.h"

/* A call of MPI that is in no other one. */
struct joule_trace_call {
    uint32_t process;
    uint32_t thread; /* of the process, from 0 */
    uint32_t region;
    uint64_t enter_ns, leave_ns;
};

struct joule_trace_reading {
    /* A directory with traces.otf2 or eztrace_log.otf2, or such a file. */
    const char *path;
    unsigned threads;    /* 1 to JOULE_MATCHER_PARTS_MAX */
    size_t round_events; /* of all locations together; 0: what is good */
    bool with_slack;
    /* A wait, in the thread of [part] (below [threads]). */
    void (*take)(void *arg, unsigned part, const struct joule_wait *wait);
    /* Optional, likewise: messages; and calls, those of a thread in their order. */
    void (*message)(void *arg, unsigned part,
                    const struct joule_delivery *message);
    void (*call)(void *arg, unsigned part, const struct joule_trace_call *call);
    /* Optional: when the archive is open, and after each round; in one thread. */
    void (*tick)(void *arg);
    /* Optional: once, in one thread, when the definitions are known. */
    void (*begin)(void *arg);
    void *arg;
};

struct joule_trace_process_facts {
    uint64_t mpi_ns; /* in MPI calls, of all its locations */
    uint64_t run_ns; /* from first to last event of locations with MPI calls */
    uint64_t mpi_calls;
};

/* Computing of a process in a call path: what it does there outside of MPI calls. */
struct joule_trace_slack {
    uint32_t process;
    uint32_t path; /* JOULE_SLACK_ALL: in all of them */
    uint64_t computed_ns, slack_ns;
};

struct joule_trace_facts {
    struct joule_trace_process_facts *process; /* of each of the definitions */
    struct joule_trace_slack *slack;           /* of processes with MPI calls */
    size_t slacks;
    uint64_t *not_analysed; /* calls of each region */
    struct joule_matcher_counts counts;
    uint64_t locations, events;
    uint64_t begin_ns, end_ns; /* of all events; begin > end: there are none */
    /* What makes no sense, and was left out or mended. */
    uint64_t unknown_references, times_back, unbalanced, outside_of_calls;
    uint64_t lost; /* beyond bounds that no trace of a program reaches */
    /* Locations that could not be read, or not to their end. */
    uint64_t missing, damaged;
    struct joule_error first_damage; /* a sentence, or empty */
};

/* 0, also where locations are missing or damaged; or -1 with a sentence: ENOENT,
 * EBADMSG, ENOMEM, EAGAIN (no thread). */
int joule_trace_read(const struct joule_trace_reading *reading,
                     struct joule_definitions *definitions,
                     struct joule_trace_facts *ret, struct joule_error *err);
void joule_trace_facts_free(struct joule_trace_facts *facts);

#endif
