/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobtree.h - where Slurm puts the cgroups of jobs: groups job_N below a
 * directory, through groups slurm*, uid_*, system.slice and *slurmstepd.scope.
 *
 * In v2, Slurm 26.05 names the group of a job by its SLUID (s7WNM80N13EH00).
 * Which job that is, the title of slurmstepd tells, which is in each step's
 * group: "slurmstepd: [7.0]".  It is remembered, for groups that outlive it.
 */
#ifndef SIM_JOBTREE_H
#define SIM_JOBTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sim_jobtree;

/* A group of job [id]: [dir] below at_fd; [ino] tells it from one that was
 * there before under the same name. */
typedef void (*sim_jobtree_f)(void *arg, int at_fd, const char *dir, ino_t ino,
                              uint32_t id);

/* Of the jobs below the directory [path].  NULL with ENOMEM. */
struct sim_jobtree *sim_jobtree_create(const char *path, bool v2);
/* NULL is a no-op. */
void sim_jobtree_destroy(struct sim_jobtree *tree);

/* All of them that are there: in v1 those of jobs, in v2 the groups step_S/user
 * in those, where a step's tasks are.  What cannot be read is passed over, and
 * so is a SLUID as long as no slurmstepd has been seen in it. */
void sim_jobtree_walk(struct sim_jobtree *tree, sim_jobtree_f found, void *arg);

#endif
