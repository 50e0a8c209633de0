/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * error.h - one sentence for the admin beside errno for the program.
 *
 * The caller owns the struct; a callee that fails fills it and sets errno.
 * Every function that takes a struct joule_error * accepts NULL.
 * Thread rule: a struct joule_error belongs to one thread at a time.
 */
#ifndef JOULE_BASE_ERROR_H
#define JOULE_BASE_ERROR_H

#define JOULE_ERROR_MAX 512

struct joule_error {
    char text[JOULE_ERROR_MAX]; /* one sentence, no newline, NUL-terminated */
};

/*
 * Format the sentence into [err] (may be NULL), set errno to [errnum] and
 * return -1, so that a caller may write "return joule_error_set(...)".
 * Control characters in the result are replaced by '?': the text may quote
 * hostile input.  A sentence that is too long ends in "...".
 */
int joule_error_set(struct joule_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
