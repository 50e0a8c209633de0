/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paraver.h - what all traces for Paraver have: PATH.prv, PATH.pcf and PATH.row.
 */
#ifndef JOULE_REPORT_PARAVER_H
#define JOULE_REPORT_PARAVER_H

#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

/* The begin of the first line of a .prv, and all of a .pcf before its event types. */
void joule_paraver_put_date(FILE *file, uint64_t wall_ns);
void joule_paraver_put_options(FILE *file);

/* A line, whatever the text has in it. */
void joule_paraver_put_text(FILE *file, const char *text);

/* Write PATH.END with [put].  -1 with errno and a sentence, and no such file. */
int joule_paraver_write(const char *path, const char *end,
                        void (*put)(FILE *file, void *arg), void *arg,
                        struct joule_error *err);

#endif
