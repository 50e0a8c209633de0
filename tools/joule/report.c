/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/report.h"

#include <inttypes.h>
#include <stdarg.h>

#include "tools/joule/text.h"

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

const char *joule_report_watts(uint64_t mw, char buf[32])
{
    if (mw == JOULE_MW_UNKNOWN)
        snprintf(buf, 32, "unknown");
    else
        snprintf(buf, 32, "%" PRIu64 ".%03u W", mw / 1000,
                 (unsigned)(mw % 1000));
    return buf;
}

void joule_report_put(FILE *out, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    joule_text_put(out, line);
}

void joule_report_row(FILE *out, const char *name, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(out, "  %-18s ", name);
    joule_text_put(out, line);
    putc('\n', out);
}
