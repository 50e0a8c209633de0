/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_archive.h - an OTF2 archive of the logs that an MPI program has left
 * (recorded_log.h): a location for each thread that called MPI, a location group for
 * each rank, and nodes; times on the clock of rank 0.
 */
#ifndef JOULE_WAITS_TRACE_ARCHIVE_H
#define JOULE_WAITS_TRACE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

struct joule_archive_facts {
    uint32_t ranks, missing;             /* missing: that left no log */
    uint64_t unreadable;                 /* logs that are left out, */
    struct joule_error first_unreadable; /* the first of them, and why */
    uint64_t damaged;                    /* logs of which a part is left out */
    uint64_t
        unplaced;    /* communicators: where a rank without a log is in them is
                          not known */
    uint32_t killed; /* whose program did not come to MPI_Finalize */
    uint64_t calls, lost;  /* lost: there was no room for them */
    uint64_t not_done;     /* tests and probes that found nothing */
    uint64_t unknown;      /* completed requests of which nothing was known */
    uint64_t not_compared; /* ranks whose clock nobody compared with rank 0's */
    uint64_t clock_ns;     /* by which clocks of two machines may differ */
    int error; /* errno of a process that could not write its log; 0: none */
};

/*
 * Make DIRECTORY/traces.otf2 and what belongs to it of the logs in DIRECTORY that can
 * be read; then, unless [keep], remove these.  An archive that is there is not
 * touched: EEXIST.  -1 with errno and a sentence; ENOTSUP: built without OTF2.  What
 * the logs hold is not trusted: memory, time and files grow with their bytes alone.
 * [tick], which may be NULL, is called again and again.
 */
int joule_archive_make(const char *directory, bool keep, void (*tick)(void),
                       struct joule_archive_facts *ret,
                       struct joule_error *err);

/* Remove what a process that died in it has begun. */
void joule_archive_remove(const char *directory, pid_t pid);

#endif
