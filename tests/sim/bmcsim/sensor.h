/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor.h - the BMC's sensors: what each of them measures and how a power
 * becomes its raw byte.
 *
 * A full sensor record (IPMI 2.0, 36.3) gives watts as
 * (M raw + B 10^b_exp) 10^r_exp; the byte is unsigned.
 */
#ifndef BMCSIM_SENSOR_H
#define BMCSIM_SENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define BMC_SENSORS_MAX 16

enum bmc_part { BMC_NODE, BMC_CPU, BMC_DRAM, BMC_STILL };

struct bmc_sensor {
    uint8_t number;
    enum bmc_part part;
    unsigned package; /* of BMC_CPU */
    unsigned percent; /* of the part's power that passes here; of BMC_STILL,
                         which measures no power, always the raw value */
    int m, b, b_exp, r_exp;
};

struct bmc_sensors {
    size_t count;
    struct bmc_sensor sensor[BMC_SENSORS_MAX];
};

/*
 * Add a sensor written as "NUMBER:PART:PERCENT:M:B:B_EXP:R_EXP", PART one of
 * node, cpu0 to cpu7, dram and still.  -1 with EINVAL or ENOSPC and a sentence.
 */
int bmc_sensors_add(struct bmc_sensors *sensors, const char *text,
                    struct joule_error *err);

/* NULL: no such sensor. */
const struct bmc_sensor *bmc_sensors_find(const struct bmc_sensors *sensors,
                                          uint8_t number);

/* The raw value nearest to [watts]; 0 or 255 where it is out of range. */
uint8_t bmc_sensor_raw(const struct bmc_sensor *sensor, double watts);

/* Watts of a raw value. */
double bmc_sensor_watts(const struct bmc_sensor *sensor, uint8_t raw);

#endif
