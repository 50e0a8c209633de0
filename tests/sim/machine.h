/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine.h - what the simulated node is: vendor, model and its quirks, CPUs
 * and where they sit, units and widths of its energy counters.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/sensors/sensor.h"

enum sim_vendor { SIM_INTEL, SIM_AMD, SIM_HYGON };

enum sim_filtering {
    SIM_FILTERING_ABSENT, /* MSR 0xBC does not exist */
    SIM_FILTERING_OFF,    /* it does, bit 0 clear */
    SIM_FILTERING_ON,
};

#define SIM_PACKAGES_MAX 64

#define SIM_DEFAULT UINT_MAX /* let the model's row decide */

/* What was asked for; sim_machine_options_init fills in the defaults. */
struct sim_machine_options {
    enum sim_vendor vendor;
    unsigned family, model;           /* or SIM_DEFAULT */
    unsigned packages, dies, threads; /* dies a package, threads a core */
    unsigned cpus;                    /* 0: see sim_machine_create */
    bool sparse;                      /* CPU numbers 1, 3, 5, ... */
    const char *cpu_numbers;          /* a CPU list in place of 0-N, or NULL */
    const char *offline;              /* a CPU list, or NULL */
    unsigned esu, dram_esu, width;    /* or SIM_DEFAULT */
    const char *start;                /* "N" or "wrap-N" */
    bool no_dram, pp0, pp1, psys, dead, hypervisor, no_physical_id;
    bool powercap, no_msr, cray, grace;
    enum sim_filtering filtering;
};

struct sim_cpu {
    unsigned number; /* of cpuN */
    bool online;
    unsigned package, die, core; /* die within package, core within package */
};

struct sim_machine {
    enum sim_vendor vendor;
    const char *vendor_id; /* as in /proc/cpuinfo */
    const char *cpu_name;
    unsigned family, model;
    unsigned packages, dies, threads, cores; /* cores a package */
    struct sim_cpu *cpus;                    /* ascending by number */
    size_t cpu_count;
    uint8_t esu; /* as the unit register tells it */
    struct joule_unit unit, dram_unit, psys_unit;
    uint8_t width_bits;
    uint64_t start; /* raw value of every energy counter at time 0 */
    bool dram, pp0, pp1, psys, dead, hypervisor, no_physical_id;
    bool powercap, no_msr, cray; /* zones; no MSR devices; pm_counters */
    bool grace;                  /* power meters in hwmon */
    enum sim_filtering filtering;
};

void sim_machine_options_init(struct sim_machine_options *opt);

/*
 * Without a number of CPUs: the smallest multiple of packages x dies x
 * threads that is not below the CPUs of the host.  Cores are numbered
 * package by package, then the second threads of all cores follow, as Linux
 * does on most servers.  NULL with errno EINVAL or ENOMEM and a sentence.
 */
struct sim_machine *sim_machine_create(const struct sim_machine_options *opt,
                                       struct joule_error *err);
/* A CPU of the host is the simulated one of its number, if there is one; else
 * one of the others.  Its place in [cpus]. */
size_t sim_machine_host_cpu(const struct sim_machine *m, unsigned number);

/* Take the CPUs of the list offline, or online, before or while they are
 * simulated.  -1 with EINVAL and a sentence; at least one CPU stays online. */
int sim_machine_switch(struct sim_machine *m, const char *list, bool online,
                       struct joule_error *err);

/* NULL is a no-op. */
void sim_machine_destroy(struct sim_machine *machine);

#endif
