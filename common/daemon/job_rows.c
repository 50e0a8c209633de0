/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/job_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct joule_job_rows *joule_job_rows_create(size_t words, size_t part_count)
{
    struct joule_job_rows *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->words = words;
    j->part_count = part_count;
    j->cpus = calloc(JOULE_LEDGER_SLOTS_MAX * words, sizeof(*j->cpus));
    j->part_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * part_count, sizeof(*j->part_ns));
    for (size_t i = 0; i < JOBS_BUCKETS; i++)
        j->bucket[i] = -1;
    if (j->cpus && j->part_ns)
        return j;
    joule_job_rows_destroy(j);
    errno = ENOMEM;
    return NULL;
}

void joule_job_rows_destroy(struct joule_job_rows *j)
{
    if (!j)
        return;
    free(j->cpus);
    free(j->part_ns);
    free(j);
}

void joule_job_rows_begin(struct joule_job_rows *j)
{
    for (size_t i = 0; i < j->job_count; i++)
        j->bucket[j->job[i].bucket] = -1;
    j->step_count = 0;
    j->job_count = 0;
}

/* The bucket in which the job is, or would be. */
static size_t bucket_of(const struct joule_job_rows *j, uint32_t job)
{
    size_t b = job * UINT32_C(2654435761) % JOBS_BUCKETS;

    while (j->bucket[b] >= 0 && j->job[j->bucket[b]].job != job)
        b = (b + 1) % JOBS_BUCKETS;
    return b;
}

/* The job's place, made if it is new. */
static size_t find_job(struct joule_job_rows *j, uint32_t job)
{
    size_t b = bucket_of(j, job), i;

    if (j->bucket[b] >= 0)
        return (size_t)j->bucket[b];
    i = j->job_count++;
    j->bucket[b] = (int)i;
    j->job[i] = (struct joule_job_rows_job){
        .job = job,
        .bucket = b,
        .first = -1,
        .last = -1,
        .from_ns = INT64_MAX,
        .counter_ns = JOULE_CPU_UNKNOWN,
    };
    j->use[i] = (struct joule_job_use){
        .cpus = j->cpus + i * j->words,
        .part_ns = j->part_ns + i * j->part_count,
    };
    memset(j->cpus + i * j->words, 0, j->words * sizeof(*j->cpus));
    memset(j->part_ns + i * j->part_count, 0,
           j->part_count * sizeof(*j->part_ns));
    return i;
}

/* What a row says of its job, whichever of the job's rows says the most. */
static void take_row(struct joule_job_rows_job *job,
                     const struct joule_row *row)
{
    if (row->job_uj > job->uj)
        job->uj = row->job_uj;
    if (row->job_cpu_ns != JOULE_CPU_UNKNOWN &&
        (job->counter_ns == JOULE_CPU_UNKNOWN ||
         row->job_cpu_ns > job->counter_ns))
        job->counter_ns = row->job_cpu_ns;
}

void joule_job_rows_note(struct joule_job_rows *j, const struct joule_row *row)
{
    take_row(&j->job[find_job(j, row->job)], row);
}

bool joule_job_rows_use(struct joule_job_rows *j, uint32_t number,
                        uint64_t cpu_ns, uint64_t before_ns,
                        const uint64_t *part_ns)
{
    int i = j->bucket[bucket_of(j, number)];
    struct joule_job_rows_job *job;
    struct joule_job_use *c;
    uint64_t used_ns;

    if (i < 0 || j->job[i].steps == 0)
        return false;
    job = &j->job[i];
    c = &j->use[i];
    if (before_ns == JOULE_CPU_UNKNOWN)
        before_ns = job->counter_ns;
    job->counter_ns = cpu_ns;
    if (before_ns == JOULE_CPU_UNKNOWN)
        return true;
    /* One that has gone back is another group of that name, or was reset. */
    used_ns = cpu_ns < before_ns ? cpu_ns : cpu_ns - before_ns;
    used_ns -= used_ns < job->stepd_ns ? used_ns : job->stepd_ns;
    c->unknown_ns = 0;
    if (used_ns <= c->cpu_ns)
        return true;
    job->other_ns = used_ns - c->cpu_ns;
    c->cpu_ns = used_ns;
    c->part_ns = part_ns;
    return true;
}

void joule_job_rows_without_group(struct joule_job_rows *j, uint32_t number)
{
    int i = j->bucket[bucket_of(j, number)];

    if (i >= 0)
        j->job[i].counter_ns = 0;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* At most what its CPUs could have done while it was there: it may have ended
 * long before the interval did, while slurmd was away. */
static uint64_t unknown_ns(const struct joule_job_rows_step *step)
{
    uint64_t cpus =
        step->row->cpu_count ? step->row->cpu_count : step->row->job_cpu_count;
    int64_t ns = step->to_ns - step->from_ns;

    if (!step->cpu_unknown || ns <= 0)
        return 0;
    if (cpus == 0 || (uint64_t)ns > UINT64_MAX / cpus)
        return UINT64_MAX;
    return cpus * (uint64_t)ns;
}

void joule_job_rows_add(struct joule_job_rows *j,
                        const struct joule_job_rows_step *step)
{
    size_t i = find_job(j, step->row->job), s = j->step_count++;
    struct joule_job_rows_job *job = &j->job[i];
    struct joule_job_use *c = &j->use[i];
    uint64_t *cpus = j->cpus + i * j->words;
    uint64_t *part_ns = j->part_ns + i * j->part_count;

    j->step[s] = *step;
    j->step[s].next = -1;
    if (job->last >= 0)
        j->step[job->last].next = (int)s;
    else
        job->first = (int)s;
    job->last = (int)s;
    job->steps++;
    if (step->to_ns > step->from_ns) {
        if (step->from_ns < job->from_ns)
            job->from_ns = step->from_ns;
        if (step->to_ns > job->to_ns)
            job->to_ns = step->to_ns;
    }
    take_row(job, step->row);
    job->stepd_ns = add_up(job->stepd_ns, step->stepd_ns);
    job->has_unknown |= step->cpu_unknown;
    if (step->row->job_cpu_count > c->cpu_count)
        c->cpu_count = step->row->job_cpu_count;
    c->cpu_ns = add_up(c->cpu_ns, step->cpu_ns);
    c->unknown_ns = add_up(c->unknown_ns, unknown_ns(step));
    for (size_t w = 0; w < j->words; w++)
        cpus[w] |= step->job_cpus[w];
    if (!step->part_ns)
        c->part_ns = NULL;
    for (size_t p = 0; step->part_ns && p < j->part_count; p++)
        part_ns[p] = add_up(part_ns[p], step->part_ns[p]);
}

static uint64_t attribute_job(struct joule_job_rows *j, size_t i,
                              struct joule_attributor *attributor)
{
    struct joule_step_use step[JOULE_LEDGER_SLOTS_MAX];
    uint64_t uj[JOULE_LEDGER_SLOTS_MAX];
    const struct joule_job_rows_job *job = &j->job[i];
    struct joule_job_energy *energy = &j->energy[i];
    uint64_t sum = energy->idle_uj + energy->active_uj;
    size_t n = 0;

    for (int s = job->first; s >= 0; s = j->step[s].next) {
        const struct joule_job_rows_step *from = &j->step[s];

        step[n++] = (struct joule_step_use){
            .kind = (enum joule_step_kind)from->row->kind,
            .cpus = from->step_cpus,
            .cpu_count = from->row->cpu_count,
            .present_ns = from->to_ns - from->from_ns,
            .cpu_ns = from->cpu_ns,
            .cpu_unknown = from->cpu_unknown,
        };
    }
    if (job->has_unknown)
        energy->estimated_ns = add_up(energy->estimated_ns, job->other_ns);
    else
        energy->other_ns = job->other_ns;
    joule_attribute_steps(attributor, i, &j->use[i], energy, step, n, uj);
    n = 0;
    for (int s = job->first; s >= 0; s = j->step[s].next, n++) {
        struct joule_row *row = j->step[s].row;

        row->uj += uj[n];
        joule_divide_components(uj[n], sum, energy->component_uj,
                                row->component_uj);
        row->job_uj = job->uj + sum;
        row->job_cpu_ns = job->counter_ns;
        if (j->step[s].ret_job_uj)
            *j->step[s].ret_job_uj = job->uj;
    }
    return sum;
}

uint64_t joule_job_rows_attribute(struct joule_job_rows *j,
                                  struct joule_attributor *attributor,
                                  enum joule_attribution how,
                                  int64_t interval_ns,
                                  struct joule_node_part *parts,
                                  struct joule_attribution_rest *rest)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < j->job_count; i++)
        j->use[i].present_ns = j->job[i].to_ns > j->job[i].from_ns
                                   ? j->job[i].to_ns - j->job[i].from_ns
                                   : 0;
    joule_attribute(attributor, how, interval_ns, parts, j->use, j->job_count,
                    j->energy, rest);
    /* A job without steps has neither CPUs nor CPU time, and so no share. */
    for (size_t i = 0; i < j->job_count; i++)
        if (j->job[i].steps > 0)
            sum += attribute_job(j, i, attributor);
    return sum;
}
