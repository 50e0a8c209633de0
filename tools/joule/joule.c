/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule - one program with a row for each thing it can do.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "tools/joule/command.h"

/* A command that is a program of its own. */
static int start(const char *program, char **argv)
{
    execv(program, argv - 1);
    fprintf(stderr, "joule %s: cannot start %s: %s\n", argv[0], program,
            strerror(errno));
    return 1;
}

/* What reads profiles and traces: libhdf5 takes 12 ms to load. */
static int start_report(int argc, char **argv)
{
    (void)argc;
    return start(JOULE_LIBEXECDIR "/joule-report", argv);
}

static int start_pmserver(int argc, char **argv)
{
    (void)argc;
    return start(JOULE_LIBEXECDIR "/joule-pmserver", argv);
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* returns the exit status */
    const char *help;
} commands[] = {
    {"probe", joule_probe_main,
     "what energy can this node measure, and is Slurm set up to use it"},
    {"ledger", joule_ledger_main,
     "what the jobs on this node have been charged, now or all the time"},
    {"cpufreq", joule_cpufreq_main,
     "frequencies of the CPUs, the steps that hold them; put them back"},
    {"regions", start_report,
     "the energy of the regions of a job's programs, from its profile"},
    {"trace", start_report,
     "power and regions of a job over time, for viewers of traces"},
    {"waits", start_report,
     "where MPI processes wait, from a trace, and what energy that costs"},
    {"pmserver", start_pmserver,
     "serve programs that are written for pmlib"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("usage: joule COMMAND [OPTION]...\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs(
        "\n'joule COMMAND --help' lists the options of a command; the manual\n"
        "is joule(1); slurm-joule(7) says what the numbers mean.\n",
        out);
}

/* An output that could not be written is no success. */
static int finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("joule: cannot write the output");
        return status ? status : 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return finish(0);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);
        return finish(0);
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish(commands[i].run(argc - 1, argv + 1));
    fprintf(stderr, "joule: there is no such command\n");
    fputs("Try 'joule --help'.\n", stderr);
    return 2;
}
