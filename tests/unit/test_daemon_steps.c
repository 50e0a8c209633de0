/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step, and the sampler that keeps the ledger: both sides at once, with
 * counters and a clock that are turned by hand. */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/step/step_energy.h"
#include "common/daemon/steps.h"
#include "common/daemon/sampler.h"
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
static struct joule_sensor *sensor;
static struct joule_sampler *sampler;
static atomic_int problems;

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
        .root_fd = tree.fd,
        .node = "n1",
        .period_ns = period_ns,
        .attribution = how,
        .idle_uw = idle_w * J,
        .event = on_event,
    };

    opt.sensor = sensor = fake_sensor(&fake);
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
    joule_sensor_destroy(sensor);
    sampler = NULL;
    sensor = NULL;
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
    snprintf(text, sizeof(text),
             "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 "
             "0 77 1 1",
             (int)getpid());
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

static struct joule_step_energy_reading must_read(struct joule_step_energy *s)
{
    struct joule_step_energy_reading r;

    ck_assert_msg(joule_step_energy_read(s, &r, &err) == 0, "%s", err.text);
    ck_assert(!r.carried);
    return r;
}

/* The sampler answers a question before it tells what it has seen. */
static void await_problems(int count)
{
    const struct timespec pause = {.tv_nsec = MS};

    for (int i = 0; i < 10000 && problems < count; i++)
        nanosleep(&pause, NULL);
    ck_assert_int_eq(problems, count);
}

/* On a machine that is busy the sampler may be later than a step waits. */
static struct joule_step_energy_reading
must_read_now(struct joule_step_energy *s)
{
    struct joule_step_energy_reading r = {.carried = true};
    int rc = -1;

    for (int tries = 0; tries < 100 && (rc < 0 || r.carried); tries++)
        rc = joule_step_energy_read_now(s, &r, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert(!r.carried);
    return r;
}

static struct joule_step_energy *begin(uint32_t job, uint32_t kind,
                                       uint64_t cpus, uint32_t count)
{
    struct joule_registration r = {
        .job = job,
        .uid = 1000,
        .kind = kind,
        .cpu_count = count,
        .job_cpu_count = count,
    };
    struct joule_step_energy *s;

    fake.now_ns++; /* a sample of the same moment is none */
    s = joule_step_energy_create(&fake.clock, tree.fd, "n1", &r, &cpus, &cpus,
                                 1);
    ck_assert_ptr_nonnull(s);
    if (sampler)
        must_read_now(s);
    return s;
}

/* Slurm ends an extern step while others of its job still run. */
START_TEST(test_extern_waits_for_others)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_EXTERN, 0x3, 2);
    struct joule_step_energy *step = begin(7, JOULE_STEP_NUMBERED, 0x3, 2);
    struct joule_step_energy *other = begin(8, JOULE_STEP_NUMBERED, 0xc, 2);

    ck_assert_int_eq(joule_step_energy_await_others(s, 0), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    joule_step_energy_end(step);
    ck_assert_int_eq(joule_step_energy_await_others(s, 0), 0);
    joule_step_energy_destroy(step);
    ck_assert_int_eq(joule_step_energy_await_others(s, 0), 0);
    joule_step_energy_destroy(other);
    joule_step_energy_destroy(s);
}
END_TEST

/* Whether a job has the node alone; before its step is registered, too. */
START_TEST(test_other_jobs)
{
    struct joule_step_energy *watch =
        joule_step_energy_watch(&fake.clock, tree.fd, "n1");
    struct joule_step_energy *nowhere =
        joule_step_energy_watch(&fake.clock, tree.fd, "n2");
    struct joule_step_energy *s, *step, *other;

    ck_assert(!joule_step_energy_has_other_job(watch, 7));
    ck_assert(joule_step_energy_has_other_job(nowhere, 7));
    ck_assert(!joule_step_energy_is_alone(watch));
    s = begin(7, JOULE_STEP_EXTERN, 0xf, 4);
    step = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    ck_assert(!joule_step_energy_has_other_job(watch, 7));
    ck_assert(!joule_step_energy_has_other_job(step, 7));
    ck_assert(joule_step_energy_is_alone(watch));
    other = begin(8, JOULE_STEP_EXTERN, 0x3, 2);
    ck_assert(joule_step_energy_has_other_job(watch, 7));
    ck_assert(joule_step_energy_has_other_job(step, 7));
    ck_assert(!joule_step_energy_is_alone(step));
    must_read(watch);
    ck_assert(joule_step_energy_has_other_job(watch, 7));
    joule_step_energy_end(other);
    ck_assert(!joule_step_energy_has_other_job(watch, 7));
    joule_step_energy_destroy(other);
    ck_assert(!joule_step_energy_has_other_job(step, 7));
    tree_write(&tree, "sys/devices/system/cpu/online", "0-1,3-4\n");
    ck_assert(!joule_step_energy_is_alone(step));
    tree_write(&tree, "sys/devices/system/cpu/online", "1-2\n");
    ck_assert(joule_step_energy_is_alone(step));
    tree_remove(&tree, "sys/devices/system/cpu/online");
    ck_assert(!joule_step_energy_is_alone(step));
    joule_step_energy_destroy(watch);
    joule_step_energy_destroy(nowhere);
    joule_step_energy_destroy(step);
    joule_step_energy_destroy(s);
}
END_TEST

static struct joule_step_energy_reading carried(struct joule_step_energy *s)
{
    struct joule_step_energy_reading r;

    ck_assert_msg(joule_step_energy_read_now(s, &r, &err) == 0, "%s", err.text);
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
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0x1, 1);
    struct joule_step_energy_reading r = must_read(s);

    ck_assert_uint_eq(r.used_uj, 0);
    pass(S, 100, 60);
    /* Nobody has sampled since. */
    ck_assert_uint_eq(must_read(s).used_uj, 0);
    r = must_read_now(s);
    ck_assert_uint_eq(r.used_uj, 50 * J);
    ck_assert_int_eq(r.elapsed_ns, S);
    ck_assert_uint_eq(r.average_mw, 50000);
    ck_assert_uint_eq(r.mw, 50000);
    pass(S / 2, 100, 60);
    joule_step_energy_end(s);
    pass(S / 2, 100, 60);
    /* It ended in the middle of that interval, and has no more. */
    ck_assert_uint_eq(must_read_now(s).used_uj, 100 * J);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 100 * J);
    joule_step_energy_destroy(s);
    joule_step_energy_destroy(NULL);
    ck_assert_uint_eq(totals().jobs_uj, 100 * J);
}
END_TEST

static struct joule_step_energy *begin_of_node(uint32_t kind, uint64_t cpus)
{
    const struct joule_registration r = {.job = 7,
                                         .uid = 1000,
                                         .kind = kind,
                                         .cpu_count = 2,
                                         .job_cpu_count = 4};
    struct joule_step_energy *s;

    fake.now_ns++;
    s = joule_step_energy_create(&fake.clock, tree.fd, "n1", &r,
                                 &(uint64_t){0xf}, &cpus, 1);
    ck_assert_ptr_nonnull(s);
    joule_step_energy_count_node(s);
    ck_assert_uint_eq(must_read_now(s).used_uj, 0);
    return s;
}

/* The power of a job that has just begun is that since it began. */
START_TEST(test_power_of_a_young_job)
{
    struct joule_step_energy *old, *young;

    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_NODE, 0);
    old = begin_of_node(JOULE_STEP_OTHER, 0xf);
    pass(S, 10, 20);
    must_read_now(old);
    joule_step_energy_destroy(old);
    pass(S / 10, 1, 2);
    young = begin_of_node(JOULE_STEP_NUMBERED, 0xf);
    pass(9 * S / 10, 9, 18);
    ck_assert_uint_eq(must_read_now(young).mw / 10, 3000);
    joule_step_energy_destroy(young);
}
END_TEST

/* JouleAttribution=node: so does each step, whatever runs beside it, from when
 * it was read first. */
START_TEST(test_each_step_has_the_node)
{
    struct joule_step_energy *batch, *first, *second;

    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_NODE, 0);
    batch = begin_of_node(JOULE_STEP_OTHER, 0xf);
    pass(S, 10, 20);
    first = begin_of_node(JOULE_STEP_NUMBERED, 0x3);
    pass(S, 10, 20);
    second = begin_of_node(JOULE_STEP_NUMBERED, 0xc);
    pass(S, 10, 20);
    ck_assert_uint_eq(must_read_now(second).used_uj, 30 * J);
    ck_assert_uint_eq(must_read_now(first).used_uj, 60 * J);
    ck_assert_uint_eq(must_read_now(first).average_mw, 30000);
    joule_step_energy_end(first);
    fake.now_ns++;
    must_read_now(first);
    pass(S, 10, 20);
    ck_assert_uint_eq(must_read_now(batch).used_uj, 120 * J);
    ck_assert_uint_eq(must_read_now(first).used_uj, 60 * J);
    ck_assert_uint_eq(must_read_now(second).used_uj, 60 * J);
    joule_step_energy_destroy(second);
    joule_step_energy_destroy(first);
    joule_step_energy_destroy(batch);
}
END_TEST

START_TEST(test_extern_reads_its_jobs_total)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_EXTERN, 0x3, 2);
    struct joule_step_energy *watch =
        joule_step_energy_watch(&fake.clock, tree.fd, "n1");

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 100 * J);
    ck_assert_uint_eq(must_read(watch).used_uj, 100 * J);
    joule_step_energy_end(watch);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read(watch).used_uj, 100 * J);
    ck_assert_uint_eq(must_read_now(s).used_uj, 200 * J);
    joule_step_energy_destroy(watch);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 300 * J);
    joule_step_energy_destroy(s);
    /* The row is gone with the next sample. */
    pass(S, 0, 0);
    slurmd_ends();
    ck_assert_uint_eq(totals().gone_uj, 300 * J);
}
END_TEST

START_TEST(test_slurmd_away)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct joule_step_energy_reading r;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 160 * J);
    slurmd_ends();
    pass(2 * S, 20, 20);
    r = carried(s);
    ck_assert_uint_eq(r.used_uj, (160 + 2 * 160) * J);
    ck_assert_int_eq(r.elapsed_ns, 3 * S);
    /* Without asking, what is charged; but it does not fall. */
    ck_assert_uint_eq(must_read(s).used_uj, r.used_uj);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_uint_eq(must_read_now(s).used_uj, r.used_uj);
    ck_assert_uint_eq(totals().jobs_uj, 200 * J);
    pass(S, 200, 200);
    ck_assert_uint_eq(must_read_now(s).used_uj, 600 * J);
    slurmd_ends();
    /* Nor is more than five minutes carried on. */
    pass(3600 * S, 0, 0);
    ck_assert_uint_eq(carried(s).used_uj, (600 + 300 * 400) * J);
    joule_step_energy_destroy(s);
}
END_TEST

/* The reader of a profile asks when the step has ended, and reads what the step
 * did. */
START_TEST(test_slurmd_away_at_the_end)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct joule_step_energy *watch =
        joule_step_energy_watch(&fake.clock, tree.fd, "n1");
    struct joule_step_energy_reading r;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(watch).used_uj, 160 * J);
    slurmd_ends();
    pass(2 * S, 0, 0);
    joule_step_energy_end(s);
    pass(S, 0, 0);
    ck_assert_uint_eq(carried(s).used_uj, (160 + 2 * 160) * J);
    r = carried(watch);
    ck_assert_uint_eq(r.used_uj, (160 + 2 * 160) * J);
    ck_assert_int_eq(r.elapsed_ns, 3 * S);
    joule_step_energy_destroy(watch);
    joule_step_energy_destroy(s);
}
END_TEST

/* The job's step ends while slurmd is away, and the extern step is asked,
 * as 26.05 does all the time: then the job is charged what the ledger says in
 * the end. */
START_TEST(test_slurmd_away_from_a_job)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_EXTERN, 0xf, 4);
    uint64_t away_uj;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 160 * J);
    slurmd_ends();
    pass(2 * S, 20, 20);
    away_uj = carried(s).used_uj;
    ck_assert_uint_gt(away_uj, (160 + 2 * 159) * J);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_uint_eq(must_read_now(s).used_uj, totals().jobs_uj);
    ck_assert_uint_lt(totals().jobs_uj, away_uj);
    joule_step_energy_destroy(s);
}
END_TEST

/* A step that is one too many of its job has no row, and never gets one; slurmd
 * says so once. */
START_TEST(test_too_many_steps)
{
    struct joule_step_energy *s[JOULE_LEDGER_STEPS_MAX / 2], *one, *last;
    struct joule_registration r = {.job = 7, .uid = 1000};
    struct joule_step_energy_reading reading;
    const uint64_t cpus = 1;

    slurmd_ends();
    for (size_t i = 0; i < sizeof(s) / sizeof(s[0]); i++)
        s[i] = joule_step_energy_create(&fake.clock, tree.fd, "n1", &r, &cpus,
                                        &cpus, 1);
    one = joule_step_energy_create(&fake.clock, tree.fd, "n1", &r, &cpus, &cpus,
                                   1);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_int_eq(joule_step_energy_read_now(one, &reading, &err), -1);
    ck_assert_int_eq(errno, EDQUOT);
    last = begin(8, JOULE_STEP_NUMBERED, 0x1, 1);
    joule_step_energy_destroy(s[0]);
    ck_assert_int_eq(joule_step_energy_read_now(one, &reading, &err), -1);
    ck_assert_int_eq(errno, EDQUOT);
    ck_assert_uint_eq(totals().surplus, 1);
    await_problems(1);
    joule_step_energy_destroy(one);
    joule_step_energy_destroy(last);
    for (size_t i = 1; i < sizeof(s) / sizeof(s[0]); i++)
        joule_step_energy_destroy(s[i]);
}
END_TEST

/* A package no longer answers: nothing is known of the node, and so of no step,
 * until it is back with what it has used meanwhile. */
START_TEST(test_a_package_is_lost)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct joule_step_energy_reading r;
    int rc = 0;

    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 160 * J);
    fake.error[1] = ENXIO;
    pass(20 * S, 100, 60);
    for (int tries = 0; rc == 0 && tries < 100; tries++) {
        rc = joule_step_energy_read_now(s, &r, &err);
        /* Where the sampler was later than it is waited for. */
        if (rc == 0)
            ck_assert(r.carried);
    }
    ck_assert_int_eq(rc, -1);
    ck_assert_int_eq(errno, ENODATA);
    ck_assert_ptr_nonnull(strstr(err.text, "does not know"));
    await_problems(2);
    ck_assert_uint_eq(totals().jobs_uj, 160 * J);
    fake.error[1] = 0;
    pass(S, 100, 60);
    /* A reading that was carried on may have said more. */
    ck_assert_uint_ge(must_read_now(s).used_uj, 480 * J);
    joule_step_energy_end(s);
    must_read_now(s);
    joule_step_energy_destroy(s);
    ck_assert_uint_eq(totals().jobs_uj, 480 * J);
}
END_TEST

/* A step that begins before slurmd has ever sampled. */
START_TEST(test_no_ledger_yet)
{
    struct joule_step_energy_reading r;
    struct joule_step_energy *s, *watch;

    slurmd_ends();
    tree_remove(&tree, "run/slurm-joule/n1/ledger");
    s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    watch = joule_step_energy_watch(&fake.clock, tree.fd, "n1");
    ck_assert_int_eq(joule_step_energy_read_now(s, &r, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    pass(S, 50, 50);
    slurmd_starts(JOULE_ATTRIBUTION_ALLOC, 0);
    ck_assert_int_eq(joule_step_energy_read(watch, &r, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    /* It is registered, but the total is not known yet. */
    ck_assert_int_eq(joule_step_energy_read_now(s, &r, &err), -1);
    ck_assert_int_eq(errno, ENODATA);
    pass(S, 100, 60);
    r = must_read_now(s);
    pass(S, 100, 60);
    r.used_uj += 160 * J;
    ck_assert_uint_eq(must_read_now(s).used_uj, r.used_uj);
    ck_assert_uint_eq(must_read(watch).used_uj, r.used_uj);
    joule_step_energy_destroy(watch);
    joule_step_energy_destroy(s);
    ck_assert_int_eq(problems, 0);
}
END_TEST

/* Who asks without end gets no more than is his. */
START_TEST(test_flood)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    struct timespec from, to;
    int64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 150; i++) {
        pass(MS, 1, 1);
        must_read_now(s);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    ns = (to.tv_sec - from.tv_sec) * S + to.tv_nsec - from.tv_nsec;
    ck_assert_uint_le(totals().intervals,
                      JOULE_SAMPLER_ASKED_AT_ONCE + 2 +
                          (uint64_t)(ns / JOULE_SAMPLER_ASKED_NS));
    ck_assert_int_ge(ns, 80 * JOULE_SAMPLER_ASKED_NS);
    joule_step_energy_destroy(s);
}
END_TEST

/* The counters are read again and again, without being asked. */
static bool works(void)
{
    unsigned before = fake.reads;

    for (int tries = 0; tries < 2000 && fake.reads < before + 20; tries++)
        usleep(5000);
    return fake.reads >= before + 20;
}

/* There is one pace, whatever is on the node. */
START_TEST(test_one_pace)
{
    struct joule_snapshot snapshot;
    struct joule_step_energy *s;

    slurmd_ends();
    pass(S, 1, 1);
    slurmd_starts_with(JOULE_ATTRIBUTION_CPUTIME, 20, 20 * MS);
    pass(100 * S, 100, 100);
    ck_assert(works());
    s = begin(7, JOULE_STEP_NUMBERED, 0x3, 2);
    pass(100 * S, 100, 100);
    ck_assert(works());
    ck_assert_int_eq(joule_sampler_read(sampler, &snapshot), 0);
    ck_assert_int_eq(snapshot.period_ns, 20 * MS);
    joule_step_energy_destroy(s);
}
END_TEST

/* A poll gets the last sample, however old it is, and costs none. */
START_TEST(test_polls_take_no_ticket)
{
    struct joule_step_energy *s = begin(7, JOULE_STEP_NUMBERED, 0xf, 4);
    unsigned reads = fake.reads;

    for (int i = 0; i < 100; i++) {
        pass(60 * S, 1, 1);
        ck_assert_uint_eq(must_read(s).used_uj, 0);
    }
    ck_assert_uint_eq(fake.reads, reads);
    ck_assert_uint_eq(must_read_now(s).used_uj, 200 * J);
    joule_step_energy_destroy(s);
}
END_TEST

/* Floor and rest by package, by CPU time: nobody's here, so the system's. */
START_TEST(test_cpu_time)
{
    struct joule_ledger_totals t;
    struct joule_step_energy *s;

    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_CPUTIME, 80);
    s = begin(7, JOULE_STEP_NUMBERED, 0x1, 1);
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 20 * J);
    t = totals();
    ck_assert_uint_eq(t.part_count, 2);
    ck_assert_uint_eq(t.unallocated_uj, 60 * J);
    ck_assert_uint_eq(t.system_uj, 80 * J);
    joule_step_energy_destroy(s);
}
END_TEST

#define GROUP "cg/cpuacct/slurm_n1/uid_1000/job_7/"

/* The job's group has used CPU 0 for 0.5 s a second, and its step nothing; the
 * user has made a group, and its processes go on without a step. */
START_TEST(test_a_job_has_a_group)
{
    struct joule_step_energy *s;

    slurmd_ends();
    tree_write(&tree, "proc/self/mountinfo",
               "33 31 0:30 / /cg/cpuacct rw - cgroup cgroup rw,cpuacct\n");
    slurmd_starts(JOULE_ATTRIBUTION_CPUTIME, 80);
    s = begin(7, JOULE_STEP_NUMBERED, 0x1, 1);
    tree_write(&tree, GROUP "step_0/cpuacct.usage_percpu", "0 0 0 0\n");
    tree_write(&tree, GROUP "cpuacct.usage_percpu", "500000000 0 0 0\n");
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, (20 + 60) * J);
    slurmd_ends();
    slurmd_starts(JOULE_ATTRIBUTION_CPUTIME, 80);
    tree_write(&tree, GROUP "cpuacct.usage_percpu", "1000000000 0 0 0\n");
    pass(S, 100, 60);
    ck_assert_uint_eq(must_read_now(s).used_uj, 2 * 80 * J);
    ck_assert_int_eq(problems, 0);
    tree_mkdir(&tree, GROUP "step_0/x");
    for (int i = 0; i < 8; i++) {
        pass(S, 40, 40);
        must_read_now(s);
    }
    await_problems(1);
    joule_step_energy_destroy(s);
    s = begin(8, JOULE_STEP_NUMBERED, 0x2, 1);
    tree_write(&tree, GROUP "cpuacct.usage_percpu", "2500000000 0 0 0\n");
    pass(S, 100, 60);
    must_read_now(s);
    await_problems(2);
    ck_assert_uint_eq(totals().foreign, 1);
    ck_assert_uint_eq(totals().stray_ns, 1500 * MS);
    joule_step_energy_destroy(s);
}
END_TEST

/* ---- power ---- */

static struct fake_power bmc; /* of node n2 */
static struct joule_sensor *power_sensor;
static struct joule_sampler *power;

static void power_starts(enum joule_attribution how)
{
    struct joule_sampler_options opt = {
        .clock = &bmc.clock,
        .root_fd = tree.fd,
        .node = "n2",
        .period_ns = 10 * MS,
        .attribution = how,
        .idle_uw = 20 * J,
        .event = on_event,
    };
    struct joule_snapshot snap = {0};

    fake_power_init(&bmc);
    opt.sensor = power_sensor =
        fake_power_sensor(&bmc, joule_power_gap_ns(opt.period_ns));
    power = joule_sampler_create(&opt, &err);
    ck_assert_ptr_nonnull(power);
    for (int i = 0; i < 1000 && !snap.total.valid; i++) {
        bmc.now_ns += 1000;
        usleep(5000);
        joule_sampler_read(power, &snap);
    }
    ck_assert_uint_eq(snap.total.valid, 1);
}

static void power_ends(void)
{
    joule_sampler_destroy(power);
    joule_sensor_destroy(power_sensor);
}

static struct joule_step_energy *power_begin(uint32_t job)
{
    struct joule_registration r = {
        .job = job, .cpu_count = 1, .job_cpu_count = 1};
    uint64_t cpus = 1;

    bmc.now_ns += 1000;
    return joule_step_energy_create(&bmc.clock, tree.fd, "n2", &r, &cpus, &cpus,
                                    1);
}

/* A BMC that does not answer: the ledger does, with the last power. */
START_TEST(test_power_hangs)
{
    struct joule_step_energy *s;

    power_starts(JOULE_ATTRIBUTION_ALLOC);
    bmc.hangs = true;
    for (int i = 0; i < 1000 && bmc.waits == 0; i++)
        usleep(5000);
    s = power_begin(7);
    bmc.now_ns += 1000;
    must_read_now(s);
    bmc.now_ns += 4 * S;
    /* 100 W, a quarter of the CPUs. */
    ck_assert_uint_eq(must_read_now(s).used_uj / J, 100);
    joule_step_energy_destroy(s);
    power_ends();
}
END_TEST

/* The ledger may be made, and the first interval charged, later than the first
 * sample is seen. */
static void power_is_charged(void)
{
    struct joule_ledger *l = NULL;
    struct joule_ledger_totals t;
    int tries = 0;

    while (!(l = joule_ledger_open(tree.fd, "n2", &err))) {
        ck_assert_msg(errno == ENOENT, "%s", err.text);
        ck_assert_int_lt(tries++, 1000);
        usleep(5000);
    }
    while (joule_ledger_read(l, &t, NULL, NULL) != 0) {
        ck_assert_int_eq(errno, ENODATA);
        ck_assert_int_lt(tries++, 1000);
        bmc.now_ns += 20 * MS;
        usleep(5000);
    }
    joule_ledger_destroy(l);
}

/* Whether readings are charged that nobody has asked for: ten intervals, one
 * after the other. */
static bool power_charges(void)
{
    for (int i = 0; i < 10; i++) {
        uint64_t before = totals_of("n2").intervals;
        int tries = 0;

        bmc.now_ns += 20 * MS;
        while (totals_of("n2").intervals == before)
            if (tries++ == 2000)
                return false;
            else
                usleep(5000);
    }
    return true;
}

/* The energy of a power is divided at each sample, and up to now when somebody
 * asks. */
START_TEST(test_power_is_charged)
{
    struct joule_step_energy *s;
    struct joule_step_energy_reading r;
    uint64_t uj;

    power_starts(JOULE_ATTRIBUTION_CPUTIME);
    power_is_charged();
    ck_assert(power_charges());
    s = power_begin(7);
    ck_assert(power_charges());
    /* Who asks has a sample of this moment. */
    uj = must_read_now(s).used_uj;
    bmc.now_ns += 4 * S;
    r = must_read_now(s);
    ck_assert_int_ge(r.mono_ns, bmc.now_ns - 20 * MS);
    /* Of the idle node's 20 W, by its CPUs: it computed nothing. */
    ck_assert_uint_ge(r.used_uj - uj, 20 * J);
    joule_step_energy_destroy(s);
    power_ends();
}
END_TEST

/* ---- what a power is of, without a thread ---- */

static struct joule_snapshot node_snapshot;
static struct joule_sensor *follower; /* goes on from states; asks no BMC */
static struct joule_sensor_state state;
static struct joule_steps *steps;

static void book_opens(void)
{
    const struct joule_meter_sensor_options meter = {
        .clock = &bmc.clock, .meter = &bmc.meter, .gap_ns = 3 * S};
    struct joule_steps_options opt = {.root_fd = tree.fd,
                                      .node = "n3",
                                      .attribution = JOULE_ATTRIBUTION_CPUTIME};

    opt.sensor = follower = joule_meter_sensor_create(&meter);
    if (!joule_sensor_resume(follower, &state)) {
        state = follower->state;
        joule_node_total_start(&node_snapshot.total, bmc.domain,
                               bmc.meter.domain_count,
                               node_snapshot.total.node_uj);
    }
    steps = joule_steps_create(&opt, &err);
    ck_assert_msg(steps != NULL, "%s", err.text);
}

static void book_closes(void)
{
    joule_steps_destroy(steps);
    joule_sensor_destroy(follower);
}

/* slurmd is away for [ns], and comes back with the labels as they are now. */
static void book_reopens(int64_t ns)
{
    book_closes();
    bmc.now_ns += ns;
    book_opens();
}

/* Readings of a second each, which are looked at a little later; returns what
 * was charged to jobs. */
static uint64_t book_samples(int seconds, double watts, uint64_t sensor_key)
{
    const struct joule_ledger_totals *t = NULL;
    struct joule_reading readings[FAKE_LABELS_MAX];
    uint64_t before_uj = 0;

    for (int i = 0; i < seconds; i++) {
        int64_t now_ns;

        bmc.now_ns += S;
        for (size_t k = 0; k < bmc.meter.domain_count; k++)
            joule_integrator_update(&state.integrator[k], watts, sensor_key,
                                    bmc.now_ns - S / 2, 0, 3 * S);
        ck_assert(joule_sensor_resume(follower, &state));
        now_ns = joule_sensor_read(follower, false, readings);
        joule_node_total_update(&node_snapshot.total, bmc.domain, readings,
                                now_ns);
        t = joule_steps_sample(steps, &node_snapshot);
        ck_assert_ptr_nonnull(t);
        ck_assert_uint_eq(t->faults, 0);
        if (i == 0)
            before_uj = t->jobs_uj;
    }
    return t->jobs_uj - before_uj;
}

static uint64_t book_floor_w(void)
{
    return totals_of("n3").part[0].idle_power.idle_power_uw / J;
}

static void book_registers(uint32_t cpu_count, uint64_t cpus)
{
    struct joule_registration r = {.owner = joule_process_number(9, 9),
                                   .job = 7,
                                   .cpu_count = cpu_count,
                                   .job_cpu_count = cpu_count,
                                   .began_ns = bmc.now_ns};
    unsigned slot;

    tree_write(&tree, "proc/9/stat",
               "9 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 "
               "0 1 0 9 1 1");
    ck_assert_int_eq(joule_ledger_register(joule_steps_ledger(steps), tree.fd,
                                           &r, &cpus, &cpus, &slot, &err),
                     0);
}

/* A job that has the node and sleeps, while the idle power is learned. */
static void book_begins(void)
{
    fake_power_init(&bmc);
    memset(&state, 0, sizeof(state));
    memset(&node_snapshot, 0, sizeof(node_snapshot));
    book_opens();
    book_registers(4, 0xf);
    ck_assert_uint_eq(book_samples(121, 136, 5), 120 * 136 * J);
    ck_assert_uint_eq(book_floor_w(), 136);
}

/* A reconfigure puts another sensor behind the label. */
START_TEST(test_another_sensor)
{
    book_begins();
    book_reopens(2 * S);
    ck_assert_uint_eq(book_samples(121, 300, 6), 120 * 300 * J);
    ck_assert_uint_eq(book_floor_w(), 300);
    book_closes();
}
END_TEST

/* Or one more label before the first minute is over, and later: what is known
 * of the node's sensor is still known. */
START_TEST(test_another_label)
{
    book_begins();
    fake_power_add(&bmc, "Socket0", 40);
    book_reopens(3 * S);
    ck_assert_uint_eq(book_samples(21, 136, 5), 20 * 136 * J);
    ck_assert_uint_eq(book_floor_w(), 136);
    book_closes();
}
END_TEST

/* Both: nothing is known, and the interval before the first reading tells
 * nothing of the new sensor. */
START_TEST(test_another_sensor_and_label)
{
    book_begins();
    fake_power_add(&bmc, "Socket0", 40);
    book_reopens(3 * S);
    ck_assert_uint_eq(book_samples(121, 200, 6), 120 * 200 * J);
    ck_assert_uint_eq(book_floor_w(), 200);
    book_closes();
}
END_TEST

/* The node is a domain of its own, and packages beside it say how its energy is
 * divided. */
START_TEST(test_packages_divide_the_node)
{
    static const struct joule_domain domains[] = {
        {.kind = JOULE_DOMAIN_POWER, .in_total = true, .name = "Node"},
        {.kind = JOULE_DOMAIN_POWER, .name = "BMC"},
        {.kind = JOULE_DOMAIN_PACKAGE, .package = 0, .name = "package-0"},
        {.kind = JOULE_DOMAIN_PACKAGE, .package = 1, .name = "package-1"},
        {.kind = JOULE_DOMAIN_DRAM, .package = 1, .name = "dram-1"},
    };
    static const uint64_t used_j[] = {400, 300, 120, 50, 30};
    const struct joule_sensor whole = {.domains = domains, .domain_count = 5};
    const struct joule_steps_options opt = {.sensor = &whole,
                                            .root_fd = tree.fd,
                                            .node = "n3",
                                            .attribution =
                                                JOULE_ATTRIBUTION_ALLOC};
    struct joule_reading readings[5] = {0};
    const struct joule_ledger_totals *t = NULL;

    memset(&node_snapshot, 0, sizeof(node_snapshot));
    joule_node_total_start(&node_snapshot.total, domains, 5, 0);
    fake_power_init(&bmc);
    steps = joule_steps_create(&opt, &err);
    ck_assert_msg(steps != NULL, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        bmc.now_ns += S;
        for (int k = 0; k < 5; k++) {
            readings[k].state = JOULE_READING_OK;
            readings[k].uj += used_j[k] * J;
        }
        joule_node_total_update(&node_snapshot.total, domains, readings,
                                bmc.now_ns);
        t = joule_steps_sample(steps, &node_snapshot);
        ck_assert_ptr_nonnull(t);
        if (i == 0)
            book_registers(1, 0x1);
    }
    ck_assert_uint_eq(t->part_count, 2);
    /* Half of package 0, which has used 120 J of 200. */
    ck_assert_uint_eq(t->jobs_uj, 120 * J);
    joule_steps_destroy(steps);
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
    struct joule_sampler_options opt = {
        .clock = &fake.clock, .root_fd = tree.fd, .node = "n1", .period_ns = S};

    slurmd_ends();
    tree_remove(&tree, "run/slurm-joule/n1/ledger");
    tree_mkdir(&tree, "run/slurm-joule/n1/ledger");
    sensor = fake_sensor(&fake);
    opt.sensor = sensor;
    ck_assert_ptr_null(joule_sampler_create(&opt, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "the ledger of node n1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon steps");
    TCase *tc = tcase_create("book");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_a_step_pays_for_its_package);
    tcase_add_test(tc, test_extern_reads_its_jobs_total);
    tcase_add_test(tc, test_each_step_has_the_node);
    tcase_add_test(tc, test_power_of_a_young_job);
    tcase_add_test(tc, test_extern_waits_for_others);
    tcase_add_test(tc, test_other_jobs);
    tcase_add_test(tc, test_slurmd_away);
    tcase_add_test(tc, test_slurmd_away_at_the_end);
    tcase_add_test(tc, test_slurmd_away_from_a_job);
    tcase_add_test(tc, test_too_many_steps);
    tcase_add_test(tc, test_a_package_is_lost);
    tcase_add_test(tc, test_no_ledger_yet);
    tcase_add_test(tc, test_flood);
    tcase_add_test(tc, test_one_pace);
    tcase_add_test(tc, test_polls_take_no_ticket);
    tcase_add_test(tc, test_cpu_time);
    tcase_add_test(tc, test_a_job_has_a_group);
    tcase_add_test(tc, test_power_hangs);
    tcase_add_test(tc, test_power_is_charged);
    tcase_add_test(tc, test_another_sensor);
    tcase_add_test(tc, test_another_label);
    tcase_add_test(tc, test_another_sensor_and_label);
    tcase_add_test(tc, test_packages_divide_the_node);
    tcase_add_test(tc, test_no_topology);
    tcase_add_test(tc, test_no_room_for_a_ledger);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
