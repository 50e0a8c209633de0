/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option.h - one table drives default, parse, range check, "scontrol show
 * config" and the list in the man page.
 */
#ifndef JOULE_BASE_OPTION_H
#define JOULE_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/parse.h"

enum joule_option_type {
    JOULE_OPTION_BOOL,     /* bool */
    JOULE_OPTION_U64,      /* uint64_t, min..max */
    JOULE_OPTION_DURATION, /* int64_t ns, min..max in ns */
    JOULE_OPTION_WORDS,    /* unsigned, the union of words */
};

struct joule_option {
    const char *key;         /* as in acct_gather.conf; NULL ends a table */
    enum joule_option_type type;
    size_t offset;           /* of the field in the caller's struct */
    const char *default_text;
    int64_t min, max;        /* U64 and DURATION */
    const struct joule_word *words;             /* WORDS */
    /* Optional further check of a value that parsed: 0, or -1 and the
     * allowed range stays the one of joule_option_range. */
    int (*check)(const void *field);
    const char *range;       /* text of the range; NULL: made from the above */
    bool secret;             /* never printed: joule_option_format says "***" */
    const char *help;        /* one line */
};

/* Fill every field of [cfg] with its default.  The defaults must parse: a
 * table whose default does not is a bug and ends in abort(). */
void joule_option_defaults(const struct joule_option *table, void *cfg);

/* The row of [key] (any case), or NULL. */
const struct joule_option *joule_option_find(const struct joule_option *table,
                                             const char *key);

/*
 * Parse [text] into the field of [row].  On failure -1, errno EINVAL or
 * ERANGE, the field unchanged, and a sentence "KEY=TEXT is not ...: allowed
 * are RANGE" in [err]; the value of a secret is not quoted.
 */
int joule_option_set(const struct joule_option *row, void *cfg,
                     const char *text, struct joule_error *err);

/* The value as the parser reads it; "***" for a secret. */
void joule_option_format(const struct joule_option *row, const void *cfg,
                         char *buf, size_t size);

/* What is allowed, for people: "10ms to 60s", "yes or no". */
void joule_option_range(const struct joule_option *row, char *buf,
                        size_t size);

#endif
