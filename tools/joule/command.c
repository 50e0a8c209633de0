/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MAX (JOULE_COMMAND_OPTIONS_MAX + 2) /* --help, and the end */
#define LONG        256 /* what getopt_long returns for the first row */

int joule_command_error(const char *command, const char *text)
{
    fprintf(stderr, "joule %s: %s\nTry 'joule %s --help'.\n", command, text,
            command);
    return 2;
}

/* The row that getopt_long has found. */
static const struct joule_command_option *
row_of(const struct joule_command_option *table, int c)
{
    if (c >= LONG)
        return &table[c - LONG];
    while (strlen(table->name) != 1 || table->name[0] != c)
        table++;
    return table;
}

static int take(const struct joule_command_option *row, const char *argument,
                const char *command)
{
    char text[64];

    if (row->flag) {
        *row->flag = true;
    } else if (!row->count) {
        *row->text = argument ? argument : row->unsaid;
    } else if (*row->count < row->max) {
        row->text[(*row->count)++] = argument;
    } else {
        snprintf(text, sizeof(text),
                 *row->name ? "--%s is given too often" : "too many arguments",
                 row->name);
        return joule_command_error(command, text);
    }
    return -1;
}

int joule_command_parse(const struct joule_command_option *table,
                        const char *usage, int argc, char **argv)
{
    struct option words[OPTIONS_MAX] = {{"help", no_argument, NULL, 'h'}};
    char letters[2 * OPTIONS_MAX + 2] = ":h", *letter = letters + 2;
    char text[256];
    const struct joule_command_option *row;
    int c, count = 1, rc = -1;

    for (row = table; row->name && *row->name && count < OPTIONS_MAX - 1;
         row++) {
        if (row->name[1])
            words[count++] = (struct option){row->name,
                                             row->flag     ? no_argument
                                             : row->unsaid ? optional_argument
                                                           : required_argument,
                                             NULL, LONG + (int)(row - table)};
        else
            letter += sprintf(letter, "%s:", row->name);
    }
    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, words, NULL)) != -1) {
        if (c == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (c == '?' || c == ':') {
            snprintf(text, sizeof(text), "%.200s %s", argv[optind - 1],
                     c == ':' ? "needs a value" : "is no option");
            return joule_command_error(argv[0], text);
        }
        rc = take(row_of(table, c), optarg, argv[0]);
        if (rc >= 0)
            return rc;
    }
    if (optind < argc && !row->name)
        return joule_command_error(argv[0],
                                   "there are no arguments beside the options");
    for (; optind < argc && rc < 0; optind++)
        rc = take(row, argv[optind], argv[0]);
    return rc;
}
