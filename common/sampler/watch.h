/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch.h - what the log of slurmd is told about a power source: each state
 * once, and that it is over.
 *
 * A BMC that comes and goes all day must not fill the log: after a number of
 * lines there is one in ten minutes at most.
 * Belongs to one thread at a time (the sampler's).
 */
#ifndef JOULE_SAMPLER_WATCH_H
#define JOULE_SAMPLER_WATCH_H

#include "common/sampler/sampler.h"

#define JOULE_WATCH_LINES 24 /* before there is a limit */
#define JOULE_WATCH_REFILL_NS                                                  \
    (600 * JOULE_NS_PER_S)  /* one line in this time                           \
                             */
#define JOULE_WATCH_TEXTS 8 /* different sentences in one outage */

/* A power that does not change for so long is told of, once. */
#define JOULE_WATCH_UNCHANGED_NS (3600 * JOULE_NS_PER_S)

struct joule_watch {
    const struct joule_sampler_options *opt; /* whom to tell */
    uint64_t lines;                          /* that may still be told */
    int64_t refilled_ns;
    uint64_t text[JOULE_WATCH_TEXTS]; /* of this outage, as a number each */
    unsigned texts;
    bool fault[JOULE_POWER_STATUS_COUNT]; /* told, and not over */
    bool unchanged[JOULE_DOMAINS_MAX];    /* told */
    int64_t measured_ns; /* the node, before the reading that is looked at */
};

/* [opt] is borrowed.  [measured_ns]: of the last measurement before, or 0. */
void joule_watch_start(struct joule_watch *w,
                       const struct joule_sampler_options *opt,
                       int64_t measured_ns, int64_t now_ns);

/* The source could not be read; [sentence] says why. */
void joule_watch_failure(struct joule_watch *w, const char *sentence,
                         int64_t now_ns);

/* The source was read, and [tally] has followed it. */
void joule_watch_readings(struct joule_watch *w,
                          const struct joule_power *power,
                          const struct joule_tally *tally, int64_t now_ns);

/* What the source has to say by itself. */
void joule_watch_remark(struct joule_watch *w, const char *sentence,
                        int64_t now_ns);

#endif
