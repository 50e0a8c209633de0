/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy_config.h - what an admin may set in acct_gather.conf for measuring.
 *
 * One table for all energy plugins, `joule probe` and the man page: whoever
 * changes from one plugin to another need not touch the file.  It has the keys
 * of Slurm's own IPMI plugin too (acct_gather.conf(5)), and those of Slurm's
 * that no manual page names.
 *
 * The struct may hold the BMC's password: wipe it.
 */
#ifndef JOULE_SENSORS_ENERGY_CONFIG_H
#define JOULE_SENSORS_ENERGY_CONFIG_H

#include "common/base/option.h"
#include "common/sensors/ipmi_config.h"

#define JOULE_CONFIG_SENSORS_SIZE 1024
#define JOULE_CONFIG_PATH_SIZE    1024
#define JOULE_CONFIG_WORDS_SIZE   256

/* What acct_gather_energy/joule may take. */
enum joule_use {
    JOULE_USE_CRAY = 1,
    JOULE_USE_FUSED = 2,
    JOULE_USE_IPMI = 4,
    JOULE_USE_RAPL = 8,
    JOULE_USE_HWMON = 16,
    JOULE_USE_ALL = 31,
};

/* Whose profiles show the power of the whole node. */
enum joule_profile_node {
    JOULE_PROFILE_NODE_ALONE,  /* those of jobs that have it alone */
    JOULE_PROFILE_NODE_ALWAYS, /* all */
};

struct joule_energy_config {
    /* JouleSamplePeriod: 10 ms to 60 s, 1 s; else EnergyIPMIFrequency */
    int64_t sample_period_ns;
    bool sample_period_given;  /* JouleSamplePeriod was set */
    unsigned rapl_total_kinds; /* JouleRAPLDomains: JOULE_DOMAIN_BIT()s */
    unsigned sensors;          /* JouleSensors: enum joule_use */
    unsigned cpu_way;          /* JouleCPUCounters: enum joule_cpu_way */

    /* Whose energy it is: doc/architecture.md. */
    unsigned attribution;   /* JouleAttribution: enum joule_attribution */
    uint64_t idle_w;        /* JouleIdleWatts, of the node; 0: learned */
    int64_t user_period_ns; /* JouleUserPeriod: users see new numbers of their
                               own no more often */
    unsigned profile_node;  /* JouleProfileNode: enum joule_profile_node */

    /* The BMC: what needs no more than the row of its option, and texts as the
     * admin wrote them, checked. */
    struct joule_ipmi_config ipmi;
    char ipmi_host[JOULE_IPMI_HOST_SIZE]; /* a pattern; empty: in-band */
    char ipmi_credentials_file[JOULE_CONFIG_PATH_SIZE];
    char ipmi_reader[JOULE_CONFIG_PATH_SIZE]; /* empty: the one installed */
    char ipmi_sensors[JOULE_CONFIG_SENSORS_SIZE];
    char ipmi_workarounds[JOULE_CONFIG_WORDS_SIZE];
    unsigned ipmi_protocol; /* JOULE_IPMI_DRIVER_LAN or _LAN_2_0 */
    unsigned ipmi_variable; /* power, nothing else */
    bool ipmi_adjust;       /* EnergyIPMICalcAdjustment */
};

/* Ends with a NULL key.  Offsets are into struct joule_energy_config. */
extern const struct joule_option joule_energy_config_options[];

/*
 * What the reader process needs: config->ipmi with sensors, host and
 * work-arounds.  [hostname] and [node] are for the patterns of the host.  Of a
 * credentials file below root_fd is seen whether it may be opened; the reader
 * reads it.  -1 with errno and a sentence that names the option; on failure
 * *ret is wiped.  It may hold the password: wipe it.
 */
int joule_ipmi_config_make(const struct joule_energy_config *config,
                           int root_fd, const char *hostname, const char *node,
                           struct joule_ipmi_config *ret,
                           struct joule_error *err);

#endif
