/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the command line of sh5util.
 */
#ifndef JOULE_SH5UTIL_OPTIONS_H
#define JOULE_SH5UTIL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/sh5util/jobid.h"

enum joule_mode {
    JOULE_MODE_MERGE,
    JOULE_MODE_EXTRACT,
    JOULE_MODE_ITEM,
    JOULE_MODE_LIST,
};

/* Exit status. */
enum {
    JOULE_EXIT_ALL = 0,
    JOULE_EXIT_NOTHING = 1, /* or a wrong command line */
    JOULE_EXIT_PART = 2,
};

struct joule_sh5_options {
    enum joule_mode mode;
    struct joule_job *job;
    size_t jobs;
    const char *input, *output; /* NULL: the default */
    const char *node, *series, *item;
    const char *dir, *user; /* NULL: from the configuration, who runs it; of a
                               merge, set by main */
    bool time_series;       /* --level=Node:TimeSeries */
    bool save, unfinished, json;
    unsigned verbose, readers;
};

/*
 * Parse; [ret]->job is the caller's to free, all else points into argv.
 * Returns -1 to go on, or the exit status: help was printed, or what is wrong
 * was said on stderr.
 */
int joule_sh5_options_parse(int argc, char **argv,
                            struct joule_sh5_options *ret);

#endif
