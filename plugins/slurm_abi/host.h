/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host.h - the program that loaded the plugin: which it is, and whether it is
 * the release that the plugin was built for.
 */
#ifndef JOULE_SLURM_HOST_H
#define JOULE_SLURM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

enum joule_host {
    JOULE_HOST_OTHER, /* sh5util and other commands */
    JOULE_HOST_SLURMCTLD,
    JOULE_HOST_SLURMD,
    JOULE_HOST_SLURMSTEPD,
};

/* Asked of Slurm where the release offers it, else of the program's name. */
enum joule_host joule_host_find(void);

/* 0, or -1 with a sentence that names both releases. */
int joule_host_check(struct joule_error *err);

/*
 * The NodeName of this slurmd or slurmstepd into buf[size], by
 * joule_nodename_find: in slurmd its -N option, else what slurm.conf calls this
 * host; in slurmstepd SLURMD_NODENAME, which slurmstepd of all releases sets to
 * what slurmd told it (slurmd itself may have inherited any).  0, or -1 with a
 * sentence.
 */
int joule_host_node_name(int root_fd, char *buf, size_t size,
                         struct joule_error *err);

/* Whether this process has children that it has not waited for; false if that
 * cannot be known. */
bool joule_host_has_children(void);

/* The words of this process's command line, each ended by '\0', into buf[size];
 * what does not fit is left away.  Their length, or -1. */
ssize_t joule_host_command(char *buf, size_t size);

#endif
