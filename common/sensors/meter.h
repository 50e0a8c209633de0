/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter.h - a power meter: something that says watts when it is asked, and may
 * take seconds to answer (a BMC).
 *
 * Passive: it knows no thread and no log, and belongs to one thread at a time,
 * but for interrupt().  meter_thread.h asks it.
 */
#ifndef JOULE_SENSORS_METER_H
#define JOULE_SENSORS_METER_H

#include "common/base/error.h"
#include "common/energy/domain.h"

struct joule_meter;

/* All are required. */
struct joule_meter_ops {
    const char *type; /* "ipmi" */
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

#endif
