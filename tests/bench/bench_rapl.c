/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What slurmd's and slurmstepd's calls of joule_rapl cost, beside Slurm's own
 * acct_gather_energy/rapl in the same process, and what its sampler does.
 *
 *   bench_rapl OUR-PLUGIN SLURM-PLUGIN LIBSLURMFULL
 *
 * tests/bench/run starts it where /proc/cpuinfo, /sys/devices/system/cpu and
 * /dev/cpu are those of a built machine of two packages, whose MSR devices
 * are plain files, and where /run is empty.  Every measurement has a process
 * of its own; ours and the peer take turns in it, and the figure of each is
 * the median of many turns.
 *
 * This program is the host of both plugins: it says that it is slurmd or
 * slurmstepd, and stands in for the profile plugin.
 */
#define _FILE_OFFSET_BITS 64

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/daemon/sampler.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/rapl.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "tests/bench/bench.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define PACKAGES 2
#define MSR_PKG  0x611
#define MSR_DRAM 0x619

/* ---- what a host of the plugins exports ---- */

JOULE_SLURM_EXPORT extern uint32_t slurm_daemon;
JOULE_SLURM_EXPORT char *slurm_conf_get_aliased_nodename(void);
JOULE_SLURM_EXPORT bool slurm_running_in_slurmd(void);
JOULE_SLURM_EXPORT bool slurm_running_in_slurmstepd(void);
JOULE_SLURM_EXPORT bool slurm_running_in_slurmd_stepd(void);
JOULE_SLURM_EXPORT void *acct_gather_profile_g_get(int type, void *data);
JOULE_SLURM_EXPORT bool acct_gather_profile_test(void);
JOULE_SLURM_EXPORT int
acct_gather_profile_g_create_dataset(const char *name, int64_t parent,
                                     acct_gather_profile_dataset_t *dataset);
JOULE_SLURM_EXPORT int acct_gather_profile_g_add_sample_data(int id, void *data,
                                                             time_t when);

#define SLURMD     (1u << 4)
#define SLURMSTEPD (1u << 5)

uint32_t slurm_daemon;

/* What the profile plugin was given. */
#define FIELDS_MAX 16
static struct {
    size_t fields;
    uint64_t row[FIELDS_MAX];
    unsigned long rows;
} series[8];
static int series_count;

/* There is no slurm.conf: the library's would end the program. */
char *slurm_conf_get_aliased_nodename(void)
{
    return NULL;
}

bool slurm_running_in_slurmd(void)
{
    return slurm_daemon == SLURMD;
}

bool slurm_running_in_slurmstepd(void)
{
    return slurm_daemon == SLURMSTEPD;
}

bool slurm_running_in_slurmd_stepd(void)
{
    return slurm_daemon != 0;
}

void *acct_gather_profile_g_get(int type, void *data)
{
    (void)type;
    *(uint32_t *)data = ACCT_GATHER_PROFILE_ENERGY;
    return NULL;
}

bool acct_gather_profile_test(void)
{
    return true;
}

int acct_gather_profile_g_create_dataset(const char *name, int64_t parent,
                                         acct_gather_profile_dataset_t *dataset)
{
    size_t n = 0;

    (void)name;
    (void)parent;
    while (dataset[n].type != JOULE_PROFILE_FIELD_END)
        n++;
    if (n > FIELDS_MAX || series_count == COUNT(series))
        return -1;
    series[series_count].fields = n;
    return series_count++;
}

int acct_gather_profile_g_add_sample_data(int id, void *data, time_t when)
{
    (void)when;
    memcpy(series[id].row, data, series[id].fields * sizeof(uint64_t));
    series[id].rows++;
    return SLURM_SUCCESS;
}

/* ---- plugins ---- */

struct plugin {
    int (*init)(void);
    void (*conf_set)(int context_id, s_p_hashtbl_t *table);
    int (*get_data)(enum acct_energy_type type, void *data);
    int (*set_data)(enum acct_energy_type type, void *data);
};

static const char *our_path, *slurm_path, *library_path;

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    if (!found)
        bench_die(name, dlerror());
    return found;
}

/* acct_gather.conf with JouleAttribution=node: a step counts for itself then,
 * as with Slurm's plugin.  (What a share of the node costs, bench_ledger says.)
 */
static s_p_hashtbl_t *whole_nodes(void *library, void *plugin)
{
    void (*conf_options)(s_p_options_t **, int *);
    s_p_hashtbl_t *(*create)(const s_p_options_t *);
    int (*parse_pair)(s_p_hashtbl_t *, const char *, const char *);
    s_p_options_t *options = NULL, *ended;
    s_p_hashtbl_t *table;
    int count = 0;

    *(void **)&conf_options =
        symbol(plugin, "acct_gather_energy_p_conf_options");
    *(void **)&create = symbol(library, "s_p_hashtbl_create");
    *(void **)&parse_pair = symbol(library, "s_p_parse_pair");
    conf_options(&options, &count);
    ended = calloc((size_t)count + 1, sizeof(*ended));
    if (!ended)
        bench_die("calloc", "out of memory");
    memcpy(ended, options, (size_t)count * sizeof(*ended));
    table = create(ended);
    parse_pair(table, "JouleAttribution", "node");
    return table;
}

static struct plugin load(const char *path)
{
    static void *library;
    s_p_hashtbl_t *table = NULL;
    struct plugin p;
    void *handle;

    if (!library)
        library = dlopen(library_path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        bench_die(library_path, dlerror());
    handle = dlopen(path, RTLD_LAZY);
    if (!handle)
        bench_die(path, dlerror());
    *(void **)&p.init = symbol(handle, "init");
    *(void **)&p.conf_set = symbol(handle, "acct_gather_energy_p_conf_set");
    *(void **)&p.get_data = symbol(handle, "acct_gather_energy_p_get_data");
    *(void **)&p.set_data = symbol(handle, "acct_gather_energy_p_set_data");
    if (p.init() != SLURM_SUCCESS)
        bench_die(path, "init failed");
    if (path == our_path)
        table = whole_nodes(library, handle);
    p.conf_set(0, table);
    return p;
}

/* In a process of its own, in the part of [role]. */
static struct bench_result measure(void (*f)(struct bench_result *),
                                   uint32_t role)
{
    struct bench_result r;

    slurm_daemon = role;
    r = bench_measure(f);
    slurm_daemon = 0;
    return r;
}

/* ---- the machine ---- */

static int msr_fd(unsigned package, int flags)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/dev/cpu/%u/msr", package);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        bench_die(path, strerror(errno));
    return fd;
}

/* The counters go on, 100 times a second: about 100 W a package. */
static pid_t start_counters(void)
{
    pid_t pid = fork();
    int fds[PACKAGES];
    uint64_t raw = 0x12345678;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < PACKAGES; i++)
        fds[i] = msr_fd(i, O_WRONLY);
    for (;; bench_sleep_ms(10)) {
        raw = (raw + 16384) & UINT32_MAX;
        for (unsigned i = 0; i < PACKAGES; i++)
            if (pwrite(fds[i], &raw, sizeof(raw), MSR_PKG) < 0 ||
                pwrite(fds[i], &raw, sizeof(raw), MSR_DRAM) < 0)
                _exit(2);
    }
}

/* A slurmd with our plugin, for the ledger.*/
static pid_t start_slurmd(void)
{
    struct plugin ours;
    acct_gather_energy_t energy;
    pid_t pid = fork();

    if (pid != 0) {
        bench_sleep_ms(2500); /* a first interval of the sampler */
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    slurm_daemon = SLURMD;
    ours = load(our_path);
    ours.get_data(ENERGY_DATA_NODE_ENERGY, &energy);
    for (;;)
        pause();
}

static struct joule_sensor *open_sensor(void)
{
    const struct joule_rapl_options opt = {
        .total_kinds = JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE) |
                       JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM),
    };
    struct joule_error err;
    struct joule_counters *counters;
    struct joule_sensor *sensor;
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    counters = joule_rapl_create(root_fd, &opt, &err);
    if (!counters)
        bench_die("joule_rapl_create", err.text);
    if (counters->domain_count != 2 * PACKAGES)
        bench_die("joule_rapl_create", "not two packages of package and DRAM");
    close(root_fd);
    sensor = joule_counter_sensor_create(&joule_clock_system, counters);
    if (!sensor)
        bench_die("joule_counter_sensor_create", strerror(errno));
    return sensor;
}

/* ---- entry points ---- */

static struct plugin slurm_plugin, our_plugin;
static acct_gather_energy_t our_energy, slurm_energy;

static void read_slurm(void)
{
    slurm_plugin.get_data(ENERGY_DATA_NODE_ENERGY_UP, &slurm_energy);
}

static void get_ours(void)
{
    our_plugin.get_data(ENERGY_DATA_NODE_ENERGY_UP, &our_energy);
}

/* Load both, and see to it that ours knows the energy. */
static void load_both(void)
{
    our_plugin = load(our_path);
    slurm_plugin = load(slurm_path);
    for (int i = 0; i < 40; i++) {
        bench_sleep_ms(100);
        get_ours();
    }
    if (our_energy.consumed_energy == NO_VAL64)
        bench_die(our_path, "does not measure");
}

/* A million calls. */
static void measure_get_data(struct bench_result *r)
{
    const struct bench_race race = {get_ours, read_slurm, 5000, 200};

    load_both();
    bench_run_race(&race, &r->ours, &r->peer);
    if (our_energy.consumed_energy == NO_VAL64)
        bench_die(our_path, "no longer measures");
}

#define TRACED_CALLS 1000

/* The plugin's system calls are between the two of getppid. */
static void traced(void (*f)(void))
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    syscall(SYS_getppid);
    for (int i = 0; i < TRACED_CALLS; i++)
        f();
    syscall(SYS_getppid);
    _exit(0);
}

/* How many system calls of the traced thread per call of f. */
static double count_syscalls(pid_t pid)
{
    struct __ptrace_syscall_info info;
    long count = 0;
    int marks = 0, status;

    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        bench_die("the traced plugin", "did not start");
    ptrace(PTRACE_SETOPTIONS, pid, NULL,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    while (marks < 2) {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 ||
            waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
            bench_die("ptrace", "lost the plugin");
        if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
            ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ||
            info.op != PTRACE_SYSCALL_INFO_ENTRY)
            continue;
        if (info.entry.nr == SYS_getppid)
            marks++;
        else if (marks == 1)
            count++;
    }
    bench_stop(pid);
    return (double)count / TRACED_CALLS;
}

/* As measure, for system calls. */
static struct bench_result trace(uint32_t role)
{
    struct bench_result r = {.ours = NAN, .peer = NAN};
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        slurm_daemon = role;
        load_both();
        traced(get_ours);
    }
    r.ours = count_syscalls(pid);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        slurm_daemon = role;
        slurm_plugin = load(slurm_path);
        read_slurm();
        traced(read_slurm);
    }
    r.peer = count_syscalls(pid);
    return r;
}

/* ---- the sampler's thread ---- */

/* The CPU clock of the thread of this process with that name. */
static clockid_t thread_clock(const char *name)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[300], comm[32] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "re");
        if (!file)
            continue;
        if (fgets(comm, sizeof(comm), file))
            comm[strcspn(comm, "\n")] = '\0';
        fclose(file);
        if (strcmp(comm, name) == 0) {
            unsigned tid = (unsigned)strtoul(entry->d_name, NULL, 10);

            closedir(dir);
            /* CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED, linux/posix-timers.h */
            return (clockid_t)(~tid << 3 | 6);
        }
    }
    bench_die(name, "there is no such thread");
    return 0;
}

#define SAMPLER_MS 24000

/* Percent of a core at one sample a second. */
static void measure_sampler(struct bench_result *r)
{
    struct joule_sensor *sensor = open_sensor();
    struct joule_error err;
    struct joule_sampler_options opt = {
        .clock = &joule_clock_system,
        .sensor = sensor,
        .root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .node = "sampler",
        .period_ns = JOULE_NS_PER_S,
    };
    struct joule_sampler *sampler = joule_sampler_create(&opt, &err);
    struct joule_snapshot before, after;
    double cpu_ns;
    clockid_t clock;

    if (!sampler)
        bench_die("joule_sampler_create", err.text);
    bench_sleep_ms(1500);
    clock = thread_clock("joule_sampler");
    if (joule_sampler_read(sampler, &before) < 0)
        bench_die("joule_sampler_read", strerror(errno));
    cpu_ns = bench_now_ns(clock);
    bench_sleep_ms(SAMPLER_MS);
    cpu_ns = bench_now_ns(clock) - cpu_ns;
    if (joule_sampler_read(sampler, &after) < 0)
        bench_die("joule_sampler_read", strerror(errno));
    if (after.samples == before.samples || cpu_ns <= 0)
        bench_die("sampler", "has taken no samples");
    joule_sampler_destroy(sampler);
    close(opt.root_fd);
    joule_sensor_destroy(sensor);
    r->ours = cpu_ns / (double)(after.samples - before.samples) / 1e9 * 100;
}

/* ---- the energy series of a profiled step ---- */

#define SERIES_CALLS 2000

static double profile_ns(const struct plugin *plugin)
{
    int delta = 1;
    double start = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);

    plugin->set_data(ENERGY_DATA_PROFILE, &delta);
    return bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

/* CPU time a call, each after a pause of its own in which the CPU did something
 * else: that is how slurmstepd calls.  Called one right after the other, the
 * second would find what the first has fetched from memory. */
static void measure_series(struct bench_result *r)
{
    static double ours[SERIES_CALLS], peer[SERIES_CALLS];
    unsigned long rows = 0;

    load_both();
    for (int i = -10; i < SERIES_CALLS; i++) {
        double a, b;

        bench_sleep_ms(6);
        a = profile_ns(&our_plugin);
        bench_sleep_ms(6);
        b = profile_ns(&slurm_plugin);
        if (i >= 0) {
            ours[i] = a;
            peer[i] = b;
        }
    }
    for (int i = 0; i < series_count; i++)
        rows += series[i].rows;
    if (series_count != 2 || rows < 2 * SERIES_CALLS)
        bench_die("series", "not every call has made a sample");
    r->ours = bench_median(ours, SERIES_CALLS);
    r->peer = bench_median(peer, SERIES_CALLS);
}

int main(int argc, char **argv)
{
    pid_t counters, slurmd;
    char node[256] = "";
    bool pass = true;

    if (argc != 4) {
        fprintf(stderr,
                "usage: bench_rapl OUR-PLUGIN SLURM-PLUGIN LIBSLURMFULL\n");
        return 2;
    }
    our_path = argv[1];
    slurm_path = argv[2];
    library_path = argv[3];
    /* slurmstepd is told what slurmd finds. */
    if (gethostname(node, sizeof(node)) < 0)
        return 2;
    node[strcspn(node, ".")] = '\0';
    setenv("SLURMD_NODENAME", node, 1);
    counters = start_counters();

    bench_print_head();
    pass &=
        bench_print_row("get_data in slurmd", "ns",
                        measure(measure_get_data, SLURMD), BENCH_BELOW, 2000);
    pass &= bench_print_row("get_data in slurmd: system calls", "calls",
                            trace(SLURMD), BENCH_BELOW, 0.001);
    slurmd = start_slurmd();
    pass &=
        bench_print_row("energy sample of slurmstepd (CPU)", "ns",
                        measure(measure_series, SLURMSTEPD), BENCH_RATIO, 1);
    bench_stop(slurmd);
    pass &=
        bench_print_row("sampler at 1 Hz", "% of a core",
                        measure(measure_sampler, SLURMD), BENCH_BELOW, 0.05);
    bench_stop(counters);
    return pass ? 0 : 1;
}
