/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rapl_row.h - what is special about the RAPL counters of a CPU model: one
 * table row each, found by vendor, family and model.
 *
 * Sources: Intel SDM volume 4; Linux arch/x86/events/rapl.c and drivers/
 * powercap/intel_rapl_common.c (which models, which fixed units); Intel
 * 330784-001 (DRAM unit of Haswell-EP); AMD PPRs of families 17h, 19h, 1Ah.
 *
 * Pure functions over constant data; safe from any thread.
 */
#ifndef JOULE_SENSORS_RAPL_ROW_H
#define JOULE_SENSORS_RAPL_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/sensors/cpuinfo.h"
#include "common/energy/domain.h"

#define JOULE_RAPL_KINDS (JOULE_DOMAIN_CORE + 1)

/* Registers by vendor. */
struct joule_rapl_map {
    uint32_t unit;                     /* bits 12:8 are the ESU field */
    uint32_t energy[JOULE_RAPL_KINDS]; /* 0: there is none */
    bool filtering;                    /* 0x10A and 0xBC mean filtering */
};

struct joule_rapl_range {
    uint8_t first, last; /* CPU models; {0, 0} ends a list */
};

struct joule_rapl_row {
    const char *name;   /* NULL ends the table */
    const char *vendor; /* as in /proc/cpuinfo */
    uint16_t family;
    struct joule_rapl_range models[24];
    const struct joule_rapl_map *map;
    unsigned kinds;     /* JOULE_DOMAIN_BIT()s that a machine may have */
    uint8_t width_bits; /* of the energy registers: 32 or 64 */
    bool esu_in_uj;     /* the ESU field means 2^ESU uJ, not 2^-ESU J */
    bool per_die; /* each die of a package counts for itself; otherwise the
                      dies of a package show one and the same counter */
    bool kernel_has_more; /* powercap's zones are right, and more than these */
    bool unlisted;        /* for models of a family that no other row knows */
    const char *without;  /* NULL, or why a machine of this row has no counters
                            that can be read here; then kinds is 0 */
    /* Units that are fixed whatever the register says; num 0: not fixed. */
    struct joule_unit fixed[JOULE_RAPL_KINDS];
};

/* The first row that fits counts. */
extern const struct joule_rapl_row joule_rapl_rows[];

/* The row for this CPU, or NULL if it is not known to have RAPL: what the
 * registers of a new model mean is not guessed. */
const struct joule_rapl_row *
joule_rapl_row_find(const struct joule_cpuinfo *info);

/*
 * The unit of [kind] when the unit register reads [unit_raw].  Returns 0, or
 * -1 with errno EINVAL if the ESU field is one that no hardware has: 2^-4 to
 * 2^-20 J and 2^1 to 2^10 uJ are taken.  A hypervisor that answers every
 * register with 0 is told from a machine by this.
 */
int joule_rapl_row_unit(const struct joule_rapl_row *row,
                        enum joule_domain_kind kind, uint64_t unit_raw,
                        struct joule_unit *ret_unit);

#endif
