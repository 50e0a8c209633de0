/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The source that is made of counters and a BMC: nobody who asks it waits for
 * the BMC, and nothing of what that says is lost.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/step/node_energy.h"
#include "common/energy/fused.h"
#include "common/sensors/fused_sensor.h"
#include "common/daemon/sampler.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/tree.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

static struct fake counters;
static struct fake_power bmc;
static struct joule_sensor *source;
static struct joule_power out[JOULE_DOMAINS_MAX];
static struct joule_error err;

/* Behind the label. */
#define COUNTERS (JOULE_FUSED_SENSOR_LABELS + 1)

static void setup(void)
{
    struct joule_fused_sensor_options opt = {
        .clock = &counters.clock,
        .counters = &counters.source,
        .bmc = &bmc.source,
        .bmc_period_ns = 2 * MS,
        .gap_ns = 3 * S,
    };

    fake_init(&counters);
    fake_add(&counters, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&counters, JOULE_DOMAIN_DRAM, 0, 4000000000);
    fake_power_init(&bmc);
    bmc.watts[0] = 250;
    fake_power_add(&bmc, "Mem", 40);
    source = joule_fused_sensor_create(&opt, &err);
    ck_assert_ptr_nonnull(source);
}

static void teardown(void)
{
    joule_sensor_destroy(source);
}

static int64_t real_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

/* 100 W and 20 W. */
static void pass(int64_t ns)
{
    counters.ticks[0] += (uint64_t)(100 * ns / 1000 * 1024 / 15625);
    counters.ticks[1] += (uint64_t)(20 * ns / 1000 * 1024 / 15625);
    counters.now_ns += ns;
    bmc.now_ns += ns;
}

static int ask(void)
{
    err.text[0] = '\0';
    return source->ops->read_power(source, out, &err);
}

/* Until the BMC's thread has read that often from here on. */
static void wait_for_reads(unsigned more)
{
    unsigned until = bmc.reads + more;

    for (int i = 0; i < 5000 && bmc.reads < until; i++)
        sleep_ms(1);
    ck_assert_uint_ge(bmc.reads, until);
}

static void begin(void)
{
    for (int i = 0; i < 5000 && ask() < 0; i++) {
        sleep_ms(1);
        pass(10 * MS);
    }
    wait_for_reads(2);
    pass(10 * MS);
    ck_assert_int_eq(ask(), 0);
}

START_TEST(domains)
{
    static const char *const names[] = {"Node", "BMC", "Mem", "domain-0",
                                        "domain-1"};

    ck_assert(joule_sensor_is_power(source) && joule_sensor_is_prompt(source));
    ck_assert_uint_eq(source->domain_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(source->domains[i].name, names[i]);
        ck_assert(source->domains[i].in_total == (i == 0));
    }
    ck_assert_int_eq(source->wrap_ns,
                     joule_domains_wrap_ns(counters.domain, 2));
}
END_TEST

/* Two columns of a profile would have one name. */
START_TEST(labels_that_cannot_be)
{
    static const char *const names[] = {"BMC", "domain_0"};
    struct joule_fused_sensor_options opt = {
        .clock = &counters.clock,
        .counters = &counters.source,
        .bmc = &bmc.source,
    };

    for (size_t i = 0; i < 2; i++) {
        strcpy(bmc.domain[1].name, names[i]);
        ck_assert_ptr_null(joule_fused_sensor_create(&opt, &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, names[i]));
    }
    strcpy(bmc.domain[1].name, "Mem");
}
END_TEST

START_TEST(readings)
{
    double node_j = 0, domain_j[2] = {0, 0};

    begin();
    for (int i = 0; i < 100; i++) {
        pass(100 * MS);
        if (i % 10 == 0)
            wait_for_reads(2);
        ck_assert_int_eq(ask(), 0);
        node_j += out[JOULE_FUSED_SENSOR_NODE].joules;
        domain_j[0] += out[COUNTERS].joules;
        domain_j[1] += out[COUNTERS + 1].joules;
        ck_assert_int_eq(out[0].mono_ns, counters.now_ns);
    }
    ck_assert_double_eq_tol(node_j, 2500, 0.1);
    ck_assert_double_eq_tol(domain_j[0], 1000, 0.1);
    ck_assert_double_eq_tol(domain_j[1], 200, 0.1);
    ck_assert_double_eq_tol(out[JOULE_FUSED_SENSOR_NODE].watts, 250, 0.1);
    ck_assert_double_eq_tol(out[JOULE_FUSED_SENSOR_BMC].watts, 250, 1e-9);
    ck_assert_double_eq_tol(out[JOULE_FUSED_SENSOR_LABELS].watts, 40, 1e-9);
    ck_assert(out[JOULE_FUSED_SENSOR_LABELS].is_held);
    ck_assert_double_eq_tol(out[COUNTERS].watts, 100, 0.1);
    ck_assert_double_eq_tol(out[COUNTERS + 1].watts, 20, 0.1);
}
END_TEST

/* A quantum of the counter within a microsecond makes no megawatt. */
START_TEST(power_is_a_mean)
{
    begin();
    pass(100 * MS);
    ck_assert_int_eq(ask(), 0);
    counters.ticks[0] += 10000;
    counters.now_ns += 1000;
    ck_assert_int_eq(ask(), 0);
    ck_assert_double_eq_tol(out[0].watts, 250, 1);
    ck_assert_double_gt(out[COUNTERS].joules, 0.1);
    ck_assert_double_eq_tol(out[COUNTERS].watts, 100, 1);
}
END_TEST

START_TEST(the_bmc_hangs)
{
    int64_t begin_ns;

    begin();
    bmc.hangs = true;
    for (int i = 0; i < 5000 && bmc.waits == 0; i++)
        sleep_ms(1);
    begin_ns = real_ns();
    for (int i = 0; i < 100; i++) {
        pass(100 * MS);
        ck_assert_int_eq(ask(), 0);
    }
    ck_assert_int_lt(real_ns() - begin_ns, S);
    /* 10 s without it */
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_BMC].status, JOULE_POWER_FAILED);
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_NODE].status, JOULE_POWER_OK);
    source->ops->interrupt(source);
    begin_ns = real_ns();
    ck_assert_int_eq(ask(), -1);
    ck_assert_int_eq(errno, ECANCELED);
    ck_assert_int_lt(real_ns() - begin_ns, S);
}
END_TEST

/* The sentence comes once, with a reading. */
START_TEST(the_bmc_fails)
{
    begin();
    bmc.text = "the BMC has no time";
    bmc.error = EBUSY;
    wait_for_reads(3);
    pass(S);
    ck_assert_int_eq(ask(), 0);
    ck_assert_str_eq(err.text, "the BMC has no time");
    bmc.error = EAGAIN;
    bmc.text = NULL;
    wait_for_reads(3);
    ck_assert_int_eq(ask(), -1); /* no time has passed */
    pass(S);
    ck_assert_int_eq(ask(), 0);
    ck_assert_str_eq(err.text, "");
    pass(5 * S);
    ck_assert_int_eq(ask(), 0);
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_BMC].status, JOULE_POWER_FAILED);
    bmc.error = 0;
    wait_for_reads(3);
    pass(MS);
    wait_for_reads(3);
    pass(MS);
    ck_assert_int_eq(ask(), 0);
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_BMC].status, JOULE_POWER_OK);
}
END_TEST

START_TEST(a_counter_fails)
{
    struct joule_error remark;

    begin();
    counters.error[0] = EIO;
    for (int i = 0; i < 10; i++) {
        pass(S);
        wait_for_reads(2);
        ask();
    }
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_NODE].status, JOULE_POWER_OK);
    ck_assert_int_eq(out[COUNTERS].status, JOULE_POWER_FAILED);
    ck_assert_int_eq(source->ops->remark(source, &remark), 1);
    ck_assert_ptr_nonnull(strstr(remark.text, "domain-0"));
    ck_assert_int_eq(source->ops->remark(source, &remark), 0);
}
END_TEST

/* What the BMC's own source has to say gets through, in its order. */
START_TEST(remarks)
{
    struct joule_error remark;

    begin();
    bmc.remark = "reads sensor 7";
    wait_for_reads(2);
    ck_assert_int_eq(source->ops->remark(source, &remark), 1);
    ck_assert_str_eq(remark.text, "reads sensor 7");
    ck_assert_int_eq(source->ops->remark(source, &remark), 0);
}
END_TEST

/* slurmd forks: the child has no thread, and gives back the memory. */
START_TEST(fork_without_thread)
{
    int status;
    pid_t pid;

    begin();
    pid = fork();
    if (pid == 0) {
        alarm(20);
        joule_sensor_destroy(source);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq((pass(S), ask()), 0);
}
END_TEST

/* The board has the state, and another slurmd goes on with it. */
START_TEST(sampled)
{
    struct tree tree;
    struct joule_sampler_options opt = {
        .clock = &counters.clock,
        .source = source,
        .node = "n1",
        .period_ns = 2 * MS,
    };
    static struct joule_snapshot snapshot;
    static struct joule_fused_state state;
    struct joule_fused_sensor_options again = {
        .clock = &counters.clock,
        .counters = &counters.source,
        .bmc = &bmc.source,
        .bmc_period_ns = 2 * MS,
        .gap_ns = 3 * S,
    };
    struct joule_sampler *sampler;
    struct joule_board *board;
    uint64_t before_uj;

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_mkdir(&tree, "run");
    opt.root_fd = tree.fd;
    sampler = joule_sampler_create(&opt, &err);
    ck_assert_msg(sampler != NULL, "%s", err.text);
    for (int i = 0; i < 200; i++) {
        pass(100 * MS);
        sleep_ms(3);
    }
    ck_assert_int_eq(joule_sampler_read(sampler, &snapshot), 0);
    ck_assert(snapshot.total.valid);
    joule_sampler_destroy(sampler);
    board = joule_board_open(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(board);
    ck_assert_int_eq(joule_board_read(board, &snapshot), 0);
    ck_assert_int_eq(joule_board_read_fused(board, &state), 0);
    ck_assert_int_eq(state.mono_ns, snapshot.total.mono_ns);
    before_uj = snapshot.total.node_uj;
    ck_assert_uint_gt(before_uj, 15000000);

    /* 20 s later */
    joule_sensor_destroy(source);
    pass(20 * S);
    bmc.is_interrupted = false;
    source = joule_fused_sensor_create(&again, &err);
    opt.source = source;
    sampler = joule_sampler_create(&opt, &err);
    for (int i = 0; i < 20; i++) {
        pass(10 * MS);
        sleep_ms(3);
    }
    joule_sampler_destroy(sampler);
    ck_assert_int_eq(joule_board_read(board, &snapshot), 0);
    ck_assert_double_eq_tol((double)(snapshot.total.node_uj - before_uj) / 1e6,
                            250 * 20.2, 250);
    ck_assert_int_eq(joule_board_read_fused(board, &state), 0);
    ck_assert_int_eq(state.mono_ns, snapshot.total.mono_ns);
    joule_board_destroy(board);
    tree_destroy(&tree);
}
END_TEST

/* ---- one that follows ---- */

static struct tree tree;
static struct joule_board *board;
static struct joule_snapshot snapshot;
static struct joule_sensor *follower;
static struct joule_node_energy *account;
static struct joule_node_energy_reading reading;

static bool has_other_counters;

/* What slurmd's thread does. */
static void publish(void)
{
    struct joule_fused_state state;

    if (ask() == 0)
        joule_node_total_add(&snapshot.total, source->domains, out);
    snapshot.node_mw = (uint64_t)(out[JOULE_FUSED_SENSOR_NODE].watts * 1000);
    state = *source->ops->state(source);
    state.rapl.domain_key += has_other_counters;
    joule_board_publish_fused(board, &snapshot, &state);
}

static void follow(bool smooth, struct joule_sensor *its_counters)
{
    struct joule_fused_sensor_options opt = {
        .clock = &counters.clock,
        .counters = its_counters,
        .bmc = &bmc.source,
        .gap_ns = 3 * S,
    };

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_mkdir(&tree, "run");
    board = joule_board_create(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(board);
    memset(&snapshot, 0, sizeof(snapshot));
    snapshot.period_ns = S;
    joule_node_total_start(&snapshot.total, source->domains,
                           source->domain_count, 0);
    begin();
    joule_node_total_add(&snapshot.total, source->domains, out);
    pass(S);
    publish();
    follower = joule_fused_sensor_create(&opt, &err);
    ck_assert_ptr_nonnull(follower);
    account = joule_node_energy_create(&counters.clock, follower, board);
    ck_assert_ptr_nonnull(account);
    if (smooth)
        joule_node_energy_smooth(account);
    joule_node_energy_begin(account);
}

static void unfollow(void)
{
    joule_node_energy_destroy(account);
    joule_sensor_destroy(follower);
    joule_board_destroy(board);
    tree_destroy(&tree);
}

/* A row. */
static double row_w(int64_t ns)
{
    uint64_t before_uj = reading.used_uj;

    pass(ns);
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    return (double)(reading.used_uj - before_uj) * 1e3 / (double)ns;
}

/* Of seconds with a hundred rows, the last [count]. */
static void rows(int count, double least_w, double most_w)
{
    for (int i = 0; i < count * 100; i++) {
        double watts = row_w(10 * MS);

        ck_assert_double_ge(watts, least_w);
        ck_assert_double_le(watts, most_w);
        if (i % 100 == 99) {
            wait_for_reads(2);
            publish();
        }
    }
}

/* Rows of 10 ms are what the counters say of them and the BMC of all; that it
 * had read 20 W more half a second before a sample is no jump of 1000 W. */
START_TEST(followed)
{
    uint64_t begin_uj;

    memset(&reading, 0, sizeof(reading));
    follow(true, &counters.source);
    begin_uj = snapshot.total.node_uj;
    rows(2, 249, 251);
    bmc.late_ns = 500 * MS;
    bmc.watts[0] = 270;
    rows(1, 249, 251);
    ck_assert_double_eq_tol(row_w(10 * MS), 260, 1); /* begins before */
    rows(10, 269, 281);
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 1e5);
    ck_assert_double_eq_tol(
        (double)reading.domain_uj[JOULE_FUSED_SENSOR_LABELS], 40 * 13.01e6,
        1e4);
    ck_assert_double_eq_tol((double)reading.domain_uj[COUNTERS], 1301e6, 1e5);
    ck_assert_double_eq_tol((double)reading.domain_uj[COUNTERS + 1], 260.2e6,
                            1e5);
    ck_assert_uint_eq(reading.domain_mw[JOULE_FUSED_SENSOR_LABELS], 40000);
    unfollow();
}
END_TEST

/* A figure is what the board says at once. */
START_TEST(followed_at_once)
{
    uint64_t begin_uj;

    memset(&reading, 0, sizeof(reading));
    follow(false, &counters.source);
    begin_uj = snapshot.total.node_uj;
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    ck_assert_double_eq_tol((double)reading.node_mw, 250e3, 1e3);
    bmc.late_ns = 500 * MS;
    bmc.watts[0] = 270;
    rows(1, 249, 251);
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 1e3);
    unfollow();
}
END_TEST

/* slurmd is away for longer than a counter may take to wrap.  The BMC's last
 * power holds for 300 s, as nothing has been learned. */
START_TEST(followed_alone)
{
    memset(&reading, 0, sizeof(reading));
    follow(true, &counters.source);
    for (int i = 0; i < 60; i++) {
        double watts = row_w(10 * S);

        ck_assert_double_eq_tol(watts, i < 29 ? 250 : 120, 1);
    }
    ck_assert_double_eq_tol((double)reading.domain_uj[COUNTERS], 60000e6, 1e6);
    ck_assert_uint_eq(reading.domain_mw[JOULE_FUSED_SENSOR_LABELS],
                      JOULE_MW_UNKNOWN);
    unfollow();
}
END_TEST

/* The state of a slurmd whose counters are others is of no use here; its
 * samples are. */
START_TEST(followed_with_other_counters)
{
    uint64_t begin_uj;

    memset(&reading, 0, sizeof(reading));
    follow(true, &counters.source);
    rows(1, 249, 251);
    begin_uj = snapshot.total.node_uj - reading.used_uj;
    has_other_counters = true;
    bmc.watts[0] = 400;
    rows(10, 0, 1000);
    has_other_counters = false;
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 2e8);
    unfollow();
}
END_TEST

/* Without counters, what is carried on while the BMC is away has been said. */
START_TEST(followed_without_the_bmc)
{
    struct joule_fused_sensor_options opt = {.clock = &counters.clock,
                                             .bmc = &bmc.source,
                                             .bmc_period_ns = 2 * MS,
                                             .gap_ns = 3 * S};

    joule_sensor_destroy(source);
    source = joule_fused_sensor_create(&opt, &err);
    ck_assert_ptr_nonnull(source);
    memset(&reading, 0, sizeof(reading));
    follow(true, NULL);
    rows(3, 249, 251);
    bmc.status[0] = JOULE_POWER_FAILED;
    rows(20, 249, 251);
    bmc.status[0] = JOULE_POWER_OK;
    rows(5, 249, 251);
    unfollow();
}
END_TEST

/* A label that the BMC does not measure is not known, and takes nothing from
 * the node. */
START_TEST(label_not_measured)
{
    memset(&reading, 0, sizeof(reading));
    follow(true, &counters.source);
    bmc.status[1] = JOULE_POWER_UNAVAILABLE;
    rows(5, 249, 251);
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_LABELS].status,
                     JOULE_POWER_UNAVAILABLE);
    ck_assert_int_eq(out[JOULE_FUSED_SENSOR_NODE].status, JOULE_POWER_OK);
    ck_assert_uint_eq(reading.domain_mw[JOULE_FUSED_SENSOR_LABELS],
                      JOULE_MW_UNKNOWN);
    unfollow();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fused sensor");
    TCase *tc = tcase_create("fusion");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, domains);
    tcase_add_test(tc, readings);
    tcase_add_test(tc, power_is_a_mean);
    tcase_add_test(tc, the_bmc_hangs);
    tcase_add_test(tc, the_bmc_fails);
    tcase_add_test(tc, a_counter_fails);
    tcase_add_test(tc, remarks);
    tcase_add_test(tc, fork_without_thread);
    tcase_add_test(tc, sampled);
    tcase_add_test(tc, labels_that_cannot_be);
    tcase_add_test(tc, followed);
    tcase_add_test(tc, followed_at_once);
    tcase_add_test(tc, followed_alone);
    tcase_add_test(tc, followed_with_other_counters);
    tcase_add_test(tc, followed_without_the_bmc);
    tcase_add_test(tc, label_not_measured);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
