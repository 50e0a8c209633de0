/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter.h - the node's energy for a step that is profiled.
 *
 * The profile plugin must not ask the energy plugin of its process: Slurm
 * calls from energy into profile, with the locks of both, and never the other
 * way round.  So it opens what the energy plugin of AcctGatherEnergyType
 * opens: the counters, or the labels of the power source, and the board.
 */
#ifndef JOULE_SLURM_METER_H
#define JOULE_SLURM_METER_H

#include "common/base/error.h"
#include "common/board/account.h"
#include "common/board/columns.h"
#include "common/board/stake.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/step.h"

struct joule_meter;

/* What of acct_gather.conf is needed later; it never holds the password. */
struct joule_meter *joule_meter_create(void);
void joule_meter_destroy(struct joule_meter *meter);

/* Take the energy options from the table, where the configured energy plugin
 * is one of ours and so has put them there. */
void joule_meter_configure(struct joule_meter *meter,
                           const s_p_hashtbl_t *table);

/*
 * As root.  -1 with errno and a sentence: ENOTSUP if the configured energy
 * plugin is not ours, or why the counters cannot be opened.  Source and
 * account live until the meter is destroyed.
 */
int joule_meter_open(struct joule_meter *meter,
                     const struct joule_slurm_step *step,
                     struct joule_error *err);
const struct joule_source *joule_meter_source(const struct joule_meter *meter);
struct joule_account *joule_meter_account(const struct joule_meter *meter);

/* The step's share; NULL where each job is charged the whole node. */
struct joule_stake *joule_meter_stake(const struct joule_meter *meter);

/* What the series tells of the node. */
enum joule_columns_of joule_meter_columns(const struct joule_meter *meter);

#endif
