/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/sensor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"

#define FIELDS 7

static int parse_signed(const char *text, int64_t limit, int *ret)
{
    uint64_t value;
    int sign = *text == '-' ? -1 : 1;

    if (joule_parse_u64(text + (sign < 0), 0, (uint64_t)limit, &value))
        return -1;
    *ret = sign * (int)value;
    return 0;
}

static int parse_part(const char *text, struct bmc_sensor *sensor)
{
    if (!strcmp(text, "node")) {
        sensor->part = BMC_NODE;
    } else if (!strcmp(text, "dram")) {
        sensor->part = BMC_DRAM;
    } else if (!strcmp(text, "still")) {
        sensor->part = BMC_STILL;
    } else if (!strncmp(text, "cpu", 3) && text[3] >= '0' && text[3] <= '7' &&
               !text[4]) {
        sensor->part = BMC_CPU;
        sensor->package = (unsigned)(text[3] - '0');
    } else {
        return -1;
    }
    return 0;
}

/* Limits of the record's fields: number 8, M and B 10, exponents 4 bits. */
static int parse_fields(char **field, struct bmc_sensor *sensor)
{
    uint64_t number, percent;

    if (joule_parse_u64(field[0], 1, 255, &number) ||
        parse_part(field[1], sensor) ||
        joule_parse_u64(field[2], 0, 100, &percent) ||
        parse_signed(field[3], 511, &sensor->m) || sensor->m < 1 ||
        parse_signed(field[4], 511, &sensor->b) ||
        parse_signed(field[5], 7, &sensor->b_exp) ||
        parse_signed(field[6], 7, &sensor->r_exp))
        return -1;
    sensor->number = (uint8_t)number;
    sensor->percent = (unsigned)percent;
    return 0;
}

int bmc_sensors_add(struct bmc_sensors *sensors, const char *text,
                    struct joule_error *err)
{
    char copy[96], *rest = copy, *word, *field[FIELDS];
    struct bmc_sensor sensor = {0};
    size_t count = 0;

    if (sensors->count == BMC_SENSORS_MAX)
        return joule_error_set(err, ENOSPC, "there are more than %d sensors",
                               BMC_SENSORS_MAX);
    if (strlen(text) < sizeof(copy)) {
        strcpy(copy, text);
        while ((word = strsep(&rest, ":"))) {
            if (count < FIELDS)
                field[count] = word;
            count++;
        }
    }
    if (count != FIELDS || parse_fields(field, &sensor))
        return joule_error_set(err, EINVAL,
                               "sensor \"%s\" is not "
                               "NUMBER:PART:PERCENT:M:B:B_EXP:R_EXP",
                               text);
    if (bmc_sensors_find(sensors, sensor.number))
        return joule_error_set(err, EINVAL, "sensor %u stands twice",
                               sensor.number);
    sensors->sensor[sensors->count++] = sensor;
    return 0;
}

const struct bmc_sensor *bmc_sensors_find(const struct bmc_sensors *sensors,
                                          uint8_t number)
{
    for (size_t i = 0; i < sensors->count; i++)
        if (sensors->sensor[i].number == number)
            return &sensors->sensor[i];
    return NULL;
}

uint8_t bmc_sensor_raw(const struct bmc_sensor *sensor, double watts)
{
    double raw =
        (watts / pow(10, sensor->r_exp) - sensor->b * pow(10, sensor->b_exp)) /
        sensor->m;

    raw = floor(raw + 0.5);
    return raw < 0 ? 0 : raw > 255 ? 255 : (uint8_t)raw;
}

double bmc_sensor_watts(const struct bmc_sensor *sensor, uint8_t raw)
{
    return (sensor->m * (double)raw + sensor->b * pow(10, sensor->b_exp)) *
           pow(10, sensor->r_exp);
}
