/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter_thread.h - a thread that asks a power meter at a steady pace and keeps
 * what it said last, so that nobody else waits for it.
 *
 *     t = joule_meter_thread_create(meter, period_ns, &err);
 *     if (joule_meter_thread_take(t, &mail))
 *         use what is new in mail
 *     joule_meter_thread_destroy(t);
 */
#ifndef JOULE_SENSORS_METER_THREAD_H
#define JOULE_SENSORS_METER_THREAD_H

#include <stdbool.h>

#include "common/sensors/meter.h"

#define JOULE_METER_REMARKS 4

/* What the thread has to say; of each the last that nobody has taken. */
struct joule_meter_mail {
    bool has_power;
    struct joule_power power[JOULE_DOMAINS_MAX]; /* of each domain */
    struct joule_error failure;                  /* empty: none */
    struct joule_error remark[JOULE_METER_REMARKS];
    size_t remarks;
};

struct joule_meter_thread;

/* [meter] is the thread's from here on, also on failure: NULL with errno
 * ENOMEM.  [period_ns] 0: it is never asked, and only lends its domains. */
struct joule_meter_thread *joule_meter_thread_create(struct joule_meter *meter,
                                                     int64_t period_ns);

/* Interrupts the meter and joins the thread; NULL is a no-op.  In a child of
 * fork, where the thread is not, only memory and descriptors are given back. */
void joule_meter_thread_destroy(struct joule_meter_thread *t);

/* Call [news] in the thread, with each power that is new; NULL: no longer. */
void joule_meter_thread_notify(struct joule_meter_thread *t,
                               void (*news)(void *arg), void *arg);

/* Copy what is new; false: nothing is.  The first call starts the thread.  Takes
 * microseconds; one thread at a time. */
bool joule_meter_thread_take(struct joule_meter_thread *t,
                             struct joule_meter_mail *ret);

#endif
