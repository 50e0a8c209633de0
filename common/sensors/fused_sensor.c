/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/fused_sensor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/fused.h"
#include "common/energy/integrator.h"
#include "common/energy/node_total.h"
#include "common/sensors/counter_sensor.h"

/* Power is the mean over so much time at least: over less it is mostly the
 * counters' 1 ms quantum. */
#define POWER_NS (100 * JOULE_NS_PER_MS)

struct fused_sensor {
    /* first; state.integrator: those of Node, BMC and the labels */
    struct joule_sensor sensor;
    struct joule_domain domains[JOULE_DOMAINS_MAX];
    int64_t gap_ns;
    struct joule_sensor *counters;     /* NULL: none */
    struct joule_meter_thread *thread; /* it has the meter */
    size_t counter_count, counters_at; /* the first among the domains */
    size_t label_count;                /* domains of the meter */
    uint32_t meter_node;               /* the node among them */
    struct joule_node_total rapl;      /* of the counters */
    uint64_t uj[JOULE_DOMAINS_MAX];    /* as it was said last */
    /* mean power of the node since then */
    int64_t since_ns;
    double since_j, watts;
    bool said_learned, said_counters;
    struct joule_error remark, missing;              /* empty: none */
    struct joule_reading reading[JOULE_DOMAINS_MAX]; /* of the counters */
    struct joule_power power[JOULE_DOMAINS_MAX];     /* scratch */
};

/* ----------------------------------------------------------------- remarks */

/* The first counter of the total that has failed now, or -1. */
static int failed_counter(const struct fused_sensor *f)
{
    for (size_t i = 0; i < f->counter_count; i++)
        if (f->counters->domains[i].in_total &&
            f->reading[i].mono_ns != f->rapl.mono_ns)
            return (int)i;
    return -1;
}

static void say_counters(struct fused_sensor *f)
{
    bool by_bmc = f->sensor.state.fused.basis == JOULE_FUSED_BMC ||
                  f->sensor.state.fused.basis == JOULE_FUSED_NONE;
    int i = failed_counter(f);

    if (!f->said_counters && by_bmc && i >= 0) {
        f->said_counters = true;
        joule_error_set(
            &f->remark, 0,
            "reading energy counter %s on CPU %u failed: %s; the "
            "power of the BMC stands in until it answers",
            f->counters->domains[i].name, f->counters->domains[i].cpu,
            strerror(joule_counter_sensor_raw(f->counters)[i].error));
    }
    if (f->said_counters && !by_bmc) {
        f->said_counters = false;
        joule_error_set(&f->remark, 0, "the energy counters answer again");
    }
}

static void say_learned(struct fused_sensor *f)
{
    const struct joule_lag_model *model = &f->sensor.state.fused.lag_model;
    const char *lag = joule_lag_model_words(model);
    bool said = f->said_learned;

    f->said_learned = joule_lag_model_learned(model);
    if (f->said_learned && !said)
        joule_error_set(&f->remark, 0,
                        "the energy of the node is now that of BMC and RAPL: "
                        "the BMC's lag is %s, the node uses %.2f x RAPL %+.0f "
                        "W",
                        strcmp(lag, "none") ? lag : "less than a second",
                        model->gain, model->rest_w);
}

static bool take_text(struct joule_error *from, struct joule_error *ret)
{
    if (!from->text[0])
        return false;
    *ret = *from;
    from->text[0] = '\0';
    return true;
}

/* The counters' own words on what is unknown without them do not hold here. */
static int fused_remark(struct joule_sensor *sensor,
                        enum joule_event *ret_event, struct joule_error *ret)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;

    *ret_event = JOULE_EVENT_PROBLEM;
    if (take_text(&f->missing, ret))
        return 1;
    *ret_event = JOULE_EVENT_INFO;
    if (take_text(&f->remark, ret))
        return 1;
    if (f->counters && joule_counter_sensor_moved(f->counters, ret))
        return 1;
    return joule_meter_thread_remark(f->thread, ret_event, ret);
}

/* ----------------------------------------------------------------- reading */

/* The counters' total, if all of them answer now. */
static const struct joule_node_total *read_counters(struct fused_sensor *f,
                                                    int64_t *ret_now_ns)
{
    if (!f->counters) {
        *ret_now_ns = joule_clock_mono_ns(f->sensor.clock);
        return NULL;
    }
    *ret_now_ns = joule_sensor_read(f->counters, 0, f->reading);
    memcpy(f->sensor.state.counter, f->counters->state.counter,
           f->counter_count * sizeof(f->sensor.state.counter[0]));
    joule_node_total_update(&f->rapl, f->counters->domains, f->reading,
                            *ret_now_ns);
    return failed_counter(f) >= 0 ? NULL : &f->rapl;
}

/* The power of BMC and labels holds from reading to reading; [power] is what the
 * meter says of each of its domains, or NULL. */
static void hold_power(struct fused_sensor *f, const struct joule_power *power)
{
    struct joule_integrator *label =
        &f->sensor.state.integrator[JOULE_FUSED_SENSOR_LABELS];

    for (size_t i = 0; i < f->label_count; i++) {
        struct joule_integrator *g =
            i == f->meter_node
                ? &f->sensor.state.integrator[JOULE_FUSED_SENSOR_BMC]
                : label++;

        if (power && joule_power_is_measured(&power[i]))
            joule_integrator_update(g, power[i].watts, power[i].sensor_key,
                                    power[i].mono_ns, power[i].mono_ns,
                                    f->gap_ns);
        else
            joule_integrator_error(g);
    }
}

/* The meter's power of the node since the last time, or NULL. */
static const struct joule_power *take_power(struct fused_sensor *f)
{
    enum joule_meter_news news = joule_meter_thread_take(f->thread, f->power);

    if (news != JOULE_METER_NOTHING)
        hold_power(f, news == JOULE_METER_POWER ? f->power : NULL);
    return news == JOULE_METER_POWER ? &f->power[f->meter_node] : NULL;
}

static double find_watts(struct fused_sensor *f,
                         const struct joule_fused_interval *interval)
{
    int64_t ns = f->sensor.state.fused.mono_ns - f->since_ns;

    f->since_j += interval->node_j;
    if (interval->ns == 0 || f->since_ns == 0)
        f->watts = f->sensor.state.fused.watts;
    else if (ns < POWER_NS)
        return f->watts;
    else
        f->watts = f->since_j * 1e9 / (double)ns;
    /* With what stood in for counters, it may be more than a power. */
    if (!(f->watts <= JOULE_POWER_MAX_W))
        f->watts = f->sensor.state.fused.watts;
    f->since_ns = f->sensor.state.fused.mono_ns;
    f->since_j = 0;
    return f->watts;
}

static void count(struct fused_sensor *f,
                  const struct joule_fused_interval *interval)
{
    const struct joule_fused_state *s = &f->sensor.state.fused;
    struct joule_integrator *node =
        &f->sensor.state.integrator[JOULE_FUSED_SENSOR_NODE];

    node->gap_ns += interval->gap_ns;
    joule_integrator_add(node, find_watts(f, interval), interval->node_j,
                         s->bmc_key, s->mono_ns);
    if (f->counters)
        say_counters(f);
    say_learned(f);
}

static int64_t fused_read(struct joule_sensor *sensor, int64_t edge_ns,
                          struct joule_reading *out)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;
    struct joule_fused_interval interval;
    const struct joule_power *bmc = take_power(f);
    const struct joule_node_total *rapl;
    int64_t now_ns;

    (void)edge_ns; /* the counters tell when the load changes */
    rapl = read_counters(f, &now_ns);
    joule_fused_advance(&f->sensor.state.fused, rapl, now_ns, bmc, f->gap_ns,
                        &interval);
    if (interval.known)
        count(f, &interval);
    for (size_t i = 0; i < f->counters_at; i++) {
        out[i] = joule_integrator_reading(&f->sensor.state.integrator[i],
                                          f->gap_ns, now_ns, true);
        if (out[i].uj < f->uj[i])
            out[i].uj = f->uj[i];
        f->uj[i] = out[i].uj;
    }
    memcpy(&out[f->counters_at], f->reading, f->counter_count * sizeof(out[0]));
    return now_ns;
}

static void fused_resumed(struct joule_sensor *sensor)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;
    const struct joule_fused_state *fused = &sensor->state.fused;

    if (f->counters) {
        memcpy(f->counters->state.counter, sensor->state.counter,
               f->counter_count * sizeof(sensor->state.counter[0]));
        f->counters->ops->resumed(f->counters);
    }
    f->rapl.node_uj = fused->rapl_uj;
    f->rapl.gap_ns = fused->rapl_gap_ns;
    for (size_t i = 0; i < f->counter_count; i++)
        f->rapl.reading[i].gap_ns = sensor->state.counter[i].gap_ns;
    f->said_learned = joule_lag_model_learned(&fused->lag_model);
    f->since_ns = fused->mono_ns;
    f->since_j = 0;
    f->watts = fused->watts;
    joule_meter_thread_resume(f->thread, fused->bmc_mono_ns);
    memset(f->uj, 0, sizeof(f->uj));
}

static void fused_destroy(struct joule_sensor *sensor)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;

    joule_meter_thread_destroy(f->thread);
    joule_sensor_destroy(f->counters);
    free(f);
}

static const struct joule_sensor_ops fused_sensor_ops = {
    .type = "fused",
    .read = fused_read,
    .resumed = fused_resumed,
    .remark = fused_remark,
    .destroy = fused_destroy,
};

/* ---------------------------------------------------------------- creation */

static void add_domain(struct fused_sensor *f, const char *name)
{
    struct joule_domain *d = &f->domains[f->counters_at];

    *d = (struct joule_domain){
        .kind = JOULE_DOMAIN_POWER,
        .unit = {1, 0},
        .width_bits = 64,
        .in_total = f->counters_at == JOULE_FUSED_SENSOR_NODE,
    };
    snprintf(d->name, sizeof(d->name), "%s", name);
    f->counters_at++;
}

/* Where '-' may not stand, '_' does. */
static bool is_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

static int check_names(const struct fused_sensor *f, struct joule_error *err)
{
    for (size_t i = JOULE_FUSED_SENSOR_LABELS; i < f->counters_at; i++)
        for (size_t j = 0; j < f->sensor.domain_count; j++)
            if (j != i && is_same_name(f->domains[i].name, f->domains[j].name))
                return joule_error_set(
                    err, EINVAL,
                    "the label \"%s\" of the BMC's power has the name of "
                    "another one: \"%s\"",
                    f->domains[i].name, f->domains[j].name);
    return 0;
}

static void add_domains(struct fused_sensor *f, const struct joule_meter *meter,
                        const struct joule_counters *counters)
{
    add_domain(f, "Node");
    add_domain(f, "BMC");
    f->label_count = meter->domain_count;
    for (uint32_t i = 0; i < meter->domain_count; i++) {
        if (meter->domains[i].in_total)
            f->meter_node = i;
        else
            add_domain(f, meter->domains[i].name);
    }
    f->counter_count = counters ? counters->domain_count : 0;
    for (size_t i = 0; i < f->counter_count; i++) {
        f->domains[f->counters_at + i] = counters->domains[i];
        f->domains[f->counters_at + i].in_total = false;
    }
}

struct joule_sensor *
joule_fused_sensor_create(const struct joule_fused_sensor_options *opt,
                          struct joule_error *err)
{
    struct fused_sensor *f = calloc(1, sizeof(*f));
    struct joule_counters *counters = opt->counters;
    struct joule_meter *meter = opt->meter;
    int saved;

    if (!f)
        goto no_memory;
    /* One of the meter's is the node. */
    if (meter->domain_count + JOULE_FUSED_SENSOR_LABELS - 1 +
            (counters ? counters->domain_count : 0) >
        JOULE_DOMAINS_MAX) {
        joule_error_set(err, E2BIG,
                        "there are more than %d energy counters and labels",
                        JOULE_DOMAINS_MAX);
        goto fail;
    }
    add_domains(f, meter, counters);
    joule_sensor_init(&f->sensor, &fused_sensor_ops, opt->clock, f->domains,
                      f->counters_at + f->counter_count);
    f->sensor.state.is_fused = 1;
    f->sensor.state.counters = f->counter_count;
    f->sensor.state.integrators = f->counters_at;
    f->gap_ns = opt->gap_ns;
    f->thread = joule_meter_thread_create(meter, opt->period_ns, opt->gap_ns,
                                          counters != NULL);
    meter = NULL;
    if (!f->thread)
        goto no_memory;
    if (opt->missing)
        joule_error_set(&f->missing, 0,
                        "the energy of the node is that of its BMC alone: %s",
                        opt->missing);
    if (counters) {
        f->counters = joule_counter_sensor_create(opt->clock, counters);
        counters = NULL;
        if (!f->counters)
            goto no_memory;
        joule_node_total_start(&f->rapl, f->counters->domains, f->counter_count,
                               0);
    }
    if (check_names(f, err) == 0)
        return &f->sensor;
    goto fail;
no_memory:
    joule_error_set(err, ENOMEM, "out of memory");
fail:
    saved = errno;
    if (counters)
        counters->ops->destroy(counters);
    joule_meter_destroy(meter);
    if (f)
        fused_destroy(&f->sensor);
    errno = saved;
    return NULL;
}
