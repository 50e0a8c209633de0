/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/meter_sensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/integrator.h"
#include "common/energy/node_total.h"

/* The last of them are kept: as many as steps may ask for at once. */
#define EDGES 64

struct meter_sensor {
    struct joule_sensor sensor; /* first */
    struct joule_meter_sensor_options opt;
    struct joule_meter_thread *thread;
    int64_t edge_ns[EDGES];
    size_t edges; /* that there have been */
    int64_t last_edge_ns;
    uint64_t uj[JOULE_DOMAINS_MAX];              /* as it was said last */
    struct joule_power power[JOULE_DOMAINS_MAX]; /* scratch */
};

/* The latest edge that is not later; 0: none. */
static int64_t edge_before(const struct meter_sensor *s, int64_t ns)
{
    size_t count = s->edges < EDGES ? s->edges : EDGES;
    int64_t last_ns = 0;

    for (size_t i = 0; i < count; i++)
        if (s->edge_ns[i] > last_ns && s->edge_ns[i] <= ns)
            last_ns = s->edge_ns[i];
    return last_ns;
}

static void integrate(struct meter_sensor *s)
{
    enum joule_meter_news news = joule_meter_thread_take(s->thread, s->power);

    if (news == JOULE_METER_NOTHING)
        return;
    for (size_t i = 0; i < s->sensor.domain_count; i++) {
        const struct joule_power *p = &s->power[i];
        struct joule_integrator *g = &s->sensor.state.integrator[i];

        if (news == JOULE_METER_POWER && joule_power_is_measured(p))
            joule_integrator_update(g, p->watts, p->sensor_key, p->mono_ns,
                                    edge_before(s, p->mono_ns), s->opt.gap_ns);
        else
            joule_integrator_error(g);
    }
}

static int64_t meter_read(struct joule_sensor *sensor, int64_t edge_ns,
                          struct joule_reading *out)
{
    struct meter_sensor *s = (struct meter_sensor *)sensor;
    int64_t now_ns;

    if (edge_ns > s->last_edge_ns)
        s->edge_ns[s->edges++ % EDGES] = s->last_edge_ns = edge_ns;
    integrate(s);
    now_ns = joule_clock_mono_ns(s->opt.clock);
    for (size_t i = 0; i < sensor->domain_count; i++) {
        const struct joule_integrator *g = &s->sensor.state.integrator[i];

        out[i] = joule_integrator_reading(g, s->opt.gap_ns, now_ns,
                                          !s->opt.no_carry);
        if (out[i].uj < s->uj[i])
            out[i].uj = s->uj[i];
        s->uj[i] = out[i].uj;
    }
    return now_ns;
}

static void meter_resumed(struct joule_sensor *sensor)
{
    struct meter_sensor *s = (struct meter_sensor *)sensor;

    memset(s->uj, 0, sizeof(s->uj));
    for (size_t i = 0; i < sensor->domain_count; i++)
        if (sensor->domains[i].in_total)
            joule_meter_thread_resume(s->thread,
                                      sensor->state.integrator[i].read_ns);
}

static int meter_remark(struct joule_sensor *sensor,
                        enum joule_event *ret_event, struct joule_error *ret)
{
    return joule_meter_thread_remark(((struct meter_sensor *)sensor)->thread,
                                     ret_event, ret);
}

static void meter_notify(struct joule_sensor *sensor, void (*news)(void *arg),
                         void *arg)
{
    joule_meter_thread_notify(((struct meter_sensor *)sensor)->thread, news,
                              arg);
}

static void meter_destroy(struct joule_sensor *sensor)
{
    struct meter_sensor *s = (struct meter_sensor *)sensor;

    joule_meter_thread_destroy(s->thread);
    free(s);
}

static const struct joule_sensor_ops meter_sensor_ops = {
    .type = "meter",
    .read = meter_read,
    .resumed = meter_resumed,
    .remark = meter_remark,
    .notify = meter_notify,
    .destroy = meter_destroy,
};

struct joule_sensor *
joule_meter_sensor_create(const struct joule_meter_sensor_options *opt)
{
    struct meter_sensor *s = calloc(1, sizeof(*s));
    const struct joule_meter *meter = opt->meter;

    if (!s) {
        joule_meter_destroy(opt->meter);
        errno = ENOMEM;
        return NULL;
    }
    s->opt = *opt;
    joule_sensor_init(&s->sensor, &meter_sensor_ops, opt->clock, meter->domains,
                      meter->domain_count);
    s->sensor.state.integrators = meter->domain_count;
    s->thread = joule_meter_thread_create(opt->meter, opt->period_ns,
                                          opt->gap_ns, false);
    if (s->thread)
        return &s->sensor;
    free(s);
    return NULL;
}
