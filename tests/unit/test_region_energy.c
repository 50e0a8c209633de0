/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The energy of regions, where it can be told by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment.h"
#include "tests/unit/dice.h"
#include "tools/report/region_energy.h"

#define S  UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define J  UINT64_C(1000000)

#define MOST 20000

/* A step that a test puts together. */
static struct joule_energy_point energy[MOST];
static struct joule_region_row rows[MOST];
static struct joule_region_process processes[64];
static struct joule_region_cpu cpu[MOST];
static struct joule_region_step step;
static struct joule_region_result result;

static void setup(void)
{
    step = (struct joule_region_step){.energy = energy,
                                      .row = rows,
                                      .process = processes,
                                      .cpu = cpu,
                                      .regions = 8};
    memset(&result, 0, sizeof(result));
}

static void teardown(void)
{
    joule_region_result_free(&result);
}

/* [watts] until [to_ns], a row each [period_ns]. */
static void power(uint64_t to_ns, uint64_t period_ns, uint64_t watts)
{
    uint64_t ns = step.energies ? energy[step.energies - 1].ns : 0;
    uint64_t uj = step.energies ? energy[step.energies - 1].uj : 0;

    while (ns < to_ns) {
        ns += period_ns;
        uj += watts * period_ns / 1000;
        energy[step.energies++] = (struct joule_energy_point){ns, uj};
    }
}

static uint64_t process(uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t p = step.processes++;

    processes[p] = (struct joule_region_process){
        .process = p, .rank = p, .begin_ns = begin_ns, .end_ns = end_ns};
    return p;
}

static void used(uint64_t p, uint64_t ns, uint64_t cpu_ns)
{
    cpu[step.cpus++] = (struct joule_region_cpu){p, cpu_ns, ns};
}

static void many(uint64_t p, uint64_t thread, uint64_t depth, uint64_t region,
                 uint64_t begin_ns, uint64_t end_ns, uint64_t count,
                 uint64_t time_ns)
{
    rows[step.rows++] = (struct joule_region_row){
        p,     thread,   depth,  region, JOULE_REGION_ENDED,
        count, begin_ns, end_ns, time_ns};
}

static void one(uint64_t p, uint64_t thread, uint64_t depth, uint64_t region,
                uint64_t begin_ns, uint64_t end_ns)
{
    many(p, thread, depth, region, begin_ns, end_ns, 1, end_ns - begin_ns);
}

static const struct joule_region_use *use_of(uint32_t region, uint32_t p)
{
    for (size_t i = 0; i < result.uses; i++)
        if (result.use[i].region == region && result.use[i].process == p)
            return &result.use[i];
    ck_abort_msg("region %u of process %u is not there", region, p);
    return NULL;
}

static const struct joule_region_use *region_of(uint32_t region)
{
    for (size_t i = 0; i < result.regions; i++)
        if (result.region[i].region == region)
            return &result.region[i];
    ck_abort_msg("region %u is not there", region);
    return NULL;
}

static void is_near(uint64_t uj, double joules)
{
    ck_assert_msg((double)uj > joules * 1e6 - 5 &&
                      (double)uj < joules * 1e6 + 5,
                  "%.6f J instead of %.6f", (double)uj / 1e6, joules);
}

/* All shares and the rest are the step's. */
static void divide(void)
{
    uint64_t sum;

    ck_assert_int_eq(joule_region_energy(&step, &result), 0);
    sum = result.no_region_uj;
    for (size_t i = 0; i < result.uses; i++)
        sum += result.use[i].share_uj;
    ck_assert_uint_eq(sum, result.step_uj);
}

START_TEST(one_process)
{
    uint64_t p = process(0, 10 * S);

    power(4 * S, S, 100);
    power(10 * S, S, 200);
    used(p, 0, 0);
    used(p, 10 * S, 10 * S);
    one(p, 0, 0, 1, S, 4 * S);
    one(p, 0, 0, 2, 4 * S, 9500 * MS);
    divide();
    is_near(result.step_uj, 1600);
    is_near(use_of(1, 0)->share_uj, 300);
    is_near(use_of(2, 0)->share_uj, 1100);
    is_near(result.no_region_uj, 200);
    is_near(region_of(2)->window_uj, 1100);
    ck_assert_uint_eq(region_of(2)->window_ns, 5500 * MS);
    ck_assert_uint_eq(result.period_ns, S);
}
END_TEST

/* Power changes within a row, where the region begins. */
START_TEST(within_a_change)
{
    uint64_t p = process(0, 12 * S);

    power(4 * S, S, 100);
    power(5 * S, S, 165);
    power(8 * S, S, 200);
    power(9 * S, S, 135);
    power(12 * S, S, 100);
    used(p, 0, 0);
    used(p, 12 * S, 12 * S);
    one(p, 0, 0, 1, 4350 * MS, 8350 * MS);
    divide();
    is_near(region_of(1)->window_uj, 800);
    is_near(use_of(1, 0)->share_uj, 800);
    is_near(result.no_region_uj, 800);
}
END_TEST

/* One process begins to work where the other ends. */
START_TEST(change_of_process)
{
    uint64_t a = process(0, 10 * S), b = process(0, 10 * S);

    power(10 * S, S, 100);
    for (uint64_t i = 0; i <= 10; i++) {
        uint64_t work = i <= 4 ? i * S : 4250 * MS;

        used(a, i * S, work);
        used(b, i * S, i * S - work);
    }
    one(a, 0, 0, 1, 0, 4250 * MS);
    one(b, 0, 0, 2, 4250 * MS, 10 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 425);
    is_near(use_of(2, 1)->share_uj, 575);
}
END_TEST

/* A process that is alone has the step's energy at each moment, whenever in a row it
 * begins to compute. */
START_TEST(alone)
{
    uint64_t p = process(0, 10 * S);

    power(10 * S, S, 100);
    for (uint64_t i = 0; i <= 10; i++)
        used(p, i * S, i <= 4 ? 0 : i * S - 4800 * MS);
    one(p, 0, 0, 1, 0, 4500 * MS);
    one(p, 0, 0, 2, 4500 * MS, 10 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 450);
    is_near(use_of(2, 0)->share_uj, 550);
    is_near(region_of(1)->window_uj, 450);
}
END_TEST

START_TEST(nested)
{
    uint64_t p = process(0, 10 * S);

    power(10 * S, 100 * MS, 100);
    used(p, 0, 0);
    used(p, 10 * S, 10 * S);
    one(p, 0, 0, 1, S, 9 * S);
    one(p, 0, 1, 2, 2 * S, 4 * S);
    one(p, 0, 1, 1, 5 * S, 6 * S); /* in itself */
    one(p, 0, 2, 3, 2500 * MS, 3 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 600);
    is_near(use_of(1, 0)->total_uj, 800);
    is_near(use_of(2, 0)->share_uj, 150);
    is_near(use_of(2, 0)->total_uj, 200);
    is_near(use_of(3, 0)->share_uj, 50);
    is_near(region_of(1)->window_uj, 800);
    is_near(result.no_region_uj, 200);
}
END_TEST

/* By CPU time, row by row; what a process has while another sleeps is its own. */
START_TEST(by_cpu_time)
{
    uint64_t a = process(0, 10 * S), b = process(0, 10 * S);

    power(10 * S, S, 100);
    used(a, 0, 0);
    used(a, 5 * S, 3 * S);
    used(a, 10 * S, 3 * S);
    used(b, 0, 0);
    used(b, 5 * S, 1 * S);
    used(b, 10 * S, 6 * S);
    one(a, 0, 0, 1, 0, 10 * S);
    one(b, 0, 0, 1, 0, 5 * S);
    one(b, 0, 0, 2, 5 * S, 10 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 375);
    is_near(use_of(1, 1)->share_uj, 125);
    is_near(use_of(2, 1)->share_uj, 500);
    is_near(region_of(1)->share_uj, 500);
    is_near(region_of(1)->window_uj, 1000);
    is_near(use_of(1, 1)->window_uj, 500);
    is_near(result.no_region_uj, 0);
}
END_TEST

START_TEST(all_asleep)
{
    uint64_t a = process(0, 10 * S), b = process(0, 5 * S);

    power(10 * S, S, 40);
    used(a, 0, 0);
    used(a, 10 * S, 0);
    used(b, 0, 0);
    used(b, 5 * S, 0);
    one(a, 0, 0, 1, 0, 10 * S);
    one(b, 0, 0, 2, 0, 5 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 300);
    is_near(use_of(2, 1)->share_uj, 100);
}
END_TEST

START_TEST(without_processes)
{
    power(10 * S, S, 40);
    divide();
    ck_assert_uint_eq(result.uses, 0);
    is_near(result.no_region_uj, 400);
}
END_TEST

/* Processes that begin and end within a row have the energy of the time while they are
 * there: what was used before a program first called is no region's. */
START_TEST(within_a_row)
{
    uint64_t a = process(2250 * MS, 2750 * MS), b = process(2500 * MS, 10 * S);

    power(10 * S, S, 100);
    used(a, 2250 * MS, 0);
    used(a, 2750 * MS, 500 * MS);
    used(b, 2500 * MS, 0);
    used(b, 10 * S, 7500 * MS);
    one(a, 0, 0, 1, 2250 * MS, 2750 * MS);
    one(b, 0, 0, 2, 2500 * MS, 3 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 37.5);
    is_near(region_of(1)->window_uj, 50);
    is_near(use_of(2, 1)->share_uj, 37.5);
    is_near(result.no_region_uj, 925);
}
END_TEST

/* Two threads in regions of one process have the same. */
START_TEST(threads)
{
    uint64_t p = process(0, 10 * S);

    power(10 * S, S, 100);
    used(p, 0, 0);
    used(p, 10 * S, 20 * S);
    one(p, 0, 0, 1, 0, 10 * S);
    one(p, 1, 0, 2, 5 * S, 10 * S);
    divide();
    is_near(use_of(1, 0)->share_uj, 750);
    is_near(use_of(2, 0)->share_uj, 250);
    is_near(region_of(2)->window_uj, 500);
}
END_TEST

/* A row of 100 regions of a quarter of its time, and one in each of them. */
START_TEST(folded)
{
    uint64_t p = process(0, 10 * S);

    power(10 * S, S, 100);
    used(p, 0, 0);
    used(p, 10 * S, 10 * S);
    many(p, 0, 0, 1, 2 * S, 6 * S, 100, S);
    many(p, 0, 1, 2, 2 * S, 6 * S, 100, S / 4);
    divide();
    is_near(use_of(1, 0)->share_uj, 75);
    is_near(use_of(1, 0)->total_uj, 100);
    is_near(use_of(2, 0)->share_uj, 25);
    is_near(region_of(1)->window_uj, 100);
    ck_assert_uint_eq(region_of(1)->window_ns, S);
    ck_assert_uint_eq(region_of(1)->count, 100);
    is_near(result.no_region_uj, 900);
}
END_TEST

START_TEST(counted_only)
{
    uint64_t p = process(0, 10 * S);

    power(10 * S, S, 100);
    used(p, 0, 0);
    used(p, 10 * S, 10 * S);
    rows[step.rows++] = (struct joule_region_row){
        p, 0, 0, 1, JOULE_REGION_MARK, 1, 5 * S, 5 * S, 0};
    rows[step.rows++] = (struct joule_region_row){
        p, 65535, 0, 1, JOULE_REGION_MARK + 1, 7, 0, 10 * S, 90 * S};
    rows[step.rows++] = (struct joule_region_row){
        p, 0, 0, 2, JOULE_REGION_UNENDED, 1, 9 * S, 10 * S, S};
    divide();
    ck_assert_uint_eq(region_of(1)->marks, 1);
    ck_assert_uint_eq(region_of(1)->count, 7);
    ck_assert_uint_eq(region_of(1)->lost, 7);
    ck_assert_uint_eq(region_of(1)->share_uj, 0);
    ck_assert_uint_eq(region_of(2)->unended, 1);
    is_near(use_of(2, 0)->share_uj, 100);
}
END_TEST

static uint64_t anything(uint64_t *state)
{
    const uint64_t odd[] = {0, 1, 2, UINT64_MAX, UINT64_MAX / 2, S, 10 * S};

    return dice(state, 2) ? odd[dice(state, 7)] : dice(state, 10 * S);
}

/* Whatever a file says: shares and the rest are the step's. */
/* Times that are the same as a double. */
START_TEST(far_away)
{
    uint64_t p = process(0, UINT64_MAX);

    power(10 * S, S, 100);
    one(p, 0, 0, 1, UINT64_C(1) << 60, (UINT64_C(1) << 60) + 1);
    one(p, 0, 0, 2, 0, 10 * S);
    divide();
    ck_assert_uint_eq(use_of(1, 0)->share_uj, 0);
    is_near(use_of(2, 0)->share_uj, 1000);
}
END_TEST

START_TEST(nonsense)
{
    uint64_t state = 1000 + (uint64_t)_i, *at;

    step.energies = dice(&state, 200);
    step.rows = dice(&state, 500);
    step.processes = dice(&state, 8);
    step.cpus = dice(&state, 500);
    for (size_t i = 0; i < step.energies; i++)
        energy[i] = (struct joule_energy_point){
            _i % 2 ? i * 50 * MS : anything(&state),
            _i % 2 ? i * J : anything(&state) % (1000 * J)};
    for (at = (uint64_t *)rows; at < (uint64_t *)(rows + step.rows); at++)
        *at = dice(&state, 3) ? dice(&state, 8) : anything(&state);
    for (size_t i = 0; i < step.rows && _i % 2; i++) {
        rows[i].begin_ns = dice(&state, 9 * S);
        rows[i].end_ns = rows[i].begin_ns + dice(&state, S);
        rows[i].time_ns = dice(&state, rows[i].end_ns - rows[i].begin_ns + 1);
        rows[i].kind = dice(&state, 2);
    }
    for (at = (uint64_t *)processes;
         at < (uint64_t *)(processes + step.processes); at++)
        *at = anything(&state);
    for (at = (uint64_t *)cpu; at < (uint64_t *)(cpu + step.cpus); at++)
        *at = dice(&state, 2) ? dice(&state, 8) : anything(&state);
    divide();
    for (size_t i = 0; i < result.regions; i++)
        ck_assert_uint_le(result.region[i].window_uj, result.step_uj + 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("region_energy");
    TCase *tc = tcase_create("region_energy");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_process);
    tcase_add_test(tc, within_a_change);
    tcase_add_test(tc, change_of_process);
    tcase_add_test(tc, alone);
    tcase_add_test(tc, nested);
    tcase_add_test(tc, by_cpu_time);
    tcase_add_test(tc, all_asleep);
    tcase_add_test(tc, without_processes);
    tcase_add_test(tc, within_a_row);
    tcase_add_test(tc, threads);
    tcase_add_test(tc, folded);
    tcase_add_test(tc, counted_only);
    tcase_add_test(tc, far_away);
    tcase_add_loop_test(tc, nonsense, 0, 200);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
