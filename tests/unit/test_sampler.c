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
#include "common/base/process.h"
#include "common/node/ledger.h"
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

/* Samplers, each with its sensor. */
static struct {
    struct joule_sampler *sampler;
    struct joule_sensor *sensor;
} pairs[4];

/* What was told; from the sampler's threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[TEXTS_MAX][JOULE_ERROR_MAX + 16];
static _Atomic int told;

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

/* [sensor] is the pair's. */
static struct joule_sampler *create_of(struct joule_sensor *sensor,
                                       const struct joule_clock *clock,
                                       const char *node, int64_t period_ns)
{
    struct joule_sampler_options opt = {
        .clock = clock,
        .sensor = sensor,
        .root_fd = tree.fd,
        .node = node,
        .period_ns = period_ns,
        .event = on_event,
    };
    struct joule_sampler *s;

    ck_assert_ptr_nonnull(sensor);
    s = joule_sampler_create(&opt, &err);
    if (!s)
        joule_sensor_destroy(sensor);
    for (int i = 0; s && i < COUNT(pairs); i++)
        if (!pairs[i].sampler) {
            pairs[i].sampler = s;
            pairs[i].sensor = sensor;
            return s;
        }
    ck_assert_ptr_null(s);
    return NULL;
}

static void destroy(struct joule_sampler *s)
{
    joule_sampler_destroy(s);
    for (int i = 0; i < COUNT(pairs); i++)
        if (pairs[i].sampler == s) {
            joule_sensor_destroy(pairs[i].sensor);
            pairs[i].sampler = NULL;
        }
}

static struct joule_sampler *create_with(const char *node, int64_t period_ns)
{
    return create_of(fake_sensor(fake), &fake->clock, node, period_ns);
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
    for (size_t i = 0; i < fake->counters.domain_count; i++)
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

/* The sampler itself, its tickets, the ledger: each allocation but those of the
 * thread and the ledger. */
START_TEST(no_memory)
{
    unsigned fds = tree_open_fds();

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    for (int n = 1; n <= 3; n++) {
        struct joule_sensor *sensor = fake_sensor(fake);

        fail_calloc = n;
        ck_assert_ptr_null(create_of(sensor, &fake->clock, "n1", PERIOD));
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_int_eq(fail_calloc, 0);
        ck_assert_uint_eq(tree_open_fds(), fds);
    }
    destroy(must_create());
}
END_TEST

START_TEST(destroy_null)
{
    joule_sampler_destroy(NULL);
}
END_TEST

START_TEST(period)
{
    int64_t wrap_ns = INT64_C(65536000000);

    ck_assert_int_eq(joule_sampler_period_ns(wrap_ns, 60 * S), wrap_ns / 3);
    ck_assert_int_eq(joule_sampler_period_ns(wrap_ns, 21 * S), 21 * S);
    ck_assert_int_eq(joule_sampler_period_ns(wrap_ns, PERIOD), PERIOD);
    ck_assert_int_eq(joule_sampler_period_ns(INT64_MAX, 60 * S), 60 * S);
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
        ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
    }
    ck_assert_int_eq(count_told("problem: the energy counters do not move"), 1);
    pass(S, 10);
    snap = after(s, 3);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_int_eq(count_told("info: the energy counters move now"), 1);
    destroy(s);
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
    destroy(s);
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
        ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
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
    destroy(s);
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
        ck_assert_uint_eq(snap.total.stale, 0);
        ck_assert_uint_ne(snap.average_mw, JOULE_MW_UNKNOWN);
        pass(4 * S, 0);
        snap = after(s, 3);
        ck_assert_uint_eq(snap.total.stale, 1);
        ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(snap.total.node_uj, (uint64_t)i * 10000000);
        ck_assert_int_eq(count_told("problem: the energy counters have stopp"),
                         i);
    }
    pass(S, 10);
    after(s, 3);
    ck_assert_int_eq(count_told("info: the energy counters move again"), 3);
    destroy(s);
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
    destroy(s);
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
    destroy(s);
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.samples, 3);
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
    ck_assert_uint_eq(snap.average_mw, 100000);
    destroy(s);
}
END_TEST

static struct joule_snapshot read_node(void)
{
    struct joule_ledger *ledger = joule_ledger_open(tree.fd, "n1", &err);
    struct joule_snapshot snap;

    ck_assert_msg(ledger != NULL, "%s", err.text);
    ck_assert_int_eq(joule_ledger_read_node(ledger, &snap, NULL), 0);
    joule_ledger_destroy(ledger);
    return snap;
}

/* Samples at the same moment say nothing about power: the figure stays. */
START_TEST(power_of_no_time)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    s = create_with("n1", 1000 * S);
    pass(S, 100);
    destroy(s);
    pass(S, 200);
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.total.mw, 200000);
    fake->now_ns += 1000;
    fake->ticks[0] += 20000; /* one update step: 300 W would be 305 kW */
    destroy(s);
    snap = read_node();
    ck_assert_uint_eq(snap.total.mw, 200000);
    ck_assert_uint_eq(snap.total.node_uj, 300000000 + fake_uj(20000));
    /* The next slurmd knows no figure before, and none of no time. */
    s = create_with("n1", 1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.node_uj, 300000000 + fake_uj(20000));
    destroy(s);
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
        destroy(s);
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
    destroy(s);
    pass(100 * S, 20);
    s = must_create();
    snap = after(s, 1);
    ck_assert_int_eq(snap.total.gap_ns, 100 * S);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
    destroy(s);
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
    destroy(s);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-2\n");
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.node_uj, 0);
    destroy(s);
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
    destroy(s);
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 1, 12345);
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.node_uj, 10000000);
    ck_assert_uint_eq(snap.total.valid, 0);
    pass(S, 10);
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
    ck_assert_uint_eq(snap.total.valid, 1);
    destroy(s);
    ck_assert_int_eq(count_told("info: the energy domains have changed"), 1);
    fake->counters.domain_count = 1;
    s = must_create();
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.node_uj, 30000000);
    destroy(s);
}
END_TEST

/* A process with a sampler, killed when it has seen [uj]. */
static void sample_until_killed(uint64_t uj)
{
    struct joule_ledger *ledger = NULL;
    struct joule_snapshot snap = {0};
    bool passed = false;
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
        if (!ledger)
            ledger = joule_ledger_open(tree.fd, "n1", NULL);
        if (!ledger || joule_ledger_read_node(ledger, &snap, NULL) < 0 ||
            passed)
            continue;
        passed = true;
        pass(S, 10);
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    joule_ledger_destroy(ledger);
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
    destroy(s);
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
    destroy(old);
    for (tries = 0; joule_sampler_read(new, &snap) < 0 && tries < PATIENCE;
         tries++)
        usleep(5000);
    pass(S, 10);
    snap = after(new, 2);
    ck_assert_uint_eq(snap.total.node_uj, 20000000);
    ck_assert_int_eq(count_told("info: the node total goes on from"), 1);
    destroy(new);
    ck_assert_int_eq(told, 1);
}
END_TEST

START_TEST(never_had_the_ledger)
{
    struct joule_sampler *old, *new;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    old = must_create();
    new = must_create();
    usleep(50000);
    destroy(new);
    destroy(old);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* Anything but another writer is a sentence, once. */
START_TEST(ledger_spoilt_while_waiting)
{
    struct joule_sampler *old, *new;

    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    old = must_create();
    new = must_create();
    ck_assert_int_eq(fchmodat(tree.fd, "run/slurm-joule/n1", 0777, 0), 0);
    wait_told("problem: energy is unknown on this node");
    usleep(50000);
    destroy(new);
    destroy(old);
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
    destroy(waiting);
    destroy(s);
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
    destroy(waiting);
    destroy(s);
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
    destroy(r.sampler);
}
END_TEST

/* ---- edges ---- */

/* A sensor that notes how it is read; 100 W. */
struct noter {
    struct joule_sensor sensor; /* first */
    struct joule_domain domain;
    _Atomic int64_t now_ns;
    _Atomic unsigned reads, resumes;
    _Atomic int64_t edge_ns;
    _Atomic unsigned sentences; /* that are left */
};

static struct noter noter;

static int64_t noter_mono_ns(void *arg)
{
    (void)arg;
    return noter.now_ns;
}

static const struct joule_clock noter_clock = {
    .mono_ns = noter_mono_ns,
    .wall_ns = noter_mono_ns,
};

static int64_t noter_read(struct joule_sensor *sensor, int64_t edge_ns,
                          struct joule_reading *out)
{
    int64_t now_ns = noter.now_ns;

    atomic_fetch_add(&noter.reads, 1);
    noter.edge_ns = edge_ns;
    out[0] = (struct joule_reading){
        .uj = (uint64_t)now_ns / 10,
        .began_ns = S,
        .mono_ns = now_ns,
        .mw = 100000,
        .state = JOULE_READING_OK,
    };
    sensor->state.integrator[0].uj = out[0].uj;
    return now_ns;
}

static void noter_resumed(struct joule_sensor *sensor)
{
    (void)sensor;
    atomic_fetch_add(&noter.resumes, 1);
}

static int noter_remark(struct joule_sensor *sensor,
                        enum joule_event *ret_event, struct joule_error *ret)
{
    (void)sensor;
    if (noter.sentences == 0)
        return 0;
    *ret_event = noter.sentences % 2 ? JOULE_EVENT_INFO : JOULE_EVENT_PROBLEM;
    snprintf(ret->text, sizeof(ret->text), "sentence %u", noter.sentences--);
    return 1;
}

static void noter_destroy(struct joule_sensor *sensor)
{
    (void)sensor;
}

static const struct joule_sensor_ops noter_ops = {
    .type = "noter",
    .read = noter_read,
    .resumed = noter_resumed,
    .remark = noter_remark,
    .destroy = noter_destroy,
};

static struct joule_sampler *noter_create(int64_t period_ns)
{
    struct joule_sampler *s =
        create_of(&noter.sensor, &noter_clock, "n1", period_ns);

    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

static void setup_noter(void)
{
    setup();
    memset(&noter, 0, sizeof(noter));
    noter.now_ns = 1000 * S;
    noter.domain = (struct joule_domain){
        .kind = JOULE_DOMAIN_POWER,
        .unit = {.num = 1, .shift = 0},
        .width_bits = 64,
        .in_total = true,
        .name = "Node",
    };
    joule_sensor_init(&noter.sensor, &noter_ops, &noter_clock, &noter.domain,
                      1);
    noter.sensor.state.integrators = 1;
}

static struct joule_ledger *open_ledger(void)
{
    struct joule_ledger *ledger = joule_ledger_open(tree.fd, "n1", &err);

    ck_assert_msg(ledger != NULL, "%s", err.text);
    return ledger;
}

static const struct joule_registration *this_process(void)
{
    static struct joule_registration r = {.job = 1, .began_ns = 1};
    char name[64], text[128];

    r.owner = joule_process_number(getpid(), 77);
    snprintf(name, sizeof(name), "proc/%d/stat", (int)getpid());
    snprintf(text, sizeof(text),
             "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1 1",
             (int)getpid());
    tree_write(&tree, name, text);
    return &r;
}

static unsigned register_step(struct joule_ledger *ledger)
{
    const uint64_t none[JOULE_LEDGER_WORDS_MAX] = {0};
    unsigned slot;
    int rc = joule_ledger_register(ledger, tree.fd, this_process(), none, none,
                                   &slot, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
    return slot;
}

/* What a step asks for is sampled now. */
START_TEST(tickets_are_samples)
{
    struct joule_sampler *s = noter_create(1000 * S);
    struct joule_ledger *ledger = open_ledger();
    struct joule_snapshot snap;

    for (unsigned i = 1; i <= 20; i++) {
        noter.now_ns += S;
        ck_assert_int_eq(joule_ledger_ask(ledger, 10 * S), 0);
        ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
        ck_assert_uint_eq(snap.samples, i + 1);
        ck_assert_int_eq(snap.total.mono_ns, noter.now_ns);
    }
    destroy(s);
    ck_assert_uint_eq(noter.reads, 22);
    joule_ledger_destroy(ledger);
}
END_TEST

/* The load changes when tasks begin and end: the sensor is told when that was,
 * not when somebody asked. */
START_TEST(tasks_are_edges)
{
    struct joule_sampler *s = noter_create(1000 * S);
    struct joule_ledger *ledger = open_ledger();
    unsigned slot = register_step(ledger), other = register_step(ledger);
    uint64_t owner = this_process()->owner;

    noter.now_ns += S;
    joule_ledger_ask(ledger, 10 * S);
    ck_assert_int_eq(noter.edge_ns, 0);
    joule_ledger_begin_tasks(ledger, slot, owner, noter.now_ns - 5);
    joule_ledger_ask(ledger, 10 * S);
    ck_assert_int_eq(noter.edge_ns, noter.now_ns - 5);
    /* One that had no tasks ends. */
    joule_ledger_end(ledger, other, owner, noter.now_ns - 1);
    joule_ledger_ask(ledger, 10 * S);
    ck_assert_int_eq(noter.edge_ns, noter.now_ns - 5);
    noter.now_ns += S;
    joule_ledger_end(ledger, slot, owner, noter.now_ns - 3);
    joule_ledger_release(ledger, slot, owner);
    joule_ledger_ask(ledger, 10 * S);
    ck_assert_int_eq(noter.edge_ns, noter.now_ns - 3);
    /* Of the future. */
    joule_ledger_begin_tasks(ledger, other, owner, noter.now_ns + S);
    joule_ledger_ask(ledger, 10 * S);
    ck_assert_int_eq(noter.edge_ns, noter.now_ns - 3);
    destroy(s);
    joule_ledger_destroy(ledger);
}
END_TEST

struct asking {
    struct joule_ledger *ledger;
    _Atomic unsigned failed;
};

static void *ask_often(void *arg)
{
    struct asking *a = arg;

    for (int i = 0; i < 100; i++)
        a->failed += joule_ledger_ask(a->ledger, 20 * S) < 0;
    return NULL;
}

/* Many in a row, and then one in 10 ms; each is answered. */
START_TEST(many_tickets)
{
    struct joule_sampler *s = noter_create(1000 * S);
    struct asking a = {.ledger = open_ledger()};
    pthread_t threads[2];

    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, &a), 0);
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(a.failed, 0);
    ck_assert_uint_le(noter.reads, 201);
    ck_assert_uint_ge(noter.reads, 101);
    destroy(s);
    joule_ledger_destroy(a.ledger);
}
END_TEST

/* ---- what is published goes on ---- */

START_TEST(state_is_resumed)
{
    struct joule_sampler *s = noter_create(PERIOD);
    struct joule_snapshot snap;
    int64_t since_ns;

    ck_assert_uint_eq(noter.resumes, 0);
    noter.now_ns += S;
    snap = after(s, 2);
    since_ns = snap.since_ns;
    ck_assert_int_eq(since_ns, S);
    ck_assert_uint_eq(snap.average_mw, 100100);
    destroy(s);
    noter.now_ns += S;
    s = noter_create(PERIOD);
    ck_assert_uint_eq(noter.resumes, 1);
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.node_uj, (uint64_t)noter.now_ns / 10);
    ck_assert_uint_eq(snap.total.base_uj, 0);
    ck_assert_int_eq(snap.since_ns, since_ns);
    destroy(s);
    ck_assert_int_eq(count_told("info: the node total goes on from 100100 J, "
                                "1000 ms after its last sample"),
                     1);
    ck_assert_int_eq(told, 1);
}
END_TEST

/* The total goes on without it, from what the node had. */
START_TEST(state_is_refused)
{
    struct joule_sampler *s = noter_create(PERIOD);
    struct joule_snapshot snap;

    after(s, 2);
    destroy(s);
    noter.sensor.state.is_fused = 1; /* what was published is not */
    noter.now_ns += S;
    s = noter_create(PERIOD);
    ck_assert_uint_eq(noter.resumes, 0);
    snap = after(s, 1);
    ck_assert_uint_eq(snap.total.base_uj, UINT64_C(100000000000));
    ck_assert_uint_eq(snap.total.node_uj,
                      snap.total.base_uj + (uint64_t)noter.now_ns / 10);
    destroy(s);
    ck_assert_int_eq(
        count_told("info: the energy since the last sample is "
                   "unknown; the node total goes on from 100000 J"),
        1);
    ck_assert_int_eq(told, 1);
}
END_TEST

/* ---- the log ---- */

START_TEST(sentences_and_events)
{
    struct joule_sampler *s;

    noter.sentences = 4;
    s = noter_create(PERIOD);
    destroy(s);
    ck_assert_int_eq(told, 4);
    ck_assert_str_eq(texts[0], "problem: sentence 4");
    ck_assert_str_eq(texts[1], "info: sentence 3");
    ck_assert_str_eq(texts[3], "info: sentence 1");
}
END_TEST

/* The first lines, and then one in ten minutes. */
START_TEST(limit_of_the_log)
{
    struct joule_sampler *s;
    int n = JOULE_SAMPLER_LINES;

    noter.sentences = 30;
    s = noter_create(1000 * S);
    ck_assert_int_eq(told, n);
    ck_assert_str_eq(texts[n - 1], "info: sentence 7");
    destroy(s);
    told = 0;
    noter.sentences = 30;
    s = noter_create(1000 * S);
    ck_assert_int_eq(told, n + 1); /* and that the total goes on */
    for (int i = 1; i <= 3; i++) {
        struct joule_ledger *ledger = open_ledger();

        noter.sentences = 2;
        noter.now_ns += JOULE_SAMPLER_REFILL_NS - 1;
        ck_assert_int_eq(joule_ledger_ask(ledger, 10 * S), 0);
        noter.sentences = 2;
        noter.now_ns += 1;
        ck_assert_int_eq(joule_ledger_ask(ledger, 10 * S), 0);
        ck_assert_int_eq(told, n + 1 + i);
        joule_ledger_destroy(ledger);
    }
    destroy(s);
}
END_TEST

/* ---- a BMC ---- */

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

/* The BMC is asked each millisecond. */
static struct joule_sampler *power_create(int64_t period_ns)
{
    struct joule_sampler *s;

    bmc->is_interrupted = false;
    s = create_of(fake_power_sensor(bmc, 3 * S), &bmc->clock, "n1", period_ns);
    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

/* A sample of what the BMC says now. */
static struct joule_snapshot power_after(struct joule_sampler *s)
{
    fake_power_settle(bmc);
    return after(s, 2);
}

/* The time moves by [ns], with a measurement at its end. */
static struct joule_snapshot power_pass(struct joule_sampler *s, int64_t ns)
{
    bmc->now_ns += ns;
    return power_after(s);
}

static void power_hang(void)
{
    bmc->hangs = true;
    for (int tries = 0; bmc->waits == 0 && tries < PATIENCE; tries++)
        usleep(2000);
    ck_assert_uint_eq(bmc->waits, 1);
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
    ck_assert_int_lt(kernel_ms() - begun_ms, 2000);
    ck_assert_uint_ge(snap.samples, 1);
    ck_assert_uint_eq(snap.total.valid, 0);
    ck_assert_uint_eq(snap.total.stale, 0);
    ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(snap.average_mw, JOULE_MW_UNKNOWN);
    power_hang();
    snap = after(s, 3);
    ck_assert_uint_eq(snap.total.valid, 0);
    begun_ms = kernel_ms();
    destroy(s);
    ms = kernel_ms() - begun_ms;
    ck_assert_msg(ms < 2000, "%d ms", (int)ms);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* At any point of the threads' loops, many times.  A busy machine may stop this
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
        destroy(s);
        took_ms = kernel_ms() - begun_ms;
        slow += took_ms >= 250;
        if (took_ms > longest_ms)
            longest_ms = took_ms;
    }
    ck_assert_msg(slow <= 20 && longest_ms < 2000, "%d above 250 ms, one of %d",
                  slow, (int)longest_ms);
}
END_TEST

/* The samples go on: energy with the last power, and after 3 s that it is old.
 */
START_TEST(power_hangs_later)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.mw, 100000);
    ck_assert_uint_eq(snap.total.stale, 0);
    power_hang();
    bmc->now_ns += 3 * S;
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.mw, 100000);
    ck_assert_uint_eq(snap.total.node_uj, 400000000);
    bmc->now_ns += 1;
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(snap.total.stale, 1);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.node_uj, 400000000);
    ck_assert_int_eq(snap.total.gap_ns, 3 * S + 1);
    bmc->hangs = false;
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.mw, 100000);
    ck_assert_uint_eq(snap.total.node_uj, 400000000);
    ck_assert_int_eq(snap.total.gap_ns, 3 * S + 1);
    destroy(s);
}
END_TEST

/* The sensor's sentences are told; test_meter_sensor has the rest of them. */
START_TEST(power_fails)
{
    static const int silent[] = {EAGAIN, ECANCELED};
    struct joule_sampler *s;
    struct joule_snapshot snap;

    bmc->error = silent[0];
    s = power_create(PERIOD);
    for (int i = 0; i < COUNT(silent); i++) {
        bmc->error = silent[i];
        snap = power_pass(s, S);
        ck_assert_uint_eq(snap.total.valid, 0);
        ck_assert_uint_eq(snap.total.reading[0].errors, 0);
    }
    ck_assert_int_eq(told, 0);
    bmc->text = "the BMC at 127.0.0.1 does not answer";
    bmc->error = ETIMEDOUT;
    for (int i = 0; i < 3; i++)
        snap = power_pass(s, S);
    ck_assert_uint_ge(snap.total.reading[0].errors, 3);
    ck_assert_uint_eq(snap.total.valid, 0);
    ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(count_told("problem: no reading of power: the BMC at "
                                "127.0.0.1 does not answer; energy is unknown "
                                "until there is one"),
                     1);
    ck_assert_int_eq(told, 1);
    bmc->error = 0;
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_int_eq(count_told("info: the BMC answers again"), 1);
    destroy(s);
    ck_assert_int_eq(told, 2);
}
END_TEST

/* What became of the energy of an outage. */
START_TEST(power_outages)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s);
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    power_after(s);
    snap = power_pass(s, 60 * S);
    ck_assert_uint_eq(snap.total.stale, 1);
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(6000000000));
    ck_assert_int_eq(snap.total.gap_ns, 60 * S);
    bmc->error = 0;
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.stale, 0);
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(6000000000));
    bmc->error = ETIMEDOUT;
    power_after(s);
    snap = power_pass(s, 301 * S);
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(36000000000));
    bmc->error = 0;
    snap = power_after(s);
    /* 300 s were carried on, and are not taken back. */
    ck_assert_uint_eq(snap.total.node_uj, UINT64_C(36000000000));
    ck_assert_int_eq(snap.total.gap_ns, 361 * S);
    destroy(s);
    ck_assert_int_eq(told, 4);
}
END_TEST

START_TEST(power_faults)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_pass(s, S);
    bmc->status[0] = _i;
    for (int i = 0; i < 5; i++)
        snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.stale, 1);
    ck_assert_uint_ge(snap.total.reading[0].errors, 5);
    ck_assert_uint_eq(snap.total.reading[1].errors, 0);
    ck_assert_int_eq(count_told("problem: power of Node is not measured: "), 1);
    ck_assert_int_eq(told, 1);
    bmc->status[0] = JOULE_POWER_OK;
    power_after(s);
    ck_assert_int_eq(count_told("info: all power is measured again"), 1);
    ck_assert_int_eq(told, 2);
    destroy(s);
    /* It is known to the next slurmd, too. */
    s = power_create(PERIOD);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_ge(snap.total.reading[0].errors, 5);
    destroy(s);
}
END_TEST

/* A BMC that comes and goes: the log stays short, and other ones have their say
 * later. */
START_TEST(power_fills_no_log)
{
    struct joule_sampler *s = power_create(PERIOD);

    bmc->text = "no answer";
    for (int i = 0; i < 60; i++) {
        bmc->error = i % 2 ? ETIMEDOUT : 0;
        power_after(s);
    }
    ck_assert_int_eq(told, JOULE_SAMPLER_LINES);
    bmc->now_ns += JOULE_SAMPLER_REFILL_NS;
    for (int i = 0; i < 10; i++) {
        bmc->error = i % 2 ? ETIMEDOUT : 0;
        power_after(s);
    }
    ck_assert_int_eq(told, JOULE_SAMPLER_LINES + 1);
    destroy(s);
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
    destroy(s);
}
END_TEST

/* The first sample does not wait for the BMC, nor the BMC for the period. */
START_TEST(power_at_once)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    bmc->slow_ns = 100 * MS;
    s = power_create(1000 * S);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.samples, 1);
    ck_assert_uint_eq(snap.total.valid, 0);
    ck_assert_int_eq(snap.period_ns, 1000 * S);
    /* What the BMC says is a sample. */
    for (int tries = 0; snap.samples < 2 && tries < PATIENCE; tries++) {
        usleep(2000);
        ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    }
    ck_assert_uint_eq(snap.samples, 2);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.mw, 100000);
    ck_assert_int_eq(snap.since_ns, bmc->now_ns);
    ck_assert_int_eq(snap.total.mono_ns, bmc->now_ns);
    ck_assert_int_eq(snap.wall_ns, fake_power_wall_ns(bmc));
    destroy(s);
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
    snap = power_after(s);
    ck_assert_int_eq(snap.since_ns, bmc->now_ns);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.average_mw, 100000);
    destroy(s);
}
END_TEST

START_TEST(power_integrated)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 100000000);
    ck_assert_uint_eq(snap.total.reading[1].uj, 40000000);
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
    destroy(s);
}
END_TEST

/* Measured in the middle of a request that takes long: the energy is carried on
 * to the sample. */
START_TEST(power_of_the_past)
{
    struct joule_sampler *s;
    struct joule_snapshot snap;

    bmc->late_ns = 2 * S;
    s = power_create(PERIOD);
    power_after(s);
    snap = power_pass(s, 4 * S);
    ck_assert_uint_eq(snap.total.node_uj, 600000000);
    ck_assert_int_eq(snap.total.mono_ns, bmc->now_ns);
    ck_assert_int_eq(snap.wall_ns, fake_power_wall_ns(bmc));
    ck_assert_int_eq(snap.since_ns, 998 * S);
    destroy(s);
}
END_TEST

/* A step that begins while the BMC is asked: its load begins there. */
START_TEST(power_edges)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_ledger *ledger = open_ledger();
    unsigned slot = register_step(ledger);
    struct joule_snapshot snap;

    power_after(s);
    power_hang();
    bmc->now_ns += S / 4;
    joule_ledger_begin_tasks(ledger, slot, this_process()->owner, bmc->now_ns);
    ck_assert_int_eq(joule_ledger_ask(ledger, 10 * S), 0);
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.total.node_uj, 25000000);
    bmc->watts[0] = 500;
    bmc->now_ns += 3 * S / 4;
    bmc->hangs = false;
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.node_uj, 25000000 + 375000000);
    joule_ledger_destroy(ledger);
    destroy(s);
}
END_TEST

START_TEST(power_total_goes_on)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;
    int64_t since_ns;

    power_after(s);
    snap = power_pass(s, S);
    since_ns = snap.since_ns;
    destroy(s);
    bmc->now_ns += 20 * S;
    bmc->watts[0] = 300;
    bmc->hangs = true;
    s = power_create(PERIOD);
    /* The total is there at once and goes on, the power is not. */
    ck_assert_int_eq(joule_sampler_read(s, &snap), 0);
    ck_assert_uint_eq(snap.total.valid, 1);
    ck_assert_uint_eq(snap.total.node_uj, 100000000 + 20 * 100000000ULL);
    ck_assert_uint_eq(snap.total.mw, JOULE_MW_UNKNOWN);
    bmc->hangs = false;
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.node_uj, 100000000 + 20 * 200000000ULL);
    ck_assert_uint_eq(snap.total.mw, 300000);
    ck_assert_int_eq(snap.total.gap_ns, 20 * S);
    ck_assert_int_eq(snap.since_ns, since_ns);
    destroy(s);
    ck_assert_int_eq(count_told("info: the node total goes on from 100 J, "
                                "20000 ms after"),
                     1);
    /* Too long: 300 s with the power before, and no more. */
    bmc->now_ns += 500 * S;
    s = power_create(PERIOD);
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.node_uj,
                      100000000 + 20 * 200000000ULL + 300 * 300000000ULL);
    ck_assert_int_eq(snap.total.gap_ns, 520 * S);
    destroy(s);
}
END_TEST

/* The node's total lives through another set of labels, and through RAPL. */
START_TEST(power_domains_change)
{
    struct joule_sampler *s = power_create(PERIOD);
    struct joule_snapshot snap;

    power_after(s);
    power_pass(s, S);
    destroy(s);
    fake_power_add(bmc, "Socket1", 40);
    s = power_create(PERIOD);
    power_after(s);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 200000000);
    ck_assert_uint_eq(snap.total.reading[1].uj, 40000000);
    destroy(s);
    ck_assert_int_eq(count_told("info: the energy domains have changed"), 1);
    fake_add(fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake->now_ns = bmc->now_ns;
    s = must_create();
    pass(S, 10);
    snap = after(s, 2);
    ck_assert_uint_eq(snap.total.count, 1);
    ck_assert_uint_eq(snap.total.node_uj, 210000000);
    destroy(s);
    s = power_create(PERIOD);
    power_after(s);
    snap = power_pass(s, S);
    ck_assert_uint_eq(snap.total.node_uj, 310000000);
    destroy(s);
}
END_TEST

/* Killed while the BMC is asked; readers go on. */
START_TEST(power_killed)
{
    struct joule_ledger *ledger = NULL;
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
        if (!ledger)
            ledger = joule_ledger_open(tree.fd, "n1", NULL);
        if (ledger)
            joule_ledger_read_node(ledger, &snap, NULL);
    }
    ck_assert_uint_eq(snap.total.valid, 1);
    power_hang();
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    bmc->hangs = false;
    bmc->waits = 0;
    bmc->now_ns += 10 * S;
    s = power_create(PERIOD);
    snap = power_after(s);
    ck_assert_uint_eq(snap.total.node_uj, 1000000000);
    ck_assert_int_eq(joule_ledger_read_node(ledger, &snap, NULL), 0);
    ck_assert_uint_eq(snap.total.node_uj, 1000000000);
    joule_ledger_destroy(ledger);
    destroy(s);
}
END_TEST

static int power_in_child(struct joule_sampler *s)
{
    struct joule_snapshot snap;

    if (joule_sampler_read(s, &snap) == 0 || errno != ECHILD)
        return __LINE__;
    destroy(s);
    /* The parent's meter is not interrupted. */
    return bmc->is_interrupted ? __LINE__ : 0;
}

START_TEST(power_fork)
{
    struct joule_sampler *s = power_create(PERIOD);
    int status;
    pid_t pid;

    power_after(s);
    power_pass(s, S);
    power_hang();
    pid = fork();
    if (pid == 0)
        _exit(power_in_child(s) ? 1 : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    bmc->hangs = false;
    ck_assert_uint_eq(power_pass(s, S).total.node_uj, 200000000);
    destroy(s);
}
END_TEST

/* Readers, steps that begin and end, and a BMC with all faults. */
START_TEST(power_readers)
{
    struct reader r = {0};
    struct joule_ledger *ledger;
    pthread_t threads[2];

    r.sampler = power_create(PERIOD);
    power_after(r.sampler);
    ledger = open_ledger();
    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_for_ever, &r),
                         0);
    for (int i = 0; i < 100; i++) {
        bmc->status[0] = i % 3 ? JOULE_POWER_OK : i % JOULE_POWER_STATUS_COUNT;
        bmc->error = i % 7 ? 0 : ETIMEDOUT;
        bmc->now_ns += S;
        ck_assert_int_eq(joule_ledger_ask(ledger, 10 * S), 0);
        usleep(5000);
    }
    bmc->error = 0;
    bmc->status[0] = JOULE_POWER_OK;
    ck_assert_uint_eq(power_after(r.sampler).total.node_uj,
                      UINT64_C(10000000000));
    r.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(r.fell, 0);
    ck_assert_uint_eq(r.failed, 0);
    joule_ledger_destroy(ledger);
    destroy(r.sampler);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *bad = tcase_create("bad counters");
    TCase *good = tcase_create("counters");
    TCase *any = tcase_create("any sensor");
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
    tcase_add_test(bad, ledger_spoilt_while_waiting);
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
    tcase_add_test(good, never_had_the_ledger);
    tcase_add_test(good, fork_leaves_the_thread_behind);
    tcase_add_test(good, readers);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(any, setup_noter, teardown);
    tcase_set_timeout(any, 60);
    tcase_add_test(any, tickets_are_samples);
    tcase_add_test(any, tasks_are_edges);
    tcase_add_test(any, many_tickets);
    tcase_add_test(any, state_is_resumed);
    tcase_add_test(any, state_is_refused);
    tcase_add_test(any, sentences_and_events);
    tcase_add_test(any, limit_of_the_log);
    suite_add_tcase(suite, any);

    tcase_add_checked_fixture(bad_power, setup_power, teardown_power);
    tcase_set_timeout(bad_power, 60);
    tcase_add_test(bad_power, power_hangs);
    tcase_add_test(bad_power, power_destroy_at_any_time);
    tcase_add_test(bad_power, power_hangs_later);
    tcase_add_test(bad_power, power_fails);
    tcase_add_test(bad_power, power_outages);
    tcase_add_test(bad_power, power_fills_no_log);
    tcase_add_loop_test(bad_power, power_faults, 1, JOULE_POWER_STATUS_COUNT);
    suite_add_tcase(suite, bad_power);

    tcase_add_checked_fixture(power, setup_power, teardown_power);
    tcase_set_timeout(power, 60);
    tcase_add_test(power, power_remarks);
    tcase_add_test(power, power_at_once);
    tcase_add_test(power, power_known_late);
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
