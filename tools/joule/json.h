/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json.h - write a JSON document (RFC 8259), value by value.
 *
 * The writer puts commas, line breaks and quotes; the caller opens and closes
 * objects and arrays in their order.  [key] is NULL inside an array.  Strings
 * may hold any bytes: what is not printable UTF-8 becomes U+FFFD.  Numbers
 * are written with a '.' whatever the locale.
 */
#ifndef JOULE_TOOLS_JSON_H
#define JOULE_TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JOULE_JSON_DEPTH 16

struct joule_json {
    FILE *out;
    unsigned depth;
    char close[JOULE_JSON_DEPTH]; /* brackets of what is open */
    bool empty; /* nothing yet in the innermost object or array */
    bool in_html; /* set it behind joule_json_begin for a <script> element:
                     no string has a character that could end it */
};

/* The document is one object, which this opens. */
void joule_json_begin(struct joule_json *j, FILE *out);
void joule_json_end(struct joule_json *j);

void joule_json_object(struct joule_json *j, const char *key);
void joule_json_array(struct joule_json *j, const char *key);
void joule_json_close(struct joule_json *j); /* the innermost */

/* NULL is written as null; by joule_json_text "" as well. */
void joule_json_string(struct joule_json *j, const char *key,
                       const char *value);
void joule_json_text(struct joule_json *j, const char *key, const char *value);
void joule_json_null(struct joule_json *j, const char *key);
void joule_json_bool(struct joule_json *j, const char *key, bool value);
void joule_json_u64(struct joule_json *j, const char *key, uint64_t value);
/* null if it is not [known]. */
void joule_json_u64_if(struct joule_json *j, const char *key, bool known,
                       uint64_t value);
void joule_json_i64(struct joule_json *j, const char *key, int64_t value);

/* [thousandths] / 1000 with three decimals. */
void joule_json_milli(struct joule_json *j, const char *key,
                      uint64_t thousandths);

/* A number that the caller has formatted. */
void joule_json_number(struct joule_json *j, const char *key, const char *text);

#endif
