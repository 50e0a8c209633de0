/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pace.h - how a thread that samples keeps time: it sleeps to the moment,
 * with one system call and no lock, and runs at once when that has come.
 *
 * Measured on a virtual machine of two CPUs, 1,000 periods of 10 ms while four
 * tasks wanted both of them (kernel 6.18, 2026-11-21), how late the thread was:
 *
 *                        p50      p99      most   later than a period
 *     nice 0           18 us   9.3 ms     32 ms   8
 *     nice -10         18 us   2.9 ms     14 ms   2
 *     nice -20         18 us   6.5 ms     29 ms   7
 *     -20, slice 0.1   20 us   7.0 ms     37 ms   5
 *     SCHED_RR 1       20 us    52 us    0.8 ms   0
 *     SCHED_FIFO 1     18 us    46 us    0.3 ms   0
 *
 * Hence SCHED_FIFO, the lowest priority of it, for some tens of microseconds
 * at a time.
 */
#ifndef JOULE_STEP_PACE_H
#define JOULE_STEP_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What ends a thread's sleep for good; 0 at first. */
typedef _Atomic uint32_t joule_stop;

/* The calling thread: no slack of timers, and nice -10 if that is allowed. */
void joule_pace_start(void);

/*
 * The calling thread: real-time priority, which no child process inherits.  A
 * process with such a thread cannot be moved into a cgroup without a share of
 * real time (kernels with CONFIG_RT_GROUP_SCHED): not before slurmstepd is in
 * its own.  -1 with errno EPERM: not allowed, or this cgroup has no such share.
 */
int joule_pace_hurry(void);

/* Sleep until CLOCK_MONOTONIC is [until_ns].  false: stopped. */
bool joule_pace_sleep(joule_stop *stop, int64_t until_ns);

/* From any thread, once. */
void joule_pace_stop(joule_stop *stop);

#endif
