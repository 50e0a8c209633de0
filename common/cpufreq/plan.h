/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plan.h - which state of a policy fulfils a request, and which writes lead
 * from one state to another.  Pure: nothing is read or written here.
 */
#ifndef JOULE_CPUFREQ_PLAN_H
#define JOULE_CPUFREQ_PLAN_H

#include "common/cpufreq/policy.h"
#include "common/cpufreq/request.h"

/* What a site says to requests. */
struct joule_cpufreq_rules {
    unsigned governors;                 /* allowed ones, enum joule_governor */
    enum joule_governor range_governor; /* of ranges that name none */
    bool keep_limits; /* no step leaves the limits that the site has set */
};

struct joule_cpufreq_plan {
    struct joule_cpufreq_state target;
    unsigned touches;     /* enum joule_cpufreq_field: what the request is
                             about, and what changes with it */
    uint32_t ceiling_khz; /* no frequency above it: who asks for more wins */
};

/*
 * How [request] is fulfilled on the policy, whose state was [original] before
 * anybody asked for something: what it does not touch is as it was.
 *
 * A frequency is rounded up to the next one that the hardware has.  One that
 * lies outside of what it has becomes the nearest; [err] then says so, and the
 * result is 1.  -1 with ENOTSUP and a sentence if it cannot be fulfilled: the
 * governor is not there or not allowed, the range is empty.  Else 0.
 */
int joule_cpufreq_plan(const struct joule_cpufreq_policy *p,
                       const struct joule_cpufreq_state *original,
                       const struct joule_request *request,
                       const struct joule_cpufreq_rules *rules,
                       struct joule_cpufreq_plan *ret, struct joule_error *err);

struct joule_write_op {
    enum joule_cpufreq_field field;
    char text[JOULE_CPUFREQ_WORD];
};

#define JOULE_CPUFREQ_OPS_MAX 5

/*
 * The writes that lead from [now] to [target] in the fields [touches], in an
 * order that kernels accept: kernels before 5.3 refuse a lower limit above the
 * upper one at any moment, setspeed is refused under other governors and
 * clipped to the limits, the preference is refused under governor performance
 * and changed by leaving it.  [now] may be NULL: not known.  Returns their
 * number; what is so already is not written.
 */
unsigned joule_cpufreq_ops(const struct joule_cpufreq_state *now,
                           const struct joule_cpufreq_state *target,
                           unsigned touches, struct joule_write_op *ret_ops);

/* The fields of [touches] in which the states differ.  Setspeed counts under
 * governor userspace only. */
unsigned joule_state_differences(const struct joule_cpufreq_state *now,
                                 const struct joule_cpufreq_state *target,
                                 unsigned touches);

#endif
