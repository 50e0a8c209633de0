/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* slurm.h: the last numbers of 32 bits. */
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

#define NAME_LENGTH 32

struct joule_usage {
    int root_fd;
    pid_t pid;
    char job[NAME_LENGTH], step[NAME_LENGTH]; /* "job_7", "step_0" */
    uint32_t uid;
    char *node, *path;
    char *job_dir; /* below root_fd; NULL: not found */
    size_t cpus;
    bool is_job;
    bool has_hierarchy; /* one in which the step could be */
    enum joule_usage_from from;
    int fd;       /* -1: not found */
    int stepd_fd; /* v2: slurmstepd's own group; else -1 */
    unsigned reads;
    uint64_t least_ns; /* from processes, before the group was found */
    uint64_t stepd_ns;
    uint64_t *by_cpu; /* [cpus] */
    char *text;
    size_t size;
    struct joule_processes *processes;
};

static void name_step(char name[NAME_LENGTH], uint32_t step)
{
    if (step == STEP_EXTERN)
        strcpy(name, "step_extern");
    else if (step == STEP_BATCH)
        strcpy(name, "step_batch");
    else if (step == STEP_INTERACTIVE)
        strcpy(name, "step_interactive");
    else
        snprintf(name, NAME_LENGTH, "step_%u", (unsigned)step);
}

static struct joule_usage *make(int root_fd, size_t cpus)
{
    struct joule_usage *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->root_fd = root_fd;
    u->cpus = cpus;
    u->fd = u->stepd_fd = -1;
    u->size = 1024 + cpus * 24;
    u->by_cpu = calloc(cpus + 1, sizeof(*u->by_cpu));
    u->text = calloc(u->size, 1);
    if (u->by_cpu && u->text)
        return u;
    joule_usage_destroy(u);
    errno = ENOMEM;
    return NULL;
}

struct joule_usage *joule_usage_create(int root_fd,
                                       const struct joule_usage_step *step,
                                       size_t cpus)
{
    struct joule_usage *u = make(root_fd, cpus);

    if (!u)
        return NULL;
    u->pid = step->pid;
    u->uid = step->uid;
    snprintf(u->job, sizeof(u->job), "job_%u", (unsigned)step->job);
    name_step(u->step, step->step);
    u->node = strdup(step->node ? step->node : "");
    u->path = strdup(step->path ? step->path : "");
    if (u->node && u->path)
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
    if (u->stepd_fd >= 0)
        close(u->stepd_fd);
    joule_processes_destroy(u->processes);
    free(u->node);
    free(u->path);
    free(u->job_dir);
    free(u->by_cpu);
    free(u->text);
    free(u);
    errno = saved;
}

enum joule_usage_from joule_usage_from(const struct joule_usage *u)
{
    return u->fd >= 0 ? u->from : JOULE_USAGE_FROM_PROCESSES;
}

/* ---- the groups ---- */

/* Whether the component at [at] is [name]; with [more] also "step_0+1", that
 * of a component of a heterogeneous step. */
static bool is_component(const char *at, const char *name, bool more)
{
    size_t length = strlen(name);

    return strncmp(at, name, length) == 0 &&
           (at[length] == '/' || at[length] == '\0' ||
            (more && at[length] == '+'));
}

/* 26.05 names a job in v2 by its SLUID, "s7WNM80N13EH00". */
static bool is_sluid(const char *at)
{
    size_t n = strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZs");

    return at[0] == 's' && n == 14 && at[n] == '/';
}

/*
 * Divide "/slurm_n1/uid_0/job_7/step_0/..." at the components of the job, and of
 * the step if it has that: *ret_step is its name, or NULL.  false: it is no
 * group of the job.
 */
static bool divide(const struct joule_usage *u, char *group, bool v2,
                   char **ret_step)
{
    for (char *at = strchr(group, '/'); at; at = strchr(at + 1, '/')) {
        char *step;

        if (!is_component(at + 1, u->job, false) && !(v2 && is_sluid(at + 1)))
            continue;
        step = strchr(at + 1, '/');
        *ret_step = NULL;
        if (!step)
            return true;
        *step++ = '\0';
        if (!is_component(step, u->step, true))
            return !v2;
        step[strcspn(step, "/")] = '\0';
        *ret_step = step;
        return true;
    }
    return false;
}

static int open_below(int dir_fd, const char *name, int flags)
{
    return joule_file_open(dir_fd, name, flags | O_NOFOLLOW);
}

static const char *counter_of(const struct joule_usage *u)
{
    if (u->from == JOULE_USAGE_FROM_V2)
        return "cpu.stat";
    return u->cpus ? "cpuacct.usage_percpu" : "cpuacct.usage";
}

/* The counter of group [a], or [a]/[b], below a directory. */
static int open_counter(const struct joule_usage *u, int dir_fd, const char *a,
                        const char *b)
{
    int step_fd = open_below(dir_fd, a, O_RDONLY | O_DIRECTORY);
    int group_fd = step_fd >= 0 && b
                       ? open_below(step_fd, b, O_RDONLY | O_DIRECTORY)
                       : step_fd;
    int fd = group_fd >= 0 ? open_below(group_fd, counter_of(u), O_RDONLY) : -1;

    if (group_fd >= 0)
        close(group_fd);
    if (step_fd >= 0 && step_fd != group_fd)
        close(step_fd);
    return fd;
}

/* The job's directory is there: it is kept in mind, and the counter of its step
 * is opened, if that is there. */
static bool open_job(struct joule_usage *u, const char *dir, const char *step,
                     bool v2)
{
    int dir_fd = open_below(u->root_fd, dir, O_RDONLY | O_DIRECTORY);
    char *copy = dir_fd >= 0 ? strdup(dir) : NULL;

    if (!copy) {
        if (dir_fd >= 0)
            close(dir_fd);
        return false;
    }
    free(u->job_dir);
    u->job_dir = copy;
    u->from = v2 ? JOULE_USAGE_FROM_V2 : JOULE_USAGE_FROM_V1;
    u->fd = open_counter(u, dir_fd, step ? step : u->step, v2 ? "user" : NULL);
    if (u->fd >= 0 && v2)
        u->stepd_fd = open_counter(u, dir_fd, step, "slurm");
    close(dir_fd);
    return true;
}

static bool open_group(struct joule_usage *u, char *group, bool v2)
{
    char dir[JOULE_CGROUP_DIR_MAX], *step;

    return divide(u, group, v2, &step) && (step || !v2) &&
           joule_cgroup_dir(u->root_fd, v2 ? NULL : "cpuacct", group, dir,
                            NULL) == 0 &&
           open_job(u, dir, step, v2);
}

/* v1: by its names, as Slurm makes them below the mount. */
static bool open_named(struct joule_usage *u)
{
    char point[JOULE_CGROUP_DIR_MAX], dir[JOULE_CGROUP_DIR_MAX + 400];

    if (joule_cgroup_mount(u->root_fd, "cpuacct", point) < 0)
        return false;
    u->has_hierarchy = true;
    snprintf(dir, sizeof(dir), "%s/slurm_%.256s/uid_%u/%s", point, u->node,
             (unsigned)u->uid, u->job);
    if (open_job(u, dir, NULL, false))
        return true;
    snprintf(dir, sizeof(dir), "%s/slurm/uid_%u/%s", point, (unsigned)u->uid,
             u->job);
    return open_job(u, dir, NULL, false);
}

static void find_group(struct joule_usage *u)
{
    char group[PATH_MAX];

    for (int v2 = 0; v2 <= 1 && u->path[0] == '/'; v2++) {
        snprintf(group, sizeof(group), "%s", u->path);
        if (open_group(u, group, v2))
            return;
    }
    /* v1: slurmstepd is not in the group that counts, but in the like of it in
     * other hierarchies, where Slurm uses these. */
    if (joule_cgroup_named(u->root_fd, u->pid, u->job, group) == 0 &&
        open_group(u, group, false))
        return;
    if (open_named(u))
        return;
    if (joule_cgroup_of(u->root_fd, u->pid, NULL, group) < 0)
        return;
    u->has_hierarchy = u->has_hierarchy || strcmp(group, "/") != 0;
    open_group(u, group, true);
}

struct joule_usage *joule_usage_create_job(const struct joule_usage *step)
{
    struct joule_usage *u;
    int dir_fd;

    if (!step->job_dir) {
        errno = step->has_hierarchy ? ENOENT : ENOTSUP;
        return NULL;
    }
    u = make(step->root_fd, step->from == JOULE_USAGE_FROM_V2 ? 0 : step->cpus);
    if (!u)
        return NULL;
    u->is_job = true;
    u->from = step->from;
    u->job_dir = strdup(step->job_dir);
    dir_fd = open_below(u->root_fd, step->job_dir, O_RDONLY | O_DIRECTORY);
    if (dir_fd >= 0)
        u->fd = open_below(dir_fd, counter_of(u), O_RDONLY);
    if (dir_fd >= 0)
        close(dir_fd);
    if (u->job_dir && u->fd >= 0)
        return u;
    errno = u->job_dir ? ENOENT : ENOMEM;
    joule_usage_destroy(u);
    return NULL;
}

/* ---- groups that Slurm has not made ---- */

static DIR *open_list(int dir_fd, const char *name)
{
    int fd = open_below(dir_fd, name, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

/* Slurm's own are "step_S" in a job, "task_T" in a step and none in a task;
 * and who may put processes into them is root, who owns the job's directory. */
static bool is_foreign(int dir_fd, const char *name, unsigned depth, uid_t owner)
{
    static const char *const own[] = {"step_", "task_"};
    char procs[300];
    struct stat st;

    if (depth >= 2 || strncmp(name, own[depth], strlen(own[depth])) != 0)
        return true;
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", name);
    return fstatat(dir_fd, procs, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_uid != owner;
}

static void count_foreign(int dir_fd, const char *name, unsigned depth,
                          uid_t owner, size_t *count)
{
    DIR *dir = open_list(dir_fd, name);
    struct dirent *entry;

    while (dir && *count < JOULE_USAGE_FOREIGN_MAX && (entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        if (is_foreign(dirfd(dir), entry->d_name, depth, owner))
            ++*count;
        else
            count_foreign(dirfd(dir), entry->d_name, depth + 1, owner, count);
    }
    if (dir)
        closedir(dir);
}

size_t joule_usage_foreign(const struct joule_usage *job)
{
    size_t count = 0;
    struct stat st;

    if (job->is_job && job->from == JOULE_USAGE_FROM_V1 &&
        fstatat(job->root_fd, job->job_dir, &st, AT_SYMLINK_NOFOLLOW) == 0)
        count_foreign(job->root_fd, job->job_dir, 0, st.st_uid, &count);
    return count;
}

/* ---- reading ---- */

/* "usage_usec 1234", the first line (cgroup-v2.rst) */
static int parse_v2(char *text, uint64_t *ret_ns)
{
    uint64_t us;

    if (strncmp(text, "usage_usec ", 11) == 0) {
        text[strcspn(text, "\n")] = '\0';
        if (joule_parse_u64(text + 11, 0, UINT64_MAX / 1000, &us) == 0) {
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

    if (u->stepd_fd >= 0 &&
        joule_busy_line(u->stepd_fd, u->text, u->size) >= 0 &&
        parse_v2(u->text, &ns) == 0)
        u->stepd_ns = ns;
    if (joule_busy_line(u->fd, u->text, u->size) < 0)
        return -1;
    ns = 0;
    if (u->from == JOULE_USAGE_FROM_V2) {
        if (parse_v2(u->text, &ns) < 0)
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

uint64_t joule_usage_stepd_ns(const struct joule_usage *u)
{
    return u->stepd_ns;
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
