/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/apply.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/cpufreq/control.h"

bool joule_cpufreq_is_held(const struct joule_cpufreq_journal *j, unsigned id)
{
    for (size_t i = 0; i < j->holder_count; i++)
        if (joule_cpus_has(&j->holder[i].policies, id))
            return true;
    return false;
}

/* Whether the holder asks something of the policy, and no later step of its
 * job does. */
static bool speaks(const struct joule_cpufreq_journal *j, size_t index,
                   unsigned id)
{
    const struct joule_cpufreq_holder *h = &j->holder[index];

    if (h->is_watch || !joule_cpus_has(&h->policies, id))
        return false;
    for (size_t i = index + 1; i < j->holder_count; i++)
        if (j->holder[i].job == h->job && !j->holder[i].is_watch &&
            joule_cpus_has(&j->holder[i].policies, id))
            return false;
    return true;
}

static bool has_speaker(const struct joule_cpufreq_journal *j, unsigned id)
{
    for (size_t i = 0; i < j->holder_count; i++)
        if (speaks(j, i, id))
            return true;
    return false;
}

/* The plan of the holder who is served; false: there is none. */
static bool choose(const struct joule_cpufreq_journal *j,
                   const struct joule_cpufreq_policy *p,
                   const struct joule_cpufreq_state *original,
                   const struct joule_cpufreq_rules *rules,
                   struct joule_cpufreq_plan *ret)
{
    struct joule_cpufreq_plan plan;
    bool found = false;

    for (size_t i = 0; i < j->holder_count; i++) {
        if (!speaks(j, i, p->id) ||
            joule_cpufreq_plan(p, original, &j->holder[i].request, rules, &plan,
                               NULL) < 0)
            continue;
        if (!found || plan.ceiling_khz >= ret->ceiling_khz)
            *ret = plan;
        found = true;
    }
    return found;
}

/* All writes, whatever becomes of one of them: each that succeeds is nearer.
 * The first failure is told. */
static int write_ops(int root_fd, unsigned id,
                     const struct joule_cpufreq_write_op *ops, unsigned count,
                     struct joule_error *err)
{
    int rc = 0, errnum = 0;

    for (unsigned i = 0; i < count; i++) {
        if (joule_cpufreq_write(root_fd, id, ops[i].field, ops[i].text,
                                rc == 0 ? err : NULL) == 0)
            continue;
        if (rc == 0)
            errnum = errno;
        rc = -1;
    }
    errno = errnum;
    return rc;
}

/* What setspeed shows is the frequency of the moment, which some drivers
 * measure: that it was written must do. */
#define SHOWN_FIRST_NS (JOULE_NS_PER_MS / 4)
#define SHOWN          (JOULE_CPUFREQ_FIELDS & ~(unsigned)JOULE_CPUFREQ_SETSPEED)

/* What is not as it should be, when the kernel has had the time to do it:
 * since Linux 5.3 a work queue brings limits into force. */
static int read_back(struct joule_cpufreq_applying *s,
                     const struct joule_cpufreq_entry *entry,
                     const struct joule_cpufreq_state *target,
                     struct joule_cpufreq_state *now, unsigned *ret_differences,
                     struct joule_error *err)
{
    struct timespec pause = {.tv_nsec = SHOWN_FIRST_NS};

    for (;;) {
        if (joule_cpufreq_read_state(s->root_fd, entry->policy, entry->touched,
                                     now, err) < 0)
            return -1;
        *ret_differences =
            joule_cpufreq_differences(now, target, entry->touched & SHOWN);
        if (*ret_differences == 0 || s->patience_ns < pause.tv_nsec)
            return 0;
        nanosleep(&pause, NULL);
        s->patience_ns -= pause.tv_nsec;
        pause.tv_nsec *= 2;
    }
}

/* The kernel took it all: does it show it? */
static bool is_shown(struct joule_cpufreq_entry *entry, unsigned differences,
                     bool is_back, struct joule_error *err)
{
    if (!differences)
        return true;
    joule_error_set(err, EAGAIN,
                    "the kernel has taken %s for policy%u, but shows another "
                    "value",
                    joule_cpufreq_file(differences & -differences),
                    entry->policy);
    return is_back && ++entry->tries >= JOULE_CONTROL_TRIES;
}

/* What is to be done on the way to [target]; a state that cannot be read is
 * written as a whole. */
static int go_to(struct joule_cpufreq_applying *s,
                 struct joule_cpufreq_entry *entry,
                 const struct joule_cpufreq_state *known,
                 const struct joule_cpufreq_state *target, bool is_back,
                 struct joule_cpufreq_state *now, struct joule_error *err)
{
    struct joule_cpufreq_write_op ops[JOULE_CPUFREQ_OPS_MAX];
    unsigned id = entry->policy, count, differences;

    if (!known) {
        memset(now, 0, sizeof(*now));
        if (joule_cpufreq_read_state(s->root_fd, id, JOULE_CPUFREQ_FIELDS, now,
                                     err) == 0)
            known = now;
        else if (errno != EBADMSG)
            return -1;
    }
    count = joule_cpufreq_ops(known, target, entry->touched, ops);
    if (known && known != now)
        *now = *known;
    if (count == 0 && known)
        return 0;
    if (write_ops(s->root_fd, id, ops, count, err) < 0 ||
        read_back(s, entry, target, now, &differences, err) < 0)
        return -1;
    return is_shown(entry, differences, is_back, err) ? 0 : -1;
}

enum joule_cpufreq_applied joule_cpufreq_apply(
    struct joule_cpufreq_applying *s, struct joule_cpufreq_entry *entry,
    const struct joule_cpufreq_policy *policy,
    struct joule_cpufreq_state *ret_state, struct joule_error *err)
{
    struct joule_cpufreq_policy here;
    struct joule_cpufreq_state now;
    struct joule_cpufreq_plan plan;

    /* Who asks nothing needs no more than the state. */
    if (!policy && has_speaker(s->journal, entry->policy)) {
        if (joule_cpufreq_read(s->root_fd, entry->policy, &here, err) == 0)
            policy = &here;
        else if (errno != EBADMSG)
            return JOULE_CPUFREQ_APPLIED_FAILED;
    }
    if (policy &&
        choose(s->journal, policy, &entry->original, s->rules, &plan)) {
        if (go_to(s, entry, &policy->now, &plan.target, false, &now, err) < 0)
            return JOULE_CPUFREQ_APPLIED_FAILED;
        entry->tries = 0;
        if (ret_state)
            *ret_state = now;
        return JOULE_CPUFREQ_APPLIED_HELD;
    }
    if (go_to(s, entry, policy ? &policy->now : NULL, &entry->original, true,
              &now, err) < 0)
        return JOULE_CPUFREQ_APPLIED_FAILED;
    if (ret_state)
        *ret_state = now;
    return JOULE_CPUFREQ_APPLIED_RESTORED;
}
