/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hierarchy.h - where the group of a process is: its directory, in a cgroup
 * hierarchy that is mounted (cgroups(7), proc(5)).
 */
#ifndef JOULE_CGROUP_HIERARCHY_H
#define JOULE_CGROUP_HIERARCHY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define JOULE_CGROUP_DIR_MAX (2 * PATH_MAX)

/*
 * The group of [pid] as proc/PID/cgroup below root_fd has it: in the v1
 * hierarchy of [controller], or with NULL in the unified one.  -1 with ESRCH
 * (no such process), ENOENT (no such hierarchy), or what reading gave.
 */
int joule_cgroup_of(int root_fd, pid_t pid, const char *controller,
                    char group[PATH_MAX]);

/* The group of [pid] in a v1 hierarchy, whichever, of which a component is
 * [name]; the longest of them.  -1 as above. */
int joule_cgroup_named(int root_fd, pid_t pid, const char *name,
                       char group[PATH_MAX]);

/* The directory, without a '/' in front, at which the hierarchy is mounted below
 * root_fd.  -1 as below. */
int joule_cgroup_mount(int root_fd, const char *controller,
                       char dir[JOULE_CGROUP_DIR_MAX]);

/* The directory, without a '/' in front, at which the hierarchy is mounted
 * below root_fd, followed by [group]; a mount may show a part of the hierarchy
 * only.  *ret_top (may be NULL): the length of what is the mount.  -1 with
 * ENOENT: it is not mounted, or not there. */
int joule_cgroup_dir(int root_fd, const char *controller, const char *group,
                     char dir[JOULE_CGROUP_DIR_MAX], size_t *ret_top);

#endif
