/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper.h - a helper process at the other end of a SOCK_SEQPACKET socket pair,
 * for a host process that is large, has threads and forks children of its own.
 *
 * Nothing here waits for the process to end, but joule_helper_destroy for a
 * bounded time: one that is stuck in the kernel cannot be ended, not even by
 * SIGKILL.  Such processes are remembered, and reaped when they have ended.
 * A process that somebody else reaps (the host ignores SIGCHLD, or waits for
 * all its children) is taken to have ended, and its number is never used
 * again.
 *
 * One thread at a time.
 */
#ifndef JOULE_BASE_HELPER_H
#define JOULE_BASE_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

/* No more are left behind; then none is started. */
#define JOULE_HELPER_LOST_MAX 4

struct joule_helper {
    pid_t pid; /* 0: none is running */
    int fd;    /* our end of the socket, non-blocking; -1: none */
    size_t lost_count;
    pid_t lost[JOULE_HELPER_LOST_MAX]; /* killed, not seen to end */
};

void joule_helper_init(struct joule_helper *helper);

/*
 * Start [program] (absolute path), with its last part as the only argument,
 * the socket as descriptor 0, /dev/null as 1 and 2 and no other, an empty
 * environment, no signal blocked, caught or ignored, "/" as its directory and
 * a session of its own.  None must be running.  -1 with a sentence; EBUSY
 * when JOULE_HELPER_LOST_MAX have been left behind.
 */
int joule_helper_start(struct joule_helper *helper, const char *program,
                       struct joule_error *err);

/*
 * Wait until there is something to receive (or the process has closed its
 * end), [interrupt_fd] can be read, or the kernel's clock
 * (joule_clock_system) has come to [deadline_ns].  The first of them that is so
 * counts.  0, or -1 with ECANCELED or ETIMEDOUT.
 */
int joule_helper_wait(const struct joule_helper *helper, int interrupt_fd,
                      int64_t deadline_ns);

/* Whether it still has its end of the socket. */
bool joule_helper_is_there(const struct joule_helper *helper);

/* SIGKILL, and forget it. */
void joule_helper_kill(struct joule_helper *helper);

/*
 * The process has closed its end: say in [err] how it ended ("died of signal
 * 11").  Kills it if it has not ended.  Always -1, with EPIPE.
 */
int joule_helper_explain(struct joule_helper *helper, struct joule_error *err);

/* Look after those that were killed. */
void joule_helper_reap(struct joule_helper *helper);

/* Close the socket and wait a moment for the process to end by itself; then
 * kill it.  The struct is as after joule_helper_init. */
void joule_helper_destroy(struct joule_helper *helper);

#endif
