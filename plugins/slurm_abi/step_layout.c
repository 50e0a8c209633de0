/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/step_layout.h"

#include "plugins/slurm_abi/slurm_abi.h"

/* slurm_step_id_t is public, and grew at its front in 24.11. */
#define STEP_ID_AT 112

static const struct joule_step_layout layouts[] = {
    {
        .series = JOULE_SLURM_22_05,
        .size = 436,
        .job_id = STEP_ID_AT,
        .step_id = STEP_ID_AT + 8,
        .node_index = 140,
        .node_tasks = 144,
        .het_job_id = 148,
        .het_job_offset = 176,
        .cpus_per_task = 224,
        .env = 256,
        .node_name = 288,
        .uid = 352,
        .user_name = 360,
        .gid = 392,
        .group_count = 396,
        .groups = 408,
        .profile = 432,
        .job_cores = 632,
        .step_cores = 640,
    },
    {
        .series = JOULE_SLURM_24_11,
        .size = 460,
        .job_id = STEP_ID_AT + 8,
        .step_id = STEP_ID_AT + 16,
        .node_index = 152,
        .node_tasks = 156,
        .het_job_id = 176,
        .het_job_offset = 200,
        .cpus_per_task = 248,
        .env = 280,
        .node_name = 312,
        .uid = 376,
        .user_name = 384,
        .gid = 416,
        .group_count = 420,
        .groups = 432,
        .profile = 456,
        .job_cores = 744,
        .step_cores = 752,
    },
    {
        .series = JOULE_SLURM_26_05,
        .size = 468,
        .job_id = STEP_ID_AT + 8,
        .step_id = STEP_ID_AT + 16,
        .node_index = 152,
        .node_tasks = 156,
        .het_job_id = 176,
        .het_job_offset = 200,
        .cpus_per_task = 256,
        .env = 288,
        .node_name = 320,
        .uid = 384,
        .user_name = 392,
        .gid = 424,
        .group_count = 428,
        .groups = 440,
        .profile = 464,
        .job_cores = 752,
        .step_cores = 760,
    },
};

#define LAYOUT_COUNT (sizeof(layouts) / sizeof(layouts[0]))

/* What the public type says of the release that this is built for. */
#if JOULE_SLURM_SERIES == JOULE_SLURM_22_05
_Static_assert(offsetof(slurm_step_id_t, job_id) == 0 &&
                   offsetof(slurm_step_id_t, step_id) == 8,
               "slurm_step_id_t has another layout than 22.05's");
#elif JOULE_SLURM_SERIES == JOULE_SLURM_24_11 ||                               \
    JOULE_SLURM_SERIES == JOULE_SLURM_26_05
_Static_assert(offsetof(slurm_step_id_t, job_id) == 8 &&
                   offsetof(slurm_step_id_t, step_id) == 16,
               "slurm_step_id_t has another layout than 24.11's");
#endif

const struct joule_step_layout *joule_step_layouts(size_t *ret_count)
{
    *ret_count = LAYOUT_COUNT;
    return layouts;
}

const struct joule_step_layout *joule_step_layout(void)
{
    size_t i;

    for (i = 0; i < LAYOUT_COUNT; i++)
        if (layouts[i].series == JOULE_SLURM_SERIES)
            return &layouts[i];
    return NULL;
}
