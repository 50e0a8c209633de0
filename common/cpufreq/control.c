/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/deadline.h"
#include "common/base/process.h"

/* For values that do not show at once, in one transaction. */
#define PATIENCE_NS    (64 * JOULE_NS_PER_MS)
#define SHOWN_FIRST_NS (JOULE_NS_PER_MS / 4)

/* What setspeed shows is the frequency of the moment, which some drivers
 * measure: that it was written must do. */
#define SHOWN (JOULE_CPUFREQ_FIELDS & ~(unsigned)JOULE_CPUFREQ_SETSPEED)

static void note(struct joule_control_notes *notes,
                 const struct joule_error *err)
{
    if (notes->count++ == 0)
        notes->first = *err;
}

void joule_control_init(struct joule_control *c, int root_fd,
                        const struct joule_control_config *config)
{
    memset(c, 0, sizeof(*c));
    c->root_fd = root_fd;
    c->config = *config;
    c->store.dir_fd = c->store.lock_fd = -1;
}

void joule_control_destroy(struct joule_control *c)
{
    joule_journal_file_close(&c->store);
}

/* ---- transactions ---- */

static int open_store(struct joule_control *c, bool create,
                      struct joule_error *err)
{
    if (c->store.dir_fd >= 0)
        return 0;
    return joule_journal_file_open(&c->store, c->root_fd, create, err);
}

/* Lock and load. */
static int begin(struct joule_control *c, struct joule_error *err)
{
    if (joule_journal_file_lock(&c->store, c->config.lock_wait_ns, err) < 0)
        return -1;
    c->patience_ns = PATIENCE_NS;
    if (joule_journal_file_load(&c->store, &c->journal, err) == 0)
        return 0;
    joule_journal_file_unlock(&c->store);
    return -1;
}

static int save(struct joule_control *c, struct joule_error *err)
{
    return joule_journal_file_save(&c->store, &c->journal, err);
}

static int finish(struct joule_control *c, int rc)
{
    int saved = errno;

    joule_journal_clear(&c->journal);
    joule_journal_file_unlock(&c->store);
    errno = saved;
    return rc;
}

static bool is_dead(struct joule_journal_file *store,
                    const struct joule_holder *h)
{
    uint64_t start;

    if (h->namespace != joule_process_namespace(store->root_fd))
        return joule_journal_file_lives(store, h) == 0;
    if (joule_process_start(store->root_fd, h->pid, &start) < 0)
        return errno == ESRCH;
    return start != h->start;
}

unsigned joule_control_drop_dead(struct joule_journal_file *store,
                                 struct joule_journal *j,
                                 struct joule_cpus *loose)
{
    unsigned dropped = 0;

    for (size_t i = 0; i < j->holder_count;) {
        if (!is_dead(store, &j->holder[i])) {
            i++;
            continue;
        }
        joule_cpus_unite(loose, &j->holder[i].policies);
        joule_journal_remove_holder(j, i);
        dropped++;
    }
    for (size_t i = 0; i < j->entry_count; i++)
        if (!joule_journal_is_held(j, j->entry[i].policy))
            joule_cpus_add(loose, j->entry[i].policy);
    return dropped;
}

/* ---- one policy ---- */

enum applied {
    HELD,     /* it is as the served holder asked */
    RESTORED, /* nobody asks: it is as it was */
    FAILED,   /* neither; there is a sentence */
};

/* Whether the holder asks something of the policy, and no later step of its
 * job does. */
static bool speaks(const struct joule_journal *j, size_t index, unsigned id)
{
    const struct joule_holder *h = &j->holder[index];

    if (h->is_watch || !joule_cpus_has(&h->policies, id))
        return false;
    for (size_t i = index + 1; i < j->holder_count; i++)
        if (j->holder[i].job == h->job && !j->holder[i].is_watch &&
            joule_cpus_has(&j->holder[i].policies, id))
            return false;
    return true;
}

static bool has_speaker(const struct joule_journal *j, unsigned id)
{
    for (size_t i = 0; i < j->holder_count; i++)
        if (speaks(j, i, id))
            return true;
    return false;
}

/* The plan of the holder who is served; false: there is none. */
static bool choose(const struct joule_control *c,
                   const struct joule_cpufreq_policy *p,
                   const struct joule_cpufreq_state *original,
                   struct joule_cpufreq_plan *ret)
{
    const struct joule_journal *j = &c->journal;
    struct joule_cpufreq_plan plan;
    bool found = false;

    for (size_t i = 0; i < j->holder_count; i++) {
        if (!speaks(j, i, p->id) ||
            joule_cpufreq_plan(p, original, &j->holder[i].request,
                               &c->config.rules, &plan, NULL) < 0)
            continue;
        if (!found || plan.ceiling_khz >= ret->ceiling_khz)
            *ret = plan;
        found = true;
    }
    return found;
}

/* All writes, whatever becomes of one of them: each that succeeds is nearer.
 * The first failure is told. */
static int write_ops(int root_fd, unsigned id, const struct joule_write_op *ops,
                     unsigned count, struct joule_error *err)
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

/* What is not as it should be, when the kernel has had the time to do it:
 * since Linux 5.3 a work queue brings limits into force. */
static int read_back(struct joule_control *c, const struct joule_entry *entry,
                     const struct joule_cpufreq_state *target,
                     struct joule_cpufreq_state *now, unsigned *ret_differences,
                     struct joule_error *err)
{
    int64_t pause_ns = SHOWN_FIRST_NS;

    for (;;) {
        if (joule_cpufreq_read_state(c->root_fd, entry->policy, entry->touched,
                                     now, err) < 0)
            return -1;
        *ret_differences =
            joule_state_differences(now, target, entry->touched & SHOWN);
        if (*ret_differences == 0 || c->patience_ns < pause_ns)
            return 0;
        joule_sleep_ns(pause_ns);
        c->patience_ns -= pause_ns;
        pause_ns *= 2;
    }
}

/* What is to be done on the way to [target]; a state that cannot be read is
 * written as a whole. */
static int go_to(struct joule_control *c, struct joule_entry *entry,
                 const struct joule_cpufreq_state *known,
                 const struct joule_cpufreq_state *target, bool is_back,
                 struct joule_cpufreq_state *now, struct joule_error *err)
{
    struct joule_write_op ops[JOULE_CPUFREQ_OPS_MAX];
    unsigned id = entry->policy, count, differences;

    memset(now, 0, sizeof(*now));
    if (known)
        *now = *known;
    else if (joule_cpufreq_read_state(c->root_fd, id, JOULE_CPUFREQ_FIELDS, now,
                                      err) == 0)
        known = now;
    else if (errno != EBADMSG)
        return -1;
    count = joule_cpufreq_ops(known, target, entry->touched, ops);
    if (count == 0 && known)
        return 0;
    if (write_ops(c->root_fd, id, ops, count, err) < 0 ||
        read_back(c, entry, target, now, &differences, err) < 0)
        return -1;
    if (!differences)
        return 0;
    joule_error_set(err, EAGAIN,
                    "the kernel has taken %s for policy%u, but shows another "
                    "value",
                    joule_cpufreq_file(differences & -differences), id);
    return is_back && ++entry->tries >= JOULE_CONTROL_TRIES ? 0 : -1;
}

/* Bring a policy to what its holders are due, or back; the journal is on disk.
 * [policy] was read a moment ago, or NULL.  [now] is what the kernel shows
 * afterwards. */
static enum applied apply(struct joule_control *c, struct joule_entry *entry,
                          const struct joule_cpufreq_policy *policy,
                          struct joule_cpufreq_state *now,
                          struct joule_error *err)
{
    const struct joule_cpufreq_state *target = &entry->original;
    struct joule_cpufreq_policy here;
    struct joule_cpufreq_plan plan;
    bool is_held;

    /* Who asks nothing needs no more than the state. */
    if (!policy && has_speaker(&c->journal, entry->policy)) {
        if (joule_cpufreq_read(c->root_fd, entry->policy, &here, err) == 0)
            policy = &here;
        else if (errno != EBADMSG)
            return FAILED;
    }
    is_held = policy && choose(c, policy, &entry->original, &plan);
    if (is_held)
        target = &plan.target;
    if (go_to(c, entry, policy ? &policy->now : NULL, target, !is_held, now,
              err) < 0)
        return FAILED;
    if (is_held)
        entry->tries = 0;
    return is_held ? HELD : RESTORED;
}

/* Apply policies of which nobody wants to know the result; entries that have
 * done their duty go.  Returns how many were applied; *ret_failed could not
 * be. */
static unsigned reapply(struct joule_control *c, const struct joule_cpus *ids,
                        unsigned *ret_failed, struct joule_control_notes *notes)
{
    unsigned applied = 0, id;

    *ret_failed = 0;
    for (id = joule_cpus_next(ids, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(ids, id + 1)) {
        struct joule_entry *e = joule_journal_find(&c->journal, id);
        struct joule_cpufreq_state now;
        struct joule_error err = {""};
        enum applied result;

        if (!e)
            continue;
        result = apply(c, e, NULL, &now, &err);
        /* Or it took what it shows instead, after so many tries. */
        if (result == FAILED || (result == RESTORED && *err.text))
            note(notes, &err);
        if (result == FAILED)
            ++*ret_failed;
        else
            applied++;
        if (result == RESTORED && !joule_journal_is_held(&c->journal, id))
            joule_journal_remove_entry(&c->journal, id);
    }
    return applied;
}

/* ---- recover ---- */

int joule_control_recover(struct joule_control *c,
                          struct joule_control_recovery *ret,
                          struct joule_error *err)
{
    struct joule_control_recovery r = {.ended = 0};
    struct joule_cpus loose = {{0}};
    bool is_quiet;

    if (ret)
        *ret = r;
    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (!joule_journal_file_exists(&c->store))
        return 0;
    /* Mostly all holders live: that takes no lock. */
    if (joule_journal_file_load(&c->store, &c->journal, err) < 0)
        return -1;
    r.ended = joule_control_drop_dead(&c->store, &c->journal, &loose);
    is_quiet = r.ended == 0 && joule_cpus_is_empty(&loose) &&
               c->journal.holder_count > 0;
    joule_journal_clear(&c->journal);
    if (is_quiet)
        return 0;
    if (begin(c, err) < 0)
        return -1;
    memset(&loose, 0, sizeof(loose));
    r.ended = joule_control_drop_dead(&c->store, &c->journal, &loose);
    r.restored = reapply(c, &loose, &r.failed, &r.notes);
    if (finish(c, save(c, err)) < 0)
        return -1;
    if (ret)
        *ret = r;
    return 0;
}

int joule_control_restore(struct joule_control *c,
                          struct joule_control_notes *notes,
                          struct joule_error *err)
{
    struct joule_cpus all = {{0}};
    unsigned failed;

    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (begin(c, err) < 0)
        return -1;
    c->journal.holder_count = 0;
    for (size_t i = 0; i < c->journal.entry_count; i++)
        joule_cpus_add(&all, c->journal.entry[i].policy);
    reapply(c, &all, &failed, notes);
    return finish(c, save(c, err) < 0 ? -1 : (int)failed);
}

int joule_control_discard(struct joule_control *c, struct joule_error *err)
{
    int rc;

    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (joule_journal_file_lock(&c->store, c->config.lock_wait_ns, err) < 0)
        return -1;
    if (joule_journal_file_load(&c->store, &c->journal, NULL) == 0)
        rc = joule_error_set(err, EINVAL,
                             "the journal can be read: put back what is in it");
    else
        rc = joule_journal_file_set_aside(&c->store, err);
    return finish(c, rc);
}

/* ---- give back ---- */

static struct joule_holder *holder_of(struct joule_journal *j,
                                      const struct joule_control_grant *grant)
{
    for (size_t i = 0; i < j->holder_count; i++)
        if (j->holder[i].number == grant->number &&
            j->holder[i].pid == grant->pid &&
            j->holder[i].start == grant->start)
            return &j->holder[i];
    return NULL;
}

/* Keep what is in [keep] (NULL: nothing). */
static int give_back(struct joule_control *c,
                     const struct joule_control_grant *grant,
                     const struct joule_cpus *keep, struct joule_error *err)
{
    struct joule_control_notes notes = {.count = 0};
    struct joule_cpus loose = {{0}};
    struct joule_holder *h;
    unsigned failed;

    if (grant->number == 0)
        return 0;
    if (open_store(c, false, err) < 0 || begin(c, err) < 0)
        return -1;
    joule_control_drop_dead(&c->store, &c->journal, &loose);
    h = holder_of(&c->journal, grant);
    if (h) {
        joule_cpus_unite(&loose, &h->policies);
        if (keep)
            joule_cpus_intersect(&h->policies, keep);
        if (!keep || joule_cpus_is_empty(&h->policies))
            joule_journal_remove_holder(&c->journal,
                                        (size_t)(h - c->journal.holder));
    }
    reapply(c, &loose, &failed, &notes);
    if (finish(c, save(c, err)) < 0)
        return -1;
    if (notes.count > 0)
        return joule_error_set(err, EAGAIN, "%s", notes.first.text);
    return 0;
}

int joule_control_narrow(struct joule_control *c,
                         struct joule_control_grant *grant,
                         const struct joule_cpus *keep, struct joule_error *err)
{
    joule_cpus_intersect(&grant->policies, keep);
    return give_back(c, grant, keep, err);
}

int joule_control_release(struct joule_control *c,
                          const struct joule_control_grant *grant,
                          struct joule_error *err)
{
    return give_back(c, grant, NULL, err);
}

/* ---- hold ---- */

struct taking {
    struct joule_control *control;
    const struct joule_control_claim *claim;
    struct joule_control_grant *grant;
    struct joule_cpufreq_policy *policy; /* those that the claim gets */
    size_t policy_count;
    struct joule_error *err;
};

static void count_unmet(struct taking *t, const struct joule_error *err)
{
    t->grant->unmet++;
    note(&t->grant->notes, err);
}

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
            note(&t->grant->notes, &err);
    }
}

/* The policy into the journal, if the claim can be fulfilled on it; -1 if
 * there is no memory. */
static int enter(struct taking *t, const struct joule_cpufreq_policy *p)
{
    struct joule_journal *j = &t->control->journal;
    struct joule_entry *e = joule_journal_find(j, p->id);
    struct joule_entry fresh = {.policy = p->id, .original = p->now};
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
        note(&t->grant->notes, &err);
    if (!e)
        e = joule_journal_add_entry(j, &fresh);
    if (!e)
        return joule_error_set(t->err, ENOMEM, "out of memory");
    e->touched |= plan.touches;
    if (!*e->original.epp)
        e->touched &= ~(unsigned)JOULE_CPUFREQ_EPP;
    joule_cpus_add(&t->grant->policies, p->id);
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
    struct joule_control *c = t->control;
    struct joule_holder *added, h = {
                                    .job = claim->job,
                                    .pid = claim->pid,
                                    .is_watch = claim->is_watch,
                                    .request = claim->request,
                                    .policies = t->grant->policies,
                                };

    if (!joule_cpufreq_is_word(claim->step) ||
        strlen(claim->step) >= sizeof(h.step))
        return joule_error_set(t->err, EINVAL, "\"%s\" is not a step",
                               claim->step);
    memcpy(h.step, claim->step, strlen(claim->step) + 1);
    h.namespace = joule_process_namespace(c->root_fd);
    if (joule_process_start(c->root_fd, claim->pid, &h.start) < 0)
        return joule_error_set(t->err, errno,
                               "process %lld cannot hold frequencies: %m",
                               (long long)claim->pid);
    if (joule_journal_file_live(&c->store, &h, t->err) < 0)
        return -1;
    added = joule_journal_add_holder(&c->journal, &h);
    if (!added)
        return joule_error_set(t->err, errno,
                               errno == ENOSPC ? "too many steps hold CPU "
                                                 "frequencies"
                                               : "out of memory");
    t->grant->number = added->number;
    t->grant->pid = h.pid;
    t->grant->start = h.start;
    return 0;
}

static void count_met(struct joule_control_grant *g,
                      const struct joule_cpufreq_state *s)
{
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
    struct joule_control *c = t->control;
    struct joule_control_notes ignored = {.count = 0};
    struct joule_cpus only = {{0}};
    unsigned failed;

    joule_cpus_add(&only, id);
    joule_cpus_remove(&t->grant->policies, id);
    joule_cpus_remove(&holder_of(&c->journal, t->grant)->policies, id);
    reapply(c, &only, &failed, &ignored);
}

/* Set the holder's policies.  Returns how many it had to give up. */
static unsigned apply_claim(struct taking *t)
{
    unsigned given_up = 0;

    for (size_t i = 0; i < t->policy_count; i++) {
        struct joule_entry *e =
            joule_journal_find(&t->control->journal, t->policy[i].id);
        struct joule_cpufreq_state now;
        struct joule_error err;

        if (apply(t->control, e, &t->policy[i], &now, &err) != FAILED) {
            count_met(t->grant, &now);
            continue;
        }
        count_unmet(t, &err);
        give_up(t, e->policy);
        given_up++;
    }
    return given_up;
}

static int take(struct taking *t)
{
    struct joule_control *c = t->control;

    if (enter_all(t) < 0)
        return -1;
    if (t->policy_count == 0 && t->claim->is_watch)
        return 0;
    if (t->policy_count == 0)
        return joule_error_set(t->err, ENOTSUP, "%s",
                               t->grant->notes.count
                                   ? t->grant->notes.first.text
                                   : "there is no CPU to set");
    if (enter_holder(t) < 0 || save(c, t->err) < 0) {
        t->grant->number = 0;
        return -1;
    }
    if (t->claim->is_watch || apply_claim(t) == 0)
        return 0;
    /* A holder of nothing is none: it is the last one. */
    if (joule_cpus_is_empty(&t->grant->policies)) {
        joule_journal_remove_holder(&c->journal, c->journal.holder_count - 1);
        t->grant->number = 0;
    }
    if (save(c, t->err) < 0)
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

    memset(ret, 0, sizeof(*ret));
    /* What others have left behind is not to be taken for the original. */
    if (open_store(c, true, err) < 0 ||
        joule_control_recover(c, NULL, err) < 0 || begin(c, err) < 0)
        return -1;
    rc = finish(c, take(&t));
    saved = errno;
    if (ret->number == 0)
        memset(&ret->policies, 0, sizeof(ret->policies));
    free(t.policy);
    errno = saved;
    return rc;
}
