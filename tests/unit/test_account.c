/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler's part is played by a tally and a board in the test: what it
 * does is then known to the reading.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/board/account.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake.h"
#include "tests/unit/tree.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

#define TICKS_PER_J 65536

static struct tree tree;
static struct fake fake;    /* read by the account */
static struct fake sampled; /* the same counters, read by the sampler */
static struct joule_board *writer, *reader;
static struct joule_snapshot snapshot;
static struct joule_account *account;
static struct joule_account_reading got;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    fake_init(&fake);
    fake_init(&sampled);
    writer = reader = NULL;
    account = NULL;
    memset(&got, 0, sizeof(got));
}

static void teardown(void)
{
    joule_account_destroy(account);
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
        joule_tally_start(&snapshot.tally, sampled.domain,
                          sampled.source.domain_count, 0);
        snapshot.node_mw = JOULE_MW_UNKNOWN;
    }
}

static void sampler_run(void)
{
    struct joule_reading readings[FAKE_MAX];

    joule_source_read(&sampled.source, readings);
    joule_tally_update(&snapshot.tally, sampled.domain, readings,
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
    account = joule_account_create(&fake.clock, &fake.source, reader);
    ck_assert_ptr_nonnull(account);
    joule_account_begin(account);
}

static void must_update(void)
{
    ck_assert_msg(joule_account_update(account, &got) == 0, "%s",
                  strerror(errno));
}

static void must_be_unknown(void)
{
    errno = 0;
    ck_assert_int_eq(joule_account_update(account, &got), -1);
    ck_assert_int_eq(errno, ENODATA);
}

START_TEST(not_begun)
{
    add(JOULE_DOMAIN_PACKAGE, 0);
    account = joule_account_create(&fake.clock, &fake.source, NULL);
    ck_assert_int_eq(joule_account_update(account, &got), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(no_memory)
{
    fail_calloc = 1;
    errno = 0;
    ck_assert_ptr_null(joule_account_create(&fake.clock, &fake.source, NULL));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(destroy_null)
{
    joule_account_destroy(NULL);
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
    ck_assert_uint_eq(snapshot.tally.valid, 1);
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
    ck_assert_uint_eq(snapshot.tally.counter[0].gaps, 1);
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
    joule_account_begin(account);
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
    joule_tally_start(&snapshot.tally, sampled.domain, 1,
                      snapshot.tally.node_uj);
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

/*
 * Any schedule of sampler runs, crashes, own readings, errors and pauses at
 * up to 1000 W, against the exact truth: never more than that, never less
 * than before, and exact as long as no gap is said.
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
        if (!account && i > 5) {
            account_start();
            true_uj();
        } else if (account && below(3) == 0) {
            rc = joule_account_update(account, &got);
            truth_uj = true_uj();
            if (rc == 0) {
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
    for (unsigned i = 0; i < 250; i++) {
        random_schedule((unsigned)_i * 1000 + i);
        teardown();
        setup();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("account");
    TCase *bad = tcase_create("unknown");
    TCase *good = tcase_create("known");
    TCase *many = tcase_create("random");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, not_begun);
    tcase_add_test(bad, no_memory);
    tcase_add_test(bad, destroy_null);
    tcase_add_test(bad, never_moves);
    tcase_add_test(bad, never_answers);
    tcase_add_test(bad, never_answers_beside_a_valid_board);
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
