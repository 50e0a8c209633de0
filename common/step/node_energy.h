/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node_energy.h - what a consumer (a step's slurmstepd) has used since it
 * began.
 *
 * Counters it reads itself, so that the edges of a step are exact to the
 * counter's own quantum and counting goes on while slurmd is away; the board
 * fills in the wraps that happened between two of its own readings.
 * A power it takes from the board alone (only slurmd asks the BMC), carried on
 * with the last power to the moment of the question, or of a source of energy
 * by the counters that this process reads (board_follower.h). Belongs to one
 * thread at a time.
 */
#ifndef JOULE_STEP_NODE_ENERGY_H
#define JOULE_STEP_NODE_ENERGY_H

#include "common/base/clock.h"
#include "common/node/board.h"
#include "common/sensors/sensor.h"

struct joule_node_energy;

struct joule_node_energy_reading {
    int64_t mono_ns;     /* when the counters, or the board, were read */
    int64_t elapsed_ns;  /* since joule_node_energy_begin */
    int64_t gap_ns;      /* part of it over which wraps may be missing, or the
                            power was not measured */
    uint64_t used_uj;    /* since joule_node_energy_begin; never falls */
    uint64_t node_mw;    /* mean since the update before this one, or if that
                            is nearer than 5 ms, as then; for power sources
                            the last power, or JOULE_MW_UNKNOWN if that is
                            older than joule_power_gap_ns */
    uint64_t average_mw; /* mean since joule_node_energy_begin, for power
                            sources since the first measurement after that;
                            JOULE_MW_UNKNOWN */
    const uint64_t *domain_uj; /* since begin, one per domain of the source;
                                  lives until the next update */
    const uint64_t *domain_mw; /* power sources: as node_mw, one per domain;
                                  counters: NULL */
};

/*
 * [source] and [board] are borrowed and must outlive the handle; [board] may
 * be NULL (none could be opened).  NULL with errno ENOMEM on failure.
 */
struct joule_node_energy *
joule_node_energy_create(const struct joule_clock *clock,
                         struct joule_sensor *source,
                         struct joule_board *board);

/* NULL is a no-op.  Power sources: an edge is declared on the board at the
 * time of the last update, where the load of a step falls. */
void joule_node_energy_destroy(struct joule_node_energy *node_energy);

/* Power sources: whether energy is carried on from the board's last sample to
 * the moment of the question (it is, unless this says no).  Counters: no-op. */
void joule_node_energy_extend(struct joule_node_energy *node_energy,
                              bool extend);

/* Sources of energy: what the board's next sample says otherwise than was
 * counted up to it is worked off over a period of the sampler, as the rows of a
 * series want it; else at once.  Others: no-op. */
void joule_node_energy_smooth(struct joule_node_energy *node_energy);

/* Take the baseline: one reading of the counters, or for power sources an edge
 * declared on the board and its total.  If the board has no measurement yet,
 * it is taken when there is one, and the time until then is a gap. */
void joule_node_energy_begin(struct joule_node_energy *node_energy);

/* Power sources: the load changes now, say so on the board.  Counters: no-op,
 * they are read at their edges. */
void joule_node_energy_edge(struct joule_node_energy *node_energy);

/*
 * Read the counters and say what has been used.  Returns 0, or -1 with errno
 *   ENODATA  not known: no counter of the total has ever moved, neither for
 *            this account nor for the sampler; one of them is silent
 *            (joule_node_total_silent), until it answers again; no power has
 * been measured, or there is no board EINVAL   joule_node_energy_begin has not
 * been called
 */
int joule_node_energy_update(struct joule_node_energy *node_energy,
                             struct joule_node_energy_reading *ret_reading);

/*
 * Counters only: the same in two steps, for who has no time at the moment of a
 * reading.  Read all counters into [readings], one for each domain, and return
 * when that was; later, in the same order, say what had been used then.
 * What the board knows of wraps helps only if the second step comes soon.
 */
int64_t joule_node_energy_read(struct joule_node_energy *node_energy,
                               struct joule_reading *readings);
int joule_node_energy_follow(struct joule_node_energy *node_energy,
                             const struct joule_reading *readings,
                             int64_t mono_ns,
                             struct joule_node_energy_reading *ret_reading);

#endif
