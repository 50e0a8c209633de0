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
#ifndef JOULE_DAEMON_TICKETS_H
#define JOULE_DAEMON_TICKETS_H

#include "common/daemon/sampler.h"

struct joule_tickets;

/* [opt] is borrowed.  NULL with errno ENOMEM or what pthread_create gave.  No
 * file is touched before the first sample. */
struct joule_tickets *
joule_tickets_create(const struct joule_sampler_options *opt);

/* NULL is a no-op.  In a child of fork, [has_threads] false: only memory and
 * descriptors are given back. */
void joule_tickets_destroy(struct joule_tickets *tickets, bool has_threads);

/* Who has asked until now; a sample that begins after this is theirs. */
uint32_t joule_tickets_asked(struct joule_tickets *tickets);

/* The sampler, which holds the board: charge a sample, and answer [tickets].  A
 * ledger that cannot be had is said once, and tried again. */
void joule_tickets_sample(struct joule_tickets *tickets,
                          const struct joule_snapshot *snapshot,
                          uint32_t asked);

/* Sleep until the deadline (deadline.h), or joule_tickets_wake, or, where the
 * source is prompt, until a sample is asked for and may be taken: true. */
bool joule_tickets_wait(struct joule_tickets *tickets, int64_t deadline_ns);

/* End joule_tickets_wait, for good.  Any thread. */
void joule_tickets_wake(struct joule_tickets *tickets);

#endif
