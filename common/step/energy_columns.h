/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy_columns.h - the energy series of a profile: its columns, and the row
 * of the time between two readings of the node.
 *
 * Counters: "Power" (W, unsigned, as Slurm's own plugins), "node_uJ"
 * (unsigned: the node's energy since the step began), then the mean power
 * of each domain since the reading before, "package_0_mW", "dram_0_mW", ...
 * (double).
 *
 * With a meter: the mean power of each label, "NodePower" (W, unsigned, as
 * Slurm's own plugin), "Socket0Power", ..., then "node_uJ", then each label
 * once more, "Node_mW", "Socket0_mW", ... (double).  A label other than the
 * node's that is not measured at that time is NaN in the latter and 0 in the
 * former, which has no such value.
 *
 * Where a node's energy is divided among its jobs, "step_uJ" (unsigned) and
 * "step_mW" (double) follow: the step's share since it began, and its power;
 * NaN for a power that is not known.  A job that shares the node gets these
 * alone, behind "Power" (W, unsigned: the step's own, 0 where it is not known):
 * the power of the node and its packages shows what other jobs do.
 *
 * There is a row only for time that was measured: none for the first reading,
 * and none while the node's power is not known.
 */
#ifndef JOULE_STEP_ENERGY_COLUMNS_H
#define JOULE_STEP_ENERGY_COLUMNS_H

#include "common/step/node_energy.h"
#include "common/step/step_energy.h"

struct joule_energy_column {
    char name[40];
    bool is_double; /* else unsigned, 64 bits */
};

enum joule_energy_columns_of {
    JOULE_ENERGY_COLUMNS_NODE,  /* the node: each job is charged all of it */
    JOULE_ENERGY_COLUMNS_BOTH,  /* and the step's share */
    JOULE_ENERGY_COLUMNS_ALONE, /* the same, for as long as no other job is
                                   there */
    JOULE_ENERGY_COLUMNS_STEP,  /* the step's share alone */
};

struct joule_energy_columns;

/* [sensor] is borrowed until destroy.  NULL with errno ENOMEM. */
struct joule_energy_columns *
joule_energy_columns_create(const struct joule_sensor *sensor,
                            enum joule_energy_columns_of of);
void joule_energy_columns_destroy(struct joule_energy_columns *columns);

/* All columns; they live as long as [columns]. */
const struct joule_energy_column *
joule_energy_columns_list(const struct joule_energy_columns *columns,
                          size_t *ret_count);

/* The cells of the row that [reading] ends, 8 bytes a column, which live until
 * the next call; NULL: it ends none, but may begin one.  Readings of a
 * node_energy whose sensor is that of [columns], in the order of their times.
 * [step_reading]: if the row has the step's columns; NULL: not known now. */
void *
joule_energy_columns_row(struct joule_energy_columns *columns,
                         const struct joule_node_energy_reading *reading,
                         const struct joule_step_energy_reading *step_reading);

/* The same for a row that tells nothing of the node: its columns are NaN, or 0
 * where they have no such value, and the share is not known yet. */
void *joule_energy_columns_step_row(struct joule_energy_columns *columns);

/* The step's share in [row], of which nothing was known; [mw] may be NaN. */
void joule_energy_columns_set_step(const struct joule_energy_columns *columns,
                                   void *row, uint64_t uj, double mw);

#endif
