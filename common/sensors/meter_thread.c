/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/meter_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/thread.h"

#define THREAD_STACK (128 * 1024)

struct joule_meter_thread {
    struct joule_meter *meter;
    int64_t period_ns;
    pid_t pid; /* of the process that has the thread; 0: none yet */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool stop;
    void (*news)(void *arg);
    void *news_arg;
    struct joule_meter_mail mail;
    /* the thread's own */
    struct joule_power power[JOULE_DOMAINS_MAX];
};

static void take_remarks(struct joule_meter_thread *t)
{
    struct joule_meter_mail *m = &t->mail;

    while (m->remarks < JOULE_METER_REMARKS &&
           t->meter->ops->remark(t->meter, &m->remark[m->remarks]))
        m->remarks++;
}

static void ask(struct joule_meter_thread *t)
{
    struct joule_error err = {""};
    int rc = t->meter->ops->read(t->meter, t->power, &err);
    int errnum = rc < 0 ? errno : 0;

    pthread_mutex_lock(&t->lock);
    take_remarks(t);
    if (rc == 0) {
        t->mail.has_power = true;
        memcpy(t->mail.power, t->power,
               t->meter->domain_count * sizeof(t->power[0]));
        t->mail.failure.text[0] = '\0';
        if (t->news)
            t->news(t->news_arg);
    } else if (errnum != EAGAIN && errnum != ECANCELED) {
        if (!err.text[0])
            joule_error_set(&err, errnum, "%s", strerror(errnum));
        t->mail.failure = err;
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
    (void)t->meter->ops->read(t->meter, t->power, &err);
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
        joule_error_set(&t->mail.failure, rc,
                        "cannot start the BMC's thread: %s", strerror(rc));
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

bool joule_meter_thread_take(struct joule_meter_thread *t,
                             struct joule_meter_mail *ret)
{
    struct joule_meter_mail *m = &t->mail;
    bool is_new;

    pthread_mutex_lock(&t->lock);
    start(t);
    is_new = m->has_power || m->failure.text[0] || m->remarks > 0;
    if (is_new) {
        *ret = *m;
        m->has_power = false;
        m->failure.text[0] = '\0';
        m->remarks = 0;
    }
    pthread_mutex_unlock(&t->lock);
    return is_new;
}

struct joule_meter_thread *joule_meter_thread_create(struct joule_meter *meter,
                                                     int64_t period_ns)
{
    struct joule_meter_thread *t = calloc(1, sizeof(*t));

    if (!t) {
        joule_meter_destroy(meter);
        errno = ENOMEM;
        return NULL;
    }
    t->meter = meter;
    t->period_ns = period_ns;
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
