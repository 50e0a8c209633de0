/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/profiledir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/joule/slurmconf.h"

/* acct_gather.conf in the directory of slurm.conf, as an absolute path. */
static int conf_path(char path[PATH_MAX], struct joule_error *err)
{
    const char *conf = getenv("SLURM_CONF");
    char *real = realpath(conf && *conf ? conf : "/etc/slurm/slurm.conf", NULL);
    char *slash;
    int n;

    /* Without slurm.conf, acct_gather.conf may still be there. */
    if (!real)
        real = strdup(conf && *conf == '/' ? conf : "/etc/slurm/slurm.conf");
    slash = real ? strrchr(real, '/') : NULL;
    n = slash ? snprintf(path, PATH_MAX, "%.*s/acct_gather.conf",
                         (int)(slash - real), real)
              : -1;
    free(real);
    if (n >= 0 && n < PATH_MAX)
        return 0;
    return joule_error_set(err, ENAMETOOLONG,
                           "the path of acct_gather.conf is too long");
}

char *joule_profiledir(struct joule_error *err)
{
    static const char *const keys[] = {"ProfileHDF5Dir", NULL};
    const struct joule_slurmconf_setting *setting;
    struct joule_slurmconf conf;
    struct joule_findings *ignored;
    char path[PATH_MAX], *dir = NULL;
    int root, rc;

    if (conf_path(path, err) < 0)
        return NULL;
    root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ignored = calloc(1, sizeof(*ignored)); /* large */
    if (root < 0 || !ignored) {
        joule_error_set(err, errno, "cannot read %s: %m", path);
        free(ignored);
        if (root >= 0)
            close(root);
        return NULL;
    }
    rc = joule_slurmconf_load(root, path, keys, &conf, ignored, err);
    close(root);
    free(ignored);
    if (rc < 0) {
        joule_error_set(err, errno, "%s; name the directory with -p",
                        err ? err->text : "");
        return NULL;
    }
    setting = joule_slurmconf_find(&conf, keys[0]);
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
