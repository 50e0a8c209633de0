/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler.h - the thread in slurmd that reads the sensor at a steady pace,
 * publishes the node total, and has each sample attributed to jobs and steps.
 *
 *     sampler = joule_sampler_create(&options, &err);
 *     joule_sampler_read(sampler, &snapshot);
 *     joule_sampler_destroy(sampler);
 *
 * A step that begins or ends asks for a sample of its own (a ticket): of these
 * JOULE_SAMPLER_ASKED_AT_ONCE are taken in a row, then one in
 * JOULE_SAMPLER_ASKED_NS, whoever asks.
 *
 * It continues what the ledger of this boot says: a restarted slurmd goes on
 * with the same total, and with the state of the sensor.
 */
#ifndef JOULE_DAEMON_SAMPLER_H
#define JOULE_DAEMON_SAMPLER_H

#include "common/base/clock.h"
#include "common/energy/attribution.h"
#include "common/node/ledger.h"
#include "common/sensors/sensor.h"

#define JOULE_SAMPLER_ASKED_AT_ONCE 64
#define JOULE_SAMPLER_ASKED_NS      INT64_C(10000000)

/* Lines of the sensor in the log before there is a limit; then one in
 * JOULE_SAMPLER_REFILL_NS: a BMC that comes and goes all day must not fill it. */
#define JOULE_SAMPLER_LINES     24
#define JOULE_SAMPLER_REFILL_NS (600 * JOULE_NS_PER_S)

struct joule_sampler_options {
    const struct joule_clock *clock; /* required */
    struct joule_sensor *sensor;     /* required; borrowed, used by the
                                           thread alone until destroy */
    int root_fd;                     /* for the node's files; not kept */
    const char *node;                /* NodeName; not kept */
    int64_t period_ns;               /* see joule_sampler_period_ns */
    enum joule_attribution attribution;
    uint64_t idle_uw;       /* idle power of the node; 0: learned */
    int64_t user_period_ns; /* users see new numbers no more often */
    /* optional: told from the sampler's thread, one sentence without
     * newline; must not call back into the sampler. */
    void (*event)(enum joule_event event, const char *text, void *arg);
    void *event_arg;
};

struct joule_sampler;

/* [asked_ns], or less if that is above a third of the shortest time in which a
 * counter wraps: then the caller says so. */
int64_t joule_sampler_period_ns(int64_t wrap_ns, int64_t asked_ns);

/*
 * Open the ledger, take the first sample and start the thread (all signals
 * blocked).  NULL with errno and a sentence on failure.  A ledger that another
 * slurmd still writes (the old process of a reconfigure) is no failure: the
 * thread takes over when it is free.
 */
struct joule_sampler *
joule_sampler_create(const struct joule_sampler_options *opt,
                     struct joule_error *err);

/* Stop the thread and publish a last sample.  NULL is a no-op.  In a child of
 * fork(2), where the thread is not, only the memory is freed. */
void joule_sampler_destroy(struct joule_sampler *sampler);

/* The last snapshot.  As joule_ledger_read_node; any thread.  ECHILD: thread and
 * ledger are not in this process, a child of fork: the caller makes a new sampler. */
int joule_sampler_read(struct joule_sampler *sampler,
                       struct joule_snapshot *ret_snapshot);

#endif
