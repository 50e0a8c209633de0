/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/node.h"

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
    node->machine = NULL;
    node->model = NULL;
    node->drive = NULL;
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
    }
}

int64_t sim_node_uw(struct sim_node *node, int64_t mono_ns)
{
    node_sample(node, mono_ns);
    return sim_model_uw(node->model, mono_ns - node->start_ns,
                        node->cpu_ns - node->older.cpu_ns,
                        mono_ns - node->older.mono_ns);
}

struct sim_energy sim_node_exact(struct sim_node *node, int64_t mono_ns)
{
    struct sim_energy e = {.t_ns = mono_ns - node->start_ns};

    node_sample(node, mono_ns);
    e.node_nj = sim_model_nj(node->model, e.t_ns, node->cpu_ns);
    return e;
}

struct sim_energy sim_node_stepped(struct sim_node *node)
{
    int64_t mono_ns = joule_clock_mono_ns(node->clock);
    struct sim_energy e = {.t_ns = mono_ns - node->start_ns};

    node_sample(node, mono_ns);
    e.t_ns -= e.t_ns % node->step_ns;
    e.node_nj = sim_model_nj(node->model, e.t_ns, node->cpu_ns);
    return e;
}

int sim_node_rdmsr(struct sim_node *node, size_t cpu, uint32_t reg,
                   uint64_t *ret_value)
{
    struct sim_energy e = sim_node_stepped(node);

    return sim_registers_read(&node->registers, cpu, reg, &e, ret_value);
}

void sim_node_busy_changed(struct sim_node *node)
{
    node_sample(node, joule_clock_mono_ns(node->clock));
    sim_model_set_busy(node->model,
                       sim_busy_at(node->busy_uw, node->khz, node->ref_khz),
                       node->cpu_ns);
}
