/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/node.h"

#include <errno.h>

void sim_node_init(struct sim_node *node, const struct joule_clock *clock,
                   int64_t step_ns, struct sim_machine *machine,
                   struct sim_model *model, struct sim_drive *drive,
                   uint32_t dram_ppm)
{
    *node = (struct sim_node){
        .clock = clock,
        .start_ns = joule_clock_mono_ns(clock),
        .step_ns = step_ns,
        .machine = machine,
        .model = model,
        .drive = drive,
        .sampled_step = -1,
        .khz = 1,
        .ref_khz = 1,
    };
    node->older.mono_ns = node->newer.mono_ns = node->start_ns;
    sim_registers_init(&node->registers, machine, dram_ppm);
}

void sim_node_clear(struct sim_node *node)
{
    sim_machine_destroy(node->machine);
    sim_model_destroy(node->model);
    sim_drive_destroy(node->drive);
    sim_cores_destroy(node->cores);
    sim_jobs_destroy(node->jobs);
    node->cores = NULL;
    node->jobs = NULL;
    node->machine = NULL;
    node->model = NULL;
    node->drive = NULL;
}

/* What CPU time has cost, beside that of the model. */
static sim_fj priced_fj(const struct sim_node *node)
{
    sim_fj fj = 0;

    if (node->cores)
        fj += sim_cores_fj(node->cores, sim_drive_by_cpu(node->drive));
    if (node->jobs)
        fj += sim_jobs_fj(node->jobs);
    return fj;
}

static void node_sample(struct sim_node *node, int64_t mono_ns)
{
    int64_t step = (mono_ns - node->start_ns) / node->step_ns;

    if (step == node->sampled_step)
        return;
    node->sampled_step = step;
    node->cpu_ns = sim_drive_cpu_ns(node->drive, mono_ns);
    if (node->jobs)
        sim_jobs_update(node->jobs, mono_ns);
    if (mono_ns - node->newer.mono_ns >= SIM_POWER_NS) {
        node->older = node->newer;
        node->newer.mono_ns = mono_ns;
        node->newer.cpu_ns = node->cpu_ns;
        node->newer.priced_fj = priced_fj(node);
    }
}

int64_t sim_node_uw(struct sim_node *node, int64_t mono_ns)
{
    int64_t dt_ns, uw;

    node_sample(node, mono_ns);
    dt_ns = mono_ns - node->older.mono_ns;
    uw = sim_model_uw(node->model, mono_ns - node->start_ns,
                      node->cpu_ns - node->older.cpu_ns, dt_ns);
    if (dt_ns > 0)
        uw += (int64_t)((priced_fj(node) - node->older.priced_fj) /
                        (sim_fj)dt_ns);
    return uw;
}

uint64_t sim_node_floor_nj(const struct sim_node *node, int64_t t_ns)
{
    return sim_model_nj(node->model, t_ns, node->cpu_ns);
}

/* The node's CPU time as it was sampled, the floor until t_ns. */
static struct sim_energy energy_at(const struct sim_node *node, int64_t t_ns)
{
    struct sim_energy e = {.t_ns = t_ns,
                           .node_nj = sim_node_floor_nj(node, t_ns)};

    if (node->cores)
        e.node_nj += (uint64_t)(sim_cores_fj(node->cores,
                                             sim_drive_by_cpu(node->drive)) /
                                SIM_FJ_PER_NJ);
    for (unsigned p = 0; node->jobs && p < node->machine->packages; p++) {
        e.own_nj[p] = sim_jobs_package_nj(node->jobs, p);
        e.node_nj += e.own_nj[p];
    }
    return e;
}

struct sim_energy sim_node_exact(struct sim_node *node, int64_t mono_ns)
{
    node_sample(node, mono_ns);
    return energy_at(node, mono_ns - node->start_ns);
}

struct sim_energy sim_node_stepped(struct sim_node *node)
{
    int64_t mono_ns = joule_clock_mono_ns(node->clock);
    int64_t t_ns = mono_ns - node->start_ns;

    node_sample(node, mono_ns);
    return energy_at(node, t_ns - t_ns % node->step_ns);
}

int sim_node_rdmsr(struct sim_node *node, size_t cpu, uint32_t reg,
                   uint64_t *ret_value)
{
    struct sim_energy e = sim_node_stepped(node);

    if (node->cores && (reg == 0xe7 || reg == 0xe8)) {
        const uint64_t *cpu_ns = sim_drive_by_cpu(node->drive);

        *ret_value = reg == 0xe7 ? sim_cores_mperf(node->cores, cpu, cpu_ns)
                                 : sim_cores_aperf(node->cores, cpu, cpu_ns);
        return 0;
    }
    if (node->cores && reg == 0x10) {
        uint64_t ns = (uint64_t)joule_clock_mono_ns(node->clock);

        /* The time stamp counter: as MPERF of a CPU that is never idle. */
        *ret_value = sim_cores_mperf(node->cores, 0, &ns);
        return 0;
    }
    return sim_registers_read(&node->registers, cpu, reg, &e, ret_value);
}

void sim_node_update(struct sim_node *node, int64_t mono_ns)
{
    node->sampled_step = -1;
    node_sample(node, mono_ns);
}

static void node_sample_now(struct sim_node *node)
{
    sim_node_update(node, joule_clock_mono_ns(node->clock));
}

static int64_t price_uw(const struct sim_node *node)
{
    return sim_busy_at(node->busy_uw, node->khz, node->ref_khz);
}

void sim_node_set_jobs(struct sim_node *node, struct sim_jobs *jobs)
{
    node->jobs = jobs;
    sim_jobs_set_price(jobs, price_uw(node));
}

void sim_node_busy_changed(struct sim_node *node)
{
    if (node->cores) {
        node_sample_now(node);
        sim_cores_set_busy(node->cores, node->busy_uw,
                           sim_drive_by_cpu(node->drive));
        return;
    }
    if (node->jobs) {
        node_sample_now(node);
        sim_jobs_set_price(node->jobs, price_uw(node));
    }
    node_sample(node, joule_clock_mono_ns(node->clock));
    sim_model_set_busy(node->model, price_uw(node), node->cpu_ns);
}

static size_t cpu_index(void *arg, unsigned number)
{
    return sim_machine_host_cpu(arg, number);
}

static int cores_begin(struct sim_node *node, struct joule_error *err)
{
    struct sim_machine *m = node->machine;

    if (sim_drive_split(node->drive, m->cpu_count, cpu_index, m, err))
        return -1;
    node_sample_now(node);
    node->cores = sim_cores_create(m->cpu_count, node->busy_uw, node->ref_khz,
                                   sim_drive_by_cpu(node->drive));
    if (!node->cores)
        return joule_error_set(err, ENOMEM, "out of memory");
    /* The model keeps what was used until now, at its price. */
    sim_model_set_busy(node->model, 0, node->cpu_ns);
    node->older.cpu_ns = node->newer.cpu_ns = node->cpu_ns;
    return 0;
}

int sim_node_cpu_khz(struct sim_node *node, unsigned number, uint64_t khz,
                     struct joule_error *err)
{
    size_t i = sim_machine_host_cpu(node->machine, number);

    if (node->machine->cpus[i].number != number)
        return joule_error_set(err, ENOENT, "there is no CPU %u", number);
    if (node->jobs)
        return joule_error_set(err, ENOTSUP,
                               "the CPUs of a node with --jobs have one "
                               "frequency");
    if (!node->cores && cores_begin(node, err))
        return -1;
    node_sample_now(node);
    sim_cores_set_khz(node->cores, i, khz, sim_drive_by_cpu(node->drive));
    return 0;
}
