/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule_fused: the energy of the whole node, as much as its
 * BMC says and when the RAPL counters say.
 */
#include <errno.h>

#include "common/energy/node_total.h"
#include "common/sensors/bmc_open.h"
#include "common/sensors/fused_sensor.h"
#include "common/sensors/rapl.h"
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from BMC and RAPL together";
const char plugin_type[] = "acct_gather_energy/joule_fused";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* BMCs have a new value once a second at most. */
#define BMC_PERIOD_NS JOULE_NS_PER_S

static struct joule_sensor *
sampler_open(int root_fd, const struct joule_energy_config *config,
             const char *node, struct joule_error *err)
{
    struct joule_fused_sensor_options opt = {
        .clock = &joule_clock_system,
        .bmc_period_ns = config->sample_period_ns > BMC_PERIOD_NS
                             ? config->sample_period_ns
                             : BMC_PERIOD_NS,
    };
    struct joule_rapl_options rapl = {.total_kinds = config->rapl_total_kinds};
    struct joule_sensor *source = NULL;
    struct joule_error missing;

    opt.gap_ns = joule_power_gap_ns(opt.bmc_period_ns);
    opt.bmc = joule_bmc_open(root_fd, config, node, opt.bmc_period_ns, err);
    if (!opt.bmc)
        return NULL;
    opt.counters = joule_rapl_create(root_fd, &rapl, &missing);
    if (!opt.counters)
        slurm_error("%s: the energy of the node is that of its BMC alone: %s",
                    joule_energy_driver.name, missing.text);
    source = joule_fused_sensor_create(&opt, err);
    if (source)
        return source;
    joule_sensor_destroy(opt.counters);
    joule_sensor_destroy(opt.bmc);
    return NULL;
}

static struct joule_sensor *fused_open(int root_fd,
                                       const struct joule_energy_config *config,
                                       const char *node,
                                       enum joule_energy_role role,
                                       struct joule_error *err)
{
    return role == JOULE_ENERGY_SAMPLER
               ? sampler_open(root_fd, config, node, err)
               : joule_fused_sensor_follower_open(root_fd, config, err);
}

const struct joule_energy_driver joule_energy_driver = {
    .name = "joule_fused",
    .open = fused_open,
};
