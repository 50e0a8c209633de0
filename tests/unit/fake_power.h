/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_power.h - a BMC and a clock that a test turns by hand.
 *
 * A struct fake_power may lie in memory that processes share, and its values
 * may be changed while a sampler reads them.  Label 0 is "Node".
 */
#ifndef JOULE_TESTS_FAKE_POWER_H
#define JOULE_TESTS_FAKE_POWER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/sensors/meter_sensor.h"

#define FAKE_LABELS_MAX 4

struct fake_power {
    struct joule_meter meter; /* first */
    struct joule_domain domain[FAKE_LABELS_MAX];
    _Atomic double watts[FAKE_LABELS_MAX];
    _Atomic int status[FAKE_LABELS_MAX];
    _Atomic int error;            /* read fails with it */
    _Atomic(const char *) text;   /* and with this sentence */
    _Atomic(const char *) remark; /* said once */
    _Atomic bool hangs;           /* until interrupt */
    _Atomic int64_t slow_ns;      /* each reading, of the kernel's time */
    _Atomic int64_t late_ns;      /* of its mono_ns, behind now */
    _Atomic bool is_interrupted;
    _Atomic unsigned reads, waits; /* begun; that wait now */
    _Atomic int64_t now_ns;
    _Atomic int64_t wall_step_ns;
    struct joule_clock clock;
};

/* True: interrupted. */
static bool fake_power_wait(struct fake_power *f)
{
    const struct timespec ms = {.tv_nsec = JOULE_NS_PER_MS};
    int64_t ns;

    for (ns = 0; (f->hangs || ns < f->slow_ns) && !f->is_interrupted;
         ns += JOULE_NS_PER_MS) {
        if (ns == 0)
            atomic_fetch_add(&f->waits, 1);
        nanosleep(&ms, NULL);
    }
    if (ns > 0)
        atomic_fetch_sub(&f->waits, 1);
    return f->is_interrupted;
}

static int fake_power_read(struct joule_meter *meter, struct joule_power *out,
                           struct joule_error *err)
{
    struct fake_power *f = (struct fake_power *)meter;
    int error = f->error; /* first: a test sets its sentence before it */
    const char *text = f->text;

    /* As a sampler does that ends: no reading. */
    if (f->is_interrupted) {
        errno = ECANCELED;
        return -1;
    }
    atomic_fetch_add(&f->reads, 1);
    if (fake_power_wait(f)) {
        errno = ECANCELED;
        return -1;
    }
    if (error) {
        if (text)
            return joule_error_set(err, error, "%s", text);
        errno = error;
        return -1;
    }
    for (size_t i = 0; i < meter->domain_count; i++)
        out[i] = (struct joule_power){
            .watts = f->watts[i],
            .mono_ns = f->now_ns - f->late_ns,
            .status = (enum joule_power_status)f->status[i],
        };
    return 0;
}

static int fake_power_remark(struct joule_meter *meter, struct joule_error *ret)
{
    struct fake_power *f = (struct fake_power *)meter;
    const char *text = atomic_exchange(&f->remark, NULL);

    if (!text)
        return 0;
    snprintf(ret->text, sizeof(ret->text), "%s", text);
    return 1;
}

static void fake_power_interrupt(struct joule_meter *meter)
{
    ((struct fake_power *)meter)->is_interrupted = true;
}

static void fake_power_destroy(struct joule_meter *meter)
{
    (void)meter;
}

static const struct joule_meter_ops fake_power_ops = {
    .read = fake_power_read,
    .remark = fake_power_remark,
    .interrupt = fake_power_interrupt,
    .destroy = fake_power_destroy,
};

static int64_t fake_power_mono_ns(void *arg)
{
    return ((struct fake_power *)arg)->now_ns;
}

static int64_t fake_power_wall_ns(void *arg)
{
    struct fake_power *f = arg;

    return f->now_ns + INT64_C(1600000000000000000) + f->wall_step_ns;
}

/* One more label, at [watts]. */
static void fake_power_add(struct fake_power *f, const char *label,
                           double watts)
{
    size_t i = f->meter.domain_count++;
    struct joule_domain *d = &f->domain[i];

    *d = (struct joule_domain){
        .kind = JOULE_DOMAIN_POWER,
        .unit = {.num = 1, .shift = 0},
        .width_bits = 64,
        .in_total = i == 0,
    };
    snprintf(d->name, sizeof(d->name), "%s", label);
    f->watts[i] = watts;
}

/* "Node" at 100 W; the clock stands at 1000 s. */
static void fake_power_init(struct fake_power *f)
{
    memset(f, 0, sizeof(*f));
    f->meter.ops = &fake_power_ops;
    f->meter.domains = f->domain;
    f->now_ns = 1000 * JOULE_NS_PER_S;
    f->clock.mono_ns = fake_power_mono_ns;
    f->clock.wall_ns = fake_power_wall_ns;
    f->clock.arg = f;
    fake_power_add(f, "Node", 100);
}

/* A sensor of it, asked each millisecond of the kernel's time once it has been
 * read; destroyed as any, the meter stays. */
static inline struct joule_sensor *fake_power_sensor(struct fake_power *f,
                                                     int64_t gap_ns)
{
    const struct joule_meter_sensor_options opt = {
        .clock = &f->clock,
        .meter = &f->meter,
        .period_ns = JOULE_NS_PER_MS,
        .gap_ns = gap_ns,
    };

    return joule_meter_sensor_create(&opt);
}

/* Wait until the sensor's thread has what the meter says now: until it has begun
 * one more reading after that. */
static inline void fake_power_settle(struct fake_power *f)
{
    const struct timespec pause = {.tv_nsec = 100000};
    unsigned reads = f->reads;

    while (f->reads < reads + 2)
        nanosleep(&pause, NULL);
}

#endif
