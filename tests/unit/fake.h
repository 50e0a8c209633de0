/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake.h - counters and a clock that a test turns by hand.
 *
 * A struct fake may lie in memory that processes share, and its values may be
 * changed while a sampler reads them.
 */
#ifndef JOULE_TESTS_FAKE_H
#define JOULE_TESTS_FAKE_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/sensors/counter_sensor.h"

#define FAKE_MAX 8

struct fake {
    struct joule_counters counters; /* first */
    struct joule_domain domain[FAKE_MAX];
    _Atomic uint64_t start[FAKE_MAX]; /* raw value at 0 ticks */
    _Atomic uint64_t ticks[FAKE_MAX]; /* the truth */
    _Atomic int error[FAKE_MAX];
    _Atomic uint64_t good[FAKE_MAX]; /* ticks at the last good reading */
    _Atomic bool answered[FAKE_MAX]; /* there has been one */
    _Atomic unsigned reads;
    _Atomic unsigned fail_every; /* EIO on every n-th whole reading; 0: never */
    _Atomic int64_t now_ns;
    struct joule_clock clock;
};

static void fake_read(struct joule_counters *counters, struct joule_raw *out)
{
    struct fake *f = (struct fake *)counters;
    unsigned n = atomic_fetch_add(&f->reads, 1) + 1;

    for (size_t i = 0; i < counters->domain_count; i++) {
        unsigned width = f->domain[i].width_bits;
        uint64_t mask = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;

        out[i].error = f->error[i];
        if (f->fail_every && n % f->fail_every == 0)
            out[i].error = 5; /* EIO */
        out[i].raw = out[i].error ? 0 : (f->start[i] + f->ticks[i]) & mask;
        if (!out[i].error) {
            f->good[i] = f->ticks[i];
            f->answered[i] = true;
        }
    }
}

static void fake_destroy(struct joule_counters *counters)
{
    (void)counters;
}

static const struct joule_counters_ops fake_ops = {
    .read = fake_read,
    .destroy = fake_destroy,
};

static int64_t fake_mono_ns(void *arg)
{
    return ((struct fake *)arg)->now_ns;
}

static int64_t fake_wall_ns(void *arg)
{
    return ((struct fake *)arg)->now_ns + INT64_C(1600000000000000000);
}

/* No domains; the clock stands at 1000 s. */
static void fake_init(struct fake *f)
{
    memset(f, 0, sizeof(*f));
    f->counters.ops = &fake_ops;
    f->counters.domains = f->domain;
    f->now_ns = 1000 * JOULE_NS_PER_S;
    f->clock.mono_ns = fake_mono_ns;
    f->clock.wall_ns = fake_wall_ns;
    f->clock.arg = f;
}

/* 15.26 uJ a tick, 32 bits: 65,536 J and, at 1000 W, 65.5 s to the wrap. */
static struct joule_domain *fake_add(struct fake *f,
                                     enum joule_domain_kind kind,
                                     unsigned package, uint64_t start)
{
    size_t i = f->counters.domain_count++;
    struct joule_domain *d = &f->domain[i];

    *d = (struct joule_domain){
        .kind = kind,
        .package = (uint16_t)package,
        .cpu = package,
        .unit = {.num = 15625, .shift = 10},
        .width_bits = 32,
        .in_total = kind == JOULE_DOMAIN_PACKAGE || kind == JOULE_DOMAIN_DRAM,
    };
    snprintf(d->name, sizeof(d->name), "domain-%zu", i);
    f->start[i] = start;
    return d;
}

/* A sensor of them, which is destroyed as any; the counters stay. */
static inline struct joule_sensor *fake_sensor(struct fake *f)
{
    return joule_counter_sensor_create(&f->clock, &f->counters);
}

/* What the ticks make in the node's total. */
static inline uint64_t fake_uj(uint64_t ticks)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)(((u128)ticks * 15625) >> 10);
}

#endif
