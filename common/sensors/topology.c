/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/topology.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define CPU_DIR      "sys/devices/system/cpu"
#define CPU_LIST_MAX (512 * 1024) /* bytes; every second of 65536 CPUs */
#define CPU_PATH_MAX 128
#define CPU_ID_MAX   32
#define PACKAGE_MAX  UINT16_MAX
#define DIE_MAX      UINT16_MAX
#define CORE_MAX     (JOULE_TOPOLOGY_NO_CORE - 1)

int joule_topology_parse_id(const char *text, uint32_t max, uint32_t unknown,
                            uint32_t *ret_id)
{
    uint64_t value;

    if (strcmp(text, "-1") == 0) {
        *ret_id = unknown;
        return 0;
    }
    if (joule_parse_u64(text, 0, max, &value) < 0)
        return -1;
    *ret_id = (uint32_t)value;
    return 0;
}

/* Read a file of cpuN and parse the id in it.  ENOENT is the caller's case,
 * without a sentence. */
static int read_id(int root_fd, unsigned cpu, const char *name, uint32_t max,
                   uint32_t unknown, uint32_t *ret_id, struct joule_error *err)
{
    char path[CPU_PATH_MAX], text[CPU_ID_MAX];

    snprintf(path, sizeof(path), CPU_DIR "/cpu%u/%s", cpu, name);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0) {
        if (errno == ENOENT)
            return -1;
        if (errno == EFBIG)
            return joule_error_set(err, EINVAL, "/%s is not a number", path);
        return joule_error_set(err, errno, "cannot read /%s: %m", path);
    }
    if (joule_topology_parse_id(text, max, unknown, ret_id) < 0)
        return joule_error_set(err, EINVAL,
                               "/%s says \"%s\", not a number up to %u", path,
                               text, max);
    return 0;
}

/* 0 and *ret_cpu; 1 if the CPU is offline, that is, has no topology. */
static int read_cpu(int root_fd, unsigned cpu, bool maybe_offline,
                    struct joule_topology_cpu *ret_cpu, struct joule_error *err)
{
    uint32_t online, package, die, core;
    uint32_t no_core = JOULE_TOPOLOGY_NO_CORE + cpu;

    if (maybe_offline) {
        /* A CPU that cannot be switched off has no such file. */
        if (read_id(root_fd, cpu, "online", 1, 1, &online, err) < 0) {
            if (errno != ENOENT)
                return -1;
        } else if (!online) {
            return 1;
        }
    }
    if (read_id(root_fd, cpu, "topology/physical_package_id", PACKAGE_MAX, 0,
                &package, err) < 0)
        return errno == ENOENT ? 1 : -1;
    if (read_id(root_fd, cpu, "topology/die_id", DIE_MAX, 0, &die, err) < 0) {
        if (errno != ENOENT)
            return -1;
        die = 0;
    }
    if (read_id(root_fd, cpu, "topology/core_id", CORE_MAX, no_core, &core,
                err) < 0) {
        if (errno != ENOENT)
            return -1;
        core = no_core;
    }
    *ret_cpu = (struct joule_topology_cpu){
        .cpu = cpu,
        .package = (uint16_t)package,
        .die = (uint16_t)die,
        .core = core,
    };
    return 0;
}

/* The CPUs to look at, from the best list there is. */
static int read_lists(int root_fd, unsigned **ret_cpus, size_t *ret_count,
                      bool *ret_maybe_offline, struct joule_error *err)
{
    static const char *const paths[] = {
        CPU_DIR "/online",
        CPU_DIR "/present",
        CPU_DIR "/possible",
    };

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *text = joule_file_load(root_fd, paths[i], CPU_LIST_MAX, NULL);
        int rc, saved;

        if (!text) {
            if (errno == ENOENT)
                continue;
            return joule_error_set(err, errno, "cannot read /%s: %m", paths[i]);
        }
        rc = joule_parse_cpulist(text, ret_cpus, ret_count);
        saved = errno;
        if (rc < 0 && saved == ENOMEM)
            joule_error_set(err, saved, "cannot read /%s: %m", paths[i]);
        else if (rc < 0)
            joule_error_set(err, saved = EINVAL,
                            "/%s says \"%.64s\", not a list of CPUs up to %d",
                            paths[i], text, JOULE_CPU_MAX);
        free(text);
        errno = saved;
        *ret_maybe_offline = i > 0;
        return rc;
    }
    return joule_error_set(err, ENOENT,
                           "/" CPU_DIR "/online is missing: mount sysfs on "
                           "/sys");
}

/* Negative, 0 or positive as a stands before, with or behind b when only the
 * scope counts. */
static int compare_place(const struct joule_topology_cpu *a,
                         const struct joule_topology_cpu *b,
                         enum joule_topology_scope scope)
{
    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (scope == JOULE_TOPOLOGY_PACKAGE)
        return 0;
    if (a->die != b->die)
        return a->die < b->die ? -1 : 1;
    if (scope == JOULE_TOPOLOGY_DIE)
        return 0;
    return a->core < b->core ? -1 : a->core > b->core;
}

static int compare_number(const struct joule_topology_cpu *a,
                          const struct joule_topology_cpu *b)
{
    return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

/* One function for each scope: qsort() has no argument to pass it in. */
static int order_package(const void *a, const void *b)
{
    int order = compare_place(a, b, JOULE_TOPOLOGY_PACKAGE);

    return order != 0 ? order : compare_number(a, b);
}

static int order_die(const void *a, const void *b)
{
    int order = compare_place(a, b, JOULE_TOPOLOGY_DIE);

    return order != 0 ? order : compare_number(a, b);
}

static int order_core(const void *a, const void *b)
{
    int order = compare_place(a, b, JOULE_TOPOLOGY_CORE);

    return order != 0 ? order : compare_number(a, b);
}

struct joule_topology_cpu *
joule_topology_first_cpus(const struct joule_topology *t,
                          enum joule_topology_scope scope, size_t *ret_count)
{
    static int (*const orders[])(const void *, const void *) = {
        [JOULE_TOPOLOGY_PACKAGE] = order_package,
        [JOULE_TOPOLOGY_DIE] = order_die,
        [JOULE_TOPOLOGY_CORE] = order_core,
    };
    struct joule_topology_cpu *cpus;
    size_t n = 1;

    cpus = malloc(t->cpu_count * sizeof(*cpus));
    if (!cpus)
        return NULL;
    memcpy(cpus, t->cpus, t->cpu_count * sizeof(*cpus));
    qsort(cpus, t->cpu_count, sizeof(*cpus), orders[scope]);
    for (size_t i = 1; i < t->cpu_count; i++)
        if (compare_place(&cpus[i], &cpus[n - 1], scope) != 0)
            cpus[n++] = cpus[i];
    *ret_count = n;
    return cpus;
}

bool joule_topology_is_same(const struct joule_topology_cpu *a,
                            const struct joule_topology_cpu *b,
                            enum joule_topology_scope scope)
{
    return compare_place(a, b, scope) == 0;
}

static int count_places(const struct joule_topology *t,
                        enum joule_topology_scope scope, unsigned *ret_count)
{
    size_t n;
    struct joule_topology_cpu *cpus = joule_topology_first_cpus(t, scope, &n);

    if (!cpus)
        return -1;
    free(cpus);
    *ret_count = (unsigned)n;
    return 0;
}

int joule_topology_read(int root_fd, struct joule_topology *ret,
                        struct joule_error *err)
{
    struct joule_topology t = {0};
    unsigned *numbers = NULL;
    bool maybe_offline = false;
    size_t count = 0;
    int rc = -1, saved;

    if (read_lists(root_fd, &numbers, &count, &maybe_offline, err) < 0)
        return -1;
    t.cpus = malloc((count > 0 ? count : 1) * sizeof(*t.cpus));
    if (!t.cpus) {
        joule_error_set(err, errno, "cannot read the CPU topology: %m");
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        int offline = read_cpu(root_fd, numbers[i], maybe_offline,
                               &t.cpus[t.cpu_count], err);

        if (offline < 0)
            goto out;
        if (!offline)
            t.cpu_count++;
    }
    if (t.cpu_count == 0) {
        joule_error_set(err, EINVAL,
                        "no online CPU has /" CPU_DIR "/cpuN/topology/"
                        "physical_package_id");
        goto out;
    }
    if (count_places(&t, JOULE_TOPOLOGY_PACKAGE, &t.packages) < 0 ||
        count_places(&t, JOULE_TOPOLOGY_DIE, &t.dies) < 0) {
        joule_error_set(err, errno, "cannot read the CPU topology: %m");
        goto out;
    }
    *ret = t;
    rc = 0;
out:
    saved = errno;
    free(numbers);
    if (rc < 0)
        free(t.cpus);
    errno = saved;
    return rc;
}

int joule_topology_refresh(int root_fd, struct joule_topology *t,
                           struct joule_error *err)
{
    struct joule_topology now;
    unsigned *numbers = NULL;
    bool maybe_offline = false, same;
    size_t count = 0;

    if (read_lists(root_fd, &numbers, &count, &maybe_offline, err) < 0)
        return -1;
    same = !maybe_offline && count == t->cpu_count;
    for (size_t i = 0; same && i < count; i++)
        same = numbers[i] == t->cpus[i].cpu;
    free(numbers);
    if (same)
        return 0;
    if (joule_topology_read(root_fd, &now, err) < 0)
        return -1;
    joule_topology_free(t);
    *t = now;
    return 0;
}

void joule_topology_free(struct joule_topology *t)
{
    free(t->cpus);
    *t = (struct joule_topology){0};
}
