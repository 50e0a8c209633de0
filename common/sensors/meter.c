/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/meter.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/hash.h"
#include "common/base/thread.h"
#include "common/energy/integrator.h"

#define THREAD_STACK (128 * 1024)
#define QUEUE        8 /* sentences that wait */

/* A power that does not change for so long is told of, once. */
#define UNCHANGED_NS (3600 * JOULE_NS_PER_S)

struct joule_meter_thread {
    struct joule_meter *meter;
    int64_t period_ns, gap_ns;
    bool has_counters;
    pid_t pid; /* of the process that has the thread; 0: none yet */
    pthread_t thread;
    struct joule_power asked[JOULE_DOMAINS_MAX]; /* the thread's own */
    pthread_mutex_t lock;                        /* of what follows */
    pthread_cond_t wake;
    bool stop;
    void (*news)(void *arg);
    void *news_arg;
    /* the last of each that nobody has taken */
    bool has_power;
    struct joule_power power[JOULE_DOMAINS_MAX];
    struct joule_error failure; /* empty: none */
    /* what has been told */
    int64_t measured_ns;              /* the node, last; 0: never */
    uint64_t text[JOULE_METER_TEXTS]; /* of this outage, a number each */
    unsigned texts;
    bool fault[JOULE_POWER_STATUS_COUNT]; /* told, and not over */
    double watts[JOULE_DOMAINS_MAX];
    int64_t changed_ns[JOULE_DOMAINS_MAX];
    bool unchanged[JOULE_DOMAINS_MAX]; /* told */
    struct {
        enum joule_event event;
        struct joule_error text;
    } queue[QUEUE];
    size_t first, count;
};

void joule_meter_destroy(struct joule_meter *meter)
{
    int saved = errno;

    if (!meter)
        return;
    meter->ops->destroy(meter);
    errno = saved;
}

/* ---- what an admin should know; with the lock ---- */

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

static void say(struct joule_meter_thread *t, enum joule_event event,
                const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Of more than the queue holds, those that come last are lost. */
static void say(struct joule_meter_thread *t, enum joule_event event,
                const char *fmt, ...)
{
    size_t at = (t->first + t->count) % QUEUE;
    va_list ap;

    if (t->count == QUEUE)
        return;
    t->count++;
    t->queue[at].event = event;
    va_start(ap, fmt);
    vsnprintf(t->queue[at].text.text, sizeof(t->queue[at].text.text), fmt, ap);
    va_end(ap);
}

static const char *meanwhile(const struct joule_meter_thread *t)
{
    _Static_assert(JOULE_POWER_BRIDGE_NS == 300 * JOULE_NS_PER_S,
                   "it is said below");
    if (t->has_counters)
        return "the counters carry on with what has been learned";
    if (t->measured_ns == 0)
        return "energy is unknown until there is one";
    return "energy goes on with the last power for 300 s at most";
}

static void tell_failure(struct joule_meter_thread *t)
{
    uint64_t number = joule_hash_text(JOULE_HASH_BEGIN, t->failure.text);

    for (unsigned i = 0; i < t->texts; i++)
        if (t->text[i] == number)
            return;
    if (t->texts == JOULE_METER_TEXTS)
        return;
    t->text[t->texts++] = number;
    say(t, JOULE_EVENT_PROBLEM, "no reading of power: %s; %s", t->failure.text,
        meanwhile(t));
}

/* The labels whose reading is a [status], "Node, Socket0", cut where there are
 * too many; false: none. */
static bool labels_of(const struct joule_meter_thread *t,
                      enum joule_power_status status, char *buf, size_t size)
{
    size_t length = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < t->meter->domain_count && length < size; i++)
        if (t->power[i].status == status)
            length +=
                (size_t)snprintf(buf + length, size - length, "%s%s",
                                 length ? ", " : "", t->meter->domains[i].name);
    return length > 0;
}

/* Note when the node was measured, and say how long it was not, and what became
 * of its energy. */
static void time_without(struct joule_meter_thread *t, char *buf, size_t size)
{
    int64_t before_ns = t->measured_ns, ns;

    buf[0] = '\0';
    for (size_t i = 0; i < t->meter->domain_count; i++)
        if (t->meter->domains[i].in_total &&
            t->power[i].status == JOULE_POWER_OK)
            t->measured_ns = t->power[i].mono_ns;
    ns = t->measured_ns - before_ns;
    if (t->has_counters || before_ns == 0 || ns <= t->gap_ns)
        return;
    snprintf(buf, size, " after %.0f s; the energy of that time is %s",
             (double)ns / 1e9,
             ns > JOULE_POWER_BRIDGE_NS
                 ? "that of 300 s with the power before, the rest is left out"
                 : "estimated from the power before and after");
}

static void look_for_faults(struct joule_meter_thread *t, const char *without)
{
    char labels[256];
    bool any = false, over = false;

    for (int status = JOULE_POWER_OK + 1; status < JOULE_POWER_STATUS_COUNT;
         status++) {
        bool is = labels_of(t, (enum joule_power_status)status, labels,
                            sizeof(labels));

        if (is && !t->fault[status])
            say(t, JOULE_EVENT_PROBLEM, "power of %s is not measured: %s; %s",
                labels, fault_words[status], meanwhile(t));
        any = any || is;
        over = over || (t->fault[status] && !is);
        t->fault[status] = is;
    }
    if (over && !any)
        say(t, JOULE_EVENT_INFO, "all power is measured again%s", without);
}

static void look_for_stuck(struct joule_meter_thread *t)
{
    for (size_t i = 0; i < t->meter->domain_count; i++) {
        const struct joule_power *p = &t->power[i];

        if (p->status != JOULE_POWER_OK)
            continue;
        if (t->changed_ns[i] == 0 || p->watts != t->watts[i]) {
            t->watts[i] = p->watts;
            t->changed_ns[i] = p->mono_ns;
        }
        if (t->unchanged[i] || p->mono_ns - t->changed_ns[i] < UNCHANGED_NS)
            continue;
        t->unchanged[i] = true;
        say(t, JOULE_EVENT_INFO,
            "power of %s has been %.1f W for an hour without any change: the "
            "BMC may no longer measure it",
            t->meter->domains[i].name, p->watts);
    }
}

static void tell_power(struct joule_meter_thread *t)
{
    char without[128];
    bool answers = false;

    time_without(t, without, sizeof(without));
    for (size_t i = 0; i < t->meter->domain_count; i++)
        answers = answers || t->power[i].status != JOULE_POWER_FAILED;
    if (answers && t->texts > 0) {
        t->texts = 0;
        say(t, JOULE_EVENT_INFO, "the BMC answers again%s", without);
    }
    look_for_faults(t, without);
    look_for_stuck(t);
}

/* ---- the thread ---- */

static void ask(struct joule_meter_thread *t)
{
    struct joule_error err = {""}, remark;
    int rc = t->meter->ops->read(t->meter, t->asked, &err);
    int errnum = rc < 0 ? errno : 0;

    pthread_mutex_lock(&t->lock);
    /* What there is no room for waits in the meter. */
    while (t->count < QUEUE / 2 && t->meter->ops->remark(t->meter, &remark))
        say(t, JOULE_EVENT_INFO, "%s", remark.text);
    if (rc == 0) {
        t->has_power = true;
        memcpy(t->power, t->asked, sizeof(t->power));
        t->failure.text[0] = '\0';
        if (t->news)
            t->news(t->news_arg);
    } else if (errnum != EAGAIN && errnum != ECANCELED) {
        if (!err.text[0])
            joule_error_set(&err, errnum, "%s", strerror(errnum));
        t->failure = err;
    }
    pthread_mutex_unlock(&t->lock);
}

/* true: go on.  At a steady pace; a reading that took longer is not made up
 * for. */
static bool wait_period(struct joule_meter_thread *t, int64_t *due_ns)
{
    int64_t now_ns = joule_deadline_now();
    bool stop;

    *due_ns += t->period_ns;
    if (*due_ns < now_ns)
        *due_ns = now_ns;
    pthread_mutex_lock(&t->lock);
    while (!t->stop && joule_cond_wait(&t->wake, &t->lock, *due_ns))
        continue;
    stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return !stop;
}

static void *thread_main(void *arg)
{
    struct joule_meter_thread *t = arg;
    int64_t due_ns = joule_deadline_now();
    struct joule_error err;

    prctl(PR_SET_NAME, "joule_bmc");
    do
        ask(t);
    while (wait_period(t, &due_ns));
    /* It was interrupted, and puts away what must not outlive this thread. */
    (void)t->meter->ops->read(t->meter, t->asked, &err);
    return NULL;
}

/* With the lock. */
static void start(struct joule_meter_thread *t)
{
    int rc;

    if (t->pid != 0 || t->period_ns == 0)
        return;
    /* First: a child of fork must not wait for what the thread holds. */
    t->pid = getpid();
    rc = joule_thread_start(&t->thread, THREAD_STACK, thread_main, t);
    if (rc) {
        t->pid = 0;
        joule_error_set(&t->failure, rc, "cannot start the BMC's thread: %s",
                        strerror(rc));
    }
}

void joule_meter_thread_notify(struct joule_meter_thread *t,
                               void (*news)(void *arg), void *arg)
{
    pthread_mutex_lock(&t->lock);
    t->news = news;
    t->news_arg = arg;
    pthread_mutex_unlock(&t->lock);
}

void joule_meter_thread_resume(struct joule_meter_thread *t,
                               int64_t measured_ns)
{
    pthread_mutex_lock(&t->lock);
    t->measured_ns = measured_ns;
    pthread_mutex_unlock(&t->lock);
}

enum joule_meter_news joule_meter_thread_take(struct joule_meter_thread *t,
                                              struct joule_power *power)
{
    enum joule_meter_news news = JOULE_METER_NOTHING;

    pthread_mutex_lock(&t->lock);
    start(t);
    if (t->has_power) {
        tell_power(t);
        memcpy(power, t->power, t->meter->domain_count * sizeof(*power));
        news = JOULE_METER_POWER;
    }
    if (t->failure.text[0]) { /* it came after the power */
        tell_failure(t);
        if (!t->has_power)
            news = JOULE_METER_FAILURE;
    }
    t->has_power = false;
    t->failure.text[0] = '\0';
    pthread_mutex_unlock(&t->lock);
    return news;
}

int joule_meter_thread_remark(struct joule_meter_thread *t,
                              enum joule_event *ret_event,
                              struct joule_error *ret_text)
{
    int rc = 0;

    pthread_mutex_lock(&t->lock);
    if (t->count > 0) {
        *ret_event = t->queue[t->first].event;
        *ret_text = t->queue[t->first].text;
        t->first = (t->first + 1) % QUEUE;
        t->count--;
        rc = 1;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

struct joule_meter_thread *joule_meter_thread_create(struct joule_meter *meter,
                                                     int64_t period_ns,
                                                     int64_t gap_ns,
                                                     bool has_counters)
{
    struct joule_meter_thread *t = calloc(1, sizeof(*t));

    if (!t) {
        joule_meter_destroy(meter);
        errno = ENOMEM;
        return NULL;
    }
    t->meter = meter;
    t->period_ns = period_ns;
    t->gap_ns = gap_ns;
    t->has_counters = has_counters;
    pthread_mutex_init(&t->lock, NULL);
    joule_cond_init(&t->wake);
    return t;
}

void joule_meter_thread_destroy(struct joule_meter_thread *t)
{
    if (!t)
        return;
    if (t->pid != 0 && t->pid == getpid()) {
        /* First: the thread's last reading is to put away, not to ask. */
        t->meter->ops->interrupt(t->meter);
        pthread_mutex_lock(&t->lock);
        t->stop = true;
        pthread_cond_broadcast(&t->wake);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
    }
    /* In a child of fork somebody may have had the lock. */
    if (t->pid == 0 || t->pid == getpid()) {
        pthread_cond_destroy(&t->wake);
        pthread_mutex_destroy(&t->lock);
    }
    joule_meter_destroy(t->meter);
    free(t);
}
