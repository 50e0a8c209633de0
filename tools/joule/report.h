/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.h - words that both reports of `joule probe` use.
 */
#ifndef JOULE_TOOLS_REPORT_H
#define JOULE_TOOLS_REPORT_H

#include "tools/joule/json.h"
#include "tools/joule/probe.h"

/* "package", "dram", ... */
const char *joule_report_kind(enum joule_domain_kind kind);

/* "moving", "still", "stopped", "unreadable". */
const char *joule_report_state(enum joule_counter_state state);

/* "50.123 W", or "unknown". */
const char *joule_report_watts(uint64_t mw, char buf[32]);

/* All text goes through these two: it may quote files.  A row has a name of
 * its own and ends the line. */
void joule_report_put(FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void joule_report_row(FILE *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* report_bmc.c: the BMC's part of each report. */
void joule_report_bmc_text(FILE *out, const struct joule_bmc *bmc,
                           const struct joule_energy_config *config);
void joule_report_bmc_json(struct joule_json *j, const struct joule_bmc *bmc,
                           const struct joule_energy_config *config);

#endif
