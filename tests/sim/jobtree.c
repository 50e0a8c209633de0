/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/jobtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define DEPTH_MAX    4  /* groups on the way to a job's */
#define SLUID_LENGTH 14 /* with the 's' */

struct sluid {
    char name[SLUID_LENGTH + 1];
    uint32_t id;
    struct sluid *next;
};

struct sim_jobtree {
    char *path;
    bool v2;
    struct sluid *sluids;
};

struct walk {
    struct sim_jobtree *tree;
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

/* 's' and a number of 64 bits in Crockford's base 32. */
static bool is_sluid(const char *name)
{
    return strlen(name) == SLUID_LENGTH && name[0] == 's' &&
           strspn(name + 1, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") ==
               SLUID_LENGTH - 1;
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

/* The beginning of a file, ended with NUL; false if there is none. */
static bool text_read(int at_fd, const char *path, char *buf, size_t size)
{
    int fd = openat(at_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;

    if (fd >= 0) {
        length = joule_file_fill(fd, buf, size - 1);
        close(fd);
    }
    buf[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* "slurmstepd: [7.0]", and of a heterogeneous job "slurmstepd: [7+1.0]". */
static bool title_names(const char *pid, uint32_t *ret_id)
{
    static const char begin[] = "slurmstepd: [";
    char path[64], title[64], *number = title + sizeof(begin) - 1, *end;
    uint64_t id;

    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    if (!text_read(AT_FDCWD, path, title, sizeof(title)) ||
        strncmp(title, begin, sizeof(begin) - 1))
        return false;
    end = strpbrk(number, ".+");
    if (!end)
        return false;
    *end = '\0';
    if (joule_parse_u64(number, 1, UINT32_MAX, &id))
        return false;
    *ret_id = (uint32_t)id;
    return true;
}

/* By the slurmstepd of the step's group [step]. */
static bool step_names(int at_fd, const char *step, uint32_t *ret_id)
{
    char path[300], pids[4096], *rest = pids, *pid;

    snprintf(path, sizeof(path), "%s/slurm/cgroup.procs", step);
    if (!text_read(at_fd, path, pids, sizeof(pids)))
        return false;
    while ((pid = strsep(&rest, "\n")))
        if (title_names(pid, ret_id))
            return true;
    return false;
}

static bool is_step(const char *name)
{
    return !strncmp(name, "step_", 5);
}

static bool steps_name(int at_fd, const char *job, uint32_t *ret_id)
{
    DIR *dir = dir_open(at_fd, job);
    struct dirent *entry;
    bool named = false;

    if (!dir)
        return false;
    while (!named && (entry = readdir(dir)))
        named = is_step(entry->d_name) &&
                step_names(dirfd(dir), entry->d_name, ret_id);
    closedir(dir);
    return named;
}

static bool sluid_names(struct sim_jobtree *tree, int at_fd, const char *name,
                        uint32_t *ret_id)
{
    struct sluid *sluid;

    for (sluid = tree->sluids; sluid; sluid = sluid->next) {
        if (!strcmp(sluid->name, name)) {
            *ret_id = sluid->id;
            return true;
        }
    }
    if (!steps_name(at_fd, name, ret_id) || !(sluid = malloc(sizeof(*sluid))))
        return false;
    strcpy(sluid->name, name);
    sluid->id = *ret_id;
    sluid->next = tree->sluids;
    tree->sluids = sluid;
    return true;
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

        if (!is_step(entry->d_name))
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
        bool v2 = walk->tree->v2;

        if (entry->d_type != DT_DIR)
            continue;
        if (is_job(entry->d_name, &id)) {
            if (v2)
                walk_job(walk, dirfd(dir), entry->d_name, id);
            else
                walk->found(walk->arg, dirfd(dir), entry->d_name, entry->d_ino,
                            id);
        } else if (v2 && is_sluid(entry->d_name)) {
            if (sluid_names(walk->tree, dirfd(dir), entry->d_name, &id))
                walk_job(walk, dirfd(dir), entry->d_name, id);
        } else if (depth < DEPTH_MAX && leads_on(entry->d_name)) {
            walk_group(walk, dirfd(dir), entry->d_name, depth + 1);
        }
    }
    closedir(dir);
}

struct sim_jobtree *sim_jobtree_create(const char *path, bool v2)
{
    struct sim_jobtree *tree = calloc(1, sizeof(*tree));

    if (!tree || !(tree->path = strdup(path))) {
        free(tree);
        errno = ENOMEM;
        return NULL;
    }
    tree->v2 = v2;
    return tree;
}

void sim_jobtree_destroy(struct sim_jobtree *tree)
{
    if (!tree)
        return;
    while (tree->sluids) {
        struct sluid *sluid = tree->sluids;

        tree->sluids = sluid->next;
        free(sluid);
    }
    free(tree->path);
    free(tree);
}

void sim_jobtree_walk(struct sim_jobtree *tree, sim_jobtree_f found, void *arg)
{
    const struct walk walk = {tree, found, arg};

    walk_group(&walk, AT_FDCWD, tree->path, 0);
}
