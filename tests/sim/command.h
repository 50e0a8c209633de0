/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * command.h - the commands that a simulator takes over its socket (talk.h),
 * as a table.
 */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include <stddef.h>

#include "common/base/error.h"

struct sim_command {
    const char *name; /* NULL ends a table */
    const char *arg;  /* what follows the name; NULL: nothing may */
    /* [arg] is the rest of the line, "" if none, and may be changed.
     * Returns 0, with an answer in [reply] if it is not just "ok", or -1
     * with a sentence. */
    int (*run)(void *context, char *arg, char *reply, size_t size,
               struct joule_error *err);
    const char *help;
};

/* Answer one line, which is changed, without newline. */
void sim_command_run(const struct sim_command *table, void *context, char *line,
                     char *reply, size_t size);

/* The table, for --help, to standard output. */
void sim_command_help(const struct sim_command *table);

#endif
