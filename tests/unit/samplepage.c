/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/samplepage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/dice.h"

static const struct joule_page_metric sample_metric[] = {
    {"time", "Time", "s",
     "Time of all processes, from the start of the program to its end.", -1,
     true},
    {"mpi", "MPI", "s", "Time within calls of MPI.", 0, true},
    {"late-sender", "Late sender", "s",
     "A receive waits, since its message is sent too late.", 1, true},
    {"late-receiver", "Late receiver", "s",
     "A send waits, since its message is not received yet.", 1, true},
    {"wait-n-x-n", "Wait at N x N", "s",
     "A collective call waits for the last of its processes.", 1, true},
    {"energy", "Energy", "J", "Energy of the cores that the processes ran on.",
     -1, true},
    {"waiting", "Energy while waiting", "J",
     "What the cores drew while their process waited.", 5, true},
    {"saving", "Saving potential", "J",
     "What lower frequencies of processes that wait anyway would save.", -1,
     true},
    {"longest", "Longest wait", "s", "The longest of all single waits.", -1,
     false},
};
#define METRICS 9

static const struct joule_page_path small_path[] = {
    {"main", -1},    {"setup", 0},    {"MPI_Bcast", 1},     {"solve", 0},
    {"exchange", 3}, {"MPI_Recv", 4}, {"MPI_Allreduce", 3}, {"MPI_Barrier", 0},
};

static const char *const hostile[] = {
    "</script><script>document.title = 'broken'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.title = 'broken'\">",
    "line\xE2\x80\xA8separator\xE2\x80\xA9s",
    "invalid \xFF\xC3 \xED\xA0\x80 UTF-8",
    "control \x01\x1B[31m\n\r\t\x7F characters",
    "\xE2\x80\xAEright to left\xE2\x80\xAC",
    "__proto__",
    "\"quotes\" \\u003c 'and' back\\slashes &lt;&amp;",
    "]]><svg onload=alert(1)>",
    "\xF0\x9F\x94\xA5 std::vector<std::pair<int, T>>::operator[](unsigned "
    "long) const",
    "constructor",
};
#define HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

static void *make(size_t count, size_t size)
{
    void *made = calloc(count + 1, size);

    if (!made)
        abort();
    return made;
}

static void create(struct sample_page *s, size_t metrics, size_t paths,
                   size_t nodes, size_t processes, size_t points)
{
    struct joule_page *p = &s->page;

    s->metric = make(metrics, sizeof(*s->metric));
    s->path = make(paths, sizeof(*s->path));
    s->process = make(processes, sizeof(*s->process));
    s->value = make(metrics * paths * processes, sizeof(*s->value));
    s->node = make(nodes, sizeof(*s->node));
    s->power = make(nodes, sizeof(*s->power));
    s->s = make(nodes * points, sizeof(*s->s));
    s->watts = make(nodes * points, sizeof(*s->watts));
    s->text = make(nodes + processes + paths, sizeof(*s->text));
    memcpy(s->metric, sample_metric, metrics * sizeof(*s->metric));
    for (size_t i = 0; i < nodes; i++) {
        snprintf(s->text[i], sizeof(s->text[i]), "node%02zu", i + 1);
        s->node[i] = s->text[i];
    }
    for (size_t i = 0; i < processes; i++) {
        char *name = s->text[nodes + i];

        snprintf(name, sizeof(s->text[0]), "rank %zu", i);
        s->process[i] = (struct joule_page_process){
            name, (int)(i * nodes / processes), (uint32_t)i};
    }
    for (size_t i = 0; i < nodes && points > 0; i++)
        s->power[i] = (struct joule_page_power){
            (int)i, points, s->s + i * points, s->watts + i * points};
    *p = (struct joule_page){
        .title = "Job 482113: lagrange",
        .subtitle = "step 0, 12.4 s, 2026-11-21 08:00:00 UTC",
        .metrics = metrics,
        .paths = paths,
        .nodes = nodes,
        .processes = processes,
        .powers = points > 0 ? nodes : 0,
        .metric = s->metric,
        .path = s->path,
        .node = s->node,
        .process = s->process,
        .value = s->value,
        .power = s->power,
        .selected_metric = metrics > 1 ? 1 : 0,
        .begin_s = 1000,
        .end_s = 1012.4,
    };
}

/* Around [mean], more for later ranks. */
static void add_values(struct sample_page *s, size_t metric, size_t path,
                       double mean, uint64_t *dice_state)
{
    struct joule_page *p = &s->page;

    for (size_t i = 0; i < p->processes; i++) {
        double slope = 0.4 + 1.2 * (double)i / (double)p->processes;
        double noise = 0.9 + 0.2 * (double)dice(dice_state, 1000) / 1000;

        s->value[p->values++] =
            (struct joule_page_value){(uint32_t)metric, (uint32_t)path,
                                      (uint32_t)i, mean * slope * noise};
    }
}

/* A node draws less where its ranks wait. */
static void fill_power(struct sample_page *s, size_t points)
{
    double seconds = s->page.end_s - s->page.begin_s;
    uint64_t state = 7;

    for (size_t i = 0; i < s->page.powers; i++)
        for (size_t k = 0; k < points; k++) {
            double at = (double)k / (double)(points - 1);
            double load = fmod(at * 6 + 0.03 * (double)i, 1) < 0.75 ? 1 : 0.45;

            s->s[i * points + k] = s->page.begin_s + at * seconds;
            s->watts[i * points + k] =
                160 + (250 + 9 * (double)(i % 8)) * (at < 0.08 ? 0.3 : load) +
                (double)dice(&state, 12);
        }
}

static void fill_small(struct sample_page *s, size_t processes)
{
    /* Mean ms of each path, by metric; J for energy. */
    static const double ms[METRICS][8] = {
        {40, 900, 0, 120, 310, 0, 0, 0},
        {0, 0, 20, 0, 0, 60, 240, 8},
        {0, 0, 0, 0, 0, 2900, 0, 0},
        {0, 0, 3, 0, 0, 0, 0, 0},
        {0, 0, 410, 0, 0, 0, 1350, 96},
        {1200, 27000, 600, 3600, 9300, 1800, 7200, 240},
        {0, 0, 8100, 0, 0, 58000, 27000, 1900},
        {0, 0, 2100, 0, 0, 31000, 9000, 600},
        {0, 0, 400, 0, 0, 310, 95, 96},
    };
    uint64_t state = 1;

    create(s, METRICS, 8, processes > 1 ? 2 : 1, processes,
           processes > 1 ? 120 : 0);
    memcpy(s->path, small_path, sizeof(small_path));
    for (size_t m = 0; m < METRICS; m++)
        for (size_t i = 0; i < 8; i++)
            if (ms[m][i] > 0)
                add_values(s, m, i, ms[m][i] / 1000, &state);
    fill_power(s, 120);
    if (processes > 1)
        s->watts[170] = s->watts[171] = s->watts[172] = NAN;
    else
        s->page.no_power =
            "The step had no profile: start it with --profile=energy.";
}

static void fill_hostile(struct sample_page *s)
{
    size_t next = 0;

    fill_small(s, 4);
    for (size_t i = 0; i < s->page.metrics; i++) {
        s->metric[i].name = hostile[next++ % HOSTILE];
        s->metric[i].about = hostile[next % HOSTILE];
        s->metric[i].id = hostile[(next + 3) % HOSTILE];
        s->metric[i].unit = i < 5 ? "</style>" : hostile[i < 7 ? 1 : 2];
    }
    for (size_t i = 0; i < s->page.paths; i++)
        s->path[i].name = hostile[(i + 4) % HOSTILE];
    for (size_t i = 0; i < s->page.processes; i++)
        s->process[i].name = hostile[i];
    for (size_t i = 0; i < s->page.nodes; i++)
        s->node[i] = hostile[i + 2];
    s->page.title = hostile[0];
    s->page.subtitle = hostile[2];
}

static void fill_large(struct sample_page *s)
{
    uint64_t state = 3;

    create(s, 8, 100, 64, 4096, 20000);
    for (size_t i = 0; i < 100; i++) {
        char *name = s->text[64 + 4096 + i];

        snprintf(name, sizeof(s->text[0]),
                 i == 0   ? "main"
                 : i < 10 ? "phase %zu"
                          : "MPI_Call_%zu",
                 i);
        s->path[i] =
            (struct joule_page_path){name, i == 0   ? -1
                                           : i < 10 ? 0
                                                    : (int)(i % 9 + 1)};
    }
    for (size_t m = 0; m < 8; m++)
        for (size_t i = 0; i < 100; i++)
            add_values(s, m, i, 0.001 * (double)(1 + dice(&state, 900)),
                       &state);
    fill_power(s, 20000);
}

struct sample_page *sample_page_create(const char *name)
{
    struct sample_page *s = make(1, sizeof(*s));

    if (strcmp(name, "small") == 0)
        fill_small(s, 4);
    else if (strcmp(name, "hostile") == 0)
        fill_hostile(s);
    else if (strcmp(name, "empty") == 0)
        create(s, 0, 0, 0, 0, 0);
    else if (strcmp(name, "calm") == 0) {
        fill_small(s, 4);
        s->page.values = 0;
    } else if (strcmp(name, "one") == 0)
        fill_small(s, 1);
    else if (strcmp(name, "large") == 0)
        fill_large(s);
    else {
        free(s);
        return NULL;
    }
    return s;
}

void sample_page_destroy(struct sample_page *s)
{
    if (!s)
        return;
    free(s->metric);
    free(s->path);
    free(s->process);
    free(s->value);
    free(s->power);
    free(s->node);
    free(s->s);
    free(s->watts);
    free(s->text);
    free(s);
}
