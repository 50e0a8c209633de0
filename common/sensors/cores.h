/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cores.h - the CPUs of cores as Slurm counts them: package after package,
 * core after core, each in the order of its lowest CPU (hwloc's logical
 * order).  A core stands for all of its CPUs that are online.
 *
 * Pure functions of their arguments.
 */
#ifndef JOULE_SENSORS_CORES_H
#define JOULE_SENSORS_CORES_H

#include "common/sensors/topology.h"

/*
 * Add to the bitmap ret_cpus[words] the CPUs of the cores that are listed.
 * Returns how many CPUs these are, or -1 with
 *   ERANGE  a core, or one of its CPUs, is beyond the topology or the bitmap
 *           (Slurm was told of more than the machine has)
 *   ENOMEM
 * and the bitmap unchanged.
 */
int joule_cores_cpus(const struct joule_topology *t, const unsigned *cores,
                     size_t count, uint64_t *ret_cpus, size_t words);

#endif
