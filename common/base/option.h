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
    JOULE_OPTION_WORD,     /* unsigned, the bits of one word; several names may
                              stand for the same, the first is printed */
    JOULE_OPTION_HEX,      /* uint64_t, min..max, as 0x1F or in decimal */
    JOULE_OPTION_TEXT,     /* char[max + 1]; no control characters */
    JOULE_OPTION_IGNORED,  /* no field: any text is taken, and means nothing */
};

#define JOULE_OPTION_TEXT_MAX 1023 /* the most that max may be for TEXT */

struct joule_option {
    const char *key; /* as in acct_gather.conf; NULL ends a table */
    enum joule_option_type type;
    size_t offset;                  /* of the field in the caller's struct */
    const char *default_text;       /* not for IGNORED */
    int64_t min, max;               /* U64, HEX and DURATION; TEXT: max bytes */
    const struct joule_word *words; /* WORDS and WORD */
    /* Optional further check of a value that parsed: 0, or -1 with errno
     * EINVAL or ERANGE; a [reason] that it gives is quoted, otherwise the
     * allowed range is the one of joule_option_range. */
    int (*check)(const void *field, struct joule_error *reason);
    const char *range; /* text of the range; NULL: made from the above */
    bool secret;       /* never printed: joule_option_format says "***"
                          (nothing for an empty TEXT) */
    /*
     * Two keys of one field: [given] is the offset of a bool that tells
     * whether the first was set (not just its default); 0: there is none.  A
     * row that yields leaves the field as it is once it was.
     */
    size_t given;
    bool yields;
    const char *notice; /* said when the key is set: what to do instead */
    const char *help;   /* one line */
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
 * are RANGE", or "KEY=TEXT: REASON" in [err]; the value of a secret is not
 * quoted.  All bytes of a TEXT behind its end are 0.
 */
int joule_option_set(const struct joule_option *row, void *cfg,
                     const char *text, struct joule_error *err);

/* The value as the parser reads it; "***" for a secret, empty for IGNORED. */
void joule_option_format(const struct joule_option *row, const void *cfg,
                         char *buf, size_t size);

/* What is allowed, for people: "10ms to 60s", "yes or no". */
void joule_option_range(const struct joule_option *row, char *buf, size_t size);

#endif
