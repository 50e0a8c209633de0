/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waker.h - a thread that is woken as often as an energy series of 100 Hz, in
 * the same way and with the same priority, and does nothing: what no sampler
 * that is woken for each of its readings can go below on this machine.
 *
 * A failure ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_WAKER_H
#define JOULE_BENCH_WAKER_H

#include <pthread.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/store/punctual.h"

#define WAKER_PERIOD_NS (10 * JOULE_NS_PER_MS)

struct waker {
    pthread_t thread;
    joule_stop stop;
    const char *name; /* of the thread */
    int64_t begin_ns; /* CLOCK_MONOTONIC */
};

void waker_start(struct waker *waker, const char *name, int64_t begin_ns);

/* CPU time since it began. */
double waker_cpu_ns(const struct waker *waker);

void waker_stop(struct waker *waker);

#endif
