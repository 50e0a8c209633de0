/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outlinewalk.h - what joule_reader_walk and joule_reader_table do, by an
 * outline.
 */
#ifndef JOULE_STORE_OUTLINEWALK_H
#define JOULE_STORE_OUTLINEWALK_H

#include "common/store/outline.h"
#include "common/store/reader.h"

int joule_outline_walk(const struct joule_outline *outline,
                       struct joule_windows *windows, const char *path,
                       enum joule_walk how, const struct joule_visitor *visitor,
                       struct joule_error *err);

/* NULL: ENOENT (no such table), ENOMEM. */
struct joule_rows *joule_outline_rows(const struct joule_outline *outline,
                                      struct joule_windows *windows,
                                      const char *path,
                                      struct joule_error *err);

#endif
