/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step_layout.h - where the fields of Slurm's record of a step are, by
 * release: byte offsets in stepd_step_rec_t on x86-64 (doc/slurm-abi.md).
 */
#ifndef JOULE_SLURM_STEP_LAYOUT_H
#define JOULE_SLURM_STEP_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct joule_step_layout {
    uint32_t series; /* JOULE_SLURM_SERIES */
    unsigned size;   /* up to the last field that is read with the others */
    unsigned job_id, step_id, node_index, node_tasks;
    unsigned het_job_id, het_job_offset;
    unsigned cpus_per_task; /* 16 bits */
    unsigned env, node_name, uid, user_name, gid;
    unsigned group_count, groups, profile;
    unsigned job_cores, step_cores; /* texts, read by themselves */
};

#define JOULE_STEP_LAYOUT_SIZE_MAX 1024

/* One for each release that is known. */
const struct joule_step_layout *joule_step_layouts(size_t *ret_count);

/* That of the release that this is built for; NULL: not known. */
const struct joule_step_layout *joule_step_layout(void);

#endif
