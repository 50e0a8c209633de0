/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What it costs to fuse a BMC and RAPL: one update of the bank of lags, and
 * slurmd's sampler once a second with both sources in one, beside the samplers
 * of either alone.  The sources are made up and cost nothing, so the figures are
 * those of the meters, threads, board and ledger.  Then how right it is: two
 * days of random jobs on a made-up node (tests/unit/fusednode.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/board/board.h"
#include "common/sampler/fusion.h"
#include "common/sampler/sampler.h"
#include "tests/bench/bench.h"
#include "tests/unit/fusednode.h"
#include "tests/unit/tree.h"

#define UPDATES 2000
#define PERIOD_MS 2
#define RUN_MS 3000

/* ---- sources that cost nothing ---- */

static uint64_t ticks;

static void free_read(struct joule_source *source, struct joule_reading *out)
{
    ticks += 65536;
    for (size_t i = 0; i < source->domain_count; i++)
        out[i] = (struct joule_reading){ticks & 0xffffffff, 0};
}

static atomic_bool interrupted;

static int free_read_power(struct joule_source *source,
                           struct joule_power *out, struct joule_error *err)
{
    static double watts = 200;

    (void)source;
    (void)err;
    if (interrupted) {
        errno = ECANCELED;
        return -1;
    }
    watts = watts > 300 ? 200 : watts + 4;
    *out = (struct joule_power){
        .watts = watts,
        .mono_ns = joule_clock_mono_ns(&joule_clock_system),
    };
    return 0;
}

static void interrupt(struct joule_source *source)
{
    (void)source;
    interrupted = true;
}

static void nothing(struct joule_source *source)
{
    (void)source;
}

static const struct joule_source_ops counter_ops = {
    .type = "free", .read = free_read, .destroy = nothing};
static const struct joule_source_ops power_ops = {
    .type = "free",
    .read_power = free_read_power,
    .interrupt = interrupt,
    .destroy = nothing};

static const struct joule_domain counter_domains[4] = {
    {JOULE_DOMAIN_PACKAGE, 0, 0, 0, {15625, 10}, 32, true, "package-0"},
    {JOULE_DOMAIN_DRAM, 0, 0, 0, {15625, 10}, 32, true, "dram-0"},
    {JOULE_DOMAIN_PACKAGE, 1, 0, 1, {15625, 10}, 32, true, "package-1"},
    {JOULE_DOMAIN_DRAM, 1, 0, 1, {15625, 10}, 32, true, "dram-1"},
};
static const struct joule_domain power_domain = {
    JOULE_DOMAIN_POWER, 0, 0, 0, {1, 0}, 64, true, "Node"};

static struct joule_source counters = {&counter_ops, counter_domains, 4, 0};
static struct joule_source power = {&power_ops, &power_domain, 1, 0};

/* ---- one update ---- */

static struct joule_fuse fuse;

static void update(void)
{
    static double watts = 100;

    watts = watts > 200 ? 100 : watts + 3;
    joule_fuse_rapl(&fuse, watts, JOULE_NS_PER_S);
    joule_fuse_bmc(&fuse, 1.2 * watts + 50);
}

static bool race_update(void)
{
    struct bench_race race = {update, NULL, UPDATES, 25};
    struct bench_result r;

    bench_run_race(&race, &r.ours, &r.peer);
    r.ours /= 1e3;
    return bench_print_row("fused_update_16_lags", "us", r, BENCH_BELOW, 10);
}

/* ---- how right it is ---- */

#define HOURS 48

/* Jobs of a node whose BMC has a first-order lag of 23 s and steps of 4 W, in
 * percent of the wattmeter; the peer is the BMC alone. */
static bool replay(void)
{
    static const struct fused_bmc bmc = {"", FUSED_FIRST, 23, 0, 1};
    /* Where there is no goal: no worse than the BMC. */
    static const double most[FUSED_LENGTHS] = {0, 0, 1, 0.3, 0.15};
    struct fused_node *n = malloc(sizeof(*n));
    bool good = true;

    if (!n)
        bench_die("the replay", "out of memory");
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
        good &= bench_print_row(
            name, "%", (struct bench_result){fused.mean, alone.mean},
            most[i] > 0 ? BENCH_AT_MOST : BENCH_RATIO,
            most[i] > 0 ? most[i] : 1);
        snprintf(name, sizeof(name), "fused_error_p95_%d_s", fused_lengths[i]);
        good &= bench_print_row(
            name, "%", (struct bench_result){fused.p95, alone.p95},
            fused_lengths[i] == 120 ? BENCH_AT_MOST : BENCH_RATIO,
            fused_lengths[i] == 120 ? 2 : 1);
        snprintf(name, sizeof(name), "fused_error_most_%d_s", fused_lengths[i]);
        good &= bench_print_row(
            name, "%", (struct bench_result){fused.most, alone.most},
            BENCH_RATIO, 1);
    }
    free(n);
    return good;
}

/* ---- the sampler ---- */

static double cpu_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec * 1e6 + (double)u.ru_utime.tv_usec +
           (double)u.ru_stime.tv_sec * 1e6 + (double)u.ru_stime.tv_usec;
}

/* CPU time of slurmd's threads for each sample, in us. */
static double sample_us(struct joule_source *source)
{
    struct joule_sampler_options opt = {
        .clock = &joule_clock_system,
        .source = source,
        .node = "bench",
        .period_ns = PERIOD_MS * JOULE_NS_PER_MS,
        .user_period_ns = JOULE_NS_PER_S,
    };
    struct joule_snapshot *first = malloc(sizeof(*first));
    struct joule_snapshot *last = malloc(sizeof(*last));
    struct joule_sampler *sampler;
    struct joule_error err;
    struct tree tree;
    double begin_us, us;

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_mkdir(&tree, "run");
    opt.root_fd = tree.fd;
    interrupted = false;
    sampler = joule_sampler_create(&opt, &err);
    if (!sampler || !first || !last)
        bench_die("joule_sampler_create", err.text);
    bench_sleep_ms(200);
    if (joule_sampler_read(sampler, first) < 0)
        bench_die("joule_sampler_read", "nothing is known");
    begin_us = cpu_us();
    bench_sleep_ms(RUN_MS);
    us = cpu_us() - begin_us;
    joule_sampler_read(sampler, last);
    if (last->samples - first->samples < RUN_MS / PERIOD_MS / 4)
        bench_die("the sampler", "too few samples");
    us /= (double)(last->samples - first->samples);
    joule_sampler_destroy(sampler);
    tree_destroy(&tree);
    free(first);
    free(last);
    return us;
}

static struct joule_source *make_fused(void)
{
    struct joule_fusion_options opt = {
        .clock = &joule_clock_system,
        .counters = &counters,
        .bmc = &power,
        .bmc_period_ns = PERIOD_MS * JOULE_NS_PER_MS,
        .gap_ns = 3 * JOULE_NS_PER_S,
    };
    struct joule_error err;
    struct joule_source *source = joule_fusion_create(&opt, &err);

    if (!source)
        bench_die("joule_fusion_create", err.text);
    return source;
}

static void measure_sampler(struct bench_result *ret)
{
    enum { ROUNDS = 5 };
    double ours[ROUNDS], peer[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        struct joule_source *fused = make_fused();

        ours[i] = sample_us(fused);
        joule_source_destroy(fused);
        peer[i] = sample_us(&counters) + sample_us(&power);
    }
    ret->ours = bench_median(ours, ROUNDS);
    ret->peer = bench_median(peer, ROUNDS);
}

int main(void)
{
    struct bench_result sampler = bench_measure(measure_sampler), extra, size;
    bool good = true;

    bench_print_head();
    good &= race_update();
    /* 1 us in a second is 0.0001 %; 0.05 % on top of both sources alone. */
    extra = (struct bench_result){(sampler.ours - sampler.peer) / 1e4, NAN};
    if (extra.ours < 0)
        extra.ours = 0;
    good &= bench_print_row("fused_sample", "us of CPU", sampler, BENCH_BELOW,
                            sampler.peer + 500);
    good &= bench_print_row("fused_extra_at_1_hz", "% of a core", extra,
                            BENCH_BELOW, 0.05);
    size = (struct bench_result){
        (double)(offsetof(struct joule_fused_state, rapl.counter) +
                 4 * sizeof(struct joule_counter)),
        NAN};
    good &= bench_print_row("fused_state_4_counters", "bytes", size,
                            BENCH_BELOW, 4096);
    good &= replay();
    return good ? 0 : 1;
}
