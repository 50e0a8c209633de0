/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker.h - processes that read hostile files, and their output in order.
 *
 * Each of a number of tasks is run by a worker: a child in a sandbox
 * that gets descriptors and hands back bytes through memory that
 * it shares with its parent.  The parent takes them task by task, in
 * order, whatever the workers' number.  A worker that crashes, stands still or
 * sends nonsense costs its task and nothing else; another one takes its place.
 *
 * Memory: up to JOULE_WORKER_SLOTS * JOULE_WORKER_SLOT_SIZE for each worker,
 * and an eighth of that unless there are pieces that are so large. One thread,
 * and the caller has no other threads (it forks).
 */
#ifndef JOULE_PROFILE_WORKER_H
#define JOULE_PROFILE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_WORKER_SLOT_SIZE ((size_t)2176 << 10)
#define JOULE_WORKER_SLOTS     4
#define JOULE_WORK_KEEP_MAX    2
#define JOULE_WORKERS_MAX      16

/* The worker's side of its output. */
struct joule_out;

/* Memory for [size] bytes, which are sent once they are committed; the same
 * memory again until then.  NULL with EMSGSIZE: no slot is so large; EPIPE:
 * the parent is gone. */
void *joule_out_room(struct joule_out *out, size_t size,
                     struct joule_error *err);
void joule_out_commit(struct joule_out *out, size_t size);

/* How a task has ended. */
struct joule_work_end {
    int errnum;           /* 0: it is whole */
    const char *sentence; /* why, or what run() had to say */
    bool is_dead;         /* its worker has died, or was killed */
};

struct joule_work {
    /* Optional.  In the parent: a descriptor for the task, which is closed in
     * the end.  -1 with a sentence: that is given to ended(), and nothing is
     * run. */
    int (*open)(void *arg, size_t task, struct joule_error *err);
    /* In a worker; [fd] is -1 without open().  0, or -1 with errno; what it
     * leaves in [err] is given to ended() in both cases. */
    int (*run)(void *arg, size_t task, int fd, struct joule_out *out,
               struct joule_error *err);
    /* In the parent: a part of the output, as committed.  -1 with EBADMSG ends
     * the task and its worker, with another errno everything. */
    int (*take)(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err);
    /* In the parent: nothing more comes from this task.  -1 with a sentence ends
     * everything. */
    int (*ended)(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err);
    /* Optional.  How many bytes a task has to read: it has a second more of CPU
     * time for each 16 MiB, and a second more to be silent for each MiB. */
    uint64_t (*bytes)(void *arg, size_t task);
    /* Optional: called about ten times a second. */
    void (*tick)(void *arg);
    void *arg;
    /* Descriptors that run() uses besides, up to JOULE_WORK_KEEP_MAX. */
    const int *keep;
    size_t keeps;
    bool writes_files; /* run() writes to those */
    bool is_fresh;     /* each task has a worker of its own */
    size_t data_bytes; /* of memory for a worker; 0: 48 MiB */
    /* A task that computes so long without any output, and one that is silent
     * for so long, is ended; 0: 5 s, 60 s. */
    unsigned cpu_s, wall_s;
};

/* Run tasks 0 .. [tasks] - 1 with [jobs] workers (1 to JOULE_WORKERS_MAX).
 * 0, or -1 with errno and a sentence if everything was ended. */
int joule_work_run(const struct joule_work *work, size_t tasks, unsigned jobs,
                   struct joule_error *err);

#endif
