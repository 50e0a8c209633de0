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
    struct joule_sensor sensor; /* first */
    struct joule_domain domains[JOULE_DOMAINS_MAX];
    const struct joule_clock *clock;
    int64_t gap_ns;
    struct joule_sensor *counters;     /* NULL: none */
    struct joule_meter_thread *thread; /* it has the meter */
    size_t counter_count, counters_at; /* the first among the domains */
    size_t label_count;                /* domains of the meter */
    uint32_t meter_node;               /* the node among them */
    /* state.integrator: those of Node, BMC and the labels */
    struct joule_sensor_state state;
    struct joule_node_total rapl;   /* of the counters */
    uint64_t uj[JOULE_DOMAINS_MAX]; /* as it was said last */
    /* mean power of the node since then */
    int64_t since_ns;
    double since_j, watts;
    bool said_learned, said_counters;
    struct joule_error remark, missing;              /* empty: none */
    struct joule_reading reading[JOULE_DOMAINS_MAX]; /* of the counters */
    struct joule_power power[JOULE_DOMAINS_MAX];     /* scratch */
};

/* ----------------------------------------------------------------- remarks */

/* The first counter of the total that has failed now, or NULL. */
static const struct joule_domain *failed_counter(const struct fused_sensor *f)
{
    for (size_t i = 0; i < f->counter_count; i++)
        if (f->counters->domains[i].in_total &&
            f->reading[i].mono_ns != f->rapl.mono_ns)
            return &f->counters->domains[i];
    return NULL;
}

static void say_counters(struct fused_sensor *f)
{
    const struct joule_domain *failed = failed_counter(f);
    bool by_bmc = f->state.fused.basis == JOULE_FUSED_BMC ||
                  f->state.fused.basis == JOULE_FUSED_NONE;

    if (!f->said_counters && by_bmc && failed) {
        size_t i = (size_t)(failed - f->counters->domains);

        f->said_counters = true;
        joule_error_set(
            &f->remark, 0,
            "reading energy counter %s on CPU %u failed: %s; the "
            "power of the BMC stands in until it answers",
            failed->name, failed->cpu,
            strerror(joule_counter_sensor_raw(f->counters)[i].error));
    }
    if (f->said_counters && !by_bmc) {
        f->said_counters = false;
        joule_error_set(&f->remark, 0, "the energy counters answer again");
    }
}

static void say_learned(struct fused_sensor *f)
{
    const struct joule_lag_model *model = &f->state.fused.lag_model;

    if (!joule_lag_model_learned(model))
        f->said_learned = false;
    if (f->said_learned || !joule_lag_model_learned(model))
        return;
    f->said_learned = true;
    joule_error_set(&f->remark, 0,
                    "the energy of the node is now that of BMC and RAPL: the "
                    "BMC's lag is %s, the node uses %.2f x RAPL %+.0f W",
                    strcmp(joule_lag_model_words(model), "none")
                        ? joule_lag_model_words(model)
                        : "less than a second",
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
        *ret_now_ns = joule_clock_mono_ns(f->clock);
        return NULL;
    }
    *ret_now_ns = joule_sensor_read(f->counters, 0, f->reading);
    joule_node_total_update(&f->rapl, f->counters->domains, f->reading,
                            *ret_now_ns);
    return failed_counter(f) ? NULL : &f->rapl;
}

/* The power of BMC and labels holds from reading to reading; [power] is what the
 * meter says of each of its domains, or NULL. */
static void hold_power(struct fused_sensor *f, const struct joule_power *power)
{
    struct joule_integrator *label =
        &f->state.integrator[JOULE_FUSED_SENSOR_LABELS];

    for (size_t i = 0; i < f->label_count; i++) {
        struct joule_integrator *g =
            i == f->meter_node ? &f->state.integrator[JOULE_FUSED_SENSOR_BMC]
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
    int64_t ns = f->state.fused.mono_ns - f->since_ns;

    f->since_j += interval->node_j;
    if (interval->ns == 0 || f->since_ns == 0)
        f->watts = f->state.fused.watts;
    else if (ns < POWER_NS)
        return f->watts;
    else
        f->watts = f->since_j * 1e9 / (double)ns;
    /* With what stood in for counters, it may be more than a power. */
    if (!(f->watts <= JOULE_POWER_MAX_W))
        f->watts = f->state.fused.watts;
    f->since_ns = f->state.fused.mono_ns;
    f->since_j = 0;
    return f->watts;
}

static void count(struct fused_sensor *f,
                  const struct joule_fused_interval *interval)
{
    const struct joule_fused_state *s = &f->state.fused;
    struct joule_integrator *node =
        &f->state.integrator[JOULE_FUSED_SENSOR_NODE];

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
    joule_fused_advance(&f->state.fused, rapl, now_ns, bmc, f->gap_ns,
                        &interval);
    if (interval.known)
        count(f, &interval);
    for (size_t i = 0; i < f->counters_at; i++) {
        out[i] = joule_integrator_reading(&f->state.integrator[i], f->gap_ns,
                                          now_ns, true);
        if (out[i].uj < f->uj[i])
            out[i].uj = f->uj[i];
        f->uj[i] = out[i].uj;
    }
    memcpy(&out[f->counters_at], f->reading, f->counter_count * sizeof(out[0]));
    return now_ns;
}

/* ------------------------------------------------------------------- state */

static const struct joule_sensor_state *fused_state(struct joule_sensor *sensor)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;

    if (f->counters)
        memcpy(f->state.counter, f->counters->ops->state(f->counters)->counter,
               f->counter_count * sizeof(f->state.counter[0]));
    return &f->state;
}

static bool is_sound(const struct fused_sensor *f,
                     const struct joule_sensor_state *state, int64_t now_ns)
{
    if (state->domain_key != f->state.domain_key || state->is_fused != 1 ||
        state->counters != f->counter_count ||
        state->integrators != f->counters_at ||
        !joule_fused_check(&state->fused, now_ns))
        return false;
    for (size_t i = 0; i < f->counters_at; i++)
        if (!joule_integrator_check(&state->integrator[i], now_ns))
            return false;
    return true;
}

/* The counters' part of a state, as their own sensor has it. */
static bool resume_counters(struct fused_sensor *f,
                            const struct joule_sensor_state *state)
{
    struct joule_sensor_state *own;
    bool ok;

    if (!f->counters)
        return true;
    own = calloc(1, sizeof(*own));
    if (!own)
        return false;
    own->domain_key = joule_domains_key(f->counters->domains, f->counter_count);
    own->counters = f->counter_count;
    memcpy(own->counter, state->counter,
           f->counter_count * sizeof(own->counter[0]));
    ok = f->counters->ops->resume(f->counters, own);
    free(own);
    return ok;
}

static bool fused_resume(struct joule_sensor *sensor,
                         const struct joule_sensor_state *state)
{
    struct fused_sensor *f = (struct fused_sensor *)sensor;
    int64_t now_ns = joule_clock_mono_ns(f->clock);

    if (!is_sound(f, state, now_ns) || !resume_counters(f, state))
        return false;
    f->state.fused = state->fused;
    memcpy(f->state.integrator, state->integrator,
           f->counters_at * sizeof(state->integrator[0]));
    f->rapl.node_uj = state->fused.rapl_uj;
    f->rapl.gap_ns = state->fused.rapl_gap_ns;
    for (size_t i = 0; i < f->counter_count; i++)
        f->rapl.reading[i].gap_ns = state->counter[i].gap_ns;
    f->said_learned = joule_lag_model_learned(&state->fused.lag_model);
    f->since_ns = state->fused.mono_ns;
    f->since_j = 0;
    f->watts = state->fused.watts;
    joule_meter_thread_resume(f->thread, state->fused.bmc_mono_ns);
    memset(f->uj, 0, sizeof(f->uj));
    return true;
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
    .state = fused_state,
    .resume = fused_resume,
    .remark = fused_remark,
    .destroy = fused_destroy,
};

/* ---------------------------------------------------------------- creation */

static void add_domain(struct fused_sensor *f, const char *name)
{
    struct joule_domain *d = &f->domains[f->sensor.domain_count++];

    *d = (struct joule_domain){
        .kind = JOULE_DOMAIN_POWER,
        .unit = {1, 0},
        .width_bits = 64,
        .in_total = d == &f->domains[JOULE_FUSED_SENSOR_NODE],
    };
    snprintf(d->name, sizeof(d->name), "%s", name);
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
    f->counters_at = f->sensor.domain_count;
    f->counter_count = counters ? counters->domain_count : 0;
    for (size_t i = 0; i < f->counter_count; i++) {
        struct joule_domain *d = &f->domains[f->sensor.domain_count++];

        *d = counters->domains[i];
        d->in_total = false;
    }
    f->sensor.domains = f->domains;
}

/* [counters] is a sensor's in any case. */
static int make(struct fused_sensor *f, struct joule_counters *counters,
                struct joule_error *err)
{
    if (counters) {
        f->counters = joule_counter_sensor_create(f->clock, counters);
        if (!f->counters)
            return joule_error_set(err, ENOMEM, "out of memory");
        joule_node_total_start(&f->rapl, f->counters->domains, f->counter_count,
                               0);
    }
    f->sensor.wrap_ns = f->counters ? f->counters->wrap_ns : INT64_MAX;
    f->state.domain_key = joule_domains_key(f->domains, f->sensor.domain_count);
    f->state.is_fused = 1;
    f->state.counters = f->counter_count;
    f->state.integrators = f->counters_at;
    return check_names(f, err);
}

struct joule_sensor *
joule_fused_sensor_create(const struct joule_fused_sensor_options *opt,
                          struct joule_error *err)
{
    size_t counters = opt->counters ? opt->counters->domain_count : 0;
    struct fused_sensor *f = NULL;
    struct joule_counters *mine = opt->counters;
    struct joule_meter *meter = opt->meter;

    /* One of the meter's is the node. */
    if (counters + meter->domain_count + JOULE_FUSED_SENSOR_LABELS - 1 >
        JOULE_DOMAINS_MAX) {
        joule_error_set(err, E2BIG,
                        "there are more than %d energy counters and labels",
                        JOULE_DOMAINS_MAX);
        goto fail;
    }
    f = calloc(1, sizeof(*f));
    if (!f) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto fail;
    }
    f->sensor.ops = &fused_sensor_ops;
    f->clock = opt->clock;
    f->gap_ns = opt->gap_ns;
    add_domains(f, meter, mine);
    f->thread = joule_meter_thread_create(meter, opt->period_ns, opt->gap_ns,
                                          mine != NULL);
    meter = NULL;
    if (!f->thread) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto fail;
    }
    if (opt->missing)
        joule_error_set(&f->missing, 0,
                        "the energy of the node is that of its BMC alone: %s",
                        opt->missing);
    if (make(f, mine, err) == 0)
        return &f->sensor;
    mine = NULL;
fail:
    joule_counters_destroy(mine);
    joule_meter_destroy(meter);
    if (f) {
        int saved = errno;

        fused_destroy(&f->sensor);
        errno = saved;
    }
    return NULL;
}
