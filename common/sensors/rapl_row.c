/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/rapl_row.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PACKAGE JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE)
#define DRAM    JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM)
#define PP0     JOULE_DOMAIN_BIT(JOULE_DOMAIN_PP0)
#define PP1     JOULE_DOMAIN_BIT(JOULE_DOMAIN_PP1)
#define PSYS    JOULE_DOMAIN_BIT(JOULE_DOMAIN_PSYS)
#define CORE    JOULE_DOMAIN_BIT(JOULE_DOMAIN_CORE)

#define INTEL "GenuineIntel"
#define AMD   "AuthenticAMD"
#define HYGON "HygonGenuine"

static const struct joule_rapl_map intel_map = {
    .unit = 0x606,
    .energy =
        {
            [JOULE_DOMAIN_PACKAGE] = 0x611,
            [JOULE_DOMAIN_DRAM] = 0x619,
            [JOULE_DOMAIN_PP0] = 0x639,
            [JOULE_DOMAIN_PP1] = 0x641,
            [JOULE_DOMAIN_PSYS] = 0x64D,
        },
    .filtering = true,
};

static const struct joule_rapl_map amd_map = {
    .unit = 0xC0010299,
    .energy =
        {
            [JOULE_DOMAIN_CORE] = 0xC001029A,
            [JOULE_DOMAIN_PACKAGE] = 0xC001029B,
        },
};

/* 2^-16 J and 1 J, in microjoules. */
#define UNIT_2_16_J                                                            \
    {                                                                          \
        .num = 15625, .shift = 10                                              \
    }
#define UNIT_1_J                                                               \
    {                                                                          \
        .num = 1000000, .shift = 0                                             \
    }

#define INTEL_ROW(row_name, row_kinds)                                         \
    .name = row_name, .vendor = INTEL, .family = 6, .map = &intel_map,         \
    .kinds = (row_kinds), .width_bits = 32, .per_die = true

/* A package of several dies has one package counter, which every die shows
 * (codecarbon issue 1274). */
#define AMD_ROW(row_name, row_vendor, row_family, width)                       \
    .name = row_name, .vendor = row_vendor, .family = (row_family),            \
    .map = &amd_map, .kinds = PACKAGE | CORE, .width_bits = (width)

#define ALL_MODELS                                                             \
    {                                                                          \
        {                                                                      \
            0x00, 0xFF                                                         \
        }                                                                      \
    }

/* Servers of these generations count DRAM in a unit of its own. */
#define DRAM_2_16_J .fixed = {[JOULE_DOMAIN_DRAM] = UNIT_2_16_J}

const struct joule_rapl_row joule_rapl_rows[] = {
    {INTEL_ROW("Sandy/Ivy Bridge", PACKAGE | PP0 | PP1),
     .models = {{0x2A, 0x2A}, {0x3A, 0x3A}}},
    {INTEL_ROW("Sandy/Ivy Bridge-EP", PACKAGE | PP0 | DRAM),
     .models = {{0x2D, 0x2D}, {0x3E, 0x3E}}},
    {INTEL_ROW("Haswell/Broadwell", PACKAGE | PP0 | PP1 | DRAM),
     .models = {{0x3C, 0x3D}, {0x45, 0x47}}},
    {INTEL_ROW("Haswell-EP", PACKAGE | PP0 | DRAM), .models = {{0x3F, 0x3F}},
     DRAM_2_16_J},
    {INTEL_ROW("Broadwell-EP", PACKAGE | PP0 | DRAM), .models = {{0x4F, 0x4F}},
     DRAM_2_16_J},
    {INTEL_ROW("Broadwell-DE", PACKAGE | PP0 | DRAM), .models = {{0x56, 0x56}},
     DRAM_2_16_J},
    {INTEL_ROW("Skylake-SP/Cascade Lake/Cooper Lake", PACKAGE | PP0 | DRAM),
     .models = {{0x55, 0x55}}, DRAM_2_16_J},
    {INTEL_ROW("Ice Lake-SP", PACKAGE | PP0 | DRAM), .models = {{0x6A, 0x6A}},
     DRAM_2_16_J},
    {INTEL_ROW("Ice Lake-D", PACKAGE | PP0 | DRAM), .models = {{0x6C, 0x6C}},
     DRAM_2_16_J},
    {INTEL_ROW("Knights Landing", PACKAGE | DRAM), .models = {{0x57, 0x57}},
     DRAM_2_16_J},
    {INTEL_ROW("Knights Mill", PACKAGE | DRAM), .models = {{0x85, 0x85}},
     DRAM_2_16_J},
    /* DRAM is back to the ordinary unit (Linux 80275ca9e525, 2024). */
    {INTEL_ROW("Sapphire Rapids", PACKAGE | PP0 | DRAM | PSYS),
     .models = {{0x8F, 0x8F}}, .fixed = {[JOULE_DOMAIN_PSYS] = UNIT_1_J}},
    {INTEL_ROW("Emerald Rapids", PACKAGE | PP0 | DRAM | PSYS),
     .models = {{0xCF, 0xCF}}, .fixed = {[JOULE_DOMAIN_PSYS] = UNIT_1_J}},
    {INTEL_ROW("Silvermont/Airmont", PACKAGE | PP0),
     .models =
         {{0x37, 0x37}, {0x4A, 0x4A}, {0x4C, 0x4D}, {0x5A, 0x5A}, {0x5D, 0x5D}},
     .esu_in_uj = true},
    {INTEL_ROW("Goldmont", PACKAGE | PP0 | PP1 | DRAM),
     .models = {{0x5C, 0x5C}, {0x5F, 0x5F}, {0x7A, 0x7A}}},
    {INTEL_ROW("Skylake client and later", PACKAGE | PP0 | PP1 | DRAM | PSYS),
     .models = {{0x4E, 0x4E},
                {0x5E, 0x5E},
                {0x66, 0x66},
                {0x7D, 0x7E},
                {0x8C, 0x8E},
                {0x97, 0x97},
                {0x9A, 0x9A},
                {0x9E, 0x9E},
                {0xA5, 0xA7},
                {0xAA, 0xAA},
                {0xAC, 0xAC},
                {0xB5, 0xB5},
                {0xB7, 0xB7},
                {0xBA, 0xBA},
                {0xBD, 0xBF},
                {0xC5, 0xC6}}},
    /* Linux has them with the ordinary units (intel_rapl_msr.c, 2025). */
    {INTEL_ROW("Tremont/Lakefield", PACKAGE | PP0 | PP1),
     .models = {{0x86, 0x86}, {0x8A, 0x8A}, {0x96, 0x96}, {0x9C, 0x9C}}},
    /* Linux reads their counters through TPMI; the registers answer as well.
     * That of DRAM is not to be trusted: 200 W and 6 W on two sockets of one
     * Xeon 6767P (PAPI pull request 635, 2026).  PSYS as on Sapphire Rapids
     * (turbostat). */
    {INTEL_ROW("Granite Rapids", PACKAGE | PSYS), .models = {{0xAD, 0xAE}},
     .fixed = {[JOULE_DOMAIN_PSYS] = UNIT_1_J}, .kernel_has_more = true},
    {INTEL_ROW("Sierra Forest", PACKAGE), .models = {{0xAF, 0xAF}},
     .kernel_has_more = true},
    {INTEL_ROW("Clearwater Forest", PACKAGE), .models = {{0xDD, 0xDD}},
     .kernel_has_more = true},
    /* Sandy Bridge was the first. */
    {INTEL_ROW("Core 2, Nehalem, Westmere and before", 0),
     .models = {{0x00, 0x29}, {0x2C, 0x2C}, {0x2E, 0x2F}, {0x35, 0x36}},
     .without = "it is older than the first that has them (Sandy Bridge)"},
    /* turbostat 83075bd59de2 (2025): no RAPL registers. */
    {.name = "Diamond Rapids",
     .vendor = INTEL,
     .family = 0x13,
     .models = {{0x01, 0x01}},
     .map = &intel_map,
     .width_bits = 32,
     .per_die = true,
     .without =
         "its counters are in TPMI alone, which Linux 6.5 and later show in "
         "powercap"},

    {AMD_ROW("AMD Zen 1/2", AMD, 0x17, 32), .models = ALL_MODELS},
    {AMD_ROW("Hygon Dhyana", HYGON, 0x18, 32), .models = ALL_MODELS},
    /* 64 bits from Zen 4 on (amd_energy issue 12, LIKWID). */
    {AMD_ROW("AMD Zen 4", AMD, 0x19, 64),
     .models = {{0x10, 0x1F}, {0x60, 0x7F}, {0xA0, 0xAF}}},
    {AMD_ROW("AMD Zen 3", AMD, 0x19, 32),
     .models = {{0x00, 0x0F}, {0x20, 0x5F}}},
    {AMD_ROW("AMD Zen 5", AMD, 0x1A, 64), .models = ALL_MODELS},
    /* All models of the family have the same registers.  The low 32 bits of a
     * 64-bit counter are a 32-bit counter, but not the other way round: 32 is
     * right for both. */
    {AMD_ROW("AMD (unlisted model)", AMD, 0x19, 32), .models = ALL_MODELS,
     .unlisted = true},
    {.name = NULL},
};

static bool has_model(const struct joule_rapl_row *row, unsigned model)
{
    for (const struct joule_rapl_range *r = row->models; r->last != 0; r++)
        if (model >= r->first && model <= r->last)
            return true;
    return false;
}

const struct joule_rapl_row *
joule_rapl_row_find(const struct joule_cpuinfo *info)
{
    for (const struct joule_rapl_row *row = joule_rapl_rows; row->name; row++)
        if (info->family == row->family && has_model(row, info->model) &&
            strcmp(info->vendor, row->vendor) == 0)
            return row;
    return NULL;
}

int joule_rapl_row_unit(const struct joule_rapl_row *row,
                        enum joule_domain_kind kind, uint64_t unit_raw,
                        struct joule_unit *ret_unit)
{
    unsigned esu = (unit_raw >> 8) & 0x1F;

    if (row->esu_in_uj ? esu < 1 || esu > 10 : esu < 4 || esu > 20) {
        errno = EINVAL;
        return -1;
    }
    if (row->fixed[kind].num != 0)
        *ret_unit = row->fixed[kind];
    else if (row->esu_in_uj)
        *ret_unit = (struct joule_unit){.num = 1u << esu, .shift = 0};
    else if (esu < 6)
        *ret_unit = (struct joule_unit){.num = 15625u << (6 - esu), .shift = 0};
    else /* 10^6 is 15625 x 2^6 */
        *ret_unit = (struct joule_unit){.num = 15625, .shift = esu - 6};
    return 0;
}
