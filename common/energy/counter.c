/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/counter.h"

#include "common/base/int128.h"

/* 128 bits: ticks * 15625 passes 2^64 after 2^50 ticks, which a 64-bit
 * counter of 15 uJ reaches in months. */
static joule_u128 to_uj(struct joule_unit unit, uint64_t ticks)
{
    return ((joule_u128)ticks * unit.num) >> unit.shift;
}

uint64_t joule_unit_to_uj(struct joule_unit unit, uint64_t ticks)
{
    return (uint64_t)to_uj(unit, ticks);
}

uint64_t joule_power_mw(uint64_t uj, int64_t ns)
{
    /* uJ / ns = 10^3 W = 10^6 mW */
    return (uint64_t)(((joule_u128)uj * 1000000 + (uint64_t)ns / 2) /
                      (uint64_t)ns);
}

uint32_t joule_mean_mw(uint64_t uj, int64_t ns)
{
    joule_u128 mw = ns > 0 ? (joule_u128)uj * 1000000 / (uint64_t)ns : 0;

    return mw < UINT32_MAX ? (uint32_t)mw : UINT32_MAX;
}

static joule_u128 range_of(const struct joule_domain *d)
{
    return d->modulus ? d->modulus : (joule_u128)1 << d->width_bits;
}

/* Ticks from one reading to the next. */
static uint64_t growth(const struct joule_domain *d, uint64_t from, uint64_t to)
{
    if (to >= from)
        return to - from;
    return (uint64_t)(range_of(d) - from + to);
}

int64_t joule_domains_wrap_ns(const struct joule_domain *domains, size_t count)
{
    int64_t least_ns = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        const struct joule_domain *d = &domains[i];
        joule_u128 range_uj = range_of(d) * d->unit.num >> d->unit.shift;

        /* uJ / W = us */
        if ((d->width_bits < 64 || d->modulus) &&
            range_uj <= INT64_MAX / 1000 &&
            (int64_t)range_uj * 1000 / JOULE_DOMAIN_POWER_MAX_W < least_ns)
            least_ns = (int64_t)range_uj * 1000 / JOULE_DOMAIN_POWER_MAX_W;
    }
    return least_ns;
}

/* More than any hardware can have used in the time. */
static bool is_absurd(const struct joule_domain *domain, uint64_t ticks,
                      int64_t ns)
{
    int64_t refresh_ns =
        INT64_C(1000000) * (domain->refresh_ms ? domain->refresh_ms : 1);

    /* Two readings a few us apart may legitimately differ by one whole step.  The
     * time of the earlier one is known to 1 ms (counter_sensor.c). */
    return to_uj(domain->unit, ticks) * 1000 >
           (joule_u128)JOULE_DOMAIN_POWER_ABSURD_W *
               (uint64_t)(ns + refresh_ns + 1000000);
}

void joule_counter_update(struct joule_counter *c,
                          const struct joule_domain *domain,
                          struct joule_raw reading, int64_t now_ns)
{
    uint64_t ticks = growth(domain, c->raw, reading.raw);
    int64_t ns = now_ns - c->read_ns;

    if (reading.error) {
        if (c->errors != UINT32_MAX)
            c->errors++;
        return;
    }
    if (c->state == JOULE_COUNTER_NEW) {
        c->raw = reading.raw;
        c->began_ns = now_ns;
        c->read_ns = now_ns;
        c->moved_ns = now_ns;
        c->state = JOULE_COUNTER_STILL;
        return;
    }
    if (ticks == 0) {
        if (c->state == JOULE_COUNTER_MOVING &&
            now_ns - c->moved_ns > JOULE_COUNTER_FROZEN_NS)
            c->state = JOULE_COUNTER_FROZEN;
    } else if (is_absurd(domain, ticks, ns)) {
        c->gaps++;
        c->gap_ns += ns;
        c->moved_ns = now_ns;
    } else {
        c->ticks += ticks;
        c->state = JOULE_COUNTER_MOVING;
        c->moved_ns = now_ns;
        if (reading.raw < c->raw)
            c->wraps++;
        if (ns > joule_domains_wrap_ns(domain, 1)) {
            c->gaps++;
            c->gap_ns += ns;
        }
    }
    c->raw = reading.raw;
    c->read_ns = now_ns;
}

bool joule_counter_check(const struct joule_counter *c, int64_t now_ns)
{
    return c->state <= JOULE_COUNTER_FROZEN && c->began_ns >= 0 &&
           c->read_ns >= c->began_ns && c->read_ns <= now_ns &&
           c->moved_ns >= 0 && c->moved_ns <= now_ns && c->gap_ns >= 0 &&
           c->gap_ns <= now_ns;
}
