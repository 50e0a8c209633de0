/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads are measured by what the scheduler says of each, exact to the
 * nanosecond and not by ticks.  The thread that does nothing has the same
 * priority and sleeps in the same way, half a period apart: under the same
 * conditions, in the same process, and on the same CPU.  (Waking up costs one
 * CPU of a virtual machine 20 us and another 40, and a thread of real-time
 * priority stays where it is: what two of them were apart was mostly that.
 * A thread that is woken right after another one pays a quarter of that.)
 */
#include "tests/bench/series.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/source/rapl.h"
#include "common/store/energy.h"
#include "common/store/writer.h"
#include "config.h"
#include "tests/bench/bench.h"
#include "tests/bench/waker.h"

#define SECONDS  20
#define WARM     11 /* the file is made at the first flush, after 10 s */
#define BUSY     2 /* tasks for each CPU */
#define CPUS_MAX 4 /* of those that there are */

/* ---- a machine ---- */

static void put_file(int dir, const char *path, const char *text, off_t size)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || ftruncate(fd, size) < 0 || write(fd, text, strlen(text)) < 0)
        bench_die(path, strerror(errno));
    close(fd);
}

/* A machine of one package (Skylake-SP) with DRAM, of plain files: the reads
 * are system calls, and nothing else of the machine is. */
static int make_machine(const char *directory)
{
    static const char *const dirs[] = {
        "machine",
        "machine/proc",
        "machine/sys",
        "machine/sys/devices",
        "machine/sys/devices/system",
        "machine/sys/devices/system/cpu",
        "machine/sys/devices/system/cpu/cpu0",
        "machine/sys/devices/system/cpu/cpu0/topology",
        "machine/dev",
        "machine/dev/cpu",
        "machine/dev/cpu/0",
    };
    int dir = open(directory, O_PATH | O_DIRECTORY), root;
    size_t i;

    for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (mkdirat(dir, dirs[i], 0755) < 0 && errno != EEXIST)
            bench_die(dirs[i], strerror(errno));
    root = openat(dir, "machine", O_PATH | O_DIRECTORY);
    put_file(root, "proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\n"
             "cpu family\t: 6\nmodel\t\t: 85\nmodel name\t: a benchmark\n"
             "physical id\t: 0\ncore id\t\t: 0\ncpu cores\t: 1\n"
             "flags\t\t: msr\n\n",
             0);
    put_file(root, "sys/devices/system/cpu/online", "0\n", 0);
    put_file(root, "sys/devices/system/cpu/cpu0/topology/physical_package_id",
             "0\n", 0);
    put_file(root, "sys/devices/system/cpu/cpu0/topology/die_id", "0\n", 0);
    put_file(root, "sys/devices/system/cpu/cpu0/topology/core_id", "0\n", 0);
    put_file(root, "dev/cpu/0/msr", "", 0x621);
    close(dir);
    return root;
}

/* The counters go on, about 100 W, in a process that is not counted. */
static pid_t start_counters(int root)
{
    int fd = openat(root, "dev/cpu/0/msr", O_WRONLY);
    uint64_t raw = 0x12345678, unit = 0xa0e03;
    pid_t pid;

    if (fd < 0 || pwrite(fd, &unit, sizeof(unit), 0x606) < 0)
        bench_die("dev/cpu/0/msr", strerror(errno));
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;; bench_sleep_ms(50)) {
        raw = (raw + 81920) & UINT32_MAX;
        if (pwrite(fd, &raw, sizeof(raw), 0x611) < 0 ||
            pwrite(fd, &raw, sizeof(raw), 0x619) < 0)
            _exit(2);
    }
}

/* ---- threads ---- */

/* One line of a file of a thread of this process; false: it is gone. */
static bool read_line(const char *tid, const char *file, char *text, int size)
{
    char path[300];
    FILE *f;
    bool is_read;

    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, file);
    f = fopen(path, "r");
    if (!f)
        return false;
    is_read = fgets(text, size, f) != NULL;
    fclose(f);
    text[strcspn(text, "\n")] = '\0';
    return is_read;
}

/* The thread of this process that has that name. */
static pid_t thread_of(const char *name)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    char text[128];
    pid_t tid = -1;

    while (dir && (entry = readdir(dir)) != NULL)
        if (read_line(entry->d_name, "comm", text, sizeof(text)) &&
            strcmp(text, name) == 0)
            tid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (dir)
        closedir(dir);
    if (tid < 0)
        bench_die(name, "there is no such thread");
    return tid;
}

/* Its CPU time. */
static double thread_ns(pid_t thread)
{
    char tid[16], text[128];

    snprintf(tid, sizeof(tid), "%d", (int)thread);
    if (!read_line(tid, "schedstat", text, sizeof(text)))
        bench_die("schedstat", "there is no /proc/self/task/TID/schedstat");
    return strtod(text, NULL);
}

enum { BARE, ENERGY, WRITER, THREADS };

static const char *const names[THREADS] = {"bare", "joule-energy",
                                           "joule-profile"};

/* Add what each thread uses in [ms], those that are woken on one CPU. */
static void measure_on(const pid_t thread[THREADS], const cpu_set_t *cpu,
                       int ms, double ns[THREADS])
{
    int i;

    if (sched_setaffinity(thread[BARE], sizeof(*cpu), cpu) < 0 ||
        sched_setaffinity(thread[ENERGY], sizeof(*cpu), cpu) < 0)
        bench_die("sched_setaffinity", strerror(errno));
    bench_sleep_ms(100);
    for (i = 0; i < THREADS; i++)
        ns[i] -= thread_ns(thread[i]);
    bench_sleep_ms(ms);
    for (i = 0; i < THREADS; i++)
        ns[i] += thread_ns(thread[i]);
}

/* Of each thread, us of CPU a period: by turns on the CPUs that there are. */
static void measure(double us[THREADS])
{
    cpu_set_t all, one;
    pid_t thread[THREADS];
    int cpu, turns, i;

    if (sched_getaffinity(0, sizeof(all), &all) < 0)
        bench_die("sched_getaffinity", strerror(errno));
    turns = CPU_COUNT(&all) < CPUS_MAX ? CPU_COUNT(&all) : CPUS_MAX;
    for (i = 0; i < THREADS; i++) {
        thread[i] = thread_of(names[i]);
        us[i] = 0;
    }
    for (cpu = 0, i = 0; i < turns; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        measure_on(thread, &one, SECONDS * 1000 / turns, us);
        i++;
    }
    for (i = 0; i < THREADS; i++)
        us[i] /= 1e3 * (SECONDS * JOULE_NS_PER_S / WAKER_PERIOD_NS);
}

/* ---- tasks that fill the machine ---- */

static void start_tasks(pid_t *pids, long count)
{
    long i;

    for (i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            bench_die("fork", strerror(errno));
        if (pids[i] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            ;
    }
}

/* What the series takes, beside a thread that could not read anything; and what
 * it takes on top. */
static bool report(const char *where, const double us[THREADS])
{
    struct bench_result all = {.ours = (us[ENERGY] + us[WRITER]) / 100,
                               .peer = us[BARE] / 100};
    struct bench_result more = {.ours = all.ours - all.peer, .peer = NAN};
    char name[100];
    bool good;

    fprintf(stderr,
            "100 Hz, %s: us of CPU a period: %.1f waking up and nothing else, "
            "%.1f sampling, %.1f writing\n",
            where, us[BARE], us[ENERGY], us[WRITER]);
    snprintf(name, sizeof(name),
             "series at 100 Hz (%s); peer: waking up and nothing else", where);
    good = bench_print_row(name, "% of a core", all, BENCH_BELOW, 0.2);
    snprintf(name, sizeof(name), "series at 100 Hz over waking up (%s)", where);
    return bench_print_row(name, "% of a core", more, BENCH_BELOW, 0.2) && good;
}

/* CLOCK_MONOTONIC, half a period after a row of the series. */
static int64_t between_rows_ns(const struct joule_writer *writer)
{
    int64_t offset_ns = (int64_t)bench_now_ns(CLOCK_MONOTONIC) -
                        joule_clock_mono_ns(&joule_clock_system);

    return joule_writer_start_ns(writer) + offset_ns + WAKER_PERIOD_NS / 2;
}

static struct joule_writer *open_writer(const char *directory)
{
    struct joule_writer_options opt = {
        .place = {.dir = directory, .user = "fast"},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = PACKAGE_STRING, .tasks = 1},
        .clock = &joule_clock_system,
        .flush_ns = 10 * JOULE_NS_PER_S,
        .pack = {.level = 1, .shuffle = true},
        .queue_bytes = 1024 * 1024,
    };
    struct joule_error err;
    struct joule_writer *writer = joule_writer_create(&opt, &err);

    if (!writer)
        bench_die("joule_writer_create", err.text);
    return writer;
}

bool bench_series(const char *directory)
{
    long tasks = BUSY * sysconf(_SC_NPROCESSORS_ONLN), i;
    pid_t *pids = calloc((size_t)tasks, sizeof(*pids)), counters;
    struct joule_energy_series_options opt = {.clock = &joule_clock_system,
                                              .period_ns = WAKER_PERIOD_NS};
    int root = make_machine(directory);
    struct joule_energy_series *energy;
    struct joule_source *source;
    double us[THREADS];
    struct joule_error err;
    struct waker bare;
    bool good;

    counters = start_counters(root);
    source = joule_rapl_create(root, NULL, &err);
    if (!source)
        bench_die("joule_rapl_create", err.text);
    opt.source = source;
    opt.account = joule_account_create(&joule_clock_system, source, NULL);
    opt.writer = open_writer(directory);
    joule_account_begin(opt.account);
    energy = joule_energy_series_create(&opt);
    if (!pids || !energy)
        bench_die("the series", "does not start");
    waker_start(&bare, names[BARE], between_rows_ns(opt.writer));
    joule_energy_series_settled(energy);
    bench_sleep_ms(WARM * 1000);
    measure(us);
    good = report("idle machine", us);
    start_tasks(pids, tasks);
    measure(us);
    good &= report("all CPUs busy", us);
    for (i = 0; i < tasks; i++)
        bench_stop(pids[i]);
    waker_stop(&bare);
    joule_energy_series_destroy(energy);
    if (joule_writer_close(opt.writer, 60 * JOULE_NS_PER_S) < 0)
        bench_die("joule_writer_close", strerror(errno));
    joule_account_destroy(opt.account);
    joule_source_destroy(source);
    bench_stop(counters);
    free(pids);
    return good;
}
