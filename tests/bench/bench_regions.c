/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_regions - what a region costs a program (joule.h), and slurmstepd.
 *
 * The peer of a call is clock_gettime(2), which each call makes once.  The program of
 * the last row enters and leaves regions as fast as it can.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/profile/writer.h"
#include "common/step/regions.h"
#include "lib/joule.h"
#include "tests/bench/bench.h"

#define CALLS       200000
#define ROUNDS      25
#define THREADS_MAX 256
#define WATCH_MS    3000

static char dir[64];
static struct joule_writer *writer;
static struct joule_regions *regions;

/* ---- the step ---- */

static void begin_step(void)
{
    struct joule_error err = {""};
    struct joule_regions_options opt = {.node = "n1",
                                        .name = "7.0",
                                        .uid = geteuid(),
                                        .gid = getegid(),
                                        .clock = &joule_clock_system,
                                        .period_ns = 100 * JOULE_NS_PER_MS};
    struct joule_writer_options writer_opt = {
        .place = {.dir = dir,
                  .user = "user",
                  .uid = geteuid(),
                  .gid = getegid(),
                  .admin = geteuid()},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = "bench", .tasks = 1},
        .clock = &joule_clock_system,
        .flush_ns = JOULE_NS_PER_S,
        .queue_bytes = 1024 * 1024,
    };

    bench_file(dir, "proc/sys/kernel/random/boot_id", "bench\n");
    bench_file(dir, "user/", NULL);
    opt.root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    writer = opt.writer = joule_writer_create(&writer_opt, &err);
    regions = writer ? joule_regions_create(&opt, &err) : NULL;
    if (!regions)
        bench_die("the step", err.text);
    close(opt.root_fd);
}

static void end_step(void)
{
    joule_regions_destroy(regions);
    joule_writer_close(writer, 10 * JOULE_NS_PER_S);
}

/* ---- in the program ---- */

static void call(void)
{
    static _Thread_local bool is_in;

    if (is_in)
        joule_region_end("solve");
    else
        joule_region_begin("solve");
    is_in = !is_in;
}

static void look_at_clock(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
}

static void measure_calls(struct bench_result *r)
{
    const struct bench_race race = {call, look_at_clock, CALLS, ROUNDS};

    if (strcmp(joule_status(), "recording") != 0)
        bench_die("the library", joule_status());
    bench_run_race(&race, &r->ours, &r->peer);
}

static pthread_barrier_t start;
static double took_ns[THREADS_MAX][2];

static void *run_thread(void *arg)
{
    double *took = arg, begin;

    call();
    call();
    for (int peer = 0; peer < 2; peer++) {
        pthread_barrier_wait(&start);
        begin = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 10 * CALLS; i++)
            (peer ? look_at_clock : call)();
        took[peer] =
            (bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (10 * CALLS);
    }
    return NULL;
}

/* A thread on each CPU; the median of their CPU times. */
static void measure_all_cpus(struct bench_result *r)
{
    int count = get_nprocs() < THREADS_MAX ? get_nprocs() : THREADS_MAX;
    pthread_t threads[THREADS_MAX];
    double values[2][THREADS_MAX];

    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run_thread, took_ns[i]) != 0)
            bench_die("a thread", strerror(errno));
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        values[0][i] = took_ns[i][0];
        values[1][i] = took_ns[i][1];
    }
    r->ours = bench_median(values[0], (size_t)count);
    r->peer = bench_median(values[1], (size_t)count);
}

/* ---- in slurmstepd ---- */

static pid_t start_program(void)
{
    pid_t pid = fork();

    if (pid < 0)
        bench_die("fork", strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        call();
}

/* CPU time of this process, percent of a core. */
static void measure_stepd(struct bench_result *r)
{
    pid_t pid = start_program();
    double before;

    bench_sleep_ms(500);
    before = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    bench_sleep_ms(WATCH_MS);
    r->ours = (bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - before) /
              (WATCH_MS * 1e6) * 100;
    r->peer = NAN;
    bench_stop(pid);
}

int main(void)
{
    char run[96], command[96];
    struct bench_result r;
    bool good = true;

    snprintf(dir, sizeof(dir), "/tmp/joule-bench.XXXXXX");
    if (!mkdtemp(dir))
        bench_die(dir, strerror(errno));
    snprintf(run, sizeof(run), "%s/run/slurm-joule", dir);
    setenv("JOULE_RUN_DIR", run, 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    begin_step();
    bench_print_head();
    r = bench_measure(measure_calls);
    good &= bench_print_row("region_begin_or_end (peer: a look at the clock)",
                            "ns", r, BENCH_BELOW, 50);
    r = bench_measure(measure_all_cpus);
    good &= bench_print_row("region_begin_or_end_on_all_cpus (likewise)", "ns",
                            r, BENCH_BELOW, 100);
    measure_stepd(&r);
    good &= bench_print_row("regions_in_slurmstepd_at_full_rate", "% of a core",
                            r, BENCH_BELOW, 1);
    end_step();
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return system(command) == 0 && good ? 0 : 1;
}
