/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fusion.h - a source of energy made of two: the counters (RAPL), read whenever
 * it is asked, and a BMC, which a thread of its own asks once a second, so that
 * nobody who asks this source ever waits for the BMC.
 *
 * Its domains are "Node" (in the total), "BMC", which is the BMC's reading as
 * it was, and one for each counter, in uJ.  What becomes of them is arithmetic
 * of common/meter/fused.h.
 */
#ifndef JOULE_SAMPLER_FUSION_H
#define JOULE_SAMPLER_FUSION_H

#include "common/base/clock.h"
#include "common/source/source.h"

enum { JOULE_FUSION_NODE, JOULE_FUSION_BMC, JOULE_FUSION_COUNTERS };

struct joule_fusion_options {
    const struct joule_clock *clock; /* required; kept */
    struct joule_source *counters; /* owned by the source then; NULL: none */
    struct joule_source *bmc;      /* required; owned by the source then */
    int64_t bmc_period_ns; /* how often the BMC is asked */
    int64_t gap_ns; /* a BMC without a measurement for longer does not answer */
};

/*
 * read_power gives energy as source.h says: EAGAIN as long as nothing is known.
 * With 0 or EAGAIN there may be a sentence: why the BMC could not be read.  The
 * thread is started by the first read_power, and ends with the first one after
 * interrupt().
 * NULL with errno and a sentence on failure, and then the sources are still the
 * caller's.
 */
struct joule_source *joule_fusion_create(const struct joule_fusion_options *opt,
                                         struct joule_error *err);

/* One that has the domains only, for processes that follow the board;
 * read_power fails with ENOSYS.  [counters]: borrowed, NULL: none.  NULL with
 * ENOMEM or E2BIG. */
struct joule_source *
joule_fusion_labels_create(const struct joule_source *counters);

#endif
