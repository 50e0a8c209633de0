/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay.h - a node whose hours pass within a moment: its energy is measured by
 * the code that measures real ones (sensors, node total, ledger, and the step's
 * node energy), with a clock of its own, and beside that exactly.
 *
 * It has two counters (RAPL) that see a part of its power, wrap after 64 kJ and
 * move once a millisecond, and a BMC that shows all of it in whole watts, as
 * DCMI does.  Three drivers measure it side by side, each with a ledger of its
 * own; what the sampler's thread does is done here, once a second, and when a
 * step begins or ends.
 *
 * A failure of these functions ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_REPLAY_H
#define JOULE_BENCH_REPLAY_H

#include <stdint.h>

#include "tests/sim/bmcsim/value.h"

enum replay_driver { REPLAY_RAPL, REPLAY_IPMI, REPLAY_FUSED, REPLAY_DRIVERS };

extern const char *const replay_driver_names[REPLAY_DRIVERS];

struct replay;

/* What a step has used. */
struct replay_used {
    double seconds;
    double node_j, rapl_j;            /* exactly; the second: what RAPL sees */
    double by_driver[REPLAY_DRIVERS]; /* J by the account of each driver */
};

/* A node that draws [node_w], of which its counters see [rapl_w]. */
struct replay *replay_create(const struct bmc_value_options *bmc, double node_w,
                             double rapl_w);
void replay_destroy(struct replay *r);

int64_t replay_now_ns(const struct replay *r);

/* From now on it draws this. */
void replay_power(struct replay *r, double node_w, double rapl_w);

/* Time passes. */
void replay_run(struct replay *r, int64_t ns);

/* A step begins now, and ends now; one at a time.  In between its energy
 * is asked as often as --acctg-freq's default has it. */
void replay_step_begin(struct replay *r);
struct replay_used replay_step_end(struct replay *r);

#endif
