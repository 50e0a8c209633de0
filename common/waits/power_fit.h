/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * power_fit.h - the power of a process while it waits, from the power of its step on
 * a node and from how many processes waited at which time.
 *
 *     struct joule_power_fit f = {0};
 *     joule_power_fit_add(&f, seconds, watts, waiting);    of each row of a profile
 *     p = joule_power_fit_solve(&f, processes);
 *
 * The model is a line: watts = idle + more * waiting, where [waiting] is the mean number
 * of processes that wait in the row.  Each process has its part of what the line
 * shows where none waits, and what one more that waits adds to it or takes away:
 * watts / processes + more.  Where all rows have about the same number, or are too few
 * or too far from a line to tell more than this, it is the mean power of a process.
 *
 * Plain structs; floating point.
 */
#ifndef JOULE_WAITS_POWER_FIT_H
#define JOULE_WAITS_POWER_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct joule_power_fit {
    size_t rows;
    double seconds;            /* their sum, by which all is weighed */
    double waiting, waiting_2; /* sums of the number and its square */
    double watts, watts_2, waiting_watts;
    double least_watts, most_watts;
};

struct joule_wait_power {
    bool is_known;  /* false: there are no rows */
    bool is_fitted; /* by the line */
    double watts;   /* of a process that waits */
    double
        uncertain; /* two standard errors; of the mean: half of what lies between
                         the lowest and the highest row */
};

/* A row without time, or whose numbers are not finite, is passed over. */
void joule_power_fit_add(struct joule_power_fit *f, double seconds,
                         double watts, double waiting);

/* [processes] of the step on the node, at least 1. */
struct joule_wait_power joule_power_fit_solve(const struct joule_power_fit *f,
                                              unsigned processes);

#endif
