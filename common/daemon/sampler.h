/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler.h - the thread in slurmd that reads the counters, or asks for power,
 * at a steady pace and publishes the node total on the board.
 *
 * With it goes the ledger: each sample charges what the node has used since the
 * one before.  A step that begins or ends asks for a sample of its own; so many
 * of them are taken at once as JOULE_SAMPLER_ASKED_AT_ONCE, then one in
 * JOULE_SAMPLER_ASKED_NS, whoever asks.
 *
 * It continues what the board of this boot says: a restarted slurmd loses
 * nothing as long as it was away for less than one wrap of a counter.  Where
 * power is measured, the time it was away is bridged up to
 * JOULE_POWER_BRIDGE_NS, and counted as a gap.
 */
#ifndef JOULE_DAEMON_SAMPLER_H
#define JOULE_DAEMON_SAMPLER_H

#include "common/base/clock.h"
#include "common/node/board.h"
#include "common/sensors/sensor.h"
#include "common/energy/attribution.h"

#define JOULE_SAMPLER_ASKED_AT_ONCE 64
#define JOULE_SAMPLER_ASKED_NS      INT64_C(10000000)

enum joule_event {
    JOULE_EVENT_INFO,    /* started, continued, recovered */
    JOULE_EVENT_PROBLEM, /* said once for each problem */
};

struct joule_sampler_options {
    const struct joule_clock *clock;    /* required */
    struct joule_sensor *source;        /* required; borrowed, used by the
                                           thread alone until destroy */
    int root_fd;                        /* for the board; not kept */
    const char *node;                   /* NodeName; not kept */
    int64_t period_ns;                  /* see joule_sampler_period_ns */
    enum joule_attribution attribution; /* of the ledger */
    uint64_t idle_uw;       /* the node's, when nothing runs; 0: learned */
    int64_t user_period_ns; /* users see new numbers no more often */
    bool no_extend;         /* power sources: see steps.h */
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
 * Open the board and start the thread (all signals blocked).  The first
 * sample of counters is published before this returns; power sources, which
 * may take seconds, are asked by the thread alone, at once.  NULL with errno
 * and a sentence on failure.  A board that another slurmd still writes (the old
 * process of a reconfigure) is no failure: the thread takes over when it is
 * free.
 */
struct joule_sampler *
joule_sampler_create(const struct joule_sampler_options *opt,
                     struct joule_error *err);

/* Stop the thread, publish a last sample of counters; returns within the time
 * of one reading.  Power sources are interrupted, for good: they can only be
 * destroyed then.  NULL is a no-op.  In a child of fork(2), where the thread is
 * not, only the memory is freed. */
void joule_sampler_destroy(struct joule_sampler *sampler);

/* The last snapshot.  As joule_board_read; any thread.  A power that is older
 * than joule_power_gap_ns is unknown, also if the thread waits for the BMC and
 * cannot say so.  ECHILD: thread and board are not in this process, a child of
 * fork: the caller makes a new sampler. */
int joule_sampler_read(struct joule_sampler *sampler,
                       struct joule_snapshot *ret_snapshot);

#endif
