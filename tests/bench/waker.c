/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/waker.h"

#include <string.h>
#include <sys/prctl.h>

#include "tests/bench/bench.h"

static void *wake_up(void *arg)
{
    struct waker *waker = arg;
    int64_t next_ns = waker->begin_ns;

    prctl(PR_SET_NAME, waker->name);
    joule_punctual_start();
    joule_punctual_hurry();
    while (joule_punctual_sleep(&waker->stop, next_ns))
        next_ns += WAKER_PERIOD_NS;
    return NULL;
}

void waker_start(struct waker *waker, const char *name, int64_t begin_ns)
{
    int rc;

    waker->stop = 0;
    waker->name = name;
    waker->begin_ns = begin_ns;
    rc = pthread_create(&waker->thread, NULL, wake_up, waker);
    if (rc != 0)
        bench_die("pthread_create", strerror(rc));
}

double waker_cpu_ns(const struct waker *waker)
{
    clockid_t clock;
    int rc = pthread_getcpuclockid(waker->thread, &clock);

    if (rc != 0)
        bench_die("pthread_getcpuclockid", strerror(rc));
    return bench_now_ns(clock);
}

void waker_stop(struct waker *waker)
{
    joule_punctual_stop(&waker->stop);
    pthread_join(waker->thread, NULL);
}
