/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqoptions.h - the command line of freqsim.
 */
#ifndef SIM_FREQOPTIONS_H
#define SIM_FREQOPTIONS_H

#include "tests/sim/freq.h"

#define SIM_FREQ_TEXT 1023

struct sim_freqsim_options {
    enum { SIM_FREQ_SERVE, SIM_FREQ_ASK, SIM_FREQ_HELP } mode;
    const char *dir;
    const char *command; /* ASK */
    struct sim_freq_options freq;

    /* As they are written; the strings of [freq] point here. */
    unsigned driver, governor;
    uint64_t min_khz, max_khz, nominal_khz, per_policy, load_pct;
    char cpus[SIM_FREQ_TEXT + 1], table[SIM_FREQ_TEXT + 1];
    char base[SIM_FREQ_TEXT + 1], nodesim[SIM_FREQ_TEXT + 1];
    char log[SIM_FREQ_TEXT + 1];
};

/* Strings point into argv and [opt].  0, or -1 with errno EINVAL or ERANGE
 * and a sentence. */
int sim_freqsim_options_parse(struct sim_freqsim_options *opt, int argc,
                              char **argv, struct joule_error *err);

/* To standard output. */
void sim_freqsim_options_help(void);

#endif
