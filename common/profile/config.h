/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config.h - what an admin may set in acct_gather.conf for profiles.
 *
 * One table for the plugin, the tools and the man page.  Values mean what
 * they mean to Slurm where the keys are Slurm's.
 */
#ifndef JOULE_PROFILE_CONFIG_H
#define JOULE_PROFILE_CONFIG_H

#include "common/base/option.h"
#include "common/profile/log.h"

/* As in slurm.h, which is not seen here. */
#define JOULE_PROFILE_NONE       (1u << 0)
#define JOULE_PROFILE_ENERGY     (1u << 1)
#define JOULE_PROFILE_TASK       (1u << 2)
#define JOULE_PROFILE_FILESYSTEM (1u << 3)
#define JOULE_PROFILE_NETWORK    (1u << 4)
#define JOULE_PROFILE_ALL        UINT32_MAX

#define JOULE_PROFILE_DIR_SIZE 1024

#define JOULE_PROFILE_PERIOD_MIN_NS (INT64_C(10) * 1000 * 1000)
#define JOULE_PROFILE_PERIOD_MAX_NS (INT64_C(1000) * 1000 * 1000)

#define JOULE_PROFILE_STATES_MIN_NS (INT64_C(100) * 1000 * 1000)
#define JOULE_PROFILE_STATES_MAX_NS (INT64_C(3600) * 1000 * 1000 * 1000)

struct joule_profile_config {
    char dir[JOULE_PROFILE_DIR_SIZE]; /* ProfileHDF5Dir; empty: not set */
    unsigned default_bits;            /* ProfileHDF5Default */
    uint64_t chunk_rows;   /* JouleProfileChunk; 0: by the series' period */
    unsigned compression;  /* JouleProfileCompression */
    int64_t flush_ns;      /* JouleProfileFlush */
    bool extern_step;      /* JouleProfileExtern */
    int64_t period_ns;     /* JouleProfilePeriod; 0: by --acctg-freq */
    int64_t period_min_ns; /* JouleProfilePeriodMin: the shortest that jobs
                              may wish */
    int64_t states_ns;     /* JouleProfileStates; 0: where a job wishes it */
    char converter[JOULE_PROFILE_DIR_SIZE]; /* JouleProfileConverter; empty: the
                                               installed one */
};

/* Ends with a NULL key.  Offsets are into struct joule_profile_config. */
extern const struct joule_option joule_profile_options[];

struct joule_pack joule_profile_pack(const struct joule_profile_config *config);

/*
 * The period of a step's energy series: what the job wishes ("100ms", "0.1"; NULL:
 * it does not), else what the admin says, lengthened to a multiple of the shortest
 * that the admin allows: rows of two periods such as 100 and 150 ms, which end on
 * the node's clock, would show a user the 50 ms between them.  0: by --acctg-freq.
 * -1 with errno and a sentence for a wish that is no period; *ret_ns is then the
 * admin's.
 */
int joule_profile_period(const struct joule_profile_config *config,
                         const char *wish, int64_t *ret_ns,
                         struct joule_error *err);

/*
 * The same of C- and P-states; 0: none.  A wish is lengthened to JouleProfilePeriodMin,
 * or to the admin's own period if that is shorter.
 */
int joule_profile_states(const struct joule_profile_config *config,
                         const char *wish, int64_t *ret_ns,
                         struct joule_error *err);

#endif
