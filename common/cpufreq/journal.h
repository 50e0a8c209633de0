/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal.h - what the policies were before the first write, and which steps
 * hold them: as data, as text, and in /run/slurm-joule/cpufreq.
 *
 * All slurmd and slurmstepd of a host share one journal, whatever their
 * NodeName.  A new journal replaces the old one in one step; there is no file
 * when nothing is held.
 */
#ifndef JOULE_CPUFREQ_JOURNAL_H
#define JOULE_CPUFREQ_JOURNAL_H

#include <sys/types.h>

#include "common/base/rundir.h"
#include "common/cpufreq/policy.h"
#include "common/cpufreq/request.h"

#define JOULE_CPUFREQ_JOURNAL     "/run/slurm-joule/cpufreq/journal"
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

struct joule_journal {
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_entry *entry; /* by policy number */
    size_t entry_count;
    struct joule_holder *holder; /* by number */
    size_t holder_count;
};

/* An empty one of [boot_id]; joule_journal_clear frees what is in it. */
void joule_journal_init(struct joule_journal *j,
                        const char boot_id[JOULE_BOOT_ID_MAX]);
void joule_journal_clear(struct joule_journal *j);

/* NULL: there is none. */
struct joule_entry *joule_journal_find(struct joule_journal *j,
                                       unsigned policy);

/* Whether anybody holds the policy. */
bool joule_journal_is_held(const struct joule_journal *j, unsigned policy);

/* What is added is valid until the next call; a holder gets the next number.
 * NULL with ENOMEM or (holders) ENOSPC. */
struct joule_entry *joule_journal_add_entry(struct joule_journal *j,
                                            const struct joule_entry *entry);
struct joule_holder *
joule_journal_add_holder(struct joule_journal *j,
                         const struct joule_holder *holder);

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

/* ---- the file ---- */

struct joule_journal_file {
    int root_fd; /* the caller's */
    int dir_fd, lock_fd;
    bool is_locked;
};

/* Open the directory, made where missing if [create].  -1 with a sentence:
 * ENOENT if nothing has been held in this boot, else as joule_rundir_open. */
int joule_journal_file_open(struct joule_journal_file *s, int root_fd,
                            bool create, struct joule_error *err);

/* Unlocks.  errno is kept. */
void joule_journal_file_close(struct joule_journal_file *s);

/* Keep other writers out.  -1 with EBUSY and a sentence if one of them has not
 * ended within [wait_ns]. */
int joule_journal_file_lock(struct joule_journal_file *s, int64_t wait_ns,
                            struct joule_error *err);
void joule_journal_file_unlock(struct joule_journal_file *s);

/*
 * Show that this process, [h]'s, lives, to processes of every pid namespace: it
 * holds a byte of the lock file of its own (fcntl(2), F_SETLK) until it ends,
 * or closes the file.  A process opens one at a time: closing another one would
 * let go.  -1 with a sentence.
 */
int joule_journal_file_live(struct joule_journal_file *s,
                            const struct joule_holder *h,
                            struct joule_error *err);

/* Whether another process holds that byte: 1 or 0; -1: it cannot be known. */
int joule_journal_file_lives(struct joule_journal_file *s,
                             const struct joule_holder *h);

/*
 * Read the journal, with or without the lock; the caller clears it.  It is
 * empty if there is none, or one of another boot.  -1 with a sentence and
 *   EPERM    it is no plain file of root's alone
 *   EBADMSG  it is damaged, or of another version
 */
int joule_journal_file_load(struct joule_journal_file *s,
                            struct joule_journal *ret, struct joule_error *err);

/* Replace the journal on disk (with the lock); an empty one removes the file.
 * -1 with a sentence, and the old one stays. */
int joule_journal_file_save(struct joule_journal_file *s,
                            const struct joule_journal *j,
                            struct joule_error *err);

/* Put a journal that nobody can read aside as "journal.bad" (with the lock). */
int joule_journal_file_set_aside(struct joule_journal_file *s,
                                 struct joule_error *err);

/* Whether there is a journal file: one system call. */
bool joule_journal_file_exists(const struct joule_journal_file *s);

#endif
