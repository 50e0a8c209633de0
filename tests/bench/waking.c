/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waking - what it costs to be woken 100 times a second.
 *
 *     waking SECONDS
 *
 * A thread on each of this machine's CPUs (four at most) is woken at moments of
 * its own, and does nothing.  Prints the CPU time of a wake-up, in us: the
 * mean.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/waker.h"

#define CPUS_MAX    4
#define SECONDS_MAX 3600

static void put_on(const struct waker *waker, int cpu)
{
    cpu_set_t one;
    int rc;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    rc = pthread_setaffinity_np(waker->thread, sizeof(one), &one);
    if (rc != 0)
        bench_die("pthread_setaffinity_np", strerror(rc));
}

/* Returns how many. */
static int start(struct waker *wakers)
{
    cpu_set_t all;
    int count = 0;
    int64_t now_ns = (int64_t)bench_now_ns(CLOCK_MONOTONIC);

    if (sched_getaffinity(0, sizeof(all), &all) < 0)
        bench_die("sched_getaffinity", strerror(errno));
    for (int cpu = 0; cpu < CPU_SETSIZE && count < CPUS_MAX; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        waker_start(&wakers[count], "waking",
                    now_ns + count * WAKER_PERIOD_NS / CPUS_MAX);
        put_on(&wakers[count], cpu);
        count++;
    }
    return count;
}

static double cpu_ns(const struct waker *wakers, int count)
{
    double ns = 0;

    for (int i = 0; i < count; i++)
        ns += waker_cpu_ns(&wakers[i]);
    return ns;
}

int main(int argc, char **argv)
{
    struct waker wakers[CPUS_MAX];
    char *end = NULL;
    long seconds = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    double ns;
    int count;

    if (seconds < 1 || seconds > SECONDS_MAX || *end != '\0')
        bench_die("usage", "waking SECONDS");
    count = start(wakers);
    bench_sleep_ms(200);
    ns = -cpu_ns(wakers, count);
    bench_sleep_ms((int)seconds * 1000);
    ns += cpu_ns(wakers, count);
    for (int i = 0; i < count; i++)
        waker_stop(&wakers[i]);
    printf("%.2f\n", ns / 1e3 / count /
                         (double)(seconds * JOULE_NS_PER_S / WAKER_PERIOD_NS));
    return 0;
}
