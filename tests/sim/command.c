/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sim_command_help(const struct sim_command *table)
{
    for (const struct sim_command *c = table; c->name; c++) {
        int used = printf("  %s %s", c->name, c->arg ? c->arg : "");

        printf("%*s%s\n", used < 28 ? 28 - used : 1, "", c->help);
    }
}

void sim_command_run(const struct sim_command *table, void *context, char *line,
                     char *reply, size_t size)
{
    const struct sim_command *c = table;
    struct joule_error err = {""};
    char *rest;
    int rc;

    line[strcspn(line, "\n")] = '\0';
    rest = strchrnul(line, ' ');
    if (*rest)
        *rest++ = '\0';
    while (c->name && strcmp(c->name, line))
        c++;
    reply[0] = '\0';
    if (!c->name)
        rc = joule_error_set(&err, EINVAL, "no command \"%s\"", line);
    else if (!c->arg != !*rest && (!c->arg || c->arg[0] != '['))
        rc = joule_error_set(&err, EINVAL, "usage: %s %s", c->name,
                             c->arg ? c->arg : "");
    else
        rc = c->run(context, rest, reply, size, &err);
    if (rc)
        snprintf(reply, size, "error: %s", err.text);
    else if (!*reply)
        snprintf(reply, size, "ok");
}
