/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler's part is played by a tally and a board in the test: what it
 * does is then known to the reading.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/step/node_energy.h"
#include "common/step/energy_columns.h"
#include "tests/unit/dice.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/tree.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

#define TICKS_PER_J 65536

static struct tree tree;
static struct fake fake;    /* read by the account */
static struct fake sampled; /* the same counters, read by the sampler */
static struct joule_board *writer, *reader;
static struct joule_snapshot snapshot;
static struct joule_node_energy *node_energy;
static struct joule_node_energy_reading got;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    fake_init(&fake);
    fake_init(&sampled);
    writer = reader = NULL;
    node_energy = NULL;
    memset(&got, 0, sizeof(got));
}

static void teardown(void)
{
    joule_node_energy_destroy(node_energy);
    joule_board_destroy(reader);
    joule_board_destroy(writer);
    tree_destroy(&tree);
}

static void add(enum joule_domain_kind kind, uint64_t start)
{
    unsigned package = (unsigned)fake.source.domain_count;

    fake_add(&fake, kind, package, start);
    fake_add(&sampled, kind, package, start);
}

/* Time goes on by [ns], in which domain 0 uses [j] joules. */
static void pass(int64_t ns, uint64_t j)
{
    fake.now_ns += ns;
    sampled.now_ns = fake.now_ns;
    fake.ticks[0] += j * TICKS_PER_J;
    sampled.ticks[0] = fake.ticks[0];
}

static void sampler_start(void)
{
    struct joule_error err;

    writer = joule_board_create(tree.fd, "n1", &err);
    ck_assert_msg(writer != NULL, "%s", err.text);
    memset(&snapshot, 0, sizeof(snapshot));
    if (joule_board_read(writer, &snapshot) < 0) {
        joule_node_total_start(&snapshot.total, sampled.domain,
                               sampled.source.domain_count, 0);
        snapshot.node_mw = JOULE_MW_UNKNOWN;
    }
}

static void sampler_run(void)
{
    struct joule_reading readings[FAKE_MAX];

    joule_sensor_read(&sampled.source, readings);
    joule_node_total_update(&snapshot.total, sampled.domain, readings,
                            sampled.now_ns);
    snapshot.samples++;
    joule_board_publish(writer, &snapshot);
}

static void sampler_crash(void)
{
    joule_board_destroy(writer);
    writer = NULL;
}

static void account_start(void)
{
    reader = joule_board_open(tree.fd, "n1", NULL);
    node_energy = joule_node_energy_create(&fake.clock, &fake.source, reader);
    ck_assert_ptr_nonnull(node_energy);
    joule_node_energy_begin(node_energy);
}

static void must_update(void)
{
    ck_assert_msg(joule_node_energy_update(node_energy, &got) == 0, "%s",
                  strerror(errno));
}

static void must_be_unknown(void)
{
    errno = 0;
    ck_assert_int_eq(joule_node_energy_update(node_energy, &got), -1);
    ck_assert_int_eq(errno, ENODATA);
}

START_TEST(not_begun)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    node_energy = joule_node_energy_create(&fake.clock, &fake.source, NULL);
    ck_assert_int_eq(joule_node_energy_update(node_energy, &got), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* Readings that are followed later, over a wrap and while the sampler goes on,
 * come to what they would have come to at once. */
START_TEST(followed_later)
{
    struct joule_reading readings[8][FAKE_MAX];
    int64_t ns[8];
    int i;

    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 50 * TICKS_PER_J);
    node_energy = joule_node_energy_create(&fake.clock, &fake.source, NULL);
    errno = 0;
    ck_assert_int_eq(
        joule_node_energy_follow(node_energy, readings[0], 0, &got), -1);
    ck_assert_int_eq(errno, EINVAL);
    joule_node_energy_destroy(node_energy);
    sampler_start();
    account_start();
    for (i = 0; i < 8; i++) {
        pass(100 * MS, 20);
        if (i % 3 == 2)
            sampler_run();
        ns[i] = joule_node_energy_read(node_energy, readings[i]);
        ck_assert_int_eq(ns[i], fake.now_ns);
    }
    for (i = 0; i < 8; i++) {
        ck_assert_int_eq(
            joule_node_energy_follow(node_energy, readings[i], ns[i], &got), 0);
        ck_assert_int_eq(got.mono_ns, ns[i]);
        ck_assert_int_eq(got.elapsed_ns, (i + 1) * 100 * MS);
        ck_assert_uint_eq(got.used_uj, (uint64_t)(i + 1) * 20 * 1000000);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        ck_assert_uint_eq(got.node_mw, 200000);
    }
    ck_assert_int_eq(got.gap_ns, 0);
    /* And at once again. */
    pass(100 * MS, 20);
    must_update();
    ck_assert_uint_eq(got.used_uj, 9 * 20 * 1000000);
}
END_TEST

START_TEST(no_memory)
{
    fail_calloc = 1;
    errno = 0;
    ck_assert_ptr_null(
        joule_node_energy_create(&fake.clock, &fake.source, NULL));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(destroy_null)
{
    joule_node_energy_destroy(NULL);
}
END_TEST

START_TEST(never_moves)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    account_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 0);
        must_be_unknown();
    }
}
END_TEST

START_TEST(never_answers)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake.error[0] = EIO;
    account_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 100);
        must_be_unknown();
    }
}
END_TEST

/* The board says that counters move; ours has never been read. */
START_TEST(never_answers_beside_a_valid_board)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake.error[0] = EIO;
    sampler_start();
    sampler_run();
    pass(S, 100);
    sampler_run();
    account_start();
    pass(S, 100);
    sampler_run();
    must_be_unknown();
    fake.error[0] = 0;
    must_update();
    ck_assert_uint_eq(got.used_uj, 0);
    pass(S, 100);
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
}
END_TEST

START_TEST(guest_with_a_board)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    for (int i = 0; i < 10; i++) {
        pass(S, 0);
        sampler_run();
        must_be_unknown();
    }
}
END_TEST

/* A step that begins between two steps of the counter: 0 J is measured. */
START_TEST(board_knows_that_it_moves)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    pass(S, 100);
    sampler_run();
    account_start();
    must_update();
    ck_assert_uint_eq(got.used_uj, 0);
    ck_assert_uint_eq(got.average_mw, JOULE_MW_UNKNOWN);
}
END_TEST

START_TEST(board_of_other_domains)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    fake_add(&sampled, JOULE_DOMAIN_DRAM, 0, 0);
    sampler_start();
    sampler_run();
    pass(S, 100);
    sampler_run();
    ck_assert_uint_eq(snapshot.total.valid, 1);
    account_start();
    must_be_unknown();
    /* Nor does it bridge: 2 wraps are lost and said to be. */
    pass(S, 100);
    must_update();
    for (int i = 0; i < 150; i++) {
        pass(S, 1000);
        sampler_run();
    }
    must_update();
    ck_assert_int_eq(got.gap_ns, 150 * S);
    ck_assert_uint_eq(got.used_uj,
                      UINT64_C(150100000000) - 2 * UINT64_C(65536000000));
}
END_TEST

START_TEST(set_back)
{
    add(JOULE_DOMAIN_PACKAGE, 0x80000000);
    account_start();
    pass(S, 100);
    must_update();
    fake.start[0] = 0;
    pass(S, 100);
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
    ck_assert_int_eq(got.gap_ns, S);
    pass(S, 100);
    must_update();
    ck_assert_uint_eq(got.used_uj, 200000000);
}
END_TEST

/* Set back after the sampler's last look: what the board has does not fit. */
START_TEST(set_back_behind_the_sampler)
{
    add(JOULE_DOMAIN_PACKAGE, 0x80000000);
    sampler_start();
    sampler_run();
    account_start();
    for (int i = 0; i < 50; i++) {
        pass(S, 100);
        sampler_run();
    }
    pass(S / 2, 50);
    fake.start[0] = sampled.start[0] = 0;
    must_update();
    ck_assert_uint_le(got.used_uj, 5050000000 + UINT64_C(32768000000));
    sampler_run();
    ck_assert_uint_eq(snapshot.total.counter[0].gaps, 1);
    for (int i = 0; i < 50; i++) {
        uint64_t before_uj = got.used_uj;

        pass(S, 100);
        sampler_run();
        must_update();
        ck_assert_uint_eq(got.used_uj - before_uj, 100000000);
    }
}
END_TEST

START_TEST(exact_edges)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 1000);
    account_start();
    fake.now_ns += 1234567;
    fake.ticks[0] += 777;
    must_update();
    ck_assert_uint_eq(got.used_uj, fake_uj(777));
    ck_assert_int_eq(got.elapsed_ns, 1234567);
    ck_assert_int_eq(got.mono_ns, fake.now_ns);
    ck_assert_uint_eq(got.domain_uj[0], fake_uj(777));
    fake.ticks[0] += 1000;
    must_update();
    ck_assert_uint_eq(got.used_uj, fake_uj(1777));
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

START_TEST(begin_again)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    account_start();
    pass(S, 100);
    must_update();
    joule_node_energy_begin(node_energy);
    pass(S, 7);
    must_update();
    ck_assert_uint_eq(got.used_uj, 7000000);
    ck_assert_int_eq(got.elapsed_ns, S);
}
END_TEST

START_TEST(power)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    account_start();
    pass(2 * S, 200);
    must_update();
    ck_assert_uint_eq(got.node_mw, 100000);
    ck_assert_uint_eq(got.average_mw, 100000);
    pass(S, 400);
    must_update();
    ck_assert_uint_eq(got.node_mw, 400000);
    ck_assert_uint_eq(got.average_mw, 200000);
    /* Too near: the figure before stays, no joule is lost. */
    pass(4 * MS, 4);
    must_update();
    ck_assert_uint_eq(got.node_mw, 400000);
    pass(996 * MS, 196);
    must_update();
    ck_assert_uint_eq(got.node_mw, 200000);
}
END_TEST

START_TEST(first_power_is_the_boards)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    pass(S, 100);
    snapshot.node_mw = 123456;
    sampler_run();
    account_start();
    must_update();
    ck_assert_uint_eq(got.node_mw, 123456);
    pass(S, 50);
    must_update();
    ck_assert_uint_eq(got.node_mw, 50000);
}
END_TEST

/* Own readings 400 s apart at 900 W: six wraps between them. */
START_TEST(bridged_wraps)
{
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX - 5);
    sampler_start();
    sampler_run();
    account_start();
    for (int j = 1; j <= 5; j++) {
        for (int i = 0; i < 400; i++) {
            pass(S, 900);
            sampler_run();
        }
        pass(S / 2, 450);
        must_update();
        ck_assert_uint_eq(got.used_uj, (uint64_t)j * 360450000000);
        ck_assert_int_eq(got.gap_ns, 0);
    }
}
END_TEST

START_TEST(not_bridged_without_board)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    account_start();
    pass(66 * S, 900 * 66);
    must_update();
    ck_assert_int_eq(got.gap_ns, 66 * S);
    ck_assert_uint_eq(got.used_uj, UINT64_C(59400000000));
}
END_TEST

/* slurmd is away: own readings near enough count alone. */
START_TEST(slurmd_away)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    pass(S, 100);
    sampler_run();
    sampler_crash();
    for (int i = 1; i <= 100; i++) {
        pass(30 * S, 3000);
        must_update();
        ck_assert_uint_eq(got.used_uj, 100000000 + (uint64_t)i * 3000000000);
    }
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* What the account has counted by itself while the board was too old is not
 * added once more when the board is back. */
START_TEST(slurmd_back)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    pass(30 * S, 3000);
    must_update();
    sampler_crash();
    pass(10 * S, 1000);
    must_update();
    pass(10 * S, 1000);
    must_update();
    pass(10 * S, 1000);
    sampler_start();
    sampler_run();
    pass(40 * S, 4000);
    sampler_run();
    must_update();
    ck_assert_uint_eq(got.used_uj, UINT64_C(10000000000));
    ck_assert_int_eq(got.gap_ns, 0);
    /* And the wraps behind that are bridged again. */
    for (int i = 0; i < 200; i++) {
        pass(S, 1000);
        sampler_run();
    }
    must_update();
    ck_assert_uint_eq(got.used_uj, UINT64_C(210000000000));
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* slurmd was away for longer than a wrap: the board says so, and is not
 * believed over that time. */
START_TEST(gap_of_the_board)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    pass(S, 900);
    must_update();
    sampler_run();
    sampler_crash();
    pass(100 * S, 90000);
    sampler_start();
    sampler_run();
    must_update();
    ck_assert_int_eq(got.gap_ns, 100 * S);
    ck_assert_uint_le(got.used_uj, UINT64_C(90900000000));
    ck_assert_uint_eq(got.used_uj % 65536000000,
                      UINT64_C(90900000000) % 65536000000);
}
END_TEST

/* The snapshot was made after our reading (clocks of two CPUs): its count is
 * not ours. */
START_TEST(board_ahead)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    for (int i = 0; i < 100; i++) {
        pass(S, 100);
        sampler_run();
    }
    sampled.now_ns += 1000;
    sampled.ticks[0] += 5;
    sampler_run();
    must_update();
    ck_assert_uint_le(got.used_uj, UINT64_C(10000000000));
    ck_assert_int_eq(got.gap_ns, 100 * S);
}
END_TEST

/* The sampler began a new set of domains and came back to ours: its ticks
 * are of another count. */
START_TEST(board_began_anew)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    pass(S, 10);
    sampler_run();
    must_update();
    joule_node_total_start(&snapshot.total, sampled.domain, 1,
                           snapshot.total.node_uj);
    sampler_run();
    for (int i = 0; i < 150; i++) {
        pass(S, 100);
        sampler_run();
    }
    must_update();
    ck_assert_uint_le(got.used_uj, UINT64_C(15010000000));
    ck_assert_int_eq(got.gap_ns, 150 * S);
}
END_TEST

START_TEST(every_seventh_fails)
{
    uint64_t before_uj = 0;

    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX);
    account_start();
    fake.fail_every = 7;
    pass(S, 350);
    must_update();
    for (int i = 0; i < 3000; i++) {
        pass(S, 350);
        must_update();
        ck_assert_uint_ge(got.used_uj, before_uj);
        ck_assert_uint_eq(got.used_uj, fake_uj(fake.good[0]));
        before_uj = got.used_uj;
    }
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

/* A package goes, and with it what the step has used; it comes back, and with
 * it what was used meanwhile, also if the board says what it likes. */
START_TEST(a_package_goes_and_comes)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    add(JOULE_DOMAIN_PACKAGE, 0);
    sampler_start();
    sampler_run();
    account_start();
    fake.ticks[1] = sampled.ticks[1] = TICKS_PER_J;
    pass(S, 10);
    sampler_run();
    must_update();
    ck_assert_uint_eq(got.used_uj, 11000000);
    fake.error[1] = ENXIO;
    for (int i = 1; i <= 20; i++) {
        pass(S, 10);
        fake.ticks[1] += 10 * TICKS_PER_J;
        sampled.ticks[1] = fake.ticks[1];
        sampler_run();
        if (i > 3)
            must_be_unknown();
        else
            must_update();
    }
    fake.error[1] = 0;
    must_update();
    ck_assert_uint_eq(got.used_uj, 11000000 + 400000000);
    ck_assert_int_eq(got.gap_ns, 0);
}
END_TEST

START_TEST(two_packages_and_dram)
{
    add(JOULE_DOMAIN_PACKAGE, 5);
    add(JOULE_DOMAIN_PACKAGE, UINT32_MAX);
    add(JOULE_DOMAIN_DRAM, 0);
    add(JOULE_DOMAIN_PP0, 0);
    account_start();
    fake.ticks[1] = 2 * TICKS_PER_J;
    fake.ticks[2] = 3 * TICKS_PER_J;
    fake.ticks[3] = 4 * TICKS_PER_J;
    pass(S, 1);
    must_update();
    ck_assert_uint_eq(got.used_uj, 6000000);
    ck_assert_uint_eq(got.domain_uj[0], 1000000);
    ck_assert_uint_eq(got.domain_uj[1], 2000000);
    ck_assert_uint_eq(got.domain_uj[2], 3000000);
    ck_assert_uint_eq(got.domain_uj[3], 4000000);
}
END_TEST

static long below(long n)
{
    return random() % n;
}

static uint64_t base[2];
static bool based[2];

/* The baseline is the first good reading since begin. */
static uint64_t true_uj(void)
{
    uint64_t uj = 0;

    for (int d = 0; d < 2; d++) {
        if (!based[d] && fake.answered[d])
            base[d] = fake.good[d];
        based[d] = fake.answered[d];
        uj += fake_uj(fake.good[d] - base[d]);
    }
    return uj;
}

static int64_t good_ns[2]; /* when the account has read it last */

/* A counter did not answer this time, nor for a while. */
static bool is_silent(void)
{
    bool silent = false;

    for (int d = 0; d < 2; d++) {
        if (!fake.error[d])
            good_ns[d] = fake.now_ns;
        silent |= fake.now_ns - good_ns[d] > JOULE_COUNTER_FROZEN_NS;
    }
    return silent;
}

/*
 * Any schedule of sampler runs, crashes, own readings, errors and pauses at
 * up to 1000 W, against the exact truth: never more than that, never less
 * than before, exact as long as no gap is said, and unknown while a counter is
 * silent.
 */
static void random_schedule(unsigned seed)
{
    uint64_t before_uj = 0, truth_uj, before_true_uj = 0;
    int updates = 0, rc;

    srandom(seed);
    based[0] = based[1] = false;
    for (int d = 0; d < 2; d++)
        add(JOULE_DOMAIN_PACKAGE, (uint64_t)random() * 2);
    if (below(4))
        sampler_start();
    for (int i = 0; i < 300; i++) {
        static const int64_t pauses[] = {MS, S, 10 * S, 30 * S, 70 * S};
        int64_t ns = 1 + pauses[below(below(3) ? 3 : 5)] * below(1000) / 1000;

        fake.now_ns += ns;
        sampled.now_ns = fake.now_ns;
        for (int d = 0; d < 2; d++) {
            /* 65.5 million ticks a second are 1000 W. */
            fake.ticks[d] += (uint64_t)((double)ns * 1e-9 * 655.0 * 1e5 *
                                        (double)below(1001) / 1000);
            sampled.ticks[d] = fake.ticks[d];
            fake.error[d] = below(20) ? 0 : EIO;
            sampled.error[d] = below(20) ? 0 : EIO;
        }
        if (below(40) == 0 && writer)
            sampler_crash();
        else if (below(20) == 0 && !writer)
            sampler_start();
        if (writer && below(4))
            sampler_run();
        if (!node_energy && i > 5) {
            account_start();
            true_uj();
            is_silent();
        } else if (node_energy && below(3) == 0) {
            rc = joule_node_energy_update(node_energy, &got);
            truth_uj = true_uj();
            if (is_silent()) {
                ck_assert_int_eq(rc, -1);
                ck_assert_int_eq(errno, ENODATA);
            } else if (rc == 0) {
                ck_assert_msg(got.used_uj >= before_uj, "seed %u step %d: fell",
                              seed, i);
                ck_assert_msg(got.used_uj <= truth_uj,
                              "seed %u step %d: %" PRIu64 " of %" PRIu64, seed,
                              i, got.used_uj, truth_uj);
                ck_assert_msg(got.gap_ns != 0 || got.used_uj == truth_uj,
                              "seed %u step %d: %" PRIu64 " is not %" PRIu64,
                              seed, i, got.used_uj, truth_uj);
                /* What is added is no more than what was used. */
                ck_assert_msg(got.used_uj - before_uj <=
                                  truth_uj - before_true_uj + 2,
                              "seed %u step %d: jumped", seed, i);
                before_uj = got.used_uj;
                before_true_uj = truth_uj;
                updates++;
            } else {
                ck_assert_int_eq(errno, ENODATA);
                ck_assert_int_eq(updates, 0);
            }
        }
    }
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

/* ---- power sources: the sampler's part is played by a tally again ---- */

static struct fake_power bmc;

static void setup_power(void)
{
    setup();
    fake_power_init(&bmc);
    fake_power_add(&bmc, "Socket0", 40);
}

static void bmc_publish(void)
{
    snapshot.node_mw = (uint64_t)(snapshot.total.integrator[0].power_w * 1000);
    joule_board_publish(writer, &snapshot);
}

/* slurmd begins; no measurement yet. */
static void bmc_start(uint64_t base_uj)
{
    writer = joule_board_create(tree.fd, "n1", NULL);
    ck_assert_ptr_nonnull(writer);
    memset(&snapshot, 0, sizeof(snapshot));
    joule_node_total_start(&snapshot.total, bmc.domain, bmc.source.domain_count,
                           base_uj);
    snapshot.since_ns = bmc.now_ns;
    snapshot.period_ns = S;
    snapshot.node_mw = JOULE_MW_UNKNOWN;
    joule_board_publish(writer, &snapshot);
}

static void bmc_measure(void)
{
    struct joule_power out[FAKE_LABELS_MAX];
    bool was_valid = snapshot.total.valid;

    ck_assert_int_eq(bmc.source.ops->read_power(&bmc.source, out, NULL), 0);
    joule_node_total_integrate(&snapshot.total, bmc.domain, out,
                               joule_board_last_edge(writer, bmc.now_ns),
                               3 * S);
    if (!was_valid && snapshot.total.base_uj == 0)
        snapshot.since_ns = snapshot.total.mono_ns;
    bmc_publish();
}

static void bmc_pass(int64_t ns)
{
    bmc.now_ns += ns;
}

static void follow_start(void)
{
    reader = joule_board_open(tree.fd, "n1", NULL);
    node_energy = joule_node_energy_create(&bmc.clock, &bmc.source, reader);
    ck_assert_ptr_nonnull(node_energy);
    joule_node_energy_begin(node_energy);
}

START_TEST(power_without_memory)
{
    for (int i = 1; i <= 2; i++) {
        fail_calloc = i;
        errno = 0;
        ck_assert_ptr_null(
            joule_node_energy_create(&bmc.clock, &bmc.source, NULL));
        ck_assert_int_eq(errno, ENOMEM);
    }
}
END_TEST

START_TEST(power_not_begun)
{
    node_energy = joule_node_energy_create(&bmc.clock, &bmc.source, NULL);
    ck_assert_int_eq(joule_node_energy_update(node_energy, &got), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(power_without_board)
{
    follow_start();
    ck_assert_ptr_null(reader);
    joule_node_energy_edge(node_energy);
    for (int i = 0; i < 3; i++) {
        bmc_pass(S);
        must_be_unknown();
    }
    ck_assert_uint_eq(bmc.reads, 0);
}
END_TEST

START_TEST(power_never_measured)
{
    bmc_start(0);
    follow_start();
    bmc.status[0] = JOULE_POWER_UNAVAILABLE;
    for (int i = 0; i < 3; i++) {
        bmc_pass(S);
        bmc_measure();
        must_be_unknown();
    }
}
END_TEST

/* The first measurement of the boot comes 30 s into the step: it counts from
 * there, also if the step was not looked at for longer. */
START_TEST(power_measured_later)
{
    bmc_start(0);
    follow_start();
    bmc_pass(30 * S);
    bmc_measure();
    for (int i = 0; i < 60; i++) {
        bmc_pass(S);
        bmc_measure();
    }
    must_update();
    ck_assert_uint_eq(got.used_uj, UINT64_C(6000000000));
    ck_assert_uint_eq(got.domain_uj[1], UINT64_C(2400000000));
    ck_assert_int_eq(got.gap_ns, 30 * S);
    ck_assert_int_eq(got.elapsed_ns, 90 * S);
    ck_assert_uint_eq(got.average_mw, 100000);
}
END_TEST

/* slurmd was there before, but has measured nothing since it has new labels:
 * the total before is not the step's. */
START_TEST(power_measured_later_on_a_base)
{
    bmc_start(77000000);
    follow_start();
    bmc_pass(30 * S);
    must_be_unknown();
    bmc_measure();
    bmc_pass(S);
    bmc_measure();
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
    ck_assert_int_ge(got.gap_ns, 30 * S);
}
END_TEST

START_TEST(power_extended)
{
    bmc_start(0);
    bmc_measure();
    bmc_pass(S);
    bmc_measure();
    bmc_pass(S / 2);
    follow_start();
    must_update();
    ck_assert_uint_eq(got.used_uj, 0);
    ck_assert_uint_eq(got.node_mw, 100000);
    ck_assert_uint_eq(got.average_mw, JOULE_MW_UNKNOWN);
    bmc_pass(S / 4);
    must_update();
    ck_assert_uint_eq(got.used_uj, 25000000);
    ck_assert_uint_eq(got.domain_uj[0], 25000000);
    ck_assert_uint_eq(got.domain_uj[1], 10000000);
    ck_assert_uint_eq(got.domain_mw[1], 40000);
    ck_assert_int_eq(got.elapsed_ns, S / 4);
    ck_assert_uint_eq(got.average_mw, 100000);
    ck_assert_int_eq(got.gap_ns, 0);
    ck_assert_uint_eq(bmc.reads, 2);
}
END_TEST

START_TEST(power_not_extended)
{
    bmc_start(0);
    bmc_measure();
    bmc_pass(S / 2);
    reader = joule_board_open(tree.fd, "n1", NULL);
    node_energy = joule_node_energy_create(&bmc.clock, &bmc.source, reader);
    joule_node_energy_extend(node_energy, false);
    joule_node_energy_begin(node_energy);
    bmc_pass(S / 4);
    must_update();
    ck_assert_uint_eq(got.used_uj, 0);
    bmc_pass(S / 4);
    bmc_measure();
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
    bmc_pass(S / 2);
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
}
END_TEST

/*
 * 100 W idle, 500 W from the begin of the step to its end, neither of them at
 * a sample: the step is charged all of its load and nothing else, and so is
 * the node.
 */
START_TEST(power_exact_edges)
{
    bmc_start(0);
    bmc_measure();
    bmc_pass(300 * MS);
    bmc.watts[0] = 500;
    follow_start();
    bmc_pass(700 * MS);
    for (int i = 0; i < 10; i++) {
        bmc_measure();
        bmc_pass(S);
    }
    bmc_measure();
    bmc_pass(200 * MS);
    must_update();
    ck_assert_uint_eq(got.used_uj, UINT64_C(500) * 10900000);
    bmc.watts[0] = 100;
    joule_node_energy_destroy(node_energy);
    node_energy = NULL;
    bmc_pass(800 * MS);
    bmc_measure();
    ck_assert_uint_eq(snapshot.total.node_uj,
                      UINT64_C(30000000) + UINT64_C(500) * 10900000 + 80000000);
}
END_TEST

/* Begin at conf_set, the tasks 40 ms later: the load changes there. */
START_TEST(power_edge_later_than_begin)
{
    bmc_start(0);
    bmc_measure();
    bmc_pass(300 * MS);
    follow_start();
    bmc_pass(40 * MS);
    joule_node_energy_edge(node_energy);
    must_update();
    ck_assert_uint_eq(got.used_uj, 4000000);
    bmc.watts[0] = 500;
    bmc_pass(660 * MS);
    bmc_measure();
    must_update();
    ck_assert_uint_eq(got.used_uj, 4000000 + 500 * 660000);
}
END_TEST

START_TEST(power_destroyed_before_it_was_asked)
{
    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(S);
    joule_node_energy_destroy(node_energy);
    node_energy = NULL;
    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX), bmc.now_ns - S);
}
END_TEST

/* The extension was too much: what was said stays until it is true. */
START_TEST(power_never_falls)
{
    bmc.watts[0] = 500;
    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(S);
    must_update();
    ck_assert_uint_eq(got.used_uj, 500000000);
    bmc.watts[0] = 100;
    joule_board_edge(writer, bmc.now_ns - S);
    bmc_measure();
    for (int i = 1; i <= 10; i++) {
        must_update();
        ck_assert_uint_eq(got.used_uj,
                          i < 5 ? 500000000 : (uint64_t)i * 100000000);
        ck_assert_uint_eq(got.domain_uj[0], got.used_uj);
        bmc_pass(S);
        bmc_measure();
    }
}
END_TEST

START_TEST(power_goes_stale)
{
    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(3 * S);
    must_update();
    ck_assert_uint_eq(got.node_mw, 100000);
    ck_assert_int_eq(got.gap_ns, 0);
    bmc_pass(1);
    must_update();
    ck_assert_uint_eq(got.node_mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(got.domain_mw[1], JOULE_MW_UNKNOWN);
    ck_assert_int_eq(got.gap_ns, 3 * S + 1);
    /* Carried on for 300 s, not for ever. */
    bmc_pass(JOULE_POWER_BRIDGE_NS);
    must_update();
    ck_assert_uint_eq(got.used_uj, UINT64_C(30000000000));
    bmc_measure();
    must_update();
    ck_assert_uint_eq(got.node_mw, 100000);
    ck_assert_uint_eq(got.used_uj, UINT64_C(30000000000));
    ck_assert_int_eq(got.gap_ns, 303 * S + 1);
}
END_TEST

/* The BMC was away for 90 s when the step began, and for 10 s of it. */
START_TEST(power_begun_in_a_gap)
{
    bmc_start(0);
    bmc_measure();
    bmc_pass(90 * S);
    follow_start();
    bmc_pass(5 * S);
    must_update();
    ck_assert_int_eq(got.gap_ns, 5 * S);
    bmc_pass(5 * S);
    bmc_measure();
    for (int i = 0; i < 200; i++) {
        bmc_pass(S);
        bmc_measure();
    }
    must_update();
    ck_assert_int_eq(got.gap_ns, 10 * S);
    ck_assert_uint_eq(got.used_uj, UINT64_C(21000000000));
}
END_TEST

/* slurmd comes back with other labels, then with ours: the node goes on, the
 * labels count what was seen of them. */
START_TEST(power_with_other_labels)
{
    struct joule_domain ours = bmc.domain[1];
    uint64_t uj;

    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(S);
    bmc_measure();
    must_update();
    for (int round = 0; round < 2; round++) {
        snprintf(bmc.domain[1].name, sizeof(ours.name), "%s",
                 round ? ours.name : "GPU");
        joule_node_total_start(&snapshot.total, bmc.domain, 2,
                               snapshot.total.node_uj);
        bmc_publish();
        /* What the account follows is not changed by that. */
        uj = got.used_uj;
        bmc_pass(S);
        bmc_measure();
        bmc_pass(S);
        bmc_measure();
        joule_node_energy_update(node_energy, &got);
        ck_assert_uint_ge(got.used_uj, uj);
    }
    ck_assert_uint_eq(got.used_uj, 300000000);
    ck_assert_uint_eq(got.domain_uj[0], 200000000);
    ck_assert_uint_eq(got.domain_uj[1], 80000000);
}
END_TEST

/* The same file, but now of RAPL: only its total means something. */
START_TEST(power_on_a_board_of_counters)
{
    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(S);
    bmc_measure();
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000);
    add(JOULE_DOMAIN_PACKAGE, 0xFFFFFFF0);
    add(JOULE_DOMAIN_DRAM, 0xFFFFFFF0);
    joule_node_total_start(&snapshot.total, sampled.domain, 2,
                           snapshot.total.node_uj);
    sampler_run();
    for (int i = 0; i < 10; i++) {
        bmc_pass(S);
        sampled.now_ns = bmc.now_ns;
        sampled.ticks[0] += 50 * TICKS_PER_J;
        sampled.ticks[1] += 1;
        sampler_run();
        joule_node_energy_update(node_energy, &got);
    }
    must_update();
    ck_assert_uint_eq(got.used_uj, 100000000 + 500000000 + fake_uj(10));
    ck_assert_uint_eq(got.domain_uj[0], 100000000);
    ck_assert_uint_eq(got.domain_mw[0], JOULE_MW_UNKNOWN);
}
END_TEST

START_TEST(power_begin_again)
{
    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(S);
    bmc_measure();
    must_update();
    joule_node_energy_begin(node_energy);
    bmc_pass(S / 2);
    must_update();
    ck_assert_uint_eq(got.used_uj, 50000000);
    ck_assert_uint_eq(got.domain_uj[1], 20000000);
    ck_assert_int_eq(got.elapsed_ns, S / 2);
}
END_TEST

union cell {
    uint64_t u;
    double d;
};

/* Columns: NodePower, Socket0Power, node_uJ, Node_mW, Socket0_mW. */
static void has_row(struct joule_energy_columns *columns, double watts,
                    uint64_t uj)
{
    uint64_t u[5];
    double mw;
    void *row;

    must_update();
    row = joule_energy_columns_row(columns, &got, NULL);
    ck_assert_ptr_nonnull(row);
    memcpy(u, row, sizeof(u));
    ck_assert_uint_eq(u[0], (uint64_t)watts);
    ck_assert_uint_eq(u[2], uj);
    memcpy(&mw, &u[3], sizeof(mw));
    ck_assert_double_eq_tol(mw, watts * 1000, 0.001);
    memcpy(&mw, &u[4], sizeof(mw));
    ck_assert_double_eq_tol(mw, 40000, 0.001);
}

/* A step is registered after its first row has begun. */
START_TEST(power_begin_again_within_a_row)
{
    struct joule_energy_columns *columns =
        joule_energy_columns_create(&bmc.source, JOULE_ENERGY_COLUMNS_NODE);

    bmc_start(0);
    bmc_measure();
    follow_start();
    bmc_pass(20 * MS);
    must_update();
    ck_assert_ptr_null(joule_energy_columns_row(columns, &got, NULL));
    bmc_pass(5 * MS);
    joule_node_energy_begin(node_energy);
    bmc_pass(S);
    has_row(columns, 100, 100000000);
    bmc_pass(S);
    has_row(columns, 100, 200000000);
    /* Between two rows, what is before it is of none. */
    joule_node_energy_begin(node_energy);
    bmc_pass(S / 2);
    has_row(columns, 100, 50000000);
    joule_energy_columns_destroy(columns);
}
END_TEST

/* Power, step_uJ and step_mW, whatever the node's domains are. */
START_TEST(columns_of_a_shared_node)
{
    struct joule_energy_columns *columns =
        joule_energy_columns_create(&bmc.source, JOULE_ENERGY_COLUMNS_STEP);
    const struct joule_energy_column *list;
    union cell *row;
    size_t count;

    bmc_start(0);
    list = joule_energy_columns_list(columns, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(list[0].name, "Power");
    ck_assert_str_eq(list[1].name, "step_uJ");
    ck_assert_str_eq(list[2].name, "step_mW");
    row = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, row, 123456789, 2600);
    ck_assert_uint_eq(row[0].u, 3);
    ck_assert_uint_eq(row[1].u, 123456789);
    ck_assert_double_eq(row[2].d, 2600);
    row = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, row, 123456789, NAN);
    ck_assert_uint_eq(row[0].u, 0);
    ck_assert(isnan(row[2].d));
    joule_energy_columns_destroy(columns);
}
END_TEST

/* NodePower, Socket0Power, node_uJ, Node_mW, Socket0_mW, step_uJ, step_mW:
 * another job has come to a node that was the step's job's alone. */
START_TEST(columns_hide_the_node)
{
    struct joule_energy_columns *columns =
        joule_energy_columns_create(&bmc.source, JOULE_ENERGY_COLUMNS_ALONE);
    union cell *row;
    size_t count;

    bmc_start(0);
    bmc_measure();
    follow_start();
    must_update();
    ck_assert_ptr_null(joule_energy_columns_row(columns, &got, NULL));
    bmc_pass(S);
    must_update();
    row = joule_energy_columns_row(columns, &got, NULL);
    ck_assert_uint_eq(row[0].u, 100);
    joule_energy_columns_list(columns, &count);
    ck_assert_uint_eq(count, 7);
    row = joule_energy_columns_step_row(columns);
    joule_energy_columns_set_step(columns, row, 5, 7);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(row[i].u, 0);
    ck_assert(isnan(row[3].d) && isnan(row[4].d));
    ck_assert_uint_eq(row[5].u, 5);
    ck_assert_double_eq(row[6].d, 7);
    joule_energy_columns_destroy(columns);
}
END_TEST

/* Any schedule of samples, failures and questions against the truth, for a
 * load that changes at the edges of the step alone. */
static void random_step(unsigned seed)
{
    uint64_t before_uj = 0;
    double idle_w, load_w, truth_uj;
    int64_t begin_ns;

    srandom(seed);
    idle_w = 50 + (double)below(100);
    load_w = 50 + (double)below(900);
    bmc.watts[0] = idle_w;
    bmc_start(0);
    for (int i = 0; i < 5; i++) {
        bmc_measure();
        bmc_pass(1 + below(S));
    }
    follow_start();
    begin_ns = bmc.now_ns;
    bmc.watts[0] = load_w;
    for (int i = 0; i < 200; i++) {
        bmc.status[0] = below(10) ? JOULE_POWER_OK : (int)below(10);
        if (below(2))
            bmc_measure();
        bmc_pass(1 + below(S));
        if (below(3) == 0) {
            must_update();
            ck_assert_msg(got.used_uj >= before_uj, "seed %u fell", seed);
            before_uj = got.used_uj;
        }
    }
    bmc.status[0] = JOULE_POWER_OK;
    bmc_measure();
    must_update();
    truth_uj = load_w * (double)(bmc.now_ns - begin_ns) / 1000;
    /* Extended with the idle power before the first sample under load. */
    ck_assert_msg((double)got.used_uj >= truth_uj - 300 &&
                      (double)got.used_uj <= truth_uj + 300,
                  "seed %u: %" PRIu64 " instead of %.0f", seed, got.used_uj,
                  truth_uj);
}

START_TEST(power_random_steps)
{
    for (int i = 0; i < dice_rounds(50); i++) {
        random_step((unsigned)(_i * 1000 + i));
        teardown();
        setup_power();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node energy");
    TCase *bad = tcase_create("unknown");
    TCase *good = tcase_create("known");
    TCase *many = tcase_create("random");
    TCase *follow = tcase_create("power");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, not_begun);
    tcase_add_test(bad, followed_later);
    tcase_add_test(bad, no_memory);
    tcase_add_test(bad, destroy_null);
    tcase_add_test(bad, never_moves);
    tcase_add_test(bad, never_answers);
    tcase_add_test(bad, never_answers_beside_a_valid_board);
    tcase_add_test(bad, a_package_goes_and_comes);
    tcase_add_test(bad, guest_with_a_board);
    tcase_add_test(bad, board_of_other_domains);
    tcase_add_test(bad, set_back);
    tcase_add_test(bad, set_back_behind_the_sampler);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_add_test(good, board_knows_that_it_moves);
    tcase_add_test(good, exact_edges);
    tcase_add_test(good, begin_again);
    tcase_add_test(good, power);
    tcase_add_test(good, first_power_is_the_boards);
    tcase_add_test(good, bridged_wraps);
    tcase_add_test(good, not_bridged_without_board);
    tcase_add_test(good, slurmd_away);
    tcase_add_test(good, slurmd_back);
    tcase_add_test(good, gap_of_the_board);
    tcase_add_test(good, board_ahead);
    tcase_add_test(good, board_began_anew);
    tcase_add_test(good, every_seventh_fails);
    tcase_add_test(good, two_packages_and_dram);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(follow, setup_power, teardown);
    tcase_add_test(follow, power_without_memory);
    tcase_add_test(follow, power_not_begun);
    tcase_add_test(follow, power_without_board);
    tcase_add_test(follow, power_never_measured);
    tcase_add_test(follow, power_measured_later);
    tcase_add_test(follow, power_measured_later_on_a_base);
    tcase_add_test(follow, power_extended);
    tcase_add_test(follow, power_not_extended);
    tcase_add_test(follow, power_exact_edges);
    tcase_add_test(follow, power_edge_later_than_begin);
    tcase_add_test(follow, power_destroyed_before_it_was_asked);
    tcase_add_test(follow, power_never_falls);
    tcase_add_test(follow, power_goes_stale);
    tcase_add_test(follow, power_begun_in_a_gap);
    tcase_add_test(follow, power_with_other_labels);
    tcase_add_test(follow, power_on_a_board_of_counters);
    tcase_add_test(follow, power_begin_again);
    tcase_add_test(follow, power_begin_again_within_a_row);
    tcase_add_test(follow, columns_of_a_shared_node);
    tcase_add_test(follow, columns_hide_the_node);
    tcase_add_loop_test(follow, power_random_steps, 0, 8);
    suite_add_tcase(suite, follow);

    tcase_add_checked_fixture(many, setup, teardown);
    tcase_set_timeout(many, 300);
    tcase_add_loop_test(many, random_schedules, 0, 16);
    suite_add_tcase(suite, many);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
