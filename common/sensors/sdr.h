/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sdr.h - the sensor data record of an analog sensor: what it measures, in
 * which unit, and what its raw byte stands for.
 *
 * Pure functions on the bytes of a record (IPMI 2.0, 43.1, table 43-1 "Full
 * Sensor Record"), which come from a BMC and may hold anything.
 */
#ifndef JOULE_SENSORS_SDR_H
#define JOULE_SENSORS_SDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_SDR_HEADER_SIZE 5
#define JOULE_SDR_SIZE_MAX    (JOULE_SDR_HEADER_SIZE + 255)
#define JOULE_SDR_FULL        0x01 /* record type */
#define JOULE_SDR_NAME_SIZE   64   /* 31 bytes of BCD plus are 62 characters */
#define JOULE_SDR_UNIT_SIZE   16

enum joule_sdr_format {
    JOULE_SDR_UNSIGNED = 0,
    JOULE_SDR_ONES = 1, /* ones' complement */
    JOULE_SDR_TWOS = 2,
    JOULE_SDR_NO_ANALOG = 3,
};

struct joule_sdr {
    uint16_t record_id;
    uint8_t owner;   /* slave address; software ID where bit 0 is set */
    uint8_t channel; /* of the owner */
    uint8_t lun;
    uint8_t number;
    uint8_t entity,
        instance; /* what it measures (table 43-13), which of them */
    bool watts;   /* nothing but watts: no rate, no modifier, no percentage */
    char unit[JOULE_SDR_UNIT_SIZE]; /* for people: "W", "degrees C" */
    char name[JOULE_SDR_NAME_SIZE]; /* ID string, printable ASCII, no blanks at
                                       its end; may be empty */
    enum joule_sdr_format format;
    uint8_t linearization; /* 0: linear; table 43-1, byte 24 */
    int16_t m, b;
    int8_t b_exp, r_exp;
};

/*
 * Parse a whole record.  0, or -1 with a sentence and errno
 *   ENOMSG  not the record of an analog sensor (another type)
 *   EBADMSG the record is cut off or contradicts itself
 * *ret is unchanged on failure.
 */
int joule_sdr_parse(const uint8_t *record, size_t size, struct joule_sdr *ret,
                    struct joule_error *err);

/* What a raw byte stands for, in the record's unit.  May be no finite number.
 * -1 with ENOTSUP: the conversion differs from reading to reading (non-linear
 * sensor) or is not in the standard. */
int joule_sdr_value(const struct joule_sdr *sdr, uint8_t raw,
                    double *ret_value);

/* The byte is at an end of what the format can hold: at least that much, or a
 * BMC that does not know. */
bool joule_sdr_saturated(const struct joule_sdr *sdr, uint8_t raw);

/* The raw byte of the highest value that is not out of range but is the last:
 * 0xFF or 0x7F. */
uint8_t joule_sdr_highest(const struct joule_sdr *sdr);

/* Between two neighbouring raw values, 0 where that differs. */
double joule_sdr_step(const struct joule_sdr *sdr);

#endif
