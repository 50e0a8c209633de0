/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter.h - a power meter, something that says watts when it is asked and may
 * take seconds to answer (a BMC); and a thread that asks it at a steady pace,
 * so that nobody else waits for it.
 *
 *     t = joule_meter_thread_create(meter, period_ns, gap_ns, false);
 *     if (joule_meter_thread_take(t, power) == JOULE_METER_POWER)
 *         use power
 *     while (joule_meter_thread_remark(t, &event, &text))
 *         log it
 *     joule_meter_thread_destroy(t);
 */
#ifndef JOULE_SENSORS_METER_H
#define JOULE_SENSORS_METER_H

#include "common/sensors/sensor.h"

struct joule_meter;

/* All are required.  One thread at a time, but for interrupt. */
struct joule_meter_ops {
    /*
     * Ask for every domain once; out has as many entries as domains.  Returns
     * within a time that the meter bounds.  0: out is filled; -1: nothing is
     * known, with a sentence and errno
     *   EAGAIN     connecting again is not due yet (back-off); no sentence
     *   ECANCELED  interrupt() was called; no sentence
     *   ETIMEDOUT  no answer in time
     *   other      what went wrong
     * The first call after interrupt() puts away what must not outlive the
     * thread that asks.
     */
    int (*read)(struct joule_meter *meter, struct joule_power *out,
                struct joule_error *err);
    /* 1 and a sentence for the log about something that happened since the last
     * call (connected; sensors found or changed), or 0. */
    int (*remark)(struct joule_meter *meter, struct joule_error *ret_remark);
    /* End a read that waits, and let every later one fail with ECANCELED.  Any
     * thread. */
    void (*interrupt)(struct joule_meter *meter);
    void (*destroy)(struct joule_meter *meter);
};

/* The head of every meter; filled at creation, constant afterwards. */
struct joule_meter {
    const struct joule_meter_ops *ops;
    const struct joule_domain *domains; /* kind POWER */
    size_t domain_count;
};

/* NULL is a no-op; errno is kept. */
void joule_meter_destroy(struct joule_meter *meter);

#define JOULE_METER_TEXTS 8 /* different failures that are told of an outage */

struct joule_meter_thread;

/*
 * [meter] is the thread's from here on, also on failure: NULL with errno
 * ENOMEM.  [period_ns] 0: it is never asked, and only lends its domains.  A
 * time without a measurement is told of if it was longer than gap_ns;
 * [has_counters] go on while the meter does not answer.
 */
struct joule_meter_thread *joule_meter_thread_create(struct joule_meter *meter,
                                                     int64_t period_ns,
                                                     int64_t gap_ns,
                                                     bool has_counters);

/* Interrupts the meter and joins the thread; NULL is a no-op.  In a child of
 * fork, where the thread is not, only memory and descriptors are given back. */
void joule_meter_thread_destroy(struct joule_meter_thread *t);

/* Call [news] in the thread, with each power that is new; NULL: no longer. */
void joule_meter_thread_notify(struct joule_meter_thread *t,
                               void (*news)(void *arg), void *arg);

/* The node was measured last at this time, by another process. */
void joule_meter_thread_resume(struct joule_meter_thread *t,
                               int64_t measured_ns);

enum joule_meter_news {
    JOULE_METER_NOTHING,
    JOULE_METER_POWER,  /* power has an entry for each domain */
    JOULE_METER_FAILURE /* readings failed */
};

/* What is new since the last call.  The first call starts the thread.  Takes
 * microseconds; one thread at a time. */
enum joule_meter_news joule_meter_thread_take(struct joule_meter_thread *t,
                                              struct joule_power *power);

/* What an admin should know, each state once, and that it is over: 1 and a
 * sentence, or 0. */
int joule_meter_thread_remark(struct joule_meter_thread *t,
                              enum joule_event *ret_event,
                              struct joule_error *ret_text);

#endif
