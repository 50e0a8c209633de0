/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number.h - decimal fractions of options and traces as scaled integers.
 *
 * The simulator's energy is exact because every watt and second enters as a
 * whole number of microwatts and nanoseconds; no double in between.
 */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#include <stdint.h>

/* Energy before it is rounded to a counter's tick: 1 uW x 1 ns = 1 fJ. */
__extension__ typedef unsigned __int128 sim_fj;

#define SIM_FJ_PER_NJ 1000000u

/* More than any node draws; keeps all products within 128 bits. */
#define SIM_POWER_MAX_UW INT64_C(100000000000) /* 100 kW */
/* The longest time in a trace or period: 3 years. */
#define SIM_TIME_MAX_NS INT64_C(100000000000000000)

/*
 * Digits with an optional fraction of at most [digits] (0..9) places; the
 * result is the value times 10^digits.  The whole string is consumed.
 * Returns 0, or -1 with errno EINVAL or ERANGE (above max), *ret unchanged.
 */
int sim_parse_fixed(const char *s, unsigned digits, int64_t max, int64_t *ret);

/* Watts to uW, at most SIM_POWER_MAX_UW; seconds to ns; a fraction 0..1 to
 * millionths. */
int sim_parse_uw(const char *s, int64_t *ret_uw);
int sim_parse_ns(const char *s, int64_t *ret_ns);
int sim_parse_ppm(const char *s, int64_t *ret_ppm);

#endif
