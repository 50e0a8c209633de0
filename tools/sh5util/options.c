/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "common/profile/worker.h"
#include "config.h"
#include "tools/sh5util/say.h"

enum {
    OPTION_FORMAT = 256,
    OPTION_READERS,
    OPTION_UNFINISHED,
};

#define IN(mode) (1u << JOULE_MODE_##mode)
#define IN_TEXT  (IN(EXTRACT) | IN(ITEM) | IN(LIST))
#define IN_FILE  (IN(MERGE) | IN(EXTRACT) | IN(ITEM))
#define IN_ALL   (IN(MERGE) | IN_TEXT)

#define TEXT(field) offsetof(struct joule_sh5_options, field)

/* Where an option has no meaning it is refused, lest a merge remove files that
 * were not meant. */
static const struct {
    const char *name;
    int letter;
    unsigned modes;
    bool has_value;
    size_t text; /* where the value goes; 0: set_option knows */
} options[] = {
    {"data", 'd', IN(ITEM), true, TEXT(item)},
    {"extract", 'E', IN_ALL, false, 0},
    {"format", OPTION_FORMAT, IN_TEXT, true, 0},
    {"help", 'h', IN_ALL, false, 0},
    {"input", 'i', IN_TEXT, true, TEXT(input)},
    {"item-extract", 'I', IN_ALL, false, 0},
    /* As in Slurm, --jobs is what -j is; the number of readers is another. */
    {"jobs", 'j', IN_ALL, true, 0},
    {"level", 'l', IN(EXTRACT), true, 0},
    {"list", 'L', IN_ALL, false, 0},
    {"node", 'N', IN_TEXT, true, TEXT(node)},
    {"output", 'o', IN_FILE, true, TEXT(output)},
    {"profiledir", 'p', IN(MERGE), true, TEXT(dir)},
    {"readers", OPTION_READERS, IN_ALL, true, 0},
    {"series", 's', IN_TEXT, true, TEXT(series)},
    {"savefiles", 'S', IN(MERGE), false, 0},
    {"unfinished", OPTION_UNFINISHED, IN(MERGE), false, 0},
    {"usage", 'U', IN_ALL, false, 0},
    {"user", 'u', IN_ALL, true, TEXT(user)},
    {"verbose", 'v', IN_ALL, false, 0},
    {"version", 'V', IN_ALL, false, 0},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static const char *const mode_names[] = {
    [JOULE_MODE_MERGE] = "a merge (none of -E, -I and -L is given)",
    [JOULE_MODE_EXTRACT] = "-E",
    [JOULE_MODE_ITEM] = "-I",
    [JOULE_MODE_LIST] = "-L",
};

static void print_usage(FILE *out)
{
    fputs("usage: sh5util [OPTION]... -j JOB[.STEP],...\n", out);
}

static void print_help(void)
{
    print_usage(stdout);
    fputs(
        "\n"
        "Without -E, -I or -L: merge the node-step files of a job.\n"
        "  -j, --jobs JOB[.STEP],...  jobs: 42, 42_3 (array), 42+1 (het job);\n"
        "                         steps: a number, batch, extern, interactive\n"
        "  -o, --output FILE      merge: ./job_JOB.h5; -E: ./extract_JOB.csv;\n"
        "                         -I: ./SERIES_ITEM_JOB.csv; \"-\": standard "
        "output\n"
        "  -p, --profiledir DIR   where node-step files are (default:\n"
        "                         ProfileHDF5Dir of acct_gather.conf)\n"
        "  -S, --savefiles        do not remove node-step files that are "
        "merged\n"
        "      --unfinished       also take what is in files that are still\n"
        "                         being written; they are not removed\n"
        "  -u, --user USER        whose job it was; root then acts as USER\n"
        "      --readers N        processes that read, 1 to 16 (default: as "
        "many\n"
        "                         as there are CPUs, up to 4)\n"
        "  -v, --verbose          say more\n"
        "\n"
        "  -E, --extract          write series of a merged file as CSV\n"
        "  -l, --level LEVEL      Node:Totals (default) or Node:TimeSeries\n"
        "  -I, --item-extract     write one item of all nodes side by side\n"
        "  -d, --data ITEM        with -I: which\n"
        "  -L, --list             print the items of a series\n"
        "  -i, --input FILE       the merged file (default: ./job_JOB.h5)\n"
        "  -N, --node NODE        of this node alone\n"
        "  -s, --series SERIES    Energy, Filesystem, Network, Task, Task_N\n"
        "                         or another that is there (default: all)\n"
        "      --format csv|json  default: csv\n"
        "\n"
        "  -h, --help   -V, --version   --usage\n"
        "\n"
        "Exit status: 0 all, 2 a part (what is missing is said), 1 nothing.\n",
        stdout);
}

static int complain(const char *text, const char *value)
{
    joule_say("%s%s", text, value);
    fputs("Try 'sh5util --help'.\n", stderr);
    return JOULE_EXIT_NOTHING;
}

static int set_mode(struct joule_sh5_options *o, enum joule_mode mode)
{
    if (o->mode != JOULE_MODE_MERGE && o->mode != mode)
        return complain("only one of -E, -I and -L can be done at a time", "");
    o->mode = mode;
    return -1;
}

static int set_level(struct joule_sh5_options *o, const char *level)
{
    if (strcasecmp(level, "Node:TimeSeries") == 0)
        o->time_series = true;
    else if (strcasecmp(level, "Node:Totals") == 0)
        o->time_series = false;
    else
        return complain("--level is Node:Totals or Node:TimeSeries, not ",
                        level);
    return -1;
}

static int set_format(struct joule_sh5_options *o, const char *format)
{
    if (strcmp(format, "json") != 0 && strcmp(format, "csv") != 0)
        return complain("--format is csv or json, not ", format);
    o->json = format[0] == 'j';
    return -1;
}

static int set_readers(struct joule_sh5_options *o, const char *text)
{
    uint64_t number;

    if (joule_parse_u64(text, 1, JOULE_WORKERS_MAX, &number) < 0)
        return complain("--readers is a number from 1 to 16, not ", text);
    o->readers = (unsigned)number;
    return -1;
}

static int set_jobs(struct joule_sh5_options *o, const char *list)
{
    struct joule_error err;

    free(o->job);
    o->job = NULL;
    if (joule_jobs_parse(list, &o->job, &o->jobs, &err) < 0)
        return complain("-j: ", err.text);
    return -1;
}

static int set_option(struct joule_sh5_options *o, int letter, const char *arg)
{
    switch (letter) {
    case 'E':
        return set_mode(o, JOULE_MODE_EXTRACT);
    case 'I':
        return set_mode(o, JOULE_MODE_ITEM);
    case 'L':
        return set_mode(o, JOULE_MODE_LIST);
    case 'j':
        return set_jobs(o, arg);
    case 'l':
        return set_level(o, arg);
    case OPTION_FORMAT:
        return set_format(o, arg);
    case OPTION_READERS:
        return set_readers(o, arg);
    case 'S':
        o->save = true;
        return -1;
    case OPTION_UNFINISHED:
        o->unfinished = true;
        return -1;
    case 'v':
        o->verbose++;
        return -1;
    case 'V':
        printf("sh5util (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
        return JOULE_EXIT_ALL;
    case 'h':
        print_help();
        return JOULE_EXIT_ALL;
    case 'U':
        print_usage(stdout);
        return JOULE_EXIT_ALL;
    }
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].letter == letter) {
            *(const char **)((char *)o + options[i].text) = arg;
            return -1;
        }
    fputs("Try 'sh5util --help'.\n", stderr);
    return JOULE_EXIT_NOTHING;
}

/* [given]: a bit for each option that was there. */
static int check_modes(enum joule_mode mode, unsigned given)
{
    char text[96];

    for (size_t i = 0; i < OPTIONS; i++) {
        if (!(given & 1u << i) || (options[i].modes & 1u << mode))
            continue;
        if (options[i].letter < 256)
            snprintf(text, sizeof(text), "%s takes no -%c", mode_names[mode],
                     options[i].letter);
        else
            snprintf(text, sizeof(text), "%s takes no --%s", mode_names[mode],
                     options[i].name);
        return complain(text, "");
    }
    return -1;
}

/* What fits together. */
static int check(const struct joule_sh5_options *o, unsigned given)
{
    int status;

    if (!o->job)
        return complain("JobID must be specified: -j JOB is required", "");
    status = check_modes(o->mode, given);
    if (status >= 0)
        return status;
    if (o->jobs > 1 && (o->input || o->output))
        return complain("-i and -o name one file, -j several jobs", "");
    if (o->mode == JOULE_MODE_ITEM && !o->item)
        return complain("-I: Must specify data option --data", "");
    if (o->mode == JOULE_MODE_ITEM && !o->series)
        return complain("-I: Must specify series option --series", "");
    if (o->mode == JOULE_MODE_MERGE && o->output && strcmp(o->output, "-") == 0)
        return complain("a merged file cannot go to standard output", "");
    return -1;
}

static unsigned default_readers(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return cpus < 1 ? 1 : cpus > 4 ? 4 : (unsigned)cpus;
}

int joule_sh5_options_parse(int argc, char **argv,
                            struct joule_sh5_options *ret)
{
    struct joule_sh5_options o = {.readers = default_readers()};
    struct option names[OPTIONS + 1] = {{0}};
    char letters[2 * OPTIONS + 1] = "", *end = letters;
    unsigned given = 0;
    int letter, status = -1;

    for (size_t i = 0; i < OPTIONS; i++) {
        names[i] = (struct option){options[i].name, options[i].has_value, NULL,
                                   options[i].letter};
        if (options[i].letter < 256)
            end += sprintf(end, options[i].has_value ? "%c:" : "%c",
                           options[i].letter);
    }
    while (status < 0 &&
           (letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        status = set_option(&o, letter, optarg);
        for (size_t i = 0; i < OPTIONS; i++)
            given |= options[i].letter == letter ? 1u << i : 0;
    }
    if (status < 0)
        status = optind < argc ? complain("what is meant by ", argv[optind])
                               : check(&o, given);
    if (status >= 0) {
        free(o.job);
        o.job = NULL;
    }
    *ret = o;
    return status;
}
