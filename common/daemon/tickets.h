/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tickets.h - the sampler's side of the ledger: open it, attribute each sample,
 * write the users' files, and answer the tickets of steps that begin or end.
 *
 * A ticket wakes the sampler's thread if its sensor answers at once.  A BMC may
 * take seconds to answer: then a thread here attributes between two of its
 * measurements, with the last power carried forward.
 *
 * JOULE_SAMPLER_ASKED_AT_ONCE tickets may be answered in a row, then one in
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
