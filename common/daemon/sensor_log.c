/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/sensor_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/sensors/fused_sensor.h"

/* What is said of the labels that read so; the BMC's words are those of the
 * IPMI and DCMI specifications, for whoever looks it up there. */
static const char *const fault_words[JOULE_POWER_STATUS_COUNT] = {
    [JOULE_POWER_UNAVAILABLE] = "the BMC says that the reading is unavailable",
    [JOULE_POWER_NOT_SCANNED] =
        "the BMC does not scan the sensor (scanning disabled); "
        "EnergyIPMIIgnoreScanningDisabled=yes believes it nevertheless",
    [JOULE_POWER_NOT_ACTIVE] =
        "DCMI power measurement is not active: activate it in the BMC; "
        "JouleIPMIIgnoreInactive=yes believes it nevertheless",
    [JOULE_POWER_ZERO] = "0 W, which no node that runs uses",
    [JOULE_POWER_NEGATIVE] = "less than 0 W",
    [JOULE_POWER_SATURATED] =
        "the highest value that the sensor has: the power is above its range, "
        "or the BMC does not know it",
    [JOULE_POWER_ABSURD] = "more watts than a node can use",
    [JOULE_POWER_REFUSED] = "the BMC refuses to read the sensor",
    [JOULE_POWER_FAILED] = "no answer, or none that makes sense",
};

static void say(struct joule_sensor_log *w, enum joule_event event,
                int64_t now_ns, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void say(struct joule_sensor_log *w, enum joule_event event,
                int64_t now_ns, const char *fmt, ...)
{
    char text[JOULE_ERROR_MAX];
    va_list ap;

    while (w->lines < JOULE_SENSOR_LOG_LINES &&
           now_ns - w->refilled_ns >= JOULE_SENSOR_LOG_REFILL_NS) {
        w->lines++;
        w->refilled_ns += JOULE_SENSOR_LOG_REFILL_NS;
    }
    if (w->lines == 0 || !w->opt->event)
        return;
    if (w->lines == JOULE_SENSOR_LOG_LINES)
        w->refilled_ns = now_ns;
    w->lines--;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    w->opt->event(event, text, w->opt->event_arg);
}

void joule_sensor_log_start(struct joule_sensor_log *w,
                            const struct joule_sampler_options *opt,
                            int64_t measured_ns, int64_t now_ns)
{
    memset(w, 0, sizeof(*w));
    w->opt = opt;
    w->lines = JOULE_SENSOR_LOG_LINES;
    w->refilled_ns = now_ns;
    w->measured_ns = measured_ns;
}

static const char *meanwhile(const struct joule_sensor_log *w)
{
    _Static_assert(JOULE_POWER_BRIDGE_NS == 300 * JOULE_NS_PER_S,
                   "it is said below");
    if (joule_sensor_has_energy(w->opt->source))
        return "the counters carry on with what has been learned";
    if (w->measured_ns == 0)
        return "energy is unknown until there is one";
    return "energy goes on with the last power for 300 s at most";
}

void joule_sensor_log_failure(struct joule_sensor_log *w, const char *sentence,
                              int64_t now_ns)
{
    uint64_t number = joule_hash_text(JOULE_HASH_BEGIN, sentence);
    unsigned i;

    for (i = 0; i < w->texts; i++) {
        if (w->text[i] == number)
            return;
    }
    if (w->texts == JOULE_SENSOR_LOG_TEXTS)
        return;
    w->text[w->texts++] = number;
    say(w, JOULE_EVENT_PROBLEM, now_ns, "no reading of power: %s; %s", sentence,
        meanwhile(w));
}

void joule_sensor_log_remark(struct joule_sensor_log *w, const char *sentence,
                             int64_t now_ns)
{
    say(w, JOULE_EVENT_INFO, now_ns, "%s", sentence);
}

/* The labels of which this reading is a [status], "Node, Socket0", cut where
 * there are too many; false: none. */
static bool labels_of(const struct joule_sensor_log *w,
                      const struct joule_power *power,
                      enum joule_power_status status, char *buf, size_t size)
{
    const struct joule_sensor *source = w->opt->source;
    size_t length = 0;
    size_t i;

    buf[0] = '\0';
    for (i = 0; i < source->domain_count && length < size; i++) {
        if (power[i].status == status)
            length +=
                (size_t)snprintf(buf + length, size - length, "%s%s",
                                 length ? ", " : "", source->domains[i].name);
    }
    return length > 0;
}

/* How long the node was not measured, and what became of its energy. */
static void time_without(const struct joule_sensor_log *w,
                         const struct joule_node_total *t, char *buf,
                         size_t size)
{
    int64_t ns = t->mono_ns - w->measured_ns;

    buf[0] = '\0';
    if (w->measured_ns == 0 || ns <= joule_power_gap_ns(w->opt->period_ns))
        return;
    snprintf(buf, size, " after %.0f s; the energy of that time is %s",
             (double)ns / 1e9,
             ns > JOULE_POWER_BRIDGE_NS
                 ? "not known and left out"
                 : "estimated from the power before and after");
}

static void look_for_faults(struct joule_sensor_log *w,
                            const struct joule_power *power,
                            const char *without, int64_t now_ns)
{
    char labels[256];
    bool any = false, over = false;
    /* A source of energy has a sentence of its own for the last. */
    int status, end = joule_sensor_has_energy(w->opt->source)
                          ? JOULE_POWER_FAILED
                          : JOULE_POWER_STATUS_COUNT;

    for (status = JOULE_POWER_OK + 1; status < end; status++) {
        bool is = labels_of(w, power, (enum joule_power_status)status, labels,
                            sizeof(labels));

        if (is && !w->fault[status])
            say(w, JOULE_EVENT_PROBLEM, now_ns,
                "power of %s is not measured: %s; %s", labels,
                fault_words[status], meanwhile(w));
        any = any || is;
        over = over || (w->fault[status] && !is);
        w->fault[status] = is;
    }
    if (over && !any)
        say(w, JOULE_EVENT_INFO, now_ns, "all power is measured again%s",
            without);
}

/* Counters of parts that are off say 0 all day. */
static bool is_of_bmc(const struct joule_sensor_log *w, uint32_t i)
{
    return !joule_sensor_has_energy(w->opt->source) ||
           (i != JOULE_FUSED_SENSOR_NODE &&
            w->opt->source->domains[i].kind == JOULE_DOMAIN_POWER);
}

static void look_for_stuck(struct joule_sensor_log *w,
                           const struct joule_node_total *t, int64_t now_ns)
{
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        const struct joule_integrator *g = &t->integrator[i];

        if (w->unchanged[i] || !is_of_bmc(w, i) ||
            g->read_ns - g->changed_ns < JOULE_SENSOR_LOG_UNCHANGED_NS)
            continue;
        w->unchanged[i] = true;
        say(w, JOULE_EVENT_INFO, now_ns,
            "power of %s has been %.1f W for an hour without any change: the "
            "BMC may no longer measure it",
            w->opt->source->domains[i].name, g->power_w);
    }
}

void joule_sensor_log_readings(struct joule_sensor_log *w,
                               const struct joule_power *power,
                               const struct joule_node_total *total,
                               int64_t now_ns)
{
    char without[128];
    bool answers = false;
    uint32_t i;

    time_without(w, total, without, sizeof(without));
    for (i = 0; i < total->count; i++)
        answers = answers || power[i].status != JOULE_POWER_FAILED;
    if (joule_sensor_has_energy(w->opt->source))
        answers = power[JOULE_FUSED_SENSOR_BMC].status != JOULE_POWER_FAILED;
    if (answers && w->texts > 0) {
        w->texts = 0;
        say(w, JOULE_EVENT_INFO, now_ns, "the BMC answers again%s", without);
    }
    look_for_faults(w, power, without, now_ns);
    look_for_stuck(w, total, now_ns);
    w->measured_ns = total->mono_ns;
}
