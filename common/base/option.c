/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RANGE_MAX 256 /* bytes of a range in a sentence */

union value {
    bool boolean;
    uint64_t u64;
    int64_t ns;
    unsigned bits;
};

/* What differs between the types; indexed by enum joule_option_type. */
static const struct {
    const char *noun; /* completes "is not ..." */
    size_t size;
} types[] = {
    [JOULE_OPTION_BOOL] = {"a yes or no", sizeof(bool)},
    [JOULE_OPTION_U64] = {"a whole number", sizeof(uint64_t)},
    [JOULE_OPTION_DURATION] = {"a duration", sizeof(int64_t)},
    [JOULE_OPTION_WORDS] = {"a list of known words", sizeof(unsigned)},
};

static int parse(const struct joule_option *row, const char *text,
                 union value *ret_value)
{
    switch (row->type) {
    case JOULE_OPTION_BOOL:
        return joule_parse_bool(text, &ret_value->boolean);
    case JOULE_OPTION_U64:
        return joule_parse_u64(text, (uint64_t)row->min, (uint64_t)row->max,
                               &ret_value->u64);
    case JOULE_OPTION_DURATION:
        return joule_parse_duration_ns(text, row->min, row->max,
                                       &ret_value->ns);
    case JOULE_OPTION_WORDS:
        return joule_parse_words(text, row->words, &ret_value->bits);
    }
    errno = EINVAL;
    return -1;
}

int joule_option_set(const struct joule_option *row, void *cfg,
                     const char *text, struct joule_error *err)
{
    char range[RANGE_MAX];
    const char *what = types[row->type].noun;
    const char *shown = row->secret ? "***" : text;
    union value value;
    int errnum;

    if (parse(row, text, &value) == 0) {
        if (!row->check || row->check(&value) == 0) {
            memcpy((char *)cfg + row->offset, &value, types[row->type].size);
            return 0;
        }
        errnum = errno == ERANGE ? ERANGE : EINVAL;
        what = "an allowed choice";
    } else {
        errnum = errno;
        if (errnum == ERANGE)
            what = "in range";
    }
    joule_option_range(row, range, sizeof(range));
    return joule_error_set(err, errnum, "%s=%s is not %s: allowed are %s",
                           row->key, shown, what, range);
}

void joule_option_defaults(const struct joule_option *table, void *cfg)
{
    for (const struct joule_option *row = table; row->key; row++)
        if (!row->default_text ||
            joule_option_set(row, cfg, row->default_text, NULL) < 0)
            abort();
}

const struct joule_option *joule_option_find(const struct joule_option *table,
                                             const char *key)
{
    for (const struct joule_option *row = table; row->key; row++)
        if (strcasecmp(row->key, key) == 0)
            return row;
    return NULL;
}

/* Add to the string in buf[size]; what does not fit is cut. */
static void append(char *buf, size_t size, const char *text)
{
    size_t len = strlen(buf);

    snprintf(buf + len, size - len, "%s", text);
}

/* The words of the table that make up [bits], in the table's order; a word
 * whose bits earlier ones have named is left out. */
static void format_words(const struct joule_word *word, unsigned bits,
                         const char *separator, char *buf, size_t size)
{
    unsigned named = 0;

    buf[0] = '\0';
    for (; word->name; word++) {
        if ((word->bits & ~bits) != 0 || (word->bits & ~named) == 0)
            continue;
        if (buf[0] != '\0')
            append(buf, size, separator);
        append(buf, size, word->name);
        named |= word->bits;
    }
}

void joule_option_format(const struct joule_option *row, const void *cfg,
                         char *buf, size_t size)
{
    union value value;

    if (size == 0)
        return;
    if (row->secret) {
        snprintf(buf, size, "***");
        return;
    }
    memcpy(&value, (const char *)cfg + row->offset, types[row->type].size);
    switch (row->type) {
    case JOULE_OPTION_BOOL:
        snprintf(buf, size, "%s", value.boolean ? "yes" : "no");
        break;
    case JOULE_OPTION_U64:
        snprintf(buf, size, "%" PRIu64, value.u64);
        break;
    case JOULE_OPTION_DURATION:
        joule_format_duration(value.ns, buf, size);
        break;
    case JOULE_OPTION_WORDS:
        format_words(row->words, value.bits, ",", buf, size);
        break;
    }
}

void joule_option_range(const struct joule_option *row, char *buf, size_t size)
{
    char min[32], max[32];

    if (size == 0)
        return;
    if (row->range) {
        snprintf(buf, size, "%s", row->range);
        return;
    }
    switch (row->type) {
    case JOULE_OPTION_BOOL:
        snprintf(buf, size, "yes or no");
        break;
    case JOULE_OPTION_U64:
        snprintf(buf, size, "%" PRIu64 " to %" PRIu64, (uint64_t)row->min,
                 (uint64_t)row->max);
        break;
    case JOULE_OPTION_DURATION:
        joule_format_duration(row->min, min, sizeof(min));
        joule_format_duration(row->max, max, sizeof(max));
        snprintf(buf, size, "%s to %s", min, max);
        break;
    case JOULE_OPTION_WORDS:
        snprintf(buf, size, "any of, separated by commas: ");
        for (const struct joule_word *w = row->words; w->name; w++) {
            append(buf, size, w->name);
            if (w[1].name)
                append(buf, size, ", ");
        }
        break;
    }
}
