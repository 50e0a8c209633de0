/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"

#define WORDS (JOULE_CPUS_MAX / 64)

void joule_cpus_unite(struct joule_cpus *s, const struct joule_cpus *other)
{
    for (unsigned i = 0; i < WORDS; i++)
        s->bits[i] |= other->bits[i];
}

void joule_cpus_intersect(struct joule_cpus *s, const struct joule_cpus *other)
{
    for (unsigned i = 0; i < WORDS; i++)
        s->bits[i] &= other->bits[i];
}

unsigned joule_cpus_count(const struct joule_cpus *s)
{
    unsigned count = 0;

    for (unsigned i = 0; i < WORDS; i++)
        count += (unsigned)__builtin_popcountll(s->bits[i]);
    return count;
}

unsigned joule_cpus_next(const struct joule_cpus *s, unsigned from)
{
    while (from < JOULE_CPUS_MAX) {
        uint64_t word = s->bits[from / 64] >> from % 64;

        if (word)
            return from + (unsigned)__builtin_ctzll(word);
        from = (from / 64 + 1) * 64;
    }
    return JOULE_CPUS_MAX;
}

void joule_cpus_thin(struct joule_cpus *s, unsigned max)
{
    unsigned total = joule_cpus_count(s), n = 0, id;

    if (total <= max)
        return;
    for (id = joule_cpus_next(s, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(s, id + 1), n++)
        if (n * max / total == (n + 1) * max / total)
            joule_cpus_remove(s, id);
}

bool joule_cpus_is_empty(const struct joule_cpus *s)
{
    return joule_cpus_next(s, 0) == JOULE_CPUS_MAX;
}

int joule_cpus_parse(struct joule_cpus *s, const char *text)
{
    struct joule_cpus result = {{0}};
    size_t length = strlen(text), count;
    unsigned *cpus;
    uint64_t only;
    char *list;
    int rc;

    /* Most policies have one CPU, and the parser of lists room for all. */
    if (joule_parse_u64(text, 0, JOULE_CPUS_MAX - 1, &only) == 0) {
        joule_cpus_add(&result, (unsigned)only);
        *s = result;
        return 0;
    }
    /* affected_cpus has blanks between the numbers. */
    while (length > 0 && text[length - 1] == ' ')
        length--;
    list = strndup(text, length);
    if (!list)
        return -1;
    for (char *c = list; *c; c++)
        if (*c == ' ')
            *c = ',';
    rc = joule_parse_cpulist(list, &cpus, &count);
    free(list);
    if (rc < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (cpus[i] >= JOULE_CPUS_MAX) {
            free(cpus);
            errno = ERANGE;
            return -1;
        }
        joule_cpus_add(&result, cpus[i]);
    }
    free(cpus);
    *s = result;
    return 0;
}

int joule_cpus_format(const struct joule_cpus *s, char *buf, size_t size)
{
    size_t length = 0;
    unsigned first, last;

    if (size > 0)
        *buf = '\0';
    for (first = joule_cpus_next(s, 0); first < JOULE_CPUS_MAX;
         first = joule_cpus_next(s, last + 1)) {
        int n;

        for (last = first; joule_cpus_has(s, last + 1);)
            last++;
        n = snprintf(buf + length, size - length,
                     first == last ? "%s%u" : "%s%u-%u", length ? "," : "",
                     first, last);
        if (n < 0 || (size_t)n >= size - length) {
            errno = ENOSPC;
            return -1;
        }
        length += (size_t)n;
    }
    return (int)length;
}
