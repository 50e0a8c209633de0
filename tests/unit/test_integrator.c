/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Against integrals of the same power in long double (64 bits of mantissa).
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/energy/integrator.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

#define NO_EDGE INT64_C(0)
#define GAP     (3 * S)
#define START   (1000 * S)

#define UPDATES 1000000

#define J   UINT64_C(1000000)
#define KEY UINT64_C(7) /* of the sensor */

static struct joule_integrator g;

static void setup(void)
{
    memset(&g, 0, sizeof(g));
}

/* The length of the gap, 0 if there was none. */
static int64_t update(double watts, uint64_t key, int64_t at_ns,
                      int64_t edge_ns, int64_t gap_ns)
{
    int64_t before_ns = g.gap_ns;

    joule_integrator_update(&g, watts, key, at_ns, edge_ns, gap_ns);
    return g.gap_ns - before_ns;
}

static int64_t at(int64_t ns, double watts)
{
    return update(watts, KEY, START + ns, NO_EDGE, GAP);
}

static int64_t at_edge(int64_t ns, double watts, int64_t edge_ns)
{
    return update(watts, KEY, START + ns, START + edge_ns, GAP);
}

static struct joule_reading said(int64_t ns, bool carry)
{
    return joule_integrator_reading(&g, GAP, START + ns, carry);
}

static uint64_t extended(int64_t ns)
{
    return said(ns, true).uj;
}

START_TEST(nothing_known)
{
    ck_assert_uint_eq(extended(1000 * S), 0);
    joule_integrator_error(&g);
    ck_assert_uint_eq(g.errors, 1);
    ck_assert_uint_eq(g.readings, 0);
    ck_assert_uint_eq(extended(1000 * S), 0);
}
END_TEST

START_TEST(reading_of_nothing)
{
    struct joule_reading r;

    joule_integrator_error(&g);
    r = said(1000 * S, true);
    ck_assert_uint_eq(r.state, JOULE_READING_UNKNOWN);
    ck_assert_uint_eq(r.uj, 0);
    ck_assert_uint_eq(r.mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(r.began_ns, 0);
    ck_assert_int_eq(r.gap_ns, 0);
    ck_assert_uint_eq(r.sensor_key, 0);
    ck_assert_uint_eq(r.errors, 1);
}
END_TEST

/* Clock or BMC: a measurement that is not later than the last is none. */
START_TEST(late)
{
    struct joule_integrator before;

    at(0, 100);
    at(S, 100);
    before = g;
    ck_assert_int_eq(at(S, 5000), 0);
    ck_assert_mem_eq(&g, &before, sizeof(g));
    ck_assert_int_eq(at(S - 1, 5000), 0);
    ck_assert_int_eq(at(-100 * S, 5000), 0);
    ck_assert_mem_eq(&g, &before, sizeof(g));
    at(2 * S, 100);
    ck_assert_uint_eq(g.uj, 200000000);
}
END_TEST

START_TEST(errors_change_nothing)
{
    at(0, 100);
    for (int i = 0; i < 5; i++)
        joule_integrator_error(&g);
    at(S, 100);
    ck_assert_uint_eq(g.uj, 100000000);
    ck_assert_uint_eq(g.errors, 5);
    ck_assert_uint_eq(g.readings, 2);
}
END_TEST

START_TEST(saturation)
{
    g.errors = UINT32_MAX;
    joule_integrator_error(&g);
    ck_assert_uint_eq(g.errors, UINT32_MAX);
    at(0, 100);
    g.readings = UINT32_MAX;
    at(S, 100);
    ck_assert_uint_eq(g.readings, UINT32_MAX);
    ck_assert_uint_eq(g.uj, 100000000);
}
END_TEST

START_TEST(gaps)
{
    at(0, 100);
    ck_assert_int_eq(at(GAP, 100), 0);
    ck_assert_uint_eq(g.gaps, 0);
    ck_assert_int_eq(g.gap_ns, 0);
    ck_assert_int_eq(at(2 * GAP + 1, 300), GAP + 1);
    ck_assert_uint_eq(g.gaps, 1);
    ck_assert_int_eq(g.gap_ns, GAP + 1);
    ck_assert_uint_eq(g.lost, 0);
    ck_assert_uint_eq(g.uj, 300000000 + 600000000);
}
END_TEST

START_TEST(bridge_limit)
{
    at(0, 100);
    ck_assert_int_eq(at(JOULE_POWER_BRIDGE_NS, 300), JOULE_POWER_BRIDGE_NS);
    ck_assert_uint_eq(g.uj, UINT64_C(60000000000));
    ck_assert_uint_eq(g.lost, 0);
    ck_assert_int_eq(at(2 * JOULE_POWER_BRIDGE_NS + 1, 300),
                     JOULE_POWER_BRIDGE_NS + 1);
    /* As it was carried on, and no more. */
    ck_assert_uint_eq(g.uj, UINT64_C(150000000000));
    ck_assert_uint_eq(g.gaps, 2);
    ck_assert_int_eq(g.gap_ns, 2 * JOULE_POWER_BRIDGE_NS + 1);
    ck_assert_uint_eq(g.lost, 1);
    at(2 * JOULE_POWER_BRIDGE_NS + 1 + S, 300);
    ck_assert_uint_eq(g.uj, UINT64_C(150300000000));
}
END_TEST

/* The power before is that of another sensor: it is carried on, and what was
 * seen of its refreshes is forgotten. */
START_TEST(another_sensor)
{
    at(0, 100);
    at(S, 100);
    at(2 * S, 110);
    at(3 * S, 100);
    ck_assert_int_eq(g.refresh_ns, S);
    ck_assert_uint_eq(g.uj, 100 * J + 105 * J + 105 * J);
    ck_assert_int_eq(update(300, KEY + 1, START + 5 * S, NO_EDGE, GAP), 0);
    ck_assert_uint_eq(g.uj, 310 * J + 200 * J);
    ck_assert_uint_eq(g.sensor_key, KEY + 1);
    ck_assert_int_eq(g.refresh_ns, 0);
    ck_assert_uint_eq(g.changes, 0);
    ck_assert_int_eq(g.changed_ns, START + 5 * S);
    /* A reading that does not tell is of the same. */
    update(500, 0, START + 6 * S, NO_EDGE, GAP);
    ck_assert_uint_eq(g.uj, 510 * J + 400 * J);
    ck_assert_uint_eq(g.sensor_key, KEY + 1);
    /* Not bridged for ever. */
    ck_assert_int_eq(update(1, KEY, START + 1000 * S, NO_EDGE, GAP), 994 * S);
    ck_assert_uint_eq(g.uj, (910 + 300 * 500) * J);
    joule_integrator_add(&g, 1, 5, KEY + 2, START + 1001 * S);
    ck_assert_uint_eq(g.uj, (915 + 300 * 500) * J);
    ck_assert_uint_eq(g.sensor_key, KEY + 2);
}
END_TEST

/* A gap_ns beyond the bridge does not hide that energy was left out. */
START_TEST(lost_is_a_gap)
{
    at(0, 100);
    ck_assert_int_eq(
        update(100, KEY, START + JOULE_POWER_BRIDGE_NS + 1, NO_EDGE, INT64_MAX),
        JOULE_POWER_BRIDGE_NS + 1);
    ck_assert_uint_eq(g.lost, 1);
    ck_assert_uint_eq(g.gaps, 1);
    ck_assert_int_eq(g.gap_ns, JOULE_POWER_BRIDGE_NS + 1);
    ck_assert_uint_eq(g.uj, 100 * 300 * J);
}
END_TEST

/* Without a measurement for longer than the gap it is stale; the time since the
 * last one is a gap already, as it will be when there is one. */
START_TEST(reading_is_stale)
{
    struct joule_reading r;

    at(0, 100);
    at(S, 100);
    r = said(S + GAP, true);
    ck_assert_uint_eq(r.state, JOULE_READING_OK);
    ck_assert_uint_eq(r.mw, 100000);
    ck_assert_int_eq(r.gap_ns, 0);
    r = said(S + GAP + 1, true);
    ck_assert_uint_eq(r.state, JOULE_READING_STALE);
    ck_assert_uint_eq(r.mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(r.gap_ns, GAP + 1);
    ck_assert_uint_eq(r.uj, 400 * J);
    at(S + GAP + 1, 100);
    r = said(S + GAP + 1, true);
    ck_assert_uint_eq(r.state, JOULE_READING_OK);
    ck_assert_int_eq(r.gap_ns, GAP + 1);
    /* Energy is carried on for so long and no longer. */
    r = said(S + GAP + 1 + 2 * JOULE_POWER_BRIDGE_NS, true);
    ck_assert_uint_eq(r.uj, 400 * J + 30000 * J);
    ck_assert_int_eq(r.gap_ns, GAP + 1 + 2 * JOULE_POWER_BRIDGE_NS);
}
END_TEST

/* What a state of another process may be. */
START_TEST(check)
{
    struct joule_integrator sound;

    ck_assert(joule_integrator_check(&g, START));
    at(0, 100);
    at(S, 110);
    at(5 * S, 120.5);
    sound = g;
    ck_assert(joule_integrator_check(&g, START + 5 * S));
    ck_assert(joule_integrator_check(&g, START + 1000 * S));
    ck_assert(!joule_integrator_check(&g, START + 5 * S - 1)); /* the future */
#define REFUSED(field, value)                                                  \
    do {                                                                       \
        g = sound;                                                             \
        g.field = (value);                                                     \
        ck_assert(!joule_integrator_check(&g, START + 5 * S));                 \
    } while (0)
    REFUSED(power_w, NAN);
    REFUSED(power_w, INFINITY);
    REFUSED(power_w, -1);
    REFUSED(power_w, JOULE_POWER_MAX_W * 1.01);
    REFUSED(rest_uj, NAN);
    REFUSED(rest_uj, -0.1);
    REFUSED(rest_uj, 1);
    REFUSED(began_ns, -1);
    REFUSED(began_ns, START + 5 * S + 1); /* behind read_ns */
    REFUSED(read_ns, START - 1);
    REFUSED(changed_ns, START + 5 * S + 1);
    REFUSED(changed_ns, INT64_MIN);
    REFUSED(gap_ns, -1);
    REFUSED(gap_ns, INT64_MAX);
#undef REFUSED
    g = sound;
    ck_assert(joule_integrator_check(&g, START + 5 * S));
}
END_TEST

/* What a meter has let pass. */
START_TEST(is_measured)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY,
                                 -1,  -1e-9,    JOULE_POWER_MAX_W * 1.01};
    struct joule_power p = {.watts = 100};

    ck_assert(joule_power_is_measured(&p));
    for (int i = 1; i < JOULE_POWER_STATUS_COUNT; i++) {
        p.status = (enum joule_power_status)i;
        ck_assert(!joule_power_is_measured(&p));
    }
    p.status = JOULE_POWER_OK;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        p.watts = bad[i];
        ck_assert(!joule_power_is_measured(&p));
    }
    p.watts = JOULE_POWER_MAX_W;
    ck_assert(joule_power_is_measured(&p));
}
END_TEST

START_TEST(longest_gap)
{
    ck_assert_int_eq(joule_power_gap_ns(10 * MS), 3 * S);
    ck_assert_int_eq(joule_power_gap_ns(S), 3 * S);
    ck_assert_int_eq(joule_power_gap_ns(60 * S), 180 * S);
}
END_TEST

START_TEST(trapezoid)
{
    at(0, 100);
    ck_assert_uint_eq(g.uj, 0);
    at(S, 300);
    ck_assert_uint_eq(g.uj, 200000000);
    at(S + 500 * MS, 100);
    ck_assert_uint_eq(g.uj, 300000000);
    ck_assert_double_eq(g.power_w, 100);
    ck_assert_int_eq(g.read_ns, START + S + 500 * MS);
}
END_TEST

START_TEST(edge)
{
    at(0, 100);
    at_edge(S, 300, 250 * MS);
    ck_assert_uint_eq(g.uj, 25000000 + 225000000);
    /* One of before: a trapezoid. */
    at_edge(2 * S, 100, 250 * MS);
    ck_assert_uint_eq(g.uj, 450000000);
    /* One that has not come yet. */
    at_edge(3 * S, 300, 3 * S + 1);
    ck_assert_uint_eq(g.uj, 650000000);
    /* At a measurement: it is the last one of before. */
    at_edge(4 * S, 100, 3 * S);
    ck_assert_uint_eq(g.uj, 750000000);
    at_edge(5 * S, 300, 5 * S);
    ck_assert_uint_eq(g.uj, 850000000);
}
END_TEST

/* A measurement just after the edge still shows the power before. */
START_TEST(edge_too_fresh_to_be_seen)
{
    at(0, 100);
    at_edge(S, 100, 990 * MS);
    at_edge(2 * S, 300, 990 * MS);
    ck_assert_uint_eq(g.uj, 100000000 + 300000000);
    at_edge(3 * S, 100, 990 * MS);
    ck_assert_uint_eq(g.uj, 400000000 + 200000000);
    at_edge(4 * S, 300, 3 * S - JOULE_POWER_SETTLE_NS - 1);
    ck_assert_uint_eq(g.uj, 600000000 + 200000000);
}
END_TEST

/* Whatever is declared as an edge adds no more than the higher power. */
START_TEST(senseless_edges)
{
    static const int64_t edges[] = {INT64_MIN, -1, 0, 1, INT64_MAX};

    at(0, 100);
    update(300, KEY, START + S, edges[_i], GAP);
    ck_assert_uint_eq(g.uj, 200000000);
}
END_TEST

/* The edge is where an extended total and the corrected one agree. */
START_TEST(edge_agrees_with_extension)
{
    uint64_t uj;

    at(0, 123.4);
    uj = extended(377 * MS);
    at_edge(S, 456.7, 377 * MS);
    ck_assert_uint_eq(g.uj - uj, (uint64_t)(456.7 * 623000 + 0.5));
}
END_TEST

/* 1/3 uJ at a time: nothing is rounded away. */
START_TEST(rest)
{
    at(0, 1.0 / 3);
    for (int64_t i = 1; i <= 3000000; i++)
        update(1.0 / 3, KEY, START + i * 1000, NO_EDGE, GAP);
    ck_assert_double_lt(g.rest_uj, 1.0);
    ck_assert_double_ge(g.rest_uj, 0.0);
    ck_assert_double_eq_tol((double)g.uj + g.rest_uj, 1e6, 1e-3);
}
END_TEST

/* The same after years: the sum is not kept in a double. */
START_TEST(rest_of_a_large_total)
{
    g.uj = UINT64_C(9000000000000000000);
    at(0, 1e-6);
    for (int i = 1; i <= 2000; i++)
        at(i * S, 1e-6);
    ck_assert_double_eq_tol(
        (double)(g.uj - UINT64_C(9000000000000000000)) + g.rest_uj, 2000, 1e-6);
}
END_TEST

START_TEST(extension)
{
    at(0, 100);
    at(S, 200);
    ck_assert_uint_eq(extended(0), 150000000);
    ck_assert_uint_eq(extended(S), 150000000);
    ck_assert_uint_eq(extended(S + 1), 150000000);
    ck_assert_uint_eq(extended(S + 5000), 150001000);
    ck_assert_uint_eq(extended(2 * S), 350000000);
    ck_assert_uint_eq(extended(S + JOULE_POWER_BRIDGE_NS),
                      UINT64_C(60150000000));
    ck_assert_uint_eq(extended(S + 2 * JOULE_POWER_BRIDGE_NS),
                      UINT64_C(60150000000));
    ck_assert_uint_eq(g.uj, 150000000);
}
END_TEST

START_TEST(reading)
{
    struct joule_reading r;

    at(0, 100);
    joule_integrator_error(&g);
    at(S, 200.0004);
    r = said(3 * S, true);
    ck_assert_uint_eq(r.uj, extended(3 * S));
    ck_assert_uint_eq(r.state, JOULE_READING_OK);
    ck_assert_int_eq(r.began_ns, START);
    ck_assert_int_eq(r.mono_ns, START + 3 * S);
    ck_assert_int_eq(r.gap_ns, 0);
    ck_assert_uint_eq(r.mw, 200000);
    ck_assert_uint_eq(r.sensor_key, KEY);
    ck_assert_uint_eq(r.errors, 1);
    /* As it was measured. */
    r = said(3 * S, false);
    ck_assert_uint_eq(r.uj, g.uj);
    ck_assert_uint_eq(r.state, JOULE_READING_OK);
    ck_assert_uint_eq(r.mw, 200000);
}
END_TEST

/* Energy that is told. */
START_TEST(added)
{
    struct joule_reading r;

    joule_integrator_add(&g, 100, 5000, KEY, START);
    ck_assert_uint_eq(g.uj, 0); /* of the time before the first */
    ck_assert_int_eq(g.began_ns, START);
    joule_integrator_add(&g, 300, 150, 0, START + S);
    ck_assert_uint_eq(g.uj, 150 * J);
    ck_assert_uint_eq(g.sensor_key, KEY);
    joule_integrator_add(&g, 300, 1000, KEY, START + S); /* not later */
    ck_assert_uint_eq(g.uj, 150 * J);
    r = said(2 * S, true);
    ck_assert_uint_eq(r.uj, 450 * J);
    ck_assert_uint_eq(r.mw, 300000);
    for (size_t i = 0; i < 3; i++)
        joule_integrator_add(&g, 300, (double[]){-1, NAN, INFINITY}[i], KEY,
                             START + (int64_t)(2 + i) * S);
    ck_assert_uint_eq(g.uj, 150 * J);
    ck_assert_int_eq(g.began_ns, START);
}
END_TEST

START_TEST(changed)
{
    at(0, 100);
    ck_assert_int_eq(g.changed_ns, START);
    at(S, 100);
    ck_assert_int_eq(g.changed_ns, START);
    at(2 * S, 101);
    ck_assert_int_eq(g.changed_ns, START + 2 * S);
    at(3 * S, 101);
    ck_assert_int_eq(g.changed_ns, START + 2 * S);
}
END_TEST

/* A BMC that takes a new value every 10 s, asked once a second. */
START_TEST(not_refreshed)
{
    for (int s = 0; s < 10; s++)
        at(s * S, 100);
    ck_assert_uint_eq(g.held, 0); /* nothing says so yet */
    for (int s = 10; s < 20; s++)
        at(s * S, 110);
    ck_assert_int_eq(g.refresh_ns, 0);
    at(20 * S, 105);
    ck_assert_int_eq(g.refresh_ns, 10 * S);
    ck_assert_uint_eq(g.held, 0);
    for (int s = 21; s < 30; s++)
        at(s * S, 105);
    ck_assert_uint_eq(g.held, 9);
    /* Refreshed, and the same: the tenth second and the next nine. */
    for (int s = 30; s < 40; s++)
        at(s * S, 105);
    ck_assert_uint_eq(g.held, 9);
    at(40 * S, 100);
    ck_assert_int_eq(g.refresh_ns, 10 * S);
    at(41 * S, 100);
    ck_assert_uint_eq(g.held, 10);
    at(44 * S, 90); /* it can be quicker */
    ck_assert_int_eq(g.refresh_ns, 4 * S);
    ck_assert_uint_eq(g.changes, 4);
}
END_TEST

static double any(double limit)
{
    return limit * (double)random() / (double)RAND_MAX;
}

struct truth {
    long double uj;
    int64_t gap_ns;
    uint32_t gaps, lost;
};

static void true_update(struct truth *t, double before_w, double w,
                        int64_t before_ns, int64_t ns, int64_t edge_ns)
{
    long double a = before_w, b = w, d = (long double)(ns - before_ns);

    if (edge_ns < before_ns && edge_ns >= before_ns - JOULE_POWER_SETTLE_NS)
        edge_ns = before_ns;
    if (d > GAP) {
        t->gaps++;
        t->gap_ns += ns - before_ns;
    }
    if (d > JOULE_POWER_BRIDGE_NS) {
        t->lost++;
        t->uj += a * JOULE_POWER_BRIDGE_NS / 1000;
    } else if (edge_ns >= before_ns && edge_ns <= ns)
        t->uj += (a * (long double)(edge_ns - before_ns) +
                  b * (long double)(ns - edge_ns)) /
                 1000;
    else
        t->uj += (a + b) / 2 * d / 1000;
}

/* Any powers, intervals, edges, errors and late samples: to the microjoule,
 * and never less than before. */
START_TEST(random_power)
{
    struct truth truth = {0};
    int64_t ns = START, gap_ns = 0;
    uint64_t before_uj = 0;
    unsigned bad = 0;
    double w = 100;

    srandom((unsigned)_i);
    update(w, KEY, ns, 0, GAP);
    for (int i = 0; i < UPDATES; i++) {
        static const int64_t longest[] = {MS, S, 10 * S, 400 * S};
        int64_t step_ns =
            1 + (int64_t)any((double)longest[random() % (i % 100 ? 2 : 4)]);
        int64_t edge_ns = ns - S / 2 + (int64_t)any((double)(step_ns + S));
        double next_w = random() % 4 ? any(random() % 50 ? 1000 : 1e5) : w;

        if (random() % 10 == 0)
            joule_integrator_error(&g);
        if (random() % 10 == 0)
            update(1e5, KEY, ns - (int64_t)any(1e9), ns, GAP);
        true_update(&truth, w, next_w, ns, ns + step_ns, edge_ns);
        gap_ns += update(next_w, KEY, ns + step_ns, edge_ns, GAP);
        ns += step_ns;
        w = next_w;
        bad += g.uj < before_uj || g.rest_uj < 0 || g.rest_uj >= 1;
        before_uj = g.uj;
    }
    ck_assert_uint_eq(bad, 0);
    ck_assert_ldouble_eq_tol((long double)g.uj + (long double)g.rest_uj,
                             truth.uj, 1.0L);
    ck_assert_int_eq(gap_ns, truth.gap_ns);
    ck_assert_int_eq(g.gap_ns, truth.gap_ns);
    ck_assert_int_eq(g.began_ns, START);
    ck_assert_uint_eq(g.gaps, truth.gaps);
    ck_assert_uint_eq(g.lost, truth.lost);
    ck_assert_uint_gt(g.lost, 100);
    ck_assert_uint_eq(g.readings, UPDATES + 1);
}
END_TEST

/* A sine of power, sampled every second: what the trapezoids leave is the
 * h^2/12 of the textbook. */
START_TEST(sine)
{
    const double period_s = 20, w = 2 * M_PI / period_s;
    long double true_j;

    for (int i = 0; i <= 95; i++)
        at(i * S, 200 + 100 * sin(w * i));
    true_j = 200.0L * 95 + 100.0L / w * (1 - cosl(w * 95.0L));
    ck_assert_double_eq_tol((double)g.uj / 1e6, (double)true_j,
                            w / 12 * 100 * 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integrator");
    TCase *bad = tcase_create("bad samples");
    TCase *good = tcase_create("samples");
    TCase *many = tcase_create("random");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, NULL);
    tcase_add_test(bad, nothing_known);
    tcase_add_test(bad, reading_of_nothing);
    tcase_add_test(bad, reading_is_stale);
    tcase_add_test(bad, check);
    tcase_add_test(bad, is_measured);
    tcase_add_test(bad, late);
    tcase_add_test(bad, errors_change_nothing);
    tcase_add_test(bad, saturation);
    tcase_add_test(bad, gaps);
    tcase_add_test(bad, bridge_limit);
    tcase_add_test(bad, lost_is_a_gap);
    tcase_add_test(bad, another_sensor);
    tcase_add_loop_test(bad, senseless_edges, 0, 5);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, NULL);
    tcase_add_test(good, trapezoid);
    tcase_add_test(good, edge);
    tcase_add_test(good, edge_too_fresh_to_be_seen);
    tcase_add_test(good, edge_agrees_with_extension);
    tcase_add_test(good, rest);
    tcase_add_test(good, rest_of_a_large_total);
    tcase_add_test(good, extension);
    tcase_add_test(good, reading);
    tcase_add_test(good, added);
    tcase_add_test(good, longest_gap);
    tcase_add_test(good, changed);
    tcase_add_test(good, not_refreshed);
    tcase_add_test(good, sine);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(many, setup, NULL);
    tcase_set_timeout(many, 120);
    tcase_add_loop_test(many, random_power, 0, 4);
    suite_add_tcase(suite, many);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
