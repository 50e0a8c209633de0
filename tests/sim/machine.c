/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/parse.h"

enum quirk {
    DRAM_FIXED = 1, /* DRAM counts 2^-16 J whatever the unit register says */
    PSYS_JOULE = 2, /* PSYS counts whole joules */
    UNIT_IN_UJ = 4, /* the unit is 2^ESU uJ */
    NO_DRAM = 8,
    WIDE = 16, /* 64 bits */
};

/*
 * The first row that fits wins.  Intel: Linux arch/x86/events/rapl.c and
 * include/asm/intel-family.h; AMD: Processor Programming References.
 */
static const struct row {
    enum sim_vendor vendor;
    unsigned family, model_first, model_last;
    const char *name;
    uint8_t esu;
    unsigned quirks;
} rows[] = {
    {SIM_INTEL, 6, 0x55, 0x55, "Xeon Gold 6148 (SKX)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x3f, 0x3f, "Xeon E5-2680 v3 (HSX)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x4f, 0x4f, "Xeon E5-2680 v4 (BDX)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x56, 0x56, "Xeon D-1541 (BDX-D)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x57, 0x57, "Xeon Phi 7250 (KNL)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x85, 0x85, "Xeon Phi 7295 (KNM)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x6a, 0x6a, "Xeon Platinum 8358 (ICX)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x6c, 0x6c, "Xeon D-2796NT (ICX-D)", 14, DRAM_FIXED},
    {SIM_INTEL, 6, 0x8f, 0x8f, "Xeon Platinum 8480+ (SPR)", 14, PSYS_JOULE},
    {SIM_INTEL, 6, 0xcf, 0xcf, "Xeon Platinum 8592+ (EMR)", 14, PSYS_JOULE},
    {SIM_INTEL, 6, 0x2d, 0x2d, "Xeon E5-2670 (SNB-EP)", 16, 0},
    {SIM_INTEL, 6, 0x3e, 0x3e, "Xeon E5-2670 v2 (IVB-EP)", 16, 0},
    {SIM_INTEL, 6, 0x37, 0x37, "Atom E3845", 5, UNIT_IN_UJ | NO_DRAM},
    {SIM_INTEL, 6, 0x4d, 0x4d, "Atom C2750", 5, UNIT_IN_UJ | NO_DRAM},
    {SIM_INTEL, 0, 0, UINT_MAX, "CPU", 14, 0},
    {SIM_AMD, 0x19, 0x01, 0x01, "EPYC 7763", 16, NO_DRAM},
    {SIM_AMD, 0x19, 0x10, 0x1f, "EPYC 9654", 16, NO_DRAM | WIDE},
    {SIM_AMD, 0x19, 0x60, 0x7f, "Ryzen 7000", 16, NO_DRAM | WIDE},
    {SIM_AMD, 0x19, 0xa0, 0xaf, "EPYC 9754", 16, NO_DRAM | WIDE},
    {SIM_AMD, 0x1a, 0, UINT_MAX, "EPYC 9965", 16, NO_DRAM | WIDE},
    {SIM_AMD, 0x17, 0x01, 0x01, "EPYC 7601", 16, NO_DRAM},
    {SIM_AMD, 0x17, 0x31, 0x31, "EPYC 7742", 16, NO_DRAM},
    {SIM_AMD, 0, 0, UINT_MAX, "CPU", 16, NO_DRAM},
    {SIM_HYGON, 0, 0, UINT_MAX, "C86 7185", 16, NO_DRAM},
};

static const struct vendor {
    const char *id;
    unsigned family, model; /* unless asked otherwise */
} vendors[] = {
    [SIM_INTEL] = {"GenuineIntel", 6, 0x55},
    [SIM_AMD] = {"AuthenticAMD", 0x19, 0x01},
    [SIM_HYGON] = {"HygonGenuine", 0x18, 0x00},
};

static const struct row *row_find(enum sim_vendor vendor, unsigned family,
                                  unsigned model)
{
    const struct row *r = rows;

    /* Ends: every vendor has a row with family 0 for the rest. */
    while (r->vendor != vendor || (r->family && r->family != family) ||
           model < r->model_first || model > r->model_last)
        r++;
    return r;
}

/* 2^-esu J = 15625 x 2^6 / 2^esu uJ. */
static struct joule_unit unit_of(unsigned esu)
{
    if (esu >= 6)
        return (struct joule_unit){15625, esu - 6};
    return (struct joule_unit){15625u << (6 - esu), 0};
}

void sim_machine_options_init(struct sim_machine_options *opt)
{
    *opt = (struct sim_machine_options){
        .vendor = SIM_INTEL,
        .family = SIM_DEFAULT,
        .model = SIM_DEFAULT,
        .packages = 2,
        .dies = 1,
        .threads = 1,
        .esu = SIM_DEFAULT,
        .dram_esu = SIM_DEFAULT,
        .width = SIM_DEFAULT,
        .start = "1000000",
    };
}

static int start_parse(struct sim_machine *m, const char *text,
                       struct joule_error *err)
{
    uint64_t max = m->width_bits == 64 ? UINT64_MAX : UINT32_MAX, before;

    if (!strncmp(text, "wrap-", 5)) {
        if (!joule_parse_u64(text + 5, 1, max, &before)) {
            m->start = (max - before) + 1;
            return 0;
        }
    } else if (!joule_parse_u64(text, 0, max, &m->start)) {
        return 0;
    }
    return joule_error_set(err, EINVAL,
                           "start \"%s\" is not a number of ticks below 2^%u "
                           "or wrap-N",
                           text, m->width_bits);
}

/* The numbers of the CPUs, ascending, into m->cpus. */
static int cpus_number(struct sim_machine *m,
                       const struct sim_machine_options *opt,
                       struct joule_error *err)
{
    unsigned group = opt->packages * opt->dies * opt->threads, *list = NULL;
    size_t count = opt->cpus, i;

    if (opt->cpu_numbers) {
        if (joule_parse_cpulist(opt->cpu_numbers, &list, &count) || !count)
            return joule_error_set(err, EINVAL,
                                   "\"%s\" is not a list of CPU numbers",
                                   opt->cpu_numbers);
    } else if (!count) {
        long host = sysconf(_SC_NPROCESSORS_ONLN);

        count = ((size_t)(host > 0 ? host : 1) + group - 1) / group * group;
    }
    if (count % group) {
        free(list);
        return joule_error_set(err, EINVAL,
                               "%zu CPUs cannot be shared evenly by %u packages"
                               " x %u dies x %u threads",
                               count, opt->packages, opt->dies, opt->threads);
    }
    m->cpus = calloc(count, sizeof(*m->cpus));
    if (!m->cpus) {
        free(list);
        return joule_error_set(err, ENOMEM, "out of memory");
    }
    m->cpu_count = count;
    for (i = 0; i < count; i++) {
        struct sim_cpu *cpu = &m->cpus[i];
        unsigned cores = (unsigned)(count / opt->threads);
        unsigned core = (unsigned)i % cores;

        m->cores = cores / opt->packages;
        cpu->number = list ? list[i] : (unsigned)(opt->sparse ? 2 * i + 1 : i);
        cpu->online = true;
        cpu->package = core / m->cores;
        cpu->core = core % m->cores;
        cpu->die = cpu->core / (m->cores / opt->dies);
    }
    free(list);
    return 0;
}

int sim_machine_switch(struct sim_machine *m, const char *text, bool online,
                       struct joule_error *err)
{
    unsigned *list = NULL;
    size_t count = 0, i, j, left = 0;
    bool *now;
    int rc = -1;

    if (joule_parse_cpulist(text, &list, &count))
        return joule_error_set(err, EINVAL,
                               "\"%s\" is not a list of CPU numbers", text);
    now = calloc(m->cpu_count, sizeof(*now));
    if (!now) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto out;
    }
    for (j = 0; j < m->cpu_count; j++)
        now[j] = m->cpus[j].online;
    for (i = 0; i < count; i++) {
        for (j = 0; j < m->cpu_count && m->cpus[j].number != list[i]; j++)
            ;
        if (j == m->cpu_count) {
            joule_error_set(err, EINVAL, "CPU %u does not exist", list[i]);
            goto out;
        }
        now[j] = online;
    }
    for (j = 0; j < m->cpu_count; j++)
        left += now[j];
    if (left == 0) {
        joule_error_set(err, EINVAL, "every CPU is offline");
        goto out;
    }
    for (j = 0; j < m->cpu_count; j++)
        m->cpus[j].online = now[j];
    rc = 0;
out:
    free(now);
    free(list);
    return rc;
}

struct sim_machine *sim_machine_create(const struct sim_machine_options *opt,
                                       struct joule_error *err)
{
    const struct vendor *v = &vendors[opt->vendor];
    struct sim_machine *m = calloc(1, sizeof(*m));
    const struct row *row;

    if (!m) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    m->vendor = opt->vendor;
    m->vendor_id = v->id;
    m->family = opt->family == SIM_DEFAULT ? v->family : opt->family;
    m->model = opt->model == SIM_DEFAULT ? v->model : opt->model;
    row = row_find(m->vendor, m->family, m->model);
    m->cpu_name = row->name;
    m->packages = opt->packages;
    m->dies = opt->dies;
    m->threads = opt->threads;
    m->esu = opt->esu == SIM_DEFAULT ? row->esu : (uint8_t)opt->esu;
    m->unit = row->quirks & UNIT_IN_UJ ? (struct joule_unit){1u << m->esu, 0}
                                       : unit_of(m->esu);
    m->dram_unit = m->psys_unit = m->unit;
    if (opt->dram_esu != SIM_DEFAULT)
        m->dram_unit = unit_of(opt->dram_esu);
    else if (row->quirks & DRAM_FIXED)
        m->dram_unit = unit_of(16);
    if (row->quirks & PSYS_JOULE)
        m->psys_unit = unit_of(0);
    m->width_bits = opt->width != SIM_DEFAULT ? (uint8_t)opt->width
                    : row->quirks & WIDE      ? 64
                                              : 32;
    m->dram = !opt->no_dram && !(row->quirks & NO_DRAM);
    m->pp0 = opt->pp0;
    m->pp1 = opt->pp1;
    m->psys = opt->psys;
    m->dead = opt->dead;
    m->powercap = opt->powercap;
    m->no_msr = opt->no_msr;
    m->cray = opt->cray;
    m->grace = opt->grace;
    m->hypervisor = opt->hypervisor;
    m->no_physical_id = opt->no_physical_id;
    m->filtering = opt->filtering;
    if (start_parse(m, opt->start, err) || cpus_number(m, opt, err) ||
        (opt->offline && sim_machine_switch(m, opt->offline, false, err))) {
        sim_machine_destroy(m);
        return NULL;
    }
    return m;
}

size_t sim_machine_host_cpu(const struct sim_machine *m, unsigned number)
{
    for (size_t i = 0; i < m->cpu_count; i++)
        if (m->cpus[i].number == number)
            return i;
    return number % m->cpu_count;
}

void sim_machine_destroy(struct sim_machine *machine)
{
    int saved = errno;

    if (machine)
        free(machine->cpus);
    free(machine);
    errno = saved;
}
