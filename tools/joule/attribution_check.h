/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attribution_check.h - is energy divided among jobs as the admin may expect:
 * what the configuration says of it, and what the ledger does.
 */
#ifndef JOULE_JOULE_ATTRIBUTION_CHECK_H
#define JOULE_JOULE_ATTRIBUTION_CHECK_H

#include <stdbool.h>

#include "common/node/ledger.h"
#include "common/sensors/energy_config.h"
#include "tools/joule/finding.h"
#include "tools/joule/slurmconf.h"

struct joule_attribution_check {
    bool present;             /* there is a ledger, and something in it */
    struct joule_error error; /* otherwise: why not */
    struct joule_ledger_totals totals;
    size_t rows, jobs;
    bool how_known;
    enum joule_attribution how; /* by which slurmd divides now */
};

/* [conf] is slurm.conf, [config] what acct_gather.conf says. */
void joule_attribution_check_conf(const struct joule_slurmconf *conf,
                                  const struct joule_energy_config *config,
                                  struct joule_findings *findings);

/* The whole struct is written.  [config] NULL: it was not looked at.  That
 * there is no ledger is no finding: there is one of the node total then. */
void joule_attribution_check_ledger(struct joule_attribution_check *s,
                                    int root_fd, const char *node,
                                    const struct joule_energy_config *config,
                                    struct joule_findings *findings);

#endif
