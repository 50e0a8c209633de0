/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node_dir.h - the directory of a node, /run/slurm-joule/<NodeName>, and how
 * the file in it is opened that several processes map.
 *
 * Users pass through it to what is theirs (user_view.h), and may not list it;
 * all other files in it are 0600.
 */
#ifndef JOULE_NODE_NODE_DIR_H
#define JOULE_NODE_NODE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rundir.h"

/*
 * Open the directory of [node] below root_fd, made where missing if [create],
 * and say which boot this is.  -1 with a sentence: EINVAL ([node] is empty, too
 * long, or holds '/' or starts with '.'), and as joule_rundir_open.
 */
int joule_nodedir_open(int root_fd, const char *node, bool create,
                       char boot_id[JOULE_BOOT_ID_MAX],
                       struct joule_error *err);

/* Where a NodeName may come from; NULL: not from there. */
struct joule_nodename {
    const char *option; /* of the command line: slurmd's -N, a tool's --node */
    const char *slurmd; /* slurmstepd's: SLURMD_NODENAME, which it has set to
                           what its slurmd told it */
    const char *job;    /* a tool's: the variable, which may be any job's, of
                           any node */
    bool is_tool;       /* what slurmd left below root_fd counts */
    const char *conf;   /* what slurm.conf calls this host */
    unsigned ret_count; /* a tool's: how many nodes have a directory here */
};

/*
 * The name of this node into buf[size], the same in slurmd, its slurmstepd and
 * tools: the first of option, slurmd, the only directory of a node here (a
 * tool's), job if there is a directory of that name here (a tool's), conf, and
 * the short host name.  Nothing else is asked, no variable that slurmd or a
 * tool has inherited in particular.  -1 with a sentence (ENAMETOOLONG, or of
 * reading the host's name).
 */
int joule_nodename_find(struct joule_nodename *from, int root_fd, char *buf,
                        size_t size, struct joule_error *err);

/*
 * Open the file [name] in the directory of [node] (O_CREAT: 0600).  -1 with a
 * sentence: EPERM if it is a symbolic link, of another owner, or others may
 * write it.
 */
int joule_nodedir_file(int dir_fd, const char *node, const char *name,
                       int flags, struct joule_error *err);

/* For reading and writing, or where it must not be written for reading. */
int joule_nodedir_reader(int dir_fd, const char *node, const char *name,
                         bool *ret_writable, struct joule_error *err);

#endif
