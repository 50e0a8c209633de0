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

/* IPMI 2.0, table 35-15. */
#define SENSOR_SCANNED     0x40
#define SENSOR_UNAVAILABLE 0x20

/* DCMI 1.5, table 6-16. */
#define DCMI_SIZE   19
#define DCMI_ACTIVE 0x40

/* IPMI 2.0, table 43-15, as far as boards use them. */
static const char *const unit_names[] = {
    [1] = "degrees C", [2] = "degrees F", [3] = "K",        [4] = "V",
    [5] = "A",         [6] = "W",         [7] = "J",        [8] = "C",
    [9] = "VA",        [16] = "lux",      [17] = "cfm",     [18] = "RPM",
    [19] = "Hz",       [20] = "us",       [21] = "ms",      [22] = "s",
    [23] = "min",      [24] = "h",        [38] = "radians", [66] = "bits",
    [70] = "bytes",
};

static unsigned word(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

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
                        char name[JOULE_IPMI_NAME_SIZE])
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
    id = word(record + AT_ID);
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

static double linear(double x)
{
    return x;
}

static double inverse(double x)
{
    return 1.0 / x;
}

static double square(double x)
{
    return x * x;
}

static double cube(double x)
{
    return x * x * x;
}

static double ten_to(double x)
{
    return pow(10.0, x);
}

/* Table 43-1, byte 24.  11, "cube^-1", is a root to some and 1/x^3 to others. */
static double (*const linearizations[])(double) = {
    linear, log, log10, log2, exp, ten_to, exp2, inverse, square, cube, sqrt,
};

/* IPMI 2.0, 36.3: y = L[(M x + B 10^K1) 10^K2]. */
int joule_sdr_value(const struct joule_sdr *sdr, uint8_t raw, double *ret_value)
{
    double v =
        sdr->m * (double)raw_number(sdr, raw) + sdr->b * pow(10.0, sdr->b_exp);

    if (sdr->format == JOULE_SDR_NO_ANALOG ||
        sdr->linearization >=
            sizeof(linearizations) / sizeof(linearizations[0])) {
        errno = ENOTSUP;
        return -1;
    }
    *ret_value = linearizations[sdr->linearization](v * pow(10.0, sdr->r_exp));
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

/* ---- answers ---- */

/* Whether there is an answer at all; if not, out says why. */
static bool answered(const uint8_t *rs, size_t size, size_t need,
                     struct joule_wire_value *out)
{
    out->watts = 0.0;
    out->code = 0;
    out->status = JOULE_POWER_FAILED;
    if (size > 0 && rs[0] != 0) {
        out->status = JOULE_POWER_REFUSED;
        out->code = rs[0];
        return false;
    }
    return size >= need;
}

static void set_watts(struct joule_wire_value *out, double watts)
{
    out->status = JOULE_POWER_OK;
    if (!(fabs(watts) <= JOULE_POWER_MAX_W)) /* not a number, too */
        out->status = JOULE_POWER_ABSURD;
    else if (watts < 0.0)
        out->status = JOULE_POWER_NEGATIVE;
    else if (watts == 0.0)
        out->status = JOULE_POWER_ZERO;
    else
        out->watts = watts;
}

void joule_ipmi_sensor_answer(const struct joule_sdr *sdr, bool believe,
                              const uint8_t *rs, size_t size,
                              struct joule_wire_value *out)
{
    double watts;

    if (!answered(rs, size, 3, out))
        return;
    if (rs[2] & SENSOR_UNAVAILABLE)
        out->status = JOULE_POWER_UNAVAILABLE;
    else if (!(rs[2] & SENSOR_SCANNED) && !believe)
        out->status = JOULE_POWER_NOT_SCANNED;
    else if (joule_sdr_saturated(sdr, rs[1]))
        out->status = JOULE_POWER_SATURATED;
    else if (joule_sdr_value(sdr, rs[1], &watts) == 0)
        set_watts(out, watts);
}

void joule_ipmi_dcmi_answer(bool average, bool believe, const uint8_t *rs,
                            size_t size, struct joule_wire_value *out)
{
    unsigned watts;

    if (!answered(rs, size, DCMI_SIZE, out) || rs[1] != JOULE_DCMI_GROUP)
        return;
    watts = word(rs + (average ? 8 : 2));
    if (!(rs[18] & DCMI_ACTIVE) && !believe)
        out->status = JOULE_POWER_NOT_ACTIVE;
    else if (watts == 0xFFFF)
        out->status = JOULE_POWER_SATURATED;
    else
        set_watts(out, watts);
}

/* Bits 7:6 are the unit, 5:0 how many of them. */
static uint32_t window_s(uint8_t attribute)
{
    static const uint32_t unit_s[] = {1, 60, 3600, 86400};

    return unit_s[attribute >> 6] * (attribute & 0x3Fu);
}

int joule_ipmi_dcmi_window(const uint8_t *rs, size_t size,
                           uint8_t *ret_attribute)
{
    uint32_t best_s = 0;

    if (size < 6 || rs[0] != 0 || rs[1] != JOULE_DCMI_GROUP ||
        rs[5] > size - 6) {
        errno = EBADMSG;
        return -1;
    }
    for (size_t i = 0; i < rs[5]; i++) {
        uint32_t s = window_s(rs[6 + i]);

        if (s > 0 && (best_s == 0 || s < best_s)) {
            best_s = s;
            *ret_attribute = rs[6 + i];
        }
    }
    if (best_s == 0) {
        errno = ENOTSUP;
        return -1;
    }
    return 0;
}
