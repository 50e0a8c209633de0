/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/deadline.h"

#include <errno.h>

int64_t joule_deadline_now(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * JOULE_NS_PER_S + t.tv_nsec;
}

int64_t joule_deadline_in(int64_t ns)
{
    return joule_deadline_now() + (ns > 0 ? ns : 0);
}

int64_t joule_deadline_left(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - joule_deadline_now();

    return left_ns > 0 ? left_ns : 0;
}

struct timespec joule_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / JOULE_NS_PER_S),
                             .tv_nsec = (long)(ns % JOULE_NS_PER_S)};
}

void joule_sleep_until(int64_t deadline_ns)
{
    struct timespec t = joule_timespec(deadline_ns);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

void joule_sleep_ns(int64_t ns)
{
    joule_sleep_until(joule_deadline_in(ns));
}

void joule_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool joule_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                     int64_t deadline_ns)
{
    struct timespec t = joule_timespec(deadline_ns);

    return pthread_cond_timedwait(cond, mutex, &t) != ETIMEDOUT;
}
