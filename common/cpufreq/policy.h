/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy.h - one frequency domain of the kernel: the CPUs that have one
 * setting together, what the hardware can do, and what is set now.
 *
 * Read from sys/devices/system/cpu below a root fd (Documentation/
 * admin-guide/pm/cpufreq.rst of the kernel).
 */
#ifndef JOULE_CPUFREQ_POLICY_H
#define JOULE_CPUFREQ_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/cpus.h"

#define JOULE_CPUFREQ_DIR   "sys/devices/system/cpu/cpufreq"
#define JOULE_CPUFREQ_WORD  32  /* a governor, driver or EPP, with its end */
#define JOULE_CPUFREQ_WORDS 512 /* a list of them */
#define JOULE_CPUFREQ_STEPS 128 /* frequencies that a driver lists */

/* What is set, and can be set back. */
struct joule_cpufreq_state {
    char governor[JOULE_CPUFREQ_WORD];
    char epp[JOULE_CPUFREQ_WORD]; /* energy performance preference; empty: the
                                     driver has none */
    uint32_t min_khz, max_khz;
    uint32_t setspeed_khz; /* 0: not under governor userspace */
};

/* The files of a state, as bits, in the order of their names below. */
enum joule_cpufreq_field {
    JOULE_CPUFREQ_GOVERNOR = 1,
    JOULE_CPUFREQ_MIN = 2,
    JOULE_CPUFREQ_MAX = 4,
    JOULE_CPUFREQ_SETSPEED = 8,
    JOULE_CPUFREQ_EPP = 16,
    JOULE_CPUFREQ_FIELDS = 31,
};

/* "scaling_governor" and so on. */
const char *joule_cpufreq_file(enum joule_cpufreq_field field);

struct joule_cpufreq_policy {
    unsigned id;
    struct joule_cpus cpus; /* online ones */
    char driver[JOULE_CPUFREQ_WORD];
    char mode[JOULE_CPUFREQ_WORD]; /* of amd-pstate: "guided"; else empty */
    uint32_t hw_min_khz, hw_max_khz;
    uint32_t step_khz[JOULE_CPUFREQ_STEPS]; /* ascending, none twice */
    unsigned step_count;                    /* 0: the driver takes any */
    char governors[JOULE_CPUFREQ_WORDS];    /* as the kernel lists them */
    char epps[JOULE_CPUFREQ_WORDS];         /* empty: the driver has none */
    struct joule_cpufreq_state now;
    uint32_t cur_khz; /* scaling_cur_freq; 0: the kernel does not tell */
};

/* The policies that exist; there may be none.  -1 with a sentence if the
 * directory cannot be read. */
int joule_cpufreq_list(int root_fd, struct joule_cpus *ret_ids,
                       struct joule_error *err);

/* The policy that a CPU belongs to.  -1 with ENOENT if it has none (offline,
 * or no driver) or EBADMSG. */
int joule_cpufreq_policy_of(int root_fd, unsigned cpu, unsigned *ret_id);

/*
 * Read a policy.  -1 with a sentence and
 *   ENOENT   there is no such policy (any more)
 *   EBUSY    its CPUs are offline
 *   EBADMSG  a file does not hold what the kernel writes
 *   other    of reading
 */
int joule_cpufreq_read(int root_fd, unsigned id,
                       struct joule_cpufreq_policy *ret,
                       struct joule_error *err);

/* The same, of the [fields] of what is set alone; the others stay in *state. */
int joule_cpufreq_read_state(int root_fd, unsigned id, unsigned fields,
                             struct joule_cpufreq_state *state,
                             struct joule_error *err);

/* scaling_cur_freq of a policy in kHz; 0: it does not tell. */
uint32_t joule_cpufreq_current_khz(int root_fd, unsigned id);

/* Write one value.  EBUSY is tried again for a few ms: a CPU may be on its way
 * in or out.  -1 with errno and a sentence. */
int joule_cpufreq_write(int root_fd, unsigned id,
                        enum joule_cpufreq_field field, const char *text,
                        struct joule_error *err);

/* Letters, digits, '_', '-', '.' and '+', at least one: names of governors,
 * drivers and preferences. */
bool joule_cpufreq_is_word(const char *text);

/* Whether [word] is one of the blank-separated words of [list]. */
bool joule_cpufreq_has_word(const char *list, const char *word);

#endif
