/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurmd's part is played by a second sensor of the same hardware and a ledger in
 * the test: what slurmd does is then known to the reading.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/sensors/fused_sensor.h"
#include "common/step/energy_columns.h"
#include "common/step/node_energy.h"
#include "tests/unit/dice.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/tree.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

#define J UINT64_C(1000000)

#define TICKS_PER_J 65536
#define WRAP_J      65536

#define GAP_NS (3 * S)

enum kind { COUNTERS, METER, FUSED, KINDS };

static struct tree tree;
static enum kind kind;
static struct fake fake;    /* the counters, read by the step; its clock is all
                               there is */
static struct fake sampled; /* the same, read by slurmd */
static struct fake_power bmc;
static struct fake_power labels; /* of the step, which must not ask it */
static bool no_carry;
static struct joule_sensor *measuring, *following;
static struct joule_ledger *writer, *reader;
static struct joule_snapshot snapshot;
static struct joule_sensor_state state;
static struct joule_node_energy *node_energy;
static struct joule_node_energy_reading got;

static void setup_kind(enum kind of)
{
    kind = of;
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    fake_init(&fake);
    fake_init(&sampled);
    fake_power_init(&bmc);
    fake_power_add(&bmc, "Socket0", 40);
    fake_power_init(&labels);
    fake_power_add(&labels, "Socket0", 40);
    no_carry = false;
    measuring = following = NULL;
    writer = reader = NULL;
    node_energy = NULL;
    memset(&got, 0, sizeof(got));
}

static void setup(void)
{
    setup_kind(COUNTERS);
}

static void setup_meter(void)
{
    setup_kind(METER);
}

static void setup_fused(void)
{
    setup_kind(FUSED);
}

static void teardown(void)
{
    ck_assert_uint_eq(labels.reads, 0);
    joule_node_energy_destroy(node_energy);
    joule_sensor_destroy(following);
    joule_ledger_destroy(reader);
    joule_sensor_destroy(measuring);
    joule_ledger_destroy(writer);
    tree_destroy(&tree);
}

static struct joule_sensor *
make_sensor(struct fake *counters, struct fake_power *meter, int64_t period_ns)
{
    const struct joule_meter_sensor_options alone = {
        .clock = &fake.clock,
        .meter = &meter->meter,
        .period_ns = period_ns,
        .gap_ns = GAP_NS,
        .no_carry = no_carry,
    };
    const struct joule_fused_sensor_options both = {
        .clock = &fake.clock,
        .counters = &counters->counters,
        .meter = &meter->meter,
        .period_ns = period_ns,
        .gap_ns = GAP_NS,
    };

    if (kind == COUNTERS)
        return joule_counter_sensor_create(&fake.clock, &counters->counters);
    if (kind == METER)
        return joule_meter_sensor_create(&alone);
    return joule_fused_sensor_create(&both, NULL);
}

/* One more counter, for both. */
static void add(enum joule_domain_kind domain, uint64_t start)
{
    unsigned package = (unsigned)fake.counters.domain_count;

    fake_add(&fake, domain, package, start);
    fake_add(&sampled, domain, package, start);
}

/* Time goes on by [ns], in which counter 0 counts [j] joules. */
static void pass(int64_t ns, uint64_t j)
{
    fake.now_ns += ns;
    sampled.now_ns = bmc.now_ns = fake.now_ns;
    fake.ticks[0] += j * TICKS_PER_J;
    sampled.ticks[0] = fake.ticks[0];
}

/* ---- slurmd ---- */

static void publish(void)
{
    joule_ledger_stage_node(writer, &snapshot, &state);
    joule_ledger_publish(writer, NULL);
}

/* What slurmd has when it has read. */
static void sample(bool is_edge)
{
    static struct joule_reading readings[JOULE_DOMAINS_MAX];
    int64_t now_ns =
        joule_sensor_read(measuring, is_edge ? fake.now_ns : 0, readings);

    joule_node_total_update(&snapshot.total, measuring->domains, readings,
                            now_ns);
    snapshot.samples++;
    state = measuring->state;
    publish();
}

/* The same, with a measurement of now. */
static void measure(void)
{
    fake_power_settle(&bmc);
    sample(false);
}

/* The same without one: the meter says nothing. */
static void sample_edge(void)
{
    int before = bmc.error;

    if (kind != COUNTERS) {
        bmc.error = EBUSY;
        fake_power_settle(&bmc);
    }
    sample(true);
    bmc.error = before;
}

static bool goes_on(void)
{
    return joule_ledger_read_node(writer, &snapshot, &state) == 0 &&
           snapshot.total.domain_key ==
               joule_domains_key(measuring->domains, measuring->domain_count) &&
           joule_sensor_resume(measuring, &state);
}

/* With a first sample, before which no meter was asked. */
static void slurmd_start(void)
{
    struct joule_error err;
    uint64_t base_uj = 0;

    writer = joule_ledger_create(tree.fd, "n1", 1, &err);
    ck_assert_msg(writer != NULL, "%s", err.text);
    bmc.is_interrupted = false;
    measuring = make_sensor(&sampled, &bmc, MS / 10);
    ck_assert_ptr_nonnull(measuring);
    if (!goes_on()) {
        if (joule_ledger_read_node(writer, &snapshot, NULL) == 0)
            base_uj = snapshot.total.node_uj;
        memset(&snapshot, 0, sizeof(snapshot));
        joule_node_total_start(&snapshot.total, measuring->domains,
                               measuring->domain_count, base_uj);
    }
    snapshot.period_ns = S;
    sample(false);
}

static void slurmd_crash(void)
{
    joule_sensor_destroy(measuring);
    joule_ledger_destroy(writer);
    measuring = NULL;
    writer = NULL;
}

static void slurmd_restart(void)
{
    slurmd_crash();
    slurmd_start();
}

/* Its total is known. */
static void slurmd_knows(void)
{
    slurmd_start();
    if (kind != METER)
        pass(S, 100);
    if (kind == COUNTERS)
        sample(false);
    else
        measure();
    ck_assert_uint_eq(snapshot.total.valid, 1);
}

/* ---- the step ---- */

static void create(void)
{
    if (!following)
        following = make_sensor(&fake, &labels, 0);
    reader = joule_ledger_open(tree.fd, "n1", NULL);
    node_energy = joule_node_energy_create(&fake.clock, following, reader);
    ck_assert_ptr_nonnull(node_energy);
}

static void follow_start(void)
{
    create();
    joule_node_energy_begin(node_energy);
}

static void must_update(void)
{
    ck_assert_msg(joule_node_energy_update(node_energy, &got) == 0, "%s",
                  strerror(errno));
    ck_assert_int_eq(got.mono_ns, fake.now_ns);
    ck_assert_int_ge(got.gap_ns, 0);
    ck_assert_int_le(got.gap_ns, got.elapsed_ns);
}

static void must_use(uint64_t uj)
{
    must_update();
    ck_assert_uint_eq(got.used_uj, uj);
}

static void must_be_unknown(void)
{
    errno = 0;
    ck_assert_int_eq(joule_node_energy_update(node_energy, &got), -1);
    ck_assert_int_eq(errno, ENODATA);
}

/* ---- nothing is known ---- */

START_TEST(not_begun)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    create();
    ck_assert_int_eq(joule_node_energy_update(node_energy, &got), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(no_memory)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    following = make_sensor(&fake, &labels, 0);
    fail_calloc = 1;
    errno = 0;
    ck_assert_ptr_null(joule_node_energy_create(&fake.clock, following, NULL));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(destroy_null)
{
    joule_node_energy_destroy(NULL);
}
END_TEST

/* The ledger is there before its first sample. */
START_TEST(nothing_is_published)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    writer = joule_ledger_create(tree.fd, "n1", 1, NULL);
    ck_assert_ptr_nonnull(writer);
    follow_start();
    ck_assert_ptr_nonnull(reader);
    pass(S, 100);
    must_be_unknown();
    joule_ledger_destroy(writer);
    slurmd_knows();
    pass(S, 7);
    must_use(0);
    ck_assert_int_eq(got.gap_ns, 3 * S);
    pass(S, 7);
    must_use(7 * J);
    ck_assert_int_eq(got.gap_ns, 3 * S);
}
END_TEST

/* The constant counters of a guest. */
START_TEST(guest)
{
    add(JOULE_DOMAIN_PACKAGE, 12345);
    slurmd_start();
    follow_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 0);
        sample(false);
        must_be_unknown();
    }
}
END_TEST

START_TEST(no_counter_answers)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake.error[0] = sampled.error[0] = EIO;
    slurmd_start();
    follow_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 100);
        sample(false);
        must_be_unknown();
    }
}
END_TEST

START_TEST(no_meter_answers)
{
    slurmd_start();
    follow_start();
    for (int i = 0; i < 10; i++) {
        if (i % 2)
            bmc.error = ETIMEDOUT;
        else
            bmc.status[0] = JOULE_POWER_UNAVAILABLE;
        pass(S, 0);
        measure();
        must_be_unknown();
    }
}
END_TEST

/* The first measurement of the boot comes 30 s into the step: it counts from
 * there. */
START_TEST(measured_later)
{
    slurmd_start();
    follow_start();
    pass(30 * S, 0);
    must_be_unknown();
    measure();
    must_use(0);
    for (int i = 1; i <= 60; i++) {
        pass(S, 0);
        measure();
        must_use((uint64_t)i * 100 * J);
    }
    ck_assert_uint_eq(got.domain_uj[1], 2400 * J);
    ck_assert_int_eq(got.gap_ns, 30 * S);
    ck_assert_int_eq(got.elapsed_ns, 90 * S);
}
END_TEST

/* slurmd was there before, but has measured nothing since it has other labels:
 * the total before is not the step's. */
START_TEST(measured_later_on_a_base)
{
    slurmd_knows();
    for (int i = 0; i < 60; i++) {
        pass(S, 0);
        measure();
    }
    snprintf(bmc.domain[1].name, sizeof(bmc.domain[1].name), "GPU");
    snprintf(labels.domain[1].name, sizeof(labels.domain[1].name), "GPU");
    slurmd_restart();
    ck_assert_uint_eq(snapshot.total.base_uj, 6000 * J);
    follow_start();
    pass(30 * S, 0);
    must_be_unknown();
    measure();
    /* It was not looked at before the next one. */
    pass(S, 0);
    measure();
    must_use(0);
    ck_assert_int_eq(got.gap_ns, 31 * S);
    for (int i = 1; i <= 10; i++) {
        pass(S / 10, 0);
        must_use((uint64_t)i * 10 * J);
    }
    ck_assert_uint_eq(got.domain_uj[1], 40 * J);
}
END_TEST

/* A package goes, and with it what the step has used; it comes back, and with
 * it what was used meanwhile. */
START_TEST(a_package_goes_and_comes)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_start();
    pass(S, 10);
    fake.ticks[1] = sampled.ticks[1] = TICKS_PER_J;
    sample(false);
    follow_start();
    fake.error[1] = sampled.error[1] = ENXIO;
    for (int i = 1; i <= 20; i++) {
        pass(S, 10);
        fake.ticks[1] += 10 * TICKS_PER_J;
        sampled.ticks[1] = fake.ticks[1];
        sample(false);
        if (i > 3)
            must_be_unknown();
        else
            must_use((uint64_t)i * 10 * J);
    }
    fake.error[1] = sampled.error[1] = 0;
    must_use(400 * J);
    sample(false);
    must_use(400 * J);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* slurmd's readings are good, the step's are not: its samples are left. */
START_TEST(own_counter_does_not_answer)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    fake.error[0] = EIO;
    follow_start();
    for (int i = 1; i <= 10; i++) {
        pass(S, 100);
        sample(false);
        must_use((uint64_t)i * 100 * J);
    }
    fake.error[0] = 0;
    pass(S / 2, 50);
    must_use(1050 * J);
}
END_TEST

/* ---- what is published makes no sense ---- */

enum {
    OTHER_KEY,
    OTHER_COUNTERS,
    OTHER_INTEGRATORS,
    OTHER_KIND,
    TOO_FEW,
    IN_THE_FUTURE,
    BAD_NUMBER,
    HOSTILE
};

static void spoil(int how)
{
    switch (how) {
    case OTHER_KEY:
        state.domain_key ^= 1;
        break;
    case OTHER_COUNTERS:
        state.counters++;
        break;
    case OTHER_INTEGRATORS:
        state.integrators++;
        break;
    case OTHER_KIND:
        state.is_fused = !state.is_fused;
        break;
    case TOO_FEW:
        snapshot.total.count--;
        break;
    case IN_THE_FUTURE:
        state.counter[0].read_ns = fake.now_ns + S;
        state.integrator[0].read_ns = fake.now_ns + S;
        break;
    default:
        state.counter[0].state = 77;
        state.integrator[0].power_w = NAN;
    }
}

/* The node's total is left, and what comes later is counted on again. */
START_TEST(hostile_state)
{
    uint64_t domain_uj, count;

    kind = (enum kind)(_i / HOSTILE);
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(S / 2, 50);
    must_update();
    ck_assert(got.domain_known[0]);
    domain_uj = got.domain_uj[0];
    pass(S / 2, 50);
    if (kind == COUNTERS)
        sample(false);
    else
        measure();
    count = snapshot.total.count;
    spoil(_i % HOSTILE);
    publish();
    must_update();
    joule_node_energy_end(node_energy);
    must_use(100 * J);
    ck_assert(!got.is_stale);
    for (size_t i = 0; i < following->domain_count; i++)
        ck_assert(!got.domain_known[i]);
    ck_assert_uint_eq(got.domain_uj[0], domain_uj);
    pass(S, 100);
    snapshot.total.count = count;
    if (kind == COUNTERS)
        sample(false);
    else
        measure();
    pass(S / 4, 25);
    must_use(225 * J);
    ck_assert(got.domain_known[0]);
    ck_assert_uint_eq(got.domain_uj[0], 225 * J);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* A correction would take for ever, or no time. */
START_TEST(no_period)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    for (int i = 1; i <= 10; i++) {
        snapshot.period_ns = -(i % 2);
        fake.error[0] = i % 3 ? EIO : 0;
        pass(S, 100);
        sample(false);
        must_use((uint64_t)i * 100 * J);
    }
}
END_TEST

START_TEST(total_falls)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(S, 100);
    sample(false);
    must_use(100 * J);
    snapshot.total.node_uj = 0;
    publish();
    for (int i = 0; i < 10; i++) {
        must_update();
        ck_assert_uint_ge(got.used_uj, 100 * J);
        ck_assert_uint_lt(got.used_uj, 200 * J);
        pass(S / 10, 5);
    }
}
END_TEST

/* ---- counters ---- */

/* A step that begins between two steps of the counter: 0 J is measured. */
START_TEST(begins_between_two_steps)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    must_use(0);
    ck_assert(got.domain_known[0]);
    ck_assert(!got.is_stale);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* Between samples, to the tick. */
START_TEST(exact_edges)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 100 * TICKS_PER_J - 1000);
    slurmd_knows();
    pass(300 * MS, 30);
    follow_start();
    pass(1234567, 0);
    fake.ticks[0] += 777;
    must_use(fake_uj(777));
    ck_assert_int_eq(got.elapsed_ns, 1234567);
    ck_assert_uint_eq(got.domain_uj[0], fake_uj(777));
    fake.ticks[0] += 1000;
    must_use(fake_uj(1777));
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* The counter wraps [_i] tenths of a second into the step, whose samples and
 * readings come at other times. */
START_TEST(wraps)
{
    add(JOULE_DOMAIN_PACKAGE,
        (uint64_t)UINT32_MAX - (uint64_t)(100 + 20 * _i) * TICKS_PER_J + 1);
    slurmd_knows();
    follow_start();
    for (int i = 1; i <= 12; i++) {
        pass(50 * MS, 10);
        if (i % 3 == 2)
            sample(false);
        pass(50 * MS, 10);
        must_use((uint64_t)i * 20 * J);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        ck_assert_int_eq(got.elapsed_ns, i * 100 * MS);
    }
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

START_TEST(begin_again)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(S, 100);
    must_use(100 * J);
    joule_node_energy_begin(node_energy);
    pass(S, 7);
    sample(false);
    must_use(7 * J);
    ck_assert_uint_eq(got.domain_uj[0], 7 * J);
    ck_assert_int_eq(got.elapsed_ns, S);
}
END_TEST

/* Own readings 400 s apart at 900 W: six wraps between them, which slurmd has
 * seen. */
START_TEST(seldom_looked_at)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 5);
    slurmd_knows();
    follow_start();
    for (int j = 1; j <= 5; j++) {
        for (int i = 0; i < 400; i++) {
            pass(S, 900);
            sample(false);
        }
        pass(S / 2, 450);
        must_update();
        joule_node_energy_end(node_energy);
        must_use((uint64_t)j * 360450 * J);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        ck_assert_int_eq(got.gap_ns, 0);
    }
}
END_TEST

START_TEST(set_back)
{
    add(JOULE_DOMAIN_PACKAGE, 0x80000000);
    slurmd_knows();
    follow_start();
    pass(S, 100);
    sample(false);
    must_use(100 * J);
    fake.start[0] = sampled.start[0] = 0;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            pass(S, 100);
        else
            sample(false);
        must_use(100 * J);
        ck_assert_int_eq(got.gap_ns, S);
    }
    for (int i = 2; i < 50; i++) {
        pass(S, 100);
        if (i % 2)
            sample(false);
        must_use((uint64_t)i * 100 * J);
        ck_assert_int_eq(got.gap_ns, S);
    }
}
END_TEST

/* A counter that has moved and stands: what was used is known, power is not. */
START_TEST(frozen)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    for (int i = 1; i <= 10; i++) {
        pass(S, 0);
        sample(false);
        must_use(0);
        ck_assert(got.is_stale == (i > 3));
        ck_assert(got.domain_known[0] == (i <= 3));
    }
    pass(S, 100);
    must_use(100 * J);
    ck_assert(!got.is_stale);
}
END_TEST

START_TEST(every_seventh_fails)
{
    uint64_t before_uj = 0;

    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX);
    slurmd_knows();
    follow_start();
    fake.fail_every = 7;
    for (int i = 0; i < 3000; i++) {
        pass(S / 4, 350);
        if (i % 4 == 0)
            sample(false);
        must_update();
        ck_assert_uint_ge(got.used_uj, before_uj);
        ck_assert_uint_le(got.used_uj, fake_uj(fake.ticks[0]) - 100 * J);
        before_uj = got.used_uj;
    }
    fake.fail_every = 0;
    joule_node_energy_end(node_energy);
    must_use(fake_uj(fake.ticks[0]) - 100 * J);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

START_TEST(two_packages_and_dram)
{
    static const uint64_t j[] = {1, 2, 3, 4};

    add(JOULE_DOMAIN_PACKAGE, 5);
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX);
    add(JOULE_DOMAIN_DRAM, 0);
    add(JOULE_DOMAIN_PP0, 0);
    slurmd_start();
    for (int d = 1; d < 4; d++)
        fake.ticks[d] = sampled.ticks[d] = 50 * TICKS_PER_J;
    pass(S, 50);
    sample(false);
    follow_start();
    for (int d = 1; d < 4; d++)
        fake.ticks[d] += j[d] * TICKS_PER_J;
    pass(S, 1);
    must_use(6 * J);
    for (int d = 0; d < 4; d++) {
        ck_assert(got.domain_known[d]);
        ck_assert_uint_eq(got.domain_uj[d], j[d] * J);
    }
}
END_TEST

/* Of one domain nothing is known: the others are. */
START_TEST(a_domain_is_unknown)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    add(JOULE_DOMAIN_PP0, 0);
    fake.error[1] = sampled.error[1] = EIO;
    slurmd_knows();
    follow_start();
    pass(S, 100);
    must_use(100 * J);
    ck_assert(got.domain_known[0]);
    ck_assert(!got.domain_known[1]);
    ck_assert_uint_eq(got.domain_uj[1], 0);
}
END_TEST

/* ---- slurmd goes and comes, with counters ---- */

/* Own readings count alone, for 300 s. */
START_TEST(slurmd_away)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX);
    slurmd_knows();
    follow_start();
    pass(S, 100);
    sample(false);
    slurmd_crash();
    for (int i = 1; i <= 10; i++) {
        pass(30 * S, 9000);
        must_use((100 + (uint64_t)i * 9000) * J);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        ck_assert(got.domain_known[0] && !got.is_stale);
        ck_assert_int_eq(got.gap_ns, 0);
    }
    for (int i = 1; i <= 10; i++) {
        pass(10 * S, 1000);
        must_use((100 + 90000) * J);
        ck_assert(!got.domain_known[0] && got.is_stale);
        ck_assert_int_eq(got.gap_ns, i * 10 * S);
    }
}
END_TEST

/* Nobody has looked at the counter for longer than it takes to wrap. */
START_TEST(slurmd_away_over_a_wrap)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(66 * S, 900 * 66);
    must_use(900 * 66 * J);
    ck_assert_int_eq(got.gap_ns, 66 * S);
    pass(100 * S, 100000);
    must_use((900 * 66 + 100000 - WRAP_J) * J);
    ck_assert_int_eq(got.gap_ns, 166 * S);
}
END_TEST

/* What the step has counted meanwhile is not added once more. */
START_TEST(slurmd_back)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(10 * S, 1000);
    must_use(1000 * J);
    slurmd_crash();
    for (int i = 2; i <= 5; i++) {
        pass(10 * S, 1000);
        must_use((uint64_t)i * 1000 * J);
    }
    pass(10 * S, 1000);
    slurmd_start();
    must_use(6000 * J);
    pass(40 * S, 4000);
    sample(false);
    must_use(10000 * J);
    ck_assert_int_eq(got.gap_ns, 0);
    for (int i = 0; i < 200; i++) {
        pass(S, 1000);
        sample(false);
    }
    must_use(210000 * J);
    ck_assert_uint_eq(got.domain_uj[0], 210000 * J);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* slurmd was away for longer than a wrap, which the step has seen: slurmd says
 * that it knows less, and the step goes on from what it knows. */
START_TEST(slurmd_back_over_a_wrap)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_start();
    fake.ticks[1] = sampled.ticks[1] = TICKS_PER_J;
    pass(S, 1);
    sample(false);
    follow_start();
    slurmd_crash();
    for (int i = 1; i <= 10; i++) {
        fake.ticks[1] += 1000 * TICKS_PER_J;
        sampled.ticks[1] = fake.ticks[1];
        pass(10 * S, 10000);
        must_use((uint64_t)i * 11000 * J);
    }
    slurmd_start();
    ck_assert_uint_eq(snapshot.total.node_uj, (2 + 110000 - WRAP_J) * J);
    must_use(110000 * J);
    for (int i = 1; i <= 10; i++) {
        pass(S / 10, 10);
        if (i % 4 == 0)
            sample(false);
        must_use((110000 + (uint64_t)i * 10) * J);
        ck_assert_uint_eq(got.domain_uj[0], (100000 + (uint64_t)i * 10) * J);
        ck_assert_uint_eq(got.domain_uj[1], 10000 * J);
    }
    ck_assert_int_eq(got.gap_ns, 100 * S);
}
END_TEST

/* After more than 300 s: what nobody has told meanwhile comes at once. */
START_TEST(slurmd_back_late)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake.domain[0].width_bits = sampled.domain[0].width_bits = 64;
    slurmd_knows();
    follow_start();
    slurmd_crash();
    for (int i = 1; i <= 400; i++) {
        pass(S, 100);
        must_use((uint64_t)(i < 300 ? i : 300) * 100 * J);
    }
    ck_assert(got.is_stale);
    ck_assert_int_eq(got.gap_ns, 100 * S);
    slurmd_start();
    must_use(40000 * J);
    ck_assert_uint_eq(got.domain_uj[0], 40000 * J);
    ck_assert(!got.is_stale);
    ck_assert_int_eq(got.gap_ns, 0);
    pass(S / 10, 10);
    must_use(40010 * J);
}
END_TEST

/* What was used before the step is not the step's, whoever learns of it when. */
START_TEST(begun_while_slurmd_is_away)
{
    int64_t away_ns = (_i ? 400 : 50) * S;

    add(JOULE_DOMAIN_PACKAGE, 0);
    fake.domain[0].width_bits = sampled.domain[0].width_bits = 64;
    slurmd_knows();
    slurmd_crash();
    pass(away_ns, 40000);
    follow_start();
    pass(S, 100);
    if (_i)
        must_be_unknown();
    else
        must_use(100 * J);
    slurmd_start();
    must_use(_i ? 0 : 100 * J);
    pass(S, 100);
    must_use(_i ? 100 * J : 200 * J);
    ck_assert_int_eq(got.gap_ns, _i ? S : 0);
}
END_TEST

/* slurmd was away for longer than a wrap, and nobody else has looked. */
START_TEST(gap_of_the_total)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(S, 900);
    must_update();
    sample(false);
    slurmd_crash();
    pass(100 * S, 90000);
    slurmd_start();
    must_use((90900 - WRAP_J) * J);
    ck_assert_int_eq(got.gap_ns, 100 * S);
}
END_TEST

/* slurmd has another configuration: its total counts, evenly over the period
 * behind each sample, and nothing is known of domains. */
START_TEST(other_domains)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake_add(&sampled, JOULE_DOMAIN_DRAM, 0, 0);
    slurmd_knows();
    follow_start();
    for (int i = 0; i <= 40; i++) {
        if (i % 10 == 0)
            sample(false);
        must_update();
        if (i >= 10)
            ck_assert_uint_eq((got.used_uj + 1) / J, (uint64_t)(i - 9) * 10);
        ck_assert(!got.is_stale && !got.domain_known[0]);
        ck_assert_uint_eq(got.domain_uj[0], 0);
        pass(S / 10, 10);
    }
    joule_node_energy_end(node_energy);
    must_use(400 * J);
    ck_assert_int_eq(got.gap_ns, 0);
    /* And goes. */
    pass(29 * S / 10, 0);
    must_use(400 * J);
    ck_assert(!got.is_stale);
    pass(1, 0);
    must_use(400 * J);
    ck_assert(got.is_stale);
    ck_assert_int_eq(got.gap_ns, 3 * S + 1);
}
END_TEST

/* slurmd comes back with other domains, then with ours, whose counts have begun
 * anew: the node goes on, the domain counts what was seen of it. */
START_TEST(restarted_total)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    follow_start();
    pass(S, 100);
    sample(false);
    must_use(100 * J);
    fake_add(&sampled, JOULE_DOMAIN_DRAM, 0, 0);
    for (int i = 0; i < 2; i++) {
        uint64_t before_uj = got.used_uj;

        sampled.counters.domain_count = 2 - (size_t)i;
        slurmd_restart();
        ck_assert_uint_eq(snapshot.total.base_uj, before_uj + 100 * J);
        /* The first sample of a count is not valid, nor is this one then. */
        must_be_unknown();
        pass(S, 100);
        sample(false);
        must_use(before_uj + 100 * J);
        ck_assert(got.domain_known[0] == (i == 1));
        ck_assert_uint_eq(got.domain_uj[0], (100 + (uint64_t)i * 100) * J);
    }
    pass(S, 100);
    must_use(400 * J);
    ck_assert_uint_eq(got.domain_uj[0], 300 * J);
    sample(false);
    must_use(400 * J);
    ck_assert_uint_eq(got.domain_uj[0], 300 * J);
}
END_TEST

/* ---- a meter ---- */

START_TEST(power_carried_on)
{
    slurmd_knows();
    pass(S, 0);
    measure();
    pass(S / 2, 0);
    follow_start();
    must_use(0);
    pass(S / 4, 0);
    must_use(25 * J);
    ck_assert_uint_eq(got.domain_uj[0], 25 * J);
    ck_assert_uint_eq(got.domain_uj[1], 10 * J);
    ck_assert(got.domain_known[0] && got.domain_known[1]);
    ck_assert_int_eq(got.elapsed_ns, S / 4);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

START_TEST(power_not_carried_on)
{
    no_carry = true;
    slurmd_knows();
    pass(S / 2, 0);
    follow_start();
    pass(S / 4, 0);
    must_use(0);
    pass(S / 4, 0);
    measure();
    must_update();
    joule_node_energy_end(node_energy);
    must_use(100 * J);
    pass(S / 2, 0);
    must_use(100 * J);
}
END_TEST

/*
 * 100 W idle, 500 W from the begin of the step to its end, of which slurmd is
 * told, but neither is at a measurement: the step is charged all of its load
 * and nothing else, and so is the node.
 */
START_TEST(power_exact_edges)
{
    slurmd_knows();
    pass(300 * MS, 0);
    sample_edge();
    bmc.watts[0] = 500;
    follow_start();
    pass(700 * MS, 0);
    for (int i = 0; i < 10; i++) {
        measure();
        pass(S, 0);
    }
    measure();
    pass(200 * MS, 0);
    sample_edge();
    joule_node_energy_end(node_energy);
    must_use(500 * J * 109 / 10);
    bmc.watts[0] = 100;
    pass(800 * MS, 0);
    measure();
    ck_assert_uint_eq(snapshot.total.node_uj, (30 + 500 * 109 / 10 + 80) * J);
}
END_TEST

/* What the next sample says otherwise is worked off over a period; none of it
 * is lost if the step ends before. */
START_TEST(power_corrected)
{
    slurmd_knows();
    follow_start();
    bmc.watts[0] = 300;
    pass(S, 0);
    must_use(100 * J);
    measure();
    for (int i = 0; i <= 10; i++) {
        must_update();
        ck_assert_uint_le(got.used_uj, (100 + (uint64_t)i * 40) * J);
        ck_assert_uint_ge(got.used_uj + 2, (100 + (uint64_t)i * 40) * J);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        ck_assert_uint_eq(got.domain_uj[1], (40 + (uint64_t)i * 4) * J);
        if (i == _i)
            joule_node_energy_end(node_energy);
        if (i == _i)
            break;
        pass(S / 10, 0);
    }
    must_use((200 + (uint64_t)_i * 30) * J);
    ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
    pass(S / 10, 0);
    must_use((230 + (uint64_t)_i * 30) * J);
}
END_TEST

/* Too much was carried on: what was said stays until it is true. */
START_TEST(power_never_falls)
{
    bmc.watts[0] = 500;
    slurmd_knows();
    sample_edge();
    follow_start();
    pass(S, 0);
    must_use(500 * J);
    bmc.watts[0] = 100;
    measure();
    for (int i = 1; i <= 10; i++) {
        must_use((i < 5 ? 500 : (uint64_t)i * 100) * J);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        pass(S, 0);
        measure();
    }
}
END_TEST

/* slurmd is there, but its meter is silent. */
START_TEST(power_goes_stale)
{
    slurmd_knows();
    follow_start();
    bmc.error = ETIMEDOUT;
    pass(3 * S, 0);
    measure();
    must_use(300 * J);
    ck_assert(!got.is_stale && got.domain_known[0] && got.domain_known[1]);
    ck_assert_int_eq(got.gap_ns, 0);
    pass(1, 0);
    measure();
    must_update();
    ck_assert(got.is_stale && !got.domain_known[0] && !got.domain_known[1]);
    ck_assert_int_eq(got.gap_ns, 3 * S + 1);
    /* Carried on for 300 s, not for ever. */
    pass(JOULE_POWER_BRIDGE_NS, 0);
    measure();
    must_use(30000 * J);
    bmc.error = 0;
    measure();
    must_use(30000 * J);
    ck_assert(!got.is_stale && got.domain_known[0]);
    ck_assert_int_eq(got.gap_ns, 303 * S + 1);
}
END_TEST

/* What a silent meter says when it answers again comes at once: there was no
 * row that showed the power before. */
START_TEST(power_known_again)
{
    slurmd_knows();
    follow_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 0);
        must_update();
    }
    ck_assert(got.is_stale);
    bmc.watts[0] = 300;
    measure();
    must_use(2000 * J);
    ck_assert_uint_eq(got.domain_uj[0], 2000 * J);
    ck_assert(!got.is_stale);
    pass(S / 10, 0);
    must_use(2030 * J);
}
END_TEST

/* The BMC was away for 90 s when the step began, and for 10 s of it. */
START_TEST(power_begun_in_a_gap)
{
    slurmd_knows();
    bmc.error = ETIMEDOUT;
    pass(90 * S, 0);
    measure();
    follow_start();
    pass(5 * S, 0);
    must_update();
    ck_assert_int_eq(got.gap_ns, 5 * S);
    pass(5 * S, 0);
    bmc.error = 0;
    for (int i = 0; i <= 200; i++) {
        measure();
        must_update();
        pass(S, 0);
    }
    must_use(21100 * J);
    ck_assert_int_eq(got.gap_ns, 10 * S);
}
END_TEST

/* With the last power, for 300 s; what is measured then is not what was used
 * before. */
START_TEST(slurmd_away_with_a_meter)
{
    slurmd_knows();
    follow_start();
    slurmd_crash();
    for (int i = 1; i <= 400; i++) {
        pass(S, 0);
        must_use((uint64_t)(i < 300 ? i : 300) * 100 * J);
        ck_assert(got.is_stale == (i > 3));
        ck_assert(got.domain_known[0] == (i <= 3));
        ck_assert_int_eq(got.gap_ns, i > 3 ? i * S : 0);
    }
    ck_assert_uint_eq(got.domain_uj[1], 12000 * J);
    slurmd_start();
    ck_assert_uint_eq(snapshot.total.stale, 1);
    must_use(30000 * J);
    ck_assert(got.is_stale);
    measure();
    must_use(30000 * J);
    ck_assert_int_eq(got.gap_ns, 400 * S);
}
END_TEST

/* slurmd is away for 2 s, in which the power has changed: the difference is
 * worked off, and nothing counts twice. */
START_TEST(slurmd_back_with_a_meter)
{
    slurmd_knows();
    follow_start();
    slurmd_crash();
    pass(2 * S, 0);
    must_use(200 * J);
    bmc.watts[0] = 200;
    slurmd_start();
    must_use(200 * J);
    measure();
    for (int i = 0; i <= 10; i++) {
        must_update();
        ck_assert_uint_le(got.used_uj, (200 + (uint64_t)i * 30) * J);
        ck_assert_uint_ge(got.used_uj + 2, (200 + (uint64_t)i * 30) * J);
        pass(S / 10, 0);
    }
    measure();
    joule_node_energy_end(node_energy);
    must_use((300 + 220) * J);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* slurmd comes back with other labels, then with ours: the node goes on, the
 * labels count what was seen of them. */
START_TEST(power_with_other_labels)
{
    static const char *const names[] = {"GPU", "Socket0"};

    slurmd_knows();
    follow_start();
    pass(S, 0);
    measure();
    must_use(100 * J);
    for (int i = 0; i < 2; i++) {
        snprintf(bmc.domain[1].name, sizeof(bmc.domain[1].name), "%s",
                 names[i]);
        slurmd_restart();
        must_be_unknown();
        measure();
        must_use((100 + (uint64_t)i * 100) * J);
        ck_assert(got.domain_known[1] == (i == 1));
        pass(S, 0);
        measure();
        must_use((200 + (uint64_t)i * 100) * J);
        ck_assert_uint_eq(got.domain_uj[0], (100 + (uint64_t)i * 100) * J);
        ck_assert_uint_eq(got.domain_uj[1], (40 + (uint64_t)i * 40) * J);
    }
}
END_TEST

/* The same file, but now of RAPL: only its total means something. */
START_TEST(power_after_counters)
{
    slurmd_knows();
    follow_start();
    pass(S, 0);
    measure();
    must_use(100 * J);
    kind = COUNTERS;
    fake_add(&sampled, JOULE_DOMAIN_PACKAGE, 0, 0xFFFFFFF0);
    fake_add(&sampled, JOULE_DOMAIN_DRAM, 0, 0xFFFFFFF0);
    slurmd_restart();
    for (int i = 1; i <= 10; i++) {
        sampled.ticks[1] += 64;
        pass(S, 50);
        sample(false);
        must_update();
        joule_node_energy_end(node_energy);
        must_use((100 + (uint64_t)i * 50) * J + fake_uj((uint64_t)i * 64));
    }
    ck_assert_uint_eq(got.domain_uj[0], 100 * J);
    ck_assert(!got.domain_known[0]);
}
END_TEST

START_TEST(power_begin_again)
{
    slurmd_knows();
    follow_start();
    bmc.watts[0] = 300;
    pass(S, 0);
    must_use(100 * J);
    measure();
    must_use(100 * J);
    /* What has still to be worked off is not of what begins now. */
    joule_node_energy_begin(node_energy);
    pass(S / 2, 0);
    must_use(150 * J);
    ck_assert_uint_eq(got.domain_uj[0], 150 * J);
    ck_assert_uint_eq(got.domain_uj[1], 20 * J);
    ck_assert_int_eq(got.elapsed_ns, S / 2);
}
END_TEST

/* ---- counters and a meter ---- */

/* The meter says 250 W; the counters show 400 W for a moment. */
START_TEST(fused_between_samples)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 250 * TICKS_PER_J);
    bmc.watts[0] = 250;
    slurmd_knows();
    pass(S, 100);
    measure();
    follow_start();
    pass(S / 2, 50);
    must_use(125 * J);
    pass(S / 10, 40);
    must_use(165 * J);
    ck_assert_uint_eq(got.domain_uj[JOULE_FUSED_SENSOR_NODE], 165 * J);
    ck_assert_uint_eq(got.domain_uj[JOULE_FUSED_SENSOR_BMC], 150 * J);
    ck_assert_uint_eq(got.domain_uj[JOULE_FUSED_SENSOR_LABELS], 24 * J);
    ck_assert_uint_eq(got.domain_uj[JOULE_FUSED_SENSOR_LABELS + 1], 90 * J);
    for (size_t i = 0; i < following->domain_count; i++)
        ck_assert(got.domain_known[i]);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

static uint64_t rapl_w;

/* A node that uses half as much again as its counters say, and 50 W. */
static void fused_pass(int64_t ns)
{
    bmc.watts[0] = (double)rapl_w * 1.5 + 50;
    pass(ns, rapl_w * (uint64_t)ns / (uint64_t)S);
}

static void fused_learn(void)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    slurmd_knows();
    for (int i = 0; i < 1200; i++) {
        rapl_w = i / 20 % 2 ? 300 : 100;
        fused_pass(S);
        measure();
    }
    ck_assert(joule_lag_model_learned(&state.fused.lag_model));
    follow_start();
}

static void must_use_about(double joules)
{
    must_update();
    ck_assert_double_eq_tol((double)got.used_uj / 1e6, joules,
                            2 + joules / 100);
}

/* By the counters that the step reads itself and what slurmd has learned, also
 * without slurmd. */
START_TEST(fused_learned)
{
    double joules = 0;

    fused_learn();
    for (int i = 0; i < 90; i++) {
        rapl_w = i < 10 ? 100 : 300;
        fused_pass(S / 10);
        joules += (i < 10 ? 200 : 500) / 10.0;
        must_use_about(joules);
        if (i == 9)
            measure();
        if (i == 19)
            slurmd_crash();
    }
    ck_assert(!got.is_stale);
    ck_assert(got.domain_known[JOULE_FUSED_SENSOR_NODE]);
    /* What the meter alone knows is long ago. */
    ck_assert(!got.domain_known[JOULE_FUSED_SENSOR_BMC]);
    ck_assert(!got.domain_known[JOULE_FUSED_SENSOR_LABELS]);
    ck_assert(got.domain_known[JOULE_FUSED_SENSOR_LABELS + 1]);
    ck_assert_int_eq(got.gap_ns, 0);
    slurmd_start();
    must_use_about(joules);
    fused_pass(S);
    measure();
    must_use_about(joules + 500);
    joule_node_energy_end(node_energy);
    must_use_about(joules + 500);
}
END_TEST

/* slurmd comes back with other domains, then with ours, whose counts have begun
 * anew; those of the counters here are of the time before. */
START_TEST(fused_restarted)
{
    uint64_t from_uj, uj;

    add(JOULE_DOMAIN_PACKAGE, 0);
    bmc.watts[0] = 250;
    slurmd_knows();
    follow_start();
    for (int i = 0; i < 20; i++) {
        pass(S, 100);
        measure();
        must_use((uint64_t)(i + 1) * 250 * J);
    }
    from_uj = snapshot.total.node_uj;
    uj = got.used_uj;
    for (int i = 0; i < 2; i++) {
        snprintf(bmc.domain[1].name, sizeof(bmc.domain[1].name), "%s",
                 i ? "Socket0" : "GPU");
        slurmd_restart();
        must_be_unknown();
        for (int k = 0; k < 5; k++) {
            pass(S, 100);
            measure();
        }
    }
    joule_node_energy_end(node_energy);
    for (int i = 0; i < 20; i++) {
        pass(S / 2, 50);
        must_use(uj + snapshot.total.node_uj - from_uj + 125 * J);
        pass(S / 2, 50);
        measure();
    }
    must_use(uj + snapshot.total.node_uj - from_uj);
    ck_assert(got.domain_known[0]);
}
END_TEST

/* ---- rows ---- */

union cell {
    uint64_t u;
    double d;
};

static struct joule_energy_columns *columns;

/* NULL: there is none. */
static union cell *row(void)
{
    must_update();
    return joule_energy_columns_row(columns, &got, NULL);
}

/* Columns: NodePower, Socket0Power, node_uJ, Node_mW, Socket0_mW. */
static void has_row(double watts, uint64_t uj)
{
    union cell *r = row();

    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r[0].u, (uint64_t)watts);
    ck_assert_uint_eq(r[1].u, 40);
    ck_assert_uint_le(r[2].u, uj);
    ck_assert_uint_ge(r[2].u + 2, uj);
    ck_assert_double_eq_tol(r[3].d, watts * 1000, 1);
    ck_assert_double_eq_tol(r[4].d, 40000, 1);
}

static void columns_of(enum joule_energy_columns_of of, size_t columns_count)
{
    size_t count;

    follow_start();
    columns = joule_energy_columns_create(following, of);
    ck_assert_ptr_nonnull(columns);
    joule_energy_columns_list(columns, &count);
    ck_assert_uint_eq(count, columns_count);
}

static void teardown_columns(void)
{
    joule_energy_columns_destroy(columns);
    teardown();
}

/* A step is registered after its first row has begun. */
START_TEST(begin_again_within_a_row)
{
    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_NODE, 5);
    pass(20 * MS, 0);
    ck_assert_ptr_null(row());
    pass(5 * MS, 0);
    joule_node_energy_begin(node_energy);
    pass(S, 0);
    measure();
    must_use(100 * J);
    joule_energy_columns_destroy(columns);
    columns = joule_energy_columns_create(following, JOULE_ENERGY_COLUMNS_NODE);
    ck_assert_ptr_null(row());
    pass(S, 0);
    has_row(100, 200 * J);
}
END_TEST

/* Rows of 10 ms do not show the difference of a second. */
START_TEST(rows_of_a_correction)
{
    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_NODE, 5);
    ck_assert_ptr_null(row());
    bmc.watts[0] = 300;
    for (int i = 1; i <= 250; i++) {
        pass(10 * MS, 0);
        if (i % 100 == 0)
            measure();
        if (i < 100)
            has_row(100, (uint64_t)i * J);
        else if (i < 200)
            has_row(i > 100 ? 400 : 200, (uint64_t)(101 + (i - 100) * 4) * J);
        else
            ck_assert_ptr_nonnull(row());
    }
    pass(10 * MS, 0);
    has_row(300, (200 + 151 * 3) * J);
}
END_TEST

/* No row while the power is not known, nor one that makes up for it. */
START_TEST(no_rows_while_stale)
{
    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_NODE, 5);
    ck_assert_ptr_null(row());
    for (int i = 1; i <= 10; i++) {
        pass(S, 0);
        if (i <= 3)
            has_row(100, (uint64_t)i * 100 * J);
        else
            ck_assert_ptr_null(row());
    }
    bmc.watts[0] = 300;
    measure();
    ck_assert_ptr_null(row());
    pass(S / 10, 0);
    has_row(300, 2030 * J);
}
END_TEST

/* Of a label that is not measured now. */
START_TEST(row_without_a_label)
{
    union cell *r;

    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_NODE, 5);
    ck_assert_ptr_null(row());
    bmc.status[1] = JOULE_POWER_UNAVAILABLE;
    for (int i = 0; i < 4; i++) {
        pass(S, 0);
        measure();
        r = row();
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r[0].u, 100);
    }
    ck_assert_uint_eq(r[1].u, 0);
    ck_assert_double_eq_tol(r[3].d, 100000, 1);
    ck_assert(isnan(r[4].d));
}
END_TEST

/* Power, node_uJ, domain_0_mW, domain_1_mW. */
START_TEST(rows_of_counters)
{
    const struct joule_energy_column *list;
    union cell *r;
    size_t count;

    kind = COUNTERS;
    add(JOULE_DOMAIN_PACKAGE, 0);
    add(JOULE_DOMAIN_PP0, 0);
    fake.error[1] = sampled.error[1] = EIO;
    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_NODE, 4);
    list = joule_energy_columns_list(columns, &count);
    ck_assert_str_eq(list[0].name, "Power");
    ck_assert_str_eq(list[1].name, "node_uJ");
    ck_assert_str_eq(list[2].name, "domain_0_mW");
    ck_assert_str_eq(list[3].name, "domain_1_mW");
    ck_assert_ptr_null(row());
    for (int i = 1; i <= 20; i++) {
        pass(100 * MS, 20);
        if (i % 10 == 5)
            sample(false);
        r = row();
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r[0].u, 200);
        ck_assert_uint_eq(r[1].u, (uint64_t)i * 20 * J);
        ck_assert_double_eq(r[2].d, 200000);
        ck_assert(isnan(r[3].d));
    }
    /* Two readings of one moment. */
    ck_assert_ptr_null(row());
}
END_TEST

/* Power, step_uJ and step_mW, whatever the node's domains are. */
START_TEST(columns_of_a_shared_node)
{
    const struct joule_energy_column *list;
    union cell *r;
    size_t count;

    slurmd_start();
    columns_of(JOULE_ENERGY_COLUMNS_STEP, 3);
    list = joule_energy_columns_list(columns, &count);
    ck_assert_str_eq(list[0].name, "Power");
    ck_assert_str_eq(list[1].name, "step_uJ");
    ck_assert_str_eq(list[2].name, "step_mW");
    r = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, r, 123456789, 2600);
    ck_assert_uint_eq(r[0].u, 3);
    ck_assert_uint_eq(r[1].u, 123456789);
    ck_assert_double_eq(r[2].d, 2600);
    r = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, r, 123456789, NAN);
    ck_assert_uint_eq(r[0].u, 0);
    ck_assert(isnan(r[2].d));
}
END_TEST

/* NodePower, Socket0Power, node_uJ, Node_mW, Socket0_mW, step_uJ, step_mW:
 * another job has come to a node that was the step's job's alone. */
START_TEST(columns_hide_the_node)
{
    union cell *r;

    slurmd_knows();
    columns_of(JOULE_ENERGY_COLUMNS_ALONE, 7);
    ck_assert_ptr_null(row());
    pass(S, 0);
    r = row();
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r[0].u, 100);
    r = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, r, 5, 7);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(r[i].u, 0);
    ck_assert(isnan(r[3].d) && isnan(r[4].d));
    ck_assert_uint_eq(r[5].u, 5);
    ck_assert_double_eq(r[6].d, 7);
}
END_TEST

/* ---- random ---- */

static long below(long n)
{
    return random() % n;
}

static uint64_t truth_uj(void)
{
    return fake_uj(fake.ticks[0]) + fake_uj(fake.ticks[1]);
}

/* A moment in which all is well, and everything is said. */
static void settle(const char *when, unsigned seed, uint64_t from_uj)
{
    uint64_t uj;

    for (int d = 0; d < 2; d++)
        fake.error[d] = sampled.error[d] = 0;
    if (!writer)
        slurmd_start();
    sample(false);
    must_update();
    joule_node_energy_end(node_energy);
    must_update();
    uj = truth_uj() - from_uj;
    ck_assert_msg(got.used_uj <= uj + 2, "%s seed %u: %" PRIu64 " of %" PRIu64,
                  when, seed, got.used_uj, uj);
    ck_assert_msg(got.gap_ns > 0 || got.used_uj + 2 >= uj,
                  "%s seed %u: %" PRIu64 " is not %" PRIu64, when, seed,
                  got.used_uj, uj);
}

/*
 * Any schedule of samples, crashes, own readings, errors and pauses at up to
 * 1000 W, against the exact truth: never more than that, never less than
 * before, and in the end exact if no gap is said.
 */
static void random_schedule(unsigned seed)
{
    uint64_t before_uj = 0, from_uj = 0;
    int updates = 0;

    srandom(seed);
    for (int d = 0; d < 2; d++)
        add(JOULE_DOMAIN_PACKAGE, (uint64_t)random() * 2);
    slurmd_start();
    for (int i = 0; i < 300; i++) {
        static const int64_t pauses[] = {MS, S, 10 * S, 30 * S, 70 * S};
        int64_t ns = 1 + pauses[below(below(3) ? 3 : 5)] * below(1000) / 1000;

        pass(ns, 0);
        for (int d = 0; d < 2; d++) {
            /* 65.5 million ticks a second are 1000 W. */
            fake.ticks[d] += (uint64_t)((double)ns * 1e-9 * 655.0 * 1e5 *
                                        (double)(1 + below(1000)) / 1000);
            sampled.ticks[d] = fake.ticks[d];
            fake.error[d] = below(20) ? 0 : EIO;
            sampled.error[d] = below(20) ? 0 : EIO;
        }
        if (below(40) == 0 && writer)
            slurmd_crash();
        else if (below(20) == 0 && !writer)
            slurmd_start();
        if (writer && below(4))
            sample(false);
        if (!node_energy && i > 5) {
            fake.error[0] = fake.error[1] = 0;
            follow_start();
            from_uj = truth_uj();
        } else if (node_energy && below(3) == 0) {
            if (joule_node_energy_update(node_energy, &got) < 0) {
                ck_assert_int_eq(errno, ENODATA);
                continue;
            }
            ck_assert_msg(got.used_uj >= before_uj, "seed %u step %d: fell",
                          seed, i);
            ck_assert_msg(got.used_uj <= truth_uj() - from_uj + 2,
                          "seed %u step %d: %" PRIu64 " of %" PRIu64, seed, i,
                          got.used_uj, truth_uj() - from_uj);
            before_uj = got.used_uj;
            updates++;
        }
    }
    settle("end", seed, from_uj);
    ck_assert_uint_ge(got.used_uj, before_uj);
    ck_assert_int_gt(updates, 0);
}

START_TEST(random_schedules)
{
    for (int i = 0; i < dice_rounds(250); i++) {
        random_schedule((unsigned)(_i * 1000 + i));
        teardown();
        setup();
    }
}
END_TEST

/* Any schedule of samples, failures and questions against the truth, for a
 * load that changes at the edges of the step alone. */
static void random_step(unsigned seed)
{
    double idle_w, load_w, truth;
    uint64_t before_uj = 0;
    int64_t begin_ns;

    srandom(seed);
    idle_w = 50 + (double)below(100);
    load_w = 50 + (double)below(900);
    bmc.watts[0] = idle_w;
    slurmd_knows();
    for (int i = 0; i < 5; i++) {
        measure();
        pass(1 + below(S), 0);
    }
    sample_edge();
    follow_start();
    begin_ns = fake.now_ns;
    bmc.watts[0] = load_w;
    for (int i = 0; i < 200; i++) {
        bmc.status[0] = below(10) ? JOULE_POWER_OK : (int)below(10);
        if (below(2))
            measure();
        pass(1 + below(S), 0);
        if (below(3) == 0) {
            must_update();
            ck_assert_msg(got.used_uj >= before_uj, "seed %u fell", seed);
            before_uj = got.used_uj;
        }
    }
    bmc.status[0] = JOULE_POWER_OK;
    measure();
    must_update();
    joule_node_energy_end(node_energy);
    must_update();
    truth = load_w * (double)(fake.now_ns - begin_ns) / 1000;
    ck_assert_msg(fabs((double)got.used_uj - truth) <= 300,
                  "seed %u: %" PRIu64 " instead of %.0f", seed, got.used_uj,
                  truth);
}

START_TEST(random_steps)
{
    for (int i = 0; i < dice_rounds(50); i++) {
        random_step((unsigned)(_i * 1000 + i));
        teardown();
        setup_meter();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node energy");
    TCase *bad = tcase_create("unknown");
    TCase *hostile = tcase_create("hostile");
    TCase *counters = tcase_create("counters");
    TCase *silent = tcase_create("silent meter");
    TCase *meter = tcase_create("meter");
    TCase *fused = tcase_create("fused");
    TCase *rows = tcase_create("rows");
    TCase *many = tcase_create("random");
    TCase *steps = tcase_create("random steps");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, not_begun);
    tcase_add_test(bad, no_memory);
    tcase_add_test(bad, destroy_null);
    tcase_add_test(bad, nothing_is_published);
    tcase_add_test(bad, guest);
    tcase_add_test(bad, no_counter_answers);
    tcase_add_test(bad, a_package_goes_and_comes);
    tcase_add_test(bad, own_counter_does_not_answer);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(silent, setup_meter, teardown);
    tcase_add_test(silent, no_meter_answers);
    tcase_add_test(silent, measured_later);
    tcase_add_test(silent, measured_later_on_a_base);
    suite_add_tcase(suite, silent);

    tcase_add_checked_fixture(hostile, setup, teardown);
    tcase_add_loop_test(hostile, hostile_state, 0, KINDS * HOSTILE);
    tcase_add_test(hostile, no_period);
    tcase_add_test(hostile, total_falls);
    suite_add_tcase(suite, hostile);

    tcase_add_checked_fixture(counters, setup, teardown);
    tcase_add_test(counters, begins_between_two_steps);
    tcase_add_test(counters, exact_edges);
    tcase_add_loop_test(counters, wraps, 0, 13);
    tcase_add_test(counters, begin_again);
    tcase_add_test(counters, seldom_looked_at);
    tcase_add_test(counters, set_back);
    tcase_add_test(counters, frozen);
    tcase_add_test(counters, every_seventh_fails);
    tcase_add_test(counters, two_packages_and_dram);
    tcase_add_test(counters, a_domain_is_unknown);
    tcase_add_test(counters, slurmd_away);
    tcase_add_test(counters, slurmd_away_over_a_wrap);
    tcase_add_test(counters, slurmd_back);
    tcase_add_test(counters, slurmd_back_over_a_wrap);
    tcase_add_test(counters, slurmd_back_late);
    tcase_add_loop_test(counters, begun_while_slurmd_is_away, 0, 2);
    tcase_add_test(counters, gap_of_the_total);
    tcase_add_test(counters, other_domains);
    tcase_add_test(counters, restarted_total);
    suite_add_tcase(suite, counters);

    tcase_add_checked_fixture(meter, setup_meter, teardown);
    tcase_add_test(meter, power_carried_on);
    tcase_add_test(meter, power_not_carried_on);
    tcase_add_test(meter, power_exact_edges);
    tcase_add_loop_test(meter, power_corrected, 0, 11);
    tcase_add_test(meter, power_never_falls);
    tcase_add_test(meter, power_goes_stale);
    tcase_add_test(meter, power_known_again);
    tcase_add_test(meter, power_begun_in_a_gap);
    tcase_add_test(meter, slurmd_away_with_a_meter);
    tcase_add_test(meter, slurmd_back_with_a_meter);
    tcase_add_test(meter, power_with_other_labels);
    tcase_add_test(meter, power_after_counters);
    tcase_add_test(meter, power_begin_again);
    suite_add_tcase(suite, meter);

    tcase_add_checked_fixture(fused, setup_fused, teardown);
    tcase_set_timeout(fused, 60);
    tcase_add_test(fused, fused_between_samples);
    tcase_add_test(fused, fused_learned);
    tcase_add_test(fused, fused_restarted);
    suite_add_tcase(suite, fused);

    tcase_add_checked_fixture(rows, setup_meter, teardown_columns);
    tcase_add_test(rows, begin_again_within_a_row);
    tcase_add_test(rows, rows_of_a_correction);
    tcase_add_test(rows, no_rows_while_stale);
    tcase_add_test(rows, row_without_a_label);
    tcase_add_test(rows, rows_of_counters);
    tcase_add_test(rows, columns_of_a_shared_node);
    tcase_add_test(rows, columns_hide_the_node);
    suite_add_tcase(suite, rows);

    tcase_add_checked_fixture(many, setup, teardown);
    tcase_set_timeout(many, 300);
    tcase_add_loop_test(many, random_schedules, 0, 16);
    suite_add_tcase(suite, many);

    tcase_add_checked_fixture(steps, setup_meter, teardown);
    tcase_set_timeout(steps, 300);
    tcase_add_loop_test(steps, random_steps, 0, 8);
    suite_add_tcase(suite, steps);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
