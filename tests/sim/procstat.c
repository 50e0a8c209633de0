/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/procstat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS (10 * JOULE_NS_PER_MS)

bool sim_procstat_there(const struct sim_node *node)
{
    return node->jobs || node->own_stat;
}

/* Ticks that were used and, of those until now, were not. */
static void line(FILE *f, const char *name, uint64_t used, uint64_t all)
{
    fprintf(f, "%s %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0 0 0\n", name, used,
            all > used ? all - used : 0);
}

/* Offline CPUs use nothing. */
static void add_evenly(const struct sim_machine *m, uint64_t ns, uint64_t *used)
{
    size_t online = 0, seen = 0;

    for (size_t i = 0; i < m->cpu_count; i++)
        online += m->cpus[i].online;
    for (size_t i = 0; i < m->cpu_count; i++)
        if (m->cpus[i].online)
            used[i] += ns / online + (seen++ < ns % online);
}

static void add_used(const struct sim_node *node, uint64_t *used)
{
    const struct sim_machine *m = node->machine;
    const uint64_t *host;
    size_t hosts;

    if (!node->jobs) {
        add_evenly(m, node->cpu_ns, used);
        return;
    }
    host = sim_jobs_by_cpu(node->jobs, &hosts);
    if (!sim_jobs_know_cpus(node->jobs)) {
        add_evenly(m, host[0], used);
        return;
    }
    for (size_t cpu = 0; cpu < hosts; cpu++)
        used[sim_machine_host_cpu(m, (unsigned)cpu)] += host[cpu];
}

char *sim_procstat(struct sim_node *node, size_t *ret_length)
{
    const struct sim_machine *m = node->machine;
    int64_t mono_ns = joule_clock_mono_ns(node->clock);
    uint64_t ticks = (uint64_t)(mono_ns / TICK_NS), sum = 0, *used;
    char *text = NULL, name[16];
    FILE *f;

    used = calloc(m->cpu_count, sizeof(*used));
    f = open_memstream(&text, ret_length);
    if (!used || !f)
        goto out;
    sim_node_update(node, mono_ns);
    add_used(node, used);
    for (size_t i = 0; i < m->cpu_count; i++)
        sum += used[i] / TICK_NS;
    line(f, "cpu ", sum, ticks * m->cpu_count);
    for (size_t i = 0; i < m->cpu_count; i++) {
        snprintf(name, sizeof(name), "cpu%u", m->cpus[i].number);
        if (m->cpus[i].online)
            line(f, name, used[i] / TICK_NS, ticks);
    }
    fprintf(f, "btime %" PRId64 "\n",
            (joule_clock_wall_ns(node->clock) - mono_ns) / JOULE_NS_PER_S);
out:
    if (f && fclose(f)) {
        free(text);
        text = NULL;
    }
    free(used);
    return text;
}
