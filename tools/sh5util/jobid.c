/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/jobid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"

/* slurm.h: below NO_VAL (a federation has the number of the cluster in the
 * upper six bits), and step numbers from SLURM_MAX_NORMAL_STEP_ID on have
 * names. */
#define JOB_MAX  0xFFFFFFFD
#define STEP_MAX 0xFFFFFFF0

static const struct {
    const char *text, *name;
} named_steps[] = {
    {"batch", "batch"},    {"extern", "-4"},
    {"interactive", "-6"}, {"4294967291", "batch"},
    {"4294967292", "-4"},  {"4294967290", "-6"},
    {"-4", "-4"},          {"-6", "-6"},
};

int joule_step_name(const char *text, char *name)
{
    uint64_t number;

    for (size_t i = 0; i < sizeof(named_steps) / sizeof(named_steps[0]); i++)
        if (strcmp(text, named_steps[i].text) == 0) {
            strcpy(name, named_steps[i].name);
            return 0;
        }
    if (joule_parse_u64(text, 0, STEP_MAX, &number) < 0)
        return -1;
    snprintf(name, JOULE_STEP_TEXT_MAX, "%llu", (unsigned long long)number);
    return 0;
}

/* "42", "42_3", "42+1" into job->text and id. */
static int parse_job(const char *text, struct joule_job *job)
{
    size_t len = strcspn(text, "_+");
    char number[JOULE_JOB_TEXT_MAX];
    uint64_t id, part = 0;
    int n;

    if (strlen(text) >= sizeof(number))
        return -1;
    memcpy(number, text, len);
    number[len] = '\0';
    if (joule_parse_u64(number, 1, JOB_MAX, &id) < 0 ||
        (text[len] &&
         joule_parse_u64(text + len + 1, 0, UINT32_MAX - 2, &part) < 0))
        return -1;
    job->id = text[len] ? 0 : (uint32_t)id;
    /* One job, one text: "007" is 7. */
    if (text[len])
        n = snprintf(job->text, sizeof(job->text), "%llu%c%llu",
                     (unsigned long long)id, text[len],
                     (unsigned long long)part);
    else
        n = snprintf(job->text, sizeof(job->text), "%llu",
                     (unsigned long long)id);
    return n < (int)sizeof(job->text) ? 0 : -1;
}

static int add(struct joule_job *jobs, size_t *count, const char *text,
               const char *step, struct joule_error *err)
{
    struct joule_job *job, parsed = {0};
    bool is_new = true;

    if (parse_job(text, &parsed) < 0)
        return joule_error_set(err, EINVAL,
                               "Failed to parse job ID \"%s\": JOB, JOB_TASK "
                               "or JOB+N, and .STEP if not all steps are meant",
                               text);
    for (job = jobs; job < jobs + *count; job++)
        if (strcmp(job->text, parsed.text) == 0)
            break;
    if (job == jobs + *count) {
        if (*count == JOULE_JOBS_MAX)
            return joule_error_set(err, EINVAL, "more than %d jobs",
                                   JOULE_JOBS_MAX);
        *job = parsed;
        ++*count;
    } else {
        is_new = false;
    }
    if (!step) {
        job->steps = 0;
        return 0;
    }
    if (!is_new && job->steps == 0)
        return 0; /* all of them already */
    if (job->steps == JOULE_STEPS_MAX)
        return joule_error_set(err, EINVAL, "more than %d steps of job %s",
                               JOULE_STEPS_MAX, job->text);
    if (joule_step_name(step, job->step[job->steps]) < 0)
        return joule_error_set(err, EINVAL,
                               "\"%s\" is not a step: a number, batch, extern "
                               "or interactive",
                               step);
    job->steps++;
    return 0;
}

int joule_jobs_parse(const char *list, struct joule_job **ret,
                     size_t *ret_count, struct joule_error *err)
{
    struct joule_job *jobs = calloc(JOULE_JOBS_MAX, sizeof(*jobs));
    char *copy = strdup(list), *rest = copy, *word;
    size_t count = 0;
    int rc = 0;

    if (!jobs || !copy)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    while (rc == 0 && (word = strsep(&rest, ","))) {
        char *dot = strchr(word, '.');

        if (dot)
            *dot++ = '\0';
        rc = add(jobs, &count, word, dot, err);
    }
    free(copy);
    if (rc < 0) {
        free(jobs);
        errno = EINVAL;
        return -1;
    }
    *ret = jobs;
    *ret_count = count;
    return 0;
}

bool joule_job_has_step(const struct joule_job *job, const char *step)
{
    if (job->steps == 0)
        return true;
    for (size_t i = 0; i < job->steps; i++)
        if (strcmp(job->step[i], step) == 0)
            return true;
    return false;
}
