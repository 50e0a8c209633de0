/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule_rapl: the energy of the sockets and their memory,
 * from the RAPL counters through the MSR device.
 */
#include <stdio.h>

#include "common/sensors/rapl.h"
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from RAPL counters";
const char plugin_type[] = "acct_gather_energy/joule_rapl";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static struct joule_sensor *rapl_open(int root_fd,
                                      const struct joule_energy_config *config,
                                      const char *node,
                                      enum joule_energy_role role,
                                      struct joule_error *err)
{
    struct joule_rapl_options opt = {
        .total_kinds = config->rapl_total_kinds,
    };

    /* Whoever they are, the counters are the host's. */
    (void)node;
    (void)role;
    return joule_rapl_create(root_fd, &opt, err);
}

static int rapl_remark(const struct joule_sensor *source, char *buf,
                       size_t size)
{
    const struct joule_rapl_info *info = joule_rapl_info(source);

    if (!info->filtering)
        return 0;
    snprintf(buf, size,
             "RAPL energy filtering is on (MSR 0xBC bit 0, switched on with "
             "SGX): readings carry noise that averages out over seconds");
    return 1;
}

const struct joule_energy_driver joule_energy_driver = {
    .name = "joule_rapl",
    .open = rapl_open,
    .remark = rapl_remark,
};
