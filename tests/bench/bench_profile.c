/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a profile costs slurmstepd, beside Slurm's own
 * acct_gather_profile/hdf5 on the same samples.
 *
 *   bench_profile OUR-PLUGIN SLURM-PLUGIN LIBSLURMFULL DIRECTORY
 *
 * This program is the host of both plugins: it says that it is slurmstepd, has
 * its title, and builds the step's record.  Each plugin is in a process of its
 * own, which the plugins' threads belong to; what a sample costs is all that
 * the process used, less what it uses with the plugin left away.
 */
#define _FILE_OFFSET_BITS 64

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/store/config.h"
#include "common/store/writer.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "tests/bench/bench.h"
#include "tests/bench/series.h"

#define SECONDS      75
#define WARM         10 /* of them, that are not counted */
#define TASKS        4
#define TABLES       (TASKS + 3) /* energy, network, file system */
#define ROWS         3600
#define BENCH_TITLE  "slurmstepd: [7.0]"
#define RECORD_BYTES 1024

/* ---- what a host of the plugins exports ---- */

JOULE_SLURM_EXPORT extern uint32_t slurm_daemon;
JOULE_SLURM_EXPORT bool slurm_running_in_slurmstepd(void);
JOULE_SLURM_EXPORT int slurm_s_p_get_string(char **ret, const char *key,
                                            const s_p_hashtbl_t *table);

uint32_t slurm_daemon = 1u << 5;
static const char *our_path, *slurm_path, *library_path, *directory;

bool slurm_running_in_slurmstepd(void)
{
    return true;
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    if (!found)
        bench_die(name, dlerror());
    return found;
}

/* acct_gather.conf */
int slurm_s_p_get_string(char **ret, const char *key,
                         const s_p_hashtbl_t *table)
{
    char *(*duplicate)(const char *);
    const char *value = NULL;

    (void)table;
    if (strcmp(key, "ProfileHDF5Dir") == 0)
        value = directory;
    if (!value)
        return 0;
    *(void **)&duplicate = symbol(RTLD_DEFAULT, "slurm_xstrdup");
    *ret = duplicate(value);
    return 1;
}

/* ---- a plugin ---- */

struct plugin {
    int (*init)(void);
    void (*conf_set)(void *table);
    int (*start)(void *record);
    int (*end)(void);
    int64_t (*create_group)(const char *name);
    int (*create_dataset)(const char *name, int64_t parent,
                          acct_gather_profile_dataset_t *dataset);
    int (*add)(int id, void *data, time_t when);
};

static struct plugin load(const char *path)
{
    struct plugin p;
    void *handle;

    if (!dlopen(library_path, RTLD_NOW | RTLD_GLOBAL))
        bench_die(library_path, dlerror());
    handle = dlopen(path, RTLD_LAZY);
    if (!handle)
        bench_die(path, dlerror());
    *(void **)&p.init = symbol(handle, "init");
    *(void **)&p.conf_set = symbol(handle, "acct_gather_profile_p_conf_set");
    *(void **)&p.start =
        symbol(handle, "acct_gather_profile_p_node_step_start");
    *(void **)&p.end = symbol(handle, "acct_gather_profile_p_node_step_end");
    *(void **)&p.create_group =
        symbol(handle, "acct_gather_profile_p_create_group");
    *(void **)&p.create_dataset =
        symbol(handle, "acct_gather_profile_p_create_dataset");
    *(void **)&p.add = symbol(handle, "acct_gather_profile_p_add_sample_data");
    if (p.init() != SLURM_SUCCESS)
        bench_die(path, "init failed");
    p.conf_set(&p); /* not NULL: it is looked at by slurm_s_p_get_string */
    return p;
}

/* stepd_step_rec_t of 22.05: see plugins/slurm_abi/step.c. */
static void make_record(unsigned char record[RECORD_BYTES], const char *user)
{
    static const char *node = "n1";
    uint32_t job = 7, step = 0, one = 1, all = ACCT_GATHER_PROFILE_ALL;

    memset(record, 0, RECORD_BYTES);
    memcpy(record + 112, &job, 4);
    memcpy(record + 120, &step, 4);
    memcpy(record + 144, &one, 4);
    memcpy(record + 224, &one, 2);
    memcpy(record + 288, &node, sizeof(node));
    memcpy(record + 360, &user, sizeof(user));
    memcpy(record + 432, &all, 4);
}

static acct_gather_profile_dataset_t energy_fields[] = {
    {(char *)"Power", JOULE_PROFILE_FIELD_UINT64},
    {NULL, JOULE_PROFILE_FIELD_END},
};

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

/* A node under load: 250 W give or take. */
static uint64_t power(unsigned *seed)
{
    static int watts = 250;

    watts += rand_r(seed) % 7 - 3;
    if (watts < 180 || watts > 320)
        watts = 250;
    return (uint64_t)watts;
}

static double cpu_ns(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9 +
           ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}

static void make_tables(const struct plugin *p, int tables[TABLES])
{
    int64_t tasks;
    char name[8];
    int i;

    tables[0] =
        p->create_dataset("Energy", JOULE_PROFILE_NO_PARENT, energy_fields);
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

/* CPU time of a step profiled with --profile=all, in us a sample, between its
 * beginning and its end. */
static double run_step(const struct plugin *p, const char *user)
{
    unsigned char record[RECORD_BYTES];
    uint64_t cells[16] = {0};
    int tables[TABLES], i, k;
    unsigned seed = 1;
    double before = 0, us;

    make_record(record, user);
    if (p) {
        if (p->start(record) != SLURM_SUCCESS)
            bench_die(user, "the step does not start");
        make_tables(p, tables);
    }
    for (i = 0; i < SECONDS; i++) {
        if (i == WARM)
            before = cpu_ns();
        bench_sleep_ms(1000);
        cells[0] = power(&seed);
        cells[3] = (uint64_t)i * 4096;
        for (k = 0; p && k < TABLES; k++)
            if (p->add(tables[k], cells, time(NULL)) != SLURM_SUCCESS)
                bench_die(user, "a sample is refused");
    }
    us = (cpu_ns() - before) / 1e3 / ((double)(SECONDS - WARM) * TABLES);
    if (p)
        p->end();
    return us;
}

/* Which of three a process is: without a plugin, with ours, with Slurm's. */
#define SIDES 3

static void be_side(int side, int out)
{
    struct plugin p;
    double us;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (side == 0) {
        us = run_step(NULL, "nobody");
    } else {
        p = load(side == 1 ? our_path : slurm_path);
        us = run_step(&p, side == 1 ? "ours" : "theirs");
    }
    if (write(out, &us, sizeof(us)) != sizeof(us))
        _exit(2);
    _exit(0);
}

/* All three at the same time: what else the machine does is the same for
 * each. */
static struct bench_result cpu_of_samples(void)
{
    int pipes[SIDES][2], i;
    double us[SIDES];
    pid_t pids[SIDES];

    for (i = 0; i < SIDES; i++) {
        if (pipe(pipes[i]) < 0 || (pids[i] = fork()) < 0)
            bench_die("fork", strerror(errno));
        if (pids[i] == 0)
            be_side(i, pipes[i][1]);
        close(pipes[i][1]);
    }
    for (i = 0; i < SIDES; i++) {
        if (read(pipes[i][0], &us[i], sizeof(us[i])) != sizeof(us[i]))
            bench_die("a step", "did not end");
        close(pipes[i][0]);
        waitpid(pids[i], NULL, 0);
    }
    return (struct bench_result){.ours = us[1] - us[0], .peer = us[2] - us[0]};
}

/* ---- bytes ---- */

static double bytes_of(const char *user)
{
    char path[512];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s/7_0_n1.h5", directory, user);
    if (stat(path, &st) < 0)
        bench_die(path, strerror(errno));
    return (double)st.st_size / ROWS;
}

static int64_t now_ns;

static int64_t fake_ns(void *arg)
{
    (void)arg;
    return now_ns;
}

/* Samples at 1 Hz, each some tens of microseconds late. */
static void write_ours(void)
{
    static const struct joule_clock clock = {.mono_ns = fake_ns,
                                             .wall_ns = fake_ns};
    static const struct joule_field field = {"Power", JOULE_FIELD_U64};
    struct joule_profile_config config;
    struct joule_writer_options opt = {
        .place = {.dir = directory, .user = "rows"},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = PACKAGE_STRING, .tasks = 1},
        .clock = &clock,
        .flush_ns = 50 * JOULE_NS_PER_MS,
        .queue_bytes = 1024 * 1024,
    };
    struct joule_writer *writer;
    struct joule_error err;
    unsigned seed = 1;
    int table, i;

    now_ns = INT64_C(1700000000000000000);
    joule_option_defaults(joule_profile_options, &config);
    opt.pack = joule_profile_pack(&config);
    writer = joule_writer_create(&opt, &err);
    if (!writer)
        bench_die("joule_writer_create", err.text);
    table = joule_writer_add_table(writer, "Energy", &field, 1, 0);
    for (i = 1; i <= ROWS; i++) {
        uint64_t watts = power(&seed);
        int64_t ns = now_ns + i * JOULE_NS_PER_S + rand_r(&seed) % 60000;

        if (joule_writer_append(writer, table, &watts, ns / JOULE_NS_PER_S,
                                ns) < 0)
            bench_die("joule_writer_append", strerror(errno));
        if (i % 100 == 0)
            bench_sleep_ms(10);
    }
    if (joule_writer_close(writer, 60 * JOULE_NS_PER_S) < 0)
        bench_die("joule_writer_close", strerror(errno));
}

static void write_theirs(void)
{
    struct plugin p = load(slurm_path);
    unsigned char record[RECORD_BYTES];
    unsigned seed = 1;
    int energy, i;

    make_record(record, "theirs-rows");
    if (p.start(record) != SLURM_SUCCESS)
        bench_die(slurm_path, "the step does not start");
    energy = p.create_dataset("Energy", JOULE_PROFILE_NO_PARENT, energy_fields);
    for (i = 1; i <= ROWS; i++) {
        uint64_t watts = power(&seed);

        p.add(energy, &watts, 1700000000 + i);
    }
    p.end();
}

static void measure_bytes(struct bench_result *r)
{
    write_ours();
    write_theirs();
    r->ours = bytes_of("rows");
    r->peer = bytes_of("theirs-rows");
}

static bool is_titled(void)
{
    char title[64] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY);

    if (fd < 0 || read(fd, title, sizeof(title) - 1) < 0)
        bench_die("/proc/self/cmdline", strerror(errno));
    close(fd);
    return strcmp(title, BENCH_TITLE) == 0;
}

int main(int argc, char **argv)
{
    struct bench_result r;
    bool good = true;

    if (argc != 5)
        bench_die("usage", "bench_profile OUR SLURM LIBSLURMFULL DIRECTORY");
    if (!is_titled()) {
        argv[0] = (char *)BENCH_TITLE;
        setenv("SLURMD_NODENAME", "n1", 1);
        execv("/proc/self/exe", argv);
        bench_die("/proc/self/exe", strerror(errno));
    }
    our_path = argv[1];
    slurm_path = argv[2];
    library_path = argv[3];
    directory = argv[4];
    bench_print_head();
    r = cpu_of_samples();
    good &=
        bench_print_row("CPU of a sample at 1 Hz", "us", r, BENCH_RATIO, 0.5);
    r = bench_measure(measure_bytes);
    good &= bench_print_row("energy sample in the file", "bytes", r,
                            BENCH_RATIO, 1.0 / 3);
    good &= bench_series(directory);
    return good ? 0 : 1;
}
