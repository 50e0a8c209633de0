/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUs with frequencies of their own against closed forms, and CPU time by
 * CPU from files as a v1 cgroup has them.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/control.h"
#include "tests/sim/cores.h"
#include "tests/sim/node.h"

#define S INT64_C(1000000000)

START_TEST(energy_and_cycles)
{
    uint64_t cpu_ns[2] = {5 * S, 7 * S};
    struct sim_cores *cores = sim_cores_create(2, 10000000, 2000000, cpu_ns);

    ck_assert(sim_cores_fj(cores, cpu_ns) == 0);
    cpu_ns[0] += S; /* 10 W at the reference */
    ck_assert(sim_cores_fj(cores, cpu_ns) == (sim_fj)10000000 * S);
    sim_cores_set_khz(cores, 0, 1000000, cpu_ns);
    cpu_ns[0] += S; /* an eighth of it at half of that */
    cpu_ns[1] += 2 * S;
    ck_assert(sim_cores_fj(cores, cpu_ns) == (sim_fj)31250000 * S);
    /* Setting changes nothing that was used. */
    sim_cores_set_khz(cores, 1, 4000000, cpu_ns);
    sim_cores_set_busy(cores, 20000000, cpu_ns);
    ck_assert(sim_cores_fj(cores, cpu_ns) == (sim_fj)31250000 * S);
    cpu_ns[1] += S; /* 20 W x 8 */
    ck_assert(sim_cores_fj(cores, cpu_ns) == (sim_fj)191250000 * S);
    ck_assert_uint_eq(sim_cores_aperf(cores, 0, cpu_ns), 3 * S);
    ck_assert_uint_eq(sim_cores_mperf(cores, 0, cpu_ns), 7 * 2 * S);
    ck_assert_uint_eq(sim_cores_aperf(cores, 1, cpu_ns), 2 * 2 * S + 4 * S);
    sim_cores_destroy(cores);
    sim_cores_destroy(NULL);
}
END_TEST

/* A directory with the files of a cgroup. */
static void group_write(const char *dir, const char *usage, const char *each)
{
    const char *const files[2][2] = {{"cpuacct.usage", usage},
                                     {"cpuacct.usage_percpu", each}};

    for (int i = 0; i < 2; i++) {
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, files[i][0]);
        f = fopen(path, "we");
        ck_assert_ptr_nonnull(f);
        fputs(files[i][1], f);
        fclose(f);
    }
}

static void group_remove(const char *dir)
{
    char command[160];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static size_t two(void *arg, unsigned cpu)
{
    (void)arg;
    return cpu % 2;
}

START_TEST(split_of_a_cgroup)
{
    char dir[] = "/tmp/test_cores.XXXXXX";
    struct sim_drive *drive = sim_drive_create();
    struct joule_error err = {""};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    group_write(dir, "1000\n", "700 300 \n");
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, &err), 0);
    group_write(dir, "1500\n", "1000 500 \n");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 1), 500);
    ck_assert_ptr_null(sim_drive_by_cpu(drive));
    ck_assert_int_eq(sim_drive_split(drive, 2, two, NULL, &err), 0);
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 2), 500);
    ck_assert_uint_eq(sim_drive_by_cpu(drive)[0], 0);
    /* Host CPUs 2 and 3 count for 0 and 1. */
    group_write(dir, "0\n", "1010 520 5 7 \n");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 3), 542);
    ck_assert_uint_eq(sim_drive_by_cpu(drive)[0], 15);
    ck_assert_uint_eq(sim_drive_by_cpu(drive)[1], 27);
    sim_drive_destroy(drive);
    group_remove(dir);
}
END_TEST

START_TEST(split_of_a_v2_cgroup)
{
    char dir[] = "/tmp/test_cores.XXXXXX", path[64];
    struct sim_drive *drive = sim_drive_create();
    struct joule_error err = {""};
    FILE *f;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/cpu.stat", dir);
    f = fopen(path, "we");
    fputs("usage_usec 5\n", f);
    fclose(f);
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, &err), 0);
    ck_assert_int_eq(sim_drive_split(drive, 2, two, NULL, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, dir));
    ck_assert_ptr_null(sim_drive_by_cpu(drive));
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 1), 0);
    sim_drive_destroy(drive);
    group_remove(dir);
}
END_TEST

/* A process: all of its time is somewhere, and once. */
START_TEST(split_of_a_process)
{
    struct sim_drive *drive = sim_drive_create();
    struct joule_error err = {""};
    uint64_t before, after;
    pid_t pid = fork();

    if (!pid)
        for (;;)
            ;
    ck_assert_int_eq(sim_drive_add_pid(drive, pid, &err), 0);
    before = sim_drive_cpu_ns(drive, 1);
    ck_assert_int_eq(sim_drive_split(drive, 2, two, NULL, &err), 0);
    usleep(100000);
    after = sim_drive_cpu_ns(drive, 2);
    ck_assert_uint_gt(after, before);
    ck_assert_uint_eq(sim_drive_by_cpu(drive)[0] + sim_drive_by_cpu(drive)[1],
                      after - before);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    sim_drive_destroy(drive);
}
END_TEST

static int64_t clock_ns;

static int64_t fake_mono(void *arg)
{
    (void)arg;
    return clock_ns;
}

static void ask(struct sim_node *node, const char *command, const char *answer)
{
    struct sim_control control = {node, NULL, -1};
    char line[64], reply[256];

    strcpy(line, command);
    sim_control_command(&control, line, reply, sizeof(reply));
    ck_assert_str_eq(reply, answer);
}

/* 50 W of floor; 10 W of a busy CPU at 2 GHz; 1 s each of both CPUs at the
 * reference, then at 1 and 4 GHz. */
START_TEST(node_with_frequencies)
{
    static const struct joule_clock clock = {fake_mono, fake_mono, NULL};
    char dir[] = "/tmp/test_cores.XXXXXX";
    struct sim_drive *drive = sim_drive_create();
    struct sim_machine_options opt;
    struct joule_error err = {""};
    struct sim_node node;
    uint64_t value;

    clock_ns = S;
    sim_machine_options_init(&opt);
    opt.cpus = 2;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    group_write(dir, "0\n", "0 0 \n");
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, &err), 0);
    sim_node_init(&node, &clock, 1000000, sim_machine_create(&opt, &err),
                  sim_model_create(sim_load_const(50000000), 10000000), drive,
                  0);
    node.busy_uw = 10000000;
    node.khz = node.ref_khz = 2000000;
    ck_assert_int_eq(sim_node_rdmsr(&node, 0, 0xe8, &value), EIO);
    group_write(dir, "2000000000\n", "1000000000 1000000000 \n");
    clock_ns += S;
    ck_assert_uint_eq(sim_node_exact(&node, clock_ns).node_nj, 70 * S);
    ask(&node, "cpu-khz 7 1000000", "error: there is no CPU 7");
    ask(&node, "cpu-khz 0",
        "error: cpu-khz takes a CPU's number and kHz, and "
        "further such pairs");
    ask(&node, "cpu-khz 0 1000000 1 4000000", "ok");
    group_write(dir, "4000000000\n", "2000000000 2000000000 \n");
    clock_ns += S;
    ck_assert_uint_eq(sim_node_exact(&node, clock_ns).node_nj,
                      (100 + 20) * S + S * 10 / 8 + 80 * S);
    ck_assert_int_eq(sim_node_uw(&node, clock_ns), 50000000 + 81250000);
    ck_assert_int_eq(sim_node_rdmsr(&node, 1, 0xe8, &value), 0);
    ck_assert_uint_eq(value, 4 * S);
    ck_assert_int_eq(sim_node_rdmsr(&node, 1, 0xe7, &value), 0);
    ck_assert_uint_eq(value, 2 * S);
    /* Another price, then another frequency for all. */
    ask(&node, "busy 20", "ok");
    ask(&node, "freq 1", "ok");
    group_write(dir, "4000000000\n", "2000000000 3000000000 \n");
    ck_assert_uint_eq(sim_node_exact(&node, clock_ns + 1000000).node_nj,
                      (100 + 20) * S + S * 10 / 8 + 80 * S + 50 * 1000000 +
                          S * 20 / 8);
    sim_node_clear(&node);
    group_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodesim_cores");
    TCase *tc = tcase_create("cores");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, energy_and_cycles);
    tcase_add_test(tc, split_of_a_cgroup);
    tcase_add_test(tc, split_of_a_v2_cgroup);
    tcase_add_test(tc, split_of_a_process);
    tcase_add_test(tc, node_with_frequencies);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
