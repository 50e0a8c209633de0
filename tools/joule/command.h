/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * command.h - the commands of `joule`, and their command lines.
 */
#ifndef JOULE_TOOLS_COMMAND_H
#define JOULE_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* argv[0] is the command's name.  They return the exit status. */
int joule_probe_main(int argc, char **argv);
int joule_ledger_main(int argc, char **argv);
int joule_cpufreq_main(int argc, char **argv);

#define JOULE_COMMAND_OPTIONS_MAX 32 /* of a table */

struct joule_command_option {
    const char *name;   /* "json", or one letter: "j"; "": what is no option;
                           NULL ends a table */
    bool *flag;         /* there is no argument: this becomes true */
    const char **text;  /* else, where the argument goes */
    const char *unsaid; /* NULL: it must be there; else what stands for it */
    size_t *count;      /* NULL: the last one counts; else of a list at text */
    size_t max;         /* of the list */
};

/* -1: go on; else the exit status, and what there was to say has been said
 * (--help too, with [usage]). */
int joule_command_parse(const struct joule_command_option *table,
                        const char *usage, int argc, char **argv);

/* The exit status of a command line that is wrong in [text]. */
int joule_command_error(const char *command, const char *text);

#endif
