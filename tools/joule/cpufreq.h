/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpufreq.h - `joule cpufreq`: the frequency policies of this node, who holds
 * them, and what they were before; and to put them back by hand.
 */
#ifndef JOULE_TOOLS_CPUFREQ_H
#define JOULE_TOOLS_CPUFREQ_H

#include <stdio.h>

#include "common/cpufreq/control.h"

/* A policy and what the journal says of it. */
struct joule_freq_row {
    struct joule_cpufreq_policy policy;
    struct joule_error error; /* why it could not be read; else empty */
    bool is_recorded;
    struct joule_entry entry;
};

struct joule_freq_view {
    struct joule_freq_row *row;
    size_t row_count;
    struct joule_journal journal;
    int journal_errnum; /* 0: it was read, or there is none */
    struct joule_error journal_error;
};

/* Returns 0, or -1 with a sentence; the caller clears it in any case. */
int joule_freq_view_collect(struct joule_freq_view *v, int root_fd,
                            struct joule_error *err);
void joule_freq_view_clear(struct joule_freq_view *v);

/* Policies that nobody holds and that are not back yet. */
size_t joule_freq_view_loose(const struct joule_freq_view *v);

/* cpufreq_report.c */
void joule_freq_print_text(FILE *out, const struct joule_freq_view *v);
void joule_freq_print_json(FILE *out, const struct joule_freq_view *v);

/* The subcommand; argv[0] is its name.  Returns the exit status. */
int joule_cpufreq_main(int argc, char **argv);

#endif
