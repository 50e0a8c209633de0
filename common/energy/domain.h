/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * domain.h - what a sensor measures: domains of a node, and one reading of
 * each.
 *
 * Plain structs, passed by value; no functions.
 */
#ifndef JOULE_ENERGY_DOMAIN_H
#define JOULE_ENERGY_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than 16 packages x (package, DRAM, PP0, PP1) + PSYS; a machine with
 * more domains is refused with a sentence, never cut in silence. */
#define JOULE_DOMAINS_MAX 128

enum joule_domain_kind {
    JOULE_DOMAIN_PACKAGE,
    JOULE_DOMAIN_DRAM,
    JOULE_DOMAIN_PP0,   /* cores; inside package */
    JOULE_DOMAIN_PP1,   /* graphics; inside package */
    JOULE_DOMAIN_PSYS,  /* platform; package and DRAM are inside it */
    JOULE_DOMAIN_CORE,  /* AMD: one core; inside package */
    JOULE_DOMAIN_POWER, /* of a power source: what a label of the admin's
                           stands for, "Node" or "Socket0"; its unit is 1 uJ,
                           its width 64 bits, and "Node" alone is in_total */
};

#define JOULE_DOMAIN_BIT(kind) (1u << (kind))

/* Microjoules per tick = num / 2^shift, exactly.  2^-14 J is 15625/2^8. */
struct joule_unit {
    uint32_t num;   /* >= 1 */
    uint32_t shift; /* 0..31 */
};

/* What a counter is.  Constant for the life of its source, but for cpu. */
struct joule_domain {
    enum joule_domain_kind kind;
    uint16_t package; /* physical package id as sysfs says */
    uint16_t die;     /* die id within the package */
    uint32_t cpu;     /* logical CPU whose MSR device is read; that may become
                         another one, but for a core, which is known by it */
    struct joule_unit unit;
    uint8_t width_bits; /* 32 or 64: where the counter wraps */
    bool in_total;      /* counts towards the node's energy */
    char name[32];      /* "package-0", "dram-1", "package-0-die-1", "psys",
                           "core-17": [a-z0-9-], unique in the source */
};

/* One raw reading. */
struct joule_reading {
    uint64_t raw; /* valid only when error is 0; below 2^width_bits */
    int error;    /* 0 or an errno value */
};

/* What a power reading is.  Only JOULE_POWER_OK is a measurement. */
enum joule_power_status {
    JOULE_POWER_OK = 0,
    JOULE_POWER_UNAVAILABLE, /* the BMC: reading or state unavailable */
    JOULE_POWER_NOT_SCANNED, /* the BMC: sensor scanning disabled */
    JOULE_POWER_NOT_ACTIVE,  /* DCMI: power measurement not active */
    JOULE_POWER_ZERO,        /* 0 W: nothing that runs uses nothing */
    JOULE_POWER_NEGATIVE,
    JOULE_POWER_SATURATED, /* the highest value the sensor can give: all bits
                              set, what BMCs also give when they do not know */
    JOULE_POWER_ABSURD,    /* above JOULE_POWER_MAX_W, or not a number */
    JOULE_POWER_REFUSED,   /* a completion code instead of a reading */
    JOULE_POWER_FAILED,    /* no answer, or not one of this protocol */
    JOULE_POWER_STATUS_COUNT
};

/* No node or part of one uses more (2026: racks of 8 GPUs stay below 20 kW). */
#define JOULE_POWER_MAX_W 100000.0

struct joule_power {
    double watts;    /* valid only when status is JOULE_POWER_OK */
    int64_t mono_ns; /* middle of the request (joule_clock_mono_ns) */
    enum joule_power_status status;
    uint64_t sensor_key; /* tells the sensors that this is the power of from any
                            others that may stand behind the same name; 0: the
                            source has no others, or does not know yet */
    /* Sources that measure energy, valid as watts: */
    double joules;  /* since the last reading that was OK; the first: 0 */
    int64_t gap_ns; /* of that time, not measured */
    bool is_held;   /* instead: the power holds until the next measurement */
};

#endif
