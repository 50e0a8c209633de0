/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conffile.h - a reader of Slurm's Key=Value files for messages and checks.
 *
 * Slurm's own parser does not tell on which line a value stood.  This one reads
 * the text of slurm.conf or acct_gather.conf by the same rules:
 *  - A '#' starts a comment unless it is escaped, in quotes too.  A backslash
 *    at the end continues the line; elsewhere it is dropped and the next character
 *    taken as it is.
 *  - A line holds one pair Key=Value.  More pairs may follow on the line of
 *    NodeName, PartitionName, NodeSet, DownNodes and FrontendName only.
 *  - Blanks may stand around the '=', which may be "+=", "-=", "*=" or "/=".  A
 *    value may be in double quotes; it is empty there only.
 *  - "Include NAME", at the very beginning of a line, is reported as a pair
 *    with the key "Include".  The file is not read. All other text is stray: a
 *    daemon of Slurm does not start with it.
 */
#ifndef JOULE_BASE_CONFFILE_H
#define JOULE_BASE_CONFFILE_H

#include <stddef.h>

/* A pair, or stray text to the end of its line: then [key] is NULL and [value]
 * is the text.  Return 0 to go on, anything else ends the walk with that
 * result. The strings live until the callback returns.  [line] is the one on
 * which the key or the text begins, counted from 1. */
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
