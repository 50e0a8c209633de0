/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base/process.h"
#include "common/daemon/step_rows.h"
#include "tests/unit/fail.h"
#include "tests/unit/tree.h"

#define S     INT64_C(1000000000)
#define J     UINT64_C(1000000)
#define SLOTS JOULE_LEDGER_SLOTS_MAX

static struct tree tree;
static struct joule_error err;
static struct joule_ledger *writer, *stepd;
static struct joule_step_rows *charge;
static struct joule_step_rows_options options;
static struct joule_step_cpu_time usage[SLOTS];
static struct joule_job_cpu_time jobs[2];
static struct joule_step_rows_sample sample;
static uint64_t busy_ns[2], part_uj[2];
static const uint64_t sets[] = {0x3, 0xc};

static void begin(void)
{
    writer = joule_ledger_create(tree.fd, "n1", 1, &err);
    ck_assert_ptr_nonnull(writer);
    options.ledger = writer;
    charge = joule_step_rows_create(&options, &err);
    ck_assert_msg(charge != NULL, "%s", err.text);
}

static void end(void)
{
    joule_step_rows_destroy(charge);
    joule_ledger_destroy(writer);
    charge = NULL;
    writer = NULL;
}

/* Four CPUs in one part, 40 W of them idle. */
static void setup(void)
{
    static const uint64_t all = 0xf;

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    memset(usage, 0, sizeof(usage));
    memset(jobs, 0, sizeof(jobs));
    memset(busy_ns, 0, sizeof(busy_ns));
    memset(part_uj, 0, sizeof(part_uj));
    options = (struct joule_step_rows_options){
        .idle_uw = 40 * J, .part_cpus = &all, .part_count = 1};
    sample = (struct joule_step_rows_sample){.mono_ns = 1000 * S,
                                             .node_uj = 7 * J,
                                             .part_busy_ns = busy_ns,
                                             .usage = usage,
                                             .usage_count = SLOTS,
                                             .jobs = jobs,
                                             .job_count = 2};
    begin();
    stepd = joule_ledger_open(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(stepd);
}

static void teardown(void)
{
    end();
    joule_ledger_destroy(stepd);
    tree_destroy(&tree);
}

/* A second in which the node uses [uj] and [busy] of CPU time. */
static const struct joule_ledger_totals *second(uint64_t uj, uint64_t busy)
{
    const struct joule_ledger_totals *t;

    sample.mono_ns += S;
    sample.node_uj += uj;
    busy_ns[0] += busy;
    t = joule_step_rows_update(charge, &sample);
    ck_assert_uint_eq(t->faults, 0);
    return t;
}

/* A step that has [own] of its job's CPUs, or 0: so many. */
static unsigned add_step(uint32_t job, enum joule_step_kind kind, uint64_t cpus,
                         uint64_t own, uint32_t count)
{
    static unsigned pid;
    struct joule_registration r = {
        .owner = joule_process_number((pid_t)++pid, 5),
        .job = job,
        .kind = (uint32_t)kind,
        .cpu_count = count,
        .job_cpu_count = (uint32_t)__builtin_popcountll(cpus),
        .began_ns = sample.mono_ns,
    };
    unsigned slot;

    ck_assert_int_eq(
        joule_ledger_register(stepd, tree.fd, &r, &cpus, &own, &slot, &err), 0);
    usage[slot] = (struct joule_step_cpu_time){.owner = r.owner,
                                               .state = JOULE_USAGE_KNOWN};
    return slot;
}

static unsigned add(uint32_t job, enum joule_step_kind kind, uint64_t cpus,
                    uint32_t count)
{
    return add_step(job, kind, cpus, 0, count);
}

static struct joule_row row(unsigned slot)
{
    struct joule_row r;
    int64_t mono_ns;

    ck_assert_int_eq(
        joule_ledger_read_row(stepd, slot, usage[slot].owner, &r, &mono_ns), 0);
    return r;
}

START_TEST(test_two_jobs)
{
    const struct joule_ledger_totals *t = second(0, 0);
    unsigned a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    unsigned b = add(2, JOULE_STEP_NUMBERED, 0x4, 1);

    ck_assert_uint_eq(t->charged_uj, 0);
    for (int i = 0; i < 10; i++) {
        usage[a].cpu_ns += 2 * S;
        usage[b].cpu_ns += S / 2;
        t = second(100 * J, 3 * S);
    }
    ck_assert_uint_eq(row(a).uj, 10 * (20 * J + 40 * J));
    ck_assert_uint_eq(row(a).mw, 60000);
    ck_assert_uint_eq(row(b).uj, 10 * (10 * J + 10 * J));
    ck_assert_uint_eq(row(b).job_uj, row(b).uj);
    ck_assert_uint_eq(t->unallocated_uj, 100 * J);
    ck_assert_uint_eq(t->system_uj, 100 * J);
    ck_assert_uint_eq(t->charged_uj, 1000 * J);
    ck_assert_uint_eq(t->node_mw, 100000);
    /* The same again is no interval. */
    t = joule_step_rows_update(charge, &sample);
    ck_assert_uint_eq(t->intervals, 10);
}
END_TEST

START_TEST(test_extern_has_the_jobs_total)
{
    unsigned x, n;

    second(0, 0);
    x = add(1, JOULE_STEP_EXTERN, 0xf, 4);
    second(40 * J, 0);
    n = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    usage[n].cpu_ns += 4 * S;
    second(100 * J, 4 * S);
    ck_assert_uint_eq(row(x).uj, 40 * J);
    ck_assert_uint_eq(row(n).uj, 100 * J);
    ck_assert_uint_eq(row(x).job_uj, 140 * J);
    ck_assert_uint_eq(row(n).job_uj, 140 * J);
    ck_assert_uint_eq(row(x).job_mw, 100000);
    /* The step ends; the job goes on. */
    joule_ledger_end(stepd, n, usage[n].owner, sample.mono_ns);
    second(60 * J, 0);
    ck_assert_int_eq(row(n).state, JOULE_ROW_ENDED);
    ck_assert_uint_eq(row(n).uj, 100 * J);
    joule_ledger_release(stepd, n, usage[n].owner);
    second(40 * J, 0);
    ck_assert_uint_eq(row(x).job_uj, 140 * J + 40 * J + 40 * J);
    /* The row is gone, what it had is the job's. */
    ck_assert_uint_eq(second(0, 0)->gone_uj, 100 * J);
}
END_TEST

/* Job 1 has a group, which counts from 0 on. */
static void with_group(void)
{
    jobs[0] = (struct joule_job_cpu_time){.job = 1, .state = JOULE_USAGE_GONE};
    second(0, 0);
    jobs[0].state = JOULE_USAGE_KNOWN;
}

/* A step's processes have gone to another group of the job: its own counter
 * stands, the job's goes on. */
START_TEST(test_what_no_step_accounts_for)
{
    unsigned x, n, other;

    second(0, 0);
    x = add(1, JOULE_STEP_EXTERN, 0x3, 2);
    n = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    other = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    with_group();
    usage[n].cpu_ns = S / 2;
    usage[other].cpu_ns = S;
    jobs[0].cpu_ns = 2 * S;
    second(40 * J + 60 * J, 3 * S);
    /* 20 J of the floor, of which the step holds all. */
    ck_assert_uint_eq(row(x).job_uj, 20 * J + 40 * J);
    ck_assert_uint_eq(row(n).uj, 20 * J + 10 * J);
    ck_assert_uint_eq(row(x).uj, 30 * J);
    ck_assert_uint_eq(row(other).uj, 20 * J + 20 * J);
    ck_assert_uint_eq(row(x).job_cpu_ns, 2 * S);
    /* The same over a restart. */
    end();
    begin();
    jobs[0].cpu_ns += 2 * S;
    usage[other].cpu_ns += S;
    second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(x).job_uj, 2 * (20 * J + 40 * J));
    ck_assert_uint_eq(row(n).uj, 2 * 20 * J + 10 * J);
    /* What could not be read of the step is known of the job. */
    usage[n].state = JOULE_USAGE_UNKNOWN;
    jobs[0].cpu_ns += S;
    second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(x).job_uj, 3 * 20 * J + 2 * 40 * J + 20 * J);
    ck_assert_uint_eq(row(n).uj, 3 * 20 * J + 10 * J + 20 * J);
}
END_TEST

START_TEST(test_what_no_step_accounts_for_without_extern)
{
    unsigned b, n;

    second(0, 0);
    b = add(1, JOULE_STEP_OTHER, 0xf, 4);
    with_group();
    jobs[0].cpu_ns = S;
    second(100 * J, S);
    ck_assert_uint_eq(row(b).uj, 100 * J);
    n = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    jobs[0].cpu_ns += S;
    second(100 * J, S);
    ck_assert_uint_eq(row(b).uj, 100 * J);
    ck_assert_uint_eq(row(n).uj, 100 * J);
    ck_assert_uint_eq(row(n).job_uj, 200 * J);
}
END_TEST

/* A counter that is not the job's alone, or cannot be read. */
START_TEST(test_counter_of_a_job)
{
    const struct joule_ledger_totals *t;
    unsigned n;

    second(0, 0);
    n = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    /* Seen for the first time: what was before is not known. */
    jobs[0] = (struct joule_job_cpu_time){
        .job = 1, .state = JOULE_USAGE_KNOWN, .cpu_ns = 900 * S};
    usage[n].cpu_ns = S;
    second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(n).uj, 40 * J + 20 * J);
    /* slurmstepd is in it. */
    usage[n].cpu_ns += S;
    usage[n].stepd_ns = S;
    jobs[0].cpu_ns += 2 * S;
    second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(n).uj, 2 * 60 * J);
    ck_assert_uint_eq(row(n).stepd_ns, S);
    /* Less than its steps say; not read; gone; a new one. */
    usage[n].cpu_ns += S;
    second(40 * J + 60 * J, 3 * S);
    jobs[0].state = JOULE_USAGE_UNKNOWN;
    usage[n].cpu_ns += S;
    second(40 * J + 60 * J, 3 * S);
    jobs[0].state = JOULE_USAGE_GONE;
    usage[n].cpu_ns += S;
    second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(n).uj, 5 * 60 * J);
    jobs[0].state = JOULE_USAGE_KNOWN;
    jobs[0].cpu_ns = 3 * S;
    t = second(40 * J + 60 * J, 3 * S);
    ck_assert_uint_eq(row(n).uj, 5 * 60 * J + 100 * J);
    ck_assert_uint_eq(t->stray_ns, 0);
    /* Its last step has gone, and its processes have not. */
    joule_ledger_end(stepd, n, usage[n].owner, sample.mono_ns);
    joule_ledger_release(stepd, n, usage[n].owner);
    t = second(0, 0);
    ck_assert_uint_eq(t->stray_ns, 0);
    jobs[0].cpu_ns += S / 2;
    sample.foreign = 1;
    t = second(40 * J, S / 2);
    ck_assert_uint_eq(t->stray_ns, S / 2);
    ck_assert_uint_eq(t->foreign, 1);
    sample.foreign = 0;
    ck_assert_uint_eq(second(40 * J, 0)->foreign, 1);
    /* A new step is not charged for that. */
    n = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    second(40 * J + 60 * J, S);
    ck_assert_uint_eq(row(n).uj, 40 * J);
}
END_TEST

/* A batch script that does `srun sleep`, on half of the node; what is known of
 * the CPUs is the same after a restart. */
START_TEST(test_a_step_that_sleeps)
{
    unsigned x, batch, n;

    second(0, 0);
    x = add_step(1, JOULE_STEP_EXTERN, 0x3, 0x3, 2);
    batch = add_step(1, JOULE_STEP_OTHER, 0x3, 0x3, 2);
    second(40 * J, 0);
    n = add_step(1, JOULE_STEP_NUMBERED, 0x3, 0x3, 2);
    second(40 * J, 0);
    end();
    begin();
    usage[batch].cpu_ns += S / 1000;
    second(40 * J, S / 1000);
    ck_assert_uint_eq(row(n).uj, 2 * 20 * J);
    ck_assert_uint_eq(row(batch).uj, 20 * J);
    ck_assert_uint_eq(row(x).uj, 0);
    ck_assert_uint_eq(row(x).job_uj, 60 * J);
    /* It ends in the middle: the script has the rest. */
    joule_ledger_end(stepd, n, usage[n].owner, sample.mono_ns + S / 2);
    second(40 * J, 0);
    ck_assert_uint_eq(row(n).uj, 50 * J);
    ck_assert_uint_eq(row(batch).uj, 30 * J);
    /* One CPU of two. */
    n = add_step(1, JOULE_STEP_NUMBERED, 0x3, 0x2, 1);
    joule_ledger_end(stepd, batch, usage[batch].owner, sample.mono_ns);
    second(40 * J, 0);
    ck_assert_uint_eq(row(n).uj, 10 * J);
    ck_assert_uint_eq(row(x).uj, 10 * J);
    ck_assert_uint_eq(row(x).job_uj, 100 * J);
}
END_TEST

START_TEST(test_steps_one_after_the_other_without_extern)
{
    unsigned a, b;

    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    usage[a].cpu_ns += S;
    second(100 * J, S);
    joule_ledger_end(stepd, a, usage[a].owner, sample.mono_ns);
    second(40 * J, 0);
    b = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    second(40 * J, 0);
    ck_assert_uint_eq(row(b).uj, 40 * J);
    ck_assert_uint_eq(row(b).job_uj, 140 * J);
}
END_TEST

START_TEST(test_edges_inside_an_interval)
{
    const struct joule_ledger_totals *t;
    unsigned a;

    second(0, 0);
    sample.mono_ns += S / 4;
    a = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    sample.mono_ns -= S / 4;
    joule_ledger_end(stepd, a, usage[a].owner, sample.mono_ns + S / 2);
    usage[a].cpu_ns = S;
    t = second(100 * J, S);
    ck_assert_uint_eq(row(a).uj, 10 * J + 60 * J);
    ck_assert_int_eq(row(a).state, JOULE_ROW_ENDED);
    ck_assert_uint_eq(t->unallocated_uj, 30 * J);
    t = second(100 * J, S);
    ck_assert_uint_eq(row(a).uj, 70 * J);
    ck_assert_uint_eq(row(a).mw, 0);
}
END_TEST

/* What jobs are charged in [seconds] of [watts], in which nobody computes. */
static uint64_t sleeps(int seconds, uint64_t watts)
{
    /* Once more the same sample: no interval. */
    uint64_t before_uj = joule_step_rows_update(charge, &sample)->jobs_uj;

    for (int i = 0; i < seconds; i++)
        second(watts * J, 0);
    return joule_step_rows_update(charge, &sample)->jobs_uj - before_uj;
}

static uint64_t floor_w(void)
{
    return joule_step_rows_update(charge, &sample)
               ->part[0]
               .idle_power.idle_power_uw /
           J;
}

static void restart(uint64_t part_key)
{
    end();
    options.part_key = part_key;
    begin();
}

/* The same label, behind which the admin has put the whole node's sensor
 * instead of that of the processors. */
START_TEST(test_floor_of_another_sensor)
{
    options.idle_uw = 0;
    restart(0);
    sample.sensor_key = 5;
    second(0, 0);
    add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    ck_assert_uint_eq(sleeps(120, 136), 120 * 136 * J);
    ck_assert_uint_eq(floor_w(), 136);
    /* One sensor, known by its readings, keeps it over a restart. */
    restart(0);
    sample.sensor_key = 0;
    ck_assert_uint_eq(sleeps(1, 136), 136 * J);
    sample.sensor_key = 5;
    ck_assert_uint_eq(sleeps(1, 136), 136 * J);
    ck_assert_uint_eq(floor_w(), 136);
    restart(0);
    sample.sensor_key = 6;
    ck_assert_uint_eq(sleeps(1, 200), 200 * J); /* of both sensors */
    ck_assert_uint_eq(floor_w(), 0);
    ck_assert_uint_eq(sleeps(120, 300), 120 * 300 * J);
    ck_assert_uint_eq(floor_w(), 300);
}
END_TEST

/* Of the interval in which the node is measured for the first time since the
 * set of labels has changed a part was not measured. */
START_TEST(test_floor_before_it_was_measured)
{
    options.idle_uw = 0;
    restart(0);
    second(0, 0);
    add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    sleeps(120, 100);
    restart(1);
    sample.mono_ns += 3 * S;
    sample.measured_ns = sample.mono_ns;
    second(100 * J, 0); /* the last of four seconds */
    ck_assert_uint_eq(sleeps(20, 100), 20 * 100 * J);
    ck_assert_uint_eq(sleeps(60, 100), 60 * 100 * J);
    ck_assert_uint_eq(floor_w(), 100);
    /* The same parts: what is known stays. */
    restart(1);
    sample.mono_ns += 3 * S;
    sample.measured_ns = sample.mono_ns;
    second(100 * J, 0);
    ck_assert_uint_eq(sleeps(70, 100), 70 * 100 * J);
    ck_assert_uint_eq(floor_w(), 100);
}
END_TEST

/* slurmd is killed, and away for a while: energy and CPU time go on. */
START_TEST(test_restart)
{
    unsigned a, b;

    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    usage[a].cpu_ns = S;
    second(100 * J, S);
    end();
    b = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    usage[a].cpu_ns += S;
    usage[b].cpu_ns += 2 * S;
    begin();
    second(100 * J, 3 * S);
    ck_assert_uint_eq(row(a).uj, (20 + 60) * J + (20 + 20) * J);
    ck_assert_uint_eq(row(b).uj, (20 + 40) * J);
    ck_assert_uint_eq(second(0, 0)->charged_uj, 200 * J);
    /* A power that was carried on too far: what is charged is not given back,
     * and not charged twice. */
    sample.node_uj -= 30 * J;
    ck_assert_uint_eq(second(10 * J, 0)->charged_uj, 200 * J);
    ck_assert_uint_eq(second(25 * J, 0)->charged_uj, 205 * J);
    sample.node_uj -= 5 * J;
    ck_assert_uint_eq(second(0, 0)->charged_uj, 205 * J);
    ck_assert_uint_eq(second(0, 0)->charged_uj, 205 * J);
    sample.node_uj += 5 * J;
    ck_assert_uint_eq(second(0, 0)->charged_uj, 205 * J);
    /* A node total that begins anew. */
    sample.node_uj = 3;
    sample.node_since_ns = 7;
    ck_assert_uint_eq(second(0, 0)->charged_uj, 205 * J);
    ck_assert_uint_eq(second(J, 0)->charged_uj, 206 * J);
}
END_TEST

START_TEST(test_a_process_that_dies)
{
    const struct joule_ledger_totals *t;
    struct joule_row r;
    int64_t mono_ns;
    unsigned a, b;

    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    usage[a].cpu_ns = S;
    second(100 * J, S);
    /* Nobody of that number is in the tree's /proc. */
    ck_assert(joule_ledger_sweep(writer, tree.fd, a));
    usage[a].cpu_ns += S;
    t = second(100 * J, S);
    ck_assert_uint_eq(t->gone_uj, 200 * J);
    ck_assert_int_eq(
        joule_ledger_read_row(stepd, a, usage[a].owner, &r, &mono_ns), -1);
    t = second(100 * J, S);
    ck_assert_uint_eq(t->system_uj, 60 * J);
    /* Another step begins before anyone looks: not in that slot. */
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    second(40 * J, 0);
    ck_assert(joule_ledger_sweep(writer, tree.fd, a));
    b = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    ck_assert_uint_ne(a, b);
    t = second(40 * J, 0);
    ck_assert_uint_eq(row(b).uj, 20 * J);
    ck_assert_uint_eq(t->gone_uj, 240 * J);
}
END_TEST

/* A step ends while slurmd is away, and another one begins: the first has its
 * last charge all the same.  With no other slot free it has not, and what it
 * had is kept. */
static uint64_t end_while_away(bool full)
{
    unsigned a, slot = 0;
    uint64_t owner;

    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    usage[a].cpu_ns = S;
    second(100 * J, S);
    ck_assert_uint_eq(row(a).uj, 80 * J);
    for (unsigned i = 1; full && i < SLOTS; i++)
        add(3, JOULE_STEP_EXTERN, 0xc, 2);
    end();
    owner = usage[a].owner;
    joule_ledger_report_cpu(stepd, a, owner, 2 * S);
    joule_ledger_end(stepd, a, owner, sample.mono_ns + S);
    joule_ledger_release(stepd, a, owner);
    usage[a].owner = 0;
    slot = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    ck_assert_int_eq(slot == a, full);
    begin();
    return second(100 * J, S)->gone_uj;
}

START_TEST(test_a_slot_that_is_owed_a_charge)
{
    ck_assert_uint_eq(end_while_away(false), 160 * J);
}
END_TEST

START_TEST(test_a_slot_that_is_owed_a_charge_and_is_the_last)
{
    ck_assert_uint_eq(end_while_away(true), 80 * J);
}
END_TEST

START_TEST(test_cpu_time_that_cannot_be_read)
{
    unsigned a, b;

    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    b = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    usage[b].state = JOULE_USAGE_UNKNOWN;
    usage[a].cpu_ns = S;
    second(100 * J, 2 * S);
    ck_assert_uint_eq(row(a).uj, 50 * J);
    ck_assert_uint_eq(row(b).uj, 50 * J);
    ck_assert_uint_eq(row(b).unknown, 1);
    /* Known again: the time from here on. */
    usage[b] = (struct joule_step_cpu_time){
        .owner = usage[b].owner, .state = JOULE_USAGE_KNOWN, .cpu_ns = 900 * S};
    second(40 * J, 0);
    usage[b].cpu_ns += S;
    usage[a].cpu_ns += S;
    second(100 * J, 2 * S);
    ck_assert_uint_eq(row(b).uj, 120 * J);
    ck_assert_uint_eq(row(b).unknown, 2);
    /* Back, and gone. */
    usage[b].cpu_ns = 5;
    usage[a].state = JOULE_USAGE_GONE;
    second(40 * J, 0);
    ck_assert_uint_eq(row(b).backwards, 1);
    usage[b].cpu_ns += S;
    ck_assert_uint_eq(second(100 * J, S)->backwards, 1);
    ck_assert_uint_eq(row(b).uj, 120 * J + 20 * J + 80 * J);
    ck_assert_uint_eq(row(a).uj, 120 * J + 20 * J + 20 * J);
}
END_TEST

/* slurmd is away for six seconds, and the step for the last five of them; its
 * slurmstepd too, or what is read of it then is [left_ns].  Returns what its
 * job is charged then beside the floor. */
static uint64_t end_unseen_and_leave(uint64_t reported_ns, bool leaves,
                                     uint64_t left_ns)
{
    unsigned a, b;
    uint64_t owner;

    second(0, 0);
    a = add(1, JOULE_STEP_EXTERN, 0x1, 1);
    b = add(1, JOULE_STEP_NUMBERED, 0x1, 1);
    usage[b].cpu_ns = 7;
    second(40 * J, 0);
    ck_assert_uint_eq(row(a).job_uj, 10 * J);
    owner = usage[b].owner;
    joule_ledger_report_cpu(stepd, b, owner, reported_ns);
    joule_ledger_end(stepd, b, owner, sample.mono_ns + S);
    usage[b].cpu_ns = left_ns;
    if (leaves) {
        joule_ledger_release(stepd, b, owner);
        usage[b].owner = 0;
    }
    sample.mono_ns += 5 * S;
    ck_assert_uint_eq(second(240 * J + 240 * J, 24 * (uint64_t)S)->backwards,
                      0);
    ck_assert_uint_eq(row(a).state, JOULE_ROW_RUNNING);
    return row(a).job_uj - 10 * J - 60 * J;
}

static uint64_t end_unseen(uint64_t reported_ns)
{
    return end_unseen_and_leave(reported_ns, true, 0);
}

/* What it can have used in the first one. */
START_TEST(test_a_step_that_ended_unseen)
{
    ck_assert_uint_eq(end_unseen(JOULE_CPU_UNKNOWN), 10 * J);
}
END_TEST

/* What it said that it had used. */
START_TEST(test_a_step_that_left_word)
{
    ck_assert_uint_eq(end_unseen(S / 4 + 7), 5 * J / 2);
}
END_TEST

/* slurmd finds neither its tasks nor their group, and reads nothing of them. */
START_TEST(test_a_step_that_left_word_and_stays)
{
    ck_assert_uint_eq(end_unseen_and_leave(S / 4 + 7, false, 0), 5 * J / 2);
}
END_TEST

/* It finds their group. */
START_TEST(test_a_step_that_can_be_read)
{
    ck_assert_uint_eq(end_unseen_and_leave(7, false, S / 4 + 7), 5 * J / 2);
}
END_TEST

/* slurmd has seen none of it, and finds nothing of it but its slurmstepd. */
START_TEST(test_a_step_that_began_and_ended_unseen)
{
    unsigned a, b;

    second(0, 0);
    a = add(1, JOULE_STEP_EXTERN, 0x1, 1);
    second(40 * J, 0);
    b = add(1, JOULE_STEP_NUMBERED, 0x1, 1);
    joule_ledger_report_cpu(stepd, b, usage[b].owner, S / 4);
    joule_ledger_end(stepd, b, usage[b].owner, sample.mono_ns + S);
    sample.mono_ns += 5 * S;
    second(240 * J + 240 * J, 24 * (uint64_t)S);
    ck_assert_uint_eq(row(a).job_uj, 10 * J + 60 * J + 5 * J / 2);
}
END_TEST

/* Less than had been read already is no word. */
START_TEST(test_a_step_that_left_an_old_word)
{
    ck_assert_uint_eq(end_unseen(6), 10 * J);
}
END_TEST

static size_t row_count(void)
{
    size_t count;

    (void)joule_step_rows_list(charge, &count);
    return count;
}

/* Only slots up to the last one in use are gone through: what a step leaves at
 * the end, or in between, must not be lost with that. */
START_TEST(test_slots_that_become_free)
{
    enum { STEPS = 100 };
    const struct joule_ledger_totals *t = second(0, 0);
    unsigned slot[STEPS];

    ck_assert_uint_eq(row_count(), 0);
    for (uint32_t i = 0; i < STEPS; i++)
        slot[i] = add(i + 1, JOULE_STEP_NUMBERED, 0xf, 4);
    t = second(1000 * J, 0);
    ck_assert_uint_eq(row_count(), STEPS);
    for (size_t i = 10; i < STEPS; i++)
        joule_ledger_release(stepd, slot[i], usage[slot[i]].owner);
    t = second(1000 * J, 0);
    ck_assert_uint_eq(row_count(), 10);
    ck_assert_uint_gt(t->gone_uj, 0);
    joule_ledger_release(stepd, slot[3], usage[slot[3]].owner);
    second(1000 * J, 0);
    ck_assert_uint_eq(row_count(), 10);
    ck_assert_uint_eq(add(500, JOULE_STEP_NUMBERED, 0xf, 4), slot[3]);
    ck_assert_uint_eq(add(501, JOULE_STEP_NUMBERED, 0xf, 4), slot[10]);
    second(1000 * J, 0);
    ck_assert_uint_eq(row_count(), 11);
    ck_assert_uint_eq(row(slot[3]).job, 500);
    ck_assert_uint_gt(row(slot[10]).uj, 0);
    for (size_t i = 0; i < 11; i++)
        joule_ledger_release(stepd, slot[i], usage[slot[i]].owner);
    t = second(1000 * J, 0);
    ck_assert_uint_eq(row_count(), 0);
    ck_assert_uint_eq(t->gone_uj, t->jobs_uj);
    t = second(1000 * J, 0);
    ck_assert_uint_eq(t->charged_uj,
                      t->jobs_uj + t->unallocated_uj + t->system_uj);
}
END_TEST

START_TEST(test_packages)
{
    uint64_t a_ns[2] = {0}, b_ns[2] = {0};
    unsigned a, b;

    end();
    options.part_cpus = sets;
    options.part_count = 2;
    options.part_key = 1;
    sample.part_uj = part_uj;
    begin();
    second(0, 0);
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    b = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    usage[a].part_ns = a_ns;
    usage[b].part_ns = b_ns;
    for (int i = 0; i < 3; i++) {
        usage[a].cpu_ns += S;
        a_ns[0] += S;
        usage[b].cpu_ns += S;
        b_ns[1] += S;
        part_uj[0] += 60 * J;
        part_uj[1] += 30 * J;
        busy_ns[1] += S;
        second(90 * J, S);
    }
    ck_assert_uint_eq(row(a).uj, 180 * J);
    ck_assert_uint_eq(row(b).uj, 90 * J);
    /* Other parts: their energy is not known in the first interval. */
    end();
    options.part_key = 2;
    begin();
    part_uj[0] = part_uj[1] = 0;
    busy_ns[1] += S;
    usage[a].cpu_ns += S;
    usage[b].cpu_ns += S;
    second(90 * J, S);
    ck_assert_uint_eq(row(a).uj, 180 * J + 45 * J);
    ck_assert_uint_eq(row(b).uj, 90 * J + 45 * J);
}
END_TEST

/* A second in which packages used 80 and 20 J, memory 10 and 30 J, and the node
 * [more] beside them. */
static void second_of_components(uint64_t more)
{
    static uint64_t component_uj[2][JOULE_COMPONENTS];

    component_uj[0][JOULE_COMPONENT_CPU] += 80 * J;
    component_uj[1][JOULE_COMPONENT_CPU] += 20 * J;
    component_uj[0][JOULE_COMPONENT_MEMORY] += 10 * J;
    component_uj[1][JOULE_COMPONENT_MEMORY] += 30 * J;
    part_uj[0] += 90 * J;
    part_uj[1] += 50 * J;
    sample.component_uj = component_uj[0];
    second(140 * J + more, 0);
}

/* Of what a job has of a package, as much is memory's as of the package. */
START_TEST(test_components)
{
    unsigned a, b;

    end();
    options.part_cpus = sets;
    options.part_count = 2;
    options.part_key = 1;
    options.attribution = JOULE_ATTRIBUTION_ALLOC;
    sample.part_uj = part_uj;
    sample.components = 3;
    begin();
    second_of_components(0);
    a = add(1, JOULE_STEP_NUMBERED, 0x3, 2);
    b = add(2, JOULE_STEP_NUMBERED, 0xc, 2);
    second_of_components(0);
    ck_assert_uint_eq(row(a).uj, 90 * J);
    ck_assert_uint_eq(row(a).components, 3);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_CPU], 80 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_MEMORY], 10 * J);
    ck_assert_uint_eq(row(b).component_uj[JOULE_COMPONENT_CPU], 20 * J);
    ck_assert_uint_eq(row(b).component_uj[JOULE_COMPONENT_MEMORY], 30 * J);
    /* More than both: fans. */
    second_of_components(14 * J);
    ck_assert_uint_eq(row(a).uj, 189 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_CPU], 160 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_MEMORY], 20 * J);
    /* A meter of the node that shows less. */
    second_of_components(-(uint64_t)(70 * J));
    ck_assert_uint_eq(row(a).uj, 234 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_CPU], 200 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_MEMORY], 25 * J);
    /* Memory does not answer, and does again. */
    sample.components = 1 << JOULE_COMPONENT_CPU;
    second_of_components(0);
    sample.components = 3;
    second_of_components(0);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_CPU], 360 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_MEMORY], 25 * J);
    /* Another slurmd goes on. */
    end();
    begin();
    second_of_components(0);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_CPU], 440 * J);
    ck_assert_uint_eq(row(a).component_uj[JOULE_COMPONENT_MEMORY], 35 * J);
    options.attribution = JOULE_ATTRIBUTION_CPUTIME;
}
END_TEST

/* The floor that is learned is published and kept. */
START_TEST(test_learned_floor)
{
    const struct joule_ledger_totals *t;

    end();
    options.idle_uw = 0;
    begin();
    for (int i = 0; i < 100; i++)
        t = second(50 * J, S / 100);
    ck_assert_uint_eq(t->part[0].idle_power.idle_power_uw, 50 * J);
    end();
    begin();
    t = second(80 * J, S);
    ck_assert_uint_eq(t->part[0].idle_power.idle_power_uw, 50 * J);
    sample.gap = true;
    second(80 * J, S);
    ck_assert_uint_eq(t->part[0].idle_power.bucket_ns[0], 0);
}
END_TEST

/* In the first minute: not everything to whoever uses CPU time, and something
 * for who sleeps. */
START_TEST(test_floor_of_the_first_minute)
{
    unsigned a, b;

    end();
    options.idle_uw = 0;
    begin();
    second(0, 0);
    second(40 * J, 0);
    a = add(7, JOULE_STEP_NUMBERED, 0x1, 1);
    b = add(8, JOULE_STEP_NUMBERED, 0x2, 1);
    usage[a].cpu_ns += S;
    second(100 * J, S);
    ck_assert_uint_eq(row(a).uj, 10 * J + 60 * J);
    ck_assert_uint_eq(row(b).uj, 10 * J);
}
END_TEST

START_TEST(test_what_cannot_be)
{
    static const uint64_t all = 0xf;
    struct joule_step_rows_options o = {
        .ledger = writer, .part_cpus = &all, .part_count = 0};

    ck_assert_ptr_null(joule_step_rows_create(&o, &err));
    ck_assert_int_eq(errno, EINVAL);
    o.part_count = 1;
    for (int n = 1;; n++) {
        struct joule_step_rows *c;

        fail_calloc = n;
        c = joule_step_rows_create(&o, &err);
        if (c) {
            ck_assert_int_gt(n, 5);
            joule_step_rows_destroy(c);
            break;
        }
        ck_assert_int_eq(errno, ENOMEM);
    }
    fail_calloc = 0;
    joule_step_rows_destroy(NULL);
    /* A step that says that it has not begun yet. */
    sample.mono_ns += 1000 * S;
    second(0, 0);
    sample.mono_ns += 50 * S;
    add(1, JOULE_STEP_NUMBERED, 0xf, 4);
    sample.mono_ns -= 50 * S;
    second(40 * J, 0);
    ck_assert_int_eq(row(0).began_ns, sample.mono_ns);
    ck_assert_uint_eq(row(0).uj, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step rows");
    TCase *tc = tcase_create("charge");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_two_jobs);
    tcase_add_test(tc, test_extern_has_the_jobs_total);
    tcase_add_test(tc, test_what_no_step_accounts_for);
    tcase_add_test(tc, test_what_no_step_accounts_for_without_extern);
    tcase_add_test(tc, test_counter_of_a_job);
    tcase_add_test(tc, test_a_step_that_sleeps);
    tcase_add_test(tc, test_steps_one_after_the_other_without_extern);
    tcase_add_test(tc, test_edges_inside_an_interval);
    tcase_add_test(tc, test_restart);
    tcase_add_test(tc, test_floor_of_another_sensor);
    tcase_add_test(tc, test_floor_before_it_was_measured);
    tcase_add_test(tc, test_a_process_that_dies);
    tcase_add_test(tc, test_a_slot_that_is_owed_a_charge);
    tcase_add_test(tc, test_a_slot_that_is_owed_a_charge_and_is_the_last);
    tcase_add_test(tc, test_cpu_time_that_cannot_be_read);
    tcase_add_test(tc, test_a_step_that_ended_unseen);
    tcase_add_test(tc, test_a_step_that_left_word);
    tcase_add_test(tc, test_a_step_that_left_word_and_stays);
    tcase_add_test(tc, test_a_step_that_can_be_read);
    tcase_add_test(tc, test_a_step_that_began_and_ended_unseen);
    tcase_add_test(tc, test_a_step_that_left_an_old_word);
    tcase_add_test(tc, test_slots_that_become_free);
    tcase_add_test(tc, test_packages);
    tcase_add_test(tc, test_components);
    tcase_add_test(tc, test_learned_floor);
    tcase_add_test(tc, test_floor_of_the_first_minute);
    tcase_add_test(tc, test_what_cannot_be);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
