/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/slurm_step.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/step_layout.h"

#define GROUPS_MAX 65536
#define TEXT_MAX   1024
#define CORES_MAX  16384 /* every second of 4096 cores */

/* What --profile may ask for. */
#define PROFILE_BITS                                                           \
    (ACCT_GATHER_PROFILE_NONE | ACCT_GATHER_PROFILE_ENERGY |                   \
     ACCT_GATHER_PROFILE_TASK | ACCT_GATHER_PROFILE_LUSTRE |                   \
     ACCT_GATHER_PROFILE_NETWORK)

/* Of the job's environment: what is looked at. */
#define VARIABLES_MAX 65536
#define VALUE_MAX     131072

/* Memory that may not be there: false, and not a signal. */
static bool copy_from(const void *from, void *to, size_t size)
{
    struct iovec remote = {.iov_base = (void *)from, .iov_len = size};
    struct iovec local = {.iov_base = to, .iov_len = size};

    return from && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
                       (ssize_t)size;
}

/* As much of it as is on its page: the next one may not be there. */
static size_t copy_piece(const char *from, char *to, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t here = page - (uintptr_t)from % page;

    if (size > here)
        size = here;
    return copy_from(from, to, size) ? size : 0;
}

/* Whether [text] is one of 1 to [most] characters, all of them in [of]. */
static bool is_text(const char *text, const char *of, size_t most)
{
    char piece[256];
    size_t at, i, size;

    for (at = 0; at < most; at += size) {
        size = copy_piece(text + at, piece, sizeof(piece));
        for (i = 0; i < size && at + i < most; i++) {
            if (piece[i] == '\0')
                return at + i > 0;
            if (of && !strchr(of, piece[i]))
                return false;
        }
        if (size == 0)
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

static bool is_titled(const unsigned char *r,
                      const struct joule_step_layout *layout,
                      const struct title *title)
{
    if (u32_at(r, layout->step_id) != title->step_id)
        return false;
    if (title->is_het)
        return u32_at(r, layout->het_job_id) == title->job_id &&
               u32_at(r, layout->het_job_offset) == title->het_offset;
    return u32_at(r, layout->job_id) == title->job_id;
}

static void read_lists(const unsigned char *r,
                       const struct joule_step_layout *layout,
                       struct joule_slurm_step *step)
{
    uint32_t count = u32_at(r, layout->group_count);
    const gid_t *groups = pointer_at(r, layout->groups);
    const uintptr_t last_at = (uintptr_t)groups + (count - 1) * sizeof(gid_t);
    gid_t last;

    if (count > 0 && count <= GROUPS_MAX &&
        copy_from((const void *)last_at, &last, sizeof(last))) {
        step->groups = groups;
        step->group_count = count;
    }
    step->env = pointer_at(r, layout->env);
}

int joule_slurm_step_read(const void *record, struct joule_slurm_step *ret_step,
                          struct joule_error *err)
{
    const char *node = getenv("SLURMD_NODENAME");
    const struct joule_step_layout *layout = joule_step_layout();
    struct joule_slurm_step step = {0};
    unsigned char r[JOULE_STEP_LAYOUT_SIZE_MAX];
    struct title title = {0};
    uint16_t cpus;

    if (!layout || !copy_from(record, r, layout->size))
        return joule_error_set(err, ENOTSUP,
                               "the step's record of this Slurm is not known");
    if (!read_title(&title) || !is_titled(r, layout, &title))
        return joule_error_set(err, ENOTSUP,
                               "the step's record is not the one of the step "
                               "that slurmstepd's title names");
    step.node = pointer_at(r, layout->node_name);
    step.user = pointer_at(r, layout->user_name);
    if (!is_text(step.node, NULL, TEXT_MAX) ||
        (node && strcmp(node, step.node) != 0))
        return joule_error_set(err, ENOTSUP,
                               "the step's record does not have the name of "
                               "this node");
    if (!is_text(step.user, NULL, TEXT_MAX))
        return joule_error_set(err, ENOTSUP,
                               "the step's record does not name the user");
    step.profile = u32_at(r, layout->profile);
    if (step.profile != ACCT_GATHER_PROFILE_ALL &&
        (step.profile & ~(uint32_t)PROFILE_BITS))
        return joule_error_set(err, ENOTSUP,
                               "the step's record asks for profiles that are "
                               "not known");
    memcpy(&cpus, r + layout->cpus_per_task, sizeof(cpus));
    step.job_id = u32_at(r, layout->job_id);
    step.step_id = u32_at(r, layout->step_id);
    step.node_index = u32_at(r, layout->node_index);
    step.node_tasks = u32_at(r, layout->node_tasks);
    step.cpus_per_task = cpus;
    step.uid = u32_at(r, layout->uid);
    step.gid = u32_at(r, layout->gid);
    step.job_cores = core_list_at(record, layout->job_cores);
    step.step_cores = core_list_at(record, layout->step_cores);
    read_lists(r, layout, &step);
    *ret_step = step;
    return 0;
}

/* Whether [text] begins with [name] and '='. */
static bool is_variable(const char *text, const char *name)
{
    size_t length = strlen(name), at = 0, size, i;
    char piece[64];

    while (at <= length) {
        size = copy_piece(text + at, piece, sizeof(piece));
        if (size == 0)
            return false;
        for (i = 0; i < size && at <= length; i++, at++)
            if (piece[i] != (at < length ? name[at] : '='))
                return false;
    }
    return true;
}

const char *joule_slurm_step_getenv(const struct joule_slurm_step *step,
                                    const char *name)
{
    const char *text, *value;
    size_t i;

    for (i = 0; i < VARIABLES_MAX; i++) {
        if (!copy_from(step->env + i, &text, sizeof(text)) || !text)
            return NULL;
        if (!is_variable(text, name))
            continue;
        value = text + strlen(name) + 1;
        return is_text(value, NULL, VALUE_MAX) ? value : NULL;
    }
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
