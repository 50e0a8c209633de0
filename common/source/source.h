/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - where energy readings come from: plain structs that cross to
 * the meters, and the table of functions that every source fills.
 *
 * A counter source (RAPL) gives the raw value of energy counters; it is read
 * within microseconds.  A power source (a BMC) gives watts of now and then,
 * and may take seconds to answer.
 *
 * A source of energy (both in one) gives watts as a power source does, and what
 * was used since the reading before; it answers as fast as a counter source.
 *
 * A source is passive: it knows no thread and no log.  It belongs to one
 * thread at a time.
 */
#ifndef JOULE_SOURCE_SOURCE_H
#define JOULE_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

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

struct joule_source;
struct joule_fused_state;

struct joule_source_ops {
    const char *type; /* "rapl", "ipmi" */
    /* counter sources: read every domain; out has as many entries as domains.
     * A reading that failed is tried once more, and then wherever else the
     * same counter can be read, before it is an error. */
    void (*read)(struct joule_source *source, struct joule_reading *out);
    /*
     * power sources: ask for every domain once; out has as many entries as
     * domains.  Returns within a time that the source bounds.  0: out is
     * filled; -1: nothing is known, with a sentence and errno
     *   EAGAIN     connecting again is not due yet (back-off); no sentence
     *   ECANCELED  interrupt() was called; no sentence
     *   ETIMEDOUT  no answer in time
     *   other      what went wrong
     */
    int (*read_power)(struct joule_source *source, struct joule_power *out,
                      struct joule_error *err);
    /* optional: 1 and a sentence for the log about something that happened
     * since the last call (connected; sensors found or changed; a counter is
     * read on another CPU), or 0 if there is none. */
    int (*remark)(struct joule_source *source, struct joule_error *ret_remark);
    /* power sources: end a read_power that waits, and let every later one
     * fail with ECANCELED.  Any thread. */
    void (*interrupt)(struct joule_source *source);
    /* sources of energy alone: what the board keeps of it, borrowed; and go on
     * with what the board has; false: that is not right */
    const struct joule_fused_state *(*state)(struct joule_source *source);
    bool (*resume)(struct joule_source *source,
                   const struct joule_fused_state *state);
    /* required */
    void (*destroy)(struct joule_source *source);
};

/* The head of every source; filled at creation, constant afterwards. */
struct joule_source {
    const struct joule_source_ops *ops;
    const struct joule_domain *domains;
    size_t domain_count;
    int64_t wrap_ns; /* sources of energy: of the counters within, the shortest
                        time to wrap; 0: none */
};

static inline bool joule_source_is_power(const struct joule_source *source)
{
    return !source->ops->read;
}

/* It measures energy, though it is a power source to all who follow it. */
static inline bool joule_source_has_energy(const struct joule_source *source)
{
    return source->ops->state;
}

/* It can be asked whenever a step begins or ends. */
static inline bool joule_source_is_prompt(const struct joule_source *source)
{
    return source->ops->read || source->ops->state;
}

/* Power sources that have been interrupted: what must not outlive the thread
 * that reads is put away.  [out] is overwritten. */
void joule_source_end(struct joule_source *source, struct joule_power *out);

static inline void joule_source_read(struct joule_source *source,
                                     struct joule_reading *out)
{
    source->ops->read(source, out);
}

/* NULL is a no-op; errno is kept. */
void joule_source_destroy(struct joule_source *source);

#endif
