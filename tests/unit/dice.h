/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dice.h - random numbers for tests, the same again for the same seed:
 * JOULE_SEED in the environment, or of the clock; it is printed.
 */
#ifndef JOULE_TESTS_DICE_H
#define JOULE_TESTS_DICE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* splitmix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t dice64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to n - 1; n > 0. */
static inline uint64_t dice(uint64_t *state, uint64_t n)
{
    return dice64(state) % n;
}

static inline uint64_t dice_seed(void)
{
    const char *text = getenv("JOULE_SEED");
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = text ? strtoull(text, NULL, 0)
                : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    printf("JOULE_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

/* Whether the environment has JOULE_TEST_LONG, as with tests/run --all. */
static inline int dice_is_long(void)
{
    return getenv("JOULE_TEST_LONG") != NULL;
}

/* How often a test does what takes long: a tenth of all times if not. */
static inline int dice_rounds(int all)
{
    return dice_is_long() ? all : (all + 9) / 10;
}

#endif
