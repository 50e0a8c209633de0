/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/say.h"

#include <stdarg.h>
#include <stdlib.h>

#include "tools/joule/text.h"

static void say(FILE *out, const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0) {
        fputs("out of memory\n", out);
        return;
    }
    joule_text_put(out, text);
    putc('\n', out);
    free(text);
}

void joule_say(const char *fmt, ...)
{
    va_list ap;

    fputs("sh5util: ", stderr);
    va_start(ap, fmt);
    say(stderr, fmt, ap);
    va_end(ap);
}

void joule_say_to(FILE *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(out, fmt, ap);
    va_end(ap);
}
