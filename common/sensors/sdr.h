/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sdr.h - what the bytes of a BMC mean: the data record of an analog sensor
 * (IPMI 2.0, 43.1, table 43-1 "Full Sensor Record"), and answers to questions
 * about power.
 *
 * Pure functions.  The bytes may be anything; what is no measurement is said to
 * be none, and nothing is guessed.
 */
#ifndef JOULE_SENSORS_SDR_H
#define JOULE_SENSORS_SDR_H

#include "common/sensors/ipmi_wire.h"

#define JOULE_DCMI_GROUP 0xDC

#define JOULE_SDR_HEADER_SIZE 5
#define JOULE_SDR_SIZE_MAX    (JOULE_SDR_HEADER_SIZE + 255)
#define JOULE_SDR_FULL        0x01 /* record type */
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
    char unit[JOULE_SDR_UNIT_SIZE];  /* for people: "W", "degrees C" */
    char name[JOULE_IPMI_NAME_SIZE]; /* ID string, printable ASCII, no blanks at
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

/* The raw byte of the highest value: 0xFF or 0x7F. */
uint8_t joule_sdr_highest(const struct joule_sdr *sdr);

/* Between two neighbouring raw values, 0 where that differs. */
double joule_sdr_step(const struct joule_sdr *sdr);

/*
 * An answer is what follows the command byte: the completion code, then the
 * data.  These fill watts, status and code.  [believe]: also where the BMC says
 * that it does not scan the sensor, or that DCMI is not active.
 */

/* Get Sensor Reading (IPMI 2.0, 35.14). */
void joule_ipmi_sensor_answer(const struct joule_sdr *sdr, bool believe,
                              const uint8_t *rs, size_t size,
                              struct joule_wire_value *out);

/* Get Power Reading (DCMI 1.5, 6.6.1); [average] takes the mean of the BMC's
 * period instead of the present power. */
void joule_ipmi_dcmi_answer(bool average, bool believe, const uint8_t *rs,
                            size_t size, struct joule_wire_value *out);

/*
 * Get DCMI Capabilities Info, parameter 5 (DCMI 1.5, table 6-3): the attribute
 * byte of the shortest averaging period that is not "now".
 * -1 with ENOTSUP: there is none; EBADMSG: not such an answer.
 */
int joule_ipmi_dcmi_window(const uint8_t *rs, size_t size,
                           uint8_t *ret_attribute);

#endif
