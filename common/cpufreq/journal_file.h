/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal_file.h - the journal's place: run/slurm-joule/cpufreq below a root
 * fd, and the lock that its writers hold.  A process that holds policies keeps
 * one byte of the lock file locked besides: while it lives, nobody takes it for
 * dead.
 *
 * The CPUs are the host's: all slurmd and slurmstepd of a host share one
 * journal, whatever their NodeName.  A new journal replaces the old one in one
 * step; there is none when nothing is held.
 */
#ifndef JOULE_CPUFREQ_JOURNAL_FILE_H
#define JOULE_CPUFREQ_JOURNAL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cpufreq/journal.h"

#define JOULE_CPUFREQ_JOURNAL "/run/slurm-joule/cpufreq/journal"

struct joule_journal_file {
    int root_fd; /* the caller's */
    int dir_fd, lock_fd;
    bool is_locked;
};

/* Open; made where missing if [create].  -1 with a sentence: ENOENT if nothing
 * has been held in this boot, else as joule_rundir_open. */
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
 * Show that a process lives, to processes of every pid namespace: this process
 * holds byte [process] of the lock file (fcntl(2), F_SETLK) until it ends,
 * however it ends, or closes the store.  Children do not inherit it.  A process
 * opens one store at a time: closing another one's lock file would let go.
 * -1 with a sentence.
 */
int joule_journal_file_live(struct joule_journal_file *s, uint64_t process,
                            struct joule_error *err);

/* Whether another process holds that byte: 1 or 0; -1 if that cannot be
 * known. */
int joule_journal_file_lives(struct joule_journal_file *s, uint64_t process);

/*
 * Read the journal, with or without the lock; the caller clears it.  It is
 * empty if there is none, or one of another boot: the kernel has begun with
 * settings of its own since then.  -1 with a sentence and
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
