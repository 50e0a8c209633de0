/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - steps hold policies: take, give back, recover.
 *
 * Each call is a transaction under the journal's lock: what the policies were
 * is on disk before the first write.  What a process leaves behind that was
 * killed, joule_control_recover of any process puts back.
 *
 * A policy that several steps hold is set for one of them:
 *   - of the steps of one job for the one that began last;
 *   - of several jobs for the one that asks for the highest frequency, so that
 *     no job is slower than it asked for; of equal ones for the last.
 *     When a holder ends, the next one in this order is served; when the last one
 *     ends, the policy is what it was before the first.
 *
 * A holder is dead when its process has ended: of this pid namespace if no
 * process has its number and start time, of another one if nobody holds its
 * byte of the lock file (journal.h).  Where neither can be known it lives.
 *
 * What cannot be put back (CPU offline, EBUSY, read-only sysfs) stays in the
 * journal, held by nobody, and is tried again with every call.  A value that
 * the kernel takes but does not show, JOULE_CONTROL_TRIES times, counts as put
 * back: another limit (of temperature, of power) is in force beside it.
 *
 * Thread rule: a control belongs to one thread at a time.
 */
#ifndef JOULE_CPUFREQ_CONTROL_H
#define JOULE_CPUFREQ_CONTROL_H

#include "common/cpufreq/journal.h"
#include "common/cpufreq/plan.h"

#define JOULE_CONTROL_TRIES 10

struct joule_control_config {
    struct joule_cpufreq_rules rules;
    int64_t lock_wait_ns;
};

struct joule_control {
    int root_fd; /* the caller's */
    struct joule_control_config config;
    struct joule_journal_file store; /* dir_fd -1: not opened yet */
    /* of one transaction */
    struct joule_journal journal;
    int64_t patience_ns; /* left for values that do not show at once */
};

/* Sentences that a caller passes on: the first, and how many there were. */
struct joule_control_notes {
    struct joule_error first;
    unsigned count;
};

struct joule_control_claim {
    uint32_t job;
    const char *step; /* joule_cpufreq_is_word, below JOULE_CPUFREQ_STEP_MAX */
    pid_t pid;        /* this process: its end ends the claim */
    bool is_watch;    /* the step asks for nothing of us, but somebody else may
                         write these policies: put them back at the end */
    struct joule_request request;
    struct joule_cpus cpus;
};

/* What a step got. */
struct joule_control_grant {
    uint64_t number; /* of the holder; 0: nothing is held */
    pid_t pid;
    uint64_t start; /* joule_process_start of it */
    struct joule_cpus policies;
    unsigned met, unmet;        /* policies that are, or are not, as asked */
    uint32_t low_khz, high_khz; /* limits of what was set, over the policies */
    char governor[JOULE_CPUFREQ_WORD]; /* of the first policy */
    struct joule_control_notes notes;  /* what was adjusted or not met */
};

void joule_control_init(struct joule_control *c, int root_fd,
                        const struct joule_control_config *config);
/* Gives nothing back. */
void joule_control_destroy(struct joule_control *c);

/*
 * Take the policies of the claim's CPUs and set them.  One on which the request
 * cannot be fulfilled is left alone and counted as unmet.  Returns 0 if any is
 * held or there is nothing to hold, else -1 with a sentence:
 *   ENOTSUP  the machine has no policies for these CPUs, or none can do it
 *   EBUSY    the lock
 *   EBADMSG, EPERM  the journal
 *   ESRCH    the claim's process is not there
 *   other    of the file system
 */
int joule_control_hold(struct joule_control *c,
                       const struct joule_control_claim *claim,
                       struct joule_control_grant *ret,
                       struct joule_error *err);

/* Give back what is not in [keep]. */
int joule_control_narrow(struct joule_control *c,
                         struct joule_control_grant *grant,
                         const struct joule_cpus *keep,
                         struct joule_error *err);

/* Give everything back.  0 also if the journal does not know the grant (it was
 * restored by hand).  -1 with a sentence: recovery will do it when the process
 * has ended. */
int joule_control_release(struct joule_control *c,
                          const struct joule_control_grant *grant,
                          struct joule_error *err);

struct joule_control_recovery {
    unsigned ended;    /* holders whose process is no more: dropped */
    unsigned restored; /* policies put back, or set for the holders left */
    unsigned failed;   /* policies that are neither: the next one tries again */
    struct joule_control_notes notes;
};

/* Drop holders whose process has ended, and set what they, or nobody, held for
 * those that are left.  Costs one system call if nothing is held.  0 with *ret
 * (may be NULL), or -1 with a sentence. */
int joule_control_recover(struct joule_control *c,
                          struct joule_control_recovery *ret,
                          struct joule_error *err);

/* Drop holders whose process has ended.  Returns how many; their policies, and
 * those that nobody holds, are added to [loose]. */
unsigned joule_control_drop_dead(struct joule_journal_file *store,
                                 struct joule_journal *j,
                                 struct joule_cpus *loose);

/* Drop all holders, running steps too, and put everything back.  Returns how
 * many policies could not be put back, or -1. */
int joule_control_restore(struct joule_control *c,
                          struct joule_control_notes *notes,
                          struct joule_error *err);

/* Put a journal that cannot be read aside; EINVAL for one that can. */
int joule_control_discard(struct joule_control *c, struct joule_error *err);

#endif
