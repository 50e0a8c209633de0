/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text.h - strings for a terminal or a JSON document from bytes that nobody
 * has checked.
 */
#ifndef JOULE_TOOLS_TEXT_H
#define JOULE_TOOLS_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "common/sensors/sensor.h"

/*
 * The length of the printable UTF-8 character at [s] (not its end): 1 to 4,
 * or 0 if what stands there is none: a control character (C0, DEL, C1), a
 * direction override, an overlong form, a surrogate, half a character.
 */
size_t joule_text_char(const char *s);

/* The same of [len] bytes, at least one, which no NUL need end. */
size_t joule_text_char_of(const char *s, size_t len);

/* Print [s] with '?' for every byte of what is no printable character. */
void joule_text_put(FILE *out, const char *s);

/* Microjoules per tick as an exact decimal number: "61.03515625". */
#define JOULE_UNIT_TEXT_MAX 48
void joule_text_unit(struct joule_unit unit, char buf[JOULE_UNIT_TEXT_MAX]);

/* "wrap time" and the like for people: "262.1 s", "2.9 h", "12.0 d". */
void joule_text_seconds(double s, char *buf, size_t size);

#endif
