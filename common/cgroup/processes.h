/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * processes.h - the CPU time of a process's descendants, where there is no
 * cgroup that counts it.
 *
 * Each process is followed by itself: what it used since the last look, and
 * what the children that it waited for had used and had not been counted while
 * they lived.  One that leaves its parent is still known, and what it forks.
 * What begins and ends between two looks counts if its parent waits for it.
 * In ticks of the kernel (10 ms).
 */
#ifndef JOULE_CGROUP_PROCESSES_H
#define JOULE_CGROUP_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* More are not followed: their time counts when their parents have waited for
 * them. */
#define JOULE_PROCESSES_MAX 32768

struct joule_processes;

/* The descendants of [pid], looked up in proc below root_fd, which is
 * borrowed.  Its own time is not counted.  NULL with ENOMEM. */
struct joule_processes *joule_processes_create(int root_fd, pid_t pid);
void joule_processes_destroy(struct joule_processes *p); /* NULL: no-op */

/* What they have used since the first look, which takes all that they had
 * used before; never falls.  -1 with ESRCH (none is left, nor [pid]) or
 * ENOMEM. */
int joule_processes_read(struct joule_processes *p, uint64_t *ret_ns);

#endif
