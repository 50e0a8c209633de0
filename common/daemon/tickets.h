/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tickets.h - what becomes of a sample: it is attributed to jobs and steps,
 * users' files are written, and steps that have asked for it are answered.
 *
 *     asked = joule_tickets_wait(tickets, deadline_ns);
 *     asked_for = joule_ledger_asked(ledger);
 *     take a sample, and stage it in the ledger
 *     joule_tickets_sample(tickets, &snapshot, asked_for);
 *
 * The sampler's thread alone.
 */
#ifndef JOULE_DAEMON_TICKETS_H
#define JOULE_DAEMON_TICKETS_H

#include "common/daemon/sampler.h"
#include "common/daemon/steps.h"

struct joule_tickets;

/* Both are borrowed.  NULL with errno ENOMEM. */
struct joule_tickets *
joule_tickets_create(const struct joule_sampler_options *opt,
                     struct joule_steps *steps);

/* NULL is a no-op. */
void joule_tickets_destroy(struct joule_tickets *tickets);

/* Attribute a sample that is staged in the ledger, publish, and answer the
 * tickets up to [asked]. */
void joule_tickets_sample(struct joule_tickets *tickets,
                          const struct joule_snapshot *snapshot,
                          uint32_t asked);

/* Sleep until the deadline (deadline.h), or joule_ledger_wake, or until a sample
 * is asked for and may be taken: true. */
bool joule_tickets_wait(struct joule_tickets *tickets, int64_t deadline_ns);

#endif
