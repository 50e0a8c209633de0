/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step, and the sampler that keeps the ledger: both sides at once, with
 * counters and a clock that are turned by hand. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/board/stake.h"
#include "common/sampler/sampler.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/tree.h"

#define S       JOULE_NS_PER_S
#define MS      JOULE_NS_PER_MS
#define J       UINT64_C(1000000)
#define TICKS_J 65536 /* of a counter */

static struct tree tree;
static struct fake fake;
static struct joule_error err;
static struct joule_sampler *sampler;
static int problems;

static void on_event(enum joule_event event, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    problems += event == JOULE_EVENT_PROBLEM;
}

static void slurmd_starts_with(enum joule_attribution how, uint64_t idle_w,
                               int64_t period_ns)
{
    struct joule_sampler_options opt = {
        .clock = &fake.clock,
        .source = &fake.source,
        .root_fd = tree.fd,
        .node = "n1",
        .period_ns = period_ns,
        .quiet_period_ns = 3600 * S,
        .attribution = how,
        .idle_uw = idle_w * J,
        .event = on_event,
    };

    sampler = joule_sampler_create(&opt, &err);
    ck_assert_msg(sampler != NULL, "%s", err.text);
}

/* Samples are taken when they are asked for: the period is an hour. */
static void slurmd_starts(enum joule_attribution how, uint64_t idle_w)
{
    slurmd_starts_with(how, idle_w, 3600 * S);
}

static void slurmd_ends(void)
{
    joule_sampler_destroy(sampler);
    sampler = NULL;
}

/* Energy of each package. */
static void pass(int64_t ns, uint64_t j0, uint64_t j1)
{
    fake.ticks[0] += j0 * TICKS_J;
    fake.ticks[1] += j1 * TICKS_J;
    fake.now_ns += ns;
}

/* Two packages of two CPUs; this process as proc has it. */
static void setup(void)
{
    char path[64], text[128];

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    tree_write(&tree, "sys/devices/system/cpu/online", "0-3\n");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 2, 0, (int)cpu % 2);
    snprintf(path, sizeof(path), "proc/%d/stat", (int)getpid());
    snprintf(text, sizeof(text), "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 "
                                 "0 77 1 1", (int)getpid());
    tree_write(&tree, path, text);
    fake_init(&fake);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    problems = 0;
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    /* The total is known when its counters have moved. */
    pass(S, 1, 1);
    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
}

static void teardown(void)
{
    slurmd_ends();
    tree_destroy(&tree);
}

/* On a machine that is busy the sampler may be later than a step waits. */
static struct joule_stake_reading must_read(struct joule_stake *s,
                                            enum joule_stake_want want)
{
    struct joule_stake_reading r = {.carried = true};
    int rc = -1;

    for (int tries = 0; tries < 100 && (rc < 0 || r.carried); tries++)
        rc = joule_stake_read(s, want, &r, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert(!r.carried);
    return r;
}

static struct joule_stake *begin(uint32_t job, uint32_t kind, uint64_t cpus,
                                 uint32_t count)
{
    struct joule_registration r = {
        .job = job,
        .uid = 1000,
        .kind = kind,
        .cpu_count = count,
        .job_cpu_count = count,
    };
    struct joule_stake *s;

    fake.now_ns++; /* a sample of the same moment is none */
    s = joule_stake_create(&fake.clock, tree.fd, "n1", &r, &cpus, 1);
    ck_assert_ptr_nonnull(s);
    if (sampler)
        must_read(s, JOULE_STAKE_NOW);
    return s;
}

static struct joule_stake_reading carried(struct joule_stake *s)
{
    struct joule_stake_reading r;

    ck_assert_msg(joule_stake_read(s, JOULE_STAKE_NOW, &r, &err) == 0, "%s",
                  err.text);
    ck_assert(r.carried);
    return r;
}

static struct joule_ledger_totals totals_of(const char *node)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, node, &err);
    struct joule_ledger_totals t;

    ck_assert_msg(l != NULL, "%s", err.text);
    ck_assert_int_eq(joule_ledger_read(l, &t, NULL, NULL), 0);
    joule_ledger_destroy(l);
    ck_assert_uint_eq(t.faults, 0);
    ck_assert_uint_eq(t.jobs_uj + t.unallocated_uj + t.system_uj,
                      t.charged_uj + t.multiple_uj);
    return t;
}

static struct joule_ledger_totals totals(void)
{
    return totals_of("n1");
}

START_TEST(test_a_step_pays_for_its_package)
{
    struct joule_stake *s = begin(7, JOULE_STEP_NUMBERED, 0x1, 1);
    struct joule_stake_reading r = must_read(s, JOULE_STAKE_LAST);

    ck_assert_uint_eq(r.used_uj, 0);
    pass(S, 100, 60);
    /* Nobody has sampled since. */
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_LAST).used_uj, 0);
    r = must_read(s, JOULE_STAKE_NOW);
    ck_assert_uint_eq(r.used_uj, 50 * J);
    ck_assert_int_eq(r.elapsed_ns, S);
    ck_assert_uint_eq(r.average_mw, 50000);
    ck_assert_uint_eq(r.mw, 50000);
    pass(S / 2, 100, 60);
    joule_stake_end(s);
    pass(S / 2, 100, 60);
    /* It ended in the middle of that interval, and has no more. */
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 100 * J);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 100 * J);
    joule_stake_destroy(s);
    joule_stake_destroy(NULL);
    ck_assert_uint_eq(totals().jobs_uj, 100 * J);
}
END_TEST

START_TEST(test_extern_reads_its_jobs_total)
{
    struct joule_stake *s = begin(7, JOULE_STEP_EXTERN, 0x3, 2);
    struct joule_stake *watch = joule_stake_watch(&fake.clock, tree.fd, "n1");

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 100 * J);
    ck_assert_uint_eq(must_read(watch, JOULE_STAKE_NOW).used_uj, 100 * J);
    joule_stake_end(watch);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(watch, JOULE_STAKE_NOW).used_uj, 100 * J);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 200 * J);
    joule_stake_destroy(watch);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 300 * J);
    joule_stake_destroy(s);
    /* The row is gone with the next sample. */
    pass(S, 0, 0);
    slurmd_ends();
    ck_assert_uint_eq(totals().gone_uj, 300 * J);
}
END_TEST

START_TEST(test_slurmd_away)
{
    struct joule_stake *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct joule_stake_reading r;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 160 * J);
    slurmd_ends();
    pass(2 * S, 20, 20);
    r = carried(s);
    ck_assert_uint_eq(r.used_uj, (160 + 2 * 160) * J);
    ck_assert_int_eq(r.elapsed_ns, 3 * S);
    /* Without asking, what is charged; but it does not fall. */
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_LAST).used_uj, r.used_uj);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, r.used_uj);
    ck_assert_uint_eq(totals().jobs_uj, 200 * J);
    pass(S, 200, 200);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 600 * J);
    slurmd_ends();
    /* Nor is more than five minutes carried on. */
    pass(3600 * S, 0, 0);
    ck_assert_uint_eq(carried(s).used_uj, (600 + 300 * 400) * J);
    joule_stake_destroy(s);
}
END_TEST

/* The job's step ends while slurmd is away, and the extern step is asked, as 26.05
 * does all the time: then the job is charged what the ledger says in the end. */
START_TEST(test_slurmd_away_from_a_job)
{
    struct joule_stake *s = begin(7, JOULE_STEP_EXTERN, 0xf, 4);
    uint64_t away_uj;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 160 * J);
    slurmd_ends();
    pass(2 * S, 20, 20);
    away_uj = carried(s).used_uj;
    ck_assert_uint_gt(away_uj, (160 + 2 * 159) * J);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, totals().jobs_uj);
    ck_assert_uint_lt(totals().jobs_uj, away_uj);
    joule_stake_destroy(s);
}
END_TEST

/* A step that begins before slurmd has ever sampled. */
START_TEST(test_no_ledger_yet)
{
    struct joule_stake_reading r;
    struct joule_stake *s, *watch;

    slurmd_ends();
    tree_remove(&tree, "run/slurm-joule/n1/ledger");
    s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    watch = joule_stake_watch(&fake.clock, tree.fd, "n1");
    ck_assert_int_eq(joule_stake_read(s, JOULE_STAKE_NOW, &r, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    pass(S, 50, 50);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_int_eq(joule_stake_read(watch, JOULE_STAKE_LAST, &r, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    /* It is registered, but the total is not known yet. */
    ck_assert_int_eq(joule_stake_read(s, JOULE_STAKE_NOW, &r, &err), -1);
    ck_assert_int_eq(errno, ENODATA);
    pass(S, 100, 60);
    r = must_read(s, JOULE_STAKE_NOW);
    pass(S, 100, 60);
    r.used_uj += 160 * J;
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, r.used_uj);
    ck_assert_uint_eq(must_read(watch, JOULE_STAKE_LAST).used_uj, r.used_uj);
    joule_stake_destroy(watch);
    joule_stake_destroy(s);
    ck_assert_int_eq(problems, 0);
}
END_TEST

/* Who asks without end gets no more than is his. */
START_TEST(test_flood)
{
    struct joule_stake *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct timespec from, to;
    int64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 150; i++) {
        pass(MS, 1, 1);
        must_read(s, JOULE_STAKE_NOW);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    ns = (to.tv_sec - from.tv_sec) * S + to.tv_nsec - from.tv_nsec;
    ck_assert_uint_le(totals().intervals,
                      JOULE_SAMPLER_ASKED_AT_ONCE + 2 +
                          (uint64_t)(ns / JOULE_SAMPLER_ASKED_NS));
    ck_assert_int_ge(ns, 80 * JOULE_SAMPLER_ASKED_NS);
    joule_stake_destroy(s);
}
END_TEST

/* The sampler comes to rest: no reading for ten of its periods. */
static bool rests(void)
{
    unsigned before = fake.reads;

    for (int tries = 0; tries < 100; tries++) {
        pass(S, 1, 1); /* a row goes with the next interval */
        usleep(200000);
        if (fake.reads == before)
            return true;
        before = fake.reads;
    }
    return false;
}

/* It reads, again and again, without being asked. */
static bool works(void)
{
    unsigned before = fake.reads;

    for (int tries = 0; tries < 2000 && fake.reads < before + 20; tries++)
        usleep(5000);
    return fake.reads >= before + 20;
}

static int64_t told_period_ns(void)
{
    struct joule_snapshot snapshot;

    ck_assert_int_eq(joule_sampler_read(sampler, &snapshot), 0);
    return snapshot.period_ns;
}

/* With nothing to divide the counters are read when somebody asks. */
START_TEST(test_quiet)
{
    struct joule_stake *first, *second;

    slurmd_ends();
    pass(S, 1, 1);
    slurmd_starts_with(JOULE_ATTRIBUTION_CPUTIME, 0, 20 * MS);
    /* What it uses when idle is not known yet. */
    ck_assert(works());
    ck_assert_int_eq(told_period_ns(), 20 * MS);
    pass(10 * S, 10, 10);
    ck_assert(rests());
    ck_assert_int_eq(told_period_ns(), 3600 * S);
    pass(10 * S, 10, 10);
    first = begin(7, JOULE_STEP_NUMBERED, 0x3, 2);
    ck_assert(rests());
    /* The second step is another job. */
    pass(10 * S, 10, 10);
    second = begin(8, JOULE_STEP_NUMBERED, 0xc, 2);
    ck_assert(works());
    ck_assert_int_eq(told_period_ns(), 20 * MS);
    pass(10 * S, 10, 10);
    ck_assert(works());
    joule_stake_destroy(second);
    ck_assert(rests());
    ck_assert_int_eq(told_period_ns(), 3600 * S);
    joule_stake_destroy(first);
    ck_assert(rests());
}
END_TEST

static struct joule_stake *quiet_step(void)
{
    struct joule_stake *s;

    slurmd_ends();
    pass(S, 1, 1);
    slurmd_starts_with(JOULE_ATTRIBUTION_CPUTIME, 20, 20 * MS);
    pass(S, 1, 1);
    s = begin(7, JOULE_STEP_NUMBERED, 0x3, 2);
    ck_assert(rests());
    return s;
}

/* But not while somebody watches. */
START_TEST(test_quiet_but_watched)
{
    struct joule_stake *s = quiet_step();
    struct joule_stake *watch = joule_stake_watch(&fake.clock, tree.fd, "n1");

    must_read(watch, JOULE_STAKE_LAST);
    pass(2 * S, 2, 2);
    joule_stake_look(watch);
    must_read(watch, JOULE_STAKE_RECENT);
    ck_assert(works());
    pass(3 * S, 3, 3);
    ck_assert(works());
    joule_stake_look(watch);
    pass(3 * S, 3, 3);
    ck_assert(works());
    pass(3 * S, 3, 3);
    ck_assert(rests());
    joule_stake_destroy(watch);
    joule_stake_destroy(s);
}
END_TEST

/* Nor while the node's power is asked for all the time; twice at once is no
 * more than once. */
START_TEST(test_quiet_but_asked)
{
    struct joule_stake *s = quiet_step();

    pass(10 * S, 10, 10);
    told_period_ns();
    told_period_ns();
    pass(S / 20, 1, 1);
    told_period_ns();
    ck_assert(rests());
    pass(10 * S, 10, 10);
    told_period_ns();
    pass(2 * S, 2, 2);
    told_period_ns();
    must_read(s, JOULE_STAKE_NOW);
    ck_assert(works());
    pass(10 * S, 10, 10);
    ck_assert(rests());
    joule_stake_destroy(s);
}
END_TEST

/* Nor while a counter does not answer, or no longer moves. */
START_TEST(test_quiet_but_ill)
{
    struct joule_stake *s = quiet_step();

    fake.error[1] = EIO;
    pass(S, 1, 1);
    must_read(s, JOULE_STAKE_NOW);
    ck_assert(works());
    fake.error[1] = 0;
    ck_assert(rests());
    must_read(s, JOULE_STAKE_NOW);
    fake.ticks[0] += TICKS_J;
    fake.now_ns += S;
    must_read(s, JOULE_STAKE_NOW);
    ck_assert(works());
    fake.now_ns += 10 * S;
    ck_assert(works());
    pass(S, 1, 1);
    ck_assert(rests());
    joule_stake_destroy(s);
}
END_TEST

/* Who reads a row that is older than he wants gets a new one; if nobody is
 * there, not again and again. */
START_TEST(test_old_row)
{
    enum joule_stake_want want = _i ? JOULE_STAKE_RECENT : JOULE_STAKE_LAST;
    int64_t old_ns = _i ? JOULE_STAKE_RECENT_NS : JOULE_STAKE_LAST_NS;
    struct joule_stake *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct joule_stake_reading r;
    struct timespec from, to;
    uint64_t uj = 0;

    pass(old_ns - S, 100, 60);
    ck_assert_uint_eq(must_read(s, want).used_uj, 0);
    pass(2 * S, 100, 60);
    for (int tries = 0; uj == 0 && tries < 100; tries++) {
        uj = must_read(s, want).used_uj;
        if (uj == 0)
            pass(JOULE_STAKE_PATIENCE_NS, 0, 0);
    }
    ck_assert_uint_eq(uj, 320 * J);
    slurmd_ends();
    pass(old_ns + S, 100, 60);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(joule_stake_read(s, want, &r, &err), 0);
        ck_assert_uint_eq(r.used_uj, 320 * J);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_lt((to.tv_sec - from.tv_sec) * S + to.tv_nsec - from.tv_nsec,
                     50 * JOULE_STAKE_WAIT_NS);
    joule_stake_destroy(s);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
}
END_TEST

/* Floor and rest by package, by CPU time: nobody's here, so the system's. */
START_TEST(test_cpu_time)
{
    struct joule_ledger_totals t;
    struct joule_stake *s;

    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_CPUTIME, 80);
    s = begin(7, JOULE_STEP_NUMBERED, 0x1, 1);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj, 20 * J);
    t = totals();
    ck_assert_uint_eq(t.part_count, 2);
    ck_assert_uint_eq(t.unallocated_uj, 60 * J);
    ck_assert_uint_eq(t.system_uj, 80 * J);
    joule_stake_destroy(s);
}
END_TEST

/* ---- power ---- */

static struct fake_power bmc; /* of node n2 */
static struct joule_sampler *power;

static const struct joule_source_ops *power_ops; /* NULL: fake_power_ops */

static void power_starts(enum joule_attribution how, int64_t quiet_period_ns)
{
    struct joule_sampler_options opt = {
        .clock = &bmc.clock,
        .source = &bmc.source,
        .root_fd = tree.fd,
        .node = "n2",
        .period_ns = 10 * MS,
        .quiet_period_ns = quiet_period_ns,
        .attribution = how,
        .idle_uw = 20 * J,
        .event = on_event,
    };
    struct joule_snapshot snap = {0};

    fake_power_init(&bmc);
    if (power_ops) {
        bmc.source.ops = power_ops;
        bmc.under_way = true;
        bmc.slow_ns = 2 * MS;
    }
    power = joule_sampler_create(&opt, &err);
    ck_assert_ptr_nonnull(power);
    for (int i = 0; i < 1000 && !snap.tally.valid; i++) {
        bmc.now_ns += 1000;
        usleep(5000);
        joule_sampler_read(power, &snap);
    }
    ck_assert_uint_eq(snap.tally.valid, 1);
}

static struct joule_stake *power_begin(uint32_t job)
{
    struct joule_registration r = {
        .job = job, .cpu_count = 1, .job_cpu_count = 1};
    uint64_t cpus = 1;

    bmc.now_ns += 1000;
    return joule_stake_create(&bmc.clock, tree.fd, "n2", &r, &cpus, 1);
}

/* A BMC that does not answer: the ledger does, with the last power. */
START_TEST(test_power_hangs)
{
    struct joule_stake *s;

    power_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    bmc.hangs = true;
    for (int i = 0; i < 1000 && bmc.waits == 0; i++)
        usleep(5000);
    s = power_begin(7);
    bmc.now_ns += 1000;
    must_read(s, JOULE_STAKE_NOW);
    bmc.now_ns += 4 * S;
    /* 100 W, a quarter of the CPUs. */
    ck_assert_uint_eq(must_read(s, JOULE_STAKE_NOW).used_uj / J, 100);
    joule_stake_destroy(s);
    joule_sampler_destroy(power);
}
END_TEST

/* The first interval may be charged later than the first sample is seen. */
static void power_is_charged(void)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, "n2", &err);
    struct joule_ledger_totals t;
    int tries = 0;

    ck_assert_msg(l != NULL, "%s", err.text);
    while (joule_ledger_read(l, &t, NULL, NULL) != 0) {
        ck_assert_int_eq(errno, ENODATA);
        ck_assert_int_lt(tries++, 1000);
        bmc.now_ns += 20 * MS;
        usleep(5000);
    }
    joule_ledger_destroy(l);
}

/* Intervals that are charged while the BMC is read ten times. */
static uint64_t power_charges(void)
{
    uint64_t before = totals_of("n2").intervals;
    unsigned reads = bmc.reads;

    for (int tries = 0; tries < 2000 && bmc.reads < reads + 10; tries++) {
        bmc.now_ns += 20 * MS;
        usleep(5000);
    }
    ck_assert_uint_ge(bmc.reads, reads + 10);
    return totals_of("n2").intervals - before;
}

static bool power_rests(void)
{
    for (int tries = 0; tries < 100; tries++)
        if (power_charges() == 0)
            return true;
    return false;
}

/* A BMC is read as often as ever when there is nothing to divide, but what it
 * says is not divided each time. */
START_TEST(test_power_quiet)
{
    struct joule_stake *first, *second, *watch;
    struct joule_stake_reading r;
    uint64_t uj;

    power_starts(JOULE_ATTRIBUTION_CPUTIME, 100 * S);
    power_is_charged();
    ck_assert(power_rests());
    first = power_begin(7);
    ck_assert(power_rests());
    /* Who asks has a sample of this moment. */
    uj = must_read(first, JOULE_STAKE_NOW).used_uj;
    bmc.now_ns += 4 * S;
    r = must_read(first, JOULE_STAKE_NOW);
    ck_assert_int_ge(r.mono_ns, bmc.now_ns - 20 * MS);
    /* Of the idle node's 20 W, by its CPUs: it computed nothing. */
    ck_assert_uint_ge(r.used_uj - uj, 20 * J);
    /* Who looks again and again, one each time. */
    watch = joule_stake_watch(&bmc.clock, tree.fd, "n2");
    must_read(watch, JOULE_STAKE_LAST);
    joule_stake_look(watch);
    ck_assert_uint_ge(power_charges(), 5);
    bmc.now_ns += 2 * JOULE_LEDGER_LOOKED_NS;
    ck_assert(power_rests());
    joule_stake_destroy(watch);
    /* Another job is something to divide. */
    second = power_begin(8);
    ck_assert_uint_ge(power_charges(), 5);
    joule_stake_destroy(second);
    ck_assert(power_rests());
    /* And the quiet period is one. */
    bmc.now_ns += 101 * S;
    ck_assert_uint_ge(power_charges(), 1);
    joule_stake_destroy(first);
    joule_sampler_destroy(power);
}
END_TEST

/* ---- a BMC whose readings wait ---- */

/* Whether the sampler rests before the clock is so much later. */
static bool power_sleeps(int64_t ns)
{
    int64_t end_ns = bmc.now_ns + ns;

    while (!bmc.resting && bmc.now_ns < end_ns) {
        bmc.now_ns += 10 * MS;
        usleep(4000);
    }
    return bmc.resting;
}

/* Whether no reading is begun for a while. */
static bool power_lies(void)
{
    unsigned reads = bmc.reads;

    usleep(100 * 1000);
    return bmc.reads == reads;
}

static int64_t real_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

/* While there is nothing to divide, readings wait where they come in.  Who asks
 * has them in his figure, and at once. */
START_TEST(test_power_waits)
{
    struct joule_stake *s;
    struct joule_board *board;
    struct joule_snapshot snap;
    int64_t ns, begin_ns;
    uint64_t uj;

    power_ops = &fake_resting_ops;
    power_starts(JOULE_ATTRIBUTION_CPUTIME, 100 * S);
    ck_assert(power_sleeps(10 * S));
    ck_assert(power_lies());
    ck_assert_int_eq(joule_sampler_read(power, &snap), 0);
    ck_assert_int_eq(snap.period_ns, 100 * S);
    ns = snap.tally.mono_ns;
    uj = snap.tally.node_uj;
    for (int i = 1; i <= 30; i++)
        fake_power_keep(&bmc, ns + i * S, i <= 10 ? 100 : 200);
    bmc.now_ns = ns + 30 * S + 1;
    begin_ns = real_ns();
    s = power_begin(7);
    ck_assert_int_lt(real_ns() - begin_ns, S);
    ck_assert_uint_eq(bmc.taken, 30);
    ck_assert_int_eq(joule_sampler_read(power, &snap), 0);
    /* 10 s of 100 W, 1 s between, 19 s of 200 W. */
    ck_assert_uint_ge(snap.tally.node_uj - uj, (1000 + 150 + 3800) * J);
    ck_assert_uint_le(snap.tally.node_uj - uj, (1000 + 150 + 3800) * J + J / 100);
    ck_assert_int_ge(totals_of("n2").mono_ns, ns + 30 * S);
    /* There may be more questions, or a profile, in the next three seconds. */
    bmc.watts[0] = 200;
    ck_assert(!power_sleeps(2 * S));
    ck_assert(power_sleeps(10 * S));
    /* It ends when the ledger is due. */
    bmc.now_ns += 101 * S;
    for (int i = 0; i < 1000 && bmc.rests < 3; i++)
        usleep(5000);
    ck_assert_uint_ge(bmc.rests, 3);
    joule_stake_destroy(s);
    /* What waits when slurmd ends is not lost. */
    while (!power_sleeps(10 * S))
        bmc.now_ns += 100 * S;
    fake_power_keep(&bmc, bmc.now_ns + S, 200);
    bmc.now_ns += 2 * S;
    joule_sampler_destroy(power);
    board = joule_board_open(tree.fd, "n2", &err);
    ck_assert_ptr_nonnull(board);
    ck_assert_int_eq(joule_board_read(board, &snap), 0);
    ck_assert_int_eq(snap.tally.mono_ns, bmc.now_ns - S);
    joule_board_destroy(board);
    power_ops = NULL;
}
END_TEST

/* Who goes by the board, or looks at the node again and again, has it of now. */
START_TEST(test_power_waits_for_nobody)
{
    struct joule_snapshot snap;
    struct joule_board *board;
    unsigned rests;

    power_ops = &fake_resting_ops;
    power_starts(JOULE_ATTRIBUTION_NODE, S);
    ck_assert(!power_sleeps(10 * S));
    joule_sampler_destroy(power);
    power_starts(JOULE_ATTRIBUTION_CPUTIME, S);
    ck_assert(power_sleeps(10 * S));
    board = joule_board_open(tree.fd, "n2", &err);
    ck_assert_ptr_nonnull(board);
    joule_board_follow(board, bmc.now_ns);
    bmc.now_ns += 2 * S;
    usleep(50 * 1000);
    ck_assert(!power_sleeps(10 * S));
    bmc.now_ns += JOULE_BOARD_FOLLOWED_NS;
    ck_assert(power_sleeps(10 * S));
    joule_board_destroy(board);
    joule_sampler_read(power, &snap);
    bmc.now_ns += 200 * MS;
    joule_sampler_read(power, &snap);
    rests = bmc.rests;
    bmc.roused = true;
    usleep(50 * 1000);
    ck_assert(!power_lies());
    ck_assert_uint_eq(bmc.rests, rests);
    joule_sampler_destroy(power);
    power_ops = NULL;
}
END_TEST

/* What waits is a failure, and nothing after it. */
START_TEST(test_power_waits_and_fails)
{
    int before = problems;

    power_ops = &fake_resting_ops;
    power_starts(JOULE_ATTRIBUTION_CPUTIME, 100 * S);
    ck_assert(power_sleeps(10 * S));
    bmc.error = EIO;
    bmc.text = "the BMC is gone";
    fake_power_keep(&bmc, bmc.now_ns, 100);
    bmc.roused = true;
    for (int i = 0; i < 1000 && bmc.taken == 0; i++)
        usleep(5000);
    joule_sampler_destroy(power);
    ck_assert_int_gt(problems, before);
    power_ops = NULL;
}
END_TEST

/* Without a topology there is one part. */
START_TEST(test_no_topology)
{
    slurmd_ends();
    tree_remove(&tree, "sys/devices/system/cpu/online");
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    pass(S, 1, 1);
    slurmd_ends();
    ck_assert_int_eq(problems, 0);
    ck_assert_uint_eq(totals().part_count, 1);
}
END_TEST

/* A ledger that cannot be had is said once; the total goes on. */
START_TEST(test_no_room_for_a_ledger)
{
    struct joule_snapshot snap;

    slurmd_ends();
    tree_remove(&tree, "run/slurm-joule/n1/ledger");
    tree_mkdir(&tree, "run/slurm-joule/n1/ledger");
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_int_eq(joule_sampler_read(sampler, &snap), 0);
    ck_assert_uint_eq(snap.tally.valid, 1);
    slurmd_ends();
    ck_assert_int_eq(problems, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("book");
    TCase *tc = tcase_create("book");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_a_step_pays_for_its_package);
    tcase_add_test(tc, test_extern_reads_its_jobs_total);
    tcase_add_test(tc, test_slurmd_away);
    tcase_add_test(tc, test_slurmd_away_from_a_job);
    tcase_add_test(tc, test_no_ledger_yet);
    tcase_add_test(tc, test_flood);
    tcase_add_test(tc, test_quiet);
    tcase_add_test(tc, test_quiet_but_watched);
    tcase_add_test(tc, test_quiet_but_asked);
    tcase_add_test(tc, test_quiet_but_ill);
    tcase_add_loop_test(tc, test_old_row, 0, 2);
    tcase_add_test(tc, test_cpu_time);
    tcase_add_test(tc, test_power_hangs);
    tcase_add_test(tc, test_power_quiet);
    tcase_add_test(tc, test_power_waits);
    tcase_add_test(tc, test_power_waits_for_nobody);
    tcase_add_test(tc, test_power_waits_and_fails);
    tcase_add_test(tc, test_no_topology);
    tcase_add_test(tc, test_no_room_for_a_ledger);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
