/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bmc.h - what the BMC of this node says about power when it is asked as
 * acct_gather_energy/joule_ipmi asks it: through the reader process, with the
 * same options.
 *
 * No password gets in here.
 */
#ifndef JOULE_TOOLS_BMC_H
#define JOULE_TOOLS_BMC_H

#include <limits.h>
#include <sys/types.h>

#include "common/base/clock.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/ipmi_wire.h"
#include "common/sensors/sensor.h"
#include "tools/joule/finding.h"

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

/*
 * Ask for [measure_ns].  [node] is the NodeName, root_fd is where the
 * credentials file is looked up.  [trust]: a reader that the options name is
 * the user's own choice, not the configuration's.  The whole struct is
 * written; trouble is in the facts.
 */
void joule_bmc_collect(struct joule_bmc *bmc, int root_fd,
                       const struct joule_clock *clock,
                       const struct joule_energy_config *config,
                       const char *node, bool trust, int64_t measure_ns);

/* Whether the sensor list->found[i] is one of those that are read. */
bool joule_bmc_is_used(const struct joule_bmc *bmc, uint32_t i);

/* bmc_judge.c: what is to be said about it. */
void joule_bmc_judge(const struct joule_bmc *bmc,
                     const struct joule_energy_config *config,
                     struct joule_findings *findings);

/* "LAN_2_0", "in-band", ... */
const char *joule_bmc_driver_name(enum joule_ipmi_driver driver);

/* "measured", "unavailable", ... */
const char *joule_bmc_status_name(enum joule_power_status status);

#endif
