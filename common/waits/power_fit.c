/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/waits/power_fit.h"

#include <math.h>

/* Fewer rows are no line. */
#define ROWS_MIN 8

/* Numbers of waiting processes that differ by less than this part of a process
 * (standard deviation) tell nothing. */
#define SPREAD_MIN 0.02

void joule_power_fit_add(struct joule_power_fit *f, double seconds,
                         double watts, double waiting)
{
    if (!isfinite(seconds) || seconds <= 0 || !isfinite(watts) || watts < 0 ||
        !isfinite(waiting))
        return;
    if (f->rows == 0 || watts < f->least_watts)
        f->least_watts = watts;
    if (f->rows == 0 || watts > f->most_watts)
        f->most_watts = watts;
    f->rows++;
    f->seconds += seconds;
    f->waiting += seconds * waiting;
    f->waiting_2 += seconds * waiting * waiting;
    f->watts += seconds * watts;
    f->watts_2 += seconds * watts * watts;
    f->waiting_watts += seconds * waiting * watts;
}

/* Of one row nothing tells how far it may be off: by half of it. */
static struct joule_wait_power mean_of(const struct joule_power_fit *f,
                                       double processes)
{
    double range = f->rows > 1 ? f->most_watts - f->least_watts : f->most_watts;

    return (struct joule_wait_power){
        .is_known = true,
        .watts = f->watts / f->seconds / processes,
        .uncertain = range / 2 / processes,
    };
}

/* Least squares. */
static struct joule_wait_power line_of(const struct joule_power_fit *f,
                                       double processes)
{
    double n = (double)f->rows;
    double x = f->waiting / f->seconds, y = f->watts / f->seconds;
    double xx = f->waiting_2 / f->seconds - x * x;
    double xy = f->waiting_watts / f->seconds - x * y;
    double yy = f->watts_2 / f->seconds - y * y;
    double more = xy / xx, idle = y - more * x;
    double residual = fmax(yy - more * xy, 0) * n / (n - 2);
    /* Of idle / processes + more: both come from the same rows. */
    double factor = 1 - x / processes;
    double variance =
        residual / n * (1 / (processes * processes) + factor * factor / xx);

    return (struct joule_wait_power){
        .is_known = true,
        .is_fitted = true,
        .watts = idle / processes + more,
        .uncertain = 2 * sqrt(variance),
    };
}

struct joule_wait_power joule_power_fit_solve(const struct joule_power_fit *f,
                                              unsigned processes)
{
    struct joule_wait_power mean, line;
    double x;

    if (f->rows == 0 || processes == 0)
        return (struct joule_wait_power){0};
    mean = mean_of(f, processes);
    x = f->waiting / f->seconds;
    if (f->rows < ROWS_MIN ||
        f->waiting_2 / f->seconds - x * x < SPREAD_MIN * SPREAD_MIN)
        return mean;
    line = line_of(f, processes);
    return line.watts >= 0 && line.uncertain < mean.uncertain ? line : mean;
}
