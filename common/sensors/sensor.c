/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sensor.h"

#include <errno.h>

#include "common/sensors/meter.h"

void joule_meter_destroy(struct joule_meter *meter)
{
    int saved = errno;

    if (!meter)
        return;
    meter->ops->destroy(meter);
    errno = saved;
}

void joule_sensor_destroy(struct joule_sensor *sensor)
{
    int saved = errno;

    if (!sensor)
        return;
    sensor->ops->destroy(sensor);
    errno = saved;
}
