/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurmconf.h - the settings of slurm.conf or acct_gather.conf with their
 * places, "Include" lines followed.
 *
 * Slurm's rules: a relative Include is looked up in the directory of the main
 * file, "%c" in it stands for the ClusterName read so far, the last of
 * several settings of one key counts.  See also common/base/conffile.h.
 */
#ifndef JOULE_TOOLS_SLURMCONF_H
#define JOULE_TOOLS_SLURMCONF_H

#include "tools/joule/finding.h"

struct joule_slurmconf_setting {
    char *key, *value;
    struct joule_conf_place place;
};

struct joule_slurmconf {
    struct joule_slurmconf_setting *settings; /* one a key, as it first came */
    size_t count;
    /* The first partition without OverSubscribe=EXCLUSIVE: its jobs may share
     * nodes.  Empty: there is none. */
    char shared_partition[64];
    struct joule_conf_place shared_place;
};

/* Where slurm.conf may be: absolute paths, NULL behind the last. */
struct joule_slurmconf_places {
    char named[JOULE_PLACE_MAX];
    const char *path[3];
};

/*
 * [conf] as somebody named it, a file or the directory that it is in, looked up
 * as the shell would; NULL: where slurmd and the commands look, the second
 * being what a configless node fetched from slurmctld.  -1 with ENAMETOOLONG
 * and a sentence.
 */
int joule_slurmconf_look(const char *conf, struct joule_slurmconf_places *ret,
                         struct joule_error *err);

/*
 * Read [path] (absolute as seen from root_fd) and what it includes.
 *
 * Returns 0, or -1 with errno and a sentence if the file itself cannot be
 * read (ENOENT, EACCES, EFBIG, EINVAL: it is no text file, ENOMEM) and *ret
 * empty.  Trouble with an included file becomes a finding, and so does text that
 * is no setting, with which Slurm does not start.  Files are bounded in size, number and depth: hostile ones end in a finding.
 */
int joule_slurmconf_load(int root_fd, const char *path,
                         struct joule_slurmconf *ret,
                         struct joule_findings *findings,
                         struct joule_error *err);

/* Frees what *conf points to and clears it. */
void joule_slurmconf_free(struct joule_slurmconf *conf);

/* The setting of [key] (any case) that counts, or NULL. */
const struct joule_slurmconf_setting *
joule_slurmconf_find(const struct joule_slurmconf *conf, const char *key);

#endif
