/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/region_energy.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment.h"

/* Kind of a row that is a sum without times (region_reader.h). */
#define LOST (JOULE_REGION_MARK + 1)

/* Where all processes together use less than this part of a CPU, what is missing
 * goes to all of them evenly: a few microseconds do not decide while all sleep. */
#define LEAST_CPU 0.02

/* No more than a rounding, and no division by 0. */
#define LEAST_RATE 1e-9

#define THREADS (JOULE_SEGMENT_THREADS + 1) /* the last: not told apart */

/* Parts of the time within a row that stands for many regions. */
#define DUTIES 256

/* ---- energy over time ---- */

/* A sum that grows evenly between its points. */
struct curve {
    double *ns, *value;
    size_t count;
    size_t at; /* where the last look was */
};

static double value_at(struct curve *c, double ns)
{
    size_t i = c->at;

    if (c->count == 0 || ns <= c->ns[0])
        return c->count ? c->value[0] : 0;
    if (ns >= c->ns[c->count - 1])
        return c->value[c->count - 1];
    if (ns < c->ns[i] || ns > c->ns[i + 1]) {
        size_t low = ns < c->ns[i] ? 0 : i, high = c->count - 1;

        /* Most looks are near the one before. */
        if (i + 2 < c->count && ns > c->ns[i] && ns <= c->ns[i + 2])
            low = i + 1, high = i + 2;
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;

            if (c->ns[middle] <= ns)
                low = middle;
            else
                high = middle;
        }
        i = c->at = low;
    }
    return c->value[i] + (c->value[i + 1] - c->value[i]) * (ns - c->ns[i]) /
                             (c->ns[i + 1] - c->ns[i]);
}

static int curve_alloc(struct curve *c, size_t room)
{
    memset(c, 0, sizeof(*c));
    c->ns = calloc(room + 1, sizeof(*c->ns));
    c->value = calloc(room + 1, sizeof(*c->value));
    return c->ns && c->value ? 0 : -1;
}

static void curve_free(struct curve *c)
{
    free(c->ns);
    free(c->value);
}

/* Points in the order of time; one that is not later, or less, is left out. */
static void curve_add(struct curve *c, double ns, double value)
{
    if (c->count > 0 && ns <= c->ns[c->count - 1])
        return;
    if (c->count > 0 && value < c->value[c->count - 1])
        value = c->value[c->count - 1];
    c->ns[c->count] = ns;
    c->value[c->count++] = value;
}

static double slope_of(const struct curve *c, size_t i)
{
    return (c->value[i + 1] - c->value[i]) / (c->ns[i + 1] - c->ns[i]);
}

/*
 * Power, or use of CPUs, that changes within a row, and is even before and after
 * it, changed at the moment at which the rows beside it meet: a point is put there.
 * Without it a region that begins at such a change would lose up to a row's time
 * to the one before.
 */
static int sharpen(struct curve *c)
{
    struct curve fine;

    if (curve_alloc(&fine, 2 * c->count) < 0)
        return -1;
    for (size_t i = 0; i < c->count; i++) {
        curve_add(&fine, c->ns[i], c->value[i]);
        if (i > 0 && i + 2 < c->count) {
            double before = slope_of(c, i - 1), after = slope_of(c, i + 1);
            double part = (after - slope_of(c, i)) / (after - before);
            double ns = part * (c->ns[i + 1] - c->ns[i]);

            if (part > 0 && part < 1)
                curve_add(&fine, c->ns[i] + ns, c->value[i] + before * ns);
        }
    }
    curve_free(c);
    *c = fine;
    return 0;
}

static int compare_times(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

/* A point at each of [times], which are sorted here, within the curve. */
static int split(struct curve *c, double *times, size_t count)
{
    struct curve fine;
    size_t i = 0, k = 0;

    if (curve_alloc(&fine, c->count + count) < 0)
        return -1;
    qsort(times, count, sizeof(*times), compare_times);
    while (i < c->count) {
        if (k < count && times[k] < c->ns[i]) {
            if (times[k] > c->ns[0])
                curve_add(&fine, times[k], value_at(c, times[k]));
            k++;
        } else {
            curve_add(&fine, c->ns[i], c->value[i]);
            i++;
        }
    }
    curve_free(c);
    *c = fine;
    return 0;
}

/* ---- what is worked on ---- */

struct event {
    double ns;
    uint32_t row;
    bool is_end;
};

struct thread {
    uint32_t *rows; /* it is in these, outermost first */
    size_t count, room;
    double seen; /* of the process's energy for each thread */
};

struct work {
    const struct joule_region_step *step;
    struct curve energy;
    uint32_t *order; /* rows by process, or by region and process */
    struct event *events;
    /* of all processes, in each interval of the energy */
    double *cpu_sum, *there_sum;
    struct curve *cpu;
    double *share, *total; /* of each row */
    struct thread threads[THREADS];
};

static const struct joule_region_row *row_of(const struct work *w, uint32_t i)
{
    return &w->step->row[i];
}

static double duty_of(const struct joule_region_row *row)
{
    double length = (double)(row->end_ns - row->begin_ns);

    return row->count <= 1 || length <= 0 ? 1 : (double)row->time_ns / length;
}

static bool is_timed(const struct joule_region_row *row)
{
    /* As times are compared: some are not told apart. */
    return row->kind < JOULE_REGION_MARK &&
           (double)row->end_ns > (double)row->begin_ns;
}

static bool is_sound(const struct joule_region_step *step,
                     const struct joule_region_row *row)
{
    return row->process < step->processes && row->region < step->regions &&
           row->kind <= LOST && row->end_ns >= row->begin_ns &&
           (row->kind == LOST || row->time_ns <= row->end_ns - row->begin_ns);
}

static int compare_events(const void *pa, const void *pb)
{
    const struct event *a = pa, *b = pb;

    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    return b->is_end - a->is_end;
}

/* Begins and ends of [rows], in the order of time. */
static size_t make_events(struct work *w, const uint32_t *rows, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct joule_region_row *row = row_of(w, rows[i]);

        if (!is_timed(row))
            continue;
        w->events[n++] = (struct event){(double)row->begin_ns, rows[i], false};
        w->events[n++] = (struct event){(double)row->end_ns, rows[i], true};
    }
    qsort(w->events, n, sizeof(*w->events), compare_events);
    return n;
}

/* ---- processes ---- */

static double overlap(double from, double to, double begin, double end)
{
    double left = from > begin ? from : begin, right = to < end ? to : end;

    return right > left ? right - left : 0;
}

static double time_in(const struct work *w, size_t p, size_t i)
{
    const struct joule_region_process *process = &w->step->process[p];

    return overlap(w->energy.ns[i], w->energy.ns[i + 1],
                   (double)process->begin_ns, (double)process->end_ns);
}

static double cpu_in(struct work *w, size_t p, size_t i)
{
    return value_at(&w->cpu[p], w->energy.ns[i + 1]) -
           value_at(&w->cpu[p], w->energy.ns[i]);
}

/* The first interval of the energy in which a process may be; *ret_end is behind the
 * last one. */
static size_t intervals_of(const struct work *w, size_t p, size_t *ret_end)
{
    const struct joule_region_process *process = &w->step->process[p];
    const struct curve *c = &w->energy;
    size_t low = 0, high = c->count ? c->count - 1 : 0, first;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (c->ns[middle] <= (double)process->begin_ns)
            low = middle;
        else
            high = middle;
    }
    for (first = low;
         low + 1 < c->count && c->ns[low] < (double)process->end_ns; low++)
        continue;
    *ret_end = low;
    return first;
}

/* CPU time and presence of all processes in each interval of the energy. */
static void add_all(struct work *w)
{
    for (size_t p = 0, end; p < w->step->processes; p++)
        for (size_t i = intervals_of(w, p, &end); i < end; i++) {
            double there = time_in(w, p, i);

            if (there > 0)
                w->cpu_sum[i] += cpu_in(w, p, i);
            w->there_sum[i] += there;
        }
}

/* The process's part of interval [i] of the energy. */
static double part_of(struct work *w, size_t p, size_t i)
{
    double least = LEAST_CPU * (w->energy.ns[i + 1] - w->energy.ns[i]);
    double there = time_in(w, p, i), cpu;

    if (there <= 0)
        return 0;
    cpu = cpu_in(w, p, i);
    if (w->cpu_sum[i] >= least)
        return cpu / w->cpu_sum[i];
    return (cpu + (least - w->cpu_sum[i]) * there / w->there_sum[i]) / least;
}

/* The weight of the time from [from] to [to] among the process's energy of an
 * interval, in which others use [others] CPUs: its part of what all use then. */
static double weight_of(struct curve *cpu, double from, double to,
                        double others)
{
    double used = value_at(cpu, to) - value_at(cpu, from);
    double rate = used / (to - from) + LEAST_RATE;

    return (to - from) * rate / (rate + others);
}

/* [energy] more, from [from] to [to], over time as the process had its part of it.
 * [*at] is the next point of its CPU time. */
static void add_as_used(struct curve *own, struct curve *cpu, size_t *at,
                        double from, double to, double others, double sum,
                        double energy)
{
    double all = 0, done = 0, ns = from;
    size_t first, i;

    while (*at < cpu->count && cpu->ns[*at] <= from)
        ++*at;
    for (first = i = *at; i < cpu->count && cpu->ns[i] < to; ns = cpu->ns[i++])
        all += weight_of(cpu, ns, cpu->ns[i], others);
    all += weight_of(cpu, ns, to, others);
    curve_add(own, from, sum);
    for (i = first, ns = from; i < cpu->count && cpu->ns[i] < to;
         ns = cpu->ns[i++]) {
        done += weight_of(cpu, ns, cpu->ns[i], others);
        curve_add(own, cpu->ns[i], sum + energy * done / all);
    }
    *at = i;
    curve_add(own, to, sum + energy);
}

/* The process's own energy over time. */
static int own_curve(struct work *w, size_t p, struct curve *own)
{
    const struct joule_region_process *process = &w->step->process[p];
    double sum = 0;
    size_t at = 0, end, first = intervals_of(w, p, &end);

    if (curve_alloc(own, 2 * (end - first) + w->cpu[p].count) < 0)
        return -1;
    for (size_t i = first; i < end; i++) {
        double part = part_of(w, p, i), from = w->energy.ns[i],
               to = w->energy.ns[i + 1], energy, others;

        if (part <= 0)
            continue;
        if (from < (double)process->begin_ns)
            from = (double)process->begin_ns;
        if (to > (double)process->end_ns)
            to = (double)process->end_ns;
        energy = (w->energy.value[i + 1] - w->energy.value[i]) * part;
        others = (w->cpu_sum[i] - cpu_in(w, p, i)) /
                 (w->energy.ns[i + 1] - w->energy.ns[i]);
        /* Where all sleep, evenly. */
        if (w->cpu_sum[i] < LEAST_CPU * (w->energy.ns[i + 1] - w->energy.ns[i]))
            others = 0;
        add_as_used(own, &w->cpu[p], &at, from, to, others > 0 ? others : 0,
                    sum, energy);
        sum += energy;
    }
    return 0;
}

/* ---- shares ---- */

static void add_row(const struct work *w, struct thread *t, uint32_t row)
{
    size_t at = t->count++;

    while (at > 0 &&
           row_of(w, t->rows[at - 1])->depth > row_of(w, row)->depth) {
        t->rows[at] = t->rows[at - 1];
        at--;
    }
    t->rows[at] = row;
}

static void remove_row(struct thread *t, uint32_t row)
{
    size_t at = 0;

    while (t->rows[at] != row)
        at++;
    memmove(&t->rows[at], &t->rows[at + 1],
            (--t->count - at) * sizeof(*t->rows));
}

static bool is_in_itself(const struct work *w, const struct thread *t, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (row_of(w, t->rows[k])->region == row_of(w, t->rows[i])->region &&
            row_of(w, t->rows[k])->depth < row_of(w, t->rows[i])->depth)
            return true;
    return false;
}

/* The part of its time that the thread was in regions of the depth of row [i], of
 * which *ret_end is the first that is deeper. */
static double level_duty(const struct work *w, const struct thread *t, size_t i,
                         size_t *ret_end)
{
    double duty = 0;
    size_t end = i;

    for (; end < t->count &&
           row_of(w, t->rows[end])->depth == row_of(w, t->rows[i])->depth;
         end++)
        duty += duty_of(row_of(w, t->rows[end]));
    *ret_end = end;
    return duty;
}

/* [energy] more for the thread: to each depth what is not in the next. */
static void give(struct work *w, const struct thread *t, double energy)
{
    double outer = 1, duty, next_duty, level, next_level;
    size_t i, end, next_end;

    if (energy <= 0 || t->count == 0)
        return;
    duty = level_duty(w, t, 0, &end);
    level = duty < outer ? duty : outer;
    for (i = 0; i < t->count; i = end, end = next_end) {
        next_duty = end < t->count ? level_duty(w, t, end, &next_end) : 0;
        if (end == t->count)
            next_end = end;
        next_level = next_duty < level ? next_duty : level;
        for (size_t k = i; k < end && duty > 0; k++) {
            double part = energy * duty_of(row_of(w, t->rows[k])) / duty;

            w->share[t->rows[k]] += part * (level - next_level);
            if (!is_in_itself(w, t, k))
                w->total[t->rows[k]] += part * level;
        }
        duty = next_duty;
        level = next_level;
    }
}

static int reserve(struct thread *t)
{
    size_t room = t->room ? 2 * t->room : 8;
    uint32_t *more;

    if (t->count < t->room)
        return 0;
    more = reallocarray(t->rows, room, sizeof(*more));
    if (!more)
        return -1;
    t->rows = more;
    t->room = room;
    return 0;
}

/* Divide a process's energy among the rows [rows] of it. */
static int divide_process(struct work *w, size_t p, const uint32_t *rows,
                          size_t count)
{
    size_t n = make_events(w, rows, count), busy = 0;
    double before = 0, each = 0; /* for each thread that is in a region */
    struct curve own;
    int rc = own_curve(w, p, &own);

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct event *e = &w->events[i];
        uint64_t number = row_of(w, e->row)->thread;
        struct thread *t = &w->threads[number < THREADS ? number : THREADS - 1];
        double now = value_at(&own, e->ns);

        if (busy > 0)
            each += (now - before) / (double)busy;
        before = now;
        give(w, t, each - t->seen);
        t->seen = each;
        busy -= t->count > 0;
        if (e->is_end)
            remove_row(t, e->row);
        else if ((rc = reserve(t)) == 0)
            add_row(w, t, e->row);
        busy += t->count > 0;
    }
    for (size_t i = 0; i < THREADS; i++)
        w->threads[i].seen = 0, w->threads[i].count = 0;
    curve_free(&own);
    return rc;
}

/* ---- windows ---- */

/* The step's energy, and the time, while any of [rows] was under way. */
static void measure_window(struct work *w, const uint32_t *rows, size_t count,
                           struct joule_region_use *use)
{
    size_t n = make_events(w, rows, count), most = 0;
    size_t open[DUTIES + 1] = {0}; /* by the part of the time they take */
    double before_ns = 0, before = 0, ns = 0, uj = 0;

    for (size_t i = 0; i < n; i++) {
        const struct event *e = &w->events[i];
        size_t duty = (size_t)lround(duty_of(row_of(w, e->row)) * DUTIES);
        double now = value_at(&w->energy, e->ns);

        ns += (e->ns - before_ns) * (double)most / DUTIES;
        uj += (now - before) * (double)most / DUTIES;
        before_ns = e->ns;
        before = now;
        if (duty > DUTIES)
            duty = DUTIES;
        open[duty] += e->is_end ? (size_t)-1 : 1;
        for (most = DUTIES; most > 0 && open[most] == 0; most--)
            continue;
    }
    use->window_ns = (uint64_t)llround(ns);
    use->window_uj = (uint64_t)llround(uj);
}

/* ---- the whole ---- */

static int by_process(const void *pa, const void *pb, void *arg)
{
    const struct joule_region_row *rows = arg;
    const struct joule_region_row *a = &rows[*(const uint32_t *)pa];
    const struct joule_region_row *b = &rows[*(const uint32_t *)pb];

    return (a->process > b->process) - (a->process < b->process);
}

static int by_region(const void *pa, const void *pb, void *arg)
{
    const struct joule_region_row *rows = arg;
    const struct joule_region_row *a = &rows[*(const uint32_t *)pa];
    const struct joule_region_row *b = &rows[*(const uint32_t *)pb];

    if (a->region != b->region)
        return a->region < b->region ? -1 : 1;
    return by_process(pa, pb, arg);
}

static uint64_t whole(double uj)
{
    return uj > 0 ? (uint64_t)llround(uj) : 0;
}

static void add_counts(struct joule_region_use *use,
                       const struct joule_region_row *row)
{
    if (row->kind == JOULE_REGION_MARK) {
        use->marks += row->count;
        return;
    }
    use->count += row->count;
    use->time_ns += row->time_ns;
    use->unended += row->kind == JOULE_REGION_UNENDED ? row->count : 0;
    use->lost += row->kind == LOST ? row->count : 0;
}

/* Of rows of one region and one process. */
static void make_use(struct work *w, const uint32_t *rows, size_t count,
                     struct joule_region_use *use)
{
    double share = 0, total = 0;

    *use = (struct joule_region_use){
        .region = (uint32_t)row_of(w, rows[0])->region,
        .process = (uint32_t)row_of(w, rows[0])->process,
    };
    for (size_t i = 0; i < count; i++) {
        add_counts(use, row_of(w, rows[i]));
        share += w->share[rows[i]];
        total += w->total[rows[i]];
    }
    use->share_uj = whole(share);
    use->total_uj = whole(total);
    measure_window(w, rows, count, use);
}

static void add_use(struct joule_region_use *sum,
                    const struct joule_region_use *use)
{
    sum->count += use->count;
    sum->marks += use->marks;
    sum->unended += use->unended;
    sum->lost += use->lost;
    sum->time_ns += use->time_ns;
    sum->share_uj += use->share_uj;
    sum->total_uj += use->total_uj;
}

/* Rows from [i] on that are alike. */
static size_t alike(const struct work *w, const uint32_t *order, size_t i,
                    size_t count, bool same_region, bool same_process)
{
    size_t end = i + 1;

    while (end < count &&
           (!same_region ||
            row_of(w, order[end])->region == row_of(w, order[i])->region) &&
           (!same_process ||
            row_of(w, order[end])->process == row_of(w, order[i])->process))
        end++;
    return end;
}

/* What is left when shares are whole microjoules is in no region. */
static void bound_shares(struct joule_region_result *ret)
{
    uint64_t shares = 0;

    for (size_t i = 0; i < ret->uses; i++) {
        struct joule_region_use *use = &ret->use[i];

        if (use->share_uj > ret->step_uj - shares)
            use->share_uj = ret->step_uj - shares;
        shares += use->share_uj;
    }
    ret->no_region_uj = ret->step_uj - shares;
}

static int sum_up(struct work *w, size_t count, struct joule_region_result *ret)
{
    const uint32_t *order = w->order;

    ret->use = calloc(count + 1, sizeof(*ret->use));
    ret->region = calloc(w->step->regions + 1, sizeof(*ret->region));
    if (!ret->use || !ret->region)
        return -1;
    for (size_t i = 0, end; i < count; i = end) {
        end = alike(w, order, i, count, true, true);
        make_use(w, order + i, end - i, &ret->use[ret->uses++]);
    }
    bound_shares(ret);
    for (size_t i = 0, end; i < count; i = end) {
        struct joule_region_use *sum = &ret->region[ret->regions++];

        end = alike(w, order, i, count, true, false);
        sum->region = (uint32_t)row_of(w, order[i])->region;
        measure_window(w, order + i, end - i, sum);
    }
    for (size_t i = 0, r = 0; i < ret->uses; i++) {
        while (ret->region[r].region != ret->use[i].region)
            r++;
        add_use(&ret->region[r], &ret->use[i]);
    }
    return 0;
}

static int divide(struct work *w, struct joule_region_result *ret)
{
    const struct joule_region_step *step = w->step;
    void *rows = (void *)step->row;
    uint32_t *order = w->order;
    size_t count = 0, i, end;

    for (i = 0; i < step->rows; i++)
        if (is_sound(step, &step->row[i]))
            order[count++] = (uint32_t)i;
    ret->left_out = step->rows - count;
    qsort_r(order, count, sizeof(*order), by_process, rows);
    for (i = 0; i < count; i = end) {
        end = alike(w, order, i, count, false, true);
        if (divide_process(w, (size_t)row_of(w, order[i])->process, order + i,
                           end - i) < 0)
            return -1;
    }
    qsort_r(order, count, sizeof(*order), by_region, rows);
    return sum_up(w, count, ret);
}

/* CPU time of each process. */
static int make_cpu_curves(struct work *w)
{
    const struct joule_region_step *step = w->step;
    size_t *counts = calloc(step->processes + 1, sizeof(*counts));
    int rc = counts ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < step->cpus; i++)
        if (step->cpu[i].process < step->processes)
            counts[step->cpu[i].process]++;
    for (size_t p = 0; rc == 0 && p < step->processes; p++)
        rc = curve_alloc(&w->cpu[p], counts[p]);
    for (size_t i = 0; rc == 0 && i < step->cpus; i++)
        if (step->cpu[i].process < step->processes)
            curve_add(&w->cpu[step->cpu[i].process], (double)step->cpu[i].ns,
                      (double)step->cpu[i].cpu_ns);
    for (size_t p = 0; rc == 0 && p < step->processes; p++)
        rc = sharpen(&w->cpu[p]);
    free(counts);
    return rc;
}

/* In none of the intervals a process comes or goes. */
static int split_at_processes(struct work *w)
{
    const struct joule_region_step *step = w->step;
    double *times = calloc(2 * step->processes + 1, sizeof(*times));
    int rc = -1;

    if (!times)
        return -1;
    for (size_t p = 0; p < step->processes; p++) {
        times[2 * p] = (double)step->process[p].begin_ns;
        times[2 * p + 1] = (double)step->process[p].end_ns;
    }
    rc = split(&w->energy, times, 2 * step->processes);
    free(times);
    return rc;
}

static int make_energy(struct work *w, struct joule_region_result *ret)
{
    const struct joule_region_step *step = w->step;
    struct curve *c = &w->energy;

    if (curve_alloc(c, step->energies + 1) < 0)
        return -1;
    curve_add(c, 0, 0);
    for (size_t i = 0; i < step->energies; i++)
        curve_add(c, (double)step->energy[i].ns, (double)step->energy[i].uj);
    ret->step_uj = whole(c->value[c->count - 1]);
    ret->step_ns = (uint64_t)c->ns[c->count - 1];
    ret->period_ns = c->count > 1 ? ret->step_ns / (c->count - 1) : 0;
    if (sharpen(c) < 0 || split_at_processes(w) < 0)
        return -1;
    w->cpu_sum = calloc(c->count, sizeof(*w->cpu_sum));
    w->there_sum = calloc(c->count, sizeof(*w->there_sum));
    return w->cpu_sum && w->there_sum ? 0 : -1;
}

static void release(struct work *w)
{
    for (size_t p = 0; w->cpu && p < w->step->processes; p++)
        curve_free(&w->cpu[p]);
    for (size_t i = 0; i < THREADS; i++)
        free(w->threads[i].rows);
    curve_free(&w->energy);
    free(w->cpu);
    free(w->cpu_sum);
    free(w->there_sum);
    free(w->order);
    free(w->events);
    free(w->share);
    free(w->total);
    free(w);
}

int joule_region_energy(const struct joule_region_step *step,
                        struct joule_region_result *ret)
{
    struct work *w = calloc(1, sizeof(*w));
    int rc = -1;

    memset(ret, 0, sizeof(*ret));
    if (!w)
        return -1;
    w->step = step;
    w->order = calloc(step->rows + 1, sizeof(*w->order));
    w->events = calloc(2 * step->rows + 1, sizeof(*w->events));
    w->share = calloc(step->rows + 1, sizeof(*w->share));
    w->total = calloc(step->rows + 1, sizeof(*w->total));
    w->cpu = calloc(step->processes + 1, sizeof(*w->cpu));
    if (w->order && w->events && w->share && w->total && w->cpu &&
        make_energy(w, ret) == 0 && make_cpu_curves(w) == 0) {
        add_all(w);
        rc = divide(w, ret);
    }
    release(w);
    if (rc == 0)
        return 0;
    joule_region_result_free(ret);
    errno = ENOMEM;
    return -1;
}

void joule_region_result_free(struct joule_region_result *result)
{
    free(result->use);
    free(result->region);
    memset(result, 0, sizeof(*result));
}
