/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * average.h - at which frequency policies really ran over some time.
 *
 * A thread looks at scaling_cur_freq once a second (x86 kernels work it out
 * from the APERF and MPERF registers over the last tick).  With many policies
 * it looks at some of them.
 */
#ifndef JOULE_CPUFREQ_AVERAGE_H
#define JOULE_CPUFREQ_AVERAGE_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/cpufreq/cpus.h"

struct joule_average;

/* Begin.  root_fd stays the caller's, and open until the end.  NULL with errno
 * and a sentence. */
struct joule_average *joule_average_create(int root_fd,
                                           const struct joule_cpus *policies,
                                           struct joule_error *err);

/*
 * End: the mean in kHz and the number of readings; 0 and 0 if the kernel told
 * nothing.  Frees it; NULL is a no-op.
 */
void joule_average_destroy(struct joule_average *a, uint32_t *ret_khz,
                           unsigned *ret_readings);

#endif
