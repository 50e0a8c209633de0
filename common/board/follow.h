/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * follow.h - the account of a power source: what has been used since it
 * began, from the board alone.
 *
 * Only the sampler asks the BMC.  Between its samples the node total is
 * carried on with the last power; the next sample corrects that.  At its edges
 * the account says on the board when they are, so that the sampler splits its
 * interval where the account was split.
 *
 * A source of energy reads its counters here too and counts on from the last sample
 * as the sampler would, for JOULE_POWER_BRIDGE_NS without a new one.  What the next
 * one says otherwise, because the BMC was read in between, can be worked off over a
 * period of the sampler: a row of 10 ms does not show the difference of a second.
 *
 * Used through account.h; the contract of each function is the one of its
 * namesake there.
 */
#ifndef JOULE_BOARD_FOLLOW_H
#define JOULE_BOARD_FOLLOW_H

#include "common/board/account.h"

struct joule_follow;

struct joule_follow *joule_follow_create(const struct joule_clock *clock,
                                         struct joule_source *source,
                                         struct joule_board *board);
void joule_follow_destroy(struct joule_follow *follow);
void joule_follow_extend(struct joule_follow *follow, bool extend);
void joule_follow_smooth(struct joule_follow *follow);
void joule_follow_begin(struct joule_follow *follow);
void joule_follow_edge(struct joule_follow *follow);
int joule_follow_update(struct joule_follow *follow,
                        struct joule_account_reading *ret_reading);

#endif
