/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clerk.h - keeps the ledger for the sampler: opens it, has each sample
 * charged, shows users what is theirs, and answers those who ask for a sample.
 *
 * Counters are read in no time, alone or with a BMC beside them: who asks wakes
 * the sampler's thread.  A BMC alone may take seconds to answer: there a thread
 * of the clerk's own charges, with the last power carried on, while the sampler
 * waits.  One that rests (joule_clerk_rest) is roused instead.
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

/* The sampler, which holds the board: charge a sample, and answer
 * [tickets].  A ledger that cannot be had is said once, and tried again.  true:
 * it was charged, there was nothing to divide (book.h), and no user looks.
 * Where the source is not prompt, one that need not be charged (sampler.h) is
 * kept for who asks. */
bool joule_clerk_sample(struct joule_clerk *clerk,
                        const struct joule_snapshot *snapshot,
                        uint32_t tickets);

/* Sleep until *deadline (CLOCK_MONOTONIC), or joule_clerk_wake, or, where the
 * source is prompt, until a sample is asked for and may be taken: true. */
bool joule_clerk_wait(struct joule_clerk *clerk,
                      const struct timespec *deadline);

/* End joule_clerk_wait, for good.  Any thread. */
void joule_clerk_wake(struct joule_clerk *clerk);

/* Where the source is not prompt: how long its readings may be left alone from
 * now on, ns; 0: not at all.  It is quiet, what is due next is a quiet period
 * away, and nobody has asked for three seconds.  Until the next
 * joule_clerk_sample who asks rouses the source, and is answered by that. */
int64_t joule_clerk_rest(struct joule_clerk *clerk);

/* What readers are to be told of the time to the next sample, if the sampler
 * rests. */
int64_t joule_clerk_told_ns(struct joule_clerk *clerk);

/* How long to wait for the next time, ns: opt->period_ns, or while it is quiet
 * opt->quiet_period_ns if that is longer.  *told_ns is what readers have been
 * told, and is set to what they are to be told: longer than they know the wait is
 * only from the next time on. */
int64_t joule_clerk_pace(const struct joule_sampler_options *opt, bool quiet,
                         int64_t *told_ns);

#endif
