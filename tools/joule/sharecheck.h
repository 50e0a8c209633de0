/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sharecheck.h - is energy divided among jobs as the admin may expect: what
 * the configuration says of it, and what the ledger does.
 */
#ifndef JOULE_TOOLS_SHARECHECK_H
#define JOULE_TOOLS_SHARECHECK_H

#include <stdbool.h>

#include "common/board/ledger.h"
#include "common/sampler/config.h"
#include "tools/joule/finding.h"
#include "tools/joule/slurmconf.h"

struct joule_sharecheck {
    bool present;             /* there is a ledger, and something in it */
    struct joule_error error; /* otherwise: why not */
    struct joule_ledger_totals totals;
    size_t rows, jobs;
    bool how_known;
    enum joule_attribution how; /* by which slurmd divides now */
};

/* [conf] is slurm.conf, [config] what acct_gather.conf says. */
void joule_sharecheck_conf(const struct joule_slurmconf *conf,
                           const struct joule_config *config,
                           struct joule_findings *findings);

/* The whole struct is written.  [config] NULL: it was not looked at.  That
 * there is no ledger is no finding: there is one of the board then. */
void joule_sharecheck_ledger(struct joule_sharecheck *s, int root_fd,
                             const char *node,
                             const struct joule_config *config,
                             struct joule_findings *findings);

#endif
