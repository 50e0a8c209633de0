/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler's thread wakes by the kernel's clock, every 10 ms; the counters
 * and the time that it reads are the test's, in memory that children share.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sampler/sampler.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define S         JOULE_NS_PER_S
#define MS        JOULE_NS_PER_MS
#define PERIOD    (10 * MS)
#define TICKS_J   65536
#define PATIENCE  2000 /* of 5 ms */
#define TEXTS_MAX 64

static struct tree tree;
static struct fake *fake;
static struct joule_error err;

/* What was told; from the sampler's threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[TEXTS_MAX][JOULE_ERROR_MAX];
static int told;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(fake, MAP_FAILED);
    fake_init(fake);
    memset(&err, 0, sizeof(err));
    told = 0;
}

static void teardown(void)
{
    munmap(fake, sizeof(*fake));
    tree_destroy(&tree);
}

static void on_event(enum joule_event event, const char *text, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    if (told < TEXTS_MAX)
        snprintf(texts[told++], sizeof(texts[0]), "%s: %s",
                 event == JOULE_EVENT_PROBLEM ? "problem" : "info", text);
    pthread_mutex_unlock(&lock);
}

/* How often something with these words was told. */
static int count_told(const char *words)
{
    int n = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < told; i++)
        n += strstr(texts[i], words) != NULL;
    pthread_mutex_unlock(&lock);
    return n;
}

static struct joule_sampler *create_with(const char *node, int64_t period_ns)
{
    struct joule_sampler_options opt = {
        .clock = &fake->clock,
        .source = &fake->source,
        .root_fd = tree.fd,
        .node = node,
        .period_ns = period_ns,
        .event = on_event,
    };

    return joule_sampler_create(&opt, &err);
}

static struct joule_sampler *must_create(void)
{
    struct joule_sampler *s = create_with("n1", PERIOD);

    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

static void pass(int64_t ns, uint64_t j)
{
    /* Energy first: a sample in between sees no more than the whole step. */
    for (size_t i = 0; i < fake->source.domain_count; i++)
        fake->ticks[i] += j * TICKS_J;
    fake->now_ns += ns;
}

/* Until [n] more samples have been taken. */
static struct joule_snapshot after(struct joule_sampler *s, uint64_t n)
{
    struct joule_snapshot snap;
    uint64_t first;
    int tries;

    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    first = snap.samples;
    for (tries = 0; snap.samples < first + n && tries < PATIENCE; tries++) {
        usleep(5000);
        ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    }
    ck_assert_uint_ge(snap.samples, first + n);
    return snap;
}

static void wait_told(const char *words)
{
    for (int tries = 0; !count_told(words) && tries < PATIENCE; tries++)
        usleep(5000);
    ck_assert_msg(count_told(words) > 0, "\"%s\" was not told", words);
}

START_TEST(bad_node)
{
    unsigned fds = tree_open_fds();

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    ck_assert_ptr_null(create_with("../n1", PERIOD));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "node name"));
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(no_boot_id)
{
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    tree_remove(&tree, "proc/sys/kernel/random/boot_id");
    ck_assert_ptr_null(create_with("n1", PERIOD));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(bad_root)
{
    int fd = tree.fd;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    tree.fd = -1;
    ck_assert_ptr_null(create_with("n1", PERIOD));
    ck_assert_int_eq(errno, EBADF);
    tree.fd = fd;
}
END_TEST

/* The sampler itself, then the board: each allocation but the thread's. */
START_TEST(no_memory)
{
    unsigned fds = tree_open_fds();

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    for (int n = 1; n <= 2; n++) {
        fail_calloc = n;
        ck_assert_ptr_null(create_with("n1", PERIOD));
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_int_eq(fail_calloc, 0);
        ck_assert_uint_eq(tree_open_fds(), fds);
    }
    joule_sampler_destroy(must_create());
}
END_TEST

START_TEST(destroy_null)
{
    joule_sampler_destroy(NULL);
}
END_TEST

START_TEST(period)
{
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    ck_assert_int_eq(joule_sampler_period_ns(fake->domain, 1, 60 * S),
                     INT64_C(65536000000) / 3);
    ck_assert_int_eq(joule_sampler_period_ns(fake->domain, 1, 21 * S), 21 * S);
    ck_assert_int_eq(joule_sampler_period_ns(fake->domain, 1, PERIOD), PERIOD);
    fake->domain[0].width_bits = 64;
    ck_assert_int_eq(joule_sampler_period_ns(fake->domain, 1, 60 * S), 60 * S);
}
END_TEST

START_TEST(never_moves)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    for (int i = 0; i < 5; i++) {
        pass(2 * S, 0);
        snap = after(s, 2);
        ck_assert_uint_eq(snap.tally.valid, 0);
        ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
    }
    ck_assert_int_eq(count_told("problem: the energy counters do not move"), 1);
    pass(S, 10);
    snap = after(s, 3);
    ck_assert_uint_eq(snap.tally.valid, 1);
    ck_assert_int_eq(count_told("info: the energy counters move now"), 1);
    joule_sampler_destroy(s);
    ck_assert_int_eq(told, 2);
}
END_TEST

START_TEST(read_error_is_told_once)
{
    struct joule_sampler *s;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(fake, JOULE_DOMAIN_DRAM, 0, 0);
    s = must_create();
    for (int i = 0; i < 10; i++) {
        fake->error[i % 2] = i % 3 ? EIO : 0;
        pass(PERIOD, 1);
        after(s, 2);
    }
    joule_sampler_destroy(s);
    ck_assert_int_eq(count_told("problem: reading energy counter"), 1);
    ck_assert_int_eq(told, 1);
}
END_TEST

START_TEST(stale_and_back)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    for (int i = 1; i <= 3; i++) {
        pass(S, 10);
        snap = after(s, 3);
        ck_assert_uint_eq(snap.stale, 0);
        ck_assert_uint_ne(snap.average_mw, JOULE_MW_UNKNOWN);
        pass(4 * S, 0);
        snap = after(s, 3);
        ck_assert_uint_eq(snap.stale, 1);
        ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.tally.node_uj, (uint64_t)i * 10000000);
        ck_assert_int_eq(count_told("problem: the energy counters have stopp"),
                         i);
    }
    pass(S, 10);
    after(s, 3);
    ck_assert_int_eq(count_told("info: the energy counters move again"), 3);
    joule_sampler_destroy(s);
    ck_assert_int_eq(told, 6);
}
END_TEST

START_TEST(first_sample_is_there)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = create_with("n1", 1000 * S);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.samples, 1);
    ck_assert_uint_eq(snap.tally.valid, 0);
    ck_assert_int_eq(snap.period_ns, 1000 * S);
    ck_assert_int_eq(snap.since_ns, fake->now_ns);
    ck_assert_int_eq(snap.wall_ns, fake_wall_ns(fake));
    joule_sampler_destroy(s);
}
END_TEST

/* The end does not wait for the period, and the last sample is of the end. */
START_TEST(last_sample)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = create_with("n1", 1000 * S);
    pass(S, 100);
    joule_sampler_destroy(s);
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.samples, 3);
    ck_assert_uint_eq(snap.tally.node_uj, 100000000);
    ck_assert_uint_eq(snap.average_mw, 100000);
    joule_sampler_destroy(s);
}
END_TEST

/* Samples at the same moment say nothing about power: the figure stays. */
START_TEST(power_of_no_time)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = create_with("n1", 1000 * S);
    pass(S, 100);
    joule_sampler_destroy(s);
    pass(S, 200);
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.node_mw, 200000);
    fake->now_ns += 1000;
    fake->ticks[0] += 20000; /* one update step: 300 W would be 305 kW */
    joule_sampler_destroy(s);
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.node_mw, 200000);
    ck_assert_uint_eq(snap.tally.node_uj, 300000000 + fake_uj(20000));
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(total_goes_on)
{
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, UINT32_MAX - 1000);
    for (uint64_t i = 0; i < 10; i++) {
        struct joule_sampler *s = must_create();

        snap = after(s, 1);
        ck_assert_uint_eq(snap.tally.node_uj, i * 30000000);
        pass(S, 10);
        snap = after(s, 2);
        ck_assert_uint_eq(snap.tally.node_uj, i * 30000000 + 10000000);
        joule_sampler_destroy(s);
        pass(20 * S, 20); /* away */
    }
    ck_assert_int_eq(count_told("info: the node total goes on from"), 9);
    ck_assert_int_eq(snap.tally.gap_ns, 0);
}
END_TEST

START_TEST(away_too_long)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    pass(S, 10);
    after(s, 2);
    joule_sampler_destroy(s);
    pass(100 * S, 20);
    s = must_create();
    snap = after(s, 1);
    ck_assert_int_eq(snap.tally.gap_ns, 100 * S);
    ck_assert_uint_eq(snap.tally.node_uj, 30000000);
    joule_sampler_destroy(s);
}
END_TEST

/* A total of another boot is not gone on with. */
START_TEST(other_boot)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    pass(S, 10);
    after(s, 2);
    joule_sampler_destroy(s);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-2\n");
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.tally.node_uj, 0);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(domains_change)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    pass(S, 10);
    after(s, 2);
    joule_sampler_destroy(s);
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 1, 12345);
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.tally.node_uj, 10000000);
    ck_assert_uint_eq(snap.tally.valid, 0);
    pass(S, 10);
    snap = after(s, 2);
    ck_assert_uint_eq(snap.tally.node_uj, 30000000);
    ck_assert_uint_eq(snap.tally.valid, 1);
    joule_sampler_destroy(s);
    ck_assert_int_eq(count_told("info: the energy domains have changed"), 1);
    fake->source.domain_count = 1;
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.tally.node_uj, 30000000);
    joule_sampler_destroy(s);
}
END_TEST

/* A process with a sampler, killed when it has seen [uj]. */
static void sample_until_killed(uint64_t uj)
{
    struct joule_board *board = NULL;
    struct joule_snapshot snap = {0};
    int status, tries;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!create_with("n1", PERIOD))
            _exit(1);
        for (;;)
            pause();
    }
    for (tries = 0; snap.tally.node_uj < uj && tries < PATIENCE; tries++) {
        usleep(5000);
        if (!board)
            board = joule_board_open(tree.fd, "n1", NULL);
        if (board)
            joule_board_read(board, &snap);
        if (tries == 20)
            pass(S, 10);
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    joule_board_destroy(board);
    ck_assert_uint_eq(snap.tally.node_uj, uj);
}

START_TEST(killed)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    for (uint64_t i = 0; i < 3; i++) {
        sample_until_killed(10000000 + i * 30000000);
        pass(20 * S, 20);
    }
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.tally.node_uj, 90000000);
    ck_assert_int_eq(snap.tally.gap_ns, 0);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(handover)
{
    struct joule_sampler *old, *new;
    struct joule_snapshot snap;
    int tries;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    old = must_create();
    pass(S, 10);
    after(old, 2);
    new = must_create();
    usleep(50000);
    errno = 0;
    ck_assert_int_eq(joule_sampler_read(new, &snap), -1);
    ck_assert_int_eq(errno, ENODATA);
    joule_sampler_destroy(old);
    for (tries = 0; joule_sampler_read(new, &snap) < 0 && tries < PATIENCE;
         tries++)
        usleep(5000);
    pass(S, 10);
    snap = after(new, 2);
    ck_assert_uint_eq(snap.tally.node_uj, 20000000);
    ck_assert_int_eq(count_told("info: the node total goes on from"), 1);
    joule_sampler_destroy(new);
    ck_assert_int_eq(told, 1);
}
END_TEST

START_TEST(never_had_the_board)
{
    struct joule_sampler *old, *new;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    old = must_create();
    new = must_create();
    usleep(50000);
    joule_sampler_destroy(new);
    joule_sampler_destroy(old);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* Anything but another writer is a sentence, once. */
START_TEST(board_spoilt_while_waiting)
{
    struct joule_sampler *old, *new;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    old = must_create();
    new = must_create();
    ck_assert_int_eq(fchmodat(tree.fd, "run/slurm-joule/n1", 0777, 0), 0);
    wait_told("problem: energy is unknown on this node");
    usleep(50000);
    joule_sampler_destroy(new);
    joule_sampler_destroy(old);
    ck_assert_int_eq(told, 1);
}
END_TEST

/* 0: as wanted; else the line that was not. */
static int in_child(struct joule_sampler *s, struct joule_sampler *waiting)
{
    struct joule_snapshot snap;

    /* The thread goes on in the parent: its board will do. */
    if (joule_sampler_read(s, &snap) < 0 || snap.tally.node_uj != 10000000)
        return __LINE__;
    if (joule_sampler_read(waiting, &snap) == 0 || errno != ECHILD)
        return __LINE__;
    /* A clock of our own, beyond what the parent's thread publishes. */
    fake->clock.arg = memcpy(malloc(sizeof(*fake)), fake, sizeof(*fake));
    ((struct fake *)fake->clock.arg)->now_ns += 3 * PERIOD + 1;
    if (joule_sampler_read(s, &snap) == 0 || errno != ECHILD)
        return __LINE__;
    fake->clock.arg = fake;
    joule_sampler_destroy(waiting);
    joule_sampler_destroy(s);
    return 0;
}

START_TEST(fork_leaves_the_thread_behind)
{
    struct joule_sampler *s, *waiting;
    int status;
    pid_t pid;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = must_create();
    waiting = must_create();
    pass(S, 10);
    after(s, 2);
    pid = fork();
    if (pid == 0)
        _exit(in_child(s, waiting) ? 1 : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    /* The parent's is as it was, the lock included. */
    pass(S, 10);
    ck_assert_uint_eq(after(s, 2).tally.node_uj, 20000000);
    joule_sampler_destroy(waiting);
    joule_sampler_destroy(s);
}
END_TEST

/* A child of fork has the descriptor too, and with it the lock: the next
 * sampler waits until the child has let go of it. */
START_TEST(child_keeps_the_lock)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;
    int fds[2], status;
    pid_t pid;
    char byte = 0;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    ck_assert_int_eq(pipe(fds), 0);
    s = must_create();
    pass(S, 10);
    after(s, 2);
    pid = fork();
    if (pid == 0) {
        if (read(fds[0], &byte, 1) != 1)
            _exit(1);
        joule_sampler_destroy(s);
        _exit(0);
    }
    joule_sampler_destroy(s);
    s = must_create();
    ck_assert_int_eq(joule_sampler_read(s, &snap), -1);
    ck_assert_int_eq(write(fds[1], "", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    for (int tries = 0; joule_sampler_read(s, &snap) < 0 && tries < PATIENCE;
         tries++)
        usleep(5000);
    ck_assert_uint_eq(after(s, 1).tally.node_uj, 10000000);
    joule_sampler_destroy(s);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

struct reader {
    struct joule_sampler *sampler;
    _Atomic bool stop;
    _Atomic unsigned fell, failed;
};

static void *read_for_ever(void *arg)
{
    struct reader *r = arg;
    struct joule_snapshot snap;
    uint64_t last_uj = 0;

    while (!r->stop) {
        if (joule_sampler_read(r->sampler, &snap) < 0) {
            r->failed++;
            continue;
        }
        r->fell += snap.tally.node_uj < last_uj;
        last_uj = snap.tally.node_uj;
    }
    return NULL;
}

START_TEST(readers)
{
    struct reader r = {0};
    pthread_t threads[2];

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, UINT32_MAX - 1000);
    fake_add(fake, JOULE_DOMAIN_DRAM, 0, 0);
    fake->fail_every = 7;
    r.sampler = must_create();
    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_for_ever, &r),
                         0);
    for (int i = 0; i < 100; i++) {
        /* Clock and counters cannot move as one: a sample in between must
         * not look like a counter that was set back. */
        pass(10 * S, 20);
        usleep(10000);
    }
    fake->fail_every = 0;
    ck_assert_uint_eq(after(r.sampler, 2).tally.node_uj,
                      UINT64_C(4000000000));
    r.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(r.fell, 0);
    ck_assert_uint_eq(r.failed, 0);
    joule_sampler_destroy(r.sampler);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *bad = tcase_create("bad counters");
    TCase *good = tcase_create("counters");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_set_timeout(bad, 60);
    tcase_add_test(bad, bad_node);
    tcase_add_test(bad, no_boot_id);
    tcase_add_test(bad, bad_root);
    tcase_add_test(bad, no_memory);
    tcase_add_test(bad, destroy_null);
    tcase_add_test(bad, never_moves);
    tcase_add_test(bad, read_error_is_told_once);
    tcase_add_test(bad, stale_and_back);
    tcase_add_test(bad, board_spoilt_while_waiting);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_set_timeout(good, 60);
    tcase_add_test(good, period);
    tcase_add_test(good, first_sample_is_there);
    tcase_add_test(good, last_sample);
    tcase_add_test(good, power_of_no_time);
    tcase_add_test(good, total_goes_on);
    tcase_add_test(good, away_too_long);
    tcase_add_test(good, other_boot);
    tcase_add_test(good, domains_change);
    tcase_add_test(good, killed);
    tcase_add_test(good, handover);
    tcase_add_test(good, never_had_the_board);
    tcase_add_test(good, fork_leaves_the_thread_behind);
    tcase_add_test(good, child_keeps_the_lock);
    tcase_add_test(good, readers);
    suite_add_tcase(suite, good);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
