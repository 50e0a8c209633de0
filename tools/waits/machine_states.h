/* SPDX-License-Identifier: GPL-2.0-or-later */
/* machine_states.h - what the kernel tells of this machine's power states. */
#ifndef JOULE_WAITS_MACHINE_STATES_H
#define JOULE_WAITS_MACHINE_STATES_H

#include <stdio.h>

#include "common/base/error.h"

/*
 * Write a table as joule_power_states_parse reads it, with '?' for what the kernel
 * does not know: the powers, and the energy of a transition.  A state is a
 * frequency of CPU 0 below root_fd (cpufreq), the highest first; idle states
 * (cpuidle) are comments.  -1 with ENOENT and a sentence: there is no cpufreq.
 */
int joule_machine_states_print(FILE *out, int root_fd, struct joule_error *err);

#endif
