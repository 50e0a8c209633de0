/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lag of a BMC does to a job's energy: jobs of 2, 15 and 44 minutes
 * are replayed within a moment (replay.h).
 *
 *   bench_replay [TABLE.csv]
 *
 * TABLE.csv (default: the one in tests/fixtures) holds what Georgiou et al.
 * measured; its jobs at the highest frequency give the power of a node.  A job
 * is a step of power, from idle to that and back; the BMC follows it with a
 * first-order lag that has settled to 2 % after 0, 10, 30 or 70 s.  What that
 * must cost is known exactly (georgiou.h).  No code that reads the BMC alone
 * can do better; this shows that ours does no worse.
 *
 * `ours` is the error in % of the job's energy, `peer` the one that the table
 * has for Slurm's plugin and a BMC of 70 s.
 */
#include <math.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/georgiou.h"
#include "tests/bench/replay.h"

#define IDLE_W    GEORGIOU_IDLE_W
#define SETTLED_S 300 /* idle time before the job */

static const int settle_s[] = {0, 10, 30, 70};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static double error_pct(const struct georgiou_job *job, int settle)
{
    struct bmc_value_options bmc = {.settle_ns = settle * JOULE_NS_PER_S};
    struct replay *r = replay_create(&bmc, IDLE_W, IDLE_W);
    struct replay_used used;

    replay_run(r, SETTLED_S * JOULE_NS_PER_S);
    replay_step_begin(r);
    replay_power(r, job->node_w, job->node_w);
    replay_run(r, (int64_t)job->seconds * JOULE_NS_PER_S);
    used = replay_step_end(r);
    replay_destroy(r);
    return (used.node_j - used.by_driver[REPLAY_IPMI]) / used.node_j * 100;
}

int main(int argc, char **argv)
{
    const struct georgiou_class *classes;
    bool pass = true;

    if (argc > 2) {
        fprintf(stderr, "usage: bench_replay [TABLE.csv]\n");
        return 2;
    }
    classes = georgiou_load(argv[1]);
    bench_print_head();
    for (size_t i = 0; i < GEORGIOU_CLASSES; i++) {
        for (size_t k = 0; k < COUNT(settle_s); k++) {
            const struct georgiou_job *job = &classes[i].job[0];
            double ours = error_pct(job, settle_s[k]);
            double lag = georgiou_lag_pct(job->node_w, IDLE_W, job->seconds,
                                          settle_s[k]);
            double allowed =
                georgiou_sampling_pct(job->node_w, IDLE_W, job->seconds);
            bool good = fabs(ours - lag) <= allowed;

            printf("%s of %.0f min with a BMC that settles in %d s,%% error,"
                   "%.3f,",
                   classes[i].name, job->seconds / 60, settle_s[k], ours);
            if (settle_s[k] == 70)
                printf("%.2f,%.3f,", job->error_pct, ours / job->error_pct);
            else
                printf(",,");
            printf("%.3f+-%.3f,%s\n", lag, allowed, good ? "pass" : "miss");
            pass = pass && good;
        }
    }
    return pass ? 0 : 1;
}
