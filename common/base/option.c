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
    char text[JOULE_OPTION_TEXT_MAX + 1];
};

/* What differs between the types; indexed by enum joule_option_type. */
static const struct {
    const char *noun; /* completes "is not ..." */
    size_t size;      /* of the field; TEXT: see value_size */
} types[] = {
    [JOULE_OPTION_BOOL] = {"a yes or no", sizeof(bool)},
    [JOULE_OPTION_U64] = {"a whole number", sizeof(uint64_t)},
    [JOULE_OPTION_DURATION] = {"a duration", sizeof(int64_t)},
    [JOULE_OPTION_WORDS] = {"a list of known words", sizeof(unsigned)},
    [JOULE_OPTION_WORD] = {"a known word", sizeof(unsigned)},
    [JOULE_OPTION_HEX] = {"a whole number", sizeof(uint64_t)},
    [JOULE_OPTION_TEXT] = {"a text without control characters", 0},
    [JOULE_OPTION_IGNORED] = {"", 0},
};

static size_t value_size(const struct joule_option *row)
{
    if (row->type != JOULE_OPTION_TEXT)
        return types[row->type].size;
    if (row->max < 0 || row->max > JOULE_OPTION_TEXT_MAX)
        abort(); /* a bug in a table */
    return (size_t)row->max + 1;
}

static int parse_text(const char *text, size_t max, char *ret_text)
{
    size_t len = strlen(text);

    if (len > max) {
        errno = ERANGE;
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) {
            errno = EINVAL;
            return -1;
        }
    }
    memset(ret_text, 0, max + 1);
    memcpy(ret_text, text, len);
    return 0;
}

static int parse_hex(const char *text, uint64_t min, uint64_t max,
                     uint64_t *ret_value)
{
    uint64_t value;

    if (joule_parse_hex64(text, &value) < 0)
        return -1;
    if (value < min || value > max) {
        errno = ERANGE;
        return -1;
    }
    *ret_value = value;
    return 0;
}

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
    case JOULE_OPTION_WORD:
        return joule_parse_word(text, row->words, &ret_value->bits);
    case JOULE_OPTION_HEX:
        return parse_hex(text, (uint64_t)row->min, (uint64_t)row->max,
                         &ret_value->u64);
    case JOULE_OPTION_TEXT:
        return parse_text(text, value_size(row) - 1, ret_value->text);
    case JOULE_OPTION_IGNORED:
        return 0;
    }
    errno = EINVAL;
    return -1;
}

static bool *given(const struct joule_option *row, void *cfg)
{
    return row->given ? (bool *)((char *)cfg + row->given) : NULL;
}

static void store(const struct joule_option *row, void *cfg,
                  const union value *value)
{
    memcpy((char *)cfg + row->offset, value, value_size(row));
}

static int refuse(const struct joule_option *row, const char *text, int errnum,
                  const char *what, const struct joule_error *reason,
                  struct joule_error *err)
{
    const char *shown = row->secret ? "***" : text;
    char range[RANGE_MAX];

    if (reason->text[0] && !row->secret)
        return joule_error_set(err, errnum, "%s=%s: %s", row->key, shown,
                               reason->text);
    joule_option_range(row, range, sizeof(range));
    return joule_error_set(err, errnum, "%s=%s is not %s: allowed are %s",
                           row->key, shown, what, range);
}

int joule_option_set(const struct joule_option *row, void *cfg,
                     const char *text, struct joule_error *err)
{
    struct joule_error reason = {""};
    union value value;
    bool *was_given = given(row, cfg);
    int rc = 0;

    if (parse(row, text, &value) < 0)
        rc = refuse(row, text, errno,
                    errno == ERANGE ? "in range" : types[row->type].noun,
                    &reason, err);
    else if (row->check && row->check(&value, &reason) < 0)
        rc = refuse(row, text, errno == ERANGE ? ERANGE : EINVAL,
                    "an allowed choice", &reason, err);
    else if (!row->yields || !was_given || !*was_given)
        store(row, cfg, &value);
    if (rc == 0 && !row->yields && was_given)
        *was_given = true;
    if (row->secret)
        explicit_bzero(&value, sizeof(value));
    return rc;
}

void joule_option_defaults(const struct joule_option *table, void *cfg)
{
    for (const struct joule_option *row = table; row->key; row++) {
        union value value;

        if (row->type == JOULE_OPTION_IGNORED)
            continue;
        if (!row->default_text || parse(row, row->default_text, &value) < 0 ||
            (row->check && row->check(&value, NULL) < 0))
            abort();
        store(row, cfg, &value);
        if (row->given)
            *given(row, cfg) = false;
    }
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

/* The first name of the word. */
static void format_word(const struct joule_word *word, unsigned bits, char *buf,
                        size_t size)
{
    while (word->name && word->bits != bits)
        word++;
    snprintf(buf, size, "%s", word->name ? word->name : "");
}

void joule_option_format(const struct joule_option *row, const void *cfg,
                         char *buf, size_t size)
{
    union value value;

    if (size == 0)
        return;
    memcpy(&value, (const char *)cfg + row->offset, value_size(row));
    if (row->secret) {
        bool empty = row->type == JOULE_OPTION_TEXT && !value.text[0];

        explicit_bzero(&value, sizeof(value));
        snprintf(buf, size, "%s", empty ? "" : "***");
        return;
    }
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
    case JOULE_OPTION_WORD:
        format_word(row->words, value.bits, buf, size);
        break;
    case JOULE_OPTION_HEX:
        snprintf(buf, size, "0x%" PRIx64, value.u64);
        break;
    case JOULE_OPTION_TEXT:
        snprintf(buf, size, "%s", value.text);
        break;
    case JOULE_OPTION_IGNORED:
        buf[0] = '\0';
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
    case JOULE_OPTION_HEX:
        snprintf(buf, size, "0x%" PRIx64 " to 0x%" PRIx64, (uint64_t)row->min,
                 (uint64_t)row->max);
        break;
    case JOULE_OPTION_TEXT:
        snprintf(buf, size, "at most %" PRId64 " bytes", row->max);
        break;
    case JOULE_OPTION_IGNORED:
        snprintf(buf, size, "anything");
        break;
    case JOULE_OPTION_WORD:
    case JOULE_OPTION_WORDS:
        snprintf(buf, size, "%s: ",
                 row->type == JOULE_OPTION_WORD
                     ? "one of"
                     : "any of, separated by commas");
        for (const struct joule_word *w = row->words; w->name; w++) {
            append(buf, size, w->name);
            if (w[1].name)
                append(buf, size, ", ");
        }
        break;
    }
}
