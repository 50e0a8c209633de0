/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conffile.h - a reader of Slurm's Key=Value files for messages and checks.
 *
 * Slurm's own parser does not tell on which line a value stood.  This one
 * walks the text of slurm.conf or acct_gather.conf: '#' starts a comment
 * unless escaped (in quotes too), a backslash at the end continues the line,
 * elsewhere it is dropped and the next character taken as it is, one line may
 * hold several Key=Value pairs, blanks may stand around the '=', which may be
 * "+=" and the like, a value may be in double quotes, "Include" lines are
 * reported as a pair with the key "Include".  Anything else is passed over.
 * A file that Include names is not read.
 */
#ifndef JOULE_BASE_CONFFILE_H
#define JOULE_BASE_CONFFILE_H

#include <stddef.h>

/* Return 0 to go on, anything else ends the walk with that result.  The
 * strings live until the callback returns; value may be empty.  [line] is the
 * one on which the key stands, counted from 1. */
typedef int (*joule_conffile_f)(const char *key, const char *value,
                                unsigned line, void *arg);

/*
 * Walk text[len] (not changed, need not end in NUL).  Returns 0, the
 * callback's result, or -1 with errno ENOMEM.
 */
int joule_conffile_walk(const char *text, size_t len, joule_conffile_f each,
                        void *arg);

/*
 * The last line of the text that sets [key] (any case; Slurm uses the last),
 * or 0 if none does.
 */
unsigned joule_conffile_line(const char *text, size_t len, const char *key);

#endif
