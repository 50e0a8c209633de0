/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a profile costs slurmstepd, beside Slurm's own
 * acct_gather_profile/hdf5 on the same samples.
 *
 *   bench_profile OUR-PLUGIN SLURM-PLUGIN LIBSLURMFULL DIRECTORY CONVERTER
 *
 * This program is the host of both plugins (profilehost.h).  Each plugin is in
 * a process of its own, which the plugins' threads belong to; what a sample
 * costs is all that the process used, less what it uses with the plugin left
 * away.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/longseries.h"

#define SECONDS 75
#define WARM    10 /* of them, that are not counted */
#define TASKS   4
#define TABLES  (TASKS + 3) /* energy, network, file system */
#define ROWS    3600

static const char *our_path, *slurm_path, *directory, *converter;

static acct_gather_profile_dataset_t task_fields[] = {
    {(char *)"CPUFrequency", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"CPUTime", JOULE_PROFILE_FIELD_DOUBLE},
    {(char *)"CPUUtilization", JOULE_PROFILE_FIELD_DOUBLE},
    {(char *)"RSS", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"VMSize", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"Pages", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"ReadMB", JOULE_PROFILE_FIELD_DOUBLE},
    {(char *)"WriteMB", JOULE_PROFILE_FIELD_DOUBLE},
    {NULL, JOULE_PROFILE_FIELD_END},
};

static acct_gather_profile_dataset_t network_fields[] = {
    {(char *)"PacketsIn", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"PacketsOut", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"InMB", JOULE_PROFILE_FIELD_DOUBLE},
    {(char *)"OutMB", JOULE_PROFILE_FIELD_DOUBLE},
    {NULL, JOULE_PROFILE_FIELD_END},
};

static acct_gather_profile_dataset_t filesystem_fields[] = {
    {(char *)"Reads", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"ReadMB", JOULE_PROFILE_FIELD_DOUBLE},
    {(char *)"Writes", JOULE_PROFILE_FIELD_UINT64},
    {(char *)"WriteMB", JOULE_PROFILE_FIELD_DOUBLE},
    {NULL, JOULE_PROFILE_FIELD_END},
};

static void make_tables(const struct profilehost_plugin *p, int tables[TABLES])
{
    int64_t tasks;
    char name[12];
    int i;

    tables[0] = p->create_dataset("Energy", JOULE_PROFILE_NO_PARENT,
                                  profilehost_energy);
    tables[1] =
        p->create_dataset("Network", JOULE_PROFILE_NO_PARENT, network_fields);
    tables[2] = p->create_dataset("Filesystem", JOULE_PROFILE_NO_PARENT,
                                  filesystem_fields);
    tasks = p->create_group("Tasks");
    for (i = 0; i < TASKS; i++) {
        snprintf(name, sizeof(name), "%d", i);
        tables[3 + i] = p->create_dataset(name, tasks, task_fields);
    }
    for (i = 0; i < TABLES; i++)
        if (tables[i] < 0)
            bench_die("create_dataset", "refused");
}

/* What one process has used. */
struct cost {
    double us;     /* a sample, between the beginning and the end of the step */
    double mb;     /* in memory, before the end */
    double end_ms; /* of its helper */
};

static double memory_mb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all, resident = 0;

    if (!file || fscanf(file, "%lu %lu", &all, &resident) != 2)
        bench_die("/proc/self/statm", strerror(errno));
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double helper_ms(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e3 +
           ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) / 1e3;
}

/* A step profiled with --profile=all. */
static struct cost run_step(const struct profilehost_plugin *p,
                            const char *user)
{
    unsigned char record[PROFILEHOST_RECORD_BYTES];
    uint64_t cells[16] = {0};
    int tables[TABLES], i, k;
    unsigned seed = 1;
    struct cost cost;
    double before = 0;

    profilehost_record(record, user);
    if (p) {
        if (p->start(record) != SLURM_SUCCESS)
            bench_die(user, "the step does not start");
        make_tables(p, tables);
    }
    for (i = 0; i < SECONDS; i++) {
        if (i == WARM)
            before = profilehost_cpu_ns();
        bench_sleep_ms(1000);
        cells[0] = profilehost_power(&seed);
        cells[3] = (uint64_t)i * 4096;
        for (k = 0; p && k < TABLES; k++)
            if (p->add(tables[k], cells, time(NULL)) != SLURM_SUCCESS)
                bench_die(user, "a sample is refused");
    }
    cost.us = (profilehost_cpu_ns() - before) / 1e3 /
              ((double)(SECONDS - WARM) * TABLES);
    cost.mb = memory_mb();
    if (p)
        p->end();
    cost.end_ms = helper_ms();
    return cost;
}

/* Which of three a process is: without a plugin, with ours, with Slurm's. */
#define SIDES 3

static void be_side(int side, int out)
{
    struct profilehost_plugin p;
    struct cost cost;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (side == 0) {
        profilehost_load_library();
        cost = run_step(NULL, "nobody");
    } else {
        p = profilehost_load(side == 1 ? our_path : slurm_path);
        cost = run_step(&p, side == 1 ? "ours" : "theirs");
    }
    if (write(out, &cost, sizeof(cost)) != sizeof(cost))
        _exit(2);
    _exit(0);
}

/* All three at the same time: what else the machine does is the same for
 * each. */
static void run_sides(struct cost cost[SIDES])
{
    int pipes[SIDES][2], i;
    pid_t pids[SIDES];

    for (i = 0; i < SIDES; i++) {
        if (pipe(pipes[i]) < 0 || (pids[i] = fork()) < 0)
            bench_die("fork", strerror(errno));
        if (pids[i] == 0)
            be_side(i, pipes[i][1]);
        close(pipes[i][1]);
    }
    for (i = 0; i < SIDES; i++) {
        if (read(pipes[i][0], &cost[i], sizeof(cost[i])) != sizeof(cost[i]))
            bench_die("a step", "did not end");
        close(pipes[i][0]);
        waitpid(pids[i], NULL, 0);
    }
}

/* ---- bytes ---- */

static void measure_bytes(struct bench_result *r)
{
    struct longseries ours = {directory, "rows", converter, ROWS, 1};
    struct longseries theirs = {directory, "theirs-rows", NULL, ROWS, 1};
    struct profilehost_plugin p;

    longseries_ours(&ours);
    p = profilehost_load(slurm_path);
    longseries_theirs(&theirs, &p);
    r->ours = longseries_bytes(&ours) / ROWS;
    r->peer = longseries_bytes(&theirs) / ROWS;
}

static struct bench_result both(double ours, double theirs, double nobodys)
{
    return (struct bench_result){.ours = ours - nobodys,
                                 .peer = theirs - nobodys};
}

int main(int argc, char **argv)
{
    struct cost cost[SIDES];
    struct bench_result r;
    bool good = true;

    if (argc != 6)
        bench_die("usage",
                  "bench_profile OUR SLURM LIBSLURMFULL DIRECTORY CONVERTER");
    profilehost_begin(argv);
    our_path = argv[1];
    slurm_path = argv[2];
    directory = argv[4];
    converter = argv[5];
    profilehost_set(argv[3], directory, converter);
    bench_print_head();
    run_sides(cost);
    r = both(cost[1].us, cost[2].us, cost[0].us);
    good &=
        bench_print_row("CPU of a sample at 1 Hz", "us", r, BENCH_RATIO, 0.5);
    r = both(cost[1].mb, cost[2].mb, cost[0].mb);
    good &= bench_print_row("memory in slurmstepd", "MiB", r, BENCH_AT_MOST, 2);
    r = (struct bench_result){.ours = cost[1].end_ms, .peer = (double)NAN};
    good &= bench_print_row("CPU of the HDF5 file at the end", "ms", r,
                            BENCH_AT_MOST, 100);
    r = bench_measure(measure_bytes);
    good &= bench_print_row("energy sample in the file", "bytes", r,
                            BENCH_RATIO, 1.0 / 3);
    return good ? 0 : 1;
}
