/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scratch.h - records of one size that are kept in a file without a name until all of
 * them are there, and are then sorted.  Their pages are the file's, which the kernel
 * writes out where memory is short; while it sorts, qsort(3) takes as much memory again,
 * but no more than a quarter of the machine's.
 *
 *     if (joule_scratch_init(&scratch, fd, sizeof(struct thing), &err) < 0)
 *         ...
 *     joule_scratch_add(&scratch, part, &thing);       each part in its thread
 *     if (joule_scratch_sort(&scratch, compare_things, &err) == 0)
 *         ... scratch.count things from scratch.at on ...
 *     joule_scratch_free(&scratch);
 */
#ifndef JOULE_WAITS_SCRATCH_H
#define JOULE_WAITS_SCRATCH_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/waits/matcher.h"

struct joule_scratch_part {
    char *buffer;
    size_t used;
    char apart[128]; /* from the next one: no cache line is of two threads */
};

struct joule_scratch {
    int fd;
    size_t size; /* of a record */
    void *at;    /* of the first record, when they are sorted */
    uint64_t count;
    int error; /* errno of a write; 0: none */
    pthread_mutex_t lock;
    struct joule_scratch_part part[JOULE_MATCHER_PARTS_MAX];
};

/* In the empty file [fd], which is closed with the rest; -1 from whatever opened it is
 * passed on.  0, or -1 with ENOMEM and a sentence.  Free it in any case. */
int joule_scratch_init(struct joule_scratch *s, int fd, size_t size,
                       struct joule_error *err);
void joule_scratch_free(struct joule_scratch *s);

/* What fails is told by joule_scratch_sort. */
void joule_scratch_add(struct joule_scratch *s, unsigned part,
                       const void *record);

/* In one thread, when all are there: sort them as qsort(3) does; they may be changed
 * then.  0, or -1 with errno (ENOSPC ...) and a sentence. */
int joule_scratch_sort(struct joule_scratch *s,
                       int (*compare)(const void *, const void *),
                       struct joule_error *err);

#endif
