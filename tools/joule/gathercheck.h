/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gathercheck.h - is acct_gather.conf one that Slurm starts with?
 *
 * Slurm takes the keys that its loaded acct_gather plugins register and ends
 * slurmctld and slurmd at any other.
 */
#ifndef JOULE_TOOLS_GATHERCHECK_H
#define JOULE_TOOLS_GATHERCHECK_H

#include <stdbool.h>

#include "common/sensors/energy_config.h"
#include "tools/joule/finding.h"

struct joule_gathercheck {
    int root_fd;
    char path[JOULE_PLACE_MAX]; /* of acct_gather.conf, absolute */
    /* as in slurm.conf; "" where it is not set */
    const char *energy_type, *profile_type, *interconnect_type;
    bool found, unreadable; /* set by the check */
};

/* Fill *config from the file (a bad value leaves the default, as in the
 * plugin), say where JouleSamplePeriod stands, add findings.  A file that is
 * not there is none. */
void joule_gathercheck_run(struct joule_gathercheck *g,
                           struct joule_energy_config *config,
                           struct joule_conf_place *period_place,
                           struct joule_findings *findings);

#endif
