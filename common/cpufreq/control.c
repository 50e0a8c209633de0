/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/process.h"
#include "common/cpufreq/apply.h"

void joule_control_note(struct joule_control_notes *notes,
                        const struct joule_error *err)
{
    if (notes && notes->count++ == 0)
        notes->first = *err;
}

void joule_control_init(struct joule_control *c, int root_fd,
                        const struct joule_control_config *config)
{
    c->root_fd = root_fd;
    c->config = *config;
    c->store.dir_fd = c->store.lock_fd = -1;
    c->store.is_locked = false;
}

void joule_control_destroy(struct joule_control *c)
{
    joule_cpufreq_journal_file_close(&c->store);
}

static int open_store(struct joule_control *c, bool create,
                      struct joule_error *err)
{
    if (c->store.dir_fd >= 0)
        return 0;
    return joule_cpufreq_journal_file_open(&c->store, c->root_fd, create, err);
}

/* Lock and load. */
static int begin(struct joule_control *c, struct joule_cpufreq_journal *j,
                 struct joule_error *err)
{
    if (joule_cpufreq_journal_file_lock(&c->store, c->config.lock_wait_ns,
                                        err) < 0)
        return -1;
    if (joule_cpufreq_journal_file_load(&c->store, j, err) < 0) {
        joule_cpufreq_journal_file_unlock(&c->store);
        return -1;
    }
    return 0;
}

static int finish(struct joule_control *c, struct joule_cpufreq_journal *j,
                  int rc)
{
    int saved = errno;

    joule_cpufreq_journal_clear(j);
    joule_cpufreq_journal_file_unlock(&c->store);
    errno = saved;
    return rc;
}

bool joule_control_is_dead(struct joule_cpufreq_journal_file *store,
                           const struct joule_cpufreq_holder *h)
{
    uint64_t start;

    if (h->namespace != joule_process_namespace(store->root_fd))
        return joule_cpufreq_journal_file_lives(
                   store, joule_cpufreq_holder_byte(h)) == 0;
    if (joule_process_start(store->root_fd, h->pid, &start) < 0)
        return errno == ESRCH;
    return start != h->start;
}

/* Policies of dead holders and those that nobody holds go to [loose]. */
static unsigned drop_dead(struct joule_control *c,
                          struct joule_cpufreq_journal *j,
                          struct joule_cpus *loose)
{
    unsigned dropped = 0;

    for (size_t i = 0; i < j->holder_count;) {
        if (!joule_control_is_dead(&c->store, &j->holder[i])) {
            i++;
            continue;
        }
        joule_cpus_unite(loose, &j->holder[i].policies);
        joule_cpufreq_journal_remove_holder(j, i);
        dropped++;
    }
    for (size_t i = 0; i < j->entry_count; i++)
        if (!joule_cpufreq_is_held(j, j->entry[i].policy))
            joule_cpus_add(loose, j->entry[i].policy);
    return dropped;
}

/* Apply policies of which nobody wants to know the result; entries that have
 * done their duty go.  Returns how many were applied; *ret_failed could not
 * be. */
static unsigned settle_all(const struct joule_control *c,
                           struct joule_cpufreq_journal *j,
                           const struct joule_cpus *ids, unsigned *ret_failed,
                           struct joule_control_notes *notes)
{
    struct joule_cpufreq_applying settling = {
        .root_fd = c->root_fd,
        .rules = &c->config.rules,
        .journal = j,
        .patience_ns = JOULE_CPUFREQ_APPLYING_PATIENCE_NS,
    };
    unsigned applied = 0, id;

    *ret_failed = 0;
    for (id = joule_cpus_next(ids, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(ids, id + 1)) {
        struct joule_cpufreq_entry *e = joule_cpufreq_journal_entry(j, id);
        struct joule_error err = {""};

        if (!e)
            continue;
        switch (joule_cpufreq_apply(&settling, e, NULL, NULL, &err)) {
        case JOULE_CPUFREQ_APPLIED_FAILED:
            joule_control_note(notes, &err);
            ++*ret_failed;
            break;
        case JOULE_CPUFREQ_APPLIED_RESTORED:
            /* It took what it shows instead, after so many tries. */
            if (*err.text)
                joule_control_note(notes, &err);
            if (!joule_cpufreq_is_held(j, id))
                joule_cpufreq_journal_remove_entry(j, id);
            applied++;
            break;
        case JOULE_CPUFREQ_APPLIED_HELD:
            applied++;
            break;
        }
    }
    return applied;
}

int joule_control_recover(struct joule_control *c,
                          struct joule_control_recovery *ret,
                          struct joule_error *err)
{
    struct joule_control_recovery r = {.ended = 0};
    struct joule_cpufreq_journal j;
    struct joule_cpus loose = {{0}};

    if (ret)
        *ret = r;
    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (!joule_cpufreq_journal_file_exists(&c->store))
        return 0;
    /* Mostly all holders live: that takes no lock. */
    if (joule_cpufreq_journal_file_load(&c->store, &j, err) < 0)
        return -1;
    r.ended = drop_dead(c, &j, &loose);
    if (r.ended == 0 && joule_cpus_is_empty(&loose) && j.holder_count > 0) {
        joule_cpufreq_journal_clear(&j);
        return 0;
    }
    joule_cpufreq_journal_clear(&j);
    if (begin(c, &j, err) < 0)
        return -1;
    memset(&loose, 0, sizeof(loose));
    r.ended = drop_dead(c, &j, &loose);
    r.restored = settle_all(c, &j, &loose, &r.failed, &r.notes);
    if (joule_cpufreq_journal_file_save(&c->store, &j, err) < 0)
        return finish(c, &j, -1);
    if (ret)
        *ret = r;
    return finish(c, &j, 0);
}

int joule_control_restore(struct joule_control *c,
                          struct joule_control_notes *notes,
                          struct joule_error *err)
{
    struct joule_cpufreq_journal j;
    struct joule_cpus all = {{0}};
    unsigned failed;

    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (begin(c, &j, err) < 0)
        return -1;
    j.holder_count = 0;
    for (size_t i = 0; i < j.entry_count; i++)
        joule_cpus_add(&all, j.entry[i].policy);
    settle_all(c, &j, &all, &failed, notes);
    if (joule_cpufreq_journal_file_save(&c->store, &j, err) < 0)
        return finish(c, &j, -1);
    return finish(c, &j, (int)failed);
}

int joule_control_discard(struct joule_control *c, struct joule_error *err)
{
    struct joule_cpufreq_journal j;
    int rc;

    if (open_store(c, false, err) < 0)
        return errno == ENOENT ? 0 : -1;
    if (joule_cpufreq_journal_file_lock(&c->store, c->config.lock_wait_ns,
                                        err) < 0)
        return -1;
    if (joule_cpufreq_journal_file_load(&c->store, &j, NULL) == 0) {
        joule_error_set(err, EINVAL,
                        "the journal can be read: put back what is in it");
        return finish(c, &j, -1);
    }
    rc = joule_cpufreq_journal_file_set_aside(&c->store, err);
    joule_cpufreq_journal_file_unlock(&c->store);
    return rc;
}

static bool is_grant(const struct joule_cpufreq_holder *h,
                     const struct joule_control_grant *grant)
{
    return h->number == grant->number && h->pid == grant->pid &&
           h->start == grant->start;
}

/* Keep what is in [keep] (NULL: nothing), for narrow and release. */
static int give_back(struct joule_control *c,
                     const struct joule_control_grant *grant,
                     const struct joule_cpus *keep, struct joule_error *err)
{
    struct joule_control_notes notes = {.count = 0};
    struct joule_cpufreq_journal j;
    struct joule_cpus loose = {{0}};
    struct joule_cpufreq_holder *h;
    unsigned failed;
    size_t i = 0;

    if (grant->number == 0)
        return 0;
    if (open_store(c, false, err) < 0 || begin(c, &j, err) < 0)
        return -1;
    drop_dead(c, &j, &loose);
    while (i < j.holder_count && !is_grant(&j.holder[i], grant))
        i++;
    if (i < j.holder_count) {
        h = &j.holder[i];
        joule_cpus_unite(&loose, &h->policies);
        if (keep)
            joule_cpus_intersect(&h->policies, keep);
        if (!keep || joule_cpus_is_empty(&h->policies))
            joule_cpufreq_journal_remove_holder(&j, i);
    }
    settle_all(c, &j, &loose, &failed, &notes);
    if (joule_cpufreq_journal_file_save(&c->store, &j, err) < 0)
        return finish(c, &j, -1);
    if (notes.count > 0) {
        joule_error_set(err, EAGAIN, "%s", notes.first.text);
        return finish(c, &j, -1);
    }
    return finish(c, &j, 0);
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
