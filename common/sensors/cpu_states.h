/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_states.h - how long CPUs were in their idle states (C-states), or at their
 * frequencies (P-states), in four groups, from sysfs.
 *
 *     s = joule_cpu_states_open(root_fd, JOULE_CSTATES, 0, 1024, clock, &err);
 *     while (joule_cpu_states_read(s, &err) == 0)
 *         t = joule_cpu_states_of(s, cpu);
 *     joule_cpu_states_close(s);
 *
 * C-states: cpuN/cpuidle/stateS/time (Documentation/admin-guide/pm/cpuidle.rst).
 * They are what the kernel asked for; what the hardware granted may be less.
 * Group 0 is C0, the time that no state has; 1 the first state (and POLL), 3 the
 * deepest, 2 all between.
 * P-states: cpuN/cpufreq/stats/time_in_state (Documentation/cpu-freq/
 * cpufreq-stats.rst), in ticks of 10 ms.  Group 0 is the highest frequency, 3 the
 * lowest, all others are divided among 1 and 2.
 *
 * The kernel adds the time in an idle state when the CPU leaves it.  What is told
 * of an interval is never more than the interval: the rest is told of the
 * next ones.
 *
 * A reading is one pread of a file that stays open for each state of a CPU, or for
 * each CPU.  A CPU that goes offline stands still, and goes on when it
 * is back.  One thread at a time.
 */
#ifndef JOULE_SENSORS_CPU_STATES_H
#define JOULE_SENSORS_CPU_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"

#define JOULE_CPU_STATE_GROUPS 4

enum joule_cpu_states_kind {
    JOULE_CSTATES,
    JOULE_PSTATES,
};

struct joule_cpu_times {
    int64_t known_ns; /* time in which the CPU was observed; grows */
    int64_t group_ns[JOULE_CPU_STATE_GROUPS]; /* of it; C-states: all of it */
};

struct joule_cpu_states;

/*
 * Open the files of the CPUs [first] to [first] + [count] - 1 that are online and
 * take a first reading.  NULL with a sentence and errno
 *   ENODEV  none of them has such states: the kernel has no driver (most virtual
 *           machines), or one that keeps no times (P-states: intel_pstate and
 *           amd-pstate)
 *   ENOENT  sysfs is not there
 *   EMFILE, ENOMEM, or of reading the list of CPUs
 */
struct joule_cpu_states *joule_cpu_states_open(int root_fd,
                                               enum joule_cpu_states_kind kind,
                                               unsigned first, unsigned count,
                                               const struct joule_clock *clock,
                                               struct joule_error *err);

/* NULL is a no-op; errno is kept. */
void joule_cpu_states_close(struct joule_cpu_states *states);

/* Read all CPUs.  -1 with a sentence and errno if the list of online CPUs cannot
 * be read; nothing has changed then. */
int joule_cpu_states_read(struct joule_cpu_states *states,
                          struct joule_error *err);

/* When the last reading was (joule_clock_mono_ns). */
int64_t joule_cpu_states_time(const struct joule_cpu_states *states);

/* What a CPU has by then, since it was opened; of one that has no states, or is
 * none of those that were opened, all is 0.  Good until the reader is closed. */
const struct joule_cpu_times *
joule_cpu_states_of(const struct joule_cpu_states *states, unsigned cpu);

/* The number of the highest CPU that may ever be online, + 1; or -1 with a
 * sentence and errno of reading sys/devices/system/cpu/possible. */
int joule_cpu_states_limit(int root_fd, struct joule_error *err);

#endif
