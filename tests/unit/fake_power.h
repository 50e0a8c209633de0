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
#include "common/source/source.h"

#define FAKE_LABELS_MAX 4
#define FAKE_KEPT_MAX   64

struct fake_power {
    struct joule_source source; /* first */
    struct joule_domain domain[FAKE_LABELS_MAX];
    _Atomic double watts[FAKE_LABELS_MAX];
    _Atomic int status[FAKE_LABELS_MAX];
    _Atomic int error;            /* read_power fails with it */
    _Atomic(const char *) text;   /* and with this sentence */
    _Atomic(const char *) remark; /* said once */
    _Atomic bool hangs;           /* until interrupt */
    _Atomic int64_t slow_ns;      /* each reading, of the kernel's time */
    _Atomic bool under_way;       /* the next one, so is said */
    _Atomic int64_t late_ns;      /* of its mono_ns, behind now */
    _Atomic bool is_interrupted;
    /* fake_resting_ops: readings that came in a rest, before all others */
    _Atomic unsigned kept, taken;
    int64_t kept_ns[FAKE_KEPT_MAX];
    double kept_watts[FAKE_KEPT_MAX]; /* of "Node" */
    _Atomic unsigned rests;           /* begun */
    _Atomic bool resting, roused;
    _Atomic unsigned reads, waits; /* begun; in a wait now */
    _Atomic int64_t now_ns;
    _Atomic int64_t wall_step_ns;
    struct joule_clock clock;
};

/* True: interrupted. */
static bool fake_power_wait(struct fake_power *f)
{
    const struct timespec ms = {.tv_nsec = JOULE_NS_PER_MS};
    int64_t ns;

    atomic_fetch_add(&f->waits, 1);
    for (ns = 0; (f->hangs || ns < f->slow_ns) && !f->is_interrupted;
         ns += JOULE_NS_PER_MS)
        nanosleep(&ms, NULL);
    atomic_fetch_sub(&f->waits, 1);
    return f->is_interrupted;
}

static int fake_power_read(struct joule_source *source, struct joule_power *out,
                           struct joule_error *err)
{
    struct fake_power *f = (struct fake_power *)source;
    const char *text = f->text;
    int error = f->error;

    /* As a sampler does that ends: no reading. */
    if (f->is_interrupted && f->taken == f->kept) {
        errno = ECANCELED;
        return -1;
    }
    atomic_fetch_add(&f->reads, 1);
    if (f->taken == f->kept && fake_power_wait(f)) {
        errno = ECANCELED;
        return -1;
    }
    if (error) {
        f->taken = f->kept;
        if (text)
            return joule_error_set(err, error, "%s", text);
        errno = error;
        return -1;
    }
    for (size_t i = 0; i < source->domain_count; i++)
        out[i] = (struct joule_power){
            .watts = f->watts[i],
            .mono_ns = f->now_ns - f->late_ns,
            .status = (enum joule_power_status)f->status[i],
        };
    if (f->taken < f->kept) {
        out[0].mono_ns = f->kept_ns[f->taken];
        out[0].watts = f->kept_watts[f->taken];
        atomic_fetch_add(&f->taken, 1);
    }
    return 0;
}

static bool fake_power_is_under_way(const struct joule_source *source)
{
    return ((const struct fake_power *)source)->under_way;
}

static int fake_power_remark(struct joule_source *source,
                             struct joule_error *ret)
{
    struct fake_power *f = (struct fake_power *)source;
    const char *text = atomic_exchange(&f->remark, NULL);

    if (!text)
        return 0;
    snprintf(ret->text, sizeof(ret->text), "%s", text);
    return 1;
}

static void fake_power_interrupt(struct joule_source *source)
{
    ((struct fake_power *)source)->is_interrupted = true;
}

static void fake_power_destroy(struct joule_source *source)
{
    (void)source;
}

static const struct joule_source_ops fake_power_ops = {
    .type = "fake",
    .read_power = fake_power_read,
    .is_under_way = fake_power_is_under_way,
    .remark = fake_power_remark,
    .interrupt = fake_power_interrupt,
    .destroy = fake_power_destroy,
};

/* By the clock that is turned by hand. */
static void fake_power_rest(struct joule_source *source, int64_t ns)
{
    struct fake_power *f = (struct fake_power *)source;
    const struct timespec ms = {.tv_nsec = JOULE_NS_PER_MS};
    int64_t until_ns = f->now_ns + ns;

    atomic_fetch_add(&f->rests, 1);
    f->resting = true;
    while (!atomic_exchange(&f->roused, false) && !f->is_interrupted &&
           f->now_ns < until_ns)
        nanosleep(&ms, NULL);
    f->resting = false;
}

static bool fake_power_is_waiting(const struct joule_source *source)
{
    const struct fake_power *f = (const struct fake_power *)source;

    return f->under_way && f->taken < f->kept;
}

static void fake_power_rouse(struct joule_source *source)
{
    ((struct fake_power *)source)->roused = true;
}

__attribute__((unused)) static const struct joule_source_ops fake_resting_ops = {
    .type = "fake",
    .read_power = fake_power_read,
    .is_under_way = fake_power_is_under_way,
    .rest = fake_power_rest,
    .is_waiting = fake_power_is_waiting,
    .rouse = fake_power_rouse,
    .remark = fake_power_remark,
    .interrupt = fake_power_interrupt,
    .destroy = fake_power_destroy,
};

/* It is resting: a reading comes at [ns]. */
static inline void fake_power_keep(struct fake_power *f, int64_t ns,
                                   double watts)
{
    f->kept_ns[f->kept] = ns;
    f->kept_watts[f->kept] = watts;
    atomic_fetch_add(&f->kept, 1);
}

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
    size_t i = f->source.domain_count++;
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
    f->source.ops = &fake_power_ops;
    f->source.domains = f->domain;
    f->now_ns = 1000 * JOULE_NS_PER_S;
    f->clock.mono_ns = fake_power_mono_ns;
    f->clock.wall_ns = fake_power_wall_ns;
    f->clock.arg = f;
    fake_power_add(f, "Node", 100);
}

#endif
