/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"

static int invalid(void)
{
    errno = EINVAL;
    return -1;
}

static int out_of_range(void)
{
    errno = ERANGE;
    return -1;
}

/* Not isdigit(): its answer depends on the locale of the host program. */
static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/*
 * Read digits of [base] from *s on and move *s behind them.  At least one
 * must be there (EINVAL).  A number beyond 64 bits sets *ret_over; its digits
 * are consumed all the same, so that "not a number" goes before "too large".
 */
static int take_digits(const char **s, unsigned base, uint64_t *ret_value,
                       bool *ret_over)
{
    const char *p = *s;
    uint64_t value = 0;

    *ret_over = false;
    for (; (unsigned)digit_value(*p) < base; p++) {
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)digit_value(*p), &value))
            *ret_over = true;
    }
    if (p == *s)
        return invalid();
    *s = p;
    *ret_value = value;
    return 0;
}

int joule_parse_u64(const char *s, uint64_t min, uint64_t max,
                    uint64_t *ret_value)
{
    uint64_t value;
    bool over;

    if (take_digits(&s, 10, &value, &over) < 0)
        return -1;
    if (*s != '\0')
        return invalid();
    if (over || value < min || value > max)
        return out_of_range();
    *ret_value = value;
    return 0;
}

int joule_parse_hex64(const char *s, uint64_t *ret_value)
{
    unsigned base = 10;
    uint64_t value;
    bool over;

    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    }
    if (take_digits(&s, base, &value, &over) < 0)
        return -1;
    if (*s != '\0')
        return invalid();
    if (over)
        return out_of_range();
    *ret_value = value;
    return 0;
}

int joule_parse_bool(const char *s, bool *ret_value)
{
    static const struct {
        const char *name;
        bool value;
    } words[] = {
        {"yes", true}, {"no", false},  {"true", true}, {"false", false},
        {"on", true},  {"off", false}, {"1", true},    {"0", false},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(s, words[i].name) == 0) {
            *ret_value = words[i].value;
            return 0;
        }
    }
    return invalid();
}

/* Largest first, as joule_format_duration needs them. */
static const struct {
    const char *name;
    uint64_t ns;
    bool format;
} duration_units[] = {
    {"h", UINT64_C(3600000000000), false}, {"m", UINT64_C(60000000000), false},
    {"s", UINT64_C(1000000000), true},     {"ms", UINT64_C(1000000), true},
    {"us", UINT64_C(1000), true},          {"ns", UINT64_C(1), true},
};

#define DURATION_UNITS (sizeof(duration_units) / sizeof(duration_units[0]))

/* More fraction digits than this (without trailing zeros) are no whole number
 * of ns in any unit: the ns of an hour hold the factor 2 thirteen times and
 * the factor 5 eleven times, those of the other units less often. */
#define FRACTION_DIGITS_MAX 13

/* The ns of a fraction: the digits from s to end, of a unit of unit_ns. */
static int fraction_ns(const char *s, const char *end, uint64_t unit_ns,
                       uint64_t *ret_ns)
{
    unsigned __int128 ns;
    uint64_t num = 0, den = 1;

    while (end > s && end[-1] == '0')
        end--;
    if (end - s > FRACTION_DIGITS_MAX)
        return invalid();
    for (; s < end; s++) {
        num = num * 10 + (uint64_t)digit_value(*s);
        den *= 10;
    }
    ns = (unsigned __int128)num * unit_ns;
    if (ns % den != 0)
        return invalid();
    *ret_ns = (uint64_t)(ns / den);
    return 0;
}

int joule_parse_duration_ns(const char *s, int64_t min_ns, int64_t max_ns,
                            int64_t *ret_ns)
{
    const char *fraction = NULL, *fraction_end = NULL;
    uint64_t whole, ignored, ns, part_ns = 0;
    uint64_t unit_ns = (uint64_t)JOULE_NS_PER_S;
    bool over, ignored_over;
    size_t i;

    if (take_digits(&s, 10, &whole, &over) < 0)
        return -1;
    if (*s == '.') {
        fraction = ++s;
        if (take_digits(&s, 10, &ignored, &ignored_over) < 0)
            return -1;
        fraction_end = s;
    }
    if (*s != '\0') {
        for (i = 0; i < DURATION_UNITS; i++)
            if (strcmp(s, duration_units[i].name) == 0)
                break;
        if (i == DURATION_UNITS)
            return invalid();
        unit_ns = duration_units[i].ns;
    }
    if (fraction && fraction_ns(fraction, fraction_end, unit_ns, &part_ns) < 0)
        return -1;
    if (over || __builtin_mul_overflow(whole, unit_ns, &ns) ||
        __builtin_add_overflow(ns, part_ns, &ns) || ns > INT64_MAX)
        return out_of_range();
    if ((int64_t)ns < min_ns || (int64_t)ns > max_ns)
        return out_of_range();
    *ret_ns = (int64_t)ns;
    return 0;
}

void joule_format_duration(int64_t ns, char *buf, size_t size)
{
    size_t i = 0;

    /* The ns row ends the search: everything is a multiple of it. */
    while (!duration_units[i].format || ns % (int64_t)duration_units[i].ns != 0)
        i++;
    snprintf(buf, size, "%" PRId64 "%s", ns / (int64_t)duration_units[i].ns,
             duration_units[i].name);
}

/* One number of a CPU list; ERANGE above JOULE_CPU_MAX. */
static int take_cpu(const char **s, unsigned *ret_cpu)
{
    uint64_t value;
    bool over;

    if (take_digits(s, 10, &value, &over) < 0)
        return -1;
    if (over || value > JOULE_CPU_MAX)
        return out_of_range();
    *ret_cpu = (unsigned)value;
    return 0;
}

/* CPUs, of which the last one is in words[end - 1] at most. */
struct cpu_set {
    uint64_t words[(JOULE_CPU_MAX + 1) / 64];
    size_t end;
};

static void add_cpu(struct cpu_set *set, unsigned cpu)
{
    size_t word = cpu / 64;

    set->words[word] |= UINT64_C(1) << (cpu % 64);
    if (set->end <= word)
        set->end = word + 1;
}

/* "A", "A-B", "A-B:STEP" or "A-B:USED/GROUP" into the set. */
static int take_cpu_range(const char **s, struct cpu_set *set)
{
    unsigned first, last, used = 1, group = 1;

    if (take_cpu(s, &first) < 0)
        return -1;
    last = first;
    if (**s == '-') {
        (*s)++;
        if (take_cpu(s, &last) < 0)
            return -1;
        if (**s == ':') {
            (*s)++;
            if (take_cpu(s, &group) < 0)
                return -1;
            if (**s == '/') {
                (*s)++;
                used = group;
                if (take_cpu(s, &group) < 0)
                    return -1;
            }
        }
    }
    if (last < first || used == 0 || used > group)
        return invalid();
    for (unsigned cpu = first; cpu <= last; cpu++)
        if ((cpu - first) % group < used)
            add_cpu(set, cpu);
    return 0;
}

int joule_parse_cpulist(const char *s, unsigned **ret_cpus, size_t *ret_count)
{
    struct cpu_set set = {0};
    unsigned *cpus = NULL;
    size_t count = 0, n = 0, i;
    uint64_t word;

    while (*s != '\0') {
        if (take_cpu_range(&s, &set) < 0)
            return -1;
        if (*s == '\0')
            break;
        if (*s != ',' || s[1] == '\0')
            return invalid();
        s++;
    }
    for (i = 0; i < set.end; i++)
        count += (size_t)__builtin_popcountll(set.words[i]);
    if (count > 0) {
        cpus = malloc(count * sizeof(*cpus));
        if (!cpus)
            return -1;
        for (i = 0; i < set.end; i++)
            for (word = set.words[i]; word != 0; word &= word - 1)
                cpus[n++] = (unsigned)i * 64 + (unsigned)__builtin_ctzll(word);
    }
    *ret_cpus = cpus;
    *ret_count = count;
    return 0;
}

int joule_parse_words(const char *s, const struct joule_word *table,
                      unsigned *ret_bits)
{
    unsigned bits = 0;
    uint64_t seen = 0;

    for (;;) {
        size_t len = strcspn(s, ",");
        size_t i = 0;

        while (table[i].name && (strlen(table[i].name) != len ||
                                 strncasecmp(table[i].name, s, len) != 0))
            i++;
        if (!table[i].name || i >= 64 || (seen & (UINT64_C(1) << i)))
            return invalid();
        seen |= UINT64_C(1) << i;
        bits |= table[i].bits;
        if (s[len] == '\0')
            break;
        s += len + 1;
    }
    *ret_bits = bits;
    return 0;
}

int joule_parse_word(const char *s, const struct joule_word *table,
                     unsigned *ret_bits)
{
    for (; table->name; table++) {
        if (strcasecmp(table->name, s) == 0) {
            *ret_bits = table->bits;
            return 0;
        }
    }
    return invalid();
}
