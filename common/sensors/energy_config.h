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

    /* Whose energy it is: doc/architecture.md. */
    unsigned attribution;   /* JouleAttribution: enum joule_attribution */
    uint64_t idle_w;        /* JouleIdleWatts, of the node; 0: learned */
    int64_t user_period_ns; /* JouleUserPeriod: users see new numbers of their
                               own no more often */
    unsigned profile_node;  /* JouleProfileNode: enum joule_profile_node */

    /* The BMC: texts as the admin wrote them, checked.
     * joule_ipmi_config_make makes of them what the reader needs. */
    char ipmi_host[JOULE_IPMI_HOST_SIZE]; /* a pattern; empty: in-band */
    char ipmi_credentials_file[JOULE_CONFIG_PATH_SIZE];
    char ipmi_reader[JOULE_CONFIG_PATH_SIZE]; /* empty: the one installed */
    char ipmi_sensors[JOULE_CONFIG_SENSORS_SIZE];
    char ipmi_username[JOULE_IPMI_USER_SIZE];
    char ipmi_password[JOULE_IPMI_PASSWORD_SIZE];
    char ipmi_device[256];
    char ipmi_workarounds[JOULE_CONFIG_WORDS_SIZE];
    unsigned ipmi_driver;         /* enum joule_ipmi_driver */
    unsigned ipmi_protocol;       /* JOULE_IPMI_DRIVER_LAN or _LAN_2_0 */
    unsigned ipmi_privilege;      /* as in struct joule_ipmi_config */
    unsigned ipmi_authentication; /* as in struct joule_ipmi_config */
    unsigned ipmi_variable;       /* power, nothing else */
    uint64_t ipmi_cipher_suite;
    uint64_t ipmi_session_timeout_ms;
    uint64_t ipmi_retransmission_timeout_ms;
    uint64_t ipmi_driver_address;
    uint64_t ipmi_register_spacing;
    bool ipmi_no_probe;
    bool ipmi_ignore_inactive; /* JouleIPMIIgnoreInactive */
    bool ipmi_ignore_scanning; /* EnergyIPMIIgnoreScanningDisabled */
    bool ipmi_adjust;          /* EnergyIPMICalcAdjustment */
    int64_t ipmi_connect_ns;   /* EnergyIPMITimeout */
    int64_t ipmi_answer_ns;    /* JouleIPMIAnswerTimeout */
};

/* Ends with a NULL key.  Offsets are into struct joule_energy_config. */
extern const struct joule_option joule_energy_config_options[];

/*
 * What the reader process needs: sensors, host and work-arounds taken apart.
 * [hostname] and [node] are for the patterns of the host.  Of a credentials
 * file below root_fd is seen whether it may be opened; the reader reads it.  -1
 * with errno and a sentence that names the option; on failure *ret is wiped. It
 * may hold the password: wipe it.
 */
int joule_ipmi_config_make(const struct joule_energy_config *config,
                           int root_fd, const char *hostname, const char *node,
                           struct joule_ipmi_config *ret,
                           struct joule_error *err);

#endif
