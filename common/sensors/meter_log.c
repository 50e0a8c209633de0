/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/meter_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/energy/integrator.h"

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

static void say(struct joule_meter_log *w, enum joule_event event,
                const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Of more than the queue holds, those that come last are lost. */
static void say(struct joule_meter_log *w, enum joule_event event,
                const char *fmt, ...)
{
    size_t at = (w->first + w->count) % JOULE_METER_LOG_QUEUE;
    va_list ap;

    if (w->count == JOULE_METER_LOG_QUEUE)
        return;
    w->count++;
    w->queue[at].event = event;
    va_start(ap, fmt);
    vsnprintf(w->queue[at].text.text, sizeof(w->queue[at].text.text), fmt, ap);
    va_end(ap);
}

int joule_meter_log_next(struct joule_meter_log *w, enum joule_event *ret_event,
                         struct joule_error *ret_text)
{
    if (w->count == 0)
        return 0;
    *ret_event = w->queue[w->first].event;
    *ret_text = w->queue[w->first].text;
    w->first = (w->first + 1) % JOULE_METER_LOG_QUEUE;
    w->count--;
    return 1;
}

static const char *meanwhile(const struct joule_meter_log *w)
{
    _Static_assert(JOULE_POWER_BRIDGE_NS == 300 * JOULE_NS_PER_S,
                   "it is said below");
    if (w->has_counters)
        return "the counters carry on with what has been learned";
    if (w->measured_ns == 0)
        return "energy is unknown until there is one";
    return "energy goes on with the last power for 300 s at most";
}

static void take_failure(struct joule_meter_log *w, const char *sentence)
{
    uint64_t number = joule_hash_text(JOULE_HASH_BEGIN, sentence);

    for (unsigned i = 0; i < w->texts; i++)
        if (w->text[i] == number)
            return;
    if (w->texts == JOULE_METER_LOG_TEXTS)
        return;
    w->text[w->texts++] = number;
    say(w, JOULE_EVENT_PROBLEM, "no reading of power: %s; %s", sentence,
        meanwhile(w));
}

/* The labels whose reading is a [status], "Node, Socket0", cut where there are
 * too many; false: none. */
static bool labels_of(const struct joule_meter_log *w,
                      const struct joule_power *power,
                      enum joule_power_status status, char *buf, size_t size)
{
    size_t length = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < w->domain_count && length < size; i++)
        if (power[i].status == status)
            length += (size_t)snprintf(buf + length, size - length, "%s%s",
                                       length ? ", " : "", w->domains[i].name);
    return length > 0;
}

/* Note when the node was measured, and say how long it was not, and what became
 * of its energy. */
static void time_without(struct joule_meter_log *w,
                         const struct joule_power *power, char *buf,
                         size_t size)
{
    int64_t before_ns = w->measured_ns, ns;

    buf[0] = '\0';
    for (size_t i = 0; i < w->domain_count; i++)
        if (w->domains[i].in_total && power[i].status == JOULE_POWER_OK)
            w->measured_ns = power[i].mono_ns;
    ns = w->measured_ns - before_ns;
    if (w->has_counters || before_ns == 0 || ns <= w->gap_ns)
        return;
    snprintf(buf, size, " after %.0f s; the energy of that time is %s",
             (double)ns / 1e9,
             ns > JOULE_POWER_BRIDGE_NS
                 ? "that of 300 s with the power before, the rest is left out"
                 : "estimated from the power before and after");
}

static void look_for_faults(struct joule_meter_log *w,
                            const struct joule_power *power,
                            const char *without)
{
    char labels[256];
    bool any = false, over = false;

    for (int status = JOULE_POWER_OK + 1; status < JOULE_POWER_STATUS_COUNT;
         status++) {
        bool is = labels_of(w, power, (enum joule_power_status)status, labels,
                            sizeof(labels));

        if (is && !w->fault[status])
            say(w, JOULE_EVENT_PROBLEM, "power of %s is not measured: %s; %s",
                labels, fault_words[status], meanwhile(w));
        any = any || is;
        over = over || (w->fault[status] && !is);
        w->fault[status] = is;
    }
    if (over && !any)
        say(w, JOULE_EVENT_INFO, "all power is measured again%s", without);
}

static void look_for_stuck(struct joule_meter_log *w,
                           const struct joule_power *power)
{
    for (size_t i = 0; i < w->domain_count; i++) {
        const struct joule_power *p = &power[i];

        if (p->status != JOULE_POWER_OK)
            continue;
        if (w->changed_ns[i] == 0 || p->watts != w->watts[i]) {
            w->watts[i] = p->watts;
            w->changed_ns[i] = p->mono_ns;
        }
        if (w->unchanged[i] ||
            p->mono_ns - w->changed_ns[i] < JOULE_METER_LOG_UNCHANGED_NS)
            continue;
        w->unchanged[i] = true;
        say(w, JOULE_EVENT_INFO,
            "power of %s has been %.1f W for an hour without any change: the "
            "BMC may no longer measure it",
            w->domains[i].name, p->watts);
    }
}

static void take_power(struct joule_meter_log *w,
                       const struct joule_power *power)
{
    char without[128];
    bool answers = false;

    time_without(w, power, without, sizeof(without));
    for (size_t i = 0; i < w->domain_count; i++)
        answers = answers || power[i].status != JOULE_POWER_FAILED;
    if (answers && w->texts > 0) {
        w->texts = 0;
        say(w, JOULE_EVENT_INFO, "the BMC answers again%s", without);
    }
    look_for_faults(w, power, without);
    look_for_stuck(w, power);
}

/* A failure that is still there came after the power. */
void joule_meter_log_mail(struct joule_meter_log *w,
                          const struct joule_meter_mail *mail)
{
    for (size_t i = 0; i < mail->remarks; i++)
        say(w, JOULE_EVENT_INFO, "%s", mail->remark[i].text);
    if (mail->has_power)
        take_power(w, mail->power);
    if (mail->failure.text[0])
        take_failure(w, mail->failure.text);
}
