/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/cells.h"

#include "tools/joule/text.h"

static size_t digits(const char *text, const char *end)
{
    size_t n = 0;

    while (text + n < end && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* What a spreadsheet takes for a number also where a formula could stand. */
static bool is_number(const char *text, size_t len)
{
    const char *end = text + len;
    size_t whole, part = 0;

    if (text < end && (*text == '-' || *text == '+'))
        text++;
    whole = digits(text, end);
    text += whole;
    if (text < end && *text == '.') {
        part = digits(text + 1, end);
        text += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (text < end && (*text == 'e' || *text == 'E')) {
        text++;
        if (text < end && (*text == '-' || *text == '+'))
            text++;
        part = digits(text, end);
        if (part == 0)
            return false;
        text += part;
    }
    return text == end;
}

/*
 * Text is somebody else's: a terminal is not to obey it, nor a spreadsheet.  A
 * cell that begins as a formula does has an apostrophe in front, which is the
 * sign for text there.
 */
static void put_csv(struct joule_cells *c, const char *text, size_t len)
{
    bool quoted = false;

    for (size_t i = 0; i < len; i++)
        if (text[i] == ',' || text[i] == '"')
            quoted = true;
    if (quoted)
        *c->at++ = '"';
    if (len > 0 && strchr("=+-@", text[0]) && !is_number(text, len))
        *c->at++ = '\'';
    while (len > 0) {
        size_t n = joule_text_char_of(text, len);

        if (*text == '"')
            *c->at++ = '"';
        if (n == 0) {
            *c->at++ = '?';
            n = 1;
        } else {
            memcpy(c->at, text, n);
            c->at += n;
        }
        text += n;
        len -= n;
    }
    if (quoted)
        *c->at++ = '"';
}

static void put_json(struct joule_cells *c, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";

    *c->at++ = '"';
    while (len > 0) {
        size_t n = joule_text_char_of(text, len);
        unsigned char byte = (unsigned char)*text;

        if (n == 0 && (byte < 0x20 || byte == 0x7F)) {
            memcpy(c->at, "\\u00", 4);
            c->at[4] = hex[byte >> 4];
            c->at[5] = hex[byte & 15];
            c->at += 6;
            n = 1;
        } else if (n == 0) {
            *c->at++ = '?';
            n = 1;
        } else if (*text == '"' || *text == '\\') {
            *c->at++ = '\\';
            *c->at++ = *text;
        } else {
            memcpy(c->at, text, n);
            c->at += n;
        }
        text += n;
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
