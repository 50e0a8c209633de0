/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * window.h - lowest, highest and mean of what the BMC has shown: since it
 * began, and over the last seconds (DCMI's two kinds of power statistics).
 *
 * The last 64 s are kept in buckets of 250 ms.
 */
#ifndef BMCSIM_WINDOW_H
#define BMCSIM_WINDOW_H

#include <stdint.h>

#include "common/base/clock.h"

#define BMC_BUCKET_NS (250 * JOULE_NS_PER_MS)
#define BMC_BUCKETS   256

struct bmc_bucket {
    int64_t number; /* mono_ns / BMC_BUCKET_NS */
    int64_t ns;     /* of it that were watched */
    double joules, min_w, max_w;
};

struct bmc_window {
    int64_t start_ns, last_ns; /* 0: nothing yet */
    double last_w;
    struct bmc_bucket ever;
    struct bmc_bucket bucket[BMC_BUCKETS];
};

struct bmc_statistics {
    double min_w, max_w, mean_w;
    int64_t span_ns; /* over which they were taken */
};

/* From [mono_ns] on the BMC shows [watts]. */
void bmc_window_add(struct bmc_window *window, int64_t mono_ns, double watts);

/* Over the last [span_ns] before the last add (in whole buckets); 0: ever. */
struct bmc_statistics bmc_window_over(const struct bmc_window *window,
                                      int64_t span_ns);

#endif
