/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold.c - joule_control_hold: a step begins to hold policies.
 */
#include "common/cpufreq/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/process.h"
#include "common/cpufreq/apply.h"

struct taking {
    struct joule_control *control;
    const struct joule_control_claim *claim;
    struct joule_control_grant *grant;
    struct joule_cpufreq_journal journal;
    struct joule_cpufreq_applying settling;
    struct joule_cpufreq_holder holder;  /* before it is in the journal */
    struct joule_cpufreq_policy *policy; /* those of the holder */
    size_t policy_count;
    struct joule_error *err;
};

/* The policies of the claim's CPUs. */
static void find_policies(struct taking *t, struct joule_cpus *ret_ids)
{
    const struct joule_cpus *cpus = &t->claim->cpus;
    struct joule_error err;
    unsigned cpu, id;

    memset(ret_ids, 0, sizeof(*ret_ids));
    for (cpu = joule_cpus_next(cpus, 0); cpu < JOULE_CPUS_MAX;
         cpu = joule_cpus_next(cpus, cpu + 1)) {
        if (joule_cpufreq_policy_of(t->control->root_fd, cpu, &id) == 0) {
            joule_cpus_add(ret_ids, id);
            continue;
        }
        joule_error_set(&err, errno,
                        "the frequency of CPU %u cannot be set: "
                        "it has no cpufreq policy",
                        cpu);
        if (!t->claim->is_watch)
            joule_control_note(&t->grant->notes, &err);
    }
}

static void count_unmet(struct taking *t, const struct joule_error *err)
{
    t->grant->unmet++;
    joule_control_note(&t->grant->notes, err);
}

/* The policy into the journal, if the claim can be fulfilled on it; -1 if
 * there is no memory. */
static int enter(struct taking *t, const struct joule_cpufreq_policy *p)
{
    struct joule_cpufreq_entry *e =
        joule_cpufreq_journal_entry(&t->journal, p->id);
    struct joule_cpufreq_entry fresh = {.policy = p->id, .original = p->now};
    struct joule_cpufreq_plan plan = {.touches = JOULE_CPUFREQ_FIELDS};
    struct joule_error err;
    int rc = 0;

    if (!t->claim->is_watch)
        rc = joule_cpufreq_plan(p, e ? &e->original : &p->now,
                                &t->claim->request, &t->control->config.rules,
                                &plan, &err);
    if (rc < 0) {
        count_unmet(t, &err);
        return 0;
    }
    if (rc > 0)
        joule_control_note(&t->grant->notes, &err);
    if (!e)
        e = joule_cpufreq_journal_add_entry(&t->journal, &fresh);
    if (!e)
        return joule_error_set(t->err, ENOMEM, "out of memory");
    e->touched |= plan.touches;
    if (!*e->original.epp)
        e->touched &= ~(unsigned)JOULE_CPUFREQ_EPP;
    joule_cpus_add(&t->holder.policies, p->id);
    t->policy_count++;
    return 0;
}

static int enter_all(struct taking *t)
{
    struct joule_cpus ids;
    unsigned id;

    find_policies(t, &ids);
    t->policy = calloc(joule_cpus_count(&ids) + 1, sizeof(*t->policy));
    if (!t->policy)
        return joule_error_set(t->err, ENOMEM, "out of memory");
    for (id = joule_cpus_next(&ids, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(&ids, id + 1)) {
        struct joule_cpufreq_policy *p = &t->policy[t->policy_count];
        struct joule_error err;

        if (joule_cpufreq_read(t->control->root_fd, id, p, &err) < 0)
            count_unmet(t, &err);
        else if (enter(t, p) < 0)
            return -1;
    }
    return 0;
}

static int enter_holder(struct taking *t)
{
    const struct joule_control_claim *claim = t->claim;
    struct joule_cpufreq_holder *h = &t->holder;

    h->job = claim->job;
    h->pid = claim->pid;
    h->is_watch = claim->is_watch;
    h->request = claim->request;
    if (!joule_cpufreq_is_word(claim->step) ||
        strlen(claim->step) >= sizeof(h->step))
        return joule_error_set(t->err, EINVAL, "\"%s\" is not a step",
                               claim->step);
    memcpy(h->step, claim->step, strlen(claim->step) + 1);
    h->namespace = joule_process_namespace(t->control->root_fd);
    if (joule_process_start(t->control->root_fd, claim->pid, &h->start) < 0)
        return joule_error_set(t->err, errno,
                               "process %lld cannot hold frequencies: %s",
                               (long long)claim->pid, strerror(errno));
    if (joule_cpufreq_journal_file_live(
            &t->control->store, joule_cpufreq_holder_byte(h), t->err) < 0)
        return -1;
    h = joule_cpufreq_journal_add_holder(&t->journal, h);
    if (!h)
        return joule_error_set(t->err, errno,
                               errno == ENOSPC ? "too many steps hold CPU "
                                                 "frequencies"
                                               : "out of memory");
    t->grant->number = h->number;
    t->grant->pid = h->pid;
    t->grant->start = h->start;
    t->grant->policies = h->policies;
    return 0;
}

static void count_met(struct taking *t, const struct joule_cpufreq_state *s)
{
    struct joule_control_grant *g = t->grant;
    uint32_t low = s->setspeed_khz ? s->setspeed_khz : s->min_khz,
             high = s->setspeed_khz ? s->setspeed_khz : s->max_khz;

    if (g->met == 0 || low < g->low_khz)
        g->low_khz = low;
    if (g->met == 0 || high > g->high_khz)
        g->high_khz = high;
    if (g->met++ == 0)
        memcpy(g->governor, s->governor, sizeof(g->governor));
}

/* The claim is not met on this policy: as if it had not been made there. */
static void give_up(struct taking *t, unsigned id)
{
    struct joule_cpufreq_journal *j = &t->journal;
    struct joule_cpufreq_entry *e = joule_cpufreq_journal_entry(j, id);

    joule_cpus_remove(&t->grant->policies, id);
    for (size_t i = 0; i < j->holder_count; i++)
        if (j->holder[i].number == t->grant->number)
            joule_cpus_remove(&j->holder[i].policies, id);
    if (joule_cpufreq_apply(&t->settling, e, NULL, NULL, NULL) ==
            JOULE_CPUFREQ_APPLIED_RESTORED &&
        !joule_cpufreq_is_held(j, id))
        joule_cpufreq_journal_remove_entry(j, id);
}

/* Set the holder's policies.  Returns how many it had to give up. */
static unsigned apply_claim(struct taking *t)
{
    unsigned given_up = 0;

    for (size_t i = 0; i < t->policy_count; i++) {
        const struct joule_cpufreq_policy *p = &t->policy[i];
        struct joule_cpufreq_state now;
        struct joule_error err;

        if (joule_cpufreq_apply(
                &t->settling, joule_cpufreq_journal_entry(&t->journal, p->id),
                p, &now, &err) != JOULE_CPUFREQ_APPLIED_FAILED) {
            count_met(t, &now);
            continue;
        }
        count_unmet(t, &err);
        give_up(t, p->id);
        given_up++;
    }
    return given_up;
}

/* A holder of nothing is none. */
static void drop_if_empty(struct taking *t)
{
    struct joule_cpufreq_journal *j = &t->journal;

    for (size_t i = 0; i < j->holder_count; i++)
        if (j->holder[i].number == t->grant->number &&
            joule_cpus_is_empty(&j->holder[i].policies)) {
            joule_cpufreq_journal_remove_holder(j, i);
            t->grant->number = 0;
            return;
        }
}

static int take(struct taking *t)
{
    struct joule_cpufreq_journal_file *store = &t->control->store;

    if (enter_all(t) < 0)
        return -1;
    if (t->policy_count == 0 && t->claim->is_watch)
        return 0;
    if (t->policy_count == 0)
        return joule_error_set(t->err, ENOTSUP, "%s",
                               t->grant->notes.count
                                   ? t->grant->notes.first.text
                                   : "there is no CPU to set");
    if (enter_holder(t) < 0 ||
        joule_cpufreq_journal_file_save(store, &t->journal, t->err) < 0) {
        t->grant->number = 0;
        return -1;
    }
    if (t->claim->is_watch || apply_claim(t) == 0)
        return 0;
    drop_if_empty(t);
    if (joule_cpufreq_journal_file_save(store, &t->journal, t->err) < 0)
        return -1;
    if (t->grant->number == 0)
        return joule_error_set(t->err, ENOTSUP, "%s",
                               t->grant->notes.first.text);
    return 0;
}

int joule_control_hold(struct joule_control *c,
                       const struct joule_control_claim *claim,
                       struct joule_control_grant *ret, struct joule_error *err)
{
    struct taking t = {.control = c, .claim = claim, .grant = ret, .err = err};
    int rc, saved;

    t.settling = (struct joule_cpufreq_applying){
        .root_fd = c->root_fd,
        .rules = &c->config.rules,
        .journal = &t.journal,
        .patience_ns = JOULE_CPUFREQ_APPLYING_PATIENCE_NS,
    };
    memset(ret, 0, sizeof(*ret));
    if (c->store.dir_fd < 0 &&
        joule_cpufreq_journal_file_open(&c->store, c->root_fd, true, err) < 0)
        return -1;
    /* What others have left behind is not to be taken for the original. */
    if (joule_control_recover(c, NULL, err) < 0)
        return -1;
    if (joule_cpufreq_journal_file_lock(&c->store, c->config.lock_wait_ns,
                                        err) < 0)
        return -1;
    rc = joule_cpufreq_journal_file_load(&c->store, &t.journal, err);
    if (rc == 0)
        rc = take(&t);
    saved = errno;
    free(t.policy);
    joule_cpufreq_journal_clear(&t.journal);
    joule_cpufreq_journal_file_unlock(&c->store);
    errno = saved;
    return rc;
}
