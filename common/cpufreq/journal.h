/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal.h - what the policies were before the first write, and which steps
 * hold them: as data, and as text.
 *
 * The text has one line for each policy and each holder, says of which version
 * and boot it is, and ends in a checksum.  A text that is not whole, in any
 * way, is refused as a whole.
 */
#ifndef JOULE_CPUFREQ_JOURNAL_H
#define JOULE_CPUFREQ_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/base/rundir.h"
#include "common/base/cpus.h"
#include "common/cpufreq/policy.h"
#include "common/cpufreq/request.h"

#define JOULE_CPUFREQ_STEP_MAX    32
#define JOULE_CPUFREQ_HOLDERS_MAX 4096
#define JOULE_CPUFREQ_TEXT_MAX    (4 * 1024 * 1024)

/* A policy that is, or may be, not as it was. */
struct joule_entry {
    unsigned policy;
    unsigned touched; /* enum joule_cpufreq_field: may have been written */
    unsigned tries; /* restorations that the kernel took, but did not follow */
    struct joule_cpufreq_state original;
};

/* A step on this node. */
struct joule_holder {
    uint64_t number; /* a later holder has a higher one */
    uint32_t job;
    char step[JOULE_CPUFREQ_STEP_MAX]; /* "0", "batch" */
    pid_t pid;                         /* of its slurmstepd */
    uint64_t start;                    /* joule_process_start of it */
    uint64_t namespace;                /* joule_process_namespace of it */
    bool is_watch; /* asks for nothing; others may write the policies meanwhile
                    */
    struct joule_request request;
    struct joule_cpus policies;
};

/* The byte of the lock file that the holder's process keeps locked
 * (joule_journal_file_live): no two living processes of a machine share
 * it. Linux: 32 bits of namespace numbers, 22 of process numbers. */
uint64_t joule_holder_byte(const struct joule_holder *h);

struct joule_journal {
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_entry *entry; /* by policy number */
    size_t entry_count;
    struct joule_holder *holder; /* by number */
    size_t holder_count;
};

/* An empty one of [boot_id]; joule_journal_clear frees what is in it.
 */
void joule_journal_init(struct joule_journal *j,
                        const char boot_id[JOULE_BOOT_ID_MAX]);
void joule_journal_clear(struct joule_journal *j);

/* NULL: there is none. */
struct joule_entry *joule_journal_find(struct joule_journal *j,
                                       unsigned policy);

/* The new element is where the return value says, until the next call.  NULL
 * with ENOMEM or (holders) ENOSPC. */
struct joule_entry *joule_journal_add_entry(struct joule_journal *j,
                                            const struct joule_entry *entry);
/* It gets the next number. */
struct joule_holder *
joule_journal_add_holder(struct joule_journal *j,
                         const struct joule_holder *holder);

/* Whether anybody holds the policy. */
bool joule_journal_is_held(const struct joule_journal *j, unsigned policy);

void joule_journal_remove_entry(struct joule_journal *j, unsigned policy);
void joule_journal_remove_holder(struct joule_journal *j, size_t index);

/* The text, which the caller frees; NULL with ENOMEM. */
char *joule_journal_format(const struct joule_journal *j, size_t *ret_len);

/*
 * Parse text[len] into *ret, which the caller clears.  -1 with a sentence and
 * EBADMSG (not whole, not ours, another version) or ENOMEM, and *ret empty.
 */
int joule_journal_parse(const char *text, size_t len, struct joule_journal *ret,
                        struct joule_error *err);

#endif
