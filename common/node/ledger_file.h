/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger_file.h - the file of the ledger: its layout, and how it is made,
 * found and mapped.  For the files ledger*.c alone.
 */
#ifndef JOULE_NODE_LEDGER_FILE_H
#define JOULE_NODE_LEDGER_FILE_H

#include <stdatomic.h>

#include "common/base/rundir.h"
#include "common/node/ledger.h"

#define ROW_WORDS    (sizeof(struct joule_row) / sizeof(uint64_t))
#define PART_WORDS   (sizeof(struct joule_ledger_part) / sizeof(uint64_t))
#define TOTALS_WORDS (sizeof(struct joule_ledger_totals) / sizeof(uint64_t))
#define NODE_WORDS   (sizeof(struct joule_snapshot) / sizeof(uint64_t))
#define STATE_WORDS  (sizeof(struct joule_sensor_state) / sizeof(uint64_t))

/* Words are atomic so that a copy which another process overtakes is a stale
 * copy, not a data race. */
struct ledger_version {
    _Atomic uint64_t generation; /* it was written for; 0: none */
    _Atomic uint64_t word[ROW_WORDS];
};

struct ledger_registration {
    _Atomic uint64_t owner; /* 0: free */
    _Atomic uint64_t ready; /* owner again, once the rest is filled in */
    _Atomic int64_t tasks_ns, ended_ns; /* 0: not yet */
    _Atomic uint64_t cpu_ns; /* as the process has it; JOULE_CPU_UNKNOWN */
    _Atomic uint64_t word[3 + 1 + JOULE_LEDGER_PATH_MAX / sizeof(uint64_t)];
};

struct ledger_slot {
    struct ledger_registration registration;
    struct ledger_version version[2];
    _Atomic uint64_t cpus[]; /* head.words of the job's, and of the step's */
};

struct ledger_head {
    uint64_t magic;
    uint32_t version;
    uint32_t size;      /* of this struct */
    uint32_t words;     /* of CPU bitmaps */
    uint32_t slot_size; /* of struct ledger_slot, with both bitmaps */
    char boot_id[JOULE_BOOT_ID_MAX];
    _Atomic uint64_t writer;          /* process.h; 0: there is none */
    _Atomic uint64_t generation;      /* 0: nothing is published */
    _Atomic uint64_t surplus;         /* steps that had no slot */
    _Atomic uint32_t slots;           /* that the file has room for */
    _Atomic uint32_t asked, answered; /* tickets; futexes */
    /* by generation */
    _Atomic uint64_t totals[2][TOTALS_WORDS];
    _Atomic uint64_t node[2][NODE_WORDS];
    _Atomic uint64_t state[2][STATE_WORDS];
};

struct joule_ledger {
    struct ledger_head *head;
    char *slots; /* head.slot_size each */
    size_t length;
    size_t words, slot_size;
    size_t known; /* slots that are in the file for certain */
    int fd;
    pid_t pid; /* of the process that has it mapped */
    bool writable;
    uint64_t number; /* the writer's, as in the file; 0: a reader */
    uint64_t staged; /* generation for which the node is staged */
};

static inline struct ledger_slot *ledger_slot(const struct joule_ledger *l,
                                              size_t i)
{
    return (struct ledger_slot *)(l->slots + i * l->slot_size);
}

/* Where the node is not staged for the publication [next], it is as it was. */
void joule_ledger_keep_node(struct joule_ledger *l, uint64_t next);

/* Make room for [count] slots; -1 with errno (ENOSPC). */
int joule_ledger_grow(struct joule_ledger *l, size_t count);

#endif
