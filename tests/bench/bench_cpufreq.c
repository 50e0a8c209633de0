/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a request for a frequency adds to the launch and to the end of a step:
 * ours beside Slurm's own code, in turns in one process.
 *
 *   bench_cpufreq LIBSLURMFULL
 *
 * The policies are plain files in a tmpfs that this process alone sees, at
 * /sys/devices/system/cpu: what the kernel itself takes for a write is in none
 * of the figures.  Slurm's code is that of the library; this program stands in
 * for slurmstepd and hands it a record of the step, which it knows for 22.05
 * on x86-64 only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/cgroup/cpuset.h"
#include "common/cpufreq/control.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "tests/bench/bench.h"

#define ROUNDS   61
#define CPUS     "/sys/devices/system/cpu"
#define SPOOL    "/run/spool"
#define IDLE_RUN 1000

/* ---- Slurm's code ---- */

/* 22.05, x86-64: offsets in slurmd_conf_t and stepd_step_rec_t. */
#define CONF_CPUS     0x80
#define CONF_SPOOLDIR 0xe8
#define STEP_ID       112
#define STEP_CPU_FREQ 332

static struct {
    bool is_there;
    void (*init)(void *conf);
    void (*validate)(void *step, char *cpus);
    void (*set)(void *step);
    void (*reset)(void *step);
    char step[4096];
} slurm;

static void load_slurm(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (!lib)
        bench_die("dlopen", dlerror());
    *(void **)&slurm.init = dlsym(lib, "cpu_freq_init");
    *(void **)&slurm.validate = dlsym(lib, "cpu_freq_cgroup_validate");
    *(void **)&slurm.set = dlsym(lib, "cpu_freq_set");
    *(void **)&slurm.reset = dlsym(lib, "cpu_freq_reset");
#if JOULE_SLURM_SERIES == JOULE_SLURM_22_05 && defined(__x86_64__)
    slurm.is_there = slurm.init && slurm.validate && slurm.set && slurm.reset;
#endif
}

/* slurmd's part, once, and the record of a step that asks for a governor. */
static void prepare_slurm(unsigned cpus)
{
    const uint32_t freq[] = {NO_VAL, NO_VAL, CPU_FREQ_PERFORMANCE};
    const char *spool = SPOOL;
    uint16_t count = (uint16_t)cpus;
    slurm_step_id_t id = {.job_id = 1};
    char conf[4096] = "";
    slurm_conf_t *common = dlsym(RTLD_DEFAULT, "slurm_conf");

    if (common) {
        common->cpu_freq_def = NO_VAL;
        common->cpu_freq_govs =
            (CPU_FREQ_ONDEMAND | CPU_FREQ_PERFORMANCE | CPU_FREQ_USERSPACE) &
            ~(uint32_t)CPU_FREQ_RANGE_FLAG;
    }
    memcpy(conf + CONF_CPUS, &count, sizeof(count));
    memcpy(conf + CONF_SPOOLDIR, &spool, sizeof(spool));
    memcpy(slurm.step + STEP_ID, &id, sizeof(id));
    memcpy(slurm.step + STEP_CPU_FREQ, freq, sizeof(freq));
    if (slurm.is_there)
        slurm.init(conf);
}

/* ---- the machine ---- */

static void put(unsigned policy, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), CPUS "/cpufreq/policy%u/%s", policy, name);
    f = fopen(path, "w");
    if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) != 0)
        bench_die(path, strerror(errno));
}

static void build_policy(unsigned id)
{
    static const char *const files[][2] = {
        {"scaling_driver", "acpi-cpufreq"},
        {"scaling_governor", "ondemand"},
        {"scaling_available_governors",
         "conservative ondemand userspace powersave performance schedutil "},
        {"scaling_available_frequencies", "3000000 2600000 2000000 1500000 "},
        {"scaling_min_freq", "1500000"},
        {"scaling_max_freq", "3000000"},
        {"scaling_cur_freq", "2000000"},
        {"scaling_setspeed", "<unsupported>"},
        {"cpuinfo_min_freq", "1500000"},
        {"cpuinfo_max_freq", "3000000"},
        {"cpuinfo_cur_freq", "2000000"},
    };
    char path[128], target[64];

    snprintf(path, sizeof(path), CPUS "/cpufreq/policy%u", id);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), CPUS "/cpu%u", id);
    mkdir(path, 0755);
    strcat(path, "/cpufreq");
    snprintf(target, sizeof(target), "../cpufreq/policy%u", id);
    if (symlink(target, path) < 0)
        bench_die(path, strerror(errno));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        put(id, files[i][0], files[i][1]);
    snprintf(target, sizeof(target), "%u ", id);
    put(id, "affected_cpus", target);
    put(id, "related_cpus", target);
}

/* Nobody else sees it, and it goes with the process. */
static void build_machine(unsigned cpus)
{
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("bench", CPUS, "tmpfs", 0, "mode=755") < 0 ||
        mount("bench", "/run", "tmpfs", 0, "mode=755") < 0 ||
        mkdir(CPUS "/cpufreq", 0755) < 0 || mkdir(SPOOL, 0755) < 0)
        bench_die("private mounts", strerror(errno));
    for (unsigned i = 0; i < cpus; i++)
        build_policy(i);
}

/* ---- the race ---- */

static unsigned cpu_count;
static struct joule_control control;
static struct joule_control_grant grant;

/* As in slurmstepd: the task's CPUs are asked for, and these are then those of
 * the machine that was built. */
static double time_take(void)
{
    struct joule_control_claim claim = {.job = 1, .step = "0", .pid = getpid()};
    struct joule_error err;
    double start = bench_now_ns(CLOCK_MONOTONIC_RAW);

    if (joule_request_parse("performance", &claim.request, &err) < 0 ||
        joule_cgroup_cpus_of(control.root_fd, getpid(), &claim.cpus, &err) < 0)
        bench_die("request", err.text);
    memset(&claim.cpus, 0, sizeof(claim.cpus));
    for (unsigned i = 0; i < cpu_count; i++)
        joule_cpus_add(&claim.cpus, i);
    if (joule_control_hold(&control, &claim, &grant, &err) < 0)
        bench_die("take", err.text);
    return bench_now_ns(CLOCK_MONOTONIC_RAW) - start;
}

static double time_release(void)
{
    struct joule_error err;
    double start = bench_now_ns(CLOCK_MONOTONIC_RAW);

    if (grant.met != cpu_count ||
        joule_control_release(&control, &grant, &err) < 0)
        bench_die("release", grant.met == cpu_count ? err.text : "not all set");
    return bench_now_ns(CLOCK_MONOTONIC_RAW) - start;
}

static double time_slurm_set(void)
{
    char cpus[16];
    double start;

    snprintf(cpus, sizeof(cpus), "0-%u", cpu_count - 1);
    start = bench_now_ns(CLOCK_MONOTONIC_RAW);
    slurm.validate(slurm.step, cpus);
    slurm.set(slurm.step);
    return bench_now_ns(CLOCK_MONOTONIC_RAW) - start;
}

static double time_slurm_reset(void)
{
    double start = bench_now_ns(CLOCK_MONOTONIC_RAW);

    slurm.reset(slurm.step);
    return bench_now_ns(CLOCK_MONOTONIC_RAW) - start;
}

/* Whether the last policy is under this governor: the peer has done its work,
 * or undone it. */
static void must_be(const char *governor)
{
    char path[128], text[64] = "";
    int fd;

    snprintf(path, sizeof(path), CPUS "/cpufreq/policy%u/scaling_governor",
             cpu_count - 1);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        bench_die(path, strerror(errno));
    close(fd);
    if (strncmp(text, governor, strlen(governor)) != 0)
        bench_die(path, text);
}

struct race {
    double take[ROUNDS], release[ROUNDS], set[ROUNDS], reset[ROUNDS];
};

static void run_round(struct race *r, int i)
{
    r->take[i] = time_take();
    must_be("performance");
    r->release[i] = time_release();
    must_be("ondemand");
    if (!slurm.is_there)
        return;
    r->set[i] = time_slurm_set();
    must_be("performance");
    r->reset[i] = time_slurm_reset();
    must_be("ondemand");
}

static void measure(struct bench_result ret[3])
{
    static const struct joule_control_config config = {
        .rules = {.governors = JOULE_GOVERNORS_ALL},
        .lock_wait_ns = JOULE_NS_PER_S,
    };
    struct race *r = calloc(1, sizeof(*r));
    double start;

    if (!r)
        bench_die("race", strerror(ENOMEM));
    build_machine(cpu_count);
    prepare_slurm(cpu_count);
    joule_control_init(&control, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
                       &config);
    run_round(r, 0);
    for (int i = 0; i < ROUNDS; i++)
        run_round(r, i);
    for (int i = 0; i < 3; i++)
        ret[i].peer = (double)NAN;
    ret[0].ours = bench_median(r->take, ROUNDS) / 1e6;
    ret[1].ours = bench_median(r->release, ROUNDS) / 1e6;
    if (slurm.is_there) {
        ret[0].peer = bench_median(r->set, ROUNDS) / 1e6;
        ret[1].peer = bench_median(r->reset, ROUNDS) / 1e6;
    }
    start = bench_now_ns(CLOCK_MONOTONIC_RAW);
    for (int i = 0; i < IDLE_RUN; i++)
        joule_control_recover(&control, NULL, NULL);
    ret[2].ours = (bench_now_ns(CLOCK_MONOTONIC_RAW) - start) / IDLE_RUN / 1e6;
    free(r);
}

static void launch(struct bench_result *r)
{
    struct bench_result all[3];

    measure(all);
    *r = all[0];
}

static void end(struct bench_result *r)
{
    struct bench_result all[3];

    measure(all);
    *r = all[1];
}

static void nothing(struct bench_result *r)
{
    struct bench_result all[3];

    measure(all);
    *r = all[2];
}

int main(int argc, char **argv)
{
    bool good = true;

    if (argc != 2) {
        fputs("usage: bench_cpufreq LIBSLURMFULL\n", stderr);
        return 2;
    }
    load_slurm(argv[1]);
    bench_print_head();
    cpu_count = 2;
    good &= bench_print_row("cpufreq launch 2 policies", "ms",
                            bench_measure(launch), BENCH_BELOW, 2);
    good &= bench_print_row("cpufreq end 2 policies", "ms", bench_measure(end),
                            BENCH_BELOW, 2);
    cpu_count = 128;
    good &= bench_print_row("cpufreq launch 128 policies", "ms",
                            bench_measure(launch), BENCH_BELOW, 20);
    good &= bench_print_row("cpufreq end 128 policies", "ms",
                            bench_measure(end), BENCH_BELOW, 20);
    good &= bench_print_row("cpufreq step without a request", "ms",
                            bench_measure(nothing), BENCH_BELOW, 0.05);
    return good ? 0 : 1;
}
