/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/registers.h"

#include <errno.h>

#include "tests/sim/model.h"

/* Whole ticks of an energy: uJ per tick = num / 2^shift. */
static uint64_t ticks(uint64_t nj, struct joule_unit unit)
{
    return (uint64_t)(((sim_fj)nj << unit.shift) / ((sim_fj)unit.num * 1000));
}

static uint64_t spread_nj(const struct sim_energy *e, unsigned packages)
{
    uint64_t nj = e->node_nj;

    for (unsigned p = 0; p < packages; p++)
        nj -= e->own_nj[p];
    return nj;
}

uint64_t sim_energy_package_nj(const struct sim_energy *e, unsigned package,
                               unsigned packages)
{
    return sim_part(spread_nj(e, packages), package, packages) +
           e->own_nj[package];
}

uint64_t sim_energy_package_uj(const struct sim_energy *e, unsigned package,
                               unsigned packages)
{
    return sim_part(spread_nj(e, packages) / 1000, package, packages) +
           e->own_nj[package] / 1000;
}

/* The die's or package's part of the node, its DRAM included. */
static uint64_t die_nj(const struct sim_machine *m, const struct sim_cpu *cpu,
                       const struct sim_energy *e)
{
    uint64_t package = sim_energy_package_nj(e, cpu->package, m->packages);

    return m->vendor == SIM_INTEL ? sim_part(package, cpu->die, m->dies)
                                  : package;
}

static uint64_t package_nj(const struct sim_registers *regs,
                           const struct sim_cpu *cpu,
                           const struct sim_energy *e)
{
    uint64_t nj = die_nj(regs->machine, cpu, e);

    return nj - sim_share(nj, regs->dram_ppm);
}

static uint64_t dram_nj(const struct sim_registers *regs,
                        const struct sim_cpu *cpu, const struct sim_energy *e)
{
    return sim_share(die_nj(regs->machine, cpu, e), regs->dram_ppm);
}

static uint64_t pp0_nj(const struct sim_registers *regs,
                       const struct sim_cpu *cpu, const struct sim_energy *e)
{
    return sim_share(package_nj(regs, cpu, e), SIM_PP0_PPM);
}

static uint64_t pp1_nj(const struct sim_registers *regs,
                       const struct sim_cpu *cpu, const struct sim_energy *e)
{
    return sim_share(package_nj(regs, cpu, e), SIM_PP1_PPM);
}

static uint64_t core_nj(const struct sim_registers *regs,
                        const struct sim_cpu *cpu, const struct sim_energy *e)
{
    return sim_part(pp0_nj(regs, cpu, e), cpu->core, regs->machine->cores);
}

static uint64_t psys_nj(const struct sim_registers *regs,
                        const struct sim_cpu *cpu, const struct sim_energy *e)
{
    (void)regs;
    (void)cpu;
    /* 1 W for 1 ns is 1 nJ. */
    return sim_share(e->node_nj, SIM_PSYS_PPM) +
           (uint64_t)e->t_ns * SIM_PSYS_REST_W;
}

enum unit_kind { UNIT, UNIT_DRAM, UNIT_PSYS };

struct counter {
    bool intel;
    uint32_t reg;
    enum unit_kind unit;
    bool (*present)(const struct sim_machine *m); /* NULL: always */
    uint64_t (*nj)(const struct sim_registers *regs, const struct sim_cpu *cpu,
                   const struct sim_energy *e);
};

static bool has_dram(const struct sim_machine *m)
{
    return m->dram;
}

static bool has_pp0(const struct sim_machine *m)
{
    return m->pp0;
}

static bool has_pp1(const struct sim_machine *m)
{
    return m->pp1;
}

static bool has_psys(const struct sim_machine *m)
{
    return m->psys;
}

static const struct counter counters[] = {
    {true, 0x611, UNIT, NULL, package_nj},
    {true, 0x619, UNIT_DRAM, has_dram, dram_nj},
    {true, 0x639, UNIT, has_pp0, pp0_nj},
    {true, 0x641, UNIT, has_pp1, pp1_nj},
    {true, 0x64d, UNIT_PSYS, has_psys, psys_nj},
    {false, 0xc001029a, UNIT, NULL, core_nj},
    {false, 0xc001029b, UNIT, NULL, package_nj},
};

static const struct counter *counter_find(const struct sim_machine *m,
                                          uint32_t reg)
{
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        const struct counter *c = &counters[i];

        if (c->reg == reg && c->intel == (m->vendor == SIM_INTEL))
            return !c->present || c->present(m) ? c : NULL;
    }
    return NULL;
}

/* Registers that do not count.  The power and time units beside ESU are
 * those of a Skylake-SP and a Zen 3. */
static int constant_read(const struct sim_machine *m, uint32_t reg,
                         uint64_t *ret_value)
{
    bool intel = m->vendor == SIM_INTEL;
    bool capable = m->filtering != SIM_FILTERING_ABSENT;

    if (reg == (intel ? 0x606 : 0xc0010299)) {
        *ret_value = UINT64_C(0xa0003) | (uint64_t)m->esu << 8;
        return 0;
    }
    if (intel && reg == 0x10a) {
        *ret_value = capable ? 3u << 10 : 0;
        return 0;
    }
    if (intel && reg == 0xbc && capable) {
        *ret_value = m->filtering == SIM_FILTERING_ON;
        return 0;
    }
    return EIO;
}

void sim_registers_init(struct sim_registers *regs,
                        const struct sim_machine *machine, uint32_t dram_ppm)
{
    *regs = (struct sim_registers){.machine = machine, .dram_ppm = dram_ppm};
}

static struct sim_energy difference(const struct sim_energy *a,
                                    const struct sim_energy *b)
{
    struct sim_energy e = {.t_ns = a->t_ns - b->t_ns,
                           .node_nj = a->node_nj - b->node_nj};

    for (unsigned p = 0; p < SIM_PACKAGES_MAX; p++)
        e.own_nj[p] = a->own_nj[p] - b->own_nj[p];
    return e;
}

/* The energy that the counters show: less than was used, after a freeze. */
static struct sim_energy shown(const struct sim_registers *regs,
                               const struct sim_energy *now)
{
    return regs->frozen ? regs->held : difference(now, &regs->lost);
}

int sim_registers_read(struct sim_registers *regs, size_t cpu, uint32_t reg,
                       const struct sim_energy *now, uint64_t *ret_value)
{
    const struct sim_machine *m = regs->machine;
    const struct counter *c = counter_find(m, reg);
    struct sim_energy e = shown(regs, now);
    uint64_t value;

    if (!m->cpus[cpu].online)
        return ENXIO;
    if (!c)
        return constant_read(m, reg, ret_value);
    regs->reads++;
    if (regs->eio_every && regs->reads % regs->eio_every == 0)
        return EIO;
    if (m->dead || (c->unit == UNIT_PSYS && m->cpus[cpu].package)) {
        *ret_value = 0;
        return 0;
    }
    value = m->start + ticks(c->nj(regs, &m->cpus[cpu], &e),
                             c->unit == UNIT_DRAM   ? m->dram_unit
                             : c->unit == UNIT_PSYS ? m->psys_unit
                                                    : m->unit);
    *ret_value = m->width_bits == 64 ? value : (uint32_t)value;
    return 0;
}

void sim_registers_freeze(struct sim_registers *regs,
                          const struct sim_energy *now)
{
    if (regs->frozen)
        return;
    regs->held = shown(regs, now);
    regs->frozen = true;
}

void sim_registers_thaw(struct sim_registers *regs,
                        const struct sim_energy *now)
{
    if (!regs->frozen)
        return;
    regs->frozen = false;
    regs->lost = difference(now, &regs->held);
}
