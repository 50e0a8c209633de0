/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodeload.h - what a node draws while jobs come and go: sockets that they
 * load, steadily or in waves; memory, fans that step, a drift of the losses,
 * perhaps an accelerator that RAPL does not see; a power supply whose
 * efficiency bends with its load.  Arithmetic only, the same again for the same
 * seed; who uses it lets time pass.
 */
#ifndef JOULE_TESTS_NODELOAD_H
#define JOULE_TESTS_NODELOAD_H

#include <stdint.h>

#define NODE_LOAD_STEP_S 0.1

struct node_load {
    /* set by the test */
    uint64_t seed;
    double base_w;        /* of what is neither sockets nor fans */
    double accelerator_w; /* most that one draws */

    /* the job, or what goes for one */
    double job_w, wave_w, wave_s, phase_s, accelerator_job_w;

    /* now */
    double s, node_w, sockets_w, accelerator_now_w, fan_w, fan_s;
};

/* 60 W of the sockets and 70 W beside them, no accelerator, at 0 s. */
void node_load_init(struct node_load *l, uint64_t seed);

/* In [0, most), and about 0 with a deviation of 1, from the node's seed. */
double node_load_uniform(struct node_load *l, double most);
double node_load_normal(struct node_load *l);

/* No job: the sockets draw [sockets_w]. */
void node_load_rest(struct node_load *l, double sockets_w);

/* A job as chance has it. */
void node_load_vary(struct node_load *l);

/* What the sockets draw when the node draws [node_w] in the mean, without an
 * accelerator. */
double node_load_sockets(const struct node_load *l, double node_w);

/* Find the powers of the NODE_LOAD_STEP_S from now; the caller adds them to
 * the time. */
void node_load_draw(struct node_load *l);

#endif
