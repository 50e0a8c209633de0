/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tablesend.h - hand a table's rows to a visitor.
 */
#ifndef JOULE_STORE_TABLESEND_H
#define JOULE_STORE_TABLESEND_H

#include "common/store/reader.h"
#include "common/store/visitor.h"

/*
 * From its beginning to its end: the table, what [attributes] tells of it, and
 * with JOULE_WALK_TABLES its rows, or its chunks as they are stored where that
 * is worth it.  -1 with what a visitor's function said.
 */
int joule_table_send(struct joule_rows *rows, const char *name,
                     enum joule_walk how, const struct joule_visitor *visitor,
                     int (*attributes)(void *arg, struct joule_error *err),
                     void *arg, struct joule_error *err);

#endif
