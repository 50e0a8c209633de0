/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/attribution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cpus.h"
#include "common/base/int128.h"

#define WEIGHTS_MAX (JOULE_JOBS_MAX + 2)

/* A CPU, or the whole of the interval, in fixed point. */
#define ONE_BITS 30
#define ONE      (UINT64_C(1) << ONE_BITS)

/* How far the CPU times of steps and node may disagree: two ticks of 10 ms. */
#define DEBT_NS_A_CPU UINT64_C(20000000)

struct joule_attributor {
    size_t words, part_count;
    uint32_t cpus;                       /* in any part */
    uint32_t part_cpus[JOULE_PARTS_MAX]; /* how many */
    uint32_t parts_of[JOULE_CPUS_MAX];   /* of each CPU, a bit for a part */
    uint64_t node[JOULE_CPUS_MAX / 64];  /* bitmap: CPUs in any part */
    uint64_t asked[JOULE_CPUS_MAX];      /* of each CPU: sum of presences */
    int64_t interval_ns;                 /* that was split last */
    uint64_t fraction[JOULE_JOBS_MAX];   /* present, of ONE */
    uint64_t whole[JOULE_JOBS_MAX];      /* CPUs it has, of ONE each */
    /* The same in each part, and what was charged by it: */
    uint64_t held[JOULE_PARTS_MAX][JOULE_JOBS_MAX];
    uint64_t idle_uj[JOULE_PARTS_MAX][JOULE_JOBS_MAX];
    uint64_t active_uj[JOULE_JOBS_MAX]; /* in the part that is divided */
    uint64_t weight[WEIGHTS_MAX], result[WEIGHTS_MAX];
    /* Of the job whose steps are looked at: */
    uint64_t job[JOULE_CPUS_MAX / 64]; /* bitmap: its CPUs */
    /* Of each CPU: time, of ONE, that no step has yet, and that those of a kind
     * ask for. */
    uint64_t left[JOULE_CPUS_MAX], wanted[JOULE_CPUS_MAX];
    uint64_t step_held[JOULE_PARTS_MAX][JOULE_JOBS_MAX]; /* as held, of each */
};

/* ---- apportioning ---- */

static int largest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* One unit more to each of the [units] largest remainders. */
static void give_units(const uint64_t *remainder, size_t count, size_t units,
                       uint64_t *ret)
{
    uint64_t sorted[WEIGHTS_MAX], last;
    size_t equal = units;

    if (units == 0)
        return;
    memcpy(sorted, remainder, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), largest_first);
    last = sorted[units - 1];
    for (size_t i = 0; i < count; i++)
        equal -= remainder[i] > last;
    for (size_t i = 0; i < count; i++) {
        if (remainder[i] > last) {
            ret[i]++;
        } else if (remainder[i] == last && equal > 0) {
            ret[i]++;
            equal--;
        }
    }
}

bool joule_apportion(uint64_t total, const uint64_t *weight, size_t count,
                     uint64_t *ret)
{
    uint64_t remainder[WEIGHTS_MAX], sum = 0, left = total;

    /* 1026 weights of 53 bits: below 2^64. */
    for (size_t i = 0; i < count; i++)
        sum += weight[i];
    if (sum == 0) {
        memset(ret, 0, count * sizeof(*ret));
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        joule_u128 product = (joule_u128)total * weight[i];

        /* Most totals and weights are small, and this is ten times faster. */
        if (product >> 64 == 0) {
            ret[i] = (uint64_t)product / sum;
            remainder[i] = (uint64_t)product % sum;
        } else {
            ret[i] = (uint64_t)(product / sum);
            remainder[i] = (uint64_t)(product % sum);
        }
        left -= ret[i];
    }
    /* Each remainder is below one unit: fewer units are left than there are
     * remainders. */
    give_units(remainder, count, (size_t)left, ret);
    return true;
}

/* ---- jobs ---- */

struct joule_attributor *joule_attributor_create(size_t words,
                                                 const uint64_t *part_cpus,
                                                 size_t part_count)
{
    struct joule_attributor *s;

    if (words == 0 || words > JOULE_CPUS_MAX / 64 || part_count == 0 ||
        part_count > JOULE_PARTS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->words = words;
    s->part_count = part_count;
    for (size_t cpu = 0; cpu < words * 64; cpu++) {
        for (size_t p = 0; p < part_count; p++) {
            if (part_cpus[p * words + cpu / 64] >> cpu % 64 & 1) {
                s->parts_of[cpu] |= UINT32_C(1) << p;
                s->part_cpus[p]++;
            }
        }
        if (s->parts_of[cpu])
            s->node[cpu / 64] |= UINT64_C(1) << cpu % 64;
        s->cpus += s->parts_of[cpu] != 0;
    }
    return s;
}

void joule_attributor_destroy(struct joule_attributor *s)
{
    free(s);
}

uint32_t joule_attributor_cpus(const struct joule_attributor *s, size_t part)
{
    return s->part_cpus[part];
}

/* The next CPU in both bitmaps, from [cpu] on.  [cpus] NULL: none. */
static size_t next_cpu(const struct joule_attributor *s, const uint64_t *cpus,
                       const uint64_t *among, size_t cpu)
{
    while (cpus && cpu < s->words * 64) {
        uint64_t word = (cpus[cpu / 64] & among[cpu / 64]) >> cpu % 64;

        if (word)
            return cpu + (size_t)__builtin_ctzll(word);
        cpu = (cpu / 64 + 1) * 64;
    }
    return s->words * 64;
}

static uint64_t present(int64_t present_ns, int64_t interval_ns)
{
    if (present_ns <= 0 || interval_ns <= 0)
        return 0;
    if (present_ns >= interval_ns)
        return ONE;
    return (uint64_t)(((joule_u128)present_ns << ONE_BITS) /
                      (uint64_t)interval_ns);
}

/* CPUs whose number alone is known are a little of every CPU. */
static uint64_t spread(const struct joule_attributor *s,
                       const struct joule_job_use *c, uint64_t fraction)
{
    uint64_t count = c->cpu_count < s->cpus ? c->cpu_count : s->cpus;

    return s->cpus ? fraction * count / s->cpus : 0;
}

static bool is_placed(const struct joule_attributor *s,
                      const struct joule_job_use *c)
{
    return next_cpu(s, c->cpus, s->node, 0) < s->words * 64;
}

/* What a job that asks for [fraction] of a CPU has of it. */
static uint64_t portion(const struct joule_attributor *s, size_t cpu,
                        uint64_t fraction)
{
    uint64_t asked = s->asked[cpu];

    return asked > ONE ? fraction * ONE / asked : fraction;
}

static void hold(struct joule_attributor *s, size_t job, size_t cpu,
                 uint64_t fraction)
{
    uint32_t parts = s->parts_of[cpu];
    uint64_t w = portion(s, cpu, fraction);

    s->whole[job] += w;
    for (; parts; parts &= parts - 1)
        s->held[__builtin_ctz(parts)][job] += w;
}

/* How much of which part each job has: s->held. */
static void divide_cpus(struct joule_attributor *s, int64_t interval_ns,
                        const struct joule_job_use *jobs, size_t count)
{
    size_t end = s->words * 64;
    uint64_t everywhere = 0;

    memset(s->asked, 0, end * sizeof(*s->asked));
    for (size_t i = 0; i < count; i++) {
        const struct joule_job_use *c = &jobs[i];

        s->fraction[i] = present(c->present_ns, interval_ns);
        s->whole[i] = 0;
        for (size_t p = 0; p < s->part_count; p++)
            s->held[p][i] = s->idle_uj[p][i] = 0;
        if (!is_placed(s, c))
            everywhere += spread(s, c, s->fraction[i]);
        for (size_t cpu = next_cpu(s, c->cpus, s->node, 0); cpu < end;
             cpu = next_cpu(s, c->cpus, s->node, cpu + 1))
            s->asked[cpu] += s->fraction[i];
    }
    for (size_t cpu = 0; cpu < end; cpu++)
        s->asked[cpu] += everywhere;
    for (size_t i = 0; i < count; i++) {
        const struct joule_job_use *c = &jobs[i];
        uint64_t w = spread(s, c, s->fraction[i]);

        for (size_t cpu = next_cpu(s, c->cpus, s->node, 0); cpu < end;
             cpu = next_cpu(s, c->cpus, s->node, cpu + 1))
            hold(s, i, cpu, s->fraction[i]);
        for (size_t cpu = 0; w && cpu < end && !is_placed(s, c); cpu++)
            if (s->parts_of[cpu])
                hold(s, i, cpu, w);
    }
}

static uint64_t cut(joule_u128 ns)
{
    return ns < JOULE_CPU_NS_MAX ? (uint64_t)ns : JOULE_CPU_NS_MAX;
}

static uint64_t scaled(uint64_t ns, uint64_t part, uint64_t whole)
{
    return (uint64_t)((joule_u128)ns * part / whole);
}

/* The CPU time of a job in a part. */
static uint64_t used(const struct joule_attributor *s,
                     const struct joule_job_use *c, size_t job, size_t part)
{
    if (c->part_ns)
        return cut(c->part_ns[part]);
    if (s->whole[job])
        return scaled(cut(c->cpu_ns), s->held[part][job], s->whole[job]);
    return s->cpus ? scaled(cut(c->cpu_ns), s->part_cpus[part], s->cpus) : 0;
}

/* Time of the CPUs that a job has in a part. */
static uint64_t capacity(const struct joule_attributor *s, size_t job,
                         size_t part, int64_t interval_ns)
{
    return cut((joule_u128)s->held[part][job] * (uint64_t)interval_ns >>
               ONE_BITS);
}

/* What a job may have used in a part beyond what is known. */
static uint64_t unknown(const struct joule_attributor *s,
                        const struct joule_job_use *c, size_t job, size_t part,
                        int64_t interval_ns)
{
    uint64_t most = capacity(s, job, part, interval_ns);
    uint64_t ns = s->whole[job] ? scaled(cut(c->unknown_ns), s->held[part][job],
                                         s->whole[job])
                                : 0;

    most = most > s->weight[job] ? most - s->weight[job] : 0;
    return ns < most ? ns : most;
}

/* s->weight: CPU time of all jobs in a part, and last that of the system. */
static void weigh_time(struct joule_attributor *s, size_t part,
                       struct joule_node_part *p, int64_t interval_ns,
                       const struct joule_job_use *jobs, size_t count,
                       struct joule_job_energy *energies)
{
    uint64_t sum = 0, left = 0, room = 0, busy = cut(p->busy_ns);
    uint64_t limit = DEBT_NS_A_CPU * s->part_cpus[part];
    uint64_t *guess = s->result;

    for (size_t i = 0; i < count; i++) {
        s->weight[i] = used(s, &jobs[i], i, part);
        sum += s->weight[i];
        guess[i] = unknown(s, &jobs[i], i, part, interval_ns);
        room += guess[i];
    }
    s->weight[count] = 0;
    if (!p->busy_known) {
        left = cut(room);
    } else if (busy >= sum + p->debt_ns) {
        left = busy - sum - p->debt_ns;
        p->debt_ns = 0;
    } else {
        p->debt_ns = sum + p->debt_ns - busy;
        if (p->debt_ns > limit)
            p->debt_ns = limit;
    }
    /* What nobody is known to have used goes to those of whom it is not
     * known, no more than they can have used; then to the system. */
    for (size_t i = 0; i < count && room > 0; i++) {
        uint64_t ns = left < room ? scaled(left, guess[i], room) : guess[i];

        s->weight[i] = cut(s->weight[i] + ns);
        energies[i].estimated_ns += ns;
        s->weight[count] += ns;
    }
    s->weight[count] = p->busy_known ? cut(left - s->weight[count]) : 0;
}

static void divide_by_time(struct joule_attributor *s, size_t part,
                           struct joule_node_part *p, int64_t interval_ns,
                           const struct joule_job_use *jobs, size_t count,
                           uint64_t active_uj,
                           struct joule_job_energy *energies,
                           struct joule_attribution_rest *rest)
{
    weigh_time(s, part, p, interval_ns, jobs, count, energies);
    if (!joule_apportion(active_uj, s->weight, count + 1, s->result)) {
        rest->system_uj += active_uj;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        s->active_uj[i] = s->result[i];
        energies[i].active_uj += s->result[i];
    }
    rest->system_uj += s->result[count];
}

static void add_idle(struct joule_attributor *s, size_t part, size_t job,
                     uint64_t uj, struct joule_job_energy *energy)
{
    s->idle_uj[part][job] += uj;
    energy->idle_uj += uj;
}

static void divide_by_cpus(struct joule_attributor *s, size_t part,
                           uint64_t idle_uj, size_t count,
                           struct joule_job_energy *energies,
                           struct joule_attribution_rest *rest)
{
    uint64_t all = s->part_cpus[part] * ONE, sum = 0;

    for (size_t i = 0; i < count; i++) {
        s->weight[i] = s->held[part][i];
        sum += s->weight[i];
    }
    /* Rounding leaves up to 2^-30 of a CPU for each of those who share it: that
     * is no CPU that nobody has. */
    s->weight[count] = all > sum ? all - sum : 0;
    if (s->weight[count] < (uint64_t)s->part_cpus[part] * (count + 1) &&
        sum > 0)
        s->weight[count] = 0;
    if (!joule_apportion(idle_uj, s->weight, count + 1, s->result)) {
        rest->unallocated_uj += idle_uj;
        return;
    }
    for (size_t i = 0; i < count; i++)
        add_idle(s, part, i, s->result[i], &energies[i]);
    rest->unallocated_uj += s->result[count];
}

/* Each the whole, for as long as it was there. */
static void give_whole(struct joule_attributor *s, size_t part,
                       uint64_t delta_uj, size_t count,
                       struct joule_job_energy *energies,
                       struct joule_attribution_rest *rest)
{
    uint64_t sum = 0;
    joule_u128 given = 0;

    for (size_t i = 0; i < count; i++) {
        s->weight[i] = s->fraction[i];
        sum += s->fraction[i];
    }
    if (sum <= ONE) {
        s->weight[count] = ONE - sum;
        joule_apportion(delta_uj, s->weight, count + 1, s->result);
        for (size_t i = 0; i < count; i++)
            add_idle(s, part, i, s->result[i], &energies[i]);
        rest->unallocated_uj += s->result[count];
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t uj = scaled(delta_uj, s->fraction[i], ONE);

        add_idle(s, part, i, uj, &energies[i]);
        given += uj;
    }
    if (given < delta_uj)
        rest->unallocated_uj += delta_uj - (uint64_t)given;
    else
        rest->multiple_uj += (uint64_t)(given - delta_uj);
}

void joule_divide_components(uint64_t uj, uint64_t whole_uj,
                             const uint64_t *component_uj, uint64_t *ret_uj)
{
    uint64_t weight[JOULE_COMPONENTS + 1], part[JOULE_COMPONENTS + 1];

    weight[JOULE_COMPONENTS] = whole_uj;
    for (size_t k = 0; k < JOULE_COMPONENTS; k++) {
        weight[k] = cut(component_uj[k]);
        weight[JOULE_COMPONENTS] -= component_uj[k];
    }
    weight[JOULE_COMPONENTS] = cut(weight[JOULE_COMPONENTS]);
    joule_apportion(uj, weight, JOULE_COMPONENTS + 1, part);
    for (size_t k = 0; k < JOULE_COMPONENTS; k++)
        ret_uj[k] += part[k];
}

/* What a job has of a part is made of the same components as the part. */
static void divide_part_components(struct joule_attributor *s, size_t part,
                                   const struct joule_node_part *p,
                                   size_t count,
                                   struct joule_job_energy *energies)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < JOULE_COMPONENTS; k++)
        sum += p->component_uj[k];
    for (size_t i = 0; sum > 0 && i < count; i++)
        joule_divide_components(s->idle_uj[part][i] + s->active_uj[i],
                                p->delta_uj, p->component_uj,
                                energies[i].component_uj);
}

void joule_attribute(struct joule_attributor *s, enum joule_attribution how,
                     int64_t interval_ns, struct joule_node_part *parts,
                     const struct joule_job_use *jobs, size_t count,
                     struct joule_job_energy *energies,
                     struct joule_attribution_rest *rest)
{
    memset(rest, 0, sizeof(*rest));
    s->interval_ns = interval_ns;
    divide_cpus(s, interval_ns, jobs, count);
    memset(energies, 0, count * sizeof(*energies));
    for (size_t p = 0; p < s->part_count; p++) {
        uint64_t delta = parts[p].delta_uj, idle_uj = parts[p].idle_uj;

        memset(s->active_uj, 0, count * sizeof(*s->active_uj));
        if (how == JOULE_ATTRIBUTION_ALLOC || idle_uj > delta)
            idle_uj = delta;
        if (how == JOULE_ATTRIBUTION_NODE)
            give_whole(s, p, delta, count, energies, rest);
        else
            divide_by_cpus(s, p, idle_uj, count, energies, rest);
        if (how == JOULE_ATTRIBUTION_CPUTIME)
            divide_by_time(s, p, &parts[p], interval_ns, jobs, count,
                           delta - idle_uj, energies, rest);
        divide_part_components(s, p, &parts[p], count, energies);
    }
}

/* ---- the steps of a job ---- */

/* s->job: the CPUs of a job, or all of which it has a little.  How many it
 * has. */
static uint64_t find_job_cpus(struct joule_attributor *s,
                              const struct joule_job_use *c)
{
    bool placed = is_placed(s, c);
    uint64_t n = 0;

    for (size_t w = 0; w < s->words; w++) {
        s->job[w] = placed ? c->cpus[w] & s->node[w] : s->node[w];
        n += (uint64_t)__builtin_popcountll(s->job[w]);
    }
    return placed || c->cpu_count > n ? n : c->cpu_count;
}

/* The CPUs of a step among its job's, and in [ret_fraction] how much of each
 * it asks for.  If their number alone is known, it is a little of each. */
static const uint64_t *find_step_cpus(const struct joule_attributor *s,
                                      const struct joule_step_use *step,
                                      uint64_t job_cpus, uint64_t *ret_fraction)
{
    uint64_t fraction = present(step->present_ns, s->interval_ns);

    *ret_fraction = fraction;
    if (next_cpu(s, step->cpus, s->job, 0) < s->words * 64)
        return step->cpus;
    if (step->cpu_count < job_cpus)
        *ret_fraction = fraction * step->cpu_count / job_cpus;
    return s->job;
}

/* Steps of one kind hold what those before have left. */
static void hold_steps(struct joule_attributor *s, size_t i, uint64_t fraction,
                       uint64_t job_cpus, enum joule_step_kind kind,
                       const struct joule_step_use *steps, size_t count)
{
    size_t end = s->words * 64;
    const uint64_t *cpus;
    uint64_t f;

    for (size_t n = 0; n < count; n++) {
        if (steps[n].kind != kind)
            continue;
        cpus = find_step_cpus(s, &steps[n], job_cpus, &f);
        for (size_t cpu = next_cpu(s, cpus, s->job, 0); cpu < end;
             cpu = next_cpu(s, cpus, s->job, cpu + 1))
            s->wanted[cpu] += f;
    }
    for (size_t n = 0; n < count; n++) {
        if (steps[n].kind != kind)
            continue;
        cpus = find_step_cpus(s, &steps[n], job_cpus, &f);
        for (size_t cpu = next_cpu(s, cpus, s->job, 0); cpu < end;
             cpu = next_cpu(s, cpus, s->job, cpu + 1)) {
            uint64_t left = s->left[cpu], wanted = s->wanted[cpu];
            uint64_t time = wanted > left ? f * left / wanted : f;
            uint64_t w = portion(s, cpu, fraction) * time / s->fraction[i];

            for (uint32_t p = s->parts_of[cpu]; p; p &= p - 1)
                s->step_held[__builtin_ctz(p)][n] += w;
        }
    }
    for (size_t cpu = next_cpu(s, s->job, s->job, 0); cpu < end;
         cpu = next_cpu(s, s->job, s->job, cpu + 1)) {
        s->left[cpu] -=
            s->wanted[cpu] < s->left[cpu] ? s->wanted[cpu] : s->left[cpu];
        s->wanted[cpu] = 0;
    }
}

/* Divide by s->weight[0..count), and last what no step holds of [held]. */
static bool give_idle(struct joule_attributor *s, uint64_t uj, uint64_t held,
                      size_t count, uint64_t *ret_uj, uint64_t *ret_rest_uj)
{
    uint64_t sum = 0;

    for (size_t n = 0; n < count; n++)
        sum += s->weight[n];
    s->weight[count] = held > sum ? held - sum : 0;
    /* As in split_by_cpus; here each step is rounded twice on each CPU. */
    if (s->weight[count] < 2 * (uint64_t)s->cpus * (count + 1) && sum > 0)
        s->weight[count] = 0;
    if (!joule_apportion(uj, s->weight, count + 1, s->result))
        return false;
    for (size_t n = 0; n < count; n++)
        ret_uj[n] += s->result[n];
    *ret_rest_uj += s->result[count];
    return true;
}

/* Divide the idle energy of job [i] among its steps: sets ret_uj[] and returns
 * what no step holds. */
static uint64_t divide_idle(struct joule_attributor *s, size_t i,
                            const struct joule_job_use *c,
                            const struct joule_step_use *steps, size_t count,
                            uint64_t *ret_uj)
{
    size_t end = s->words * 64;
    uint64_t job_cpus = find_job_cpus(s, c);
    uint64_t fraction =
        is_placed(s, c) ? s->fraction[i] : spread(s, c, s->fraction[i]);
    uint64_t rest_uj = 0, elsewhere_uj = 0, held = 0;

    memset(ret_uj, 0, count * sizeof(*ret_uj));
    for (size_t p = 0; p < s->part_count; p++)
        memset(s->step_held[p], 0, count * sizeof(s->step_held[p][0]));
    if (fraction > 0) {
        for (size_t cpu = next_cpu(s, s->job, s->job, 0); cpu < end;
             cpu = next_cpu(s, s->job, s->job, cpu + 1))
            s->left[cpu] = s->fraction[i];
        hold_steps(s, i, fraction, job_cpus, JOULE_STEP_NUMBERED, steps, count);
        hold_steps(s, i, fraction, job_cpus, JOULE_STEP_OTHER, steps, count);
    }
    for (size_t p = 0; p < s->part_count; p++) {
        memcpy(s->weight, s->step_held[p], count * sizeof(s->weight[0]));
        held += s->held[p][i];
        if (!give_idle(s, s->idle_uj[p][i], s->held[p][i], count, ret_uj,
                       &rest_uj))
            elsewhere_uj += s->idle_uj[p][i];
    }
    /* Of a part in which the job has no CPU (JOULE_ATTRIBUTION_NODE). */
    memset(s->weight, 0, count * sizeof(s->weight[0]));
    for (size_t p = 0; p < s->part_count; p++)
        for (size_t n = 0; n < count; n++)
            s->weight[n] += s->step_held[p][n];
    if (!give_idle(s, elsewhere_uj, held, count, ret_uj, &rest_uj))
        rest_uj += elsewhere_uj;
    return rest_uj;
}

/* Divide the active energy of the job by CPU time, adding to ret_uj[].  What was
 * estimated for the job is divided among the steps whose CPU time is not known.
 * Returns what belongs to no step. */
static uint64_t divide_active(struct joule_attributor *s,
                              const struct joule_job_energy *energy,
                              const struct joule_step_use *steps, size_t count,
                              uint64_t *ret_uj)
{
    for (size_t n = 0; n < count; n++)
        s->weight[n] = steps[n].cpu_unknown ? 1 + steps[n].cpu_count : 0;
    joule_apportion(energy->estimated_ns, s->weight, count, s->result);
    for (size_t n = 0; n < count; n++)
        s->weight[n] = cut(cut(steps[n].cpu_ns) + s->result[n]);
    s->weight[count] = cut(energy->other_ns);
    if (!joule_apportion(energy->active_uj, s->weight, count + 1, s->result))
        return energy->active_uj;
    for (size_t n = 0; n < count; n++)
        ret_uj[n] += s->result[n];
    return s->result[count];
}

/* What no step holds or accounts for: to the extern step, else by CPUs and
 * time, to the numbered steps if there are any. */
static void give_rest(struct joule_attributor *s, uint64_t rest_uj,
                      const struct joule_step_use *steps, size_t count,
                      uint64_t *ret_uj)
{
    bool numbered = false, given = false;

    for (size_t n = 0; n < count; n++) {
        if (steps[n].kind == JOULE_STEP_EXTERN) {
            ret_uj[n] += rest_uj;
            return;
        }
        numbered |=
            steps[n].kind == JOULE_STEP_NUMBERED && steps[n].present_ns > 0;
    }
    /* A step that has no CPU of its own (--overlap) is charged only if no step
     * has; and no step may have been there for any time. */
    for (int pass = 0; pass < 3 && !given; pass++) {
        for (size_t n = 0; n < count; n++) {
            uint64_t cpus = pass == 0 ? steps[n].cpu_count : 1;
            int64_t ns = pass == 2 ? 1 : steps[n].present_ns;

            if (ns < 0 ||
                (pass < 2 && numbered && steps[n].kind != JOULE_STEP_NUMBERED))
                ns = 0;
            s->weight[n] = cut((joule_u128)cpus * (uint64_t)ns);
        }
        given = joule_apportion(rest_uj, s->weight, count, s->result);
    }
    for (size_t n = 0; n < count; n++)
        ret_uj[n] += s->result[n];
}

void joule_attribute_steps(struct joule_attributor *s, size_t i,
                           const struct joule_job_use *job,
                           const struct joule_job_energy *energy,
                           const struct joule_step_use *steps, size_t count,
                           uint64_t *ret_uj)
{
    uint64_t rest_uj = divide_idle(s, i, job, steps, count, ret_uj);

    rest_uj += divide_active(s, energy, steps, count, ret_uj);
    if (rest_uj)
        give_rest(s, rest_uj, steps, count, ret_uj);
}
