/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_ledger - what one interval of the ledger costs: registrations, CPU
 * time of each step from its cgroup, the split and the publication.
 *
 * With cgroup v1 and root, the groups are real ones; else they are files built
 * for it (and the rows say so).  Two parts, the more expensive way.  CPU time
 * of this process, in us a step; each figure is the median of many intervals.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/daemon/step_rows.h"
#include "common/cgroup/busy.h"
#include "common/cgroup/usage.h"
#include "tests/bench/bench.h"
#include "tests/bench/userviews.h"

#define STEPS_MAX 512
#define ROUNDS    101
#define CPUACCT   "/sys/fs/cgroup/cpuacct"
#define SWEEPS    8 /* a process is looked at twice in one of so many */

struct node {
    char dir[64];     /* stands in for "/" */
    char groups[128]; /* where the steps' groups are */
    bool real;
    int root_fd, dir_fd;
    size_t cpus, steps;
    struct joule_ledger *ledger, *stepd;
    struct joule_step_rows *charge;
    struct joule_busy *busy;
    struct joule_usage *usage[JOULE_LEDGER_SLOTS_MAX];
    uint64_t owner[JOULE_LEDGER_SLOTS_MAX];
    uint64_t (*part_ns)[2];
    uint64_t *cpu_ns;
    uint64_t words[64], node_uj;
    int64_t mono_ns;
    unsigned round;
};

static struct node n;

static void make_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bench_die(path, strerror(errno));
}

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        bench_die(path, strerror(errno));
}

/* The step's group, as /proc would tell it. */
static void make_group(size_t i, char group[128])
{
    char path[512], text[4096] = "";

    snprintf(path, sizeof(path), "%s/job_%zu", n.groups, i + 1);
    make_dir(path);
    snprintf(path, sizeof(path), "%s/job_%zu/step_0", n.groups, i + 1);
    make_dir(path);
    snprintf(group, 128, "%s",
             path + strlen(n.real ? CPUACCT : "") +
                 (n.real ? 0 : strlen(n.dir) + 3));
    if (n.real)
        return;
    for (size_t c = 0; c < n.cpus && strlen(text) < 4000; c++)
        strcat(text, "123456789012 ");
    make_file(path, "cpuacct.usage_percpu", text);
}

static void make_root(void)
{
    char path[128];

    strcpy(n.dir, "/dev/shm/joule-bench.XXXXXX");
    if (!mkdtemp(n.dir))
        bench_die("/dev/shm", strerror(errno));
    snprintf(path, sizeof(path), "%s/cg", n.dir);
    make_dir(path);
    snprintf(n.groups, sizeof(n.groups), CPUACCT "/l_bench_%d", getpid());
    n.real = mkdir(n.groups, 0755) == 0;
    if (!n.real)
        snprintf(n.groups, sizeof(n.groups), "%s/cg/slurm", n.dir);
    make_dir(n.groups);
    if (n.real) {
        snprintf(path, sizeof(path), "%s/proc", n.dir);
        if (symlink("/proc", path) < 0)
            bench_die(path, strerror(errno));
    } else {
        snprintf(path, sizeof(path), "%s/proc", n.dir);
        make_dir(path);
        snprintf(path, sizeof(path), "%s/proc/self", n.dir);
        make_dir(path);
        make_file(path, "mountinfo",
                  "33 31 0:30 / /cg rw - cgroup cgroup rw,cpuacct\n");
    }
    n.dir_fd = open(n.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n.root_fd =
        n.real ? open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : n.dir_fd;
}

static void remove_root(void)
{
    char command[256];

    snprintf(command, sizeof(command),
             "find %s -depth -type d -exec rmdir {} + 2>/dev/null; rm -rf %s",
             n.real ? n.groups : "/nonexistent", n.dir);
    if (system(command) < 0)
        bench_die("system", strerror(errno));
}

static void register_step(size_t i, uint64_t owner)
{
    struct joule_registration r = {.owner = owner,
                                   .job = (uint32_t)i + 1,
                                   .cpu_count = 1,
                                   .job_cpu_count = 1,
                                   .began_ns = 1};
    uint64_t cpus[JOULE_LEDGER_WORDS_MAX] = {0};
    unsigned slot;

    make_group(i, r.path);
    cpus[i % 2] = UINT64_C(1) << i / 2 % 64;
    if (joule_ledger_register(n.stepd, n.root_fd, &r, cpus, cpus, &slot, NULL) <
        0)
        bench_die("register", strerror(errno));
    n.owner[slot] = owner;
    n.usage[slot] = joule_usage_create(
        n.root_fd,
        &(struct joule_usage_step){
            .pid = getpid(), .job = r.job, .node = "n", .path = r.path},
        n.cpus);
}

static bool has_process(uint64_t owner)
{
    char path[32];

    snprintf(path, sizeof(path), "proc/%d", (int)joule_process_pid(owner));
    return faccessat(n.root_fd, path, F_OK, 0) == 0;
}

/* A node of 128 CPUs in two packages, with the machine's own CPU time. */
static void make_node(size_t steps)
{
    static const uint64_t sets[] = {UINT64_MAX, 0, 0, UINT64_MAX};
    struct joule_step_rows_options o = {
        .part_cpus = sets, .part_count = 2, .part_key = 1};
    struct joule_error err = {""};
    uint64_t start = 0;

    memset(&n, 0, sizeof(n));
    n.cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
    n.steps = steps;
    make_root();
    if (!n.real) {
        char path[128];

        snprintf(path, sizeof(path), "%s/proc/sys", n.dir);
        make_dir(path);
        strcat(path, "/kernel");
        make_dir(path);
        strcat(path, "/random");
        make_dir(path);
        make_file(path, "boot_id", "1\n");
    }
    n.ledger = joule_ledger_create(n.dir_fd, "n", 2, &err);
    o.ledger = n.ledger;
    if (!n.ledger || !(n.stepd = joule_ledger_open(n.dir_fd, "n", &err)) ||
        !(n.charge = joule_step_rows_create(&o, &err)))
        bench_die("the ledger", err.text);
    n.part_ns = calloc(JOULE_LEDGER_SLOTS_MAX, sizeof(*n.part_ns));
    n.cpu_ns = calloc(n.cpus, sizeof(*n.cpu_ns));
    n.busy = n.real ? joule_busy_create(n.root_fd, n.cpus, &err) : NULL;
    joule_process_start(n.root_fd, getpid(), &start);
    for (size_t i = 0; i < steps; i++)
        register_step(i, joule_process_number(getpid(), start));
}

/* All that the sampler does for the ledger in one interval. */
static void interval(void)
{
    static struct joule_step_cpu_time usage[JOULE_LEDGER_SLOTS_MAX];
    uint64_t busy_ns[2] = {0};
    struct joule_step_rows_sample s = {
        .node_uj = n.node_uj += 300000000,
        .mono_ns = n.mono_ns += 1000000000,
        .usage = usage,
        .usage_count = joule_ledger_slots(n.ledger),
    };

    for (unsigned i = 0; i < s.usage_count; i++) {
        const uint64_t *by_cpu;

        usage[i] = (struct joule_step_cpu_time){0};
        if (!n.usage[i])
            continue;
        if (n.real && (!has_process(n.owner[i]) ||
                       (i % SWEEPS == n.round % SWEEPS &&
                        joule_ledger_sweep(n.ledger, n.root_fd, i))))
            bench_die("sweep", "the process lives");
        usage[i].owner = n.owner[i];
        if (joule_usage_read(n.usage[i], &usage[i].cpu_ns, &by_cpu) < 0 ||
            joule_usage_from(n.usage[i]) != JOULE_USAGE_FROM_V1 || !by_cpu)
            bench_die("a group", strerror(errno));
        usage[i].state = JOULE_USAGE_KNOWN;
        memset(n.part_ns[i], 0, sizeof(n.part_ns[i]));
        for (size_t c = 0; c < n.cpus; c++)
            n.part_ns[i][c >= (n.cpus + 1) / 2] += by_cpu[c];
        usage[i].part_ns = n.part_ns[i];
    }
    if (n.busy && joule_busy_read(n.busy, n.cpu_ns) == 0) {
        for (size_t c = 0; c < n.cpus; c++)
            busy_ns[c >= (n.cpus + 1) / 2] += n.cpu_ns[c];
        s.part_busy_ns = busy_ns;
    }
    if (joule_step_rows_update(n.charge, &s)->faults)
        bench_die("the ledger", "does not add up");
    n.round++;
}

static double measure(int pause_ms, int rounds)
{
    double us[ROUNDS];

    for (int i = 0; i < 5; i++)
        interval();
    for (int i = 0; i < rounds; i++) {
        double t;

        if (pause_ms)
            bench_sleep_ms(pause_ms);
        t = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
        interval();
        us[i] = (bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - t) / 1000;
    }
    return bench_median(us, (size_t)rounds);
}

static size_t asked_steps;

static void warm(struct bench_result *r)
{
    make_node(asked_steps);
    r->ours = measure(0, ROUNDS) / (double)asked_steps;
    r->peer = n.real ? (double)NAN : -1;
    remove_root();
}

/* Nothing of it is in a cache after a pause. */
static void at_1_hz(struct bench_result *r)
{
    make_node(asked_steps);
    r->ours = measure(200, 15) / 1e6 * 100;
    remove_root();
}

static void file_size(struct bench_result *r)
{
    char path[128];
    struct stat st;

    make_node(STEPS_MAX);
    snprintf(path, sizeof(path), "%s/run/slurm-joule/n/ledger", n.dir);
    if (stat(path, &st) < 0)
        bench_die(path, strerror(errno));
    r->ours = (double)st.st_size / 1024;
    remove_root();
}

/* Steps that come and go, 50 at a time: the size of the file at the end. */
static void after_10000(struct bench_result *r)
{
    char path[128];
    struct stat st;
    uint64_t start = 0, owner;

    make_node(0);
    joule_process_start(n.root_fd, getpid(), &start);
    owner = joule_process_number(getpid(), start);
    for (size_t done = 0; done < 10000; done += 50) {
        for (size_t i = 0; i < 50; i++)
            register_step(i, owner);
        interval();
        for (unsigned i = 0; i < joule_ledger_slots(n.ledger); i++) {
            joule_ledger_release(n.stepd, i, n.owner[i]);
            joule_usage_destroy(n.usage[i]);
            n.usage[i] = NULL;
            n.owner[i] = 0;
        }
        interval();
    }
    snprintf(path, sizeof(path), "%s/run/slurm-joule/n/ledger", n.dir);
    if (stat(path, &st) < 0)
        bench_die(path, strerror(errno));
    r->ours = (double)st.st_size / 1024;
    remove_root();
}

int main(void)
{
    static const size_t counts[] = {4, 64, 512};
    bool pass = true, real = true;

    bench_print_head();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct bench_result r;
        char name[80];

        asked_steps = counts[i];
        r = bench_measure(warm);
        real = isnan(r.peer);
        r.peer = (double)NAN;
        snprintf(name, sizeof(name), "an interval of %zu steps%s", counts[i],
                 real ? "" : " (built files)");
        pass &= bench_print_row(name, "us a step", r, BENCH_BELOW, 30);
    }
    asked_steps = 64;
    pass &= bench_print_row("64 steps at 1 Hz", "% of a core",
                            bench_measure(at_1_hz), BENCH_BELOW, 0.2);
    pass &= bench_print_row("files of 64 users at 1 Hz", "% of a core",
                            bench_measure(bench_userviews), BENCH_BELOW, 0.05);
    pass &= bench_print_row("the ledger of 512 steps on 128 CPUs", "KiB",
                            bench_measure(file_size), BENCH_BELOW, 256);
    pass &= bench_print_row("the ledger after 10000 steps", "KiB",
                            bench_measure(after_10000), BENCH_BELOW, 64);
    return pass ? 0 : 1;
}
