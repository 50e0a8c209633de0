/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * power_states.h - the energy that a wait would save in a lower power state: the
 * energy-saving potential of Knobloch, Mohr and Minartz (2011), for a process
 * that waits idle (ESP) or busy (ESP_BW).
 *
 *     joule_power_states_parse(&states, text, "xeon.conf", &err);
 *     joule_power_envelope_make(&envelope, &states);
 *     piece = joule_power_piece(&envelope, wait_ns);
 *     use[piece].count++, use[piece].ns += wait_ns;     of each wait
 *     esp_pj = joule_power_saving_pj(&envelope, use, JOULE_WAIT_IDLE);
 *
 * With t the wait, A_1 the active power of state 1, and for a state p its power
 * P_p (idle, or active), the transition time t_p and energy E_p from state 1 and
 * back:
 *
 *     saving = max over p with t_p <= t of  t A_1 - ((t - t_p) P_p + E_p)
 *
 * Each state is a line over t; which of them is highest changes at a few points
 * only: between two of them, in a piece, the states are the same for all waits.
 * So sums need nothing but the number and the time of the waits of each piece,
 * and these are whole numbers: sums are exact, in any order.
 *
 * Units: mW, ns, uJ; savings in pJ (mW ns).  Ranges: powers up to 100 kW, a
 * transition up to 1000 s and 100 kJ, at most JOULE_POWER_STATES_MAX states.
 * One thread at a time writes a struct; any number reads it.
 */
#ifndef JOULE_WAITS_POWER_STATES_H
#define JOULE_WAITS_POWER_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_POWER_STATES_MAX 16

/* Transitions, crossings of lines of both kinds (the point and the one after),
 * and 0. */
#define JOULE_POWER_PIECES_MAX                                                 \
    (1 + JOULE_POWER_STATES_MAX +                                              \
     2 * JOULE_POWER_STATES_MAX * (JOULE_POWER_STATES_MAX - 1))

__extension__ typedef __int128 joule_pj;

struct joule_power_state {
    uint64_t active_mw, idle_mw;
    uint64_t transition_ns; /* from state 1 and back; 0 of state 1 */
    uint64_t transition_uj; /* likewise */
};

/* state[0] is state 1. */
struct joule_power_states {
    size_t count;
    struct joule_power_state state[JOULE_POWER_STATES_MAX];
};

enum joule_wait_kind {
    JOULE_WAIT_IDLE, /* ESP */
    JOULE_WAIT_BUSY, /* ESP_BW */
    JOULE_WAIT_KINDS,
};

/* Waits from [from_ns] until the next piece; states count from 0. */
struct joule_power_piece {
    uint64_t from_ns;
    uint8_t state[JOULE_WAIT_KINDS];
};

struct joule_power_envelope {
    struct joule_power_states states;
    size_t pieces;
    struct joule_power_piece piece[JOULE_POWER_PIECES_MAX];
};

/* Waits of one piece. */
struct joule_power_use {
    uint64_t count;
    joule_pj ns; /* their sum, which no trace makes too large */
};

/*
 * Read a table: text with a header line of columns, and a line for each state,
 * lowest transition first, state 1 before all; '#' begins a comment.
 *
 *     state  active_W  idle_W  transition_us  transition_J
 *     1      35.68     20.81   0              0
 *
 * Columns may come in any order: state; active and idle with _W or _mW;
 * transition with _s, _ms, _us or _ns; transition with _J, _mJ or _uJ;
 * frequency_MHz, which is not used.  Whole numbers or decimals, down to mW, ns
 * and uJ.  [name] is the file's, for the sentence.  0, or -1 with EINVAL and a
 * sentence; then *ret is as it was.
 */
int joule_power_states_parse(struct joule_power_states *ret, const char *text,
                             const char *name, struct joule_error *err);

/* [states] are as the parser leaves them: at least one, state 1 without a
 * transition. */
void joule_power_envelope_make(struct joule_power_envelope *ret,
                               const struct joule_power_states *states);

/* The piece of a wait. */
size_t joule_power_piece(const struct joule_power_envelope *envelope,
                         uint64_t wait_ns);

/* By how much one wait would use less in state [p] (from 0), which it is long
 * enough for; less than 0: it would use more. */
joule_pj joule_power_state_saving_pj(const struct joule_power_states *states,
                                     size_t p, enum joule_wait_kind kind,
                                     uint64_t wait_ns);

/* The saving of the waits use[0 .. pieces - 1]. */
joule_pj joule_power_saving_pj(const struct joule_power_envelope *envelope,
                               const struct joule_power_use *use,
                               enum joule_wait_kind kind);

#endif
