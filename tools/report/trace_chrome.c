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

/* Its value holds until the next of the lane. */
static void put_power(struct joule_json *j, const struct joule_trace *t,
                      const struct joule_trace_event *e)
{
    const struct joule_timeline_node *n =
        &t->timeline->node[t->lane[e->lane].node];
    char watts[64];

    put_event(j, "C", t, e->lane, e->ns);
    joule_json_string(j, "name", "power W");
    joule_json_object(j, "args");
    for (size_t i = 0; i < n->columns; i++) {
        if (isnan(joule_trace_watts(t, e, i)))
            continue;
        snprintf(watts, sizeof(watts), "%.3f", joule_trace_watts(t, e, i));
        joule_json_number(j, *n->column[i] ? n->column[i] : "power", watts);
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
                     size_t lane, const char *what)
{
    char name[700];

    joule_trace_name(t, lane, name, sizeof(name));
    put_event(j, "M", t, lane, 0);
    joule_json_string(j, "name", what);
    joule_json_object(j, "args");
    joule_json_string(j, "name", name);
    joule_json_close(j);
    joule_json_close(j);
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
    for (size_t i = 0; i < t->lanes; i++) {
        if (i == 0 || t->lane[i].group != t->lane[i - 1].group)
            put_name(&j, t, i, "process_name");
        put_name(&j, t, i, "thread_name");
    }
    for (size_t i = 0; i < t->events; i++)
        if (t->event[i].kind == JOULE_TRACE_POWER)
            put_power(&j, t, &t->event[i]);
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
