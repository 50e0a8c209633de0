/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule: the energy of the node, by what the node has
 * (common/sensors/sensor_table.h).
 */
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from what the node has";
const char plugin_type[] = "acct_gather_energy/joule";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

const char *const joule_energy_plugin = "joule";
