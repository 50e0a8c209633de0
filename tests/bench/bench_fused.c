/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How right a BMC and RAPL together are about jobs, beside the BMC alone: two
 * days of random jobs on a made-up node (tests/unit/fusednode.h), replayed
 * within a moment.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/unit/fusednode.h"

#define HOURS 48

/* Jobs of a node whose BMC has a first-order lag of 23 s and steps of 4 W, in
 * percent of the wattmeter; the peer is the BMC alone. */
int main(void)
{
    static const struct fused_bmc bmc = {"", FUSED_FIRST, 23, 0, 1};
    /* Where there is no goal: no worse than the BMC. */
    static const double most[FUSED_LENGTHS] = {0, 0, 1, 0.3, 0.15};
    struct fused_node *n = malloc(sizeof(*n));
    bool good = true;

    if (!n)
        bench_die("the replay", "out of memory");
    bench_print_head();
    fused_node_init(n, &bmc, 1);
    n->checked_from_s = 900;
    n->lost = 0.02;
    n->step_w = 4;
    fused_node_run(n, HOURS * 3600);
    for (int i = 0; i < FUSED_LENGTHS; i++) {
        struct fused_errors *e = &n->errors[i];
        struct fused_summary fused = fused_summary(e->fused, e->count);
        struct fused_summary alone = fused_summary(e->bmc, e->count);
        char name[64];

        snprintf(name, sizeof(name), "fused_error_mean_%d_s", fused_lengths[i]);
        good &= bench_print_row(name, "%",
                                (struct bench_result){fused.mean, alone.mean},
                                most[i] > 0 ? BENCH_AT_MOST : BENCH_RATIO,
                                most[i] > 0 ? most[i] : 1);
        snprintf(name, sizeof(name), "fused_error_p95_%d_s", fused_lengths[i]);
        good &= bench_print_row(
            name, "%", (struct bench_result){fused.p95, alone.p95},
            fused_lengths[i] == 120 ? BENCH_AT_MOST : BENCH_RATIO,
            fused_lengths[i] == 120 ? 2 : 1);
        snprintf(name, sizeof(name), "fused_error_most_%d_s", fused_lengths[i]);
        good &= bench_print_row(name, "%",
                                (struct bench_result){fused.most, alone.most},
                                BENCH_RATIO, 1);
    }
    fused_node_clear(n);
    free(n);
    return good ? 0 : 1;
}
