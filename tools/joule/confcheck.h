/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confcheck.h - would Slurm, as it is configured, measure a job?
 *
 * Reads slurm.conf and acct_gather.conf and leaves one finding for each thing
 * that is missing or not as it seems.
 */
#ifndef JOULE_TOOLS_CONFCHECK_H
#define JOULE_TOOLS_CONFCHECK_H

#include <stdbool.h>

#include "common/sensors/energy_config.h"
#include "tools/joule/finding.h"

struct joule_confcheck {
    char slurm_conf[JOULE_PLACE_MAX];       /* that was read; empty: none */
    char acct_gather_conf[JOULE_PLACE_MAX]; /* likewise */
    char plugin[JOULE_PLACE_MAX];      /* the energy plugin's file, or empty */
    bool ipmi;                         /* it is joule_ipmi or joule_fused */
    bool fused;                        /* it is joule_fused */
    struct joule_energy_config config; /* what the plugin will use */
    bool config_known; /* it is; otherwise these are the defaults */
    struct joule_conf_place
        period_place; /* of JouleSamplePeriod, if it is set */
};

/* Whether it is an option that sets the sample period. */
bool joule_confcheck_is_period(const struct joule_option *option);

/* Defaults, nothing read. */
void joule_confcheck_init(struct joule_confcheck *c);

/*
 * Check the first of [paths] (absolute as seen from root_fd, shorter than
 * JOULE_PLACE_MAX, NULL at the end) that exists, and the acct_gather.conf
 * beside it.  joule_confcheck_init must have been called.
 */
void joule_confcheck_run(struct joule_confcheck *c, int root_fd,
                         const char *const *paths,
                         struct joule_findings *findings);

#endif
