/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper.h - the process beside slurmd that puts back what steps have left
 * behind that ended without doing so (kill -9 of slurmstepd).
 *
 * A process and not a thread: slurmd of 22.05 loads its SPANK plugins before
 * it becomes a daemon, which no thread survives; and if slurmd itself is
 * killed, the process stays until everything is back.
 *
 * joule-cpufreq-keeper has a SOCK_SEQPACKET socket as its descriptor 0, whose
 * end is the end of slurmd, and detaches itself.
 */
#ifndef JOULE_CPUFREQ_KEEPER_H
#define JOULE_CPUFREQ_KEEPER_H

#include "common/cpufreq/control.h"

#define JOULE_KEEPER_VERSION 2
#define JOULE_KEEPER_LOG_MAX 1023

/* What it reads first. */
struct joule_keeper_config {
    uint32_t version;
    uint32_t size;
    int64_t period_ns;
    struct joule_control_config control;
    char log[JOULE_KEEPER_LOG_MAX + 1]; /* slurmd's, absolute; "": none */
};

/*
 * Start [program] (absolute path), which writes to [log] what it has to say
 * (and to syslog); "": to syslog alone.  Returns our end of the socket, to be
 * kept open, or -1 with errno and a sentence.
 */
int joule_keeper_start(const char *program,
                       const struct joule_control_config *control,
                       int64_t period_ns, const char *log,
                       struct joule_error *err);

/*
 * The process's loop, until the other end of [fd] is closed and nothing is on
 * record any more: what cannot be put back is tried again each period.  A
 * journal that cannot be read (EBADMSG, EPERM) is not waited for.  say() has
 * sentences for the log, each once and not every period.
 */
void joule_keeper_run(int fd, int root_fd,
                      const struct joule_keeper_config *config,
                      void (*say)(void *arg, const char *text), void *arg);

/* SlurmdLogFile [pattern] with %h and %n replaced.  0, or -1 and "" if it does
 * not fit. */
int joule_keeper_log_path(const char *pattern, const char *host,
                          const char *node, char *buf, size_t size);

/*
 * Append "[time] joule_cpufreq: TEXT" to slurmd's log at absolute [path] below
 * root_fd, opened for each line, as logs may be rotated.  It must be there, a
 * regular file of root's that others may not write, and no symbolic link: -1
 * with EPERM, ENOENT ... and a sentence if it is not, or cannot be written.
 */
int joule_keeper_log(int root_fd, const char *path, const char *text,
                     struct joule_error *err);

#endif
