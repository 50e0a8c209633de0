/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * feed.h - the true power of the node at the moment of asking: from nodesim's
 * control socket, or from a file with watts.
 *
 * nodesim is asked for each sample (about 20 us), so nothing lags behind it
 * and nobody polls.
 */
#ifndef BMCSIM_FEED_H
#define BMCSIM_FEED_H

#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"

struct bmc_sample {
    int64_t mono_ns;
    double joules; /* of the node, since some moment */
    double watts;  /* of the node, at mono_ns */
    unsigned packages;
    double dram_share; /* of the node's power; the rest is the packages' */
};

struct bmc_feed;

/*
 * [nodesim] is the directory of one, or NULL and [file] a file that holds
 * watts (decimal, up to 100000), read at each sample.  Neither has to be there
 * yet.  NULL with errno and a sentence.
 */
struct bmc_feed *bmc_feed_create(const char *nodesim, const char *file,
                                 const struct joule_clock *clock,
                                 struct joule_error *err);
/* NULL is a no-op. */
void bmc_feed_destroy(struct bmc_feed *feed);

/*
 * A sample of now.  Waits at most 200 ms; a nodesim that was restarted is
 * connected to again.  0, or -1 with errno and a sentence.
 */
int bmc_feed_read(struct bmc_feed *feed, struct bmc_sample *ret_sample,
                  struct joule_error *err);

#endif
