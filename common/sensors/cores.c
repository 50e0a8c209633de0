/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cores.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct place {
    const struct joule_topology_cpu *at;
    uint32_t package_cpu, core_cpu; /* the lowest of its package and core */
};

static int by_id(const void *a, const void *b)
{
    const struct joule_topology_cpu *x = ((const struct place *)a)->at;
    const struct joule_topology_cpu *y = ((const struct place *)b)->at;

    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    if (x->die != y->die)
        return x->die < y->die ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->package_cpu != y->package_cpu)
        return x->package_cpu < y->package_cpu ? -1 : 1;
    if (x->core_cpu != y->core_cpu)
        return x->core_cpu < y->core_cpu ? -1 : 1;
    return x->at->cpu < y->at->cpu ? -1 : x->at->cpu > y->at->cpu;
}

static bool is_same_core(const struct joule_topology_cpu *a,
                         const struct joule_topology_cpu *b)
{
    return a->package == b->package && a->die == b->die && a->core == b->core;
}

/* The lowest CPU of each package and core; [p] is sorted by number. */
static void find_lowest(struct place *p, size_t count)
{
    uint32_t lowest;
    size_t from, i;

    for (from = 0; from < count; from = i) {
        lowest = p[from].at->cpu;
        for (i = from; i < count && p[i].at->package == p[from].at->package;
             i++)
            if (p[i].at->cpu < lowest)
                lowest = p[i].at->cpu;
        for (i = from; i < count && p[i].at->package == p[from].at->package;
             i++)
            p[i].package_cpu = lowest;
    }
    for (i = 0; i < count; i++)
        p[i].core_cpu = i > 0 && is_same_core(p[i].at, p[i - 1].at)
                            ? p[i - 1].core_cpu
                            : p[i].at->cpu;
}

/* All CPUs in Slurm's order; the caller frees it. */
static struct place *places(const struct joule_topology *t)
{
    struct place *p = calloc(t->cpu_count, sizeof(*p));

    if (!p)
        return NULL;
    for (size_t i = 0; i < t->cpu_count; i++)
        p[i].at = &t->cpus[i];
    qsort(p, t->cpu_count, sizeof(*p), by_id);
    find_lowest(p, t->cpu_count);
    qsort(p, t->cpu_count, sizeof(*p), by_place);
    return p;
}

int joule_cores_cpus(const struct joule_topology *t, const unsigned *cores,
                     size_t count, uint64_t *ret_cpus, size_t words)
{
    struct place *p = places(t);
    uint64_t *cpus = calloc(words, sizeof(*cpus));
    size_t i, listed, core = 0;
    size_t found = 0, added = 0;

    if (!p || !cpus)
        goto no_memory;
    for (i = 0, listed = 0; i < t->cpu_count && listed < count; i++) {
        uint32_t cpu = p[i].at->cpu;

        if (i > 0 && !is_same_core(p[i].at, p[i - 1].at)) {
            listed += cores[listed] == core;
            core++;
        }
        if (listed == count || cores[listed] != core || cpu / 64 >= words)
            continue;
        found += i == 0 || !is_same_core(p[i].at, p[i - 1].at);
        cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
        added++;
    }
    for (i = 0; found == count && i < words; i++)
        ret_cpus[i] |= cpus[i];
    free(cpus);
    free(p);
    if (found == count)
        return (int)added;
    errno = ERANGE;
    return -1;
no_memory:
    free(cpus);
    free(p);
    errno = ENOMEM;
    return -1;
}
