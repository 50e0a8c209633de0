/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sensor.h"

#include <errno.h>

void joule_sensor_destroy(struct joule_sensor *source)
{
    int saved = errno;

    if (!source)
        return;
    source->ops->destroy(source);
    errno = saved;
}

void joule_sensor_end(struct joule_sensor *source, struct joule_power *out)
{
    struct joule_error err;

    (void)source->ops->read_power(source, out, &err);
}

int64_t joule_sensor_read_all(struct joule_sensor *source,
                              const struct joule_clock *clock,
                              struct joule_reading *readings)
{
    int64_t before_ns, now_ns;
    int tries = 0;

    /* Slow devices (a simulator's) are not read for ever. */
    do {
        before_ns = joule_clock_mono_ns(clock);
        joule_sensor_read(source, readings);
        now_ns = joule_clock_mono_ns(clock);
    } while (now_ns - before_ns > JOULE_NS_PER_MS && ++tries < 4);
    return now_ns;
}
