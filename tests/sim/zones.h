/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zones.h - the node's counters as powercap shows them: sys/class/powercap below its
 * directory, whose energy_uj are links to files energy_uj-N beside the MSR devices.
 *
 * As Linux counts: 32 bits of ticks, in whole nJ each (15,300 where DRAM has a unit of
 * its own); zones of packages, or of their dies, with dram, core and uncore in them,
 * and psys.
 */
#ifndef SIM_ZONES_H
#define SIM_ZONES_H

#include "tests/sim/node.h"

#define SIM_ZONES_MAX 256
#define SIM_ZONE_TEXT 24

/* How many the machine has; 0 without powercap. */
size_t sim_zones(const struct sim_machine *machine);

/* The tree without values.  0, or -1 with errno and a sentence. */
int sim_zones_write(int root_fd, const struct sim_machine *machine,
                    struct joule_error *err);

/* What energy_uj of zone [i] reads now: 0, or an errno value. */
int sim_zone_read(struct sim_node *node, size_t i, char text[SIM_ZONE_TEXT]);

#endif
