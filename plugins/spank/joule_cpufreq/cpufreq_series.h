/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpufreq_series.h - the frequency of a profiled step, over time: a table
 * "CPUFreq" that the configured profile plugin, whichever it is, is given
 * through Slurm.
 *
 *   MinKHz, MaxKHz  unsigned: the limits that the step's request came to; of
 *                   one frequency both are that one
 *   KHz             double: the mean of its CPUs since the row before, while
 *                   they ran; NaN: they did not, or nobody knows
 */
#ifndef JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_SERIES_H
#define JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_SERIES_H

#include <stdint.h>

struct joule_spank_series {
    int dataset; /* -1: this step has none */
    uint32_t low_khz, high_khz;
};

/* If the step's energy is profiled; without, nothing is to be said to it. */
void joule_spank_series_begin(struct joule_spank_series *s, uint32_t low_khz,
                              uint32_t high_khz);

/* A row of now; khz 0: not known.  Any thread. */
void joule_spank_series_add(void *series, uint32_t khz);

#endif
