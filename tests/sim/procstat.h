/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procstat.h - the node's /proc/stat: its CPUs have used what the group of its
 * jobs has, or without one its cgroups and processes, whatever else the host does.
 *
 * In ticks of 10 ms, all of them user or idle; offline CPUs have no line.  Where
 * CPU time is not known by CPU, all have used the same.
 */
#ifndef SIM_PROCSTAT_H
#define SIM_PROCSTAT_H

#include <stddef.h>

#include "tests/sim/node.h"

/* Whether there is one: with jobs, or if the node is to have its own. */
bool sim_procstat_there(const struct sim_node *node);

/* The text of this moment, which the caller frees, and its length.  NULL with
 * ENOMEM. */
char *sim_procstat(struct sim_node *node, size_t *ret_length);

#endif
