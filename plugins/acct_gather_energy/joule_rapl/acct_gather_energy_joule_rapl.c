/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule_rapl: the energy of the sockets and their memory,
 * from the RAPL counters through the MSR device.
 */
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from RAPL counters";
const char plugin_type[] = "acct_gather_energy/joule_rapl";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

const char *const joule_energy_plugin = "joule_rapl";
