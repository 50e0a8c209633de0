/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage.h - the CPU time that a step's tasks have used, without that of
 * slurmstepd.
 *
 * From the step's cgroup (v1 cpuacct: .../step_S, v2: .../step_S/user), whose
 * files are opened once; where there is none, or none yet, from its processes
 * (processes.h).  Layouts: doc/ledger.md; as measured with Slurm 22.05,
 * 24.11 and 26.05.
 */
#ifndef JOULE_CGROUP_USAGE_H
#define JOULE_CGROUP_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum joule_usage_from {
    JOULE_USAGE_FROM_PROCESSES,
    JOULE_USAGE_FROM_V1,
    JOULE_USAGE_FROM_V2,
};

struct joule_usage;

/*
 * The step of slurmstepd [pid].  [path] is a group in which the step or one of
 * its tasks is, as /proc/PID/cgroup has it, or "" if it is not known.
 * [cpus]: of the node; 0 if CPU time by CPU is not wanted.  root_fd is
 * borrowed.  NULL with ENOMEM.
 */
struct joule_usage *joule_usage_create(int root_fd, pid_t pid, const char *path,
                                       size_t cpus);
void joule_usage_destroy(struct joule_usage *u); /* NULL is a no-op */

enum joule_usage_from joule_usage_from(const struct joule_usage *u);

/*
 * What has been used up to now.  *ret_by_cpu (may be NULL): that on each CPU,
 * which lives until the next call, or NULL if it is not known.  It may go
 * back, if the kernel's counter does.  -1 with
 *   ENODEV   the group is gone, and will not come back
 *   ESRCH    there are no processes, nor slurmstepd
 *   EBADMSG  it is not what the kernel writes
 *   other    of reading
 */
int joule_usage_read(struct joule_usage *u, uint64_t *ret_ns,
                     const uint64_t **ret_by_cpu);

#endif
