/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base/words.h"
#include "common/node/ledger_file.h"

#define WORDS(bytes) ((bytes) / sizeof(uint64_t))

#define FIXED_WORDS   WORDS(offsetof(struct joule_snapshot, total.reading))
#define READING_WORDS WORDS(sizeof(struct joule_reading))

#define STATE_FIXED_WORDS WORDS(offsetof(struct joule_sensor_state, counter))
#define COUNTER_WORDS     WORDS(sizeof(struct joule_counter))
#define INTEGRATORS_AT    WORDS(offsetof(struct joule_sensor_state, integrator))
#define INTEGRATOR_WORDS  WORDS(sizeof(struct joule_integrator))

_Static_assert(NODE_WORDS == FIXED_WORDS + JOULE_DOMAINS_MAX * READING_WORDS &&
                   STATE_WORDS == STATE_FIXED_WORDS +
                                      JOULE_DOMAINS_MAX *
                                          (COUNTER_WORDS + INTEGRATOR_WORDS) &&
                   sizeof(struct joule_snapshot) ==
                       NODE_WORDS * sizeof(uint64_t) &&
                   sizeof(struct joule_sensor_state) ==
                       STATE_WORDS * sizeof(uint64_t),
               "both are copied in 64-bit words");

#define TRIES 100 /* the shortest period is a thousand copies long */

uint64_t joule_ledger_generation(const struct joule_ledger *l)
{
    return atomic_load_explicit(&l->head->generation, memory_order_acquire);
}

void joule_ledger_stage_node(struct joule_ledger *l,
                             const struct joule_snapshot *snapshot,
                             const struct joule_sensor_state *state)
{
    uint64_t next =
        atomic_load_explicit(&l->head->generation, memory_order_relaxed) + 1;
    _Atomic uint64_t *to = l->head->state[next & 1];

    /* Readers that see a word of this version also see the generation that made
     * the version free: it was released before. */
    atomic_thread_fence(memory_order_release);
    joule_words_store(l->head->node[next & 1], snapshot,
                      FIXED_WORDS + snapshot->total.count * READING_WORDS);
    joule_words_store(to, state,
                      STATE_FIXED_WORDS + state->counters * COUNTER_WORDS);
    joule_words_store(to + INTEGRATORS_AT, state->integrator,
                      state->integrators * INTEGRATOR_WORDS);
    l->staged = next;
}

void joule_ledger_keep_node(struct joule_ledger *l, uint64_t next)
{
    uint64_t word;

    if (l->staged == next)
        return;
    for (size_t i = 0; i < NODE_WORDS; i++) {
        word = l->head->node[(next - 1) & 1][i];
        atomic_store_explicit(&l->head->node[next & 1][i], word,
                              memory_order_relaxed);
    }
    for (size_t i = 0; i < STATE_WORDS; i++) {
        word = l->head->state[(next - 1) & 1][i];
        atomic_store_explicit(&l->head->state[next & 1][i], word,
                              memory_order_relaxed);
    }
}

static bool load_node(const _Atomic uint64_t *from, struct joule_snapshot *ret)
{
    joule_words_load(ret, from, FIXED_WORDS);
    if (ret->total.count > JOULE_DOMAINS_MAX)
        return false;
    joule_words_load(ret->total.reading, from + FIXED_WORDS,
                     ret->total.count * READING_WORDS);
    return true;
}

static bool load_state(const _Atomic uint64_t *from,
                       struct joule_sensor_state *ret)
{
    joule_words_load(ret, from, STATE_FIXED_WORDS);
    if (ret->counters > JOULE_DOMAINS_MAX ||
        ret->integrators > JOULE_DOMAINS_MAX)
        return false;
    joule_words_load(ret->counter, from + STATE_FIXED_WORDS,
                     ret->counters * COUNTER_WORDS);
    joule_words_load(ret->integrator, from + INTEGRATORS_AT,
                     ret->integrators * INTEGRATOR_WORDS);
    return true;
}

int joule_ledger_read_node(const struct joule_ledger *l,
                           struct joule_snapshot *ret_snapshot,
                           struct joule_sensor_state *ret_state)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t generation = joule_ledger_generation(l);
        bool is_sound =
            load_node(l->head->node[generation & 1], ret_snapshot) &&
            (!ret_state ||
             load_state(l->head->state[generation & 1], ret_state));

        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&l->head->generation, memory_order_relaxed) !=
            generation)
            continue;
        if (generation == 0 || (is_sound && ret_snapshot->samples == 0)) {
            errno = ENODATA;
            return -1;
        }
        if (is_sound)
            return 0;
        break;
    }
    errno = EBADMSG;
    return -1;
}
