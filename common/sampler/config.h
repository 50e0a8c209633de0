/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config.h - what an admin may set in acct_gather.conf for measuring.
 *
 * One table for the plugins, `joule probe` and the man page.
 */
#ifndef JOULE_SAMPLER_CONFIG_H
#define JOULE_SAMPLER_CONFIG_H

#include "common/base/option.h"

struct joule_config {
    int64_t sample_period_ns;  /* JouleSamplePeriod: 10 ms to 60 s, 1 s */
    unsigned rapl_total_kinds; /* JouleRAPLDomains: JOULE_DOMAIN_BIT()s */
};

/* Ends with a NULL key.  Offsets are into struct joule_config. */
extern const struct joule_option joule_config_options[];

#endif
