/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * say.h - what sh5util tells its user.
 *
 * Names of files, series and nodes are somebody else's, and the reader may be
 * root at a terminal: everything goes through the filter of tools/joule/text.h,
 * which leaves no control character, also not a newline.
 */
#ifndef JOULE_SH5UTIL_SAY_H
#define JOULE_SH5UTIL_SAY_H

#include <stdio.h>

/* "sh5util: SENTENCE" and a newline on standard error. */
void joule_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same into [out], without the name of the program. */
void joule_say_to(FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
