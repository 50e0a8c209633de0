/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userviews.h - what the files of 64 users with a step each cost the sampler,
 * when all their numbers change once a second.
 */
#ifndef JOULE_BENCH_USERVIEWS_H
#define JOULE_BENCH_USERVIEWS_H

#include "tests/bench/bench.h"

/* % of a core. */
void bench_userviews(struct bench_result *r);

#endif
