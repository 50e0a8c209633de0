/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/nodeload.h"

#include <math.h>
#include <string.h>

#include "tests/unit/dice.h"

#define FAN_MOST_W    25
#define SOCKETS_LEAST 40 /* W */

void node_load_init(struct node_load *l, uint64_t seed)
{
    memset(l, 0, sizeof(*l));
    l->seed = seed;
    l->base_w = 70;
    l->job_w = 60;
}

double node_load_uniform(struct node_load *l, double most)
{
    return (double)(dice64(&l->seed) >> 11) * 0x1p-53 * most;
}

double node_load_normal(struct node_load *l)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += node_load_uniform(l, 1);
    return sum;
}

void node_load_rest(struct node_load *l, double sockets_w)
{
    l->wave_w = l->accelerator_job_w = 0;
    l->job_w = sockets_w;
}

void node_load_vary(struct node_load *l)
{
    node_load_rest(l, 80 + node_load_uniform(l, 250));
    if (node_load_uniform(l, 1) < 0.4) {
        l->wave_w = node_load_uniform(l, 60);
        l->wave_s = 5 + node_load_uniform(l, 60);
        l->phase_s = node_load_uniform(l, l->wave_s);
    }
    if (node_load_uniform(l, 1) < 0.7)
        l->accelerator_job_w = node_load_uniform(l, l->accelerator_w);
}

/* What is drawn from the plug for [load] watts behind the power supply. */
static double supply(double load)
{
    double part = load / 800;

    return load /
           (0.93 - 0.10 * (part - 0.5) * (part - 0.5) - 0.002 / (part + 0.05));
}

double node_load_sockets(const struct node_load *l, double node_w)
{
    double rest_w = l->base_w + FAN_MOST_W / 2.0;
    double low = 0, high = node_w;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (supply(1.06 * middle + rest_w) < node_w)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void node_load_draw(struct node_load *l)
{
    double load, w = l->job_w + node_load_normal(l);

    if (l->wave_w > 0)
        w += fmod(l->s + l->phase_s, l->wave_s) < l->wave_s / 2
                 ? l->wave_w / 2
                 : -l->wave_w / 2;
    l->sockets_w = w > SOCKETS_LEAST ? w : SOCKETS_LEAST;
    if (l->s >= l->fan_s) {
        l->fan_w = node_load_uniform(l, FAN_MOST_W);
        l->fan_s = l->s + 60 + node_load_uniform(l, 900);
    }
    l->accelerator_now_w +=
        (l->accelerator_job_w - l->accelerator_now_w) * NODE_LOAD_STEP_S / 1.5;
    load = 1.06 * l->sockets_w + l->base_w + l->fan_w + 8 * sin(l->s / 3000) +
           l->accelerator_now_w;
    l->node_w = supply(load);
}
