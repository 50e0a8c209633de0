/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_copy.h - a copy of an OTF2 archive, in which what processes waited is marked: a
 * region "WAIT: Late Sender" within the MPI call that waits, from the begin of the wait
 * to its end.
 *
 *     ... joule_trace_read() tells the waits; each becomes a mark, in a scratch file ...
 *     joule_scratch_sort(&scratch, joule_mark_compare, &err);
 *     joule_trace_copy(&copying, &facts, &err);
 *
 * Times in the copy are ns, corrected by the archive's clock offsets.  In it are
 * regions, MPI's messages, collective operations and communicators, and the
 * attributes of these; other events (counters, OpenMP, files, one-sided
 * communication) are left out and counted.
 *
 * The archive is read a second time, one location after the other; memory does not
 * grow with events.  What trace_reader.h says of libotf2 holds here.
 */
#ifndef JOULE_WAITS_TRACE_COPY_H
#define JOULE_WAITS_TRACE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/waits/matcher.h"

struct joule_mark {
    uint64_t begin_ns, end_ns;
    uint32_t process;
    uint16_t pattern;
    uint16_t is_done; /* 0 */
};

struct joule_mark joule_mark_of(const struct joule_wait *wait);

/* By process, then by begin. */
int joule_mark_compare(const void *a, const void *b);

struct joule_trace_copying {
    const char *path;      /* as of joule_trace_read */
    const char *directory; /* of the copy: a new one */
    struct joule_mark *mark;
    uint64_t marks;
    void (*tick)(void *arg); /* optional: now and then */
    void *arg;
};

struct joule_trace_copied {
    uint64_t events, left_out;
    uint64_t
        not_marked; /* waits within a wait: of no program that MPI allows */
};

/* 0, or -1 with errno and a sentence: EEXIST the archive is such a copy, or the
 * directory is there; EIO, or as joule_trace_read.  What has been written by then is
 * the caller's to remove. */
int joule_trace_copy(const struct joule_trace_copying *copying,
                     struct joule_trace_copied *ret, struct joule_error *err);

#endif
