/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe_sensor.h - what the energy counters of this machine are and what they
 * say over a stretch of time.
 */
#ifndef JOULE_JOULE_PROBE_SENSOR_H
#define JOULE_JOULE_PROBE_SENSOR_H

#include <sys/types.h>

#include "common/base/clock.h"
#include "common/energy/counter.h"
#include "common/energy/node_total.h"
#include "common/sensors/rapl.h"
#include "tools/joule/finding.h"

/* Who asks, and may they? */
struct joule_access {
    uid_t euid;
    char msr[64];      /* "/dev/cpu/0/msr", of the lowest online CPU */
    int msr_error;     /* 0: it can be opened; an errno value */
    char lockdown[32]; /* the kernel's lockdown mode, or empty: unknown */
};

struct joule_probe_sensor_domain {
    struct joule_domain domain;
    enum joule_counter_state state;
    uint32_t errors;   /* readings that failed */
    uint64_t power_mw; /* mean over measured_ns */
};

struct joule_probe_sensor {
    struct joule_rapl_info info; /* without counters: the CPU alone */
    bool opened;                 /* otherwise [error] says why not */
    struct joule_error error;
    bool cores_left_out; /* the machine has more cores than there is room */
    size_t count;
    struct joule_probe_sensor_domain domains[JOULE_DOMAINS_MAX];
    int64_t measured_ns;
    uint64_t node_mw; /* of the domains in the total */
    bool moves;       /* the total is a measurement */
};

/* The whole struct is written; trouble is in the facts. */
void joule_access_collect(struct joule_access *a, int root_fd);

/*
 * Open the counters (the node's total is made of [total_kinds]) and follow
 * them for [measure_ns].  Sleeps that long if there are any.  The whole
 * struct is written; trouble becomes a finding as well.
 */
void joule_probe_sensor_collect(struct joule_probe_sensor *s, int root_fd,
                                const struct joule_clock *clock,
                                unsigned total_kinds, int64_t measure_ns,
                                struct joule_findings *findings);

/* Seconds in which the counter wraps at [mw], or 0: never. */
double joule_probe_sensor_wrap_s(const struct joule_domain *domain,
                                 uint64_t mw);

/* "moving", "still", "stopped", "unreadable". */
const char *joule_probe_state_name(enum joule_counter_state state);

#endif
