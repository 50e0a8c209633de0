/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated node's jobs against closed forms, in trees of files as cgroups
 * have them.
 */
#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/control.h"
#include "tests/sim/jobs.h"
#include "tests/sim/node.h"
#include "tests/sim/procstat.h"

#define S   INT64_C(1000000000)
#define MS  INT64_C(1000000)
#define ONE SIM_INTENSITY_ONE

#define PRICE_UW INT64_C(10000000)

static char dir[64];

static struct sim_machine *machine_make(unsigned cpus, const char *offline)
{
    struct sim_machine_options opt;
    struct sim_machine *machine;
    struct joule_error err = {""};

    sim_machine_options_init(&opt);
    opt.cpus = cpus;
    opt.offline = offline;
    opt.start = "0";
    machine = sim_machine_create(&opt, &err);
    ck_assert_msg(machine != NULL, "%s", err.text);
    return machine;
}

/* Of a machine with two packages of a CPU each. */
static struct sim_machine *two;

static void dir_make(void)
{
    strcpy(dir, "/tmp/test_jobs.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    two = machine_make(2, NULL);
}

static void dir_remove(void)
{
    char command[128];

    sim_machine_destroy(two);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

/* Write [file] of the group [group] ("": the node's), made where missing. */
__attribute__((format(printf, 3, 4))) static void
put(const char *group, const char *file, const char *fmt, ...)
{
    char path[256];
    va_list ap;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, group);
    for (char *at = path + strlen(dir) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%s/%s", dir, group, file);
    f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fclose(f);
}

static void group_remove(const char *group)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -r %s/%s", dir, group);
    ck_assert_int_eq(system(command), 0);
}

/* CPU time of the node's group, on host CPUs 0 and 1, and of a job's. */
static void job_used(const char *group, uint64_t ms0, uint64_t ms1)
{
    put(group, "cpuacct.usage_percpu", "%llu %llu \n",
        (unsigned long long)ms0 * MS, (unsigned long long)ms1 * MS);
}

static void node_used(uint64_t ms0, uint64_t ms1)
{
    job_used("", ms0, ms1);
}

static struct sim_jobs *jobs_make(void)
{
    struct joule_error err = {""};
    struct sim_jobs *jobs = sim_jobs_create(dir, two, S, &err);

    ck_assert_msg(jobs != NULL, "%s", err.text);
    sim_jobs_set_price(jobs, PRICE_UW);
    return jobs;
}

static const struct sim_job *job_of(const struct sim_jobs *jobs, uint32_t id)
{
    for (size_t i = 0; i < sim_jobs_count(jobs); i++)
        if (sim_jobs_at(jobs, i)->id == id)
            return sim_jobs_at(jobs, i);
    return NULL;
}

/* The energy and CPU time of a job: 10 mJ for each ms. */
static void is(const struct sim_jobs *jobs, uint32_t id, uint64_t mj,
               uint64_t ms)
{
    const struct sim_job *job = job_of(jobs, id);

    ck_assert_ptr_nonnull(job);
    ck_assert_uint_eq(sim_job_nj(job), mj * MS);
    ck_assert_uint_eq(job->cpu_ns, ms * MS);
}

/* All that there is adds up to the total. */
static void adds_up(const struct sim_jobs *jobs)
{
    sim_fj cost = 0;

    for (size_t i = 0; i < sim_jobs_count(jobs); i++)
        cost += sim_jobs_at(jobs, i)->cost;
    ck_assert(cost / ONE == sim_jobs_fj(jobs));
}

START_TEST(bad_groups)
{
    struct joule_error err = {""};

    dir_make();
    ck_assert_ptr_null(sim_jobs_create("/nonexistent", two, 0, &err));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent"));
    ck_assert_ptr_null(sim_jobs_create(dir, two, 0, &err));
    ck_assert_int_eq(errno, ENOENT);
    put("", "cpuacct.usage_percpu", "%s", "");
    ck_assert_ptr_null(sim_jobs_create(dir, two, 0, &err));
    ck_assert_int_eq(errno, ENODATA);
    put("", "cpuacct.usage_percpu", "%s", "many\n");
    ck_assert_ptr_null(sim_jobs_create(dir, two, 0, &err));
    ck_assert_int_eq(errno, EINVAL);
    sim_jobs_destroy(NULL);
    dir_remove();
}
END_TEST

/* Jobs come and go; what was there before does not count, what is new counts
 * from its beginning, what nobody has used in a job is the system's. */
START_TEST(jobs_come_and_go)
{
    struct sim_jobs *jobs;

    dir_make();
    node_used(1000, 500);
    job_used("slurm_node1/uid_0/job_5", 700, 0);
    jobs = jobs_make();
    is(jobs, 5, 0, 0);
    is(jobs, SIM_JOB_SYSTEM, 0, 0);

    node_used(1200, 600);
    job_used("slurm_node1/uid_0/job_5", 800, 0);
    job_used("slurm_node1/uid_5001/job_6", 60, 90);
    sim_jobs_update(jobs, 2 * S);
    is(jobs, 5, 1000, 100);
    is(jobs, 6, 1500, 150);
    is(jobs, SIM_JOB_SYSTEM, 500, 50);
    ck_assert_int_eq(job_of(jobs, 6)->first_ns, 2 * S);
    ck_assert_int_eq(job_of(jobs, 5)->first_ns, S);

    /* Job 6 uses 10 ms more, is seen with it, uses 5 ms and is gone. */
    node_used(1210, 600);
    job_used("slurm_node1/uid_5001/job_6", 70, 90);
    sim_jobs_update(jobs, 2 * S + 10 * MS);
    node_used(1215, 600);
    group_remove("slurm_node1/uid_5001");
    sim_jobs_update(jobs, 2 * S + 20 * MS);
    is(jobs, 6, 1600, 160);
    is(jobs, SIM_JOB_SYSTEM, 550, 55);
    ck_assert_int_eq(job_of(jobs, 6)->last_ns, 2 * S + 10 * MS);

    /* It is requeued: another group of that name, on top. */
    node_used(1235, 600);
    job_used("slurm_node1/uid_5001/job_6", 20, 0);
    sim_jobs_update(jobs, 3 * S);
    is(jobs, 6, 1800, 180);
    is(jobs, SIM_JOB_SYSTEM, 550, 55);
    ck_assert_int_eq(job_of(jobs, 6)->first_ns, 2 * S);
    ck_assert_int_eq(job_of(jobs, 6)->last_ns, 3 * S);
    adds_up(jobs);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

/* A job is there as long as it has a group anywhere; it uses CPU time in one of
 * them only. */
START_TEST(groups_that_count_nothing)
{
    struct joule_error err = {""};
    struct sim_jobs *jobs;
    char also[128];

    dir_make();
    node_used(0, 0);
    snprintf(also, sizeof(also), "%s/other", dir);
    jobs = jobs_make();
    ck_assert_int_eq(sim_jobs_also(jobs, also, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, also));
    put("other/slurm_node1/uid_0/job_5", "freezer.state", "THAWED\n");
    ck_assert_int_eq(sim_jobs_also(jobs, also, &err), 0);
    sim_jobs_update(jobs, 2 * S);
    job_used("slurm_node1/uid_0/job_5", 30, 0);
    node_used(40, 0);
    sim_jobs_update(jobs, 3 * S);
    group_remove("slurm_node1");
    sim_jobs_update(jobs, 4 * S);
    ck_assert_int_eq(job_of(jobs, 5)->first_ns, 2 * S);
    ck_assert_int_eq(job_of(jobs, 5)->last_ns, 4 * S);
    /* The other way round. */
    job_used("slurm_node1/uid_0/job_5", 5, 0);
    node_used(45, 0);
    group_remove("other/slurm_node1");
    sim_jobs_update(jobs, 5 * S);
    ck_assert_int_eq(job_of(jobs, 5)->last_ns, 5 * S);
    group_remove("slurm_node1");
    sim_jobs_update(jobs, 6 * S);
    ck_assert_int_eq(job_of(jobs, 5)->last_ns, 5 * S);
    is(jobs, 5, 350, 35);
    is(jobs, SIM_JOB_SYSTEM, 100, 10);
    adds_up(jobs);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

/* The counter of the node's group is read before those of the jobs: what is
 * missing in it is nobody's, and the system has not used less than nothing. */
START_TEST(system_never_falls)
{
    struct sim_jobs *jobs;

    dir_make();
    node_used(0, 0);
    jobs = jobs_make();
    node_used(100, 0);
    job_used("slurm_node1/uid_0/job_5", 90, 0);
    sim_jobs_update(jobs, 2 * S);
    is(jobs, SIM_JOB_SYSTEM, 100, 10);
    job_used("slurm_node1/uid_0/job_5", 120, 0);
    sim_jobs_update(jobs, 3 * S);
    is(jobs, SIM_JOB_SYSTEM, 100, 10);
    is(jobs, 5, 1200, 120);
    node_used(135, 0);
    sim_jobs_update(jobs, 4 * S);
    is(jobs, SIM_JOB_SYSTEM, 150, 15);
    /* Counters that go back are not believed. */
    node_used(50, 0);
    job_used("slurm_node1/uid_0/job_5", 60, 0);
    sim_jobs_update(jobs, 5 * S);
    is(jobs, 5, 1200, 120);
    is(jobs, SIM_JOB_SYSTEM, 150, 15);
    adds_up(jobs);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

/* A job is what is named so, where Slurm puts it. */
START_TEST(names)
{
    static const char *const none[] = {
        "job_0",          "job_x", "job_5x",      "job_-5",
        "job_4294967296", "job_",  "other/job_7", "slurm/uid_0/jobs",
    };
    struct sim_jobs *jobs;

    dir_make();
    node_used(0, 0);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        job_used(none[i], 100, 0);
    jobs = jobs_make();
    ck_assert_uint_eq(sim_jobs_count(jobs), 1);
    /* A file is no group. */
    put("", "job_9", "%s", "");
    job_used("job_8", 10, 0);
    job_used("system.slice/node1_slurmstepd.scope/job_4294967295", 20, 0);
    sim_jobs_update(jobs, 2 * S);
    ck_assert_uint_eq(sim_jobs_count(jobs), 3);
    is(jobs, 8, 100, 10);
    is(jobs, UINT32_MAX, 200, 20);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

START_TEST(intensities_and_prices)
{
    struct sim_jobs *jobs;

    dir_make();
    node_used(0, 0);
    jobs = jobs_make();
    ck_assert_int_eq(sim_jobs_set_intensity(jobs, 5, 2 * ONE), 0);
    ck_assert_int_eq(sim_jobs_set_intensity(jobs, SIM_JOB_SYSTEM, 0), 0);
    ck_assert(!job_of(jobs, 5)->seen);
    node_used(300, 0);
    job_used("slurm_node1/uid_0/job_5", 100, 0);
    job_used("slurm_node1/uid_0/job_6", 100, 0);
    sim_jobs_update(jobs, 2 * S);
    is(jobs, 5, 2000, 100);
    is(jobs, 6, 1000, 100);
    is(jobs, SIM_JOB_SYSTEM, 0, 100);
    /* What has been used keeps its price. */
    sim_jobs_set_price(jobs, PRICE_UW / 2);
    ck_assert_int_eq(sim_jobs_set_intensity(jobs, 6, ONE / 2), 0);
    sim_jobs_update(jobs, 2 * S + MS);
    is(jobs, 5, 2000, 100);
    is(jobs, 6, 1000, 100);
    node_used(500, 0);
    job_used("slurm_node1/uid_0/job_5", 200, 0);
    job_used("slurm_node1/uid_0/job_6", 200, 0);
    sim_jobs_update(jobs, 3 * S);
    is(jobs, 5, 3000, 200);
    is(jobs, 6, 1250, 200);
    ck_assert(sim_jobs_fj(jobs) == (sim_fj)4250 * MS * SIM_FJ_PER_NJ);
    adds_up(jobs);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

/* By CPU time, in each second for itself. */
START_TEST(shares)
{
    struct sim_jobs *jobs;
    sim_fj sum = 0;

    dir_make();
    node_used(0, 0);
    jobs = jobs_make();
    ck_assert_int_eq(sim_jobs_set_intensity(jobs, 5, 3 * ONE), 0);
    job_used("slurm_node1/uid_0/job_5", 20, 0);
    job_used("slurm_node1/uid_0/job_6", 0, 0);
    sim_jobs_update(jobs, S + 500 * MS); /* 600 mJ, of 20 ms */
    ck_assert(job_of(jobs, 5)->share_fj == 0);
    job_used("slurm_node1/uid_0/job_6", 40, 0);
    sim_jobs_update(jobs, 2 * S); /* and 400 mJ, of 40 ms */
    ck_assert_uint_eq(job_of(jobs, 5)->share_fj / SIM_FJ_PER_NJ,
                      UINT64_C(333333333));
    ck_assert_uint_eq(job_of(jobs, 6)->share_fj / SIM_FJ_PER_NJ,
                      UINT64_C(666666666));
    job_used("slurm_node1/uid_0/job_6", 50, 0);
    sim_jobs_update(jobs, 2 * S + 500 * MS); /* alone */
    sim_jobs_settle(jobs, 2 * S + 500 * MS);
    ck_assert_uint_eq(job_of(jobs, 6)->share_fj / SIM_FJ_PER_NJ,
                      UINT64_C(766666666));
    sim_jobs_settle(jobs, 2 * S + 500 * MS); /* again: nothing */
    for (size_t i = 0; i < sim_jobs_count(jobs); i++)
        sum += sim_jobs_at(jobs, i)->share_fj;
    ck_assert(sim_jobs_fj(jobs) - sum < 3);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

/* v2: the tasks' groups of a job's steps, without slurmstepd. */
START_TEST(second_version)
{
    static const char job[] = "system.slice/slurmstepd.scope/job_5";
    char group[128];
    struct joule_error err = {""};
    struct sim_jobs *jobs;
    size_t count;

    dir_make();
    put("", "cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
    ck_assert_ptr_null(sim_jobs_create(dir, two, S, &err));
    ck_assert_int_eq(errno, ENOTSUP);
    two->packages = 1;
    jobs = jobs_make();
    ck_assert(!sim_jobs_know_cpus(jobs));
    ck_assert_uint_eq(*sim_jobs_by_cpu(jobs, &count), 1000000000);
    ck_assert_uint_eq(count, 1);
    put("", "cpu.stat", "usage_usec 1100000\nuser_usec 1\n");
    put(job, "cpu.stat", "usage_usec 90000\n");
    snprintf(group, sizeof(group), "%s/step_0/user", job);
    put(group, "cpu.stat", "usage_usec 60000\n");
    snprintf(group, sizeof(group), "%s/step_extern/user", job);
    put(group, "cpu.stat", "usage_usec 10000\n");
    snprintf(group, sizeof(group), "%s/step_0/slurm", job);
    put(group, "cpu.stat", "usage_usec 20000\n");
    sim_jobs_update(jobs, 2 * S);
    is(jobs, 5, 700, 70);
    is(jobs, SIM_JOB_SYSTEM, 300, 30);
    sim_jobs_destroy(jobs);
    dir_remove();
}
END_TEST

static int64_t clock_ns;

static int64_t fake_now(void *arg)
{
    (void)arg;
    return clock_ns;
}

static const struct joule_clock fake_clock = {fake_now, fake_now, NULL};

/* 50 W of floor, 10 W for a busy CPU at 2 GHz; takes the machine. */
static void node_make(struct sim_node *node, struct sim_machine *machine,
                      bool with_jobs)
{
    clock_ns = S;
    sim_node_init(node, &fake_clock, MS, machine,
                  sim_model_create(sim_load_const(5 * PRICE_UW), PRICE_UW),
                  sim_drive_create(), 0);
    node->busy_uw = PRICE_UW;
    node->khz = node->ref_khz = 2000000;
    if (with_jobs)
        sim_node_set_jobs(node, jobs_make());
}

static void ask(struct sim_node *node, const char *command, const char *answer)
{
    struct sim_control control = {node, NULL, -1};
    char line[64], reply[512];

    strcpy(line, command);
    sim_control_command(&control, line, reply, sizeof(reply));
    ck_assert_str_eq(reply, answer);
}

START_TEST(node_with_jobs)
{
    static const char usage[] = "error: intensity takes a job's number, or "
                                "\"system\", and 0 to 1000";
    struct sim_node node;
    uint64_t value;

    dir_make();
    node_used(0, 0);
    node_make(&node, machine_make(2, NULL), false);
    ask(&node, "jobs", "error: no jobs are looked at (--jobs)");
    ask(&node, "intensity 5 1", "error: no jobs are looked at (--jobs)");
    ck_assert(!sim_procstat_there(&node));
    sim_node_clear(&node);

    node_make(&node, machine_make(2, NULL), true);
    ask(&node, "intensity 5", usage);
    ask(&node, "intensity 0 1", usage);
    ask(&node, "intensity 5 1000.1", usage);
    ask(&node, "intensity 5 -1", usage);
    ask(&node, "intensity job 1", usage);
    ask(&node, "cpu-khz 0 1000000",
        "error: the CPUs of a node with --jobs have one frequency");
    ask(&node, "intensity 5 1.5", "ok");
    clock_ns += S;
    job_used("slurm_node1/uid_0/job_5", 1000, 0);
    job_used("slurm_node1/uid_0/job_6", 0, 500);
    node_used(1000, 600);
    /* 50 J, and 15 J on CPU 0, 5 J and 1 J on CPU 1 */
    ask(&node, "energy", "2000000000 71000000 40000000 31000000");
    ask(&node, "jobs",
        "2000000000 71000000000 50000000000"
        "; system 100000000 1000000000 1312500000 1000000000 2000000000"
        "; 5 1000000000 15000000000 13125000000 2000000000 2000000000"
        "; 6 500000000 5000000000 6562500000 2000000000 2000000000");
    /* All of it at the price of before, then an eighth. */
    job_used("slurm_node1/uid_0/job_6", 0, 600);
    node_used(1000, 700);
    ask(&node, "freq 1", "ok");
    job_used("slurm_node1/uid_0/job_6", 0, 1400);
    node_used(1000, 1500);
    clock_ns += S;
    ask(&node, "energy", "3000000000 123000000 65000000 58000000");
    ask(&node, "power", "3000000000 123000000000 52000000 2 0");
    ck_assert_int_eq(sim_node_rdmsr(&node, 0, 0x611, &value), 0);
    ck_assert_uint_eq(value, 65 << 14);
    ck_assert_int_eq(sim_node_rdmsr(&node, 1, 0x611, &value), 0);
    ck_assert_uint_eq(value, 58 << 14);
    sim_node_clear(&node);
    dir_remove();
}
END_TEST

/* Ticks since the machine began; host CPUs 0 and 1 are simulated ones of those
 * numbers, and the third of four is not used by anybody. */
START_TEST(proc_stat)
{
    struct sim_node node;
    size_t length;
    char *text;

    dir_make();
    node_used(1000, 500);
    node_make(&node, machine_make(4, "3"), true);
    ck_assert(sim_procstat_there(&node));
    clock_ns = 20 * S;
    node_used(1239, 1000);
    text = sim_procstat(&node, &length);
    ck_assert_uint_eq(strlen(text), length);
    ck_assert_str_eq(text, "cpu  223 0 0 7777 0 0 0 0 0 0\n"
                           "cpu0 123 0 0 1877 0 0 0 0 0 0\n"
                           "cpu1 100 0 0 1900 0 0 0 0 0 0\n"
                           "cpu2 0 0 0 2000 0 0 0 0 0 0\n"
                           "btime 0\n");
    free(text);
    sim_node_clear(&node);
    dir_remove();
}
END_TEST

/* v2: nobody knows which CPU; one of four is offline. */
START_TEST(proc_stat_of_all)
{
    struct sim_machine *machine = machine_make(4, "3");
    struct sim_node node;
    size_t length;
    char *text;

    dir_make();
    put("", "cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
    machine->packages = 1;
    two->packages = 1;
    node_make(&node, machine, true);
    clock_ns = 20 * S;
    put("", "cpu.stat", "usage_usec 3030000\nuser_usec 1\n");
    text = sim_procstat(&node, &length);
    ck_assert_str_eq(text, "cpu  303 0 0 7697 0 0 0 0 0 0\n"
                           "cpu0 101 0 0 1899 0 0 0 0 0 0\n"
                           "cpu1 101 0 0 1899 0 0 0 0 0 0\n"
                           "cpu2 101 0 0 1899 0 0 0 0 0 0\n"
                           "btime 0\n");
    free(text);
    sim_node_clear(&node);
    dir_remove();
}
END_TEST

/* Without jobs, if wished: what a group of the node used while it was counted. */
START_TEST(proc_stat_without_jobs)
{
    struct joule_error err = {""};
    struct sim_node node;
    size_t length;
    char *text;

    dir_make();
    put("", "cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
    node_make(&node, machine_make(2, NULL), false);
    node.own_stat = true;
    ck_assert(sim_procstat_there(&node));
    ck_assert_int_eq(sim_drive_add_cgroup(node.drive, dir, &err), 0);
    clock_ns = 20 * S;
    put("", "cpu.stat", "usage_usec 3020000\nuser_usec 1\n");
    text = sim_procstat(&node, &length);
    ck_assert_str_eq(text, "cpu  202 0 0 3798 0 0 0 0 0 0\n"
                           "cpu0 101 0 0 1899 0 0 0 0 0 0\n"
                           "cpu1 101 0 0 1899 0 0 0 0 0 0\n"
                           "btime 0\n");
    free(text);
    sim_node_clear(&node);
    dir_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodesim_jobs");
    TCase *tc = tcase_create("jobs");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, bad_groups);
    tcase_add_test(tc, jobs_come_and_go);
    tcase_add_test(tc, groups_that_count_nothing);
    tcase_add_test(tc, system_never_falls);
    tcase_add_test(tc, names);
    tcase_add_test(tc, intensities_and_prices);
    tcase_add_test(tc, shares);
    tcase_add_test(tc, second_version);
    tcase_add_test(tc, node_with_jobs);
    tcase_add_test(tc, proc_stat);
    tcase_add_test(tc, proc_stat_of_all);
    tcase_add_test(tc, proc_stat_without_jobs);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
