/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpufreq_options.h - what stands behind the plugin in plugstack.conf.
 */
#ifndef JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_OPTIONS_H
#define JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_OPTIONS_H

#include "common/base/option.h"

#define JOULE_SPANK_PATH_MAX 1023

enum joule_spank_limits { JOULE_LIMITS_HARDWARE = 1, JOULE_LIMITS_SITE = 2 };

struct joule_spank_options {
    bool core;       /* Slurm's own code sets frequencies, too */
    bool batch;      /* batch scripts and interactive steps as well */
    bool strict;     /* what cannot be fulfilled fails the step */
    unsigned limits; /* enum joule_spank_limits */
    int64_t lock_wait_ns;
    int64_t keeper_period_ns;
    char keeper[JOULE_SPANK_PATH_MAX + 1]; /* the program that slurmd starts */
};

extern const struct joule_option joule_spank_option_table[];

/*
 * The defaults, then KEY=VALUE of argv.  A bad one leaves its default in
 * force; the first is told: -1 with errno EINVAL or ERANGE and a sentence.
 */
int joule_spank_options_parse(struct joule_spank_options *ret, int argc,
                              char *const *argv, struct joule_error *err);

#endif
