/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of a counter as text.  They have no times of their own: those of a
 * set are spread evenly from its begin to its end.
 */
#include "lib/pmlib.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define JOULE_API __attribute__((visibility("default")))

#define LINES_MAX (8 * LINE_SETSIZE)
#define STATES    4

#define EVENT_SUM    500000009
#define EVENT_LINE   500000010
#define EVENT_STATE  90000000
#define EVENT_CSTATE 900000010
#define EVENT_PSTATE 800000010

/* What is printed of a counter. */
struct view {
    const pm_measures_wt *m;
    int first, last;     /* sets, the last one not included */
    int count;           /* lines; 0: the samples are sums */
    int line[LINES_MAX]; /* their numbers in the device */
    int at[LINES_MAX];   /* and among those of the counter */
};

static int invalid(void)
{
    errno = EINVAL;
    return -1;
}

static int choose_lines(struct view *v, const counter_t *c, const line_t *lines)
{
    if (c->aggregate)
        return 0;
    for (int i = 0, at = 0; i < LINES_MAX; i++) {
        if (!LINE_ISSET(i, &c->lines))
            continue;
        if (LINE_ISSET(i, lines)) {
            v->line[v->count] = i;
            v->at[v->count++] = at;
        }
        at++;
    }
    return v->count > 0 ? 0 : invalid();
}

/* [set] counts from 0, and a negative one is all. */
static int look(struct view *v, const counter_t *c, const line_t *lines,
                int set)
{
    int sets;

    v->m = c->measures;
    v->count = 0;
    if (!v->m || !v->m->energy.watts_sets || !v->m->energy.watts) {
        errno = ENODATA;
        return -1;
    }
    sets = v->m->energy.watts_sets_size - 1;
    if (set < -1 || set >= sets || sets > v->m->next_timing)
        return invalid();
    v->first = set < 0 ? 0 : set;
    v->last = set < 0 ? sets : set + 1;
    return choose_lines(v, c, lines);
}

static int samples_of(const struct view *v, int set)
{
    const int *sets = v->m->energy.watts_sets;

    return sets[set + 1] - sets[set];
}

static double duration_s(const struct view *v, int set)
{
    double s = v->m->timing[2 * set + 1] - v->m->timing[2 * set];

    return s > 0 ? s : 0;
}

static double step_s(double duration, int samples)
{
    return samples > 1 ? duration / (samples - 1) : 0;
}

/* Sample [sample] of all, of the k-th line that is printed; or the aggregate. */
static double watts(const struct view *v, int k, int sample)
{
    const pm_measures *e = &v->m->energy;
    int samples = e->watts_sets[e->watts_sets_size - 1];
    int at = v->count ? v->at[k] : 0;

    return e->watts[(size_t)at * (size_t)samples + (size_t)sample];
}

static double sum(const struct view *v, int sample)
{
    double total = 0;

    for (int k = 0; k < v->count || k == 0; k++)
        total += watts(v, k, sample);
    return total;
}

/* 1, or -1 if not all could be written. */
static int finish(FILE *out, bool close_it)
{
    int bad = ferror(out) | fflush(out);

    if (close_it)
        bad |= fclose(out);
    if (!bad)
        return 1;
    if (!errno)
        errno = EIO;
    return -1;
}

static FILE *open_file(const char *name)
{
    if (name)
        return fopen(name, "we");
    errno = EINVAL;
    return NULL;
}

/* ---- tables ---- */

static void print_table(FILE *out, const struct view *v, char separator)
{
    fprintf(out, "Set_id%cTime", separator);
    for (int k = 0; k < v->count; k++)
        fprintf(out, "%cLine %d", separator, v->line[k]);
    fprintf(out, "%c%s\n", separator, v->count ? "Sum" : "Value_aggregate");
    for (int set = v->first; set < v->last; set++) {
        int samples = samples_of(v, set);
        double step = step_s(duration_s(v, set), samples);

        for (int i = 0; i < samples; i++) {
            int sample = v->m->energy.watts_sets[set] + i;

            fprintf(out, "%d%c%f", set, separator, i * step);
            for (int k = 0; k < v->count; k++)
                fprintf(out, "%c%f", separator, watts(v, k, sample));
            fprintf(out, "%c%f\n", separator, sum(v, sample));
        }
    }
}

static int print_file(const char *name, const counter_t *c, const line_t *lines,
                      int set, char separator)
{
    struct view v;
    FILE *out;

    if (look(&v, c, lines, set) < 0)
        return -1;
    out = open_file(name);
    if (!out)
        return -1;
    errno = 0;
    print_table(out, &v, separator);
    return finish(out, true);
}

JOULE_API int pm_print_data_stdout(counter_t pm_counter, line_t lines, int set)
{
    struct view v;

    if (look(&v, &pm_counter, &lines, set) < 0)
        return -1;
    errno = 0;
    print_table(stdout, &v, '\t');
    return finish(stdout, false);
}

JOULE_API int pm_print_data_text(char *file_name, counter_t pm_counter,
                                 line_t lines, int set)
{
    return print_file(file_name, &pm_counter, &lines, set, '\t');
}

JOULE_API int pm_print_data_csv(char *file_name, counter_t pm_counter,
                                line_t lines, int set)
{
    return print_file(file_name, &pm_counter, &lines, set, ';');
}

JOULE_API int pm_calculate_energy(counter_t pm_counter, line_t lines, int set)
{
    struct view v;

    if (look(&v, &pm_counter, &lines, set) < 0)
        return -1;
    errno = 0;
    for (int i = v.first; i < v.last; i++) {
        int samples = samples_of(&v, i);
        double s = duration_s(&v, i), total = 0;

        for (int k = 0; k < samples; k++)
            total += sum(&v, v.m->energy.watts_sets[i] + k);
        if (samples > 0)
            total /= samples;
        printf("%f\t%f\t%f\n", s, total, s * total);
    }
    return finish(stdout, false) < 0 ? -1 : 0;
}

/* ---- Paraver ---- */

/* Units of a second; 0: there is no such unit. */
static double unit_of(const char *unit)
{
    if (!unit || !*unit || strcmp(unit, "ns") == 0)
        return 1e9;
    if (strcmp(unit, "us") == 0)
        return 1e6;
    return strcmp(unit, "ms") == 0 ? 1e3 : 0;
}

/* A trace of all sets that are printed, one behind the other. */
struct trace {
    struct view v;
    FILE *out;
    double step;  /* units from sample to sample */
    int from, to; /* samples, the last one not included */
};

/* The first line; [rest] ends it. */
static int begin_trace(struct trace *t, const char *name, const counter_t *c,
                       const line_t *lines, int set, const char *unit,
                       const char *rest)
{
    double per_s = unit_of(unit), total = 0;
    time_t now = time(NULL);
    struct tm tm;
    char date[64];

    if (per_s == 0)
        return invalid();
    if (look(&t->v, c, lines, set) < 0)
        return -1;
    t->out = open_file(name);
    if (!t->out)
        return -1;
    for (int i = t->v.first; i < t->v.last; i++)
        total += per_s * duration_s(&t->v, i);
    t->from = t->v.m->energy.watts_sets[t->v.first];
    t->to = t->v.m->energy.watts_sets[t->v.last];
    t->step = step_s(total, t->to - t->from);
    localtime_r(&now, &tm);
    strftime(date, sizeof(date), "%d/%m/%Y at %H:%M", &tm);
    errno = 0;
    fprintf(t->out, "#Paraver (%s):%f_%s:%s\n", date, total,
            unit && *unit ? unit : "ns", rest);
    return 0;
}

JOULE_API int pm_print_data_paraver(char *file_name, counter_t pm_counter,
                                    line_t lines, int set, unit_t unit)
{
    struct trace t;

    if (begin_trace(&t, file_name, &pm_counter, &lines, set, unit,
                    "1(1):1:1:(1:1)") < 0)
        return -1;
    for (int i = t.from; i < t.to; i++) {
        double time = (i - t.from) * t.step;

        for (int k = 0; k < t.v.count; k++)
            fprintf(t.out, "2:0:1:1:1:%f:%d:%f\n", time,
                    EVENT_LINE + t.v.line[k], watts(&t.v, k, i));
        fprintf(t.out, "2:0:1:1:1:%f:%d:%f\n", time, EVENT_SUM, sum(&t.v, i));
    }
    return finish(t.out, true);
}

/* [set] as these printers have it. */
static int begin_states(struct trace *t, const char *name, const counter_t *c,
                        const line_t *lines, int set, const char *unit)
{
    int cpus = (c->num_lines + STATES - 1) / STATES;
    char rest[64];

    if (c->aggregate)
        return invalid();
    snprintf(rest, sizeof(rest), "0:1:1(%d:0)", cpus);
    return begin_trace(t, name, c, lines, set > 0 ? set - 1 : -1, unit, rest);
}

static void print_percents(const struct trace *t, int event)
{
    for (int i = t->from; i < t->to; i++)
        for (int k = 0; k < t->v.count; k++)
            fprintf(t->out, "2:0:1:1:%d:%f:%d:%f\n", t->v.line[k] / STATES + 1,
                    (i - t->from) * t->step, event + t->v.line[k] % STATES,
                    watts(&t->v, k, i));
}

/* The states of an interval one behind the other, each to its end. */
static void print_sequence(const struct trace *t)
{
    for (int i = t->from; i < t->to; i++) {
        double time = (i - t->from) * t->step;

        for (int k = 0; k < t->v.count; k++) {
            int line = t->v.line[k];
            double percent = watts(&t->v, k, i);

            if (k > 0 && line / STATES != t->v.line[k - 1] / STATES)
                time = (i - t->from) * t->step;
            if (!(percent > 0))
                continue;
            time += percent / 100 * t->step;
            fprintf(t->out, "2:0:1:1:%d:%f:%d:%d\n", line / STATES + 1, time,
                    EVENT_STATE, line % STATES);
        }
    }
}

JOULE_API int pm_print_data_paraver_cstates(char *file_name,
                                            counter_t pm_counter, line_t lines,
                                            int set, unit_t unit, int separate)
{
    struct trace t;

    if (begin_states(&t, file_name, &pm_counter, &lines, set, unit) < 0)
        return -1;
    if (separate)
        print_percents(&t, EVENT_CSTATE);
    else
        print_sequence(&t);
    return finish(t.out, true);
}

JOULE_API int pm_print_data_paraver_pstates(char *file_name,
                                            counter_t pm_counter, line_t lines,
                                            int set, unit_t unit)
{
    struct trace t;

    if (begin_states(&t, file_name, &pm_counter, &lines, set, unit) < 0)
        return -1;
    print_percents(&t, EVENT_PSTATE);
    return finish(t.out, true);
}

/* ---- the counter ---- */

static void print_lines(FILE *out, const line_t *set)
{
    const char *comma = "";

    for (int i = 0; i < LINES_MAX; i++)
        if (LINE_ISSET(i, set)) {
            fprintf(out, "%s%d", comma, i);
            comma = ",";
        }
}

JOULE_API int pm_fprint_counter_info(char *out, counter_t pm_counter)
{
    const pm_measures_wt *m = pm_counter.measures;
    FILE *file;

    if (!out)
        return invalid();
    file = fopen(out, "ae");
    if (!file)
        return -1;
    errno = 0;
    fprintf(file, "Lines: ");
    print_lines(file, &pm_counter.lines);
    fprintf(file, " of %d\nAggregate: %s\nFrequency: %d Hz\n",
            pm_counter.num_lines, pm_counter.aggregate ? "yes" : "no",
            pm_counter.interval);
    for (int i = 0; m && i < m->next_timing; i++)
        fprintf(file, "Set %d: %f s\n", i,
                m->timing[2 * i + 1] - m->timing[2 * i]);
    return finish(file, true) < 0 ? -1 : 0;
}
