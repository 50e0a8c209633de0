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
#define NO_CORE      UINT32_C(0x80000000) /* and above: not known */

/* Read the id in a file of cpuN: 0 and *ret_id; 1 and [unknown] if there is no
 * such file; -1 with errno and a sentence. */
static int read_id(int root_fd, unsigned cpu, const char *name, uint32_t max,
                   uint32_t unknown, uint32_t *ret_id, struct joule_error *err)
{
    char path[CPU_PATH_MAX], text[CPU_ID_MAX];
    uint64_t value = unknown;

    *ret_id = unknown;
    snprintf(path, sizeof(path), CPU_DIR "/cpu%u/%s", cpu, name);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0) {
        if (errno == ENOENT)
            return 1;
        if (errno == EFBIG)
            return joule_error_set(err, EINVAL, "/%s is not a number", path);
        return joule_error_set(err, errno, "cannot read /%s: %m", path);
    }
    if (strcmp(text, "-1") != 0 && joule_parse_u64(text, 0, max, &value) < 0)
        return joule_error_set(err, EINVAL,
                               "/%s says \"%s\", not a number up to %u", path,
                               text, max);
    *ret_id = (uint32_t)value;
    return 0;
}

/* 0 and *ret_cpu; 1 if the CPU is offline, that is, has no topology. */
static int read_cpu(int root_fd, unsigned cpu, bool maybe_offline,
                    struct joule_topology_cpu *ret_cpu, struct joule_error *err)
{
    uint32_t online = 1, package, die, core;
    int rc;

    /* A CPU that cannot be switched off has no such file. */
    if (maybe_offline &&
        read_id(root_fd, cpu, "online", 1, 1, &online, err) < 0)
        return -1;
    if (!online)
        return 1;
    rc = read_id(root_fd, cpu, "topology/physical_package_id", PACKAGE_MAX, 0,
                 &package, err);
    if (rc != 0)
        return rc;
    if (read_id(root_fd, cpu, "topology/die_id", DIE_MAX, 0, &die, err) < 0 ||
        read_id(root_fd, cpu, "topology/core_id", NO_CORE - 1, NO_CORE + cpu,
                &core, err) < 0)
        return -1;
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

/* No lower CPU is in the same package or core. */
static bool is_lowest(const struct joule_topology *t, size_t i,
                      enum joule_topology_scope scope)
{
    for (size_t k = i; k-- > 0;)
        if (compare_place(&t->cpus[k], &t->cpus[i], scope) == 0)
            return false;
    return true;
}

static int by_place(const void *a, const void *b)
{
    return compare_place(a, b, JOULE_TOPOLOGY_CORE);
}

struct joule_topology_cpu *
joule_topology_first_cpus(const struct joule_topology *t,
                          enum joule_topology_scope scope, size_t *ret_count)
{
    struct joule_topology_cpu *cpus = malloc(t->cpu_count * sizeof(*cpus));
    size_t n = 0;

    if (!cpus)
        return NULL;
    for (size_t i = 0; i < t->cpu_count; i++)
        if (is_lowest(t, i, scope))
            cpus[n++] = t->cpus[i];
    qsort(cpus, n, sizeof(*cpus), by_place);
    *ret_count = n;
    return cpus;
}

bool joule_topology_is_same(const struct joule_topology_cpu *a,
                            const struct joule_topology_cpu *b,
                            enum joule_topology_scope scope)
{
    return compare_place(a, b, scope) == 0;
}

/* Add the CPUs of the core of t->cpus[first], its lowest.  Returns how many, or
 * 0 if one of them is beyond the bitmap. */
static int add_core(const struct joule_topology *t, size_t first,
                    uint64_t *cpus, size_t words)
{
    int added = 0;

    for (size_t i = first; i < t->cpu_count; i++) {
        uint32_t cpu = t->cpus[i].cpu;

        if (by_place(&t->cpus[i], &t->cpus[first]) != 0)
            continue;
        if (cpu / 64 >= words)
            return 0;
        cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
        added++;
    }
    return added;
}

int joule_topology_core_cpus(const struct joule_topology *t,
                             const unsigned *cores, size_t count,
                             uint64_t *ret_cpus, size_t words)
{
    size_t listed = 0;
    unsigned core = 0;
    int added = 0;

    memset(ret_cpus, 0, words * sizeof(*ret_cpus));
    for (size_t p = 0; p < t->cpu_count; p++) {
        if (!is_lowest(t, p, JOULE_TOPOLOGY_PACKAGE))
            continue;
        for (size_t i = p; i < t->cpu_count && listed < count; i++) {
            int n;

            if (compare_place(&t->cpus[i], &t->cpus[p],
                              JOULE_TOPOLOGY_PACKAGE) != 0 ||
                !is_lowest(t, i, JOULE_TOPOLOGY_CORE) ||
                cores[listed] != core++)
                continue;
            n = add_core(t, i, ret_cpus, words);
            if (n == 0)
                break;
            added += n;
            listed++;
        }
    }
    if (listed == count)
        return added;
    memset(ret_cpus, 0, words * sizeof(*ret_cpus));
    errno = ERANGE;
    return -1;
}

int joule_topology_read(int root_fd, struct joule_topology *ret,
                        struct joule_error *err)
{
    struct joule_topology t = {0};
    unsigned *numbers = NULL;
    bool maybe_offline = false;
    size_t count = 0;
    int rc = 0, saved;

    if (read_lists(root_fd, &numbers, &count, &maybe_offline, err) < 0)
        return -1;
    t.cpus = malloc((count > 0 ? count : 1) * sizeof(*t.cpus));
    if (!t.cpus)
        rc = joule_error_set(err, errno, "cannot read the CPU topology: %m");
    for (size_t i = 0; rc >= 0 && i < count; i++) {
        rc = read_cpu(root_fd, numbers[i], maybe_offline, &t.cpus[t.cpu_count],
                      err);
        if (rc != 0)
            continue;
        t.cpu_count++;
        t.packages += is_lowest(&t, t.cpu_count - 1, JOULE_TOPOLOGY_PACKAGE);
        t.dies += is_lowest(&t, t.cpu_count - 1, JOULE_TOPOLOGY_DIE);
    }
    if (rc >= 0 && t.cpu_count == 0)
        rc = joule_error_set(err, EINVAL,
                             "no online CPU has /" CPU_DIR "/cpuN/topology/"
                             "physical_package_id");
    saved = errno;
    free(numbers);
    if (rc < 0)
        free(t.cpus);
    else
        *ret = t;
    errno = saved;
    return rc < 0 ? -1 : 0;
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
