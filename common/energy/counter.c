/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/counter.h"

#include "common/base/int128.h"

/* 128 bits: ticks * 15625 passes 2^64 after 2^50 ticks, which a 64-bit
 * counter of 15 uJ reaches in months. */

uint64_t joule_counter_diff(uint64_t now, uint64_t before, unsigned width_bits)
{
    uint64_t mask =
        width_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << width_bits) - 1;

    return (now - before) & mask;
}

uint64_t joule_unit_to_uj(struct joule_unit unit, uint64_t ticks)
{
    return (uint64_t)(((joule_u128)ticks * unit.num) >> unit.shift);
}

uint64_t joule_power_mw(uint64_t uj, int64_t ns)
{
    /* uJ / ns = 10^3 W = 10^6 mW.  Below 13 MJ in 64 bits, which is several
     * times as fast. */
    if (uj <= (UINT64_MAX - INT64_MAX / 2) / 1000000)
        return (uj * 1000000 + (uint64_t)ns / 2) / (uint64_t)ns;
    return (uint64_t)(((joule_u128)uj * 1000000 + (uint64_t)ns / 2) /
                      (uint64_t)ns);
}

uint32_t joule_mean_mw(uint64_t uj, int64_t ns)
{
    joule_u128 mw = ns > 0 ? (joule_u128)uj * 1000000 / (uint64_t)ns : 0;

    return mw < UINT32_MAX ? (uint32_t)mw : UINT32_MAX;
}

int64_t joule_domain_wrap_ns(const struct joule_domain *domain)
{
    joule_u128 range_uj;

    if (domain->width_bits >= 64)
        return INT64_MAX;
    range_uj = ((joule_u128)domain->unit.num << domain->width_bits) >>
               domain->unit.shift;
    /* uJ / W = us; in 64 bits, the division of 128 takes its time */
    if (range_uj > INT64_MAX / 1000)
        return INT64_MAX;
    return (int64_t)((uint64_t)range_uj * 1000 / JOULE_DOMAIN_POWER_MAX_W);
}

bool joule_domain_absurd(const struct joule_domain *domain, uint64_t ticks,
                         int64_t elapsed_ns)
{
    /* The quantum of a fast counter is about 1 ms: two readings a few us
     * apart may legitimately differ by one whole step.  The time of the
     * earlier one is known to 1 ms (joule_counters_read). */
    int64_t ns = elapsed_ns + 2000000;
    /* Not joule_unit_to_uj: a 64-bit counter that was set back makes more
     * microjoules than 64 bits hold. */
    joule_u128 uj =
        ((joule_u128)ticks * domain->unit.num) >> domain->unit.shift;

    return uj * 1000 > (joule_u128)JOULE_DOMAIN_POWER_ABSURD_W * (uint64_t)ns;
}

void joule_counter_update(struct joule_counter *c,
                          const struct joule_domain *domain,
                          struct joule_raw reading, int64_t now_ns)
{
    int64_t ns = now_ns - c->read_ns;
    uint64_t ticks;

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
    ticks = joule_counter_diff(reading.raw, c->raw, domain->width_bits);
    if (ticks == 0) {
        if (c->state == JOULE_COUNTER_MOVING &&
            now_ns - c->moved_ns > JOULE_COUNTER_FROZEN_NS)
            c->state = JOULE_COUNTER_FROZEN;
    } else if (joule_domain_absurd(domain, ticks, ns)) {
        c->gaps++;
        c->gap_ns += ns;
        c->moved_ns = now_ns;
    } else {
        c->ticks += ticks;
        c->state = JOULE_COUNTER_MOVING;
        c->moved_ns = now_ns;
        if (reading.raw < c->raw)
            c->wraps++;
        if (ns > joule_domain_wrap_ns(domain)) {
            c->gaps++;
            c->gap_ns += ns;
        }
    }
    c->raw = reading.raw;
    c->read_ns = now_ns;
}
