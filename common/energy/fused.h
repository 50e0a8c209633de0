/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fused.h - the energy of a whole node from its BMC and its counters: the BMC
 * tells the amount, the counters tell the time.
 *
 *     struct joule_fused_state state = {0};
 *     joule_fused_advance(&state, rapl, now_ns, bmc, gap_ns, &part);
 *
 * While both answer, and the lag model (lag_model.h) has learned how they
 * belong together, the power is that of the model.  Before that, the power is
 * the BMC's. While the BMC does not answer, the counters continue with what the
 * model has learned.  While a counter does not answer, the power is the BMC's.
 * When the counter returns, the difference between its real growth and the
 * estimate is added to, or taken from, the following intervals.  basis_ns tells
 * how much time stands on which.
 *
 * Pure arithmetic on a plain struct.  slurmd publishes the struct in /run; the
 * next slurmd continues it, and the counters tell the energy of the time
 * between the two.
 */
#ifndef JOULE_ENERGY_FUSED_H
#define JOULE_ENERGY_FUSED_H

#include "common/energy/lag_model.h"
#include "common/energy/node_total.h"

/* What the energy of some time stands on. */
enum joule_fused_basis {
    JOULE_FUSED_NONE, /* not measured: estimated, or left out */
    JOULE_FUSED_BMC,
    JOULE_FUSED_RAPL,
    JOULE_FUSED_BOTH,
    JOULE_FUSED_BASES
};

/* All 0 at first; a whole number of 64-bit words. */
struct joule_fused_state {
    struct joule_lag_model lag_model;
    int64_t mono_ns;     /* up to which all is counted; 0: not begun */
    int64_t asked_ns;    /* first call: nothing is counted until then */
    int64_t bmc_mono_ns; /* of the BMC's last measurement; 0: none */
    double bmc_w;        /* which it was */
    uint64_t bmc_key;    /* sensor_key of it; 0: not told */
    double watts;        /* of the node, in the last interval */
    int64_t basis_ns[JOULE_FUSED_BASES]; /* time that stands on each */
    uint64_t basis;                      /* of the last interval */
    int64_t stand_in_ns; /* the BMC has stood in for counters that do not
                            answer for so long, */
    double stand_in_j;   /* and that was counted */
    double debt_j;       /* that was too much by so much */
    /* The counters' total, when all of them answered last: */
    int64_t rapl_ns; /* 0: never */
    int64_t rapl_gap_ns;
    uint64_t rapl_uj;
    uint64_t rapl_valid;
};

/* What came to pass since the call before. */
struct joule_fused_interval {
    bool known;     /* false: wait for the next call, nothing is lost */
    int64_t ns;     /* that were counted; 0: the count begins here */
    int64_t gap_ns; /* of it, not measured */
    double node_j;  /* >= 0 */
};

/* After so long without a counter, the BMC's power replaces it. */
#define JOULE_FUSED_WAIT_NS INT64_C(3000000000)

/* The longest wait for the first measurement of the BMC. */
#define JOULE_FUSED_PATIENCE_NS INT64_C(10000000000)

/* Whether a state of unknown origin can be continued at [now_ns]. */
bool joule_fused_check(const struct joule_fused_state *s, int64_t now_ns);

/*
 * Count up to [now_ns].  [rapl] is the total of the counters, read at [now_ns],
 * or NULL if one of them does not answer or there are none.  [bmc] is the BMC's
 * measurement since the last call, or NULL.  After [gap_ns] without a
 * measurement the BMC counts as not answering.
 */
void joule_fused_advance(struct joule_fused_state *s,
                         const struct joule_node_total *rapl, int64_t now_ns,
                         const struct joule_power *bmc, int64_t gap_ns,
                         struct joule_fused_interval *ret);

/* "BMC and RAPL", "BMC", "RAPL", "nothing" */
const char *joule_fused_basis_words(enum joule_fused_basis basis);

#endif
