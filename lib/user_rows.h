/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * user_rows.h - the file RUNDIR/NODE/users/UID/rows, in which slurmd tells a user
 * the energy of the user's own steps on the node.
 *
 * There are two versions of the rows, at JOULE_USER_ROWS_AT of an even and of an
 * odd generation.  The writer fills the one that is not published, then writes
 * the generation that publishes it.  A reader takes no lock: it reads the head,
 * the rows, and the head again, and begins anew if the generation has changed.
 *
 * All in the byte order of the node, in words of 64 bits.
 */
#ifndef JOULE_USER_ROWS_H
#define JOULE_USER_ROWS_H

#include <stdint.h>

#define JOULE_USER_ROWS_DIR     "users"
#define JOULE_USER_ROWS_FILE    "rows"
#define JOULE_USER_ROWS_MAGIC   UINT64_C(0x3130726573756c4a) /* "Jluser01" */
#define JOULE_USER_ROWS_VERSION 3
#define JOULE_USER_ROWS_MAX     2048
#define JOULE_USER_ROWS_BOOT    40

/* Of an energy: that of CPUs, and that of memory. */
enum {
    JOULE_USER_ROWS_CPU,
    JOULE_USER_ROWS_MEMORY,
    JOULE_USER_ROWS_COMPONENTS
};

struct joule_user_head {
    uint64_t magic;
    uint64_t version;
    char boot_id[JOULE_USER_ROWS_BOOT];
    uint64_t generation; /* written last */
};

/* A step. */
struct joule_user_row {
    uint32_t job, step;
    uint16_t kind, state; /* kind: 0 numbered, 1 extern, 2 batch or interactive;
                             state: 1 it runs, 2 it has ended */
    uint32_t cpu_count, job_cpu_count;
    uint32_t mw; /* since the numbers before; 0 if the row has ended */
    uint32_t component_mw[JOULE_USER_ROWS_COMPONENTS]; /* of mw */
    int64_t began_ns, ended_ns; /* CLOCK_BOOTTIME; ended_ns 0 of a row that has
                                   ended: its end was not said */
    uint64_t uj, job_uj;
    uint64_t components; /* that were measured apart: 1 << number */
    uint64_t component_uj[JOULE_USER_ROWS_COMPONENTS]; /* of uj */
};

/* One version. */
struct joule_user_rows {
    uint64_t uid, rows;
    uint64_t attribution; /* enum joule_attribution */
    int64_t mono_ns, wall_ns, period_ns, sample_period_ns;
    struct joule_user_row row[];
};

#define JOULE_USER_ROWS_BYTES(rows)                                            \
    (sizeof(struct joule_user_rows) + (rows) * sizeof(struct joule_user_row))

#define JOULE_USER_ROWS_AT(generation)                                         \
    (off_t)(sizeof(struct joule_user_head) +                                   \
            ((generation)&1) * JOULE_USER_ROWS_BYTES(JOULE_USER_ROWS_MAX))

#endif
