/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - where energy readings come from: plain structs that cross to
 * the meters, and the table of functions that every counter source fills.
 *
 * A source is passive: it knows no thread, no clock and no log.  It belongs
 * to one thread at a time.
 */
#ifndef JOULE_SOURCE_SOURCE_H
#define JOULE_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than 16 packages x (package, DRAM, PP0, PP1) + PSYS; a machine with
 * more domains is refused with a sentence, never cut in silence. */
#define JOULE_DOMAINS_MAX 128

enum joule_domain_kind {
    JOULE_DOMAIN_PACKAGE,
    JOULE_DOMAIN_DRAM,
    JOULE_DOMAIN_PP0,  /* cores; inside package */
    JOULE_DOMAIN_PP1,  /* graphics; inside package */
    JOULE_DOMAIN_PSYS, /* platform; package and DRAM are inside it */
    JOULE_DOMAIN_CORE, /* AMD: one core; inside package */
};

#define JOULE_DOMAIN_BIT(kind) (1u << (kind))

/* Microjoules per tick = num / 2^shift, exactly.  2^-14 J is 15625/2^8. */
struct joule_unit {
    uint32_t num;   /* >= 1 */
    uint32_t shift; /* 0..31 */
};

/* What a counter is.  Constant for the life of its source. */
struct joule_domain {
    enum joule_domain_kind kind;
    uint16_t package; /* physical package id as sysfs says */
    uint16_t die;     /* die id within the package */
    uint32_t cpu;     /* logical CPU whose MSR device is read */
    struct joule_unit unit;
    uint8_t width_bits; /* 32 or 64: where the counter wraps */
    bool in_total;      /* counts towards the node's energy */
    char name[32];      /* "package-0", "dram-1", "package-0-die-1", "psys",
                           "core-17": [a-z0-9-], unique in the source */
};

/* One raw reading. */
struct joule_reading {
    uint64_t raw;   /* valid only when error is 0; below 2^width_bits */
    int error;      /* 0 or an errno value */
};

struct joule_source;

struct joule_source_ops {
    const char *type; /* "rapl" */
    /* required: read every domain; out has as many entries as domains.
     * A reading that failed is tried once more before it is an error. */
    void (*read)(struct joule_source *source, struct joule_reading *out);
    /* required */
    void (*destroy)(struct joule_source *source);
};

/* The head of every source; filled at creation, constant afterwards. */
struct joule_source {
    const struct joule_source_ops *ops;
    const struct joule_domain *domains;
    size_t domain_count;
};

static inline void joule_source_read(struct joule_source *source,
                                     struct joule_reading *out)
{
    source->ops->read(source, out);
}

/* NULL is a no-op; errno is kept. */
void joule_source_destroy(struct joule_source *source);

#endif
