/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * finding.h - what `joule probe` has to say about a set-up: a list of
 * sentences with their level, their place and the line that mends them.
 *
 * A plain struct without allocation: a list that is full still counts.
 */
#ifndef JOULE_TOOLS_FINDING_H
#define JOULE_TOOLS_FINDING_H

#include <stddef.h>

#include "common/base/error.h"

#define JOULE_FINDINGS_MAX 64
#define JOULE_PLACE_MAX    512

enum joule_level {
    JOULE_NOTE,
    JOULE_WARNING, /* measured, but not as one may expect */
    JOULE_FAULT,   /* a job would not be measured: "error" in the output */
    JOULE_LEVELS,
};

/* Where something stands: a file and a line. */
struct joule_conf_place {
    char file[JOULE_PLACE_MAX]; /* empty: nowhere */
    unsigned line;              /* 0: the file as a whole */
};

struct joule_finding {
    enum joule_level level;
    const char *id; /* short and stable: "plugin-dir"; static */
    struct joule_conf_place place;
    struct joule_error text;
    struct joule_error advice; /* the line to write, or empty */
};

struct joule_findings {
    size_t count;
    size_t total[JOULE_LEVELS]; /* those that found no room too */
    struct joule_finding list[JOULE_FINDINGS_MAX];
};

/* "note", "warning", "error". */
const char *joule_level_name(enum joule_level level);

/*
 * Add one finding; [place] and [advice] may be NULL.  Control characters in
 * the texts are replaced: they may quote a hostile file.
 */
void joule_finding_add(struct joule_findings *list, enum joule_level level,
                       const char *id, const struct joule_conf_place *place,
                       const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

#endif
