/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/registration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"
#include "common/sensors/topology.h"
#include "plugins/slurm_abi/slurm_abi.h"

static uint32_t kind_of(uint32_t step_id)
{
    switch (step_id) {
    case SLURM_EXTERN_CONT:
        return JOULE_STEP_EXTERN;
    case SLURM_BATCH_SCRIPT:
    case SLURM_INTERACTIVE_STEP:
        return JOULE_STEP_OTHER;
    default:
        return JOULE_STEP_NUMBERED;
    }
}

/*
 * How many CPUs the cores of [list] have, and in [cpus] which, if [topology]
 * has them all.  -1: the list makes no sense.
 */
static int find_cpus(const struct joule_topology *topology, const char *list,
                     uint64_t *cpus)
{
    unsigned *cores;
    size_t count;
    int n = -1;

    if (joule_parse_cpulist(list, &cores, &count) < 0)
        return -1;
    if (topology->cpu_count > 0)
        n = joule_topology_core_cpus(topology, cores, count, cpus,
                                     JOULE_LEDGER_WORDS_MAX);
    free(cores);
    return n < 0 ? (int)count : n;
}

struct joule_step_energy *
joule_registration_make(int root_fd, const struct joule_slurm_step *step,
                        struct joule_error *err)
{
    uint64_t job_cpus[JOULE_LEDGER_WORDS_MAX] = {0};
    uint64_t step_cpus[JOULE_LEDGER_WORDS_MAX] = {0};
    struct joule_registration r = {
        .job = step->job_id,
        .step = step->step_id,
        .uid = step->uid,
        .kind = kind_of(step->step_id),
    };
    struct joule_topology topology = {0};
    const char *of_job = step->job_cores ? step->job_cores : step->step_cores;
    const char *of_step = step->step_cores ? step->step_cores : of_job;
    struct joule_step_energy *step_energy;
    int job_count = -1, step_count = -1;

    if (of_job) {
        /* Without a topology the numbers alone must do. */
        joule_topology_read(root_fd, &topology, NULL);
        job_count = find_cpus(&topology, of_job, job_cpus);
        step_count = find_cpus(&topology, of_step, step_cpus);
        joule_topology_free(&topology);
    }
    if (job_count < 0 || step_count < 0) {
        joule_error_set(err, ENOTSUP,
                        "Slurm does not say which cores the step has");
        return NULL;
    }
    r.job_cpu_count = (uint32_t)job_count;
    r.cpu_count = (uint32_t)step_count;
    step_energy =
        joule_step_energy_create(&joule_clock_system, root_fd, step->node, &r,
                                 job_cpus, step_cpus, JOULE_LEDGER_WORDS_MAX);
    if (!step_energy)
        joule_error_set(err, ENOMEM, "out of memory");
    return step_energy;
}
