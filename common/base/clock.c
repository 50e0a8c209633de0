/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/clock.h"

#include <stddef.h>
#include <time.h>

/* clock_gettime fails only for an unknown clock or a bad pointer; both
 * clocks are in every kernel since 2.6.39. */
static int64_t now_ns(clockid_t id)
{
    struct timespec ts = {0};

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * JOULE_NS_PER_S + ts.tv_nsec;
}

static int64_t system_mono_ns(void *arg)
{
    (void)arg;
    return now_ns(CLOCK_BOOTTIME);
}

static int64_t system_wall_ns(void *arg)
{
    (void)arg;
    return now_ns(CLOCK_REALTIME);
}

const struct joule_clock joule_clock_system = {
    .mono_ns = system_mono_ns,
    .wall_ns = system_wall_ns,
    .arg = NULL,
};
