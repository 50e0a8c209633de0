/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/report.h"

const char *joule_report_kind(enum joule_domain_kind kind)
{
    static const char *const names[] = {
        [JOULE_DOMAIN_PACKAGE] = "package", [JOULE_DOMAIN_DRAM] = "dram",
        [JOULE_DOMAIN_PP0] = "pp0",         [JOULE_DOMAIN_PP1] = "pp1",
        [JOULE_DOMAIN_PSYS] = "psys",       [JOULE_DOMAIN_CORE] = "core",
    };

    return names[kind];
}

const char *joule_report_state(enum joule_counter_state state)
{
    static const char *const names[] = {
        [JOULE_COUNTER_NEW] = "unreadable",
        [JOULE_COUNTER_STILL] = "still",
        [JOULE_COUNTER_MOVING] = "moving",
        [JOULE_COUNTER_FROZEN] = "stopped",
    };

    return names[state];
}
