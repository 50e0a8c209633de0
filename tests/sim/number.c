/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/number.h"

#include <errno.h>
#include <stdbool.h>

int sim_parse_fixed(const char *s, unsigned digits, int64_t max, int64_t *ret)
{
    uint64_t value = 0;
    unsigned places = 0;
    bool point = false, any = false;

    for (; *s; s++) {
        if (*s == '.' && !point && any) {
            point = true;
            continue;
        }
        if (*s < '0' || *s > '9')
            break;
        if (point && ++places > digits)
            break;
        any = true;
        if (value > (UINT64_MAX - 9) / 10) {
            errno = ERANGE;
            return -1;
        }
        value = value * 10 + (uint64_t)(*s - '0');
    }
    if (*s || !any || (point && !places)) {
        errno = EINVAL;
        return -1;
    }
    for (; places < digits; places++) {
        if (value > UINT64_MAX / 10) {
            errno = ERANGE;
            return -1;
        }
        value *= 10;
    }
    if (value > (uint64_t)max) {
        errno = ERANGE;
        return -1;
    }
    *ret = (int64_t)value;
    return 0;
}

int sim_parse_uw(const char *s, int64_t *ret_uw)
{
    return sim_parse_fixed(s, 6, SIM_POWER_MAX_UW, ret_uw);
}

int sim_parse_ns(const char *s, int64_t *ret_ns)
{
    return sim_parse_fixed(s, 9, SIM_TIME_MAX_NS, ret_ns);
}

int sim_parse_ppm(const char *s, int64_t *ret_ppm)
{
    return sim_parse_fixed(s, 6, 1000000, ret_ppm);
}
