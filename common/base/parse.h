/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parse.h - one strict parser of each kind.
 *
 * The whole string is consumed (no leading or trailing blanks), the range is
 * checked, ret_ parameters are written only on success.  Return 0, or -1 with
 * errno EINVAL (not that kind of thing) or ERANGE (it is, but out of range).
 */
#ifndef JOULE_BASE_PARSE_H
#define JOULE_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only: no sign, no 0x, no octal meaning of a leading 0. */
int joule_parse_u64(const char *s, uint64_t min, uint64_t max,
                    uint64_t *ret_value);

/* 0x and hexadecimal digits, or decimal digits. */
int joule_parse_hex64(const char *s, uint64_t *ret_value);

/* yes/no, true/false, on/off, 1/0, any case. */
int joule_parse_bool(const char *s, bool *ret_value);

/*
 * A duration: digits with an optional fraction and one of the units ns, us,
 * ms, s, m, h; without a unit seconds: "0.5" and "500ms" are the same
 * duration.  No blanks; the fraction must come to
 * a whole number of ns.
 */
int joule_parse_duration_ns(const char *s, int64_t min_ns, int64_t max_ns,
                            int64_t *ret_ns);

/* Write [ns] as joule_parse_duration_ns reads it, in the largest of s, ms, us
 * and ns that holds it exactly ("60s", "10ms"). */
void joule_format_duration(int64_t ns, char *buf, size_t size);

/*
 * A kernel CPU list: "0-3,8", or empty.  A range may be thinned out: "A-B:U/G"
 * takes the first U of every G CPUs (Documentation/admin-guide/
 * kernel-parameters.rst, "cpu lists"), "A-B:S" every S-th (taskset(1)).
 * Ascending and without repetition in the result, whatever the order of the
 * text.  ERANGE for a number above JOULE_CPU_MAX; ENOMEM.  The caller frees
 * *ret_cpus (NULL when the list is empty).
 */
#define JOULE_CPU_MAX 65535
int joule_parse_cpulist(const char *s, unsigned **ret_cpus, size_t *ret_count);

/* A word of a set: its name and its bits. */
struct joule_word {
    const char *name; /* NULL ends a table */
    unsigned bits;
};

/*
 * Comma separated words of the table, any case, none twice, at least one;
 * *ret_bits is their union.  A table has at most 64 words.
 */
int joule_parse_words(const char *s, const struct joule_word *table,
                      unsigned *ret_bits);

/* One word of the table, any case. */
int joule_parse_word(const char *s, const struct joule_word *table,
                     unsigned *ret_bits);

#endif
