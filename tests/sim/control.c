/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/control.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse.h"
#include "tests/sim/command.h"
#include "tests/sim/tree.h"

static int do_energy(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    struct sim_control *c = context;
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    struct sim_energy e = sim_node_exact(c->node, mono_ns);
    unsigned packages = c->node->machine->packages;
    size_t used;

    (void)arg;
    (void)err;
    used = (size_t)snprintf(reply, size, "%" PRId64 " %" PRIu64, mono_ns,
                            e.node_nj / 1000);
    for (unsigned i = 0; i < packages && used < size; i++)
        used += (size_t)snprintf(reply + used, size - used, " %" PRIu64,
                                 sim_energy_package_uj(&e, i, packages));
    return 0;
}

static int do_power(void *context, char *arg, char *reply, size_t size,
                    struct joule_error *err)
{
    struct sim_control *c = context;
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    uint64_t nj = sim_node_exact(c->node, mono_ns).node_nj;

    (void)arg;
    (void)err;
    snprintf(reply, size, "%" PRId64 " %" PRIu64 " %" PRId64 " %u %" PRIu32,
             mono_ns, nj, sim_node_uw(c->node, mono_ns),
             c->node->machine->packages, c->node->registers.dram_ppm);
    return 0;
}

static int do_sync(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    struct sim_energy e = sim_node_exact(c->node, mono_ns);

    (void)arg;
    (void)reply;
    (void)size;
    if (!c->meter)
        return joule_error_set(err, ENOENT, "there is no wattmeter log");
    sim_wattmeter_line(c->meter, mono_ns, joule_clock_wall_ns(c->node->clock),
                       &e);
    if (sim_wattmeter_sync(c->meter))
        return joule_error_set(err, errno, "cannot write the log: %m");
    return 0;
}

static int do_eio(void *context, char *arg, char *reply, size_t size,
                  struct joule_error *err)
{
    struct sim_control *c = context;
    uint64_t every;

    (void)reply;
    (void)size;
    if (!strcmp(arg, "off"))
        every = 0;
    else if (!strcmp(arg, "all"))
        every = 1;
    else if (strncmp(arg, "every ", 6) ||
             joule_parse_u64(arg + 6, 1, UINT64_MAX, &every))
        return joule_error_set(err, EINVAL,
                               "eio takes \"every N\", \"all\" or \"off\"");
    c->node->registers.eio_every = every;
    c->node->registers.reads = 0;
    return 0;
}

static int do_freeze(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    struct sim_control *c = context;
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_freeze(&c->node->registers, &now);
    return 0;
}

static int do_thaw(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_thaw(&c->node->registers, &now);
    return 0;
}

static int switch_cpus(struct sim_control *c, const char *list, bool online,
                       struct joule_error *err)
{
    if (sim_machine_switch(c->node->machine, list, online, err))
        return -1;
    return sim_tree_switch(c->dir_fd, c->node->machine, err);
}

static int do_offline(void *context, char *arg, char *reply, size_t size,
                      struct joule_error *err)
{
    (void)reply;
    (void)size;
    return switch_cpus(context, arg, false, err);
}

static int do_online(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    (void)reply;
    (void)size;
    return switch_cpus(context, arg, true, err);
}

static int do_load(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    struct sim_load *load = sim_load_parse(arg, err);

    (void)reply;
    (void)size;
    if (!load)
        return -1;
    sim_model_set_load(c->node->model, load,
                       joule_clock_mono_ns(c->node->clock) - c->node->start_ns);
    return 0;
}

static int do_busy(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    (void)reply;
    (void)size;
    if (sim_parse_uw(arg, &c->node->busy_uw))
        return joule_error_set(err, EINVAL, "\"%s\" is not a power in watts",
                               arg);
    sim_node_busy_changed(c->node);
    return 0;
}

static int do_freq(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    int64_t khz;

    (void)reply;
    (void)size;
    if (sim_parse_fixed(arg, 6, 100000000, &khz) || khz < 1)
        return joule_error_set(err, EINVAL, "\"%s\" is not a frequency in GHz",
                               arg);
    c->node->khz = (uint64_t)khz;
    sim_node_busy_changed(c->node);
    for (size_t i = 0; c->node->cores && i < c->node->machine->cpu_count; i++)
        if (sim_node_cpu_khz(c->node, c->node->machine->cpus[i].number,
                             (uint64_t)khz, err))
            return -1;
    return 0;
}

static int do_cpu_khz(void *context, char *arg, char *reply, size_t size,
                      struct joule_error *err)
{
    struct sim_control *c = context;
    char *rest = arg, *cpu, *khz;
    uint64_t number, value;

    (void)reply;
    (void)size;
    while ((cpu = strsep(&rest, " "))) {
        khz = strsep(&rest, " ");
        if (!khz || joule_parse_u64(cpu, 0, UINT_MAX, &number) ||
            joule_parse_u64(khz, 1, 100000000, &value))
            return joule_error_set(err, EINVAL,
                                   "cpu-khz takes a CPU's number and kHz, and "
                                   "further such pairs");
        if (sim_node_cpu_khz(c->node, (unsigned)number, value, err))
            return -1;
    }
    return 0;
}

/* The number of a job, or "system". */
static int job_parse(const char *text, uint32_t *ret_id)
{
    uint64_t id = SIM_JOB_SYSTEM;

    if (strcmp(text, "system") && joule_parse_u64(text, 1, UINT32_MAX, &id))
        return -1;
    *ret_id = (uint32_t)id;
    return 0;
}

static int no_jobs(struct joule_error *err)
{
    return joule_error_set(err, ENOENT, "no jobs are looked at (--jobs)");
}

static int do_intensity(void *context, char *arg, char *reply, size_t size,
                        struct joule_error *err)
{
    struct sim_control *c = context;
    char *intensity = arg;
    const char *job = strsep(&intensity, " ");
    uint32_t id;
    int64_t ppm;

    (void)reply;
    (void)size;
    if (!c->node->jobs)
        return no_jobs(err);
    if (!intensity || job_parse(job, &id) ||
        sim_parse_fixed(intensity, 6, SIM_INTENSITY_MAX, &ppm))
        return joule_error_set(err, EINVAL,
                               "intensity takes a job's number, or \"system\", "
                               "and 0 to 1000");
    sim_node_update(c->node, joule_clock_mono_ns(c->node->clock));
    if (sim_jobs_set_intensity(c->node->jobs, id, ppm))
        return joule_error_set(err, errno, "out of memory");
    return 0;
}

static int do_jobs(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_control *c = context;
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    struct sim_energy e;
    size_t used;

    (void)arg;
    if (!c->node->jobs)
        return no_jobs(err);
    sim_node_update(c->node, mono_ns);
    sim_jobs_settle(c->node->jobs, mono_ns);
    e = sim_node_exact(c->node, mono_ns);
    used = (size_t)snprintf(reply, size, "%" PRId64 " %" PRIu64 " %" PRIu64,
                            mono_ns, e.node_nj,
                            sim_node_floor_nj(c->node, e.t_ns));
    for (size_t i = 0; i < sim_jobs_count(c->node->jobs) && used < size; i++) {
        const struct sim_job *job = sim_jobs_at(c->node->jobs, i);
        char name[16] = "system";

        if (job->id != SIM_JOB_SYSTEM)
            snprintf(name, sizeof(name), "%" PRIu32, job->id);
        if (job->seen)
            used += (size_t)snprintf(reply + used, size - used,
                                     "; %s %" PRIu64 " %" PRIu64 " %" PRIu64
                                     " %" PRId64 " %" PRId64,
                                     name, job->cpu_ns, sim_job_nj(job),
                                     (uint64_t)(job->share_fj / SIM_FJ_PER_NJ),
                                     job->first_ns, job->last_ns);
    }
    if (used >= size)
        return joule_error_set(err, EMSGSIZE,
                               "%zu jobs do not fit into an answer",
                               sim_jobs_count(c->node->jobs));
    return 0;
}

static int do_add_cgroup(void *context, char *arg, char *reply, size_t size,
                         struct joule_error *err)
{
    struct sim_control *c = context;
    (void)reply;
    (void)size;
    return sim_drive_add_cgroup(c->node->drive, arg, err);
}

static int do_add_pid(void *context, char *arg, char *reply, size_t size,
                      struct joule_error *err)
{
    struct sim_control *c = context;
    uint64_t pid;

    (void)reply;
    (void)size;
    if (joule_parse_u64(arg, 1, INT_MAX, &pid))
        return joule_error_set(err, EINVAL, "\"%s\" is not a process id", arg);
    return sim_drive_add_pid(c->node->drive, (pid_t)pid, err);
}

static const struct sim_command commands[] = {
    {"energy", NULL, do_energy, "mono_ns node_uj package0_uj ... of now"},
    {"power", NULL, do_power,
     "mono_ns node_nj node_uw packages dram_ppm of now"},
    {"sync", NULL, do_sync, "write a line of now and flush the log"},
    {"eio", "every N|all|off", do_eio,
     "every Nth read of an energy counter fails"},
    {"freeze", NULL, do_freeze, "the counters stop; the wattmeter does not"},
    {"thaw", NULL, do_thaw, "they go on from where they stood"},
    {"offline", "CPUS", do_offline,
     "they go offline: open devices fail, others are gone"},
    {"online", "CPUS", do_online, "they are back"},
    {"load", "SPEC", do_load, "another generator from now on"},
    {"busy", "W", do_busy, "another power of a busy CPU from now on"},
    {"freq", "GHZ", do_freq, "another frequency from now on"},
    {"cpu-khz", "CPU KHZ ...", do_cpu_khz,
     "frequencies of single CPUs from now on"},
    {"intensity", "JOB X", do_intensity,
     "CPU time of a job (or \"system\") costs X times as much from now on"},
    {"jobs", NULL, do_jobs,
     "mono_ns node_nj floor_nj; and for the system and each job: name cpu_ns"
     " nj share_nj first_ns last_ns"},
    {"add-cgroup", "PATH", do_add_cgroup, "count this cgroup too"},
    {"add-pid", "PID", do_add_pid, "count this process too"},
    {NULL, NULL, NULL, NULL},
};

void sim_control_help(void)
{
    sim_command_help(commands);
}

void sim_control_command(void *arg, char *line, char *reply, size_t size)
{
    sim_command_run(commands, arg, line, reply, size);
}
