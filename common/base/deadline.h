/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deadline.h - points in time of CLOCK_MONOTONIC in ns, and waiting for them.
 *
 *     int64_t end_ns = joule_deadline_in(50 * JOULE_NS_PER_MS);
 *
 *     while (!done && joule_cond_wait(&wake, &lock, end_ns))
 *         continue;
 *
 * Measurements have the clock of clock.h, which goes on during suspend; what a
 * thread sleeps until does not.  Safe from any thread.
 */
#ifndef JOULE_BASE_DEADLINE_H
#define JOULE_BASE_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/clock.h"

/* Now. */
int64_t joule_deadline_now(void);

/* [ns] from now; now for a negative one. */
int64_t joule_deadline_in(int64_t ns);

/* The time until the deadline, 0 if it has passed. */
int64_t joule_deadline_left(int64_t deadline_ns);

/* [ns] >= 0, as system calls want it. */
struct timespec joule_timespec(int64_t ns);

/* Signals do not cut a sleep short. */
void joule_sleep_ns(int64_t ns);
void joule_sleep_until(int64_t deadline_ns);

/* A condition variable that waits for deadlines. */
void joule_cond_init(pthread_cond_t *cond);

/* Wait with the mutex: false if the deadline has passed.  May return early, as
 * pthread_cond_wait does. */
bool joule_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                     int64_t deadline_ns);

#endif
