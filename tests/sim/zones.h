/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zones.h - the node's counters as text: sys/class/powercap, sys/cray/pm_counters and
 * sys/class/hwmon below its directory, whose values are links to files energy-N beside
 * the MSR devices.
 *
 * powercap as Linux counts: 32 bits of ticks, in whole nJ each (15,300 where DRAM has a unit of
 * its own); zones of packages, or of their dies, with dram, core and uncore in them,
 * and psys.  pm_counters as a blade's controller does: whole joules of ten updates a
 * second, with the time of the last one.  hwmon as NVIDIA Grace: for each package the
 * power of its module, in uW, and 60 % of it for the processor's socket.
 */
#ifndef SIM_ZONES_H
#define SIM_ZONES_H

#include "tests/sim/node.h"

#define SIM_ZONES_MAX 256
#define SIM_ZONE_TEXT 64

/* How many files energy-N the machine has. */
size_t sim_zones(const struct sim_machine *machine);

/* The tree without values.  0, or -1 with errno and a sentence. */
int sim_zones_write(int root_fd, const struct sim_machine *machine,
                    struct joule_error *err);

/* What energy-[i] reads now: 0, or an errno value. */
int sim_zone_read(struct sim_node *node, size_t i, char text[SIM_ZONE_TEXT]);

#endif
