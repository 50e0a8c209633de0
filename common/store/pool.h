/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool.h - processes that read hostile files, and their output in order.
 *
 * Each of a number of tasks is run by a worker: a child in a sandbox
 * (sandbox.h) that gets one descriptor and hands back bytes through memory
 * that it shares with its parent.  The parent takes them task by task, in
 * order, whatever the workers' number.  A worker that crashes, stands still or
 * sends nonsense costs its task and nothing else; another one takes its place.
 *
 * Memory: up to JOULE_POOL_SLOTS * JOULE_POOL_SLOT_SIZE for each worker, and
 * an eighth of that unless there are pieces that are so large.
 * One thread, and the caller has no other threads (it forks).
 */
#ifndef JOULE_STORE_POOL_H
#define JOULE_STORE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

#define JOULE_POOL_SLOT_SIZE ((size_t)2176 << 10)
#define JOULE_POOL_SLOTS     4
#define JOULE_POOL_JOBS_MAX  16

/* The worker's side of its output. */
struct joule_out;

/* Memory for [size] bytes, which are sent once they are committed; the same
 * memory again until then.  NULL with EMSGSIZE: no slot is so large; EPIPE:
 * the parent is gone. */
void *joule_out_room(struct joule_out *out, size_t size,
                     struct joule_error *err);
void joule_out_commit(struct joule_out *out, size_t size);

struct joule_work {
    /* In the parent: a descriptor for the task, which the pool closes.  -1
     * with a sentence: it is given to ended(), and nothing is run. */
    int (*open)(void *arg, size_t task, struct joule_error *err);
    /* In a worker.  0, or -1 with errno; what it leaves in [err] is given to
     * ended() in both cases. */
    int (*run)(void *arg, size_t task, int fd, struct joule_out *out,
               struct joule_error *err);
    /* In the parent: a part of the output, as committed.  -1 with EBADMSG ends
     * the task, with another errno everything. */
    int (*take)(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err);
    /* In the parent: nothing more comes from this task.  [errnum] 0: it is
     * whole.  -1 with a sentence ends everything. */
    int (*ended)(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err);
    /* Optional.  In the parent, when run() has failed with ELIBACC and without
     * output: load what it lacks, if it is not loaded yet.  Then the task is
     * begun anew in a worker that has it.  -1 with errno and a sentence, which
     * are given to ended(). */
    int (*equip)(struct joule_error *err);
    /* Optional: called about ten times a second. */
    void (*tick)(void *arg);
    /* Whether run() takes over the descriptor, for tasks after this one: their
     * worker may be the same. */
    bool keeps_fd;
    void *arg;
    unsigned cpu_s;  /* a task that computes so long without any output, and */
    unsigned wall_s; /* one that is silent for so long, is ended */
};

/* Run tasks 0 .. [tasks] - 1 with [jobs] workers (1 to JOULE_POOL_JOBS_MAX).
 * 0, or -1 with errno and a sentence if everything was ended. */
int joule_pool_run(const struct joule_work *work, size_t tasks, unsigned jobs,
                   struct joule_error *err);

#endif
