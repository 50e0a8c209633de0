/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy.h - the entry points of an acct_gather_energy plugin, written once.
 *
 * A plugin is a file that defines joule_energy_plugin and the three variables
 * plugin_name, plugin_type and plugin_version; the entry points are linked
 * from energy.c.  Slurm serialises all calls with one lock, so the adaptor has
 * none of its own, and each call is bounded: it copies from the node's files,
 * and waits for a sample for 50 ms when a step begins or ends.
 */
#ifndef JOULE_SLURM_ENERGY_H
#define JOULE_SLURM_ENERGY_H

/* Its row in sensor_table.h, and its name in the log: "joule_rapl". */
extern const char *const joule_energy_plugin;

#endif
