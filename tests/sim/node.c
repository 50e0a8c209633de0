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
    node->cores = NULL;
    node->machine = NULL;
    node->model = NULL;
    node->drive = NULL;
}

static sim_fj cores_fj(const struct sim_node *node)
{
    return node->cores
               ? sim_cores_fj(node->cores, sim_drive_by_cpu(node->drive))
               : 0;
}

static void node_sample(struct sim_node *node, int64_t mono_ns)
{
    int64_t step = (mono_ns - node->start_ns) / node->step_ns;

    if (step == node->sampled_step)
        return;
    node->sampled_step = step;
    node->cpu_ns = sim_drive_cpu_ns(node->drive, mono_ns);
    if (mono_ns - node->newer.mono_ns >= SIM_POWER_NS) {
        node->older = node->newer;
        node->newer.mono_ns = mono_ns;
        node->newer.cpu_ns = node->cpu_ns;
        node->newer.cores_fj = cores_fj(node);
    }
}

int64_t sim_node_uw(struct sim_node *node, int64_t mono_ns)
{
    int64_t dt_ns, uw;

    node_sample(node, mono_ns);
    dt_ns = mono_ns - node->older.mono_ns;
    uw = sim_model_uw(node->model, mono_ns - node->start_ns,
                      node->cpu_ns - node->older.cpu_ns, dt_ns);
    if (node->cores && dt_ns > 0)
        uw +=
            (int64_t)((cores_fj(node) - node->older.cores_fj) / (sim_fj)dt_ns);
    return uw;
}

static uint64_t node_nj(const struct sim_node *node, int64_t t_ns)
{
    return sim_model_nj(node->model, t_ns, node->cpu_ns) +
           (uint64_t)(cores_fj(node) / SIM_FJ_PER_NJ);
}

struct sim_energy sim_node_exact(struct sim_node *node, int64_t mono_ns)
{
    struct sim_energy e = {.t_ns = mono_ns - node->start_ns};

    node_sample(node, mono_ns);
    e.node_nj = node_nj(node, e.t_ns);
    return e;
}

struct sim_energy sim_node_stepped(struct sim_node *node)
{
    int64_t mono_ns = joule_clock_mono_ns(node->clock);
    struct sim_energy e = {.t_ns = mono_ns - node->start_ns};

    node_sample(node, mono_ns);
    e.t_ns -= e.t_ns % node->step_ns;
    e.node_nj = node_nj(node, e.t_ns);
    return e;
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

/* All that has been used until now is looked at, also within a step. */
static void node_sample_now(struct sim_node *node)
{
    node->sampled_step = -1;
    node_sample(node, joule_clock_mono_ns(node->clock));
}

void sim_node_busy_changed(struct sim_node *node)
{
    if (node->cores) {
        node_sample_now(node);
        sim_cores_set_busy(node->cores, node->busy_uw,
                           sim_drive_by_cpu(node->drive));
        return;
    }
    node_sample(node, joule_clock_mono_ns(node->clock));
    sim_model_set_busy(node->model,
                       sim_busy_at(node->busy_uw, node->khz, node->ref_khz),
                       node->cpu_ns);
}

/* A CPU of the host is the simulated one of its number; there may be more. */
static size_t cpu_index(void *arg, unsigned number)
{
    const struct sim_machine *m = arg;

    for (size_t i = 0; i < m->cpu_count; i++)
        if (m->cpus[i].number == number)
            return i;
    return number % m->cpu_count;
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
    size_t i = cpu_index(node->machine, number);

    if (node->machine->cpus[i].number != number)
        return joule_error_set(err, ENOENT, "there is no CPU %u", number);
    if (!node->cores && cores_begin(node, err))
        return -1;
    node_sample_now(node);
    sim_cores_set_khz(node->cores, i, khz, sim_drive_by_cpu(node->drive));
    return 0;
}
