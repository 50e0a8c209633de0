/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/json.h"

#include <inttypes.h>
#include <string.h>

#include "tools/joule/text.h"

/* What could end or begin an element; or a line, in JavaScript of before 2019. */
static bool is_of_html(const char *s, size_t len)
{
    return *s == '<' || *s == '>' || *s == '&' ||
           (len == 3 && memcmp(s, "\xE2\x80", 2) == 0 &&
            (s[2] == '\xA8' || s[2] == '\xA9'));
}

static void put_string(struct joule_json *j, const char *s)
{
    FILE *out = j->out;

    putc('"', out);
    while (*s) {
        size_t len = joule_text_char(s);

        if (len == 0) {
            fputs("\\ufffd", out);
            s++;
            continue;
        }
        if (j->in_html && is_of_html(s, len)) {
            fprintf(out, "\\u%04x",
                    len == 3 ? 0x2000u | (*(s + 2) & 0x3F) : (unsigned)*s);
            s += len;
            continue;
        }
        if (*s == '"' || *s == '\\')
            putc('\\', out);
        fwrite(s, 1, len, out);
        s += len;
    }
    putc('"', out);
}

static void new_line(struct joule_json *j)
{
    putc('\n', j->out);
    for (unsigned i = 0; i < j->depth; i++)
        fputs("  ", j->out);
}

/* What stands before every value. */
static void next(struct joule_json *j, const char *key)
{
    if (!j->empty)
        putc(',', j->out);
    j->empty = false;
    new_line(j);
    if (key) {
        put_string(j, key);
        fputs(": ", j->out);
    }
}

static void open_level(struct joule_json *j, char open, char close)
{
    putc(open, j->out);
    j->close[j->depth++] = close;
    j->empty = true;
}

void joule_json_close(struct joule_json *j)
{
    j->depth--;
    if (!j->empty)
        new_line(j);
    putc(j->close[j->depth], j->out);
    j->empty = false;
}

void joule_json_begin(struct joule_json *j, FILE *out)
{
    j->out = out;
    j->depth = 0;
    j->in_html = false;
    open_level(j, '{', '}');
}

void joule_json_end(struct joule_json *j)
{
    joule_json_close(j);
    putc('\n', j->out);
}

void joule_json_object(struct joule_json *j, const char *key)
{
    next(j, key);
    open_level(j, '{', '}');
}

void joule_json_array(struct joule_json *j, const char *key)
{
    next(j, key);
    open_level(j, '[', ']');
}

void joule_json_number(struct joule_json *j, const char *key, const char *text)
{
    next(j, key);
    fputs(text, j->out);
}

void joule_json_string(struct joule_json *j, const char *key, const char *value)
{
    if (!value) {
        joule_json_null(j, key);
        return;
    }
    next(j, key);
    put_string(j, value);
}

void joule_json_text(struct joule_json *j, const char *key, const char *value)
{
    joule_json_string(j, key, value && *value ? value : NULL);
}

void joule_json_null(struct joule_json *j, const char *key)
{
    joule_json_number(j, key, "null");
}

void joule_json_bool(struct joule_json *j, const char *key, bool value)
{
    joule_json_number(j, key, value ? "true" : "false");
}

void joule_json_u64(struct joule_json *j, const char *key, uint64_t value)
{
    next(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

void joule_json_u64_if(struct joule_json *j, const char *key, bool known,
                       uint64_t value)
{
    if (known)
        joule_json_u64(j, key, value);
    else
        joule_json_null(j, key);
}

void joule_json_i64(struct joule_json *j, const char *key, int64_t value)
{
    next(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void joule_json_milli(struct joule_json *j, const char *key,
                      uint64_t thousandths)
{
    next(j, key);
    fprintf(j->out, "%" PRIu64 ".%03u", thousandths / 1000,
            (unsigned)(thousandths % 1000));
}
