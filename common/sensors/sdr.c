/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sdr.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Offsets in the record, counted from 0 (table 43-1 counts from 1). */
enum {
    AT_ID = 0,
    AT_TYPE = 3,
    AT_LENGTH = 4,
    AT_OWNER = 5,
    AT_LUN = 6,
    AT_NUMBER = 7,
    AT_ENTITY = 8,
    AT_INSTANCE = 9,
    AT_UNITS = 20,
    AT_BASE_UNIT = 21,
    AT_LINEARIZATION = 23,
    AT_M = 24,
    AT_B = 26,
    AT_EXPONENTS = 29,
    AT_NAME = 47,
};

#define UNIT_WATTS 6

/* IPMI 2.0, table 43-15, as far as boards use them. */
static const char *const unit_names[] = {
    [1] = "degrees C", [2] = "degrees F", [3] = "K",        [4] = "V",
    [5] = "A",         [6] = "W",         [7] = "J",        [8] = "C",
    [9] = "VA",        [16] = "lux",      [17] = "cfm",     [18] = "RPM",
    [19] = "Hz",       [20] = "us",       [21] = "ms",      [22] = "s",
    [23] = "min",      [24] = "h",        [38] = "radians", [66] = "bits",
    [70] = "bytes",
};

/* Two's complement of the low [bits] of v. */
static int sign_extend(unsigned v, unsigned bits)
{
    unsigned sign = 1u << (bits - 1);

    v &= (sign << 1) - 1;
    return (int)(v ^ sign) - (int)sign;
}

/* Ten bits: the low byte, then the high two of the next. */
static int16_t ten_bits(const uint8_t *p)
{
    return (int16_t)sign_extend(p[0] | (unsigned)(p[1] & 0xC0) << 2, 10);
}

static char printable(unsigned c)
{
    return c >= 0x20 && c < 0x7F ? (char)c : '?';
}

/* The i-th six bits of a string of bytes, lowest first. */
static unsigned six_bits(const uint8_t *p, size_t len, size_t i)
{
    size_t bit = i * 6;
    unsigned two = p[bit / 8];

    if (bit / 8 + 1 < len)
        two |= (unsigned)p[bit / 8 + 1] << 8;
    return two >> bit % 8 & 0x3F;
}

/* The ID string: IPMI 2.0, 43.15 "Type/Length Byte Format". */
static void decode_name(uint8_t type_length, const uint8_t *p,
                        char name[JOULE_SDR_NAME_SIZE])
{
    static const char bcd_plus[] = "0123456789 -.:,_";
    size_t len = type_length & 0x1F, n = 0;

    switch (type_length >> 6) {
    case 1:
        for (size_t i = 0; i < len; i++) {
            name[n++] = bcd_plus[p[i] >> 4];
            name[n++] = bcd_plus[p[i] & 0xF];
        }
        break;
    case 2:
        for (size_t i = 0; i < len * 8 / 6; i++)
            name[n++] = (char)(0x20 + six_bits(p, len, i));
        break;
    default: /* 8-bit ASCII + Latin 1; Unicode means the same to most BMCs */
        for (size_t i = 0; i < len && p[i] != '\0'; i++)
            name[n++] = printable(p[i]);
        break;
    }
    while (n > 0 && name[n - 1] == ' ')
        n--;
    name[n] = '\0';
}

static void name_unit(const uint8_t *record, struct joule_sdr *sdr)
{
    unsigned base = record[AT_BASE_UNIT];
    const char *name = NULL;

    if (base < sizeof(unit_names) / sizeof(unit_names[0]))
        name = unit_names[base];
    /* Byte 21: rate, modifier and percentage turn watts into something else. */
    sdr->watts = base == UNIT_WATTS && !(record[AT_UNITS] & 0x3F);
    if (record[AT_UNITS] & 0x01)
        snprintf(sdr->unit, sizeof(sdr->unit), "%%");
    else if (name && !(record[AT_UNITS] & 0x3E))
        snprintf(sdr->unit, sizeof(sdr->unit), "%s", name);
    else
        snprintf(sdr->unit, sizeof(sdr->unit), "unit %u/%02X", base,
                 record[AT_UNITS]);
}

int joule_sdr_parse(const uint8_t *record, size_t size, struct joule_sdr *ret,
                    struct joule_error *err)
{
    struct joule_sdr sdr;
    unsigned id;

    if (size < JOULE_SDR_HEADER_SIZE)
        return joule_error_set(err, EBADMSG,
                               "a sensor record has %zu bytes only", size);
    id = record[AT_ID] | (unsigned)record[AT_ID + 1] << 8;
    if (record[AT_TYPE] != JOULE_SDR_FULL)
        return joule_error_set(err, ENOMSG,
                               "record %u is not that of an analog sensor "
                               "(type %02Xh)",
                               id, record[AT_TYPE]);
    if (size > (size_t)JOULE_SDR_HEADER_SIZE + record[AT_LENGTH])
        size = (size_t)JOULE_SDR_HEADER_SIZE + record[AT_LENGTH];
    if (size <= AT_NAME ||
        size < AT_NAME + 1 + (size_t)(record[AT_NAME] & 0x1F))
        return joule_error_set(err, EBADMSG, "sensor record %u is cut off", id);
    memset(&sdr, 0, sizeof(sdr));
    sdr.record_id = (uint16_t)id;
    sdr.owner = record[AT_OWNER];
    sdr.channel = record[AT_LUN] >> 4;
    sdr.lun = record[AT_LUN] & 0x3;
    sdr.number = record[AT_NUMBER];
    sdr.entity = record[AT_ENTITY];
    sdr.instance = record[AT_INSTANCE];
    sdr.format = record[AT_UNITS] >> 6;
    sdr.linearization = record[AT_LINEARIZATION] & 0x7F;
    sdr.m = ten_bits(record + AT_M);
    sdr.b = ten_bits(record + AT_B);
    sdr.r_exp = (int8_t)sign_extend(record[AT_EXPONENTS] >> 4, 4);
    sdr.b_exp = (int8_t)sign_extend(record[AT_EXPONENTS] & 0xF, 4);
    name_unit(record, &sdr);
    decode_name(record[AT_NAME], record + AT_NAME + 1, sdr.name);
    *ret = sdr;
    return 0;
}

static int raw_number(const struct joule_sdr *sdr, uint8_t raw)
{
    switch (sdr->format) {
    case JOULE_SDR_TWOS:
        return sign_extend(raw, 8);
    case JOULE_SDR_ONES:
        return raw & 0x80 ? -(int)(~raw & 0xFF) : raw;
    default:
        return raw;
    }
}

/* IPMI 2.0, 36.3: y = L[(M x + B 10^K1) 10^K2]. */
int joule_sdr_value(const struct joule_sdr *sdr, uint8_t raw, double *ret_value)
{
    double v =
        sdr->m * (double)raw_number(sdr, raw) + sdr->b * pow(10.0, sdr->b_exp);

    if (sdr->format == JOULE_SDR_NO_ANALOG) {
        errno = ENOTSUP;
        return -1;
    }
    v *= pow(10.0, sdr->r_exp);
    switch (sdr->linearization) {
    case 0:
        break;
    case 1:
        v = log(v);
        break;
    case 2:
        v = log10(v);
        break;
    case 3:
        v = log2(v);
        break;
    case 4:
        v = exp(v);
        break;
    case 5:
        v = pow(10.0, v);
        break;
    case 6:
        v = exp2(v);
        break;
    case 7:
        v = 1.0 / v;
        break;
    case 8:
        v = v * v;
        break;
    case 9:
        v = v * v * v;
        break;
    case 10:
        v = sqrt(v);
        break;
    default: /* 11, "cube^-1", is a root to some and 1/x^3 to others */
        errno = ENOTSUP;
        return -1;
    }
    *ret_value = v;
    return 0;
}

bool joule_sdr_saturated(const struct joule_sdr *sdr, uint8_t raw)
{
    if (sdr->format == JOULE_SDR_UNSIGNED)
        return raw == 0xFF;
    return raw == 0x7F || raw == 0x80;
}

uint8_t joule_sdr_highest(const struct joule_sdr *sdr)
{
    return sdr->format == JOULE_SDR_UNSIGNED ? 0xFF : 0x7F;
}

double joule_sdr_step(const struct joule_sdr *sdr)
{
    return sdr->linearization == 0 ? fabs(sdr->m * pow(10.0, sdr->r_exp)) : 0.0;
}
