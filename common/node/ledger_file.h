/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger_file.h - the file of the ledger: its layout, and how it is made,
 * found and mapped.  For ledger.c and ledger_tickets.c alone.
 */
#ifndef JOULE_NODE_LEDGER_FILE_H
#define JOULE_NODE_LEDGER_FILE_H

#include <stdatomic.h>

#include "common/base/rundir.h"
#include "common/node/ledger.h"

#define ROW_WORDS    (sizeof(struct joule_row) / sizeof(uint64_t))
#define PART_WORDS   (sizeof(struct joule_ledger_part) / sizeof(uint64_t))
#define TOTALS_WORDS (sizeof(struct joule_ledger_totals) / sizeof(uint64_t))

/* Words are atomic so that a copy which another process overtakes is a stale
 * copy, not a data race. */
struct ledger_version {
    _Atomic uint64_t generation; /* it was written for; 0: none */
    _Atomic uint64_t word[ROW_WORDS];
};

struct ledger_claim {
    _Atomic uint64_t owner; /* 0: free */
    _Atomic uint64_t ready; /* owner again, once the rest is filled in */
    _Atomic int64_t ended_ns;
    _Atomic uint64_t cpu_ns; /* as the process has it; JOULE_CPU_UNKNOWN */
    _Atomic uint64_t word[3 + 1 + JOULE_LEDGER_PATH_MAX / sizeof(uint64_t)];
};

struct ledger_slot {
    struct ledger_claim claim;
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
    _Atomic uint64_t generation;              /* 0: nothing is published */
    _Atomic uint64_t surplus;                 /* steps that had no slot */
    _Atomic uint32_t slots;                   /* that the file has room for */
    _Atomic uint32_t asked, answered;         /* tickets; futexes */
    _Atomic uint64_t totals[2][TOTALS_WORDS]; /* by generation */
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
};

static inline struct ledger_slot *ledger_slot(const struct joule_ledger *l,
                                              size_t i)
{
    return (struct ledger_slot *)(l->slots + i * l->slot_size);
}

/* Make room for [count] slots; -1 with errno (ENOSPC). */
int joule_ledger_grow(struct joule_ledger *l, size_t count);

#endif
