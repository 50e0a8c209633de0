/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load.h - power over time, piecewise linear, and its exact integral.
 *
 * Every load, generator or trace, is a list of points (ns, uW).  Between two
 * points power is linear, two points at one time are a step.  A load that
 * repeats starts again after its last point; one that does not holds its
 * last power for ever.  Before its first point it holds its first power.
 * The integral is whole periods times the energy of a period plus the closed
 * form of the rest, in integers: nothing accumulates, nothing drifts.
 */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "tests/sim/number.h"

struct sim_load;

/*
 * A generator; watts and seconds are decimal fractions:
 *   const:W
 *   square:LOW:HIGH:PERIOD[:DUTY]   HIGH for the first DUTY (0..1, default
 *                                   0.5) of each period, then LOW
 *   ramp:LOW:HIGH:PERIOD            rises from LOW to HIGH, then drops
 * NULL with errno EINVAL or ENOMEM and a sentence.
 */
struct sim_load *sim_load_parse(const char *spec, struct joule_error *err);

/*
 * A trace: lines "seconds,watts" in ascending time; empty lines, lines that
 * start with '#' and a first line "seconds,watts" are passed over.
 * NULL with errno of the open, EINVAL or ENOMEM and a sentence that names
 * file and line.
 */
struct sim_load *sim_load_read(const char *path, bool repeat,
                               struct joule_error *err);

/* Constant power; NULL with errno ENOMEM. */
struct sim_load *sim_load_const(int64_t uw);

/* NULL is a no-op; errno is kept. */
void sim_load_destroy(struct sim_load *load);

/* The energy of 0..t_ns, rounded to 1 fJ; t_ns below 0 counts as 0.  Never
 * falls with t_ns. */
sim_fj sim_load_fj(const struct sim_load *load, int64_t t_ns);

/* The power at t_ns, of a step the one after it; t_ns below 0 counts as 0. */
int64_t sim_load_uw(const struct sim_load *load, int64_t t_ns);

#endif
