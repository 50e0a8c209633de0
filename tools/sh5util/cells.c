/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/joule/text.h"

static const char pairs[] = "00010203040506070809"
                            "10111213141516171819"
                            "20212223242526272829"
                            "30313233343536373839"
                            "40414243444546474849"
                            "50515253545556575859"
                            "60616263646566676869"
                            "70717273747576777879"
                            "80818283848586878889"
                            "90919293949596979899";

char *joule_number_u64(char *at, uint64_t value)
{
    char text[20];
    size_t i = sizeof(text);

    while (value >= 100) {
        i -= 2;
        memcpy(text + i, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        i -= 2;
        memcpy(text + i, pairs + value * 2, 2);
    } else {
        text[--i] = (char)('0' + value);
    }
    memcpy(at, text + i, sizeof(text) - i);
    return at + (sizeof(text) - i);
}

char *joule_number_fixed(char *at, double value)
{
    double size = fabs(value), scaled, rest, error;
    uint64_t whole, micro;

    if (isnan(value)) {
        memcpy(at, "nan", 3);
        return at + 3;
    }
    /* Up to here, a double of millionths has its units digit. */
    if (!(size < 4e9))
        return at + sprintf(at, "%.6f", value);
    if (signbit(value))
        *at++ = '-';
    /*
     * The exact product is scaled + error (fma gives the error exactly), its
     * fraction rest + error; both are exact, so the comparison with one half
     * is, too, and a tie goes to the even digit as printf has it.
     */
    scaled = size * 1e6;
    error = fma(size, 1e6, -scaled);
    whole = (uint64_t)scaled;
    rest = scaled - (double)whole - 0.5;
    if (rest + error > 0 || (rest + error == 0 && (whole & 1)))
        whole++;
    at = joule_number_u64(at, whole / 1000000);
    micro = whole % 1000000;
    *at++ = '.';
    memcpy(at, pairs + micro / 10000 * 2, 2);
    memcpy(at + 2, pairs + micro / 100 % 100 * 2, 2);
    memcpy(at + 4, pairs + micro % 100 * 2, 2);
    return at + 6;
}

char *joule_number_json(char *at, double value)
{
    if (!isfinite(value)) {
        memcpy(at, "null", 4);
        return at + 4;
    }
    for (int digits = 15; digits < 17; digits++) {
        int n = sprintf(at, "%.*g", digits, value);

        if (strtod(at, NULL) == value)
            return at + n;
    }
    return at + sprintf(at, "%.17g", value);
}

static char *put_u128(char *at, unsigned __int128 value)
{
    const uint64_t part = UINT64_C(1000000000000000000);

    if (value <= UINT64_MAX)
        return joule_number_u64(at, (uint64_t)value);
    at = put_u128(at, value / part);
    return at + sprintf(at, "%018llu", (unsigned long long)(value % part));
}

char *joule_number_i128(char *at, __int128 value)
{
    if (value >= 0)
        return put_u128(at, (unsigned __int128)value);
    *at++ = '-';
    return put_u128(at, -(unsigned __int128)value);
}

/* What a spreadsheet takes for a number also where a formula could stand. */
static bool is_number(const char *text, size_t len)
{
    char copy[64], *end;

    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    /* No words, and no digits but decimal ones. */
    if (copy[strspn(copy, "0123456789.eE+-")])
        return false;
    strtod(copy, &end);
    return end > copy && !*end;
}

/*
 * Text is somebody else's: a terminal is not to obey it, nor a spreadsheet.  A
 * cell that begins as a formula does has an apostrophe in front, which is the
 * sign for text there.
 */
void joule_cells_text(struct joule_cells *c, const char *text, size_t len)
{
    bool quoted = c->json || memchr(text, ',', len) || memchr(text, '"', len);

    joule_cells_next(c);
    if (quoted)
        *c->at++ = '"';
    if (!c->json && len > 0 && strchr("=+-@", text[0]) && !is_number(text, len))
        *c->at++ = '\'';
    while (len > 0) {
        size_t n = joule_text_char_of(text, len);
        unsigned char byte = (unsigned char)*text;

        if (n > 0 && (byte == '"' || (c->json && byte == '\\')))
            *c->at++ = c->json ? '\\' : '"';
        if (n > 0)
            memcpy(c->at, text, n);
        else if (c->json && (byte < 0x20 || byte == 0x7F))
            sprintf(c->at, "\\u%04x", byte);
        else
            *c->at = '?';
        c->at += n > 0 ? n : *c->at == '\\' ? 6 : 1;
        n = n > 0 ? n : 1;
        text += n;
        len -= n;
    }
    if (quoted)
        *c->at++ = '"';
}

void joule_cells_value(struct joule_cells *c, const struct joule_value *value,
                       bool is_float)
{
    if (!value->is_there) {
        joule_cells_missing(c);
    } else if (is_float) {
        joule_cells_double(c, value->real);
    } else {
        joule_cells_next(c);
        c->at = joule_number_i128(c->at, value->whole);
    }
}

void joule_cells_column(struct joule_cells *c,
                        const struct joule_column *column, const void *row)
{
    const char *text = (const char *)row + column->offset;

    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
        joule_cells_u64(c, joule_column_u64(column, row));
        break;
    case JOULE_KIND_SIGNED:
        joule_cells_next(c);
        c->at =
            joule_number_i128(c->at, (int64_t)joule_column_u64(column, row));
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
