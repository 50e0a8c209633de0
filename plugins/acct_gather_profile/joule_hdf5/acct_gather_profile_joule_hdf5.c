/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acct_gather_profile/joule_hdf5: time series of each step on each node, in
 * HDF5 files that are laid out as Slurm's.
 */
#include "plugins/slurm_abi/profile.h"
#include "plugins/slurm_abi/slurm_abi.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const uint32_t plugin_version;

const char plugin_name[] = "slurm-joule: profiles in HDF5 files";
const char plugin_type[] = "acct_gather_profile/joule_hdf5";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

const char joule_profile_name[] = "joule_hdf5";
