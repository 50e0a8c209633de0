/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sensor.h"

#include <errno.h>

void joule_sensor_destroy(struct joule_sensor *sensor)
{
    int saved = errno;

    if (!sensor)
        return;
    sensor->ops->destroy(sensor);
    errno = saved;
}
