/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "common/meter/split.h"

__extension__ typedef unsigned __int128 u128;

#define WEIGHTS_MAX (JOULE_CLAIMS_MAX + 2)

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t old = *a;

    *a = *b;
    *b = old;
}

/* The value that stands at [k] when v[] is sorted, largest first. */
static uint64_t select_largest(uint64_t *v, size_t count, size_t k)
{
    size_t low = 0, high = count;

    while (high - low > 1) {
        uint64_t pivot = v[low + (high - low) / 2];
        size_t above = low, i = low, below = high;

        while (i < below) {
            if (v[i] > pivot)
                swap(&v[above++], &v[i++]);
            else if (v[i] < pivot)
                swap(&v[i], &v[--below]);
            else
                i++;
        }
        if (k < above)
            high = above;
        else if (k >= below)
            low = below;
        else
            return pivot;
    }
    return v[low];
}

/* One unit more to each of the [units] largest remainders. */
static void give_units(const uint64_t *remainder, size_t count, size_t units,
                       uint64_t *ret)
{
    uint64_t sorted[WEIGHTS_MAX], last;
    size_t equal = units;

    if (units == 0)
        return;
    memcpy(sorted, remainder, count * sizeof(*sorted));
    last = select_largest(sorted, count, units - 1);
    for (size_t i = 0; i < count; i++)
        equal -= remainder[i] > last;
    for (size_t i = 0; i < count; i++) {
        if (remainder[i] > last) {
            ret[i]++;
        } else if (remainder[i] == last && equal > 0) {
            ret[i]++;
            equal--;
        }
    }
}

bool joule_split_apportion(uint64_t total, const uint64_t *weight, size_t count,
                           uint64_t *ret)
{
    uint64_t remainder[WEIGHTS_MAX], sum = 0, left = total;

    /* 1026 weights of 53 bits: below 2^64. */
    for (size_t i = 0; i < count; i++)
        sum += weight[i];
    if (sum == 0) {
        memset(ret, 0, count * sizeof(*ret));
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        u128 product = (u128)total * weight[i];

        /* Most totals and weights are small, and this is ten times faster. */
        if (product >> 64 == 0) {
            ret[i] = (uint64_t)product / sum;
            remainder[i] = (uint64_t)product % sum;
        } else {
            ret[i] = (uint64_t)(product / sum);
            remainder[i] = (uint64_t)(product % sum);
        }
        left -= ret[i];
    }
    /* Each remainder is below one unit: fewer units are left than there are
     * remainders. */
    give_units(remainder, count, (size_t)left, ret);
    return true;
}
