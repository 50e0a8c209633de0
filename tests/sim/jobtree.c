/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/jobtree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/parse.h"

#define DEPTH_MAX 4 /* groups on the way to a job's */

struct walk {
    bool v2;
    sim_jobtree_f found;
    void *arg;
};

/* job_N, N without anything behind it. */
static bool is_job(const char *name, uint32_t *ret_id)
{
    uint64_t id;

    if (strncmp(name, "job_", 4) ||
        joule_parse_u64(name + 4, 1, UINT32_MAX, &id))
        return false;
    *ret_id = (uint32_t)id;
    return true;
}

static bool leads_on(const char *name)
{
    static const char *const patterns[] = {"slurm*", "uid_*", "system.slice",
                                           "*slurmstepd.scope"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        if (!fnmatch(patterns[i], name, 0))
            return true;
    return false;
}

static DIR *dir_open(int at_fd, const char *name)
{
    int fd =
        openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

/* v2: the tasks of each step. */
static void walk_job(const struct walk *walk, int at_fd, const char *name,
                     uint32_t id)
{
    DIR *dir = dir_open(at_fd, name);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        char user[sizeof(entry->d_name) + 8];

        if (strncmp(entry->d_name, "step_", 5))
            continue;
        snprintf(user, sizeof(user), "%s/user", entry->d_name);
        walk->found(walk->arg, dirfd(dir), user, entry->d_ino, id);
    }
    closedir(dir);
}

static void walk_group(const struct walk *walk, int at_fd, const char *name,
                       unsigned depth)
{
    DIR *dir = dir_open(at_fd, name);
    struct dirent *entry;
    uint32_t id;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (entry->d_type != DT_DIR)
            continue;
        if (is_job(entry->d_name, &id)) {
            if (walk->v2)
                walk_job(walk, dirfd(dir), entry->d_name, id);
            else
                walk->found(walk->arg, dirfd(dir), entry->d_name, entry->d_ino,
                            id);
        } else if (depth < DEPTH_MAX && leads_on(entry->d_name)) {
            walk_group(walk, dirfd(dir), entry->d_name, depth + 1);
        }
    }
    closedir(dir);
}

void sim_jobtree_walk(const char *path, bool v2, sim_jobtree_f found, void *arg)
{
    const struct walk walk = {v2, found, arg};

    walk_group(&walk, AT_FDCWD, path, 0);
}
