/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freq.h - the CPU frequency policies of a Linux kernel that is not there, as
 * a state that is changed by the bytes written to its sysfs files.
 *
 * What is accepted, refused (and with which errno) and shown is that of Linux
 * 6.1, read in drivers/cpufreq/{cpufreq,freq_table,cpufreq_userspace,
 * acpi-cpufreq,cppc_cpufreq,pcc-cpufreq,intel_pstate,amd-pstate}.c; of
 * amd-pstate's active and guided modes, which came with 6.3 and 6.4, of those.
 * Limits outside of 0..INT_MAX are refused as from 6.2 on.  options.kernel
 * says otherwise: the limits and what an offline CPU does before 5.3 (4.18 is
 * that of RHEL 8); limits as in 6.12, a whole number in any base of C, and where
 * no frequency lies between both, the next lower one (seen in Debian's
 * 6.12.107); and scaling_setspeed as in 7.2, such a number too, which is shown
 * as it was written (seen in Debian's 7.2.13).
 *
 * Not there: the tunables of governors, statistics, acpi-cpufreq's cpb on AMD,
 * scaling_boost_frequencies, per-CPU limits of intel_pstate, its energy bias
 * without HWP.
 *
 * One thread.  Frequencies are in kHz.
 */
#ifndef SIM_FREQ_H
#define SIM_FREQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/clock.h"
#include "common/base/error.h"

#define SIM_FREQ_PAGE  4096 /* the longest file, and the longest write */
#define SIM_FREQ_TABLE 64
#define SIM_FREQ_CPUS  4096

enum sim_governor {
    SIM_PERFORMANCE,
    SIM_POWERSAVE,
    SIM_USERSPACE,
    SIM_ONDEMAND,
    SIM_CONSERVATIVE,
    SIM_SCHEDUTIL,
    SIM_GOVERNORS,
};

enum sim_freq_family { SIM_PLAIN, SIM_INTEL_PSTATE, SIM_AMD_PSTATE };

/* What distinguishes the drivers. */
struct sim_freq_driver {
    const char *name; /* for options */
    const char *scaling_driver;
    enum sim_freq_family family;
    const char *mode; /* of the family's status file */
    unsigned latency_ns;
    unsigned step_khz; /* targets are rounded to it; 0: not at all */
    bool setpolicy;    /* no governors but the driver's two */
    bool table;        /* a list of frequencies, and no others */
    bool get;          /* cpuinfo_cur_freq */
    bool bios_limit, freqdomain, boost;
    bool boost_moves_max; /* without boost cpuinfo_max_freq is the nominal */
    bool energy_preference;
    bool few_cpus; /* dynamic governors for four CPUs at most */
};

/* The table ends with a name that is NULL. */
extern const struct sim_freq_driver sim_freq_drivers[];
const struct sim_freq_driver *sim_freq_driver_find(const char *name);

/* -1: no such governor; any case, as the kernel. */
int sim_governor_find(const char *name);
extern const char *const sim_governor_names[SIM_GOVERNORS];

enum sim_kernel {
    SIM_LINUX_4_18 = 1,
    SIM_LINUX_6_1,
    SIM_LINUX_6_12,
    SIM_LINUX_7_2,
};

struct sim_freq_options {
    const struct sim_freq_driver *driver;
    const char *cpus; /* a CPU list */
    unsigned per_policy;
    unsigned min_khz, max_khz, nominal_khz;
    unsigned table_khz[SIM_FREQ_TABLE]; /* any order; 0 ends it */
    unsigned governors;                 /* bits 1 << enum sim_governor */
    unsigned loadable; /* those become governors when they are written */
    int governor;      /* at first; -1: the driver's default */
    unsigned load_pct;
    bool no_hwp;
    unsigned kernel;   /* enum sim_kernel */
    int64_t limits_ns; /* limits take effect that long after the write */
};

void sim_freq_options_init(struct sim_freq_options *opt);

struct sim_freq_cpu {
    unsigned number;
    bool online;
    unsigned load_pct;
    size_t policy;
};

struct sim_freq_policy {
    unsigned number;            /* of policyN: its first CPU */
    size_t first, count;        /* its CPUs */
    bool gone;                  /* removed: there is no policyN */
    unsigned low, high;         /* cpuinfo_min_freq, cpuinfo_max_freq */
    int64_t user_min, user_max; /* as written */
    unsigned firmware_max;
    unsigned min, max; /* in effect */
    int64_t due_ns;    /* when a change of limits takes effect; 0: none */
    enum sim_governor governor;
    unsigned setspeed, cur;
    unsigned epp, epp_saved;
};

struct sim_freq {
    const struct joule_clock *clock;
    const struct sim_freq_driver *driver; /* NULL: turned off */
    enum sim_freq_family family;
    struct sim_freq_options opt;
    struct sim_freq_cpu *cpus; /* ascending */
    size_t cpu_count;
    struct sim_freq_policy *policies; /* ascending */
    size_t policy_count;
    unsigned table[SIM_FREQ_TABLE]; /* ascending */
    size_t table_count;
    unsigned governors;
    bool boost, no_turbo, hwp_boost;
    unsigned min_pct, max_pct;
};

/* NULL with errno EINVAL or ENOMEM and a sentence. */
struct sim_freq *sim_freq_create(const struct sim_freq_options *opt,
                                 const struct joule_clock *clock,
                                 struct joule_error *err);
/* NULL is a no-op; errno is kept. */
void sim_freq_destroy(struct sim_freq *freq);

/* Bring what is due into effect, with [now] everything that is pending.
 * Returns the ns until there is more, or -1. */
int64_t sim_freq_settle(struct sim_freq *freq, bool now);

/* What a driver does when it is loaded, or unloaded with NULL. */
void sim_freq_driver_load(struct sim_freq *freq,
                          const struct sim_freq_driver *driver);

/* The policy as a driver makes it. */
void sim_freq_policy_init(struct sim_freq *freq,
                          struct sim_freq_policy *policy);

/* A change of anything that a policy's limits or frequency hang on. */
void sim_freq_refresh(struct sim_freq *freq, struct sim_freq_policy *policy);
void sim_freq_refresh_all(struct sim_freq *freq);

/* A governor starts; the limits are in effect. */
void sim_freq_govern(struct sim_freq *freq, struct sim_freq_policy *policy,
                     enum sim_governor governor);
/* userspace: another speed. */
void sim_freq_setspeed(struct sim_freq *freq, struct sim_freq_policy *policy,
                       unsigned khz);

/* Whether a CPU of the policy is online. */
bool sim_freq_active(const struct sim_freq *freq,
                     const struct sim_freq_policy *policy);
/* Whether policyN is to be seen at all. */
bool sim_freq_there(const struct sim_freq *freq,
                    const struct sim_freq_policy *policy);

/* CPU [i] goes or comes.  0 or an errno value. */
int sim_freq_hotplug(struct sim_freq *freq, size_t i, bool online);

/* The policy goes (its module is taken out) or comes back, as new. */
void sim_freq_vanish(struct sim_freq *freq, struct sim_freq_policy *policy,
                     bool gone);

#endif
