/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/step_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/int128.h"
#include "common/daemon/job_rows.h"
#include "common/energy/counter.h"

/* What is known of a slot beside its row. */
struct slot {
    bool seen;    /* in an interval before: its counters have a baseline */
    bool changed; /* to be published */
    bool leaves;  /* nobody is registered any more */
    bool is_new;  /* not charged yet */
    uint64_t power_uj, power_job_uj; /* as power is the mean since then */
};

/* What is known of a job's counter, at its place in the sample. */
struct job_base {
    uint32_t job;
    bool seen;       /* its counters have a baseline in each part */
    uint64_t cpu_ns; /* JOULE_CPU_UNKNOWN: not read yet */
};

struct joule_step_rows {
    struct joule_ledger *ledger;
    enum joule_attribution attribution;
    uint64_t idle_uw;
    size_t words, part_count;
    bool is_spoiled;  /* the rows made no sense, and began anew */
    bool parts_known; /* totals.part[].uj are of these parts */
    struct joule_attributor *attributor;
    struct joule_job_rows *jobs;
    struct joule_ledger_totals totals;
    int64_t power_ns;  /* when power was found last */
    uint64_t power_uj; /* of the node, then */
    struct joule_row row[JOULE_LEDGER_SLOTS_MAX];
    struct slot slot[JOULE_LEDGER_SLOTS_MAX];
    size_t slots;        /* none has a row from here on */
    uint64_t *job_cpus;  /* of each slot's job, [words] */
    uint64_t *step_cpus; /* of each slot's step, [words] */
    uint64_t *part_ns;   /* of each slot: baseline, [part_count] */
    uint64_t *used_ns;   /* of each slot: in this interval */
    struct job_base job[JOULE_LEDGER_SLOTS_MAX];
    uint64_t *job_part_ns, *job_used_ns; /* the same of each job */
};

static uint64_t *of_slot(uint64_t *array, size_t slot, size_t each)
{
    return array + slot * each;
}

/* Go on with what is in the ledger. */
static void load(struct joule_step_rows *c, uint64_t part_key)
{
    struct joule_ledger_totals *t = &c->totals;

    c->slots = JOULE_LEDGER_SLOTS_MAX;
    if (joule_ledger_read(c->ledger, t, c->row, &c->slots) < 0) {
        c->is_spoiled = errno != ENODATA;
        c->slots = 0;
        memset(t, 0, sizeof(*t));
        memset(c->row, 0, sizeof(c->row));
    }
    c->power_ns = t->mono_ns;
    c->power_uj = t->charged_uj;
    c->parts_known = t->part_key == part_key && t->part_count == c->part_count;
    if (!c->parts_known) {
        memset(t->part, 0, sizeof(t->part));
        t->components = 0;
    }
    t->part_key = part_key;
    t->part_count = c->part_count;
    t->how = c->attribution + 1;
    for (size_t i = 0; i < c->slots; i++) {
        uint64_t *job_cpus = of_slot(c->job_cpus, i, c->words);
        uint64_t *step_cpus = of_slot(c->step_cpus, i, c->words);

        if (c->row[i].owner == 0)
            continue;
        c->slot[i].power_uj = c->row[i].uj;
        c->slot[i].power_job_uj = c->row[i].job_uj;
        if (joule_ledger_cpus_of(c->ledger, (unsigned)i, c->row[i].owner,
                                 job_cpus, step_cpus) < 0) {
            memset(job_cpus, 0, c->words * sizeof(*job_cpus));
            memset(step_cpus, 0, c->words * sizeof(*step_cpus));
        }
    }
}

struct joule_step_rows *
joule_step_rows_create(const struct joule_step_rows_options *o,
                       struct joule_error *err)
{
    struct joule_step_rows *c = calloc(1, sizeof(*c));
    int saved;

    if (!c)
        goto fail;
    c->ledger = o->ledger;
    c->attribution = o->attribution;
    c->idle_uw = o->idle_uw;
    c->words = joule_ledger_words(o->ledger);
    c->part_count = o->part_count;
    c->attributor =
        joule_attributor_create(c->words, o->part_cpus, o->part_count);
    if (!c->attributor)
        goto fail;
    c->jobs = joule_job_rows_create(c->words, c->part_count);
    c->job_cpus = calloc(JOULE_LEDGER_SLOTS_MAX * c->words, sizeof(uint64_t));
    c->step_cpus = calloc(JOULE_LEDGER_SLOTS_MAX * c->words, sizeof(uint64_t));
    c->part_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * c->part_count, sizeof(*c->part_ns));
    c->used_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * c->part_count, sizeof(*c->used_ns));
    c->job_part_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * c->part_count, sizeof(*c->part_ns));
    c->job_used_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * c->part_count, sizeof(*c->used_ns));
    if (!c->jobs || !c->job_cpus || !c->step_cpus || !c->part_ns ||
        !c->used_ns || !c->job_part_ns || !c->job_used_ns) {
        errno = ENOMEM;
        goto fail;
    }
    load(c, o->part_key);
    return c;
fail:
    saved = errno;
    joule_step_rows_destroy(c);
    joule_error_set(err, saved, "cannot attribute energy: %s", strerror(saved));
    return NULL;
}

bool joule_step_rows_is_spoiled(const struct joule_step_rows *c)
{
    return c->is_spoiled;
}

void joule_step_rows_destroy(struct joule_step_rows *c)
{
    if (!c)
        return;
    joule_attributor_destroy(c->attributor);
    joule_job_rows_destroy(c->jobs);
    free(c->job_cpus);
    free(c->step_cpus);
    free(c->part_ns);
    free(c->used_ns);
    free(c->job_part_ns);
    free(c->job_used_ns);
    free(c);
}

/* No row is behind the last one. */
static void trim(struct joule_step_rows *c)
{
    while (c->slots > 0 && c->row[c->slots - 1].owner == 0)
        c->slots--;
}

static void drop_row(struct joule_step_rows *c, size_t i)
{
    c->totals.gone_uj += c->row[i].uj;
    memset(&c->row[i], 0, sizeof(c->row[i]));
    c->slot[i] = (struct slot){.changed = true};
}

static void new_row(struct joule_step_rows *c, size_t i,
                    const struct joule_registration *r,
                    const uint64_t *job_cpus, const uint64_t *step_cpus,
                    int64_t now_ns)
{
    struct joule_row *row = &c->row[i];

    *row = (struct joule_row){
        .owner = r->owner,
        .job = r->job,
        .step = r->step,
        .uid = r->uid,
        .kind = (uint16_t)r->kind,
        .state = JOULE_ROW_RUNNING,
        .cpu_count = r->cpu_count,
        .job_cpu_count = r->job_cpu_count,
        .began_ns = r->began_ns < now_ns ? r->began_ns : now_ns,
        .job_cpu_ns = JOULE_CPU_UNKNOWN,
    };
    memcpy(of_slot(c->job_cpus, i, c->words), job_cpus,
           c->words * sizeof(*job_cpus));
    memcpy(of_slot(c->step_cpus, i, c->words), step_cpus,
           c->words * sizeof(*step_cpus));
    c->slot[i] = (struct slot){.changed = true, .is_new = true};
}

/* The row of a slot that somebody else has now, or nobody. */
static void change_owner(struct joule_step_rows *c, size_t i, int64_t now_ns)
{
    uint64_t job_cpus[JOULE_LEDGER_WORDS_MAX];
    uint64_t step_cpus[JOULE_LEDGER_WORDS_MAX];
    struct joule_registration r;
    struct joule_row *row = &c->row[i];
    bool there = joule_ledger_registered(c->ledger, (unsigned)i, &r, job_cpus,
                                         step_cpus) == 0;

    if (!there && errno == EBADMSG)
        c->totals.refused++;
    c->slot[i].leaves = row->owner && (!there || r.owner != row->owner);
    if (c->slot[i].leaves && there)
        drop_row(c, i);
    if (there && row->owner == 0)
        new_row(c, i, &r, job_cpus, step_cpus, now_ns);
}

/* The row of a slot as it is registered now. */
static void follow_slot(struct joule_step_rows *c, size_t i, int64_t now_ns)
{
    struct joule_row *row = &c->row[i];
    int64_t ended_ns;

    c->slot[i].leaves = false;
    if (joule_ledger_owner_of(c->ledger, (unsigned)i) != row->owner)
        change_owner(c, i, now_ns);
    if (row->owner == 0 || row->ended_ns)
        return;
    ended_ns = joule_ledger_ended(c->ledger, (unsigned)i, row->owner);
    if (ended_ns > 0)
        row->ended_ns = ended_ns < now_ns ? ended_ns : now_ns;
}

/* What counters have grown by in each part; the baseline moves on. */
static void use_parts(const struct joule_step_rows *c, bool seen,
                      uint64_t *base, uint64_t *used, const uint64_t *now)
{
    if (!seen)
        memset(base, 0, c->part_count * sizeof(*base));
    for (size_t p = 0; p < c->part_count; p++) {
        used[p] = now[p] > base[p] ? now[p] - base[p] : 0;
        base[p] = now[p];
    }
}

/* What a slot's counters have grown by. */
static void use(struct joule_step_rows *c, size_t i,
                const struct joule_step_cpu_time *u,
                struct joule_job_rows_step *step)
{
    struct joule_row *row = &c->row[i];
    struct slot *slot = &c->slot[i];
    uint64_t *base = of_slot(c->part_ns, i, c->part_count);
    uint64_t *used = of_slot(c->used_ns, i, c->part_count);
    bool is_new = row->cpu_ns == 0, has_base = slot->seen || is_new;

    if (u && u->state == JOULE_USAGE_GONE)
        return;
    if (!u || u->state != JOULE_USAGE_KNOWN) {
        /* Nobody has looked at what has only just been registered. */
        if (!u && is_new && row->began_ns >= c->totals.mono_ns)
            return;
        slot->seen = false;
        row->cpu_ns = JOULE_CPU_UNKNOWN;
        step->cpu_unknown = true;
    } else if (row->cpu_ns == JOULE_CPU_UNKNOWN) {
        step->cpu_unknown = true;
        row->cpu_ns = u->cpu_ns;
    } else {
        bool back = u->cpu_ns < row->cpu_ns;

        step->cpu_ns = back ? 0 : u->cpu_ns - row->cpu_ns;
        row->backwards += back;
        c->totals.backwards += back;
        row->cpu_ns = u->cpu_ns;
    }
    row->unknown += step->cpu_unknown;
    c->totals.unknown += step->cpu_unknown;
    if (u && u->state == JOULE_USAGE_KNOWN && u->stepd_ns > row->stepd_ns) {
        step->stepd_ns = u->stepd_ns - row->stepd_ns;
        row->stepd_ns = u->stepd_ns;
    }
    if (!u || u->state != JOULE_USAGE_KNOWN || !u->part_ns)
        return;
    use_parts(c, slot->seen, base, used, u->part_ns);
    if (has_base && !step->cpu_unknown)
        step->part_ns = used;
    slot->seen = true;
}

/* The CPU time of a step that has ended: its own word, where nobody was there
 * to read it while it could be read.  A slurmd that comes back then, and finds
 * slurmstepd without its tasks and their group, reads 0. */
static const struct joule_step_cpu_time *
last_word(struct joule_step_rows *c, size_t i,
          const struct joule_step_cpu_time *u, struct joule_step_cpu_time *own)
{
    const struct joule_row *row = &c->row[i];

    if (row->ended_ns == 0)
        return u;
    *own =
        (struct joule_step_cpu_time){.owner = row->owner,
                                     .state = JOULE_USAGE_KNOWN,
                                     .cpu_ns = joule_ledger_reported_cpu(
                                         c->ledger, (unsigned)i, row->owner)};
    if (own->cpu_ns == JOULE_CPU_UNKNOWN || own->cpu_ns < row->cpu_ns)
        return u;
    if (u && u->state == JOULE_USAGE_KNOWN && u->cpu_ns > 0 &&
        u->cpu_ns >= row->cpu_ns)
        return u;
    return own;
}

static void add_step(struct joule_step_rows *c, size_t i,
                     const struct joule_step_rows_sample *s)
{
    struct joule_row *row = &c->row[i];
    struct joule_step_cpu_time own;
    const struct joule_step_cpu_time *u =
        i < s->usage_count && s->usage[i].owner == row->owner ? &s->usage[i]
                                                              : NULL;
    struct joule_job_rows_step step = {
        .row = row,
        .job_cpus = of_slot(c->job_cpus, i, c->words),
        .step_cpus = of_slot(c->step_cpus, i, c->words),
        .from_ns = c->totals.mono_ns,
        .to_ns = row->ended_ns ? row->ended_ns : s->mono_ns,
    };

    if (row->began_ns > step.from_ns)
        step.from_ns = row->began_ns;
    if (c->slot[i].is_new)
        step.ret_job_uj = &c->slot[i].power_job_uj;
    c->slot[i].is_new = false;
    row->components |= s->components;
    use(c, i, last_word(c, i, u, &own), &step);
    c->slot[i].changed = true;
    joule_job_rows_add(c->jobs, &step);
}

/* What a job's own counter has grown by is the job's CPU time, whatever its
 * steps say. */
static void use_job(struct joule_step_rows *c, size_t i,
                    const struct joule_job_cpu_time *now)
{
    struct job_base *base = &c->job[i];
    uint64_t *part_base = of_slot(c->job_part_ns, i, c->part_count);
    uint64_t *used = of_slot(c->job_used_ns, i, c->part_count);
    uint64_t before_ns;
    bool has_base;

    if (base->job != now->job)
        *base = (struct job_base){.job = now->job, .cpu_ns = JOULE_CPU_UNKNOWN};
    if (now->job == 0 || now->state == JOULE_USAGE_UNKNOWN)
        return;
    if (now->state == JOULE_USAGE_GONE) {
        base->cpu_ns = 0;
        base->seen = false;
        joule_job_rows_without_group(c->jobs, now->job);
        return;
    }
    before_ns = base->cpu_ns;
    has_base = now->part_ns && (base->seen || before_ns == 0);
    if (now->part_ns)
        use_parts(c, base->seen, part_base, used, now->part_ns);
    base->cpu_ns = now->cpu_ns;
    base->seen = now->part_ns != NULL;
    if (!joule_job_rows_use(c->jobs, now->job, now->cpu_ns, before_ns,
                            has_base ? used : NULL) &&
        before_ns != JOULE_CPU_UNKNOWN && now->cpu_ns > before_ns)
        c->totals.stray_ns += now->cpu_ns - before_ns;
}

static void gather(struct joule_step_rows *c,
                   const struct joule_step_rows_sample *s)
{
    size_t taken = joule_ledger_taken(c->ledger);

    joule_job_rows_begin(c->jobs);
    if (taken > c->slots)
        c->slots = taken;
    for (size_t i = 0; i < c->slots; i++) {
        follow_slot(c, i, s->mono_ns);
        if (c->row[i].state == JOULE_ROW_RUNNING) {
            add_step(c, i, s);
        } else if (c->row[i].state == JOULE_ROW_ENDED) {
            joule_job_rows_note(c->jobs, &c->row[i]);
            c->slot[i].changed |= c->row[i].mw || c->row[i].job_mw;
            c->row[i].mw = c->row[i].job_mw = 0;
        }
    }
    for (size_t i = 0; i < s->job_count; i++)
        use_job(c, i, &s->jobs[i]);
    c->totals.foreign += s->foreign;
}

static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* Divide by the parts' own energy, if there is any, else by their CPUs. */
static void divide(struct joule_step_rows *c, uint64_t total,
                   const uint64_t *uj, uint64_t *ret)
{
    uint64_t weight[JOULE_PARTS_MAX], most = 0;

    for (size_t p = 0; p < c->part_count; p++)
        if (uj && uj[p] > most)
            most = uj[p];
    for (size_t p = 0; p < c->part_count; p++) {
        uint64_t w = uj ? uj[p] : 0;

        for (uint64_t m = most; m > JOULE_CPU_NS_MAX; m >>= 1)
            w >>= 1;
        weight[p] = w;
    }
    if (joule_apportion(total, weight, c->part_count, ret))
        return;
    for (size_t p = 0; p < c->part_count; p++)
        weight[p] = joule_attributor_cpus(c->attributor, p);
    if (!joule_apportion(total, weight, c->part_count, ret))
        ret[0] = total;
}

/* What the components of each part have used of its energy.  Counters and a
 * meter of the node never quite agree: no more than the whole. */
static void measure_components(const struct joule_step_rows *c,
                               const struct joule_step_rows_sample *s,
                               struct joule_node_part *parts)
{
    uint64_t known = c->totals.components & s->components;

    for (size_t p = 0; p < c->part_count; p++) {
        const uint64_t *before = c->totals.part[p].component_uj;
        const uint64_t *now = s->component_uj + p * JOULE_COMPONENTS;
        uint64_t *uj = parts[p].component_uj, sum = 0;

        for (size_t k = 0; k < JOULE_COMPONENTS; k++) {
            uj[k] = known >> k & 1 ? growth(now[k], before[k]) : 0;
            uj[k] = uj[k] < JOULE_CPU_NS_MAX ? uj[k] : JOULE_CPU_NS_MAX;
            sum += uj[k];
        }
        if (sum > parts[p].delta_uj) {
            uint64_t weight[JOULE_COMPONENTS];

            memcpy(weight, uj, sizeof(weight));
            joule_apportion(parts[p].delta_uj, weight, JOULE_COMPONENTS, uj);
        }
    }
}

/* What has been learned of one sensor says nothing of another. */
static void follow_sensors(struct joule_step_rows *c, uint64_t sensor_key)
{
    struct joule_ledger_totals *t = &c->totals;

    if (sensor_key == 0 || sensor_key == t->sensor_key)
        return;
    t->sensor_key = sensor_key;
    for (size_t p = 0; p < c->part_count; p++)
        memset(&t->part[p].idle_power, 0, sizeof(t->part[p].idle_power));
}

/* Energy, idle energy and CPU time of each part in this interval. */
static uint64_t measure(struct joule_step_rows *c,
                        const struct joule_step_rows_sample *s, int64_t ns,
                        struct joule_node_part *parts)
{
    struct joule_ledger_totals *t = &c->totals;
    bool same = s->node_since_ns == t->node_since_ns;
    uint64_t delta_uj = same ? growth(s->node_uj, t->node_uj) : 0;
    uint64_t own[JOULE_PARTS_MAX], uj[JOULE_PARTS_MAX], idle[JOULE_PARTS_MAX];
    joule_u128 idle_uj = (joule_u128)c->idle_uw * (uint64_t)ns / 1000000000;
    bool whole = s->measured_ns <= t->mono_ns;
    bool known = c->parts_known && s->part_uj && whole;
    bool learns = whole && !s->gap &&
                  (s->sensor_key == 0 || s->sensor_key == t->sensor_key);

    follow_sensors(c, s->sensor_key);
    for (size_t p = 0; known && p < c->part_count; p++)
        own[p] = growth(s->part_uj[p], t->part[p].uj);
    divide(c, delta_uj, known ? own : NULL, uj);
    divide(c, idle_uj < UINT64_MAX ? (uint64_t)idle_uj : UINT64_MAX, NULL,
           idle);
    for (size_t p = 0; p < c->part_count; p++) {
        struct joule_ledger_part *part = &t->part[p];

        if (learns)
            joule_idle_power_add(&part->idle_power, uj[p], ns);
        else
            joule_idle_power_gap(&part->idle_power);
        parts[p] = (struct joule_node_part){
            .delta_uj = uj[p],
            .idle_uj = c->idle_uw ? idle[p]
                                  : joule_idle_power_uj(&part->idle_power, ns),
            .debt_ns = part->debt_ns,
        };
        if (!s->part_busy_ns || !part->busy_known ||
            s->part_busy_ns[p] < part->busy_ns)
            continue;
        parts[p].busy_known = true;
        parts[p].busy_ns = s->part_busy_ns[p] - part->busy_ns;
    }
    if (whole && s->components)
        measure_components(c, s, parts);
    return delta_uj;
}

/* The next interval begins here. */
static void move_on(struct joule_step_rows *c,
                    const struct joule_step_rows_sample *s)
{
    struct joule_ledger_totals *t = &c->totals;

    t->mono_ns = s->mono_ns;
    if (s->node_uj > t->node_uj || s->node_since_ns != t->node_since_ns)
        t->node_uj = s->node_uj;
    t->node_since_ns = s->node_since_ns;
    for (size_t p = 0; p < c->part_count; p++) {
        t->part[p].uj = s->part_uj ? s->part_uj[p] : 0;
        t->part[p].busy_known = s->part_busy_ns != NULL;
        t->part[p].busy_ns = s->part_busy_ns ? s->part_busy_ns[p] : 0;
        for (size_t k = 0; k < JOULE_COMPONENTS; k++)
            t->part[p].component_uj[k] =
                s->components ? s->component_uj[p * JOULE_COMPONENTS + k] : 0;
    }
    t->components = s->components;
    c->parts_known = s->part_uj != NULL;
}

static void find_power(struct joule_step_rows *c)
{
    struct joule_ledger_totals *t = &c->totals;
    int64_t ns = t->mono_ns - c->power_ns;

    if (ns < JOULE_LEDGER_POWER_NS)
        return;
    t->node_mw = joule_mean_mw(t->charged_uj - c->power_uj, ns);
    c->power_ns = t->mono_ns;
    c->power_uj = t->charged_uj;
    for (size_t i = 0; i < c->slots; i++) {
        struct joule_row *row = &c->row[i];
        struct slot *slot = &c->slot[i];
        int64_t row_ns = t->mono_ns - row->began_ns;

        if (row->state != JOULE_ROW_RUNNING)
            continue;
        /* Of a row that is younger than that, since it began. */
        row_ns = row_ns < ns ? row_ns : ns;
        row->mw = joule_mean_mw(row->uj - slot->power_uj, row_ns);
        row->job_mw = joule_mean_mw(row->job_uj - slot->power_job_uj, row_ns);
        slot->power_uj = row->uj;
        slot->power_job_uj = row->job_uj;
    }
}

static void publish(struct joule_step_rows *c)
{
    struct joule_ledger_totals *t = &c->totals;
    uint64_t rows_uj = 0;

    for (size_t i = 0; i < c->slots; i++) {
        struct joule_row *row = &c->row[i];

        if (row->state == JOULE_ROW_RUNNING && row->ended_ns)
            row->state = JOULE_ROW_ENDED;
        if (c->slot[i].leaves)
            drop_row(c, i);
        rows_uj += row->uj;
    }
    if (rows_uj + t->gone_uj != t->jobs_uj ||
        t->jobs_uj + t->unallocated_uj + t->system_uj !=
            t->charged_uj + t->multiple_uj)
        t->faults++;
    for (size_t i = 0; i < c->slots; i++) {
        if (c->slot[i].changed)
            joule_ledger_stage(c->ledger, (unsigned)i, &c->row[i]);
        c->slot[i].changed = false;
    }
    trim(c);
    t->surplus = joule_ledger_surplus(c->ledger);
    joule_ledger_publish(c->ledger, t);
}

const struct joule_ledger_totals *
joule_step_rows_update(struct joule_step_rows *c,
                       const struct joule_step_rows_sample *s)
{
    struct joule_node_part parts[JOULE_PARTS_MAX];
    struct joule_ledger_totals *t = &c->totals;
    struct joule_attribution_rest rest;
    int64_t ns = s->mono_ns - t->mono_ns;
    uint64_t delta_uj;

    if (t->begun_ns == 0) {
        t->begun_ns = s->mono_ns;
        c->power_ns = s->mono_ns;
        t->sensor_key = s->sensor_key;
        move_on(c, s);
        gather(c, s);
        publish(c);
        return t;
    }
    if (ns <= 0)
        return t;
    gather(c, s);
    delta_uj = measure(c, s, ns, parts);
    t->jobs_uj += joule_job_rows_attribute(c->jobs, c->attributor,
                                           c->attribution, ns, parts, &rest);
    t->unallocated_uj += rest.unallocated_uj;
    t->system_uj += rest.system_uj;
    t->multiple_uj += rest.multiple_uj;
    t->charged_uj += delta_uj;
    t->intervals++;
    for (size_t p = 0; p < c->part_count; p++)
        t->part[p].debt_ns = parts[p].debt_ns;
    move_on(c, s);
    find_power(c);
    publish(c);
    return t;
}

const struct joule_row *joule_step_rows_list(const struct joule_step_rows *c,
                                             size_t *ret_count)
{
    *ret_count = c->slots;
    return c->row;
}
