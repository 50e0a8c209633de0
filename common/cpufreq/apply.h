/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * apply.h - bring one policy to what its holders are due, or back.
 *
 * Called with the journal's lock, and after the journal is on disk.
 */
#ifndef JOULE_CPUFREQ_APPLY_H
#define JOULE_CPUFREQ_APPLY_H

#include "common/base/clock.h"
#include "common/cpufreq/journal.h"
#include "common/cpufreq/plan.h"

enum joule_cpufreq_applied {
    JOULE_CPUFREQ_APPLIED_HELD,     /* it is as the served holder asked */
    JOULE_CPUFREQ_APPLIED_RESTORED, /* nobody asks: it is as it was, and its
                               entry may go if nobody holds it */
    JOULE_CPUFREQ_APPLIED_FAILED,   /* neither; there is a sentence */
};

/* One transaction's worth of settling. */
struct joule_cpufreq_applying {
    int root_fd;
    const struct joule_cpufreq_rules *rules;
    struct joule_cpufreq_journal *journal;
    int64_t patience_ns; /* left for values that do not show at once */
};

#define JOULE_CPUFREQ_APPLYING_PATIENCE_NS (64 * JOULE_NS_PER_MS)

/* Whether anybody holds the policy. */
bool joule_cpufreq_is_held(const struct joule_cpufreq_journal *j, unsigned id);

/*
 * [policy] was read a moment ago, or NULL: it is read here.  The entry's count
 * of tries may change.  ret_state (may be NULL) is what the kernel shows
 * afterwards, filled unless it failed.
 */
enum joule_cpufreq_applied joule_cpufreq_apply(
    struct joule_cpufreq_applying *s, struct joule_cpufreq_entry *entry,
    const struct joule_cpufreq_policy *policy,
    struct joule_cpufreq_state *ret_state, struct joule_error *err);

#endif
