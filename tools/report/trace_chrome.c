/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON of chrome://tracing, which Perfetto reads as well: an event an object,
 * times in us. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/joule/json.h"
#include "tools/report/trace.h"

static void put_event(struct joule_json *j, const char *phase,
                      const struct joule_trace *t, size_t lane, uint64_t ns)
{
    char us[32];

    snprintf(us, sizeof(us), "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
    joule_json_object(j, NULL);
    joule_json_string(j, "ph", phase);
    joule_json_u64(j, "pid", t->lane[lane].group);
    joule_json_u64(j, "tid", t->lane[lane].thread);
    joule_json_number(j, "ts", us);
}

/* They hold until the next of the lane.  A counter is told from another by its name
 * and its process. */
static void put_values(struct joule_json *j, const struct joule_trace *t,
                       const struct joule_trace_event *e)
{
    const struct joule_trace_lane *l = &t->lane[e->lane];
    char name[64] = "power W", value[64];

    if (l->states)
        snprintf(name, sizeof(name), "CPU %" PRIu64 " %s-states %%",
                 l->states->cpu, l->states->is_p ? "P" : "C");
    put_event(j, "C", t, e->lane, e->ns);
    joule_json_string(j, "name", name);
    joule_json_object(j, "args");
    for (size_t i = 0; i < joule_trace_columns(t, e->lane); i++) {
        if (!isfinite(joule_trace_value(t, e, i)))
            continue;
        snprintf(value, sizeof(value), "%.3f", joule_trace_value(t, e, i));
        joule_json_number(j, joule_trace_column(t, e->lane, i), value);
    }
    joule_json_close(j);
    joule_json_close(j);
}

static void put_region(struct joule_json *j, const struct joule_trace *t,
                       const struct joule_trace_event *e)
{
    static const char *const phases[] = {[JOULE_TRACE_BEGIN] = "B",
                                         [JOULE_TRACE_END] = "E",
                                         [JOULE_TRACE_MARK] = "i"};
    char name[sizeof(joule_region_text)];

    joule_trace_region(t, e, name);
    put_event(j, phases[e->kind], t, e->lane, e->ns);
    joule_json_string(j, "name", name);
    if (e->kind == JOULE_TRACE_MARK)
        joule_json_string(j, "s", "t");
    joule_json_close(j);
}

static void put_name(struct joule_json *j, const struct joule_trace *t,
                     size_t lane, const char *what, const char *name)
{
    put_event(j, "M", t, lane, 0);
    joule_json_string(j, "name", what);
    joule_json_object(j, "args");
    joule_json_string(j, "name", name);
    joule_json_close(j);
    joule_json_close(j);
}

/* Counters of CPUs are their process's, and of no thread. */
static void put_names(struct joule_json *j, const struct joule_trace *t,
                      size_t lane)
{
    char name[700];

    if (lane == 0 || t->lane[lane].group != t->lane[lane - 1].group) {
        joule_trace_group_name(t, lane, name, sizeof(name));
        put_name(j, t, lane, "process_name", name);
    }
    if (t->lane[lane].states)
        return;
    joule_trace_name(t, lane, name, sizeof(name));
    put_name(j, t, lane, "thread_name", name);
}

int joule_trace_chrome(const struct joule_trace *t, const char *path,
                       struct joule_error *err)
{
    FILE *file = fopen(path, "we");
    struct joule_json j;
    bool is_bad;

    if (!file)
        return joule_error_set(err, errno, "cannot write %s: %m", path);
    joule_json_begin(&j, file);
    joule_json_string(&j, "displayTimeUnit", "ms");
    joule_json_array(&j, "traceEvents");
    for (size_t i = 0; i < t->lanes; i++)
        put_names(&j, t, i);
    for (size_t i = 0; i < t->events; i++)
        if (t->event[i].kind == JOULE_TRACE_VALUES)
            put_values(&j, t, &t->event[i]);
        else
            put_region(&j, t, &t->event[i]);
    joule_json_close(&j);
    joule_json_end(&j);
    is_bad = ferror(file) != 0;
    if (fclose(file) != 0 || is_bad)
        return joule_error_set(err, errno ? errno : EIO, "cannot write %s: %m",
                               path);
    return 0;
}
