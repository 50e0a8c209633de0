/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/profiledir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/joule/slurmconf.h"

static bool is_there(int root_fd, const char *path)
{
    struct stat st;

    return fstatat(root_fd, path + strspn(path, "/"), &st, 0) == 0;
}

/* acct_gather.conf in the directory of slurm.conf.  Without slurm.conf, it may
 * still be there. */
static int conf_path(int root_fd, const char *conf, char path[PATH_MAX],
                     struct joule_error *err)
{
    struct joule_slurmconf_places places;
    const char *slurm_conf;

    if (joule_slurmconf_look(conf, &places, err) < 0)
        return -1;
    slurm_conf = places.path[0];
    for (size_t i = 0; places.path[i]; i++)
        if (is_there(root_fd, places.path[i])) {
            slurm_conf = places.path[i];
            break;
        }
    snprintf(path, PATH_MAX, "%.*s/acct_gather.conf",
             (int)(strrchr(slurm_conf, '/') - slurm_conf), slurm_conf);
    return 0;
}

bool joule_profiledir_has_slurm(int root_fd, const char *conf)
{
    struct joule_slurmconf_places places;

    if (joule_slurmconf_look(conf, &places, NULL) < 0)
        return false;
    for (size_t i = 0; places.path[i]; i++)
        if (is_there(root_fd, places.path[i]))
            return true;
    return false;
}

char *joule_profiledir(int root_fd, const char *conf_name,
                       struct joule_error *err)
{
    const struct joule_slurmconf_setting *setting;
    struct joule_slurmconf conf;
    struct joule_findings *ignored;
    char path[PATH_MAX], *dir = NULL;
    int rc;

    if (conf_path(root_fd, conf_name, path, err) < 0)
        return NULL;
    ignored = calloc(1, sizeof(*ignored)); /* large */
    if (!ignored) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    rc = joule_slurmconf_load(root_fd, path, &conf, ignored, err);
    free(ignored);
    if (rc < 0) {
        joule_error_set(err, errno, "%s; name the directory with -p",
                        err ? err->text : "");
        return NULL;
    }
    setting = joule_slurmconf_find(&conf, "ProfileHDF5Dir");
    if (!setting || !*setting->value)
        joule_error_set(err, ENOENT,
                        "%s does not set ProfileHDF5Dir: name the directory "
                        "with -p",
                        path);
    else if (!(dir = strdup(setting->value)))
        joule_error_set(err, ENOMEM, "out of memory");
    joule_slurmconf_free(&conf);
    return dir;
}
