/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup.h - the counter of CPU time of one cgroup, as the kernel writes it
 * (v1: cpuacct.usage or cpuacct.usage_percpu in ns; v2: usage_usec of
 * cpu.stat).  Counts with everything below the group, also what is gone.
 */
#ifndef SIM_CGROUP_H
#define SIM_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Host CPUs of which a group can tell. */
#define SIM_CGROUP_CPUS 1024

struct sim_cgroup {
    int fd;     /* -1: not open */
    bool micro; /* v2: us */
    bool each;  /* usage_percpu */
};

/* The counter of the group [dir] below at_fd, by CPU if it has that and [each]
 * is set.  -1 with errno of the open. */
int sim_cgroup_open(struct sim_cgroup *group, int at_fd, const char *dir,
                    bool each);
/* A group that is not open is a no-op. */
void sim_cgroup_close(struct sim_cgroup *group);

/* -1 with errno of reading (ENODEV: the group is gone), ENODATA (the file is
 * empty) or EINVAL. */
int sim_cgroup_read(const struct sim_cgroup *group, uint64_t *ret_ns);

/* The same by host CPU, *ret_count of them; of a group that does not tell, one
 * for all. */
int sim_cgroup_read_each(const struct sim_cgroup *group,
                         uint64_t ret_ns[SIM_CGROUP_CPUS], size_t *ret_count);

#endif
