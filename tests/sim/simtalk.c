/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simtalk DIR NAME COMMAND - say one line to a simulator's socket DIR/NAME and
 * print its answer (see talk.h).  Exit 0, or 1 with a sentence.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/talk.h"

int main(int argc, char **argv)
{
    char reply[SIM_TALK_LINE];
    struct joule_error err = {""};

    if (argc != 4) {
        fprintf(stderr, "usage: simtalk DIR NAME COMMAND\n");
        return 2;
    }
    if (sim_talk_ask(argv[1], argv[2], argv[3], reply, sizeof(reply), &err)) {
        fprintf(stderr, "simtalk: %s\n", err.text);
        return EXIT_FAILURE;
    }
    puts(reply);
    return EXIT_SUCCESS;
}
