/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * longseries.h - the energy series of a step, written as fast as it goes with
 * the times of samples that would have come at their own pace: by our writer,
 * and by a plugin of profilehost.h.
 *
 * A failure of these functions ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_LONGSERIES_H
#define JOULE_BENCH_LONGSERIES_H

#include "tests/bench/profilehost.h"

struct longseries {
    const char *directory; /* of profiles */
    const char *user;      /* below it */
    const char *converter; /* joule-profile-convert */
    unsigned rows, rate_hz;
};

/* CPU time of this process that it took, in us, from the first row to the end
 * of the file.  The peer has a process to itself. */
double longseries_ours(const struct longseries *l);
double longseries_theirs(const struct longseries *l,
                         const struct profilehost_plugin *plugin);

/* The size of the file. */
double longseries_bytes(const struct longseries *l);

#endif
