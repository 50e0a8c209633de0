/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_energy/joule_ipmi: the energy of the whole node, from the power
 * that its BMC measures.  The BMC is read by a process of its own, which the
 * sampler in slurmd starts; FreeIPMI is not in here.
 */
#include "plugins/slurm_abi/energy.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: energy from the BMC's power";
const char plugin_type[] = "acct_gather_energy/joule_ipmi";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

const char *const joule_energy_plugin = "joule_ipmi";
