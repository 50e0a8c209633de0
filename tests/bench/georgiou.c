/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/georgiou.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

#define NOMINAL_GHZ 2.3

static struct georgiou_class classes[GEORGIOU_CLASSES] = {
    {.name = "stream", .seconds = 2 * 60, .scales = 0.5},
    {.name = "imb", .seconds = 15 * 60, .scales = 0.25},
    {.name = "linpack", .seconds = 44 * 60, .scales = 1},
};

static struct georgiou_job make_job(const struct georgiou_class *c, double ghz,
                                    double wattmeter_j, double error_pct)
{
    double slower = NOMINAL_GHZ / fmin(ghz, NOMINAL_GHZ);
    double seconds = c->seconds * (c->scales * slower + 1 - c->scales);

    return (struct georgiou_job){
        .ghz = ghz,
        .seconds = seconds,
        .node_w = wattmeter_j / GEORGIOU_NODES / seconds,
        .error_pct = error_pct,
    };
}

const struct georgiou_class *georgiou_load(const char *path)
{
    const char *srcdir = getenv("srcdir"); /* of make check */
    size_t count[GEORGIOU_CLASSES] = {0};
    char here[4096], line[256], name[32];
    double ghz, wattmeter_j, slurm_j, error_pct;
    FILE *table;

    snprintf(here, sizeof(here), "%s/%s", srcdir ? srcdir : ".",
             GEORGIOU_TABLE);
    if (!path)
        path = here;
    table = fopen(path, "r");
    if (!table)
        bench_die(path, "cannot be opened");
    while (fgets(line, sizeof(line), table)) {
        if (sscanf(line, "%31[a-z],%lf,%lf,%lf,%lf", name, &ghz, &wattmeter_j,
                   &slurm_j, &error_pct) != 5)
            continue;
        for (size_t i = 0; i < GEORGIOU_CLASSES; i++) {
            struct georgiou_class *c = &classes[i];

            if (strcmp(c->name, name) == 0 && count[i] < GEORGIOU_FREQUENCIES)
                c->job[count[i]++] = make_job(c, ghz, wattmeter_j, error_pct);
        }
    }
    fclose(table);
    for (size_t i = 0; i < GEORGIOU_CLASSES; i++)
        if (count[i] != GEORGIOU_FREQUENCIES)
            bench_die(path, "does not have 13 frequencies of each class");
    return classes;
}

double georgiou_lag_pct(double node_w, double idle_w, double seconds,
                        double settle_s)
{
    double tau_s = settle_s / log(50);

    if (settle_s == 0)
        return 0;
    return (node_w - idle_w) * tau_s * (1 - exp(-seconds / tau_s)) /
           (node_w * seconds) * 100;
}

double georgiou_sampling_pct(double node_w, double idle_w, double seconds)
{
    return (0.5 + (node_w - idle_w) / seconds) / node_w * 100;
}
