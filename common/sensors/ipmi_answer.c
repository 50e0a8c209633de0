/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_answer.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define DCMI_GROUP 0xDC

/* IPMI 2.0, table 35-15. */
#define SENSOR_SCANNED     0x40
#define SENSOR_UNAVAILABLE 0x20

/* DCMI 1.5, table 6-16. */
#define DCMI_SIZE   19
#define DCMI_ACTIVE 0x40

/* Whether there is an answer at all; if not, out says why. */
static bool answered(const uint8_t *rs, size_t size, size_t need,
                     struct joule_wire_value *out)
{
    out->watts = 0.0;
    out->code = 0;
    out->status = JOULE_POWER_FAILED;
    if (size == 0)
        return false;
    if (rs[0] != 0) {
        out->status = JOULE_POWER_REFUSED;
        out->code = rs[0];
        return false;
    }
    return size >= need;
}

static enum joule_power_status plausible(double watts)
{
    if (!(fabs(watts) <= JOULE_POWER_MAX_W)) /* not a number, too */
        return JOULE_POWER_ABSURD;
    if (watts < 0.0)
        return JOULE_POWER_NEGATIVE;
    return watts > 0.0 ? JOULE_POWER_OK : JOULE_POWER_ZERO;
}

static void set_watts(struct joule_wire_value *out, double watts)
{
    out->status = plausible(watts);
    if (out->status == JOULE_POWER_OK)
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

static unsigned word(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

void joule_ipmi_dcmi_answer(bool average, bool believe, const uint8_t *rs,
                            size_t size, struct joule_wire_value *out)
{
    unsigned watts;

    if (!answered(rs, size, DCMI_SIZE, out) || rs[1] != DCMI_GROUP)
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
    size_t count;

    if (size < 6 || rs[0] != 0 || rs[1] != DCMI_GROUP) {
        errno = EBADMSG;
        return -1;
    }
    count = rs[5];
    if (count > size - 6) {
        errno = EBADMSG;
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
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
