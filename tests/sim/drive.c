/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/sim/cgroup.h"

/* How often new descendants and gone cgroups are looked for: less often when
 * there are many to look at, so that the search stays below 1 % of a CPU. */
#define SEARCH_NS        (100 * JOULE_NS_PER_MS)
#define SEARCH_MEMBER_NS (5 * JOULE_NS_PER_MS)

/* PID_MAX_LIMIT of the kernel.  A CPU clock's id holds the pid in 29 bits, so
 * that 0x7fffffff would be the caller's own clock. */
#define PID_MAX (1 << 22)

struct member {
    char *path;               /* the cgroup, or NULL */
    struct sim_cgroup cgroup; /* not open while it is gone */
    pid_t pid;
    clockid_t clock;
    bool dead;       /* the process is gone for good */
    uint64_t first;  /* counter when the member began to count */
    uint64_t last;   /* and when it was last read */
    uint64_t before; /* what earlier cgroups of that path used */
    uint64_t *each;  /* of a cgroup by host CPU, when it was last read */
};

struct sim_drive {
    struct member *members;
    size_t count, space;
    bool pids;
    int64_t searched_ns;
    uint64_t *split; /* by simulated CPU, or NULL */
    size_t split_count;
    size_t (*map)(void *arg, unsigned cpu);
    void *map_arg;
};

struct sim_drive *sim_drive_create(void)
{
    return calloc(1, sizeof(struct sim_drive));
}

void sim_drive_destroy(struct sim_drive *drive)
{
    if (!drive)
        return;
    for (size_t i = 0; i < drive->count; i++) {
        sim_cgroup_close(&drive->members[i].cgroup);
        free(drive->members[i].path);
        free(drive->members[i].each);
    }
    free(drive->members);
    free(drive->split);
    free(drive);
}

static struct member *member_add(struct sim_drive *drive)
{
    struct member *m;

    if (drive->count == drive->space) {
        size_t space = drive->space ? drive->space * 2 : 8;

        m = realloc(drive->members, space * sizeof(*m));
        if (!m)
            return NULL;
        drive->members = m;
        drive->space = space;
    }
    m = &drive->members[drive->count++];
    *m = (struct member){.cgroup = {.fd = -1}};
    return m;
}

/* cgroups */

static int cgroup_open(struct member *m)
{
    return sim_cgroup_open(&m->cgroup, AT_FDCWD, m->path, m->each);
}

/* What is more than at the last time is added to the split, unless this is
 * where it begins. */
static int cgroup_read_each(struct sim_drive *drive, struct member *m,
                            bool begin, uint64_t *ret_ns)
{
    uint64_t now[SIM_CGROUP_CPUS];
    size_t count;

    if (sim_cgroup_read_each(&m->cgroup, now, &count))
        return -1;
    *ret_ns = 0;
    for (unsigned cpu = 0; cpu < count; cpu++) {
        *ret_ns += now[cpu];
        if (now[cpu] <= m->each[cpu])
            continue;
        if (!begin)
            drive->split[drive->map(drive->map_arg, cpu)] +=
                now[cpu] - m->each[cpu];
        m->each[cpu] = now[cpu];
    }
    return 0;
}

/* The counter from which sim_drive_split goes on is another one. */
static int member_split(struct sim_drive *drive, struct member *m)
{
    uint64_t ns;

    if (!m->path || m->each)
        return 0;
    if (m->cgroup.micro)
        return errno = ENOTSUP, -1;
    m->each = calloc(SIM_CGROUP_CPUS, sizeof(*m->each));
    if (!m->each)
        return -1;
    sim_cgroup_close(&m->cgroup);
    if (!cgroup_open(m) && !cgroup_read_each(drive, m, true, &ns) &&
        ns > m->last)
        m->last = ns;
    return 0;
}

int sim_drive_add_cgroup(struct sim_drive *drive, const char *path,
                         struct joule_error *err)
{
    struct member *m = member_add(drive);

    if (!m)
        return joule_error_set(err, ENOMEM, "out of memory");
    m->path = strdup(path);
    if (m->path && !cgroup_open(m) && !sim_cgroup_read(&m->cgroup, &m->first)) {
        m->last = m->first;
        if (!drive->split || !member_split(drive, m))
            return 0;
    }
    joule_error_set(err, errno,
                    "cgroup %s has no readable cpuacct.usage or cpu.stat: %m",
                    path);
    sim_cgroup_close(&m->cgroup);
    free(m->path);
    free(m->each);
    drive->count--;
    return -1;
}

/* Processes */

static bool member_has(const struct sim_drive *drive, pid_t pid)
{
    for (size_t i = 0; i < drive->count; i++)
        if (drive->members[i].pid == pid && !drive->members[i].dead)
            return true;
    return false;
}

static int pid_read(const struct member *m, uint64_t *ret_ns)
{
    struct timespec ts;

    if (clock_gettime(m->clock, &ts))
        return -1;
    *ret_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    return 0;
}

/* The CPU on which a process ran last: field 39 of /proc/PID/stat (proc(5)),
 * counted from behind the name, which may have anything in it. */
static unsigned pid_cpu(pid_t pid)
{
    char path[32], buf[1024], *at;
    ssize_t len = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, buf, sizeof(buf) - 1);
        close(fd);
    }
    buf[len > 0 ? len : 0] = '\0';
    at = strrchr(buf, ')');
    for (int field = 2; at && field < 39; field++)
        at = strchr(at + 1, ' ');
    return at ? (unsigned)strtoul(at, NULL, 10) : 0;
}

static int pid_add(struct sim_drive *drive, pid_t pid, bool newborn)
{
    struct member *m = member_add(drive);
    int rc;

    if (!m)
        return -1;
    rc = pid > PID_MAX ? ESRCH : clock_getcpuclockid(pid, &m->clock);
    if (!rc && pid_read(m, &m->last))
        rc = errno;
    if (rc) {
        drive->count--;
        errno = rc;
        return -1;
    }
    m->pid = pid;
    if (!newborn)
        m->first = m->last;
    else if (drive->split)
        drive->split[drive->map(drive->map_arg, pid_cpu(pid))] += m->last;
    return 0;
}

/* Add the children of one thread; the list grows, so the caller's walk over
 * the members reaches the grandchildren too. */
static void children_add(struct sim_drive *drive, pid_t pid, const char *tid,
                         bool newborn)
{
    char path[64];
    FILE *f;
    int child;

    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, tid);
    f = fopen(path, "re");
    if (!f)
        return;
    while (fscanf(f, "%d", &child) == 1)
        if (!member_has(drive, child))
            pid_add(drive, child, newborn);
    fclose(f);
}

static void descendants_add(struct sim_drive *drive, size_t from, bool newborn)
{
    for (size_t i = from; i < drive->count; i++) {
        pid_t pid = drive->members[i].pid;
        char path[64];
        struct dirent *entry;
        DIR *tasks;

        if (!pid || drive->members[i].dead)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        tasks = opendir(path);
        if (!tasks)
            continue;
        while ((entry = readdir(tasks)))
            if (entry->d_name[0] != '.')
                children_add(drive, pid, entry->d_name, newborn);
        closedir(tasks);
    }
}

int sim_drive_add_pid(struct sim_drive *drive, pid_t pid,
                      struct joule_error *err)
{
    size_t from = drive->count;

    if (member_has(drive, pid))
        return joule_error_set(err, EEXIST, "process %d counts already",
                               (int)pid);
    if (pid_add(drive, pid, false))
        return joule_error_set(err, errno, "cannot count process %d: %m",
                               (int)pid);
    drive->pids = true;
    descendants_add(drive, from, false);
    return 0;
}

/* Sampling */

static void search(struct sim_drive *drive)
{
    if (drive->pids)
        descendants_add(drive, 0, true);
    for (size_t i = 0; i < drive->count; i++) {
        struct member *m = &drive->members[i];

        if (!m->path || m->cgroup.fd >= 0 || cgroup_open(m))
            continue;
        m->before += m->last - m->first;
        m->first = m->last = 0;
        if (m->each)
            memset(m->each, 0, SIM_CGROUP_CPUS * sizeof(*m->each));
    }
}

static void member_update(struct sim_drive *drive, struct member *m)
{
    uint64_t ns;

    if (m->path) {
        if (m->cgroup.fd < 0)
            return;
        if (m->each ? cgroup_read_each(drive, m, false, &ns)
                    : sim_cgroup_read(&m->cgroup, &ns)) {
            sim_cgroup_close(&m->cgroup);
            return;
        }
    } else {
        if (m->dead)
            return;
        if (pid_read(m, &ns)) {
            m->dead = true;
            return;
        }
    }
    if (drive->split && !m->path && ns > m->last)
        drive->split[drive->map(drive->map_arg, pid_cpu(m->pid))] +=
            ns - m->last;
    if (ns > m->last)
        m->last = ns;
}

int sim_drive_split(struct sim_drive *drive, size_t count,
                    size_t (*map)(void *arg, unsigned cpu), void *arg,
                    struct joule_error *err)
{
    if (drive->split)
        return 0;
    drive->split = calloc(count, sizeof(*drive->split));
    if (!drive->split)
        return joule_error_set(err, ENOMEM, "out of memory");
    drive->split_count = count;
    drive->map = map;
    drive->map_arg = arg;
    for (size_t i = 0; i < drive->count; i++)
        if (member_split(drive, &drive->members[i])) {
            free(drive->split);
            drive->split = NULL;
            return joule_error_set(err, errno,
                                   "cgroup %s does not tell CPU time by CPU: "
                                   "%m",
                                   drive->members[i].path);
        }
    return 0;
}

const uint64_t *sim_drive_by_cpu(const struct sim_drive *drive)
{
    return drive->split;
}

uint64_t sim_drive_cpu_ns(struct sim_drive *drive, int64_t now_ns)
{
    int64_t pause_ns = (int64_t)drive->count * SEARCH_MEMBER_NS;
    uint64_t sum = 0;

    if (pause_ns < SEARCH_NS)
        pause_ns = SEARCH_NS;
    if (now_ns - drive->searched_ns >= pause_ns) {
        drive->searched_ns = now_ns;
        search(drive);
    }
    for (size_t i = 0; i < drive->count; i++) {
        struct member *m = &drive->members[i];

        member_update(drive, m);
        sum += m->before + m->last - m->first;
    }
    return sum;
}
