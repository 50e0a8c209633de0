/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/cells.h"

static void put_csv(struct joule_cells *c, const char *text, size_t len)
{
    bool quoted = false;

    for (size_t i = 0; i < len; i++)
        if (strchr(",\"\r\n", text[i]))
            quoted = true;
    if (!quoted) {
        memcpy(c->at, text, len);
        c->at += len;
        return;
    }
    *c->at++ = '"';
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            *c->at++ = '"';
        *c->at++ = text[i];
    }
    *c->at++ = '"';
}

/* Bytes above 127 are left alone where they may be UTF-8; a file of somebody
 * else's may hold others, and "?" is better than no JSON at all. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
    size_t n = *s < 0x80                 ? 1
               : *s >= 0xC2 && *s < 0xE0 ? 2
               : *s >= 0xE0 && *s < 0xF0 ? 3
               : *s >= 0xF0 && *s < 0xF5 ? 4
                                         : 0;

    if (n == 0 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((*s == 0xE0 && s[1] < 0xA0) || (*s == 0xED && s[1] > 0x9F) ||
        (*s == 0xF0 && s[1] < 0x90) || (*s == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

static void put_json(struct joule_cells *c, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)text;

    *c->at++ = '"';
    while (len > 0) {
        size_t n = utf8_length(s, len);

        if (n == 0) {
            *c->at++ = '?';
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            *c->at++ = '\\';
            *c->at++ = (char)*s;
        } else if (*s < 0x20) {
            memcpy(c->at, "\\u00", 4);
            c->at[4] = hex[*s >> 4];
            c->at[5] = hex[*s & 15];
            c->at += 6;
        } else {
            memcpy(c->at, s, n);
            c->at += n;
        }
        s += n;
        len -= n;
    }
    *c->at++ = '"';
}

void joule_cells_text(struct joule_cells *c, const char *text, size_t len)
{
    joule_cells_next(c);
    if (c->json)
        put_json(c, text, len);
    else
        put_csv(c, text, len);
}

void joule_cells_column(struct joule_cells *c,
                        const struct joule_column *column, const void *row)
{
    const char *text = (const char *)row + column->offset;

    if (column->count > 1) {
        joule_cells_missing(c);
        return;
    }
    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
        joule_cells_u64(c, joule_column_u64(column, row));
        break;
    case JOULE_KIND_SIGNED:
        joule_cells_next(c);
        c->at = joule_number_i64(c->at, joule_column_i64(column, row));
        break;
    case JOULE_KIND_FLOAT:
        joule_cells_double(c, joule_column_double(column, row));
        break;
    case JOULE_KIND_STRING:
        joule_cells_text(c, text, strnlen(text, column->size));
        break;
    default:
        joule_cells_missing(c);
        break;
    }
}

size_t joule_cells_text_bytes(const struct joule_rowtype *type)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < type->count; i++)
        if (type->column[i].kind == JOULE_KIND_STRING)
            bytes += type->column[i].size;
    return bytes;
}
