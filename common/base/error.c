/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* End text[JOULE_ERROR_MAX] in "...", not in the middle of a UTF-8 character:
 * a log reader may refuse the whole line for half a character. */
static void ellipsis(char *text)
{
    size_t at = JOULE_ERROR_MAX - sizeof("...");

    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    memcpy(text + at, "...", sizeof("..."));
}

int joule_error_set(struct joule_error *err, int errnum, const char *fmt, ...)
{
    char text[JOULE_ERROR_MAX];
    va_list ap;
    int n;

    if (err) {
        /* In a buffer of its own: an argument may be err->text. */
        errno = errnum; /* for %m */
        va_start(ap, fmt);
        n = vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (n < 0)
            strcpy(text, "an error that cannot be put into words");
        else if ((size_t)n >= sizeof(text))
            ellipsis(text);
        for (char *c = text; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7F)
                *c = '?';
        memcpy(err->text, text, sizeof(text));
    }
    errno = errnum;
    return -1;
}
