/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/cgroup/busy.h"
#include "common/cgroup/hierarchy.h"
#include "common/cgroup/processes.h"

/* The group is looked for at each of the first readings, while the step is
 * being set up, and then now and then. */
#define LOOKS_AT_ONCE 16
#define LOOKS_LATER   64

struct joule_usage {
    int root_fd;
    pid_t pid;
    char *path;
    size_t cpus;
    enum joule_usage_from from;
    int fd; /* -1: not found */
    unsigned reads;
    uint64_t least_ns; /* from processes, before the group was found */
    uint64_t *by_cpu;  /* [cpus] */
    char *text;
    size_t size;
    struct joule_processes *processes;
};

struct joule_usage *joule_usage_create(int root_fd, pid_t pid, const char *path,
                                       size_t cpus)
{
    struct joule_usage *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->root_fd = root_fd;
    u->pid = pid;
    u->cpus = cpus;
    u->fd = -1;
    u->size = 1024 + cpus * 24;
    u->path = strdup(path);
    u->by_cpu = calloc(cpus + 1, sizeof(*u->by_cpu));
    u->text = calloc(u->size, 1);
    if (u->path && u->by_cpu && u->text)
        return u;
    joule_usage_destroy(u);
    errno = ENOMEM;
    return NULL;
}

void joule_usage_destroy(struct joule_usage *u)
{
    int saved = errno;

    if (!u)
        return;
    if (u->fd >= 0)
        close(u->fd);
    joule_processes_destroy(u->processes);
    free(u->path);
    free(u->by_cpu);
    free(u->text);
    free(u);
    errno = saved;
}

enum joule_usage_from joule_usage_from(const struct joule_usage *u)
{
    return u->from;
}

/* Cut a group behind its component "step_...": what is below is the task's or
 * of the user's making. */
static bool cut_at_step(char *group)
{
    char *at = strstr(group, "/step_");

    if (!at)
        return false;
    at[1 + strcspn(at + 1, "/")] = '\0';
    return true;
}

/* Open the counter of [group], if that is a step's. */
static bool open_group(struct joule_usage *u, char *group, bool v2)
{
    char dir[JOULE_CGROUP_DIR_MAX], path[JOULE_CGROUP_DIR_MAX + 32];
    const char *name = v2        ? "user/cpu.stat"
                       : u->cpus ? "cpuacct.usage_percpu"
                                 : "cpuacct.usage";

    if (!cut_at_step(group) ||
        joule_cgroup_dir(u->root_fd, v2 ? NULL : "cpuacct", group, dir, NULL) <
            0)
        return false;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    u->fd = joule_file_open(u->root_fd, path, O_RDONLY);
    if (u->fd < 0)
        return false;
    u->from = v2 ? JOULE_USAGE_FROM_V2 : JOULE_USAGE_FROM_V1;
    return true;
}

static bool open_group_of(struct joule_usage *u, pid_t pid, bool v2)
{
    char group[PATH_MAX];

    return joule_cgroup_of(u->root_fd, pid, v2 ? NULL : "cpuacct", group) ==
               0 &&
           open_group(u, group, v2);
}

/* v1: slurmstepd itself is not in the group that counts; its children are. */
static bool open_group_of_child(struct joule_usage *u)
{
    char path[64], text[4096], *word, *rest;
    uint64_t pid;
    int fd;
    long n;

    snprintf(path, sizeof(path), "proc/%lld/task/%lld/children",
             (long long)u->pid, (long long)u->pid);
    fd = joule_file_open(u->root_fd, path, O_RDONLY);
    if (fd < 0)
        return false;
    n = joule_busy_text(fd, text, sizeof(text));
    close(fd);
    if (n < 0)
        return false;
    for (word = strtok_r(text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        if (joule_parse_u64(word, 1, INT32_MAX, &pid) == 0 &&
            open_group_of(u, (pid_t)pid, false))
            return true;
    return false;
}

static void find_group(struct joule_usage *u)
{
    char group[PATH_MAX];

    for (int v2 = 0; v2 <= 1 && u->path[0] == '/'; v2++) {
        snprintf(group, sizeof(group), "%s", u->path);
        if (open_group(u, group, v2))
            return;
    }
    if (!open_group_of_child(u))
        open_group_of(u, u->pid, true);
}

static int parse_v2(struct joule_usage *u, uint64_t *ret_ns)
{
    uint64_t us;

    /* "usage_usec 1234", the first line (cgroup-v2.rst) */
    if (strncmp(u->text, "usage_usec ", 11) == 0) {
        u->text[strcspn(u->text, "\n")] = '\0';
        if (joule_parse_u64(u->text + 11, 0, UINT64_MAX / 1000, &us) == 0) {
            *ret_ns = us * 1000;
            return 0;
        }
    }
    errno = EBADMSG;
    return -1;
}

static int read_group(struct joule_usage *u, uint64_t *ret_ns,
                      const uint64_t **ret_by_cpu)
{
    uint64_t ns = 0;

    if (joule_busy_line(u->fd, u->text, u->size) < 0)
        return -1;
    if (u->from == JOULE_USAGE_FROM_V2) {
        if (parse_v2(u, &ns) < 0)
            return -1;
    } else if (u->cpus == 0) {
        if (joule_busy_parse(u->text, &ns, 1) < 0)
            return -1;
    } else {
        if (joule_busy_parse(u->text, u->by_cpu, u->cpus) < 0)
            return -1;
        for (size_t i = 0; i < u->cpus; i++)
            ns += u->by_cpu[i];
        if (ret_by_cpu)
            *ret_by_cpu = u->by_cpu;
    }
    *ret_ns = ns > u->least_ns ? ns : u->least_ns;
    return 0;
}

int joule_usage_read(struct joule_usage *u, uint64_t *ret_ns,
                     const uint64_t **ret_by_cpu)
{
    if (ret_by_cpu)
        *ret_by_cpu = NULL;
    if (u->fd < 0 && (u->reads < LOOKS_AT_ONCE || u->reads % LOOKS_LATER == 0))
        find_group(u);
    u->reads++;
    if (u->fd >= 0) {
        joule_processes_destroy(u->processes);
        u->processes = NULL;
        return read_group(u, ret_ns, ret_by_cpu);
    }
    if (!u->processes)
        u->processes = joule_processes_create(u->root_fd, u->pid);
    if (!u->processes)
        return -1;
    if (joule_processes_read(u->processes, &u->least_ns) < 0)
        return -1;
    *ret_ns = u->least_ns;
    return 0;
}
