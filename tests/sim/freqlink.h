/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqlink.h - tell a nodesim at what frequency its CPUs run.
 *
 * It is told before who changed a frequency hears that it is changed, and
 * counts the energy up to that moment with the one before.
 */
#ifndef SIM_FREQLINK_H
#define SIM_FREQLINK_H

#include "tests/sim/freq.h"

struct sim_freqlink;

/* [dir] is the nodesim's.  NULL with errno and a sentence. */
struct sim_freqlink *sim_freqlink_create(const char *dir,
                                         struct joule_error *err);
/* NULL is a no-op. */
void sim_freqlink_destroy(struct sim_freqlink *link);

/* What has changed since it was last told; NULL is a no-op.  A nodesim that
 * is gone is told of on standard error, once. */
void sim_freqlink_tell(struct sim_freqlink *link, const struct sim_freq *freq);

#endif
