/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * domain.h - what is measured: domains of a node, and a reading of each.
 *
 * Plain structs, passed by value.
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
    JOULE_DOMAIN_POWER, /* of a meter: what a label of the admin's stands for,
                           "Node" or "Socket0"; its unit is 1 uJ, its width 64
                           bits, and "Node" alone is in_total */
};

#define JOULE_DOMAIN_BIT(kind) (1u << (kind))

/* Microjoules per tick = num / 2^shift, exactly.  2^-14 J is 15625/2^8. */
struct joule_unit {
    uint32_t num;   /* >= 1 */
    uint32_t shift; /* 0..31 */
};

/* What a number of a sensor covers.  Constant for the life of the sensor, but
 * for cpu. */
struct joule_domain {
    enum joule_domain_kind kind;
    uint16_t package; /* physical package id as sysfs says */
    uint16_t die;     /* die id within the package */
    uint32_t cpu;     /* logical CPU whose MSR device is read; that may become
                         another one, but for a core, which is known by it */
    struct joule_unit unit;
    uint8_t width_bits;  /* 32 or 64: where the counter wraps, */
    uint64_t modulus;    /* or the number at which it is 0 again; 0: by width */
    uint16_t refresh_ms; /* a counter moves so often; 0: each ms, about */
    bool in_total;       /* counts towards the node's energy */
    char name[32];       /* "package-0", "dram-1", "package-0-die-1", "psys",
                           "core-17": [a-z0-9-], unique in the source */
};

/* What a register of a counter holds. */
struct joule_raw {
    uint64_t raw; /* valid only when error is 0; below where it wraps */
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

/* No NAN is one. */
static inline bool joule_is_power(double watts)
{
    return watts >= 0 && watts <= JOULE_POWER_MAX_W;
}

/* What a meter says of a domain. */
struct joule_power {
    double watts;    /* valid only when status is JOULE_POWER_OK */
    int64_t mono_ns; /* middle of the request (joule_clock_mono_ns) */
    enum joule_power_status status;
    uint64_t sensor_key; /* tells the sensors that this is the power of from any
                            others that may stand behind the same name; 0: the
                            meter has no others, or does not know yet */
};

/* Power that is not known. */
#define JOULE_MW_UNKNOWN UINT64_MAX

enum joule_reading_state {
    JOULE_READING_UNKNOWN, /* the domain's energy is not known (now) */
    JOULE_READING_OK,
    JOULE_READING_STALE, /* energy is known, but no longer measured */
};

/* What a sensor says of a domain: energy that grows.  A whole number of 64-bit
 * words. */
struct joule_reading {
    uint64_t uj;      /* used */
    int64_t began_ns; /* from this time, when the domain was first measured */
    int64_t mono_ns;  /* to this one */
    int64_t gap_ns;   /* of the time between, not measured */
    uint64_t mw;      /* power now, or JOULE_MW_UNKNOWN */
    uint64_t sensor_key; /* as in struct joule_power */
    uint64_t errors;     /* readings that failed */
    uint64_t state;      /* enum joule_reading_state */
};

#endif
