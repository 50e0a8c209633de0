/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * board_follower.h - the node's energy since a step began where the sensor is a
 * power, from the board alone: only the sampler asks the BMC.
 *
 * Between two samples the node total is carried forward with the last power;
 * the next sample corrects it.  The step's begin and end are written to the
 * board, so that the sampler divides its interval there.
 *
 * With a sensor of energy the counters are read here, too, and counted on from
 * the last sample for up to JOULE_POWER_BRIDGE_NS.  The correction of the next
 * sample can be spread over a period of the sampler, so that a row of 10 ms
 * does not show the difference of a second.
 *
 * Used through node_energy.h, which has the contract of each function.
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
