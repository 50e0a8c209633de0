/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe.h - `joule probe`: what can this node measure, is Slurm set up to use
 * it.  Facts are collected into plain structs, one a part, and then printed.
 *
 * The configuration's struct holds the options of acct_gather.conf, and the
 * BMC's password may be one of them: wipe it.
 */
#ifndef JOULE_TOOLS_PROBE_H
#define JOULE_TOOLS_PROBE_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/base/clock.h"
#include "common/energy/counter.h"
#include "common/energy/node_total.h"
#include "common/node/ledger.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/ipmi_wire.h"
#include "common/sensors/rapl.h"
#include "common/sensors/sensor.h"
#include "tools/joule/finding.h"
#include "tools/joule/ledger_command.h"
#include "tools/joule/slurmconf.h"

struct joule_probe;

/* ---- probe_sensor.c: the energy counters ---- */

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
    const char *way; /* how the counters are read: struct joule_counters */
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

/* Open the counters and follow them for [measure_ns].  Sleeps that long if
 * there are any.  Trouble becomes a finding as well. */
void joule_probe_sensor_collect(struct joule_probe *p, int64_t measure_ns,
                                struct joule_findings *findings);

/* Seconds in which the counter wraps at [mw], or 0: never. */
double joule_probe_sensor_wrap_s(const struct joule_domain *domain,
                                 uint64_t mw);

/* "moving", "still", "stopped", "unreadable". */
const char *joule_probe_state_name(enum joule_counter_state state);

/* ---- bmc.c: the BMC, asked as acct_gather_energy/joule_ipmi asks it ----
 *
 * Through the reader process, with the same options.  No password gets in.
 */

/* What a label of the configuration read. */
struct joule_bmc_label {
    char name[JOULE_IPMI_LABEL_SIZE];
    uint64_t readings[JOULE_POWER_STATUS_COUNT]; /* by what they were */
    double min_w, max_w, last_w, sum_w;          /* of those that are OK */
};

struct joule_bmc_sensor {
    uint32_t label; /* index into labels */
    struct joule_wire_found found;
};

struct joule_bmc {
    /* the configuration */
    bool in_order; /* otherwise [error] says what is not */
    bool lan;
    enum joule_ipmi_driver driver;
    char host[JOULE_IPMI_HOST_SIZE]; /* LAN */
    char program[PATH_MAX];          /* the reader */
    /* permissions */
    uid_t euid;
    char device[JOULE_CONFIG_PATH_SIZE]; /* in-band; empty: none is needed */
    int device_error;                    /* 0: it can be opened; or errno */
    bool has_credentials;                /* LAN: a user or a password */
    /* the connection */
    bool connected;
    int64_t connect_ns;       /* until the first answer */
    struct joule_error error; /* of the last request that failed */
    struct joule_error remark;
    uint32_t label_count, sensor_count;
    struct joule_bmc_label labels[JOULE_IPMI_LABELS_MAX];
    struct joule_bmc_sensor sensors[JOULE_IPMI_SENSORS_MAX];
    /* readings */
    int64_t measured_ns;
    uint64_t readings, failures;
    int64_t latency_ns; /* median; 0: no reading */
    /* The power of the first label, as long as the BMC is asked quickly. */
    uint64_t changes;
    int64_t refresh_ns; /* shortest time between two changes; 0: unknown */
    bool measures;      /* there was a measurement of the first label */
    /* every sensor in watts */
    bool listed; /* otherwise [list_error] says why not */
    struct joule_error list_error;
    struct joule_wire_reply list;
};

/* How long there is between readings while the BMC is asked quickly. */
#define JOULE_BMC_PAUSE_NS (20 * JOULE_NS_PER_MS)

/* Ask for [measure_ns].  Trouble is in the facts. */
void joule_bmc_collect(struct joule_probe *p, int64_t measure_ns);

/* Whether the sensor list->found[i] is one of those that are read. */
bool joule_bmc_is_used(const struct joule_bmc *bmc, uint32_t i);

/* bmc_judge.c: what is to be said about it. */
void joule_bmc_judge(struct joule_probe *p);

/* "LAN_2_0", "in-band", ... */
const char *joule_bmc_driver_name(enum joule_ipmi_driver driver);

/* "measured", "unavailable", ... */
const char *joule_bmc_status_name(enum joule_power_status status);

/* ---- confcheck.c: would Slurm, as it is configured, measure a job? ---- */

struct joule_confcheck {
    char slurm_conf[JOULE_PLACE_MAX];       /* that was read; empty: none */
    char acct_gather_conf[JOULE_PLACE_MAX]; /* likewise */
    char plugin[JOULE_PLACE_MAX];      /* the energy plugin's file, or empty */
    bool ipmi;                         /* it is joule_ipmi or joule_fused */
    bool fused;                        /* it is joule_fused */
    bool chooses;                      /* it is joule */
    struct joule_energy_config config; /* what the plugin will use */
    bool config_known; /* it is; otherwise these are the defaults */
    struct joule_conf_place
        period_place; /* of JouleSamplePeriod, if it is set */
};

/* Whether it is an option that sets the sample period. */
bool joule_confcheck_is_period(const struct joule_option *option);

/* Defaults, nothing read. */
void joule_confcheck_init(struct joule_confcheck *c);

/*
 * Check the first of [paths] (absolute as seen from root_fd, shorter than
 * JOULE_PLACE_MAX, NULL at the end) that exists, and the acct_gather.conf
 * beside it.  joule_confcheck_init must have been called.
 */
void joule_confcheck_run(struct joule_confcheck *c, int root_fd,
                         const char *const *paths,
                         struct joule_findings *findings);

/* ---- node.c: which node this is, and what its sampler has published ---- */

struct joule_node {
    char name[JOULE_NODE_MAX];
    bool present;             /* there is a sample */
    struct joule_error error; /* otherwise: why not */
    bool fresh;               /* the last sample is at most 3 periods old */
    int64_t age_ns;
    uint64_t wraps, errors; /* of all domains together */
    struct joule_snapshot snapshot;
    struct joule_sensor_state state; /* of the sensor */
    bool is_power;                   /* it has a meter */
    bool is_fused; /* and counters, and what it has learned makes sense */
};

/* [option] is the NodeName, or NULL.  That slurmd has not run yet is a note. */
void joule_node_collect(struct joule_probe *p, const char *option);

/* ---- attribution_check.c: is energy divided as the admin may expect? ---- */

struct joule_attribution_check {
    bool present;             /* there is a ledger, and something in it */
    struct joule_error error; /* otherwise: why not */
    struct joule_ledger_totals totals;
    size_t rows, jobs;
};

/* [conf] is slurm.conf, [config] what acct_gather.conf says. */
void joule_attribution_check_conf(const struct joule_slurmconf *conf,
                                  const struct joule_energy_config *config,
                                  struct joule_findings *findings);

/* That there is no ledger is no finding: there is one of the node total. */
void joule_attribution_check_ledger(struct joule_probe *p);

/* ---- all of it ---- */

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
    int root_fd, conf_fd; /* of sensors and /run; of paths in configurations */
    const struct joule_clock *clock;
    struct joule_access access;
    struct joule_probe_sensor sensor;
    bool ipmi;  /* the node is, or would be, measured by its BMC */
    bool fused; /* and by its counters */
    bool cray;  /* by those of a Cray blade */
    bool hwmon; /* by the power meters of hwmon */
    struct joule_error choice; /* of acct_gather_energy/joule: why; or empty */
    struct joule_bmc bmc;
    struct joule_node node;
    struct joule_attribution_check share;
    bool conf_checked;
    struct joule_confcheck conf;
    bool own_reader; /* JouleIPMIReader is of the command line: not doubted */
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
