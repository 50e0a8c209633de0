/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload.h - what an object needs that is preloaded between a program and its
 * libraries.
 */
#ifndef JOULE_PRELOAD_H
#define JOULE_PRELOAD_H

#include <stdbool.h>

#define JOULE_PRELOAD_TEXT 256

/* The symbol of another object than this one: of those behind it, or of one below a
 * Python module, where dlsym(RTLD_NEXT) does not look.  NULL: there is none. */
void *joule_preload_find(const char *name);

/* What may be a text, or no address at all: whether it is one of printable
 * characters of ASCII, which is then in [text]. */
bool joule_preload_copy_text(const void *at, char text[JOULE_PRELOAD_TEXT]);

#endif
