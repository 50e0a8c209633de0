/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/deadline.h"

struct joule_ticker {
    void (*tick)(void *arg);
    void *arg;
    int64_t first_ns, period_ns;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending;
    bool is_ending;
};

/* With the mutex. */
static void wait_ns(struct joule_ticker *t, int64_t ns)
{
    int64_t until_ns = joule_deadline_in(ns);

    while (!t->is_ending && joule_cond_wait(&t->ending, &t->mutex, until_ns))
        continue;
}

static void *run(void *arg)
{
    struct joule_ticker *t = arg;

    pthread_mutex_lock(&t->mutex);
    wait_ns(t, t->first_ns);
    while (!t->is_ending) {
        pthread_mutex_unlock(&t->mutex);
        t->tick(t->arg);
        pthread_mutex_lock(&t->mutex);
        wait_ns(t, t->period_ns);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static void free_ticker(struct joule_ticker *t)
{
    pthread_cond_destroy(&t->ending);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

struct joule_ticker *joule_ticker_create(int64_t first_ns, int64_t period_ns,
                                         void (*tick)(void *arg), void *arg,
                                         struct joule_error *err)
{
    struct joule_ticker *t = calloc(1, sizeof(*t));
    sigset_t all, before;
    int rc;

    if (!t) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    t->tick = tick;
    t->arg = arg;
    t->first_ns = first_ns;
    t->period_ns = period_ns;
    pthread_mutex_init(&t->mutex, NULL);
    joule_cond_init(&t->ending);
    /* Signals are for the threads that know about them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&t->thread, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return t;
    free_ticker(t);
    joule_error_set(err, rc, "cannot start a thread: %s", strerror(rc));
    return NULL;
}

void joule_ticker_destroy(struct joule_ticker *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->mutex);
    t->is_ending = true;
    pthread_cond_signal(&t->ending);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
    free_ticker(t);
}
