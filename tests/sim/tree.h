/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - the cpuinfo and topology that go with the registers, as ordinary
 * files: proc/cpuinfo and sys/devices/system/cpu below a directory.
 *
 * Files of a CPU that is offline are those that Linux leaves: cpuN/online
 * says 0, topology is gone, /proc/cpuinfo does not list it; CPU 0 has no
 * "online", it cannot be taken offline (Linux 6.5).
 */
#ifndef SIM_TREE_H
#define SIM_TREE_H

#include "common/base/error.h"
#include "tests/sim/machine.h"

/* Write the tree below [root_fd], with an empty dev/cpu.  What an earlier
 * run left of cpuN directories is removed first.  0, or -1 with errno and a
 * sentence. */
int sim_tree_write(int root_fd, const struct sim_machine *machine,
                   struct joule_error *err);

/* Write anew what tells which CPUs are online. */
int sim_tree_switch(int root_fd, const struct sim_machine *machine,
                    struct joule_error *err);

#endif
