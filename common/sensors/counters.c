/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/counters.h"

#include <errno.h>

int64_t joule_counters_read(struct joule_counters *counters,
                            const struct joule_clock *clock,
                            struct joule_raw *out)
{
    int64_t before_ns, now_ns;
    int tries = 0;

    /* Slow devices (a simulator's) are not read for ever. */
    do {
        before_ns = joule_clock_mono_ns(clock);
        counters->ops->read(counters, out);
        now_ns = joule_clock_mono_ns(clock);
    } while (now_ns - before_ns > JOULE_NS_PER_MS && ++tries < 4);
    return now_ns;
}

void joule_counters_destroy(struct joule_counters *counters)
{
    int saved = errno;

    if (!counters)
        return;
    counters->ops->destroy(counters);
    errno = saved;
}
