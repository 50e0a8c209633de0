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

#include "common/daemon/sampler.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
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
    tree_process(&tree, (unsigned)getpid(), 5);
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
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(fake->domain, 1), 60 * S),
        INT64_C(65536000000) / 3);
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(fake->domain, 1), 21 * S),
        21 * S);
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(fake->domain, 1), PERIOD),
        PERIOD);
    fake->domain[0].width_bits = 64;
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(fake->domain, 1), 60 * S),
        60 * S);
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
        ck_assert_uint_eq(snap.total.valid, 0);
        ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
    }
    ck_assert_int_eq(count_told("problem: the energy counters do not move"), 1);
    pass(S, 10);
    snap = after(s, 3);
    ck_assert_uint_eq(snap.total.valid, 1);
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

START_TEST(a_part_is_lost)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    s = must_create();
    fake->ticks[1]++;
    pass(S, 10);
    snap = after(s, 3);
    ck_assert_uint_eq(snap.total.valid, 1);
    for (int i = 1; i <= 2; i++) {
        fake->error[1] = ENXIO;
        for (int k = 0; k < 10; k++) {
            pass(S, 10);
            snap = after(s, 3);
        }
        ck_assert_uint_eq(snap.total.valid, 0);
        ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
        ck_assert_int_eq(count_told("problem: energy counter domain-1 answers "
                                    "on no CPU (on CPU 1: No such device"),
                         i);
        fake->error[1] = 0;
        fake->ticks[1]++;
        pass(S, 10);
        snap = after(s, 3);
        ck_assert_uint_eq(snap.total.valid, 1);
        ck_assert_int_eq(count_told("info: the energy counters answer again"),
                         i);
    }
    joule_sampler_destroy(s);
    /* And once that a reading failed. */
    ck_assert_int_eq(told, 5);
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
        ck_assert_uint_eq(snap.total.node_uj, (uint64_t)i * 10000000);
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
    ck_assert_uint_eq(snap.total.valid, 0);
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
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
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
    ck_assert_uint_eq(snap.total.node_uj, 300000000 + fake_uj(20000));
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
        ck_assert_uint_eq(snap.total.node_uj, i * 30000000);
        pass(S, 10);
        snap = after(s, 2);
        ck_assert_uint_eq(snap.total.node_uj, i * 30000000 + 10000000);
        joule_sampler_destroy(s);
        pass(20 * S, 20); /* away */
    }
    ck_assert_int_eq(count_told("info: the node total goes on from"), 9);
    ck_assert_int_eq(snap.total.gap_ns, 0);
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
    ck_assert_int_eq(snap.total.gap_ns, 100 * S);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
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
    ck_assert_uint_eq(snap.total.node_uj, 0);
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
    ck_assert_uint_eq(snap.total.node_uj, 10000000);
    ck_assert_uint_eq(snap.total.valid, 0);
    pass(S, 10);
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
    ck_assert_uint_eq(snap.total.valid, 1);
    joule_sampler_destroy(s);
    ck_assert_int_eq(count_told("info: the energy domains have changed"), 1);
    fake->source.domain_count = 1;
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
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
    for (tries = 0; snap.total.node_uj < uj && tries < PATIENCE; tries++) {
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
    ck_assert_uint_eq(snap.total.node_uj, uj);
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
    ck_assert_uint_eq(snap.total.node_uj, 90000000);
    ck_assert_int_eq(snap.total.gap_ns, 0);
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
    ck_assert_uint_eq(snap.total.node_uj, 20000000);
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

    if (joule_sampler_read(waiting, &snap) == 0 || errno != ECHILD)
        return __LINE__;
    if (joule_sampler_read(s, &snap) == 0 || errno != ECHILD)
        return __LINE__;
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
    ck_assert_uint_eq(after(s, 2).total.node_uj, 20000000);
    joule_sampler_destroy(waiting);
    joule_sampler_destroy(s);
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
        r->fell += snap.total.node_uj < last_uj;
        last_uj = snap.total.node_uj;
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
    ck_assert_uint_eq(after(r.sampler, 2).total.node_uj, UINT64_C(4000000000));
    r.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(r.fell, 0);
    ck_assert_uint_eq(r.failed, 0);
    joule_sampler_destroy(r.sampler);
}
END_TEST

/* ---- power sources ---- */

static struct fake_power *bmc;

static void setup_power(void)
{
    setup();
    bmc = mmap(NULL, sizeof(*bmc), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bmc, MAP_FAILED);
    fake_power_init(bmc);
    fake_power_add(bmc, "Socket0", 40);
}

static void teardown_power(void)
{
    munmap(bmc, sizeof(*bmc));
    teardown();
}

static struct joule_sampler *power_create(int64_t period_ns)
{
    struct joule_sampler_options opt = {
        .clock = &bmc->clock,
        .source = &bmc->source,
        .root_fd = tree.fd,
        .node = "n1",
        .period_ns = period_ns,
        .event = on_event,
    };
    struct joule_sampler *s;

    bmc->is_interrupted = false;
    s = joule_sampler_create(&opt, &err);
    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

/* Until [n] readings have begun and ended after this call. */
static struct joule_snapshot power_after(struct joule_sampler *s, unsigned n)
{
    struct joule_snapshot snap;
    unsigned first = bmc->reads;

    for (int tries = 0; bmc->reads < first + n + 1 && tries < PATIENCE; tries++)
        usleep(2000);
    ck_assert_uint_ge(bmc->reads, first + n + 1);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    return snap;
}

/* The time moves by [ns], with a reading at its end. */
static struct joule_snapshot power_pass(struct joule_sampler *s, int64_t ns)
{
    bmc->now_ns += ns;
    return power_after(s, 2);
}

static int64_t kernel_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Neither begin nor end waits for a BMC. */
START_TEST(power_hangs)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;
    int64_t begun_ms = kernel_ms(), ms;

    bmc->hangs = true;
    s = power_create(PERIOD);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_int_lt(kernel_ms() - begun_ms, 500);
    ck_assert_uint_eq(snap.total.valid, 0);
    ck_assert_uint_eq(snap.stale, 1);
    ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
    for (int tries = 0; bmc->waits == 0 && tries < PATIENCE; tries++)
        usleep(2000);
    ck_assert_uint_eq(bmc->waits, 1);
    begun_ms = kernel_ms();
    joule_sampler_destroy(s);
    ms = kernel_ms() - begun_ms;
    ck_assert_msg(ms < 500, "%d ms", (int)ms);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* At any point of the thread's loop, many times.  A busy machine may stop this
 * process now and then; one that waits for the BMC does so every other time. */
START_TEST(power_destroy_at_any_time)
{
    int64_t longest_ms = 0;
    int slow = 0;

    srandom(3);
    for (int i = 0; i < 200; i++) {
        struct joule_sampler *s;
        int64_t begun_ms, took_ms;

        bmc->hangs = i % 2;
        bmc->slow_ns = random() % 3 * MS;
        s = power_create(i % 3 ? PERIOD : 1000 * S);
        usleep((useconds_t)(random() % 5000));
        begun_ms = kernel_ms();
        joule_sampler_destroy(s);
        took_ms = kernel_ms() - begun_ms;
        slow += took_ms >= 250;
        if (took_ms > longest_ms)
            longest_ms = took_ms;
    }
    ck_assert_msg(slow <= 20 && longest_ms < 1000, "%d above 250 ms, one of %d",
                  slow, (int)longest_ms);
}
END_TEST

/* The thread sits in a reading and cannot publish that power is old. */
START_TEST(power_hangs_later)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s, 1);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.node_mw, 100000);
    ck_assert_uint_eq(snap.stale, 0);
    bmc->hangs = true;
    while (bmc->waits == 0)
        usleep(2000);
    bmc->now_ns += 3 * S;
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.node_mw, 100000);
    bmc->now_ns += 1;
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(snap.stale, 1);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
    bmc->hangs = false;
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.node_mw, 100000);
    ck_assert_uint_eq(snap.total.node_uj, 400000000);
    ck_assert_int_eq(snap.total.gap_ns, 3 * S + 1);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_fails)
{
    static const int silent[] = {EAGAIN, ECANCELED};
    struct joule_sampler *s;
    struct joule_snapshot snap;

    bmc->error = silent[0];
    s = power_create(PERIOD);
    for (int i = 0; i < 2; i++) {
        bmc->error = silent[i];
        snap = power_pass(s, S);
        ck_assert_uint_eq(snap.stale, 1);
        ck_assert_uint_eq(snap.samples, 0);
        ck_assert_uint_eq(snap.power_faults[JOULE_POWER_FAILED], 0);
    }
    ck_assert_int_eq(told, 0);
    bmc->text = "the BMC at 127.0.0.1 does not answer";
    bmc->error = ETIMEDOUT;
    for (int i = 0; i < 3; i++)
        snap = power_pass(s, S);
    ck_assert_uint_ge(snap.power_faults[JOULE_POWER_FAILED], 6);
    ck_assert_uint_eq(snap.power_faults[JOULE_POWER_OK], 0);
    ck_assert_uint_eq(snap.total.valid, 0);
    ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
    wait_told("problem: no reading of power: the BMC at 127.0.0.1 does not "
              "answer; energy is unknown until there is one");
    /* Without a sentence errno has one.  (The fake reads its text first.) */
    bmc->error = EAGAIN;
    power_after(s, 2);
    bmc->text = NULL;
    bmc->error = EIO;
    power_after(s, 3);
    bmc->text = "the BMC at 127.0.0.1 does not answer";
    power_after(s, 3);
    ck_assert_int_eq(count_told("problem: no reading of power: Input/output"),
                     1);
    ck_assert_int_eq(told, 2);
    bmc->error = 0;
    power_after(s, 3);
    ck_assert_int_eq(count_told("info: the BMC answers again"), 1);
    ck_assert_int_eq(told, 3);
    /* It is over, so it is told again. */
    bmc->error = ETIMEDOUT;
    power_after(s, 3);
    ck_assert_int_eq(count_told("problem: no reading of power: the BMC at"), 2);
    ck_assert_int_eq(count_told("energy goes on with the last power"), 1);
    joule_sampler_destroy(s);
    ck_assert_int_eq(told, 4);
}
END_TEST

/* What became of the energy of an outage is said with its end. */
START_TEST(power_outages)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s, 2);
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    power_pass(s, 0);
    snap = power_pass(s, 60 * S);
    ck_assert_uint_eq(snap.stale, 1);
    ck_assert_uint_eq(snap.total.node_uj, 0);
    bmc->error = 0;
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(6000000000));
    ck_assert_int_eq(count_told("info: the BMC answers again after 60 s; the "
                                "energy of that time is estimated"),
                     1);
    bmc->error = ETIMEDOUT;
    power_pass(s, 0);
    power_pass(s, 301 * S);
    bmc->error = 0;
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(6000000000));
    ck_assert_uint_eq(snap.total.integrator[0].lost, 1);
    ck_assert_int_eq(snap.total.gap_ns, 361 * S);
    ck_assert_int_eq(count_told("info: the BMC answers again after 301 s; the "
                                "energy of that time is not known"),
                     1);
    joule_sampler_destroy(s);
    ck_assert_int_eq(told, 4);
}
END_TEST

static const char *const fault_words[JOULE_POWER_STATUS_COUNT] = {
    [JOULE_POWER_UNAVAILABLE] = "unavailable",
    [JOULE_POWER_NOT_SCANNED] = "scanning disabled",
    [JOULE_POWER_NOT_ACTIVE] = "not active",
    [JOULE_POWER_ZERO] = "0 W",
    [JOULE_POWER_NEGATIVE] = "less than 0 W",
    [JOULE_POWER_SATURATED] = "highest value",
    [JOULE_POWER_ABSURD] = "more watts",
    [JOULE_POWER_REFUSED] = "refuses",
    [JOULE_POWER_FAILED] = "no answer",
};

START_TEST(power_faults)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;
    char words[128];

    for (int round = 1; round <= 2; round++) {
        snap = power_pass(s, S);
        bmc->status[0] = _i;
        bmc->status[1] = round == 2 ? _i : JOULE_POWER_OK;
        snap = power_pass(s, S);
        for (int i = 0; i < 5; i++)
            power_after(s, 2);
        snprintf(words, sizeof(words),
                 "problem: power of Node%s is not "
                 "measured: ",
                 round == 2 ? ", Socket0" : "");
        ck_assert_int_eq(count_told(words), 1);
        ck_assert_int_eq(count_told(fault_words[_i]), round);
        ck_assert_int_eq(told, 2 * round - 1);
        bmc->status[0] = bmc->status[1] = JOULE_POWER_OK;
        power_after(s, 2);
        ck_assert_int_eq(count_told("info: all power is measured again"),
                         round);
        ck_assert_int_eq(told, 2 * round);
    }
    joule_sampler_destroy(s);
    s = power_create(PERIOD);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_ge(snap.power_faults[_i], 14);
    ck_assert_uint_ge(snap.power_faults[JOULE_POWER_OK], 14);
    for (int i = 1; i < JOULE_POWER_STATUS_COUNT; i++)
        ck_assert(i == _i || snap.power_faults[i] == 0);
    ck_assert_uint_ge(snap.total.integrator[0].errors, 14);
    joule_sampler_destroy(s);
}
END_TEST

/* All classes at once and a BMC that comes and goes: the log stays short, and
 * other ones have their say later. */
START_TEST(power_fills_no_log)
{
    struct joule_sampler *s = power_create(PERIOD);
    int before;

    bmc->text = "no answer";
    for (int i = 0; i < 60; i++) {
        bmc->error = i % 2 ? ETIMEDOUT : 0;
        power_after(s, 1);
    }
    before = told;
    ck_assert_int_le(before, 24);
    ck_assert_int_ge(before, 20);
    bmc->now_ns += 600 * S;
    for (int i = 0; i < 10; i++) {
        bmc->error = i % 2 ? ETIMEDOUT : 0;
        power_after(s, 1);
    }
    ck_assert_int_le(told, before + 2);
    ck_assert_int_gt(told, before);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_of_many_sentences)
{
    static char text[20][32];
    struct joule_sampler *s = power_create(PERIOD);

    bmc->error = EIO;
    for (int i = 0; i < 40; i++) {
        snprintf(text[i % 20], sizeof(text[0]), "sentence %d", i % 20);
        bmc->text = text[i % 20];
        power_after(s, 2);
    }
    joule_sampler_destroy(s);
    ck_assert_int_ge(told, 4);
    ck_assert_int_le(told, 9);
}
END_TEST

START_TEST(power_stuck)
{
    struct joule_sampler *s = power_create(PERIOD);

    power_after(s, 1);
    for (int i = 0; i < 59; i++) {
        bmc->watts[1] = 40 + i;
        power_pass(s, 60 * S);
    }
    ck_assert_int_eq(told, 0);
    bmc->watts[1] = 30;
    power_pass(s, 61 * S);
    power_pass(s, 60 * S);
    ck_assert_int_eq(count_told("info: power of Node has been 100.0 W for an "
                                "hour"),
                     1);
    ck_assert_int_eq(told, 1);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_remarks)
{
    struct joule_sampler *s;

    bmc->remark = "connected to 127.0.0.1";
    s = power_create(PERIOD);
    wait_told("info: connected to 127.0.0.1");
    bmc->error = ETIMEDOUT;
    bmc->remark = "starting anew";
    wait_told("info: starting anew");
    joule_sampler_destroy(s);
}
END_TEST

/* The first reading does not wait for the period, and there is none before
 * create returns. */
START_TEST(power_at_once)
{
    struct joule_sampler *s;
    struct joule_snapshot snap = {0};
    unsigned reads;

    bmc->slow_ns = 100 * MS;
    s = power_create(1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.samples, 0);
    for (int tries = 0; snap.samples == 0 && tries < PATIENCE; tries++) {
        usleep(2000);
        ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    }
    ck_assert_uint_eq(snap.samples, 1);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.is_power, 1);
    ck_assert_uint_eq(snap.node_mw, 100000);
    ck_assert_int_eq(snap.since_ns, bmc->now_ns);
    ck_assert_int_eq(snap.total.mono_ns, bmc->now_ns);
    ck_assert_int_eq(snap.wall_ns, fake_power_wall_ns(bmc));
    ck_assert_int_eq(snap.period_ns, 1000 * S);
    reads = bmc->reads;
    joule_sampler_destroy(s);
    ck_assert_uint_eq(bmc->reads, reads); /* no last sample */
}
END_TEST

/* The mean is over the time in which there was a measurement. */
START_TEST(power_known_late)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    bmc->status[0] = JOULE_POWER_UNAVAILABLE;
    s = power_create(PERIOD);
    power_pass(s, 100 * S);
    bmc->status[0] = JOULE_POWER_OK;
    snap = power_after(s, 2);
    ck_assert_int_eq(snap.since_ns, bmc->now_ns);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.average_mw, 100000);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_period)
{
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(bmc->domain, 2), 60 * S),
        60 * S);
    ck_assert_int_eq(
        joule_sampler_period_ns(joule_domains_wrap_ns(bmc->domain, 2), PERIOD),
        PERIOD);
}
END_TEST

START_TEST(power_integrated)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s, 1);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
    ck_assert_uint_eq(snap.total.integrator[1].uj, 40000000);
    ck_assert_uint_eq(snap.average_mw, 100000);
    /* The wall clock is a label: an hour forth or back changes nothing. */
    for (int i = -1; i <= 1; i++) {
        bmc->wall_step_ns = i * 3600 * S;
        snap = power_pass(s, S);
        ck_assert_int_eq(snap.wall_ns, fake_power_wall_ns(bmc));
    }
    ck_assert_uint_eq(snap.total.node_uj, 400000000);
    ck_assert_uint_eq(snap.average_mw, 100000);
    ck_assert_int_eq(snap.total.gap_ns, 0);
    joule_sampler_destroy(s);
}
END_TEST

/* Measured in the middle of a request that takes long. */
START_TEST(power_of_the_past)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    bmc->late_ns = 2 * S;
    power_after(s, 1);
    snap = power_pass(s, 4 * S);
    ck_assert_int_eq(snap.total.mono_ns, bmc->now_ns - 2 * S);
    ck_assert_int_eq(snap.wall_ns, fake_power_wall_ns(bmc) - 2 * S);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_edges)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_board *reader;
    struct joule_snapshot snap;
    int64_t begun_ns;

    snap = power_after(s, 2);
    begun_ns = bmc->now_ns;
    reader = joule_board_open(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(reader);
    bmc->hangs = true;
    while (bmc->waits == 0)
        usleep(2000);
    joule_board_edge(reader, begun_ns + S / 4);
    joule_board_edge(reader, INT64_MAX);
    bmc->watts[0] = 500;
    bmc->now_ns += S;
    bmc->hangs = false;
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 25000000 + 375000000);
    joule_board_destroy(reader);
    joule_sampler_destroy(s);
}
END_TEST

START_TEST(power_total_goes_on)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;
    int64_t since_ns;

    power_after(s, 1);
    snap = power_pass(s, S);
    since_ns = snap.since_ns;
    joule_sampler_destroy(s);
    bmc->now_ns += 20 * S;
    bmc->watts[0] = 300;
    bmc->hangs = true;
    s = power_create(PERIOD);
    /* The total is there at once, the power is not. */
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
    ck_assert_uint_eq(snap.node_mw, JOULE_MW_UNKNOWN);
    bmc->hangs = false;
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 100000000 + 20 * 200000000ULL);
    ck_assert_uint_eq(snap.node_mw, 300000);
    ck_assert_int_eq(snap.total.gap_ns, 20 * S);
    ck_assert_int_eq(snap.since_ns, since_ns);
    joule_sampler_destroy(s);
    ck_assert_int_eq(count_told("info: the node total goes on from 100 J, "
                                "20000 ms after"),
                     1);
    bmc->now_ns += 500 * S;
    s = power_create(PERIOD);
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 100000000 + 20 * 200000000ULL);
    ck_assert_int_eq(snap.total.gap_ns, 520 * S);
    joule_sampler_destroy(s);
}
END_TEST

/* The node's total lives through another set of labels, and through RAPL. */
START_TEST(power_domains_change)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s, 1);
    power_pass(s, S);
    joule_sampler_destroy(s);
    fake_power_add(bmc, "Socket1", 40);
    s = power_create(PERIOD);
    power_after(s, 1);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 200000000);
    ck_assert_uint_eq(snap.total.integrator[1].uj, 40000000);
    joule_sampler_destroy(s);
    ck_assert_int_eq(count_told("info: the energy domains have changed"), 1);
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake->now_ns = bmc->now_ns;
    s = must_create();
    pass(S, 10);
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.is_power, 0);
    ck_assert_uint_eq(snap.total.node_uj, 210000000);
    joule_sampler_destroy(s);
    s = power_create(PERIOD);
    power_after(s, 1);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 310000000);
    joule_sampler_destroy(s);
}
END_TEST

/* Killed in the middle of a reading; readers go on. */
START_TEST(power_killed)
{
    struct joule_board *board = NULL;
    struct joule_sampler *s;
    struct joule_snapshot snap = {0};
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        power_create(PERIOD);
        for (;;)
            pause();
    }
    for (int tries = 0; !snap.total.valid && tries < PATIENCE; tries++) {
        usleep(2000);
        if (!board)
            board = joule_board_open(tree.fd, "n1", NULL);
        if (board)
            joule_board_read(board, &snap);
    }
    ck_assert_uint_eq(snap.total.valid, 1);
    bmc->hangs = true;
    while (bmc->waits == 0)
        usleep(2000);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    bmc->hangs = false;
    bmc->waits = 0;
    bmc->now_ns += 10 * S;
    s = power_create(PERIOD);
    snap = power_after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 1000000000);
    ck_assert_int_eq(joule_board_read(board, &snap), 0);
    ck_assert_uint_eq(snap.total.node_uj, 1000000000);
    joule_board_destroy(board);
    joule_sampler_destroy(s);
}
END_TEST

static int power_in_child(struct joule_sampler *s)
{
    struct joule_snapshot snap;

    if (joule_sampler_read(s, &snap) == 0 || errno != ECHILD)
        return __LINE__;
    joule_sampler_destroy(s);
    /* The parent's source is not interrupted. */
    return bmc->is_interrupted ? __LINE__ : 0;
}

START_TEST(power_fork)
{
    struct joule_sampler *s = power_create(PERIOD);
    int status;
    pid_t pid;

    power_after(s, 1);
    power_pass(s, S);
    bmc->hangs = true;
    while (bmc->waits == 0)
        usleep(2000);
    pid = fork();
    if (pid == 0)
        _exit(power_in_child(s) ? 1 : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    bmc->hangs = false;
    ck_assert_uint_eq(power_pass(s, S).total.node_uj, 200000000);
    joule_sampler_destroy(s);
}
END_TEST

/* Readers, steps that declare edges, and a BMC with all faults. */
START_TEST(power_readers)
{
    struct reader r = {0};
    struct joule_board *board;
    pthread_t threads[2];

    r.sampler = power_create(PERIOD);
    power_after(r.sampler, 1);
    board = joule_board_open(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(board);
    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_for_ever, &r),
                         0);
    for (int i = 0; i < 100; i++) {
        bmc->status[0] = i % 3 ? JOULE_POWER_OK : i % JOULE_POWER_STATUS_COUNT;
        bmc->error = i % 7 ? 0 : ETIMEDOUT;
        bmc->now_ns += S;
        joule_board_edge(board, bmc->now_ns - S / 3);
        usleep(5000);
    }
    bmc->error = 0;
    bmc->status[0] = JOULE_POWER_OK;
    ck_assert_uint_eq(power_after(r.sampler, 2).total.node_uj,
                      UINT64_C(10000000000));
    r.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(r.fell, 0);
    ck_assert_uint_eq(r.failed, 0);
    joule_board_destroy(board);
    joule_sampler_destroy(r.sampler);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *bad = tcase_create("bad counters");
    TCase *good = tcase_create("counters");
    TCase *bad_power = tcase_create("bad power");
    TCase *power = tcase_create("power");
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
    tcase_add_test(bad, a_part_is_lost);
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
    tcase_add_test(good, readers);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(bad_power, setup_power, teardown_power);
    tcase_set_timeout(bad_power, 60);
    tcase_add_test(bad_power, power_hangs);
    tcase_add_test(bad_power, power_destroy_at_any_time);
    tcase_add_test(bad_power, power_hangs_later);
    tcase_add_test(bad_power, power_fails);
    tcase_add_test(bad_power, power_outages);
    tcase_add_test(bad_power, power_fills_no_log);
    tcase_add_test(bad_power, power_of_many_sentences);
    tcase_add_test(bad_power, power_stuck);
    tcase_add_loop_test(bad_power, power_faults, 1, JOULE_POWER_STATUS_COUNT);
    suite_add_tcase(suite, bad_power);

    tcase_add_checked_fixture(power, setup_power, teardown_power);
    tcase_set_timeout(power, 60);
    tcase_add_test(power, power_remarks);
    tcase_add_test(power, power_at_once);
    tcase_add_test(power, power_known_late);
    tcase_add_test(power, power_period);
    tcase_add_test(power, power_integrated);
    tcase_add_test(power, power_of_the_past);
    tcase_add_test(power, power_edges);
    tcase_add_test(power, power_total_goes_on);
    tcase_add_test(power, power_domains_change);
    tcase_add_test(power, power_killed);
    tcase_add_test(power, power_fork);
    tcase_add_test(power, power_readers);
    suite_add_tcase(suite, power);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
