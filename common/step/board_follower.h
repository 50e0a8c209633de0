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
 * A source of energy reads its counters here too and counts on from the last
 * sample as the sampler would, for JOULE_POWER_BRIDGE_NS without a new one.
 * What the next one says otherwise, because the BMC was read in between, can be
 * worked off over a period of the sampler: a row of 10 ms does not show the
 * difference of a second.
 *
 * Used through account.h; the contract of each function is the one of its
 * namesake there.
 */
#ifndef JOULE_STEP_BOARD_FOLLOWER_H
#define JOULE_STEP_BOARD_FOLLOWER_H

#include "common/step/node_energy.h"

struct joule_board_follower;

struct joule_board_follower *
joule_board_follower_create(const struct joule_clock *clock,
                            struct joule_sensor *source,
                            struct joule_board *board);
void joule_board_follower_destroy(struct joule_board_follower *follow);
void joule_board_follower_extend(struct joule_board_follower *follow,
                                 bool extend);
void joule_board_follower_smooth(struct joule_board_follower *follow);
void joule_board_follower_begin(struct joule_board_follower *follow);
void joule_board_follower_edge(struct joule_board_follower *follow);
int joule_board_follower_update(struct joule_board_follower *follow,
                                struct joule_node_energy_reading *ret_reading);

#endif
