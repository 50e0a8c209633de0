/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drive.h - the CPU time of real processes, in ns, that loads the node.
 *
 * A cgroup counts with everything below it (cgroup v1 cpuacct.usage, v2
 * usage_usec of cpu.stat).  A process counts with all its threads by its CPU
 * clock (clock_getcpuclockid(3)), which is exact to the ns; so do its
 * descendants, which are looked for every 100 ms (with more than 20 of them,
 * every 5 ms each): what a descendant used that was never seen, or after it
 * was last seen, is lost.  Use a cgroup where that matters, or for many
 * processes: each costs a system call a sample.
 */
#ifndef SIM_DRIVE_H
#define SIM_DRIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

struct sim_drive;

/* NULL with errno ENOMEM. */
struct sim_drive *sim_drive_create(void);
/* NULL is a no-op. */
void sim_drive_destroy(struct sim_drive *drive);

/*
 * CPU time counts from the moment of the call.  Return 0, or -1 with errno
 * (ENOENT: no such cgroup; ESRCH: no such process) and a sentence.
 */
int sim_drive_add_cgroup(struct sim_drive *drive, const char *path,
                         struct joule_error *err);
int sim_drive_add_pid(struct sim_drive *drive, pid_t pid,
                      struct joule_error *err);

/*
 * CPU time of all members until now.  Never falls: one that is gone keeps
 * its last value, and a cgroup that is made again under the same path adds
 * to it.  [now_ns] is a monotonic time, for the search above.
 */
uint64_t sim_drive_cpu_ns(struct sim_drive *drive, int64_t now_ns);

/*
 * From now on the CPU time is kept by CPU too, for [count] of them: host CPU
 * n counts for index map(arg, n).  A v1 cgroup tells it (usage_percpu); what a
 * process used since it was read before counts for the CPU that it ran on
 * last.  ENOTSUP: a member is a v2 cgroup, which does not tell; ENOMEM.
 */
int sim_drive_split(struct sim_drive *drive, size_t count,
                    size_t (*map)(void *arg, unsigned cpu), void *arg,
                    struct joule_error *err);

/* What has been used on each since then, as of the last sim_drive_cpu_ns;
 * NULL before. */
const uint64_t *sim_drive_by_cpu(const struct sim_drive *drive);

#endif
