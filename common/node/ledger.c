/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/ledger.h"

#include <errno.h>
#include <string.h>

#include "common/base/process.h"
#include "common/base/words.h"
#include "common/node/ledger_file.h"

#define FIXED_WORDS                                                            \
    (offsetof(struct joule_ledger_totals, part) / sizeof(uint64_t))

/* A registration as it is in the file. */
union registration_words {
    struct {
        uint32_t job, step, uid, kind, cpu_count, job_cpu_count;
        int64_t began_ns;
        char path[JOULE_LEDGER_PATH_MAX];
    } field;
    uint64_t word[sizeof(((struct ledger_registration *)0)->word) /
                  sizeof(uint64_t)];
};

_Static_assert(sizeof(union registration_words) ==
                   sizeof(((struct ledger_registration *)0)->word),
               "the words of a registration are its fields");

/* What nobody should believe of a step. */
static bool makes_sense(const struct joule_registration *r)
{
    return joule_process_pid(r->owner) != 0 && r->kind <= JOULE_STEP_OTHER &&
           r->cpu_count <= JOULE_LEDGER_WORDS_MAX * 64 &&
           r->job_cpu_count <= JOULE_LEDGER_WORDS_MAX * 64 &&
           r->began_ns >= 0 && r->ended_ns >= 0 &&
           memchr(r->path, '\0', sizeof(r->path)) &&
           (!r->path[0] || (r->path[0] == '/' && !strstr(r->path, "/..")));
}

static bool take(struct ledger_slot *slot, uint64_t old, uint64_t owner)
{
    return atomic_compare_exchange_strong(&slot->registration.owner, &old,
                                          owner);
}

/* The version that is published with [generation], or NULL. */
static struct ledger_version *published(struct ledger_slot *s,
                                        uint64_t generation)
{
    struct ledger_version *best = NULL;
    uint64_t best_generation = 0;

    for (int v = 0; v < 2; v++) {
        uint64_t g = atomic_load_explicit(&s->version[v].generation,
                                          memory_order_relaxed);

        if (g > best_generation && g <= generation) {
            best = &s->version[v];
            best_generation = g;
        }
    }
    return best;
}

static void load_row(struct joule_ledger *l, size_t slot, uint64_t generation,
                     struct joule_row *ret)
{
    struct ledger_version *v = published(ledger_slot(l, slot), generation);

    if (v)
        joule_words_load(ret, v->word, ROW_WORDS);
    else
        memset(ret, 0, sizeof(*ret));
}

/* The slot's row still waits for the charge up to its step's end. */
static bool is_owed(struct joule_ledger *l, size_t slot)
{
    struct joule_row row;

    load_row(l, slot,
             atomic_load_explicit(&l->head->generation, memory_order_acquire),
             &row);
    return row.state == JOULE_ROW_RUNNING;
}

/* A free slot, or -1.  The last charge of a row that is [owed] is lost. */
static int take_free(struct joule_ledger *l, uint64_t owner, bool owed)
{
    size_t slots = joule_ledger_slots(l);

    for (size_t i = 0; i < slots; i++)
        if (ledger_slot(l, i)->registration.owner == 0 &&
            (owed || !is_owed(l, i)) && take(ledger_slot(l, i), 0, owner))
            return (int)i;
    return -1;
}

/*
 * Nobody's steps take the room of others: extern steps always find some, and
 * any other step does while its job has fewer slots than are free for such, and
 * its user is not at the limit.  So one job gets half of them, two a third
 * each, and there is always something left for the next one.
 */
static bool has_room(struct joule_ledger *l, const struct joule_registration *r)
{
    size_t slots = joule_ledger_slots(l), all = 0, of_job = 0, of_user = 0;

    if (r->kind == JOULE_STEP_EXTERN)
        return true;
    for (size_t i = 0; i < slots; i++) {
        struct ledger_registration *c = &ledger_slot(l, i)->registration;
        union registration_words w;

        if (c->owner == 0 || c->ready != c->owner)
            continue;
        joule_words_load(w.word, c->word, 2); /* job, step, uid, kind */
        if (w.field.kind == JOULE_STEP_EXTERN)
            continue;
        all++;
        of_job += w.field.job == r->job;
        of_user += w.field.uid == r->uid;
    }
    return all + of_job < JOULE_LEDGER_STEPS_MAX &&
           of_user < JOULE_LEDGER_USER_MAX;
}

/* A slot of our own, or -1.  While slurmd is away steps let go of slots whose
 * rows are not charged to their ends: these slots are taken last. */
static int find_slot(struct joule_ledger *l, int root_fd, uint64_t owner)
{
    size_t slots;
    int i;

    for (;;) {
        slots = joule_ledger_slots(l);
        i = take_free(l, owner, false);
        if (i >= 0)
            return i;
        if (slots >= JOULE_LEDGER_SLOTS_MAX ||
            joule_ledger_grow(l, slots + JOULE_LEDGER_SEGMENT) < 0)
            break;
        if (joule_ledger_slots(l) <= slots)
            break;
    }
    i = take_free(l, owner, true);
    if (i >= 0)
        return i;
    slots = joule_ledger_slots(l);
    for (size_t s = 0; s < slots; s++) {
        uint64_t old = ledger_slot(l, s)->registration.owner;

        if (joule_process_is_dead(root_fd, old) &&
            take(ledger_slot(l, s), old, owner))
            return (int)s;
    }
    return -1;
}

int joule_ledger_register(struct joule_ledger *l, int root_fd,
                          const struct joule_registration *r,
                          const uint64_t *job_cpus, const uint64_t *step_cpus,
                          unsigned *ret_slot, struct joule_error *err)
{
    union registration_words w;
    struct ledger_slot *slot;
    int i;

    if (!l->writable)
        return joule_error_set(err, EACCES, "the ledger may not be written");
    if (!makes_sense(r))
        return joule_error_set(err, EINVAL,
                               "step %u.%u cannot be registered like that",
                               r->job, r->step);
    if (!has_room(l, r)) {
        for (unsigned s = 0; s < joule_ledger_slots(l); s++)
            joule_ledger_sweep(l, root_fd, s);
        if (!has_room(l, r))
            return joule_error_set(err, EDQUOT,
                                   "job %u has too many steps here at once "
                                   "for step %u to have a row of its own: it "
                                   "is charged to the job",
                                   r->job, r->step);
    }
    i = find_slot(l, root_fd, r->owner);
    if (i < 0)
        return joule_error_set(err, ENOSPC,
                               "the ledger has no room for step %u.%u", r->job,
                               r->step);
    slot = ledger_slot(l, (size_t)i);
    memset(&w, 0, sizeof(w));
    w.field.job = r->job;
    w.field.step = r->step;
    w.field.uid = r->uid;
    w.field.kind = r->kind;
    w.field.cpu_count = r->cpu_count;
    w.field.job_cpu_count = r->job_cpu_count;
    w.field.began_ns = r->began_ns;
    memcpy(w.field.path, r->path, strlen(r->path));
    atomic_store(&slot->registration.ready, 0);
    joule_words_store(slot->registration.word, w.word,
                      sizeof(w) / sizeof(uint64_t));
    joule_words_store(slot->cpus, job_cpus, l->words);
    joule_words_store(slot->cpus + l->words, step_cpus, l->words);
    atomic_store(&slot->registration.tasks_ns, 0);
    atomic_store(&slot->registration.ended_ns, r->ended_ns);
    atomic_store(&slot->registration.cpu_ns, JOULE_CPU_UNKNOWN);
    atomic_store_explicit(&slot->registration.ready, r->owner,
                          memory_order_release);
    *ret_slot = (unsigned)i;
    return 0;
}

void joule_ledger_add_surplus(struct joule_ledger *l)
{
    if (l->writable)
        atomic_fetch_add(&l->head->surplus, 1);
}

uint64_t joule_ledger_surplus(struct joule_ledger *l)
{
    return atomic_load_explicit(&l->head->surplus, memory_order_relaxed);
}

void joule_ledger_begin_tasks(struct joule_ledger *l, unsigned slot,
                              uint64_t owner, int64_t ns)
{
    struct ledger_registration *c = &ledger_slot(l, slot)->registration;

    if (l->writable && slot < joule_ledger_slots(l) && c->owner == owner)
        atomic_store(&c->tasks_ns, ns);
}

int64_t joule_ledger_last_edge(struct joule_ledger *l, int64_t by_ns)
{
    size_t slots = joule_ledger_slots(l);
    int64_t last_ns = 0;

    for (size_t i = 0; i < slots; i++) {
        struct ledger_registration *c = &ledger_slot(l, i)->registration;
        int64_t began_ns =
            atomic_load_explicit(&c->tasks_ns, memory_order_relaxed);
        int64_t ended_ns =
            atomic_load_explicit(&c->ended_ns, memory_order_relaxed);

        if (began_ns > last_ns && began_ns <= by_ns)
            last_ns = began_ns;
        if (began_ns > 0 && ended_ns > last_ns && ended_ns <= by_ns)
            last_ns = ended_ns;
    }
    return last_ns;
}

void joule_ledger_end(struct joule_ledger *l, unsigned slot, uint64_t owner,
                      int64_t ended_ns)
{
    struct ledger_registration *c = &ledger_slot(l, slot)->registration;

    if (l->writable && slot < joule_ledger_slots(l) && c->owner == owner)
        atomic_store(&c->ended_ns, ended_ns);
}

void joule_ledger_report_cpu(struct joule_ledger *l, unsigned slot,
                             uint64_t owner, uint64_t cpu_ns)
{
    struct ledger_registration *c = &ledger_slot(l, slot)->registration;

    if (l->writable && slot < joule_ledger_slots(l) && c->owner == owner)
        atomic_store(&c->cpu_ns, cpu_ns);
}

void joule_ledger_release(struct joule_ledger *l, unsigned slot, uint64_t owner)
{
    if (l->writable && slot < joule_ledger_slots(l))
        take(ledger_slot(l, slot), owner, 0);
}

bool joule_ledger_sweep(struct joule_ledger *l, int root_fd, unsigned slot)
{
    uint64_t owner = ledger_slot(l, slot)->registration.owner;

    return l->writable && owner && joule_process_is_dead(root_fd, owner) &&
           take(ledger_slot(l, slot), owner, 0);
}

int joule_ledger_registered(struct joule_ledger *l, unsigned slot,
                            struct joule_registration *ret,
                            uint64_t *ret_job_cpus, uint64_t *ret_step_cpus)
{
    struct ledger_slot *s = ledger_slot(l, slot);
    uint64_t owner = atomic_load(&s->registration.owner);
    union registration_words w;

    errno = ENOENT;
    if (owner == 0 || atomic_load_explicit(&s->registration.ready,
                                           memory_order_acquire) != owner)
        return -1;
    joule_words_load(w.word, s->registration.word,
                     sizeof(w) / sizeof(uint64_t));
    if (ret_job_cpus)
        joule_words_load(ret_job_cpus, s->cpus, l->words);
    if (ret_step_cpus)
        joule_words_load(ret_step_cpus, s->cpus + l->words, l->words);
    ret->ended_ns = atomic_load(&s->registration.ended_ns);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load(&s->registration.owner) != owner ||
        s->registration.ready != owner)
        return -1;
    ret->owner = owner;
    ret->job = w.field.job;
    ret->step = w.field.step;
    ret->uid = w.field.uid;
    ret->kind = w.field.kind;
    ret->cpu_count = w.field.cpu_count;
    ret->job_cpu_count = w.field.job_cpu_count;
    ret->began_ns = w.field.began_ns;
    memcpy(ret->path, w.field.path, sizeof(ret->path));
    if (makes_sense(ret))
        return 0;
    errno = EBADMSG;
    return -1;
}

uint64_t joule_ledger_owner_of(struct joule_ledger *l, unsigned slot)
{
    const struct ledger_registration *c = &ledger_slot(l, slot)->registration;
    uint64_t owner = atomic_load(&c->owner);

    return atomic_load_explicit(&c->ready, memory_order_acquire) == owner
               ? owner
               : 0;
}

int joule_ledger_cpus_of(struct joule_ledger *l, unsigned slot, uint64_t owner,
                         uint64_t *ret_job_cpus, uint64_t *ret_step_cpus)
{
    struct ledger_slot *s = ledger_slot(l, slot);

    if (atomic_load_explicit(&s->registration.ready, memory_order_acquire) ==
        owner) {
        joule_words_load(ret_job_cpus, s->cpus, l->words);
        joule_words_load(ret_step_cpus, s->cpus + l->words, l->words);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&s->registration.ready) == owner)
            return 0;
    }
    errno = ENOENT;
    return -1;
}

size_t joule_ledger_taken(struct joule_ledger *l)
{
    size_t i = joule_ledger_slots(l);

    while (i > 0 &&
           atomic_load_explicit(&ledger_slot(l, i - 1)->registration.owner,
                                memory_order_relaxed) == 0)
        i--;
    return i;
}

int64_t joule_ledger_ended(struct joule_ledger *l, unsigned slot,
                           uint64_t owner)
{
    struct ledger_registration *c = &ledger_slot(l, slot)->registration;
    int64_t ended_ns = atomic_load(&c->ended_ns);

    return atomic_load(&c->ready) == owner && ended_ns > 0 ? ended_ns : 0;
}

uint64_t joule_ledger_reported_cpu(struct joule_ledger *l, unsigned slot,
                                   uint64_t owner)
{
    struct ledger_registration *c = &ledger_slot(l, slot)->registration;
    uint64_t cpu_ns = atomic_load(&c->cpu_ns);

    return atomic_load(&c->ready) == owner ? cpu_ns : JOULE_CPU_UNKNOWN;
}

void joule_ledger_stage(struct joule_ledger *l, unsigned slot,
                        const struct joule_row *row)
{
    struct ledger_slot *s = ledger_slot(l, slot);
    uint64_t generation =
        atomic_load_explicit(&l->head->generation, memory_order_relaxed);
    struct ledger_version *to = published(s, generation) == &s->version[0]
                                    ? &s->version[1]
                                    : &s->version[0];

    /* Readers that see that the version is none also see the generation that
     * made it free: else they would find no row where the version was theirs.
     * Readers that see a new word see both. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&to->generation, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    joule_words_store(to->word, row, ROW_WORDS);
    atomic_store_explicit(&to->generation, generation + 1,
                          memory_order_release);
}

void joule_ledger_publish(struct joule_ledger *l,
                          const struct joule_ledger_totals *totals)
{
    uint64_t next =
        atomic_load_explicit(&l->head->generation, memory_order_relaxed) + 1;
    struct joule_ledger_totals before;
    size_t parts;

    if (!totals) {
        joule_words_load(&before, l->head->totals[(next - 1) & 1],
                         TOTALS_WORDS);
        totals = &before;
    }
    parts = totals->part_count < JOULE_PARTS_MAX ? totals->part_count
                                                 : JOULE_PARTS_MAX;
    atomic_thread_fence(memory_order_release);
    joule_ledger_keep_node(l, next);
    joule_words_store(l->head->totals[next & 1], totals,
                      FIXED_WORDS + parts * PART_WORDS);
    atomic_store_explicit(&l->head->generation, next, memory_order_release);
}

/* A copy is whole if its generation is still the one that is published: its
 * versions are not written before there is another.  Behind a fence, which
 * stands at the caller: inlined, gcc's thread sanitizer does not take it. */
static bool is_still(struct joule_ledger *l, uint64_t generation)
{
    return atomic_load_explicit(&l->head->generation, memory_order_relaxed) ==
           generation;
}

#define TRIES 100 /* the shortest period is a hundred copies long */

int joule_ledger_read(struct joule_ledger *l,
                      struct joule_ledger_totals *totals,
                      struct joule_row *rows, size_t *count)
{
    size_t most = rows ? *count : 0;

    for (int i = 0; i < TRIES; i++) {
        uint64_t generation =
            atomic_load_explicit(&l->head->generation, memory_order_acquire);
        const _Atomic uint64_t *from = l->head->totals[generation & 1];
        size_t slots = joule_ledger_slots(l);

        if (generation == 0) {
            errno = ENODATA;
            return -1;
        }
        joule_words_load(totals, from, FIXED_WORDS);
        if (totals->part_count <= JOULE_PARTS_MAX)
            joule_words_load(totals->part, from + FIXED_WORDS,
                             totals->part_count * PART_WORDS);
        for (size_t s = 0; s < slots && s < most; s++)
            load_row(l, s, generation, &rows[s]);
        atomic_thread_fence(memory_order_acquire);
        if (!is_still(l, generation))
            continue;
        if (totals->part_count > JOULE_PARTS_MAX)
            break;
        if (totals->mono_ns == 0) {
            errno = ENODATA;
            return -1;
        }
        if (count)
            *count = slots;
        return 0;
    }
    errno = EBADMSG;
    return -1;
}

int joule_ledger_read_row(struct joule_ledger *l, unsigned slot, uint64_t owner,
                          struct joule_row *row, int64_t *ret_mono_ns)
{
    struct joule_ledger_totals totals;

    for (int i = 0; i < TRIES && slot < joule_ledger_slots(l); i++) {
        uint64_t generation =
            atomic_load_explicit(&l->head->generation, memory_order_acquire);

        joule_words_load(&totals, l->head->totals[generation & 1], FIXED_WORDS);
        load_row(l, slot, generation, row);
        atomic_thread_fence(memory_order_acquire);
        if (!is_still(l, generation))
            continue;
        if (generation == 0 || row->owner != owner || owner == 0)
            break;
        *ret_mono_ns = totals.mono_ns;
        return 0;
    }
    errno = ENOENT;
    return -1;
}
