/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Characters that reorder the text around them (Unicode annex 9). */
static bool is_reordering(uint32_t c)
{
    return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

size_t joule_text_char(const char *s)
{
    return joule_text_char_of(s, strnlen(s, 4));
}

size_t joule_text_char_of(const char *s, size_t most)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    uint32_t c = p[0];
    size_t len;

    if (c < 0x80)
        return c >= 0x20 && c != 0x7F;
    if (c >= 0xC2 && c <= 0xDF)
        len = 2;
    else if (c >= 0xE0 && c <= 0xEF)
        len = 3;
    else if (c >= 0xF0 && c <= 0xF4)
        len = 4;
    else
        return 0;
    if (len > most)
        return 0;
    c &= 0xFFu >> (len + 1);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ||
        c < 0xA0 || is_reordering(c))
        return 0;
    return len;
}

void joule_text_put(FILE *out, const char *s)
{
    while (*s) {
        size_t len = joule_text_char(s);

        if (len == 0) {
            putc('?', out);
            s++;
            continue;
        }
        fwrite(s, 1, len, out);
        s += len;
    }
}

void joule_text_unit(struct joule_unit unit, char buf[JOULE_UNIT_TEXT_MAX])
{
    /* An odd number by 2^n has n decimals. */
    while (unit.shift > 0 && unit.num % 2 == 0) {
        unit.num /= 2;
        unit.shift--;
    }
    snprintf(buf, JOULE_UNIT_TEXT_MAX, "%.*f", (int)unit.shift,
             ldexp(unit.num, -(int)unit.shift));
}

void joule_text_seconds(double s, char *buf, size_t size)
{
    if (s < 3600)
        snprintf(buf, size, "%.1f s", s);
    else if (s < 48 * 3600)
        snprintf(buf, size, "%.1f h", s / 3600);
    else if (s < 2 * 365 * 86400.0)
        snprintf(buf, size, "%.1f d", s / 86400);
    else
        snprintf(buf, size, "years");
}
