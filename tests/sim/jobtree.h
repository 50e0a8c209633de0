/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobtree.h - where Slurm puts the cgroups of jobs: groups job_N below a
 * directory, through groups slurm*, uid_*, system.slice and *slurmstepd.scope.
 */
#ifndef SIM_JOBTREE_H
#define SIM_JOBTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A group of job [id]: [dir] below at_fd; [ino] tells it from one that was
 * there before under the same name. */
typedef void (*sim_jobtree_f)(void *arg, int at_fd, const char *dir, ino_t ino,
                              uint32_t id);

/* All of them that are there: in v1 those of jobs, in v2 the groups step_S/user
 * in those, where a step's tasks are.  What cannot be read is passed over. */
void sim_jobtree_walk(const char *path, bool v2, sim_jobtree_f found,
                      void *arg);

#endif
