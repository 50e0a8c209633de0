/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * account.h - what a consumer (a step's slurmstepd) has used since it began.
 *
 * It reads the counters itself, so that the edges of a step are exact to the
 * counter's own quantum and counting goes on while slurmd is away; the board
 * fills in the wraps that happened between two of its own readings.
 * Belongs to one thread at a time.
 */
#ifndef JOULE_BOARD_ACCOUNT_H
#define JOULE_BOARD_ACCOUNT_H

#include "common/base/clock.h"
#include "common/board/board.h"

struct joule_account;

struct joule_account_reading {
    int64_t mono_ns;     /* when the counters were read */
    int64_t elapsed_ns;  /* since joule_account_begin */
    int64_t gap_ns;      /* part of it over which wraps may be missing */
    uint64_t used_uj;    /* since joule_account_begin; never falls */
    uint64_t node_mw;    /* mean since the update before this one, or if that
                            is nearer than 5 ms, as then; JOULE_MW_UNKNOWN */
    uint64_t average_mw; /* mean since joule_account_begin, as above */
    const uint64_t *domain_uj; /* since begin, one per domain of the source;
                                  lives until the next update */
};

/*
 * [source] and [board] are borrowed and must outlive the account; [board] may
 * be NULL (none could be opened).  NULL with errno ENOMEM on failure.
 */
struct joule_account *joule_account_create(const struct joule_clock *clock,
                                           struct joule_source *source,
                                           const struct joule_board *board);
void joule_account_destroy(struct joule_account *account);

/* Take the baseline: one reading of the counters. */
void joule_account_begin(struct joule_account *account);

/*
 * Read the counters and say what has been used.  Returns 0, or -1 with errno
 *   ENODATA  not known: no counter of the total has ever moved, neither for
 *            this account nor for the sampler
 *   EINVAL   joule_account_begin has not been called
 */
int joule_account_update(struct joule_account *account,
                         struct joule_account_reading *ret_reading);

#endif
