/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder.h - takes the records of a process, and writes them to its log (log.h) by
 * a thread of its own, so that the program never waits for a disk.
 *
 *     joule_recorder_start(&head);              at MPI_Init
 *     thread = joule_recorder_enter();          in each call; NULL: not now
 *     record = joule_recorder_add(thread);
 *     joule_recorder_added(thread);
 *     joule_recorder_leave(thread);
 *     joule_recorder_stop(state);               at MPI_Finalize, or at the exit
 *
 * Each thread fills blocks of its own.  Blocks are JOULE_WAITS_MEMORY bytes in all;
 * what finds none is lost, and counted.
 */
#ifndef JOULE_WAITS_RECORDER_H
#define JOULE_WAITS_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "lib/waits/log.h"

#define JOULE_RECORDS_A_BLOCK 1365 /* of 64 KiB */

struct joule_recorder_block {
    _Atomic uint32_t state; /* enum in recorder.c */
    _Atomic uint32_t count;
    uint32_t thread;
    uint32_t written; /* the writer's: so many of them are in the file */
    uint64_t number;
    struct joule_waits_record record[JOULE_RECORDS_A_BLOCK];
};

/* Functions that called, of each thread; by address, as far as there is room. */
struct joule_caller {
    const void *address;
    uint16_t name;
};

struct joule_waits_thread {
    struct joule_recorder_block *block; /* that it fills; NULL: none */
    struct joule_waits_record spare;    /* for what has no room */
    uint64_t number;                    /* of its next block */
    uint32_t id;
    uint32_t regions; /* that it has begun, and not ended */
    bool is_inside;   /* of a call */
    bool is_known;    /* it has an id */
};

extern _Atomic bool joule_recorder_runs;
extern _Atomic bool joule_recorder_pauses; /* MPI_Pcontrol(0) */
extern _Thread_local struct joule_waits_thread joule_recorder_self
    __attribute__((tls_model("initial-exec")));

/* The entry that has the address, or gets it. */
struct joule_caller *joule_recorder_caller(const void *address);

static inline int64_t joule_recorder_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline struct joule_waits_thread *joule_recorder_enter(void)
{
    struct joule_waits_thread *thread = &joule_recorder_self;

    if (!atomic_load_explicit(&joule_recorder_runs, memory_order_acquire) ||
        thread->is_inside)
        return NULL;
    thread->is_inside = true;
    return thread;
}

static inline void joule_recorder_leave(struct joule_waits_thread *thread)
{
    thread->is_inside = false;
}

struct joule_waits_record *
joule_recorder_more(struct joule_waits_thread *thread);

/* Room for a record, all 0 or what was there before: fill all of it. */
static inline struct joule_waits_record *
joule_recorder_add(struct joule_waits_thread *thread)
{
    struct joule_recorder_block *block = thread->block;
    uint32_t count;

    if (!block)
        return joule_recorder_more(thread);
    count = atomic_load_explicit(&block->count, memory_order_relaxed);
    return count < JOULE_RECORDS_A_BLOCK ? &block->record[count]
                                         : joule_recorder_more(thread);
}

static inline void joule_recorder_added(struct joule_waits_thread *thread)
{
    struct joule_recorder_block *block = thread->block;

    if (block)
        atomic_store_explicit(
            &block->count,
            atomic_load_explicit(&block->count, memory_order_relaxed) + 1,
            memory_order_release);
}

/* The number of a communicator, or of a name, that the log tells of from here on; they
 * are told once each.  JOULE_WAITS_NO_COMM, or 0: there is no room. */
uint32_t joule_recorder_comm(uint64_t id, int rank, int size);
uint16_t joule_recorder_name(const char *text, size_t length);

/* There are no records until it goes on; requests and communicators are followed. */
void joule_recorder_pause(bool pause);

/* Counted in the head. */
void joule_recorder_not_done(void);
void joule_recorder_unknown(void);

/* Make the log in JOULE_WAITS_DIR, and begin.  0, or -1 with errno. */
int joule_recorder_start(const struct joule_waits_head *head);

/* Write what there is, and end; the clock of the end, or NULL.  No-op where nothing
 * has begun. */
void joule_recorder_stop(enum joule_waits_state state,
                         const struct joule_waits_clock *clock);

/* The same before the process is killed: it does not wait longer than 3 s for the disk,
 * and what was not written by then is lost. */
void joule_recorder_abort(void);

#endif
