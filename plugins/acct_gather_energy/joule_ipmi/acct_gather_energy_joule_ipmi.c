/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule_ipmi: the energy of the whole node, from the power
 * that its BMC measures.  The BMC is read by a process of its own, which the
 * sampler in slurmd starts; FreeIPMI is not in here.
 */
#include "common/sensors/bmc_open.h"
#include "common/sensors/ipmi_helper.h"
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from the BMC's power";
const char plugin_type[] = "acct_gather_energy/joule_ipmi";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* A step needs to know the labels only, and no password. */
static struct joule_sensor *
follower_open(const struct joule_energy_config *config, struct joule_error *err)
{
    struct joule_ipmi_config ipmi;
    struct joule_sensor *source;

    if (joule_ipmi_sensors_parse(config->ipmi_sensors, &ipmi, err) < 0)
        return NULL;
    source = joule_ipmi_helper_labels_create(&ipmi);
    if (!source)
        joule_error_set(err, ENOMEM, "out of memory");
    return source;
}

static struct joule_sensor *ipmi_open(int root_fd,
                                      const struct joule_energy_config *config,
                                      const char *node,
                                      enum joule_energy_role role,
                                      struct joule_error *err)
{
    return role == JOULE_ENERGY_SAMPLER
               ? joule_bmc_open(root_fd, config, node, config->sample_period_ns,
                                err)
               : follower_open(config, err);
}

static bool ipmi_extends(const struct joule_energy_config *config)
{
    return config->ipmi_adjust;
}

const struct joule_energy_driver joule_energy_driver = {
    .name = "joule_ipmi",
    .open = ipmi_open,
    .extends = ipmi_extends,
};
