/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpuset.h - the CPUs that a process may use.
 */
#ifndef JOULE_CGROUP_CPUSET_H
#define JOULE_CGROUP_CPUSET_H

#include <sys/types.h>

#include "common/base/error.h"
#include "common/base/cpus.h"

/*
 * The CPUs of the cpuset that [pid] is in, found below root_fd by
 * proc/PID/cgroup and proc/self/mountinfo: a cpuset hierarchy (v1: the file
 * cpuset.effective_cpus or cpuset.cpus) or the unified one (v2:
 * cpuset.cpus.effective, of the nearest group that has it).  -1 with a
 * sentence: ENOENT if there is no cpuset that could be read, ESRCH if there is
 * no such process, EBADMSG.
 */
int joule_cgroup_cpuset(int root_fd, pid_t pid, struct joule_cpus *ret_cpus,
                        struct joule_error *err);

/*
 * The CPUs that the process is bound to (Cpus_allowed_list in
 * proc/PID/status), and is allowed to by its cpuset if there is one.  -1 with
 * a sentence: ESRCH or EBADMSG.
 */
int joule_cgroup_cpus_of(int root_fd, pid_t pid, struct joule_cpus *ret_cpus,
                         struct joule_error *err);

#endif
