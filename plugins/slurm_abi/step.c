/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/step.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/slurm_abi.h"

/* Offsets in stepd_step_rec_t on x86-64 (doc/slurm-abi.md). */
struct layout {
    unsigned size; /* up to the last field that is read */
    unsigned job_id, step_id, node_index, node_tasks;
    unsigned het_job_id, het_job_offset;
    unsigned cpus_per_task; /* 16 bits */
    unsigned env, node_name, uid, user_name, gid;
    unsigned group_count, groups, profile;
    unsigned job_cores, step_cores; /* texts, read by themselves */
};

/* slurm_step_id_t is public: it grew at its front in 24.11. */
#define STEP_ID_AT 112

static const struct layout layout = {
    .job_id = STEP_ID_AT + offsetof(slurm_step_id_t, job_id),
    .step_id = STEP_ID_AT + offsetof(slurm_step_id_t, step_id),
#if JOULE_SLURM_SERIES == JOULE_SLURM_22_05
    .size = 436,
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
#elif JOULE_SLURM_SERIES == JOULE_SLURM_24_11
    .size = 460,
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
#elif JOULE_SLURM_SERIES == JOULE_SLURM_26_05
    .size = 468,
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
#endif
};

#define GROUPS_MAX 65536
#define TEXT_MAX   1024
#define CORES_MAX  16384 /* every second of 4096 cores */

/* Memory that may not be there: false, and not a signal. */
static bool copy_from(const void *from, void *to, size_t size)
{
    struct iovec remote = {.iov_base = (void *)from, .iov_len = size};
    struct iovec local = {.iov_base = to, .iov_len = size};

    return from && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
                       (ssize_t)size;
}

static bool is_text(const char *text, const char *of, size_t most)
{
    size_t i;
    char c;

    for (i = 0; i < most; i++) {
        if (!copy_from(text + i, &c, 1))
            return false;
        if (c == '\0')
            return i > 0;
        if (of && !strchr(of, c))
            return false;
    }
    return false;
}

/* "0-3,8", or NULL. */
static const char *core_list_at(const void *record, unsigned at)
{
    const char *text;

    if (!copy_from((const char *)record + at, &text, sizeof(text)) ||
        !is_text(text, "0123456789-,", CORES_MAX))
        return NULL;
    return text;
}

static uint32_t u32_at(const unsigned char *record, unsigned at)
{
    uint32_t value;

    memcpy(&value, record + at, sizeof(value));
    return value;
}

static const void *pointer_at(const unsigned char *record, unsigned at)
{
    const void *value;

    memcpy(&value, record + at, sizeof(value));
    return value;
}

/* "slurmstepd: [7.0]", "[7.batch]", "[7+1.0]". */
struct title {
    uint32_t job_id;
    bool is_het;
    uint32_t het_offset;
    uint32_t step_id;
};

static bool number(const char **text, uint32_t *ret)
{
    char *end;
    unsigned long value;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    value = strtoul(*text, &end, 10);
    if (errno || value > UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    *text = end;
    return true;
}

static bool step_of_title(const char *text, uint32_t *ret)
{
    static const struct {
        const char *name;
        uint32_t id;
    } names[] = {
        {"batch]", SLURM_BATCH_SCRIPT},
        {"extern]", SLURM_EXTERN_CONT},
        {"interactive]", SLURM_INTERACTIVE_STEP},
    };
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(text, names[i].name, strlen(names[i].name)) == 0) {
            *ret = names[i].id;
            return true;
        }
    /* A heterogeneous step has its component behind it: "7.0+1]". */
    return number(&text, ret) && (*text == ']' || *text == '+');
}

static bool read_title(struct title *title)
{
    char text[4096];
    const char *at;

    if (joule_host_command(text, sizeof(text)) < 0)
        return false;
    at = strchr(text, '[');
    if (!at++ || !number(&at, &title->job_id))
        return false;
    title->is_het = *at == '+';
    if (title->is_het && (at++, !number(&at, &title->het_offset)))
        return false;
    return *at == '.' && step_of_title(at + 1, &title->step_id);
}

static bool is_titled(const unsigned char *r, const struct title *title)
{
    if (u32_at(r, layout.step_id) != title->step_id)
        return false;
    if (title->is_het)
        return u32_at(r, layout.het_job_id) == title->job_id &&
               u32_at(r, layout.het_job_offset) == title->het_offset;
    return u32_at(r, layout.job_id) == title->job_id;
}

static void read_lists(const unsigned char *r, struct joule_slurm_step *step)
{
    uint32_t count = u32_at(r, layout.group_count);
    const gid_t *groups = pointer_at(r, layout.groups);
    gid_t last;

    if (count > 0 && count <= GROUPS_MAX &&
        copy_from(groups + count - 1, &last, sizeof(last))) {
        step->groups = groups;
        step->group_count = count;
    }
    step->env = pointer_at(r, layout.env);
}

int joule_slurm_step_read(const void *record, struct joule_slurm_step *ret_step,
                          struct joule_error *err)
{
    const char *node = getenv("SLURMD_NODENAME");
    struct joule_slurm_step step = {0};
    unsigned char r[1024];
    struct title title;
    uint16_t cpus;

    if (layout.size == 0 || !copy_from(record, r, layout.size))
        return joule_error_set(err, ENOTSUP,
                               "the step's record of this Slurm is not known");
    if (!read_title(&title) || !is_titled(r, &title))
        return joule_error_set(err, ENOTSUP,
                               "the step's record is not the one of the step "
                               "that slurmstepd's title names");
    step.node = pointer_at(r, layout.node_name);
    step.user = pointer_at(r, layout.user_name);
    if (!is_text(step.node, NULL, TEXT_MAX) || (node && strcmp(node, step.node) != 0))
        return joule_error_set(err, ENOTSUP,
                               "the step's record does not have the name of "
                               "this node");
    if (!is_text(step.user, NULL, TEXT_MAX))
        return joule_error_set(err, ENOTSUP,
                               "the step's record does not name the user");
    memcpy(&cpus, r + layout.cpus_per_task, sizeof(cpus));
    step.job_id = u32_at(r, layout.job_id);
    step.step_id = u32_at(r, layout.step_id);
    step.node_index = u32_at(r, layout.node_index);
    step.node_tasks = u32_at(r, layout.node_tasks);
    step.cpus_per_task = cpus;
    step.profile = u32_at(r, layout.profile);
    step.uid = u32_at(r, layout.uid);
    step.gid = u32_at(r, layout.gid);
    step.job_cores = core_list_at(record, layout.job_cores);
    step.step_cores = core_list_at(record, layout.step_cores);
    read_lists(r, &step);
    *ret_step = step;
    return 0;
}

const char *joule_slurm_step_getenv(const struct joule_slurm_step *step,
                                    const char *name)
{
    size_t length = strlen(name);
    char *const *p;

    for (p = step->env; p && *p; p++)
        if (strncmp(*p, name, length) == 0 && (*p)[length] == '=')
            return *p + length + 1;
    return NULL;
}

int joule_slurm_step_file(const struct joule_slurm_step *step, char *buf,
                          size_t size)
{
    int length;

    if (step->step_id == SLURM_BATCH_SCRIPT)
        length = snprintf(buf, size, "%u_batch_%s", step->job_id, step->node);
    else
        length = snprintf(buf, size, "%u_%u_%s", step->job_id, step->step_id,
                          step->node);
    return length < 0 || (size_t)length >= size ? -1 : 0;
}
