/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clerk.h - keeps the ledger for the sampler: opens it, has each sample
 * charged, shows users what is theirs, and answers those who ask for a sample.
 *
 * Counters are read in no time, alone or with a BMC beside them: who asks wakes
 * the sampler's thread.  A BMC alone may take seconds to answer: there a thread
 * of the clerk's own charges, with the last power carried on, while the sampler
 * waits.
 *
 * Samples that are asked for: JOULE_SAMPLER_ASKED_AT_ONCE of them, then one in
 * JOULE_SAMPLER_ASKED_NS.
 */
#ifndef JOULE_SAMPLER_CLERK_H
#define JOULE_SAMPLER_CLERK_H

#include <time.h>

#include "common/sampler/sampler.h"

struct joule_clerk;

/* [opt] is borrowed.  NULL with errno ENOMEM or what pthread_create gave.  No
 * file is touched before the first sample. */
struct joule_clerk *joule_clerk_create(const struct joule_sampler_options *opt);

/* NULL is a no-op.  In a child of fork, [has_threads] false: only memory and
 * descriptors are given back. */
void joule_clerk_destroy(struct joule_clerk *clerk, bool has_threads);

/* Who has asked until now; a sample that begins after this is theirs. */
uint32_t joule_clerk_tickets(struct joule_clerk *clerk);

/* The sampler, which holds the board: charge a sample, and answer [tickets].  A
 * ledger that cannot be had is said once, and tried again. */
void joule_clerk_sample(struct joule_clerk *clerk,
                        const struct joule_snapshot *snapshot,
                        uint32_t tickets);

/* Sleep until *deadline (CLOCK_MONOTONIC), or joule_clerk_wake, or, where the
 * source is prompt, until a sample is asked for and may be taken: true. */
bool joule_clerk_wait(struct joule_clerk *clerk,
                      const struct timespec *deadline);

/* End joule_clerk_wait, for good.  Any thread. */
void joule_clerk_wake(struct joule_clerk *clerk);

#endif
