/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpus.h - a set of small numbers: CPUs as the kernel counts them, or
 * frequency policies.
 */
#ifndef JOULE_BASE_CPUS_H
#define JOULE_BASE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOULE_CPUS_MAX 8192 /* NR_CPUS of the largest distribution kernels */

struct joule_cpus {
    uint64_t bits[JOULE_CPUS_MAX / 64];
};

static inline bool joule_cpus_has(const struct joule_cpus *s, unsigned n)
{
    return n < JOULE_CPUS_MAX && s->bits[n / 64] >> n % 64 & 1;
}

/* Numbers that are too large are no members. */
static inline void joule_cpus_add(struct joule_cpus *s, unsigned n)
{
    if (n < JOULE_CPUS_MAX)
        s->bits[n / 64] |= UINT64_C(1) << n % 64;
}

static inline void joule_cpus_remove(struct joule_cpus *s, unsigned n)
{
    if (n < JOULE_CPUS_MAX)
        s->bits[n / 64] &= ~(UINT64_C(1) << n % 64);
}

void joule_cpus_unite(struct joule_cpus *s, const struct joule_cpus *other);
void joule_cpus_intersect(struct joule_cpus *s, const struct joule_cpus *other);
unsigned joule_cpus_count(const struct joule_cpus *s);

bool joule_cpus_is_empty(const struct joule_cpus *s);

/* The first member that is at least [from], or JOULE_CPUS_MAX. */
unsigned joule_cpus_next(const struct joule_cpus *s, unsigned from);

/* Leave at most [max] members, evenly spread. */
void joule_cpus_thin(struct joule_cpus *s, unsigned max);

/*
 * A list as the kernel writes them, "0-3,8" or "0 1 2" (affected_cpus), or
 * empty.  -1 with EINVAL, ERANGE (a number is too large) or ENOMEM, and the
 * set unchanged.
 */
int joule_cpus_parse(struct joule_cpus *s, const char *text);

/*
 * As "0-3,8".  Returns the length, or -1 with ENOSPC if it does not fit:
 * JOULE_CPUS_TEXT_MAX always does.
 */
#define JOULE_CPUS_TEXT_MAX (JOULE_CPUS_MAX / 2 * 5 + 1)
int joule_cpus_format(const struct joule_cpus *s, char *buf, size_t size);

#endif
