/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/pace.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define NICE (-10)

void joule_pace_start(void)
{
    /* The kernel may be late by 50 us to save wake-ups: too much for periods
     * of 10 ms. */
    prctl(PR_SET_TIMERSLACK, 1);
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

int joule_pace_hurry(void)
{
    struct sched_param param = {.sched_priority = 1};

    return sched_setscheduler(gettid(), SCHED_FIFO | SCHED_RESET_ON_FORK,
                              &param);
}

/*
 * A condition variable would take its mutex twice, and wake whoever might wait
 * for that by one more system call: glibc's marks it as contended after a
 * timed wait, whether it is or not.
 */
bool joule_pace_sleep(joule_stop *stop, int64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / JOULE_NS_PER_S),
                             .tv_nsec = (long)(until_ns % JOULE_NS_PER_S)};

    while (atomic_load_explicit(stop, memory_order_acquire) == 0)
        if (syscall(SYS_futex, stop, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) < 0 &&
            errno == ETIMEDOUT)
            return true;
    return false;
}

void joule_pace_stop(joule_stop *stop)
{
    atomic_store_explicit(stop, 1, memory_order_release);
    syscall(SYS_futex, stop, FUTEX_WAKE_PRIVATE, 1);
}
