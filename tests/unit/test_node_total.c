/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/energy/node_total.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"

#define S JOULE_NS_PER_S

static struct fake fake;
static struct fake_power bmc;
static struct joule_node_total total;

static void setup(void)
{
    fake_init(&fake);
    memset(&total, 0xFF, sizeof(total)); /* start must clear it */
}

static void start(uint64_t base_uj)
{
    joule_node_total_start(&total, fake.domain, fake.source.domain_count,
                           base_uj);
}

static void step(int64_t ns)
{
    struct joule_reading readings[FAKE_MAX];

    fake.now_ns += ns;
    joule_sensor_read(&fake.source, readings);
    joule_node_total_update(&total, fake.domain, readings, fake.now_ns);
}

START_TEST(no_domains)
{
    start(7);
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.node_uj, 7);
    ck_assert(!joule_node_total_stale(&total, fake.domain));
    ck_assert_int_eq(joule_domains_wrap_ns(fake.domain, 0), INT64_MAX);
}
END_TEST

/* Registers of a guest: 0, or any other constant, for ever. */
START_TEST(never_moves)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, _i ? 0xDEADBEEF : 0);
    start(0);
    for (int i = 0; i < 100; i++) {
        step(S);
        ck_assert_uint_eq(total.valid, 0);
        ck_assert_uint_eq(total.node_uj, 0);
    }
}
END_TEST

START_TEST(never_answers)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake.error[0] = 5;
    start(0);
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 1000;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
    ck_assert_uint_eq(total.counter[0].errors, 10);
}
END_TEST

START_TEST(one_package_missing)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    start(0);
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 1000;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
    fake.ticks[1]++;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
}
END_TEST

/* Desktop parts: DRAM reads 0 for ever. */
START_TEST(dram_zero_spoils_nothing)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start(0);
    step(S);
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 65536;
        step(S);
        ck_assert_uint_eq(total.valid, 1);
        ck_assert(!joule_node_total_stale(&total, fake.domain));
    }
    ck_assert_uint_eq(total.node_uj, 10000000);
}
END_TEST

START_TEST(dram_alone_makes_nothing)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start(0);
    for (int i = 0; i < 10; i++) {
        fake.ticks[1] += 65536;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
}
END_TEST

START_TEST(cores_do_not_count)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start(0);
    step(S);
    fake.ticks[1] += 65536;
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    fake.ticks[0] += 65536;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 1000000);
    ck_assert_uint_eq(total.counter[1].ticks, 65536);
}
END_TEST

/* EIO on every 7th reading: the total never falls, never jumps. */
START_TEST(every_seventh_fails)
{
    uint64_t before_uj;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, UINT32_MAX - 10);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 5);
    fake.fail_every = 7;
    start(0);
    step(S);
    before_uj = total.node_uj;
    for (int i = 0; i < 5000; i++) {
        fake.ticks[0] += 20000000; /* 305 W */
        fake.ticks[1] += 2000000;
        step(S);
        ck_assert_uint_ge(total.node_uj, before_uj);
        ck_assert_uint_le(total.node_uj - before_uj, 2 * 335693359 + 4);
        before_uj = total.node_uj;
    }
    ck_assert_uint_eq(total.node_uj,
                      fake_uj(fake.good[0]) + fake_uj(fake.good[1]));
    ck_assert_int_eq(total.gap_ns, 0);
    ck_assert_uint_gt(total.counter[0].wraps, 10);
}
END_TEST

START_TEST(set_back)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0x80000000);
    start(0);
    step(S);
    fake.ticks[0] += 65536;
    step(S);
    fake.start[0] = 0;
    step(S);
    ck_assert_uint_eq(total.node_uj, 1000000);
    ck_assert_int_eq(total.gap_ns, S);
    fake.ticks[0] += 65536;
    step(S);
    ck_assert_uint_eq(total.node_uj, 2000000);
    ck_assert_int_eq(total.gap_ns, S);
}
END_TEST

/* The widest of gaps that happen at once counts, those of domains outside
 * the total do not. */
START_TEST(gap)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start(0);
    step(S);
    for (int i = 0; i < 3; i++)
        fake.ticks[i]++;
    fake.error[1] = 5;
    step(60 * S);
    ck_assert_int_eq(total.gap_ns, 0);
    fake.error[1] = 0;
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(66 * S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
    ck_assert_uint_eq(total.counter[0].gaps, 1);
    ck_assert_uint_eq(total.counter[1].gaps, 1);
    fake.error[0] = fake.error[1] = 5;
    step(66 * S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
}
END_TEST

START_TEST(stale_when_frozen)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start(0);
    step(S);
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(S);
    fake.ticks[0]++;
    step(4 * S);
    ck_assert(!joule_node_total_stale(&total, fake.domain));
    step(4 * S);
    ck_assert(joule_node_total_stale(&total, fake.domain));
    ck_assert_uint_eq(total.valid, 1);
    fake.ticks[0]++;
    step(S);
    ck_assert(!joule_node_total_stale(&total, fake.domain));
}
END_TEST

START_TEST(stale_when_silent)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start(0);
    step(S);
    fake.ticks[0]++;
    step(S);
    fake.error[0] = 5;
    step(3 * S);
    ck_assert(!joule_node_total_stale(&total, fake.domain));
    step(1);
    ck_assert(joule_node_total_stale(&total, fake.domain));
    fake.error[0] = 0;
    fake.ticks[0]++;
    step(S);
    ck_assert(!joule_node_total_stale(&total, fake.domain));
}
END_TEST

/* A package is lost, or its memory: there is no total any more.  When it is
 * back, what it has used meanwhile is there. */
START_TEST(unknown_without_a_part)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, _i ? JOULE_DOMAIN_DRAM : JOULE_DOMAIN_PACKAGE, 1,
             UINT32_MAX);
    start(0);
    step(S);
    for (int i = 0; i < 2; i++)
        fake.ticks[i] += 65536;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    fake.error[1] = ENXIO;
    for (int i = 1; i <= 20; i++) {
        fake.ticks[0] += 65536;
        fake.ticks[1] += 65536;
        step(S);
        ck_assert_uint_eq(total.valid, i <= 3);
        ck_assert_int_eq(joule_node_total_silent(&total, fake.domain),
                         i <= 3 ? -1 : 1);
    }
    fake.error[1] = 0;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(joule_node_total_silent(&total, fake.domain), -1);
    ck_assert_uint_eq(total.node_uj, 42000000);
    ck_assert_int_eq(total.gap_ns, 0);
    /* Longer than a wrap takes: how much it was is not known. */
    fake.error[1] = ENXIO;
    step(S);
    step(70 * S);
    ck_assert_uint_eq(total.valid, 0);
    fake.error[1] = 0;
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(total.gap_ns, 72 * S);
}
END_TEST

/* What is no part of the total does not spoil it: cores, and the DRAM register
 * of a desktop. */
START_TEST(known_without_what_is_no_part)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start(0);
    step(S);
    fake.ticks[2] += 65536;
    step(S);
    fake.error[1] = fake.error[2] = EIO;
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 65536;
        step(S);
        ck_assert_uint_eq(total.valid, 1);
    }
    ck_assert_uint_eq(total.node_uj, 10000000);
}
END_TEST

/* The time until a part answers first is not in the total, and said to be. */
START_TEST(first_answer_is_late)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    fake.error[1] = EIO;
    start(0);
    for (int i = 0; i < 3; i++) {
        fake.ticks[0] += 65536;
        fake.ticks[1] += 65536;
        step(S);
        ck_assert_int_eq(joule_node_total_silent(&total, fake.domain), 1);
    }
    fake.error[1] = 0;
    step(S);
    ck_assert_int_eq(total.gap_ns, 3 * S);
    ck_assert_int_eq(joule_node_total_silent(&total, fake.domain), -1);
    fake.ticks[1] += 65536;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 3000000);
    ck_assert_int_eq(total.gap_ns, 3 * S);
}
END_TEST

START_TEST(base_is_kept)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start(5000000);
    step(S);
    ck_assert_uint_eq(total.node_uj, 5000000);
    fake.ticks[0] += 65536;
    step(S);
    ck_assert_uint_eq(total.node_uj, 6000000);
    ck_assert_uint_eq(total.base_uj, 5000000);
}
END_TEST

START_TEST(psys_carries)
{
    fake_add(&fake, JOULE_DOMAIN_PSYS, 0, 0)->in_total = true;
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0)->in_total = false;
    start(0);
    step(S);
    fake.ticks[0] += 65536;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 1000000);
}
END_TEST

START_TEST(shortest_wrap)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0)->unit.shift = 8;
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PSYS, 0, 0)->width_bits = 64;
    ck_assert_int_eq(joule_domains_wrap_ns(fake.domain, 3),
                     INT64_C(65536000000));
    ck_assert_int_eq(joule_domains_wrap_ns(fake.domain, 1),
                     INT64_C(262144000000));
}
END_TEST

static uint64_t key(void)
{
    return joule_domains_key(fake.domain, fake.source.domain_count);
}

START_TEST(key_tells_domains_apart)
{
    struct joule_domain plain;
    struct joule_domain *d = fake.domain;
    uint64_t k;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
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
    /* The other order is another set: ticks are stored by place. */
    *d = d[1];
    d[1] = plain;
    ck_assert_uint_ne(key(), k);
}
END_TEST

START_TEST(key_of_the_same)
{
    uint64_t k;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    k = key();
    /* Read through another CPU of the package after a hot-unplug. */
    fake.domain[0].cpu = 9;
    ck_assert_uint_eq(key(), k);
    snprintf(fake.domain[0].name, sizeof(fake.domain[0].name), "x");
    ck_assert_uint_eq(key(), k);
    fake.domain[0].kind = JOULE_DOMAIN_CORE;
    k = key();
    fake.domain[0].cpu = 8;
    ck_assert_uint_ne(key(), k);
}
END_TEST

/* The first reading takes 20 ms, the second none. */
static int64_t slow_once_ns(void *arg)
{
    struct fake *f = arg;

    if (f->reads == 1)
        f->now_ns += 20 * JOULE_NS_PER_MS;
    return f->now_ns;
}

static int64_t always_slow_ns(void *arg)
{
    ((struct fake *)arg)->now_ns += 20 * JOULE_NS_PER_MS;
    return ((struct fake *)arg)->now_ns;
}

START_TEST(late_clock_reads_again)
{
    struct joule_reading readings[FAKE_MAX];
    int64_t now_ns;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake.clock.mono_ns = slow_once_ns;
    now_ns = joule_sensor_read_all(&fake.source, &fake.clock, readings);
    ck_assert_int_eq(now_ns, fake.now_ns);
    ck_assert_uint_ge(fake.reads, 2);
    fake.reads = 10;
    joule_sensor_read_all(&fake.source, &fake.clock, readings);
    ck_assert_uint_eq(fake.reads, 11);
    fake.clock.mono_ns = always_slow_ns;
    fake.reads = 10;
    joule_sensor_read_all(&fake.source, &fake.clock, readings);
    ck_assert_uint_eq(fake.reads, 14);
}
END_TEST

static void setup_power(void)
{
    fake_power_init(&bmc);
    memset(&total, 0xFF, sizeof(total));
}

static void start_power(uint64_t base_uj)
{
    joule_node_total_start(&total, bmc.domain, bmc.source.domain_count,
                           base_uj);
}

static void integrate_edge(int64_t ns, int64_t edge_ns)
{
    struct joule_power power[FAKE_LABELS_MAX];

    bmc.now_ns += ns;
    ck_assert_int_eq(bmc.source.ops->read_power(&bmc.source, power, NULL), 0);
    joule_node_total_integrate(&total, bmc.domain, power, edge_ns, 3 * S);
}

static void integrate(int64_t ns)
{
    integrate_edge(ns, 0);
}

START_TEST(power_never_known)
{
    start_power(7);
    ck_assert_uint_eq(total.is_power, 1);
    for (int i = 1; i < JOULE_POWER_STATUS_COUNT; i++) {
        bmc.status[0] = i;
        integrate(S);
        ck_assert_uint_eq(total.valid, 0);
        ck_assert_uint_eq(total.node_uj, 7);
        ck_assert_int_eq(total.mono_ns, 0);
        ck_assert(joule_node_total_overdue(&total, bmc.now_ns, INT64_MAX));
    }
    ck_assert_uint_eq(total.integrator[0].errors, JOULE_POWER_STATUS_COUNT - 1);
}
END_TEST

/* What a source has let pass. */
START_TEST(power_makes_no_sense)
{
    const double watts[] = {NAN, INFINITY, -INFINITY,
                            -1,  -1e-9,    JOULE_POWER_MAX_W * 1.01};

    start_power(0);
    integrate(S);
    bmc.watts[0] = watts[_i];
    integrate(S);
    ck_assert_uint_eq(total.node_uj, 0);
    ck_assert_uint_eq(total.integrator[0].errors, 1);
    bmc.watts[0] = 100;
    integrate(S);
    ck_assert_uint_eq(total.node_uj, 200000000);
}
END_TEST

START_TEST(power_of_the_node_fails)
{
    int64_t measured_ns;

    fake_power_add(&bmc, "Socket0", 40);
    start_power(0);
    integrate(S);
    integrate(S);
    ck_assert_uint_eq(total.node_uj, 100000000);
    measured_ns = bmc.now_ns;
    bmc.status[0] = JOULE_POWER_UNAVAILABLE;
    for (int i = 0; i < 4; i++) {
        integrate(S);
        ck_assert_uint_eq(total.node_uj, 100000000);
        ck_assert_int_eq(total.mono_ns, measured_ns);
        ck_assert_uint_eq(total.valid, 1);
        ck_assert(joule_node_total_overdue(&total, bmc.now_ns, 3 * S) ==
                  (i == 3));
    }
    ck_assert_uint_eq(total.integrator[1].uj, 200000000);
    bmc.status[0] = JOULE_POWER_OK;
    integrate(S);
    ck_assert_uint_eq(total.node_uj, 600000000);
    ck_assert_int_eq(total.gap_ns, 5 * S);
    ck_assert(!joule_node_total_overdue(&total, bmc.now_ns, 3 * S));
}
END_TEST

START_TEST(power_of_a_label_fails)
{
    fake_power_add(&bmc, "Socket0", 40);
    bmc.status[1] = JOULE_POWER_REFUSED;
    start_power(0);
    for (int i = 0; i <= 10; i++)
        integrate(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 1000000000);
    ck_assert_uint_eq(total.integrator[1].errors, 11);
    bmc.status[1] = JOULE_POWER_OK;
    integrate(10 * S);
    /* Only the node's gaps are those of the total. */
    ck_assert_int_eq(total.gap_ns, 10 * S);
    ck_assert_uint_eq(total.integrator[1].uj, 0);
}
END_TEST

START_TEST(power_adds_up)
{
    fake_power_add(&bmc, "Socket0", 40);
    start_power(5000000);
    ck_assert_uint_eq(total.node_uj, 5000000);
    integrate(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 5000000);
    bmc.watts[0] = 300;
    integrate(S);
    ck_assert_uint_eq(total.node_uj, 205000000);
    ck_assert_uint_eq(total.integrator[1].uj, 40000000);
    ck_assert_int_eq(total.mono_ns, bmc.now_ns);
    bmc.watts[0] = 100;
    integrate_edge(S, bmc.now_ns + S / 4);
    ck_assert_uint_eq(total.node_uj, 205000000 + 150000000);
    ck_assert_int_eq(total.gap_ns, 0);
}
END_TEST

START_TEST(power_key)
{
    uint64_t one, two;

    fake_power_add(&bmc, "Socket0", 40);
    one = joule_domains_key(bmc.domain, 2);
    bmc.domain[1].name[6] = '1';
    two = joule_domains_key(bmc.domain, 2);
    ck_assert_uint_ne(one, two);
    bmc.domain[1].name[6] = '0';
    ck_assert_uint_eq(joule_domains_key(bmc.domain, 2), one);
}
END_TEST

/* Whose power it is, and since when all of it is known. */
START_TEST(power_sensors)
{
    struct joule_power power[2] = {
        {.watts = 100, .mono_ns = 7 * S, .sensor_key = 3},
        {.watts = 40, .mono_ns = 7 * S, .sensor_key = 4}};
    uint64_t one;

    fake_power_add(&bmc, "Socket0", 40);
    start_power(0);
    ck_assert_uint_eq(joule_node_total_sensor_key(&total, bmc.domain), 0);
    joule_node_total_integrate(&total, bmc.domain, power, 0, 3 * S);
    one = joule_node_total_sensor_key(&total, bmc.domain);
    ck_assert_uint_ne(one, 0);
    ck_assert_int_eq(total.from_ns, 7 * S);
    /* A label that is not the node's. */
    power[0].mono_ns = power[1].mono_ns = 8 * S;
    power[1].sensor_key = 5;
    power[1].watts = 90;
    joule_node_total_integrate(&total, bmc.domain, power, 0, 3 * S);
    ck_assert_uint_eq(joule_node_total_sensor_key(&total, bmc.domain), one);
    ck_assert_uint_eq(total.integrator[1].uj, 40000000);
    power[0].mono_ns = 9 * S;
    power[0].sensor_key = 5;
    power[0].watts = 200;
    joule_node_total_integrate(&total, bmc.domain, power, 0, 3 * S);
    ck_assert_uint_ne(joule_node_total_sensor_key(&total, bmc.domain), one);
    ck_assert_uint_eq(total.node_uj, 200000000);
    ck_assert_int_eq(total.from_ns, 7 * S);
}
END_TEST

START_TEST(power_gap)
{
    ck_assert_int_eq(joule_power_gap_ns(10 * JOULE_NS_PER_MS), 3 * S);
    ck_assert_int_eq(joule_power_gap_ns(S), 3 * S);
    ck_assert_int_eq(joule_power_gap_ns(60 * S), 180 * S);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node total");
    TCase *bad = tcase_create("bad counters");
    TCase *good = tcase_create("counters");
    TCase *power = tcase_create("power");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, NULL);
    tcase_add_test(bad, no_domains);
    tcase_add_loop_test(bad, never_moves, 0, 2);
    tcase_add_test(bad, never_answers);
    tcase_add_test(bad, one_package_missing);
    tcase_add_test(bad, dram_zero_spoils_nothing);
    tcase_add_test(bad, dram_alone_makes_nothing);
    tcase_add_test(bad, cores_do_not_count);
    tcase_add_test(bad, every_seventh_fails);
    tcase_add_test(bad, set_back);
    tcase_add_test(bad, gap);
    tcase_add_test(bad, stale_when_frozen);
    tcase_add_test(bad, stale_when_silent);
    tcase_add_loop_test(bad, unknown_without_a_part, 0, 2);
    tcase_add_test(bad, known_without_what_is_no_part);
    tcase_add_test(bad, first_answer_is_late);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, NULL);
    tcase_add_test(good, base_is_kept);
    tcase_add_test(good, psys_carries);
    tcase_add_test(good, shortest_wrap);
    tcase_add_test(good, key_tells_domains_apart);
    tcase_add_test(good, key_of_the_same);
    tcase_add_test(good, late_clock_reads_again);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(power, setup_power, NULL);
    tcase_add_test(power, power_never_known);
    tcase_add_loop_test(power, power_makes_no_sense, 0, 6);
    tcase_add_test(power, power_of_the_node_fails);
    tcase_add_test(power, power_of_a_label_fails);
    tcase_add_test(power, power_adds_up);
    tcase_add_test(power, power_key);
    tcase_add_test(power, power_sensors);
    tcase_add_test(power, power_gap);
    suite_add_tcase(suite, power);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
