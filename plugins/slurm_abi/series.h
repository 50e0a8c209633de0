/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series.h - the energy series of a profiled step.
 *
 * Columns: "Power" (W, unsigned, as Slurm's own plugins), "node_uJ" (unsigned:
 * the node's energy since the step began), then the mean power of each domain
 * since the sample before, "package_0_mW", "dram_0_mW", ... (double).
 *
 * Of a power source: the mean power of each label, "NodePower" (W, unsigned, as
 * Slurm's own plugin), "Socket0Power", ..., then "node_uJ", then each label
 * once more, "Node_mW", "Socket0_mW", ... (double).  A label other than the
 * node's that is not measured at that time is NaN in the latter and 0 in the
 * former, which has no such value.
 *
 * A sample is written only when its interval was measured: there is no first
 * sample of 0 W, and none while the BMC does not answer.
 */
#ifndef JOULE_SLURM_SERIES_H
#define JOULE_SLURM_SERIES_H

#include <time.h>

#include "common/board/account.h"

struct joule_series;

/* NULL with errno ENOMEM. */
struct joule_series *joule_series_create(const struct joule_source *source);
void joule_series_destroy(struct joule_series *series);

/* Give the sample to the configured profile plugin. */
void joule_series_add(struct joule_series *series,
                      const struct joule_account_reading *reading,
                      time_t sample_time);

#endif
