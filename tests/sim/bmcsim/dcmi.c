/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dcmi.c - DCMI 1.5: Get DCMI Capabilities Info (6.1.1) and Get Power Reading
 * (6.6.1) of a struct bmc.
 */
#include "tests/sim/bmcsim/bmc.h"

#include <string.h>

enum {
    CMD_CAPABILITIES = 0x01,
    CMD_POWER_READING = 0x02,

    CC_OK = 0x00,
    CC_INVALID_COMMAND = 0xC1,
    CC_SHORT_REQUEST = 0xC7,
    CC_INVALID_FIELD = 0xCC,
    CC_NO_ANSWER = 0xCE,
};

/* Rolling averages that are offered: bits 7-6 of the byte are the unit
 * (seconds, minutes), the others a number of them. */
#define ROLLING_5_S   0x05
#define ROLLING_1_MIN 0x41

static void put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *p, uint32_t value)
{
    put16(p, value & 0xffff);
    put16(p + 2, value >> 16);
}

static unsigned whole_watts(double watts)
{
    return watts < 0 ? 0 : watts > 65535 ? 65535 : (unsigned)(watts + 0.5);
}

static unsigned refuse(uint8_t *answer, uint8_t code)
{
    answer[0] = code;
    return 1;
}

static unsigned capabilities(uint8_t parameter, uint8_t *answer)
{
    static const struct {
        uint8_t len, data[5];
    } known[] = {
        {3, {0, 1, 7}},                       /* power management; LAN */
        {5, {0xff, 0x0f, 0, 0, 0}},           /* SEL */
        {2, {0x20, 0}},                       /* address of the BMC */
        {3, {1, 0xff, 0xff}},                 /* LAN channel only */
        {3, {2, ROLLING_5_S, ROLLING_1_MIN}}, /* statistics */
    };

    if (parameter < 1 || parameter > 5)
        return refuse(answer, CC_INVALID_FIELD);
    answer[2] = 1; /* DCMI 1.5, revision 2 of the parameters */
    answer[3] = 5;
    answer[4] = 2;
    memcpy(answer + 5, known[parameter - 1].data, known[parameter - 1].len);
    return 5 + known[parameter - 1].len;
}

/* The span of a rolling average, or -1. */
static int64_t rolling_ns(uint8_t period)
{
    return period == ROLLING_5_S     ? 5 * JOULE_NS_PER_S
           : period == ROLLING_1_MIN ? 60 * JOULE_NS_PER_S
                                     : -1;
}

static unsigned power_reading(struct bmc *bmc, const uint8_t *data,
                              uint8_t *answer)
{
    enum { STATISTICS = 1, ENHANCED = 2, ACTIVE = 0x40 };
    const struct bmc_faults *f = &bmc->faults;
    struct bmc_statistics over;
    unsigned current;
    int64_t span_ns = 0;
    double watts;

    if (f->dcmi_cc)
        return refuse(answer, (uint8_t)f->dcmi_cc);
    if (data[1] == ENHANCED)
        span_ns = rolling_ns(data[2]);
    if ((data[1] != STATISTICS && data[1] != ENHANCED) || span_ns < 0)
        return refuse(answer, CC_INVALID_FIELD);
    watts = bmc_sample(bmc, NULL);
    if (watts < 0)
        return refuse(answer, CC_NO_ANSWER);
    over = bmc_window_over(&bmc->window, span_ns);
    current = f->dcmi_w >= 0 ? (unsigned)f->dcmi_w : whole_watts(watts);
    if (f->dcmi_stuck) {
        if (bmc->stuck_w < 0)
            bmc->stuck_w = (int)current;
        current = (unsigned)bmc->stuck_w;
    }
    put16(answer + 2, current);
    put16(answer + 4, whole_watts(over.min_w));
    put16(answer + 6, whole_watts(over.max_w));
    put16(answer + 8, whole_watts(over.mean_w));
    put32(answer + 10,
          (uint32_t)(joule_clock_wall_ns(bmc->clock) / JOULE_NS_PER_S));
    put32(answer + 14,
          (uint32_t)((span_ns ? span_ns : over.span_ns) / JOULE_NS_PER_MS));
    answer[18] = f->dcmi_active ? ACTIVE : 0;
    return f->dcmi_short ? 6 : 19;
}

void bmc_dcmi_answer(struct bmc *bmc, uint8_t cmd, const uint8_t *data,
                     unsigned len, uint8_t answer[BMC_ANSWER_MAX],
                     unsigned *ret_len)
{
    memset(answer, 0, BMC_ANSWER_MAX);
    answer[0] = CC_OK;
    answer[1] = 0xDC;
    if (cmd == CMD_CAPABILITIES)
        *ret_len = len < 2 ? refuse(answer, CC_SHORT_REQUEST)
                           : capabilities(data[1], answer);
    else if (cmd == CMD_POWER_READING)
        *ret_len = len < 4 ? refuse(answer, CC_SHORT_REQUEST)
                           : power_reading(bmc, data, answer);
    else
        *ret_len = refuse(answer, CC_INVALID_COMMAND);
}
