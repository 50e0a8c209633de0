/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The total of a node from its counters and its BMC: what it stands on, and
 * that nothing is lost or counted twice whatever becomes of one or both.
 */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/fused.h"
#include "tests/unit/dice.h"
#include "tests/unit/fake.h"
#include "tests/unit/fusednode.h"

#define S     JOULE_NS_PER_S
#define BEGIN (1000 * S)
#define GAP   (3 * S)
#define HOUR  3600.0

/* A node of one counter in steps of 2^-16 J, whose total is followed. */
static struct {
    struct fake counters;
    struct joule_sensor *sensor;
    struct joule_node_total rapl;
    struct joule_fused_state state;
    struct joule_fused_interval interval;
    int64_t now_ns, bmc_ns;
    uint64_t bmc_key;
    double ticks;
    int error; /* of the counter */
    double total_j;
    int64_t gap_ns;
} node;

static void setup(void)
{
    memset(&node, 0, sizeof(node));
    node.now_ns = BEGIN;
    fake_init(&node.counters);
    /* It wraps soon. */
    fake_add(&node.counters, JOULE_DOMAIN_PACKAGE, 0, 0xffff0000);
    node.sensor = fake_sensor(&node.counters);
    ck_assert_ptr_nonnull(node.sensor);
    joule_node_total_start(&node.rapl, node.sensor->domains, 1, 0);
}

static void teardown(void)
{
    joule_sensor_destroy(node.sensor);
}

/* Another process goes on. */
static void begin_again(void)
{
    struct joule_sensor *before = node.sensor;
    const struct joule_sensor_state *kept = &before->state;

    node.sensor = fake_sensor(&node.counters);
    ck_assert_ptr_nonnull(node.sensor);
    ck_assert(joule_sensor_resume(node.sensor, kept));
    joule_node_total_start(&node.rapl, node.sensor->domains, 1, 0);
    node.rapl.gap_ns = node.state.rapl_gap_ns;
    node.rapl.reading[0].gap_ns = kept->counter[0].gap_ns;
    joule_sensor_destroy(before);
}

/* The counter's total at now_ns, or NULL. */
static const struct joule_node_total *counter(void)
{
    struct joule_reading reading;

    node.counters.now_ns = node.now_ns;
    node.counters.ticks[0] = (uint64_t)node.ticks;
    node.counters.error[0] = node.error;
    joule_sensor_read(node.sensor, false, &reading);
    joule_node_total_update(&node.rapl, node.sensor->domains, &reading,
                            node.now_ns);
    return reading.mono_ns == node.now_ns ? &node.rapl : NULL;
}

/* [ns] pass at a RAPL power; then both are read, the BMC if [bmc_w] >= 0. */
static bool pass(int64_t ns, double rapl_w, double bmc_w)
{
    struct joule_power bmc = {.watts = bmc_w, .sensor_key = node.bmc_key};

    node.now_ns += ns;
    node.ticks += rapl_w * (double)ns / 1e9 * 65536;
    bmc.mono_ns = node.now_ns - node.bmc_ns;
    joule_fused_advance(&node.state, counter(), node.now_ns,
                        bmc_w >= 0 ? &bmc : NULL, GAP, &node.interval);
    if (!node.interval.known)
        return false;
    node.total_j += node.interval.node_j;
    node.gap_ns += node.interval.gap_ns;
    return true;
}

/* A BMC without a lag, and a node that uses 1.2 x RAPL + 80 W. */
static double node_w(double rapl_w)
{
    return 1.2 * rapl_w + 80;
}

static void learn(void)
{
    for (int i = 0; i < 1200; i++) {
        double w = i / 20 % 2 ? 100 : 200;

        pass(S, w, node_w(w));
    }
    ck_assert(joule_lag_model_learned(&node.state.lag_model));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BOTH);
    ck_assert_double_eq_tol(node.state.lag_model.gain, 1.2, 0.02);
    node.total_j = 0;
    memset(node.state.basis_ns, 0, sizeof(node.state.basis_ns));
}

static int64_t basis_ns(enum joule_fused_basis basis)
{
    return node.state.basis_ns[basis];
}

/* It begins with the BMC's first word. */
START_TEST(begins)
{
    ck_assert(!pass(0, 0, -1));
    for (int i = 0; i < 3; i++)
        ck_assert(!pass(S, 100, -1));
    ck_assert(pass(S, 100, 200));
    ck_assert_int_eq(node.interval.ns, 0);
    ck_assert_double_eq(node.total_j, 0);
    ck_assert(pass(S, 100, 200));
    ck_assert_double_eq_tol(node.total_j, 200, 1e-6);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BMC), S);
    /* Between two readings of it, too. */
    ck_assert(pass(S / 4, 100, -1));
    ck_assert_double_eq_tol(node.total_j, 250, 1e-6);
}
END_TEST

/* Without one it is the sockets', after a while. */
START_TEST(no_bmc_ever)
{
    int i;

    for (i = 0; i < 30 && !pass(S, 100, -1); i++)
        ;
    ck_assert_int_eq(i, JOULE_FUSED_PATIENCE_NS / S);
    for (i = 0; i < 10; i++)
        ck_assert(pass(S, 100, -1));
    ck_assert_double_eq_tol(node.total_j, 1000, 1e-6);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_RAPL), 10 * S);
    ck_assert_int_eq(node.gap_ns, 0);
    /* And then it comes. */
    ck_assert(pass(S, 100, 200));
    ck_assert(pass(S, 100, 200));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BMC);
}
END_TEST

START_TEST(both)
{
    learn();
    for (int i = 0; i < 60; i++)
        pass(S, 160, node_w(160));
    ck_assert_double_eq_tol(node.total_j, 60 * node_w(160), 60);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BOTH), 60 * S);
    /* Steps that begin and end in between: the sum is the same. */
    node.total_j = 0;
    for (int i = 0; i < 600; i++)
        pass(S / 10, 160, i % 10 ? -1 : node_w(160));
    ck_assert_double_eq_tol(node.total_j, 60 * node_w(160), 60);
}
END_TEST

/* What it uses is known at once, before the BMC has said anything. */
START_TEST(a_step_is_seen_at_once)
{
    learn();
    pass(S, 100, node_w(100));
    node.total_j = 0;
    pass(S / 10, 300, -1);
    ck_assert_double_eq_tol(node.total_j, node_w(300) / 10, 1);
}
END_TEST

START_TEST(bmc_away)
{
    learn();
    for (int i = 0; i < 600; i++)
        pass(S, i % 2 ? 100 : 250, -1);
    ck_assert_double_eq_tol(node.total_j, 600 * node_w(175), 600 * 3);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_RAPL), 597 * S);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BOTH), 3 * S);
    ck_assert_int_eq(node.gap_ns, 0);
    pass(S, 100, node_w(100));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BOTH);
}
END_TEST

/* Nothing had been learned: its last word for 300 s, then the sockets. */
START_TEST(bmc_away_before_it_is_known)
{
    for (int i = 0; i < 20; i++)
        pass(S, 100, 300);
    node.total_j = 0;
    for (int i = 0; i < 400; i++)
        pass(S, 100, -1);
    ck_assert_double_eq_tol(node.total_j, 300 * 300 + 100 * 100, 1);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_RAPL), 100 * S);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_NONE), 297 * S);
    ck_assert_int_eq(node.gap_ns, 297 * S);
}
END_TEST

/* One reading that fails is made up for by the next. */
START_TEST(a_counter_fails_once)
{
    learn();
    for (int i = 0; i < 20; i++) {
        node.error = i % 4 == 3 ? EIO : 0;
        ck_assert(pass(S, 150, node_w(150)) == !node.error);
    }
    node.error = 0;
    pass(S, 150, node_w(150));
    ck_assert_double_eq_tol(node.total_j, 21 * node_w(150), 21);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BOTH), 21 * S);
}
END_TEST

/* For good: a CPU was taken away. */
START_TEST(a_counter_stays_away)
{
    learn();
    node.error = ENXIO;
    for (int i = 0; i < 100; i++)
        pass(S, 150, node_w(150));
    ck_assert_double_eq_tol(node.total_j, 100 * node_w(150), 100);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BMC), 100 * S);
    ck_assert_int_eq(node.gap_ns, 0);
    node.error = 0;
    for (int i = 0; i < 10; i++)
        pass(S, 150, node_w(150));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BOTH);
    ck_assert_double_eq_tol(node.total_j, 110 * node_w(150), 110);
}
END_TEST

/* What they have counted meanwhile is not lost, nor is it counted twice: the
 * BMC is late, and had said too much, or too little. */
START_TEST(the_bmc_stood_in)
{
    static const double rapl_w[] = {300, 60};

    learn();
    pass(S, 150, node_w(150));
    node.total_j = 0;
    node.error = EIO;
    for (int i = 0; i < 20; i++)
        pass(S, rapl_w[_i], node_w(150));
    node.error = 0;
    for (int i = 0; i < 60; i++) {
        double before_j = node.total_j;

        pass(S, 150, node_w(150));
        ck_assert(node.total_j > before_j);
    }
    ck_assert_double_eq_tol(node.total_j,
                            20 * node_w(rapl_w[_i]) + 60 * node_w(150), 200);
    ck_assert_double_eq(node.state.debt_j, 0);
}
END_TEST

START_TEST(both_away)
{
    learn();
    pass(S, 150, node_w(150));
    node.total_j = 0;
    node.error = EIO;
    for (int i = 0; i < 60; i++)
        pass(S, 150, -1);
    ck_assert(!node.interval.known);
    node.error = 0;
    for (int i = 0; i < 10; i++)
        pass(S, 150, node_w(150));
    ck_assert_double_eq_tol(node.total_j, 70 * node_w(150), 70);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BOTH) + basis_ns(JOULE_FUSED_BMC) +
                         basis_ns(JOULE_FUSED_RAPL) +
                         basis_ns(JOULE_FUSED_NONE),
                     71 * S);
}
END_TEST

/* Longer than a power is carried on, with counters that have wrapped. */
START_TEST(both_away_for_long)
{
    learn();
    pass(S, 150, node_w(150));
    node.total_j = 0;
    node.error = EIO;
    for (int i = 0; i < 1000; i++)
        pass(S, 150, -1);
    node.error = 0;
    pass(S, 150, node_w(150));
    ck_assert(node.interval.known);
    ck_assert_int_eq(node.gap_ns, 1001 * S);
    ck_assert_double_eq(node.total_j, 0);
    pass(S, 150, node_w(150));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BOTH);
}
END_TEST

/* Virtual machines, and machines without the MSR device. */
START_TEST(no_counters)
{
    struct joule_fused_state none = {0};
    struct joule_fused_interval interval;
    double total_j = 0;

    for (int i = 0; i < 20; i++)
        pass(S, 0, 200);
    ck_assert_double_eq_tol(node.total_j, 19 * 200, 1e-6);
    ck_assert_int_eq(basis_ns(JOULE_FUSED_BMC), 19 * S);

    for (int i = 0; i < 20; i++) {
        struct joule_power bmc = {.watts = 150, .mono_ns = BEGIN + i * S};

        joule_fused_advance(&none, NULL, BEGIN + i * S, &bmc, GAP, &interval);
        ck_assert(interval.known);
        total_j += interval.node_j;
    }
    ck_assert_double_eq_tol(total_j, 19 * 150, 1e-6);
}
END_TEST

/* The admin has chosen another of the BMC's sensors: half of the node's power.
 */
START_TEST(another_sensor)
{
    node.bmc_key = 4;
    learn();
    node.bmc_key = 0; /* does not tell */
    ck_assert(pass(S, 200, node_w(200)));
    ck_assert(joule_lag_model_learned(&node.state.lag_model));
    node.bmc_key = 5;
    node.total_j = 0;
    ck_assert(pass(S, 200, 210));
    ck_assert(!joule_lag_model_learned(&node.state.lag_model));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BMC);
    for (int i = 0; i < 10; i++)
        ck_assert(pass(S, 200, 210));
    ck_assert_double_eq_tol(node.total_j, 11 * 210, 1);
}
END_TEST

/* slurmd was away: the counters have counted. */
START_TEST(restart)
{
    learn();
    pass(S, 150, node_w(150));
    node.total_j = 0;
    ck_assert(joule_fused_check(&node.state, node.now_ns + 20 * S));
    begin_again();
    pass(20 * S, 190, -1);
    ck_assert_double_eq_tol(node.total_j, 20 * node_w(190), 60);
    pass(S, 150, node_w(150));
    ck_assert_uint_eq(node.state.basis, JOULE_FUSED_BOTH);
    ck_assert_int_eq(node.gap_ns, 0);
}
END_TEST

/* The counters say nothing of a time in which they may have wrapped. */
START_TEST(restart_after_long)
{
    learn();
    pass(S, 150, node_w(150));
    node.total_j = 0;
    begin_again();
    pass(100 * S, 150, -1);
    ck_assert(!node.interval.known);
    pass(S, 150, node_w(150));
    ck_assert(node.interval.known);
    ck_assert_int_eq(node.gap_ns, 100 * S);
    ck_assert_double_eq_tol(node.total_j, 101 * node_w(150), 101);
}
END_TEST

/* What a reader of the board may meet, and what a BMC may say. */
START_TEST(nonsense)
{
    static const double bad[] = {NAN, -1, INFINITY, 2e5};

    learn();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct joule_power bmc = {.watts = bad[i]};

        bmc.mono_ns = node.now_ns += S;
        node.ticks += 150 * 65536;
        joule_fused_advance(&node.state, counter(), node.now_ns, &bmc, GAP,
                            &node.interval);
        ck_assert(node.interval.known);
        node.total_j += node.interval.node_j;
    }
    ck_assert_double_eq_tol(node.total_j, 4 * node_w(150), 8);
    /* No measurement, and one from the past. */
    node.bmc_ns = 100 * S;
    pass(S, 150, 9999);
    ck_assert_double_eq_tol(node.total_j, 5 * node_w(150), 8);
    /* Time that stands still: nothing is forgotten. */
    ck_assert(!pass(0, 0, -1));
    ck_assert_uint_gt(node.state.lag_model.marks, 10);
}
END_TEST

START_TEST(check)
{
    uint64_t seed = dice_seed();
    int refused = 0;

    learn();
    ck_assert(joule_fused_check(&node.state, node.now_ns));
    ck_assert(!joule_fused_check(&node.state, node.now_ns - S));
    for (int i = 0; i < 20000; i++) {
        struct joule_fused_state before = node.state;
        uint64_t *words = (uint64_t *)&node.state;
        size_t count = sizeof(node.state) / 8;

        for (uint64_t k = 1 + dice(&seed, 3); k > 0; k--)
            words[dice(&seed, count)] =
                dice(&seed, 2) ? dice64(&seed) : dice(&seed, 100);
        if (joule_fused_check(&node.state, node.now_ns)) {
            struct joule_node_total rapl = node.rapl;

            for (int j = 1; j <= 5; j++) {
                struct joule_power bmc = {.watts = 260,
                                          .mono_ns = node.now_ns + j * S};

                rapl.node_uj += 150000000;
                joule_fused_advance(&node.state, &rapl, bmc.mono_ns, &bmc, GAP,
                                    &node.interval);
                ck_assert(node.interval.node_j >= 0);
                ck_assert(node.interval.node_j <= 1e9);
            }
        } else {
            refused++;
        }
        node.state = before;
    }
    ck_assert_int_gt(refused, 1000);
}
END_TEST

/* Both sources fail, come back, and slurmd restarts, at random: the total never
 * falls, all time stands on something, and what the node had used is there. */
START_TEST(any_history)
{
    uint64_t seed = (getenv("JOULE_SEED") ? dice_seed() : 1) + (uint64_t)_i;
    static const struct fused_bmc bmc = {"", FUSED_FIRST, 23, 0, 1};
    struct fused_node *n = malloc(sizeof(*n));
    double node_j, fused_j, error;

    ck_assert_ptr_nonnull(n);
    fused_node_init(n, &bmc, dice64(&seed));
    n->checked_from_s = 1e9;
    n->step_w = 4;
    fused_node_run(n, HOUR);
    node_j = n->node_j;
    fused_j = n->fused_j;
    for (int i = 0; i < 300; i++) {
        double before_j = n->fused_j;
        int64_t sum_ns = 0;

        n->bmc_away = dice(&seed, 4) == 0;
        n->rapl_error = dice(&seed, 8) == 0 ? EIO : 0;
        if (n->bmc_away)
            n->rapl_error = 0;
        if (dice(&seed, 10) == 0) {
            ck_assert(joule_fused_check(&n->state, fused_node_ns(n)));
            fused_node_restart(n);
        }
        fused_node_run(n, (double)dice(&seed, 60));
        ck_assert(n->fused_j >= before_j);
        for (int b = 0; b < JOULE_FUSED_BASES; b++)
            sum_ns += n->state.basis_ns[b];
        ck_assert_int_ge(sum_ns, n->state.mono_ns - FUSED_BEGIN_NS - 3 * S);
        ck_assert_int_le(sum_ns, n->state.mono_ns - FUSED_BEGIN_NS);
    }
    error = (n->fused_j - fused_j) / (n->node_j - node_j) - 1;
    ck_assert_msg(fabs(error) <= 0.02, "off by %.2f %%, JOULE_SEED=%llu",
                  error * 100, (unsigned long long)seed);
    fused_node_clear(n);
    free(n);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fused");
    TCase *tc = tcase_create("fused");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, begins);
    tcase_add_test(tc, no_bmc_ever);
    tcase_add_test(tc, both);
    tcase_add_test(tc, a_step_is_seen_at_once);
    tcase_add_test(tc, bmc_away);
    tcase_add_test(tc, bmc_away_before_it_is_known);
    tcase_add_test(tc, a_counter_fails_once);
    tcase_add_test(tc, a_counter_stays_away);
    tcase_add_loop_test(tc, the_bmc_stood_in, 0, 2);
    tcase_add_test(tc, both_away);
    tcase_add_test(tc, both_away_for_long);
    tcase_add_test(tc, no_counters);
    tcase_add_test(tc, another_sensor);
    tcase_add_test(tc, restart);
    tcase_add_test(tc, restart_after_long);
    tcase_add_test(tc, nonsense);
    tcase_add_test(tc, check);
    tcase_add_loop_test(tc, any_history, 0, 20);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
