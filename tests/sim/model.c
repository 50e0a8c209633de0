/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/model.h"

#include <errno.h>
#include <stdlib.h>

struct sim_model {
    struct sim_load *load;
    int64_t load_ns; /* when the load began */
    sim_fj load_fj;  /* of the loads before */
    int64_t busy_uw;
    uint64_t cpu_ns; /* CPU time when busy_uw was set */
    sim_fj cpu_fj;   /* of the CPU time before */
};

struct sim_model *sim_model_create(struct sim_load *load, int64_t busy_uw)
{
    struct sim_model *model = calloc(1, sizeof(*model));

    if (!model) {
        sim_load_destroy(load);
        return NULL;
    }
    model->load = load;
    model->busy_uw = busy_uw;
    return model;
}

void sim_model_destroy(struct sim_model *model)
{
    if (model)
        sim_load_destroy(model->load);
    free(model);
}

static sim_fj load_part(const struct sim_model *model, int64_t t_ns)
{
    return model->load_fj + sim_load_fj(model->load, t_ns - model->load_ns);
}

static sim_fj cpu_part(const struct sim_model *model, uint64_t cpu_ns)
{
    uint64_t used = cpu_ns > model->cpu_ns ? cpu_ns - model->cpu_ns : 0;

    return model->cpu_fj + (sim_fj)model->busy_uw * used;
}

uint64_t sim_model_nj(const struct sim_model *model, int64_t t_ns,
                      uint64_t cpu_ns)
{
    return (uint64_t)((load_part(model, t_ns) + cpu_part(model, cpu_ns)) /
                      SIM_FJ_PER_NJ);
}

int64_t sim_model_uw(const struct sim_model *model, int64_t t_ns,
                     uint64_t cpu_ns, int64_t dt_ns)
{
    int64_t uw = sim_load_uw(model->load, t_ns - model->load_ns);

    if (dt_ns > 0)
        uw += (int64_t)((sim_fj)model->busy_uw * cpu_ns / (sim_fj)dt_ns);
    return uw;
}

void sim_model_set_load(struct sim_model *model, struct sim_load *load,
                        int64_t t_ns)
{
    model->load_fj = load_part(model, t_ns);
    model->load_ns = t_ns;
    sim_load_destroy(model->load);
    model->load = load;
}

void sim_model_set_busy(struct sim_model *model, int64_t busy_uw,
                        uint64_t cpu_ns)
{
    model->cpu_fj = cpu_part(model, cpu_ns);
    model->cpu_ns = cpu_ns;
    model->busy_uw = busy_uw;
}

int64_t sim_busy_at(int64_t busy_uw, uint64_t khz, uint64_t ref_khz)
{
    double ratio = (double)khz / (double)ref_khz;

    return (int64_t)((double)busy_uw * ratio * ratio * ratio + 0.5);
}
