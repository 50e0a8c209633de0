/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe.h - `joule probe`: what can this node measure, is Slurm set up to use
 * it.  Facts are collected into one plain struct and then printed.
 *
 * The struct holds the options of acct_gather.conf, and the BMC's password may
 * be one of them: wipe it.
 */
#ifndef JOULE_TOOLS_PROBE_H
#define JOULE_TOOLS_PROBE_H

#include <stdio.h>

#include "tools/joule/bmc.h"
#include "tools/joule/confcheck.h"
#include "tools/joule/finding.h"
#include "tools/joule/node.h"
#include "tools/joule/probe_sensor.h"
#include "tools/joule/attribution_check.h"

struct joule_probe_options {
    const char *root;   /* NULL: "/" */
    const char *conf;   /* slurm.conf or its directory; NULL: as Slurm does */
    const char *node;   /* NodeName, or NULL */
    int64_t measure_ns; /* 0: as long as it takes to tell something */
    bool no_conf;
    bool ipmi; /* ask the BMC, whatever plugin is configured */
    /* KEY=VALUE as in acct_gather.conf; they count more than that file */
    const char *const *settings;
    size_t setting_count;
    bool json;
};

struct joule_probe {
    struct joule_access access;
    struct joule_probe_sensor sensor;
    bool ipmi;  /* the node is, or would be, measured by its BMC */
    bool fused; /* and by its counters */
    struct joule_bmc bmc;
    struct joule_node node;
    struct joule_attribution_check share;
    bool conf_checked;
    struct joule_confcheck conf;
    struct joule_findings findings;
};

/*
 * Returns 0 and fills *p, or -1 with errno and a sentence if there is nothing
 * to look at (the root directory, a path that is too long, a setting that is
 * none).
 */
int joule_probe_collect(struct joule_probe *p,
                        const struct joule_probe_options *opt,
                        const struct joule_clock *clock,
                        struct joule_error *err);

/* A job on this node would be measured. */
bool joule_probe_good(const struct joule_probe *p);

/* report_text.c, report_json.c */
void joule_probe_print_text(FILE *out, const struct joule_probe *p);
void joule_probe_print_json(FILE *out, const struct joule_probe *p);

#endif
