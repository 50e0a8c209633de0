/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * registers.h - the MSR map: what rdmsr gives on a CPU of the machine at a
 * given energy, and the faults that tests ask for.
 *
 * Intel (SDM volume 4): 0x606 unit, 0x611 package, 0x619 DRAM, 0x639 PP0,
 * 0x641 PP1, 0x64D PSYS, 0xBC and 0x10A energy filtering; counters belong
 * to a die.  AMD and Hygon (PPR): 0xC0010299 unit, 0xC001029A core,
 * 0xC001029B package; all dies of a package show its one counter.
 * Anything else is EIO, as a general protection fault in the msr driver is.
 *
 * What a domain shows of the node's energy E after t seconds:
 *   die      an even part of what of E is the package's
 *   DRAM     dram share of the die's part
 *   package  the rest: package + DRAM over all dies = E to the tick
 *   PP0      70 % of package      PP1   5 % of package
 *   core     (AMD) an even part of 70 % of the package
 *   PSYS     110 % of E + 20 W x t, on package 0; 0 on other packages, as
 *            Sapphire Rapids does off its master package
 */
#ifndef SIM_REGISTERS_H
#define SIM_REGISTERS_H

#include <stdint.h>

#include "tests/sim/machine.h"

#define SIM_PP0_PPM     700000u
#define SIM_PP1_PPM     50000u
#define SIM_PSYS_PPM    1100000u
#define SIM_PSYS_REST_W 20u

/* The node's energy at a moment.  What is no package's own is split evenly. */
struct sim_energy {
    int64_t t_ns; /* since the simulation began */
    uint64_t node_nj;
    uint64_t own_nj[SIM_PACKAGES_MAX]; /* a part of node_nj */
};

/* That of one of [packages] packages.  The first add up to the node, the second
 * to less than a uJ for each of them below it. */
uint64_t sim_energy_package_nj(const struct sim_energy *e, unsigned package,
                               unsigned packages);
uint64_t sim_energy_package_uj(const struct sim_energy *e, unsigned package,
                               unsigned packages);

struct sim_registers {
    const struct sim_machine *machine; /* not owned */
    uint32_t dram_ppm;
    uint64_t eio_every; /* 0: never; every so many reads of a counter */
    uint64_t reads;     /* of energy counters */
    bool frozen;
    struct sim_energy held; /* what the counters show while frozen */
    struct sim_energy lost; /* what they missed in freezes before */
};

/* dram_ppm: the DRAM share of a die's energy.  A machine without a DRAM
 * counter shows that part nowhere. */
void sim_registers_init(struct sim_registers *regs,
                        const struct sim_machine *machine, uint32_t dram_ppm);

/* Read register [reg] of machine->cpus[cpu] at energy [now].  Returns 0, or
 * EIO, or ENXIO if the CPU is offline, with *ret_value unchanged. */
int sim_registers_read(struct sim_registers *regs, size_t cpu, uint32_t reg,
                       const struct sim_energy *now, uint64_t *ret_value);

/* Counters stop at [now]; after the thaw they go on from where they stood:
 * what was used in between is never counted. */
void sim_registers_freeze(struct sim_registers *regs,
                          const struct sim_energy *now);
void sim_registers_thaw(struct sim_registers *regs,
                        const struct sim_energy *now);

#endif
