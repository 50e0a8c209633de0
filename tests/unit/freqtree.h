/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqtree.h - cpufreq policies as plain files below a tree, and the wrong
 * things that a kernel may do to whoever writes them.
 *
 * Programs that include it are linked with FREQ_WRAP of local.mk.
 */
#ifndef JOULE_TESTS_FREQTREE_H
#define JOULE_TESTS_FREQTREE_H

#include <stdint.h>

#include "common/cpufreq/policy.h"
#include "tests/unit/tree.h"

/* Policy [id] of CPUs first..last, like acpi-cpufreq with four frequencies,
 * under ondemand, 1.5 to 3 GHz. */
void freqtree_acpi(struct tree *t, unsigned id, unsigned first, unsigned last);

/* The same, of a driver without a list of frequencies, with EPP. */
void freqtree_pstate(struct tree *t, unsigned id, unsigned first,
                     unsigned last);

/* A file of a policy; read drops the newline. */
void freqtree_write(struct tree *t, unsigned id, const char *name,
                    const char *text);
const char *freqtree_read(struct tree *t, unsigned id, const char *name);

/* A process with a start time in proc/, or none (start 0). */
void freqtree_process(struct tree *t, unsigned pid, uint64_t start);

/* All that can be set of policies 0 to count - 1, as one text. */
#define FREQTREE_TEXT 4096
void freqtree_dump(struct tree *t, unsigned count, char buf[FREQTREE_TEXT]);

/*
 * System calls that change something (openat for writing, write, renameat,
 * unlinkat, fsync) are counted from freqtree_arm on; the [nth] fails with
 * [errnum], or is the last of this process if that is 0.  0 disarms.
 */
void freqtree_arm(unsigned nth, int errnum);
unsigned freqtree_calls(void);

/* From then on only writes into cpufreq fail so, all of them; 0 ends it. */
void freqtree_refuse(int errnum);

#define FREQTREE_KILLED 77 /* exit status of a process that was ended */

#endif
