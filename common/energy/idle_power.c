/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/idle_power.h"

#include <string.h>

#include "common/base/int128.h"

#define NS_PER_S UINT64_C(1000000000)

/* UINT64_MAX if it is more. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t divisor)
{
    joule_u128 value = (joule_u128)a * b / divisor;

    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

static void forget_proof(struct joule_idle_power *f)
{
    f->proofs = 0;
    f->proof_uw = 0;
    f->proof_ns = 0;
}

static void set_idle_power(struct joule_idle_power *f, uint64_t uw)
{
    f->idle_power_uw = uw;
    f->rise_ns = 0;
    f->rise_uw = 0;
    forget_proof(f);
}

/* A minute far below the idle power; [new_ns] of it were not in the one before.
 */
static void prove(struct joule_idle_power *f, uint64_t uw, int64_t new_ns)
{
    if (uw > f->proof_uw)
        f->proof_uw = uw;
    if (f->proof_ns < 0 || f->proof_ns > JOULE_IDLE_POWER_MINUTE_NS)
        f->proof_ns = 0;
    f->proof_ns -= new_ns;
    if (f->proof_ns > 0)
        return;
    f->proof_ns = JOULE_IDLE_POWER_MINUTE_NS;
    if (++f->proofs >= JOULE_IDLE_POWER_PROOF)
        set_idle_power(f, f->proof_uw);
}

static void rise(struct joule_idle_power *f, uint64_t uw, int64_t new_ns)
{
    uint64_t higher;

    if (f->rise_uw == 0 || uw < f->rise_uw)
        f->rise_uw = uw;
    if (f->rise_ns < 0 || f->rise_ns > JOULE_IDLE_POWER_RISE_NS)
        f->rise_ns = 0;
    /* A long interval is one minute, and no reason to rise for more. */
    f->rise_ns += new_ns < JOULE_IDLE_POWER_MINUTE_NS
                      ? new_ns
                      : JOULE_IDLE_POWER_MINUTE_NS;
    if (f->rise_ns < JOULE_IDLE_POWER_RISE_NS)
        return;
    higher = f->idle_power_uw +
             scale(f->idle_power_uw, JOULE_IDLE_POWER_RISE_PPM, 1000000);
    set_idle_power(f, higher < f->rise_uw ? higher : f->rise_uw);
}

/* No bucket is lower than four fifths of another one: not the minute in which
 * something began or ended, whose mean is the power of nothing. */
static bool is_steady(const struct joule_idle_power *f)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (int i = 0; i < JOULE_IDLE_POWER_BUCKETS; i++) {
        uint64_t uw;

        if (f->bucket_ns[i] <= 0)
            continue;
        uw = scale(f->bucket_uj[i], NS_PER_S, (uint64_t)f->bucket_ns[i]);
        low = uw < low ? uw : low;
        high = uw > high ? uw : high;
    }
    return low >= scale(high, 4, 5);
}

static void minute(struct joule_idle_power *f, uint64_t uj, int64_t ns,
                   int64_t new_ns)
{
    uint64_t uw = scale(uj, NS_PER_S, (uint64_t)ns);

    if (uw == 0 || uw > JOULE_IDLE_POWER_MOST_UW)
        return;
    f->minutes++;
    if (uw < f->idle_power_uw && !is_steady(f))
        return;
    if (f->idle_power_uw == 0 ||
        (uw < f->idle_power_uw && uw >= scale(f->idle_power_uw, 4, 5)))
        set_idle_power(f, uw);
    else if (uw < f->idle_power_uw) {
        prove(f, uw, new_ns);
    } else {
        forget_proof(f);
        rise(f, uw, new_ns);
    }
}

void joule_idle_power_gap(struct joule_idle_power *f)
{
    f->early_ns = 0;
    memset(f->bucket_uj, 0, sizeof(f->bucket_uj));
    memset(f->bucket_ns, 0, sizeof(f->bucket_ns));
}

/* Until the first minute is over. */
static void add_early(struct joule_idle_power *f, uint64_t uj, int64_t ns)
{
    bool joins = ns < JOULE_IDLE_POWER_EARLY_NS && f->early_ns > 0 &&
                 f->early_ns < JOULE_IDLE_POWER_EARLY_NS &&
                 f->early_uj <= UINT64_MAX - uj;
    uint64_t uw;

    f->early_uj = joins ? f->early_uj + uj : uj;
    f->early_ns = joins ? f->early_ns + ns : ns;
    if (f->early_ns < JOULE_IDLE_POWER_EARLY_NS)
        return;
    uw = scale(f->early_uj, NS_PER_S, (uint64_t)f->early_ns);
    f->early_ns = 0;
    if (uw > 0 && uw <= JOULE_IDLE_POWER_MOST_UW &&
        (f->early_uw == 0 || uw < f->early_uw))
        f->early_uw = uw;
}

void joule_idle_power_add(struct joule_idle_power *f, uint64_t uj, int64_t ns)
{
    joule_u128 sum_uj = 0, sum_ns = 0;
    int64_t filled = f->bucket_ns[0];

    if (ns <= 0)
        return;
    if (f->idle_power_uw == 0)
        add_early(f, uj, ns);
    if (ns >= JOULE_IDLE_POWER_MINUTE_NS) {
        joule_idle_power_gap(f);
        minute(f, uj, ns, ns);
        return;
    }
    if (filled < 0 || filled >= JOULE_IDLE_POWER_MINUTE_NS ||
        f->bucket_uj[0] > UINT64_MAX - uj) {
        joule_idle_power_gap(f);
        filled = 0;
    }
    f->bucket_uj[0] += uj;
    f->bucket_ns[0] = filled + ns;
    if (f->bucket_ns[0] < JOULE_IDLE_POWER_BUCKET_NS)
        return;
    for (int i = 0; i < JOULE_IDLE_POWER_BUCKETS; i++) {
        sum_uj += f->bucket_uj[i];
        sum_ns += f->bucket_ns[i] > 0 ? (uint64_t)f->bucket_ns[i] : 0;
    }
    if (sum_ns >= (joule_u128)JOULE_IDLE_POWER_MINUTE_NS &&
        sum_ns <= INT64_MAX && sum_uj <= UINT64_MAX)
        minute(f, (uint64_t)sum_uj, (int64_t)sum_ns, f->bucket_ns[0]);
    memmove(&f->bucket_uj[1], &f->bucket_uj[0],
            sizeof(f->bucket_uj) - sizeof(f->bucket_uj[0]));
    memmove(&f->bucket_ns[1], &f->bucket_ns[0],
            sizeof(f->bucket_ns) - sizeof(f->bucket_ns[0]));
    f->bucket_uj[0] = 0;
    f->bucket_ns[0] = 0;
}

uint64_t joule_idle_power_uj(const struct joule_idle_power *f, int64_t ns)
{
    uint64_t uw = f->idle_power_uw ? f->idle_power_uw : f->early_uw;

    if (ns <= 0)
        return 0;
    return uw ? scale(uw, (uint64_t)ns, NS_PER_S) : UINT64_MAX;
}
