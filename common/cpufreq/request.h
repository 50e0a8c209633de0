/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request.h - what srun's --cpu-freq asks for: the text of the option, as it
 * travels in SLURM_CPU_FREQ_REQ.  A user can write anything there.
 *
 *     P1[-P2][:GOVERNOR]  |  GOVERNOR
 *
 * P1 and P2 are kHz or low, medium, highm1, high; case does not matter.
 * Releases of Slurm differ in what they make of it; here, with all of them:
 *
 *     F            the CPUs run at F, and at nothing else
 *     F-F          the same
 *     F:UserSpace  the same
 *     A-B          not below A, not above B, under the governor that is there
 *                  (CpuFreqDef's if it names one)
 *     A-B:G        the same under governor G; not UserSpace, which has one
 *                  frequency and not a range
 *     F:G          governor G, not above F
 *     G            governor G; UserSpace: at the frequency of this moment
 */
#ifndef JOULE_CPUFREQ_REQUEST_H
#define JOULE_CPUFREQ_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/parse.h"

enum joule_speed_kind {
    JOULE_SPEED_NONE,
    JOULE_SPEED_KHZ,
    JOULE_SPEED_LOW,
    JOULE_SPEED_MEDIUM,
    JOULE_SPEED_HIGHM1,
    JOULE_SPEED_HIGH,
};

struct joule_speed {
    enum joule_speed_kind kind;
    uint32_t khz; /* of JOULE_SPEED_KHZ */
};

#define JOULE_KHZ_MAX 100000000 /* 100 GHz: more is a mistake */

/* Bits, so that a set of them is what a site allows. */
enum joule_governor {
    JOULE_GOVERNOR_NONE = 0,
    JOULE_GOVERNOR_CONSERVATIVE = 1,
    JOULE_GOVERNOR_ONDEMAND = 2,
    JOULE_GOVERNOR_PERFORMANCE = 4,
    JOULE_GOVERNOR_POWERSAVE = 8,
    JOULE_GOVERNOR_SCHEDUTIL = 16,
    JOULE_GOVERNOR_USERSPACE = 32,
    JOULE_GOVERNORS_ALL = 63,
};

/* Names as in sysfs. */
extern const struct joule_word joule_governor_names[];
const char *joule_governor_name(enum joule_governor governor);

struct joule_request {
    bool pin;                     /* exactly [max] */
    struct joule_speed min, max;  /* NONE: not asked for */
    enum joule_governor governor; /* NONE: not asked for */
};

#define JOULE_REQUEST_TEXT_MAX 48

/*
 * Parse the whole of [text].  -1 with EINVAL or ERANGE, a sentence that quotes
 * it, and *ret unchanged.
 */
int joule_request_parse(const char *text, struct joule_request *ret,
                        struct joule_error *err);

/* In the form that the parser reads, always the same for the same request. */
void joule_request_format(const struct joule_request *r,
                          char buf[JOULE_REQUEST_TEXT_MAX]);

#endif
