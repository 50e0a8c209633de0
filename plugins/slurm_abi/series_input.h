/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series_input.h - the node's energy for a step that is profiled.
 *
 * The profile plugin must not ask the energy plugin of its process: Slurm
 * calls from energy into profile, with the locks of both, and never the other
 * way round.  So it opens the sensor of AcctGatherEnergyType, and the ledger, itself.
 */
#ifndef JOULE_SLURM_ABI_SERIES_INPUT_H
#define JOULE_SLURM_ABI_SERIES_INPUT_H

#include "common/base/error.h"
#include "common/step/energy_series.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/slurm_step.h"

struct joule_series_input;

/* What of acct_gather.conf is needed later; it never holds the password. */
struct joule_series_input *joule_series_input_create(void);
void joule_series_input_destroy(struct joule_series_input *input);

/* Take the energy options from the table, where the configured energy plugin
 * is one of ours and so has put them there. */
void joule_series_input_configure(struct joule_series_input *input,
                                  const s_p_hashtbl_t *table);

/*
 * As root.  Fills in sensor, node_energy, step_energy, columns, job and
 * sample_period_ns of the series' options, which live until [input] is destroyed.  -1 with errno and a
 * sentence: ENOTSUP if the configured energy plugin is not ours, or why the
 * sensor or the ledger cannot be opened.
 */
int joule_series_input_open(struct joule_series_input *input,
                            const struct joule_slurm_step *step,
                            struct joule_energy_series_options *ret_options,
                            struct joule_error *err);

#endif
