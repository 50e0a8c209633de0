/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.h - words that both reports of `joule probe` use.
 */
#ifndef JOULE_TOOLS_REPORT_H
#define JOULE_TOOLS_REPORT_H

#include "tools/joule/probe.h"

/* "package", "dram", ... */
const char *joule_report_kind(enum joule_domain_kind kind);

/* "moving", "still", "stopped", "unreadable". */
const char *joule_report_state(enum joule_counter_state state);

#endif
