/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sum of domains, whatever sensor is behind them: what it is of them, and
 * when it is none.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/counter.h"
#include "common/energy/node_total.h"
#include "tests/unit/dice.h"

#define S JOULE_NS_PER_S
#define J UINT64_C(1000000)

#define MAX 8 /* domains */

static struct joule_domain domain[MAX];
static struct joule_reading reading[MAX];
static size_t count;
static int64_t now_ns;
static struct joule_node_total total;

static void setup(void)
{
    count = 0;
    now_ns = 1000 * S;
    memset(reading, 0, sizeof(reading));
    memset(&total, 0xFF, sizeof(total)); /* start must clear it */
}

/* One more domain that is known and has used nothing. */
static struct joule_domain *add(enum joule_domain_kind kind, bool in_total)
{
    reading[count] = (struct joule_reading){
        .began_ns = now_ns,
        .mw = 0,
        .state = JOULE_READING_OK,
    };
    domain[count] = (struct joule_domain){
        .kind = kind,
        .unit = {.num = 15625, .shift = 10},
        .width_bits = 32,
        .in_total = in_total,
    };
    return &domain[count++];
}

static void start(uint64_t base_uj)
{
    joule_node_total_start(&total, domain, count, base_uj);
}

static void step(int64_t ns)
{
    now_ns += ns;
    for (size_t i = 0; i < count; i++)
        reading[i].mono_ns = now_ns;
    joule_node_total_update(&total, domain, reading, now_ns);
}

START_TEST(no_domains)
{
    start(7);
    ck_assert_uint_eq(total.node_uj, 7);
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.node_uj, 7);
    ck_assert_uint_eq(total.stale, 0);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(total.began_ns, 0);
    ck_assert_int_eq(joule_domains_wrap_ns(domain, 0), INT64_MAX);
}
END_TEST

START_TEST(started)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    start(5 * J);
    ck_assert_uint_eq(total.base_uj, 5 * J);
    ck_assert_uint_eq(total.node_uj, 5 * J);
    ck_assert_uint_eq(total.domain_key, joule_domains_key(domain, 1));
    ck_assert_uint_eq(total.count, 1);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.stale, 0);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(total.sensor_key, 0);
    ck_assert_int_eq(total.gap_ns, 0);
    ck_assert_int_eq(total.began_ns, 0);
    ck_assert_int_eq(total.from_ns, 0);
}
END_TEST

START_TEST(nothing_in_the_total)
{
    add(JOULE_DOMAIN_PP0, false);
    reading[0].uj = J;
    start(0);
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.node_uj, 0);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(total.reading[0].uj, J);
}
END_TEST

/* Without one of its parts there is no total. */
START_TEST(a_part_is_missing)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PACKAGE, true);
    reading[_i].state = JOULE_READING_UNKNOWN;
    start(0);
    for (int i = 0; i < 10; i++) {
        reading[0].uj += J;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
        ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    }
    reading[_i].state = JOULE_READING_OK;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(total.from_ns, now_ns);
    ck_assert_uint_eq(total.node_uj, 10 * J);
}
END_TEST

/* Nor is it stale: that is something known. */
START_TEST(missing_is_more_than_stale)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PACKAGE, true);
    start(0);
    reading[0].state = JOULE_READING_UNKNOWN;
    reading[1].state = JOULE_READING_STALE;
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.stale, 0);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
}
END_TEST

START_TEST(stale)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PACKAGE, true);
    start(0);
    reading[0].mw = reading[1].mw = 100000;
    step(S);
    ck_assert_uint_eq(total.mw, 200000);
    /* One of the two; its last power says nothing. */
    reading[_i].state = JOULE_READING_STALE;
    reading[0].uj = J;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.stale, 1);
    ck_assert_uint_eq(total.node_uj, J);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    reading[_i].state = JOULE_READING_OK;
    step(S);
    ck_assert_uint_eq(total.stale, 0);
    ck_assert_uint_eq(total.mw, 200000);
    ck_assert_int_eq(total.from_ns, 1001 * S);
}
END_TEST

/* What is no part of it spoils nothing. */
START_TEST(others_do_not_count)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PP0, false);
    reading[1].began_ns = 1;
    start(0);
    for (int state = JOULE_READING_UNKNOWN; state <= JOULE_READING_STALE;
         state++) {
        reading[1].state = (uint64_t)state;
        reading[1].mw = JOULE_MW_UNKNOWN;
        reading[1].uj += 1000 * J;
        reading[1].gap_ns += S;
        reading[0].uj += J;
        reading[0].mw = 1000;
        step(S);
        ck_assert_uint_eq(total.valid, 1);
        ck_assert_uint_eq(total.stale, 0);
        ck_assert_uint_eq(total.mw, 1000);
    }
    ck_assert_uint_eq(total.node_uj, 3 * J);
    ck_assert_int_eq(total.gap_ns, 0);
    ck_assert_int_eq(total.began_ns, 1000 * S);
    ck_assert_mem_eq(total.reading, reading, 2 * sizeof(reading[0]));
}
END_TEST

/* Power was carried on, and is corrected: what has been said stands. */
START_TEST(never_falls)
{
    add(JOULE_DOMAIN_POWER, true);
    start(5 * J);
    reading[0].uj = 100 * J;
    step(S);
    ck_assert_uint_eq(total.node_uj, 105 * J);
    reading[0].uj = 60 * J;
    step(S);
    ck_assert_uint_eq(total.node_uj, 105 * J);
    ck_assert_uint_eq(total.reading[0].uj, 60 * J);
    ck_assert_uint_eq(total.valid, 1);
    reading[0].uj = 100 * J;
    step(S);
    ck_assert_uint_eq(total.node_uj, 105 * J);
    reading[0].uj = 101 * J;
    step(S);
    ck_assert_uint_eq(total.node_uj, 106 * J);
}
END_TEST

/* The longest of the gaps that happen at once counts, those of domains outside
 * the total do not. */
START_TEST(gap)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PP0, false);
    start(0);
    step(S);
    ck_assert_int_eq(total.gap_ns, 0);
    reading[0].gap_ns = 66 * S;
    reading[1].gap_ns = 126 * S;
    reading[2].gap_ns = 1000 * S;
    step(S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
    step(S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
    /* The one that had missed less. */
    reading[0].gap_ns += 3 * S;
    step(S);
    ck_assert_int_eq(total.gap_ns, 129 * S);
}
END_TEST

/* A gap that there was before the first update is one, too. */
START_TEST(gap_at_first)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    reading[0].gap_ns = 3 * S;
    start(0);
    step(S);
    ck_assert_int_eq(total.gap_ns, 3 * S);
}
END_TEST

/* Since when all of it is known: again after it was not. */
START_TEST(from)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    start(0);
    step(S);
    ck_assert_int_eq(total.from_ns, 1001 * S);
    step(S);
    ck_assert_int_eq(total.from_ns, 1001 * S);
    reading[0].state = JOULE_READING_UNKNOWN;
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    step(S);
    reading[0].state = JOULE_READING_OK;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(total.from_ns, 1005 * S);
    ck_assert_int_eq(total.mono_ns, now_ns);
}
END_TEST

START_TEST(began)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_PACKAGE, true);
    reading[0].began_ns = 0; /* not measured yet */
    reading[0].state = JOULE_READING_UNKNOWN;
    reading[1].began_ns = 900 * S;
    start(0);
    step(S);
    ck_assert_int_eq(total.began_ns, 900 * S);
    reading[0].began_ns = 800 * S;
    step(S);
    ck_assert_int_eq(total.began_ns, 800 * S);
}
END_TEST

START_TEST(sums)
{
    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_DRAM, true);
    start(5 * J);
    reading[0].uj = 10 * J;
    reading[0].mw = 150000;
    reading[1].uj = 2 * J;
    reading[1].mw = 20000;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 17 * J);
    ck_assert_uint_eq(total.base_uj, 5 * J);
    ck_assert_uint_eq(total.mw, 170000);
    ck_assert_int_eq(total.mono_ns, now_ns);
    ck_assert_mem_eq(total.reading, reading, 2 * sizeof(reading[0]));
    /* Of one part the power is not known: then it is of none. */
    reading[_i].mw = JOULE_MW_UNKNOWN;
    step(S);
    ck_assert_uint_eq(total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(total.valid, 1);
}
END_TEST

START_TEST(psys_carries)
{
    add(JOULE_DOMAIN_PSYS, true);
    add(JOULE_DOMAIN_PACKAGE, false);
    start(0);
    reading[0].uj = J;
    reading[1].uj = 100 * J;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, J);
}
END_TEST

/* Whose power it is. */
START_TEST(sensors)
{
    uint64_t one;

    add(JOULE_DOMAIN_POWER, true);
    add(JOULE_DOMAIN_POWER, false);
    start(0);
    step(S);
    ck_assert_uint_eq(total.sensor_key, 0);
    reading[1].sensor_key = 4; /* a label that is not the node's */
    step(S);
    ck_assert_uint_eq(total.sensor_key, 0);
    reading[0].sensor_key = 3;
    step(S);
    one = total.sensor_key;
    ck_assert_uint_ne(one, 0);
    reading[1].sensor_key = 5;
    step(S);
    ck_assert_uint_eq(total.sensor_key, one);
    reading[0].sensor_key = 5;
    step(S);
    ck_assert_uint_ne(total.sensor_key, one);
    reading[0].sensor_key = 3;
    step(S);
    ck_assert_uint_eq(total.sensor_key, one);
}
END_TEST

/* Another process goes on with a copy. */
START_TEST(continued)
{
    struct joule_node_total kept;

    add(JOULE_DOMAIN_PACKAGE, true);
    start(5 * J);
    reading[0].uj = 10 * J;
    reading[0].gap_ns = 2 * S;
    step(S);
    kept = total;
    memset(&total, 0xFF, sizeof(total));
    total = kept;
    reading[0].uj = 12 * J;
    reading[0].gap_ns = 3 * S;
    step(20 * S);
    ck_assert_uint_eq(total.node_uj, 17 * J);
    ck_assert_int_eq(total.gap_ns, 3 * S);
    ck_assert_int_eq(total.from_ns, 1001 * S);
}
END_TEST

/* Any domains, any readings, energy that falls here and there: the total is the
 * most that there has been. */
START_TEST(random_readings)
{
    uint64_t seed = dice_seed() + (uint64_t)_i, most_uj = 100 * J;
    int64_t gap_ns = 0;

    for (int i = 0; i < MAX; i++)
        add(JOULE_DOMAIN_POWER, dice(&seed, 2));
    start(most_uj);
    for (int k = 0; k < 2000; k++) {
        uint64_t sum_uj = total.base_uj, mw = 0;
        int64_t missed_ns = 0;
        bool any = false, unknown = false, is_stale = false, no_mw = false;

        for (size_t i = 0; i < count; i++) {
            struct joule_reading *r = &reading[i];
            int64_t ns = dice(&seed, 20) ? 0 : (int64_t)dice(&seed, 1000);

            r->uj += dice(&seed, 10) ? dice(&seed, 1000 * J) : 0;
            if (dice(&seed, 20) == 0)
                r->uj -= r->uj / 3;
            r->state = dice(&seed, 30) ? JOULE_READING_OK : dice(&seed, 3);
            r->mw = dice(&seed, 30) ? dice(&seed, 1000000) : JOULE_MW_UNKNOWN;
            r->gap_ns += ns;
            if (!domain[i].in_total)
                continue;
            any = true;
            sum_uj += r->uj;
            unknown |= r->state == JOULE_READING_UNKNOWN;
            is_stale |= r->state == JOULE_READING_STALE;
            no_mw |= r->mw == JOULE_MW_UNKNOWN;
            mw += r->mw;
            if (ns > missed_ns)
                missed_ns = ns;
        }
        step(1 + (int64_t)dice(&seed, 2000000000));
        gap_ns += missed_ns;
        if (sum_uj > most_uj)
            most_uj = sum_uj;
        ck_assert_uint_eq(total.node_uj, most_uj);
        ck_assert_int_eq(total.gap_ns, gap_ns);
        ck_assert_uint_eq(total.valid, any && !unknown);
        ck_assert_uint_eq(total.stale, any && !unknown && is_stale);
        ck_assert_uint_eq(total.mw, any && !unknown && !is_stale && !no_mw
                                        ? mw
                                        : JOULE_MW_UNKNOWN);
    }
}
END_TEST

START_TEST(shortest_wrap)
{
    add(JOULE_DOMAIN_PACKAGE, true)->unit.shift = 8;
    add(JOULE_DOMAIN_DRAM, true);
    add(JOULE_DOMAIN_PSYS, false)->width_bits = 64;
    ck_assert_int_eq(joule_domains_wrap_ns(domain, 3), INT64_C(65536000000));
    ck_assert_int_eq(joule_domains_wrap_ns(domain, 1), INT64_C(262144000000));
}
END_TEST

static uint64_t key(void)
{
    return joule_domains_key(domain, count);
}

START_TEST(key_tells_domains_apart)
{
    struct joule_domain plain;
    struct joule_domain *d = domain;
    uint64_t k;

    add(JOULE_DOMAIN_PACKAGE, true);
    add(JOULE_DOMAIN_DRAM, true);
    plain = *d;
    k = key();
    ck_assert_uint_ne(joule_domains_key(d, 1), k);
    ck_assert_uint_ne(joule_domains_key(d, 0), k);
    d->kind = JOULE_DOMAIN_PSYS;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->package = 1;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->die = 1;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->unit.num = 1;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->unit.shift = 8;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->width_bits = 64;
    ck_assert_uint_ne(key(), k);
    *d = plain;
    d->in_total = false;
    ck_assert_uint_ne(key(), k);
    /* The other order is another set: readings are stored by place. */
    *d = d[1];
    d[1] = plain;
    ck_assert_uint_ne(key(), k);
}
END_TEST

START_TEST(key_of_the_same)
{
    uint64_t k;

    add(JOULE_DOMAIN_PACKAGE, true);
    k = key();
    /* Read through another CPU of the package after a hot-unplug. */
    domain[0].cpu = 9;
    ck_assert_uint_eq(key(), k);
    snprintf(domain[0].name, sizeof(domain[0].name), "x");
    ck_assert_uint_eq(key(), k);
    domain[0].kind = JOULE_DOMAIN_CORE;
    k = key();
    domain[0].cpu = 8;
    ck_assert_uint_ne(key(), k);
}
END_TEST

/* Nothing but its label tells one power from another. */
START_TEST(key_of_power)
{
    struct joule_domain *d;
    uint64_t one;

    add(JOULE_DOMAIN_POWER, true);
    d = add(JOULE_DOMAIN_POWER, false);
    snprintf(d->name, sizeof(d->name), "Socket0");
    one = key();
    d->name[6] = '1';
    ck_assert_uint_ne(key(), one);
    d->name[6] = '0';
    ck_assert_uint_eq(key(), one);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node total");
    TCase *bad = tcase_create("not known");
    TCase *good = tcase_create("known");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, NULL);
    tcase_add_test(bad, no_domains);
    tcase_add_test(bad, started);
    tcase_add_test(bad, nothing_in_the_total);
    tcase_add_loop_test(bad, a_part_is_missing, 0, 2);
    tcase_add_test(bad, missing_is_more_than_stale);
    tcase_add_loop_test(bad, stale, 0, 2);
    tcase_add_test(bad, others_do_not_count);
    tcase_add_test(bad, never_falls);
    tcase_add_test(bad, gap);
    tcase_add_test(bad, gap_at_first);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, NULL);
    tcase_add_test(good, from);
    tcase_add_test(good, began);
    tcase_add_loop_test(good, sums, 0, 2);
    tcase_add_test(good, psys_carries);
    tcase_add_test(good, sensors);
    tcase_add_test(good, continued);
    tcase_add_loop_test(good, random_readings, 0, 8);
    tcase_add_test(good, shortest_wrap);
    tcase_add_test(good, key_tells_domains_apart);
    tcase_add_test(good, key_of_the_same);
    tcase_add_test(good, key_of_power);
    suite_add_tcase(suite, good);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
