/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cycles.h - at which frequency CPUs ran while they ran, by their own count.
 *
 * IA32_MPERF (0xE7) counts at the rate of the time stamp counter (0x10) while
 * the CPU is not asleep, IA32_APERF (0xE8) at the rate it really has; Intel SDM
 * volume 3, 15.2, AMD APM volume 2, 17.3.  Both begin anew when a CPU is
 * taken offline: such an interval is left out.
 */
#ifndef JOULE_CPUFREQ_CYCLES_H
#define JOULE_CPUFREQ_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cpus.h"

/* One look at one CPU. */
struct joule_cycles_reading {
    uint64_t tsc, mperf, aperf;
    int64_t ns;        /* just before; any monotonic clock */
    int64_t spread_ns; /* until just after */
};

/* Whether what lies between two readings is long beside what each of them
 * took: whoever reads may lose the CPU between one counter and the next. */
bool joule_cycles_is_sharp(const struct joule_cycles_reading *before,
                           const struct joule_cycles_reading *now);

/* Cycles over some time and some CPUs; all 0: none. */
struct joule_cycles_sum {
    double actual_khz; /* of aperf x kHz of the time stamp counter */
    double reference;  /* of mperf */
};

/* Add what [cpu] did between two readings, of which [first] may be older than
 * [before]: the time stamp counter's rate is the mean since then. */
void joule_cycles_add(struct joule_cycles_sum *sum,
                      const struct joule_cycles_reading *first,
                      const struct joule_cycles_reading *before,
                      const struct joule_cycles_reading *now);

/* 0: no cycles, or no frequency that a CPU could have. */
uint32_t joule_cycles_khz(const struct joule_cycles_sum *sum);

struct joule_cycles;

/*
 * Open the counters of CPUs below root_fd (dev/cpu/N/msr), which needs root's
 * rights; reading them then does not.  With many CPUs, some of them.  NULL if
 * no CPU has them.
 */
struct joule_cycles *joule_cycles_create(int root_fd,
                                         const struct joule_cpus *cpus);
void joule_cycles_destroy(struct joule_cycles *c);

/* Add what all of them did since the last look, or since create; of a CPU that
 * could not be read sharply, the next look does. */
void joule_cycles_look(struct joule_cycles *c, struct joule_cycles_sum *sum);

#endif
