/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper.h - a helper process at the other end of a SOCK_SEQPACKET socket pair,
 * for what may block or crash and must not do so in a host process that is
 * large, has threads and forks children of its own.
 *
 *     joule_helper_init(&h);
 *     if (joule_helper_is_due(&h, now_ns) && joule_helper_start(&h, ...) == 0 &&
 *         joule_helper_send(&h, &packet, wait_ns, &err) == 0 &&
 *         joule_helper_reply(&h, type, size, wait_ns, interrupt_fd, &reply,
 *                            sizeof(reply), &err) == 0)
 *         joule_helper_worked(&h);
 *     else
 *         joule_helper_failed(&h, now_ns);
 *     joule_helper_destroy(&h);
 *
 * One request, one reply, each a packet that begins with a struct
 * joule_helper_head.  Both programs are of the same build: structs as they are,
 * checked by size and version.
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
#include <sys/socket.h>
#include <sys/types.h>

#include "common/base/error.h"

/* No more are left behind; then none is started. */
#define JOULE_HELPER_LOST_MAX 4

/* After a failure the next tries are 1, 2, 4 ... so many seconds apart. */
#define JOULE_HELPER_BACKOFF_MAX_S 60

struct joule_helper_head {
    uint32_t version; /* of the protocol */
    uint32_t type;    /* of the request, and of its reply */
    uint64_t seq;     /* the same in both */
    uint32_t size;    /* of the whole packet */
    int32_t error;    /* replies: 0 or an errno value; then text says more */
    char text[JOULE_ERROR_MAX]; /* replies: the sentence, or empty; what else it
                                   says is the protocol's */
};

struct joule_helper {
    pid_t pid;           /* 0: none is running */
    int fd;              /* our end of the socket, non-blocking; -1: none */
    const char *program; /* as started; borrowed */
    uint32_t version;    /* set by who uses requests: of the protocol, */
    const char *asks;    /* and what the program asks: "the BMC" */
    uint64_t seq;        /* of the last request */
    unsigned failures;   /* in a row */
    int64_t retry_ns;    /* not before */
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

/* The head of a new request of [size] bytes. */
struct joule_helper_head joule_helper_request(struct joule_helper *helper,
                                              uint32_t type, size_t size);

/* Send a request.  [wait_ns]: what its reply will be given, for the sentence.
 * -1 with a sentence; then the process has been ended. */
int joule_helper_send(struct joule_helper *helper, const struct msghdr *packet,
                      size_t size, int64_t wait_ns, struct joule_error *err);

/*
 * Wait for the reply to the last request, of [type] and [size]; replies to
 * earlier ones are dropped.  [reply] has room for [room] bytes, of which the
 * first are a head.  0, or -1 with a sentence and errno:
 *   ETIMEDOUT  none came within [wait_ns]; the process has been killed
 *   ECANCELED  [interrupt_fd] can be read; no sentence
 *   EPROTO     it was none of this protocol; the process has been killed
 *   EPIPE      the process has ended
 *   other      what the process says; it is well
 */
int joule_helper_reply(struct joule_helper *helper, uint32_t type, size_t size,
                       int64_t wait_ns, int interrupt_fd, void *reply,
                       size_t room, struct joule_error *err);

/* What it says is none of the protocol: it is killed.  Always -1, with EPROTO
 * and a sentence. */
int joule_helper_reject(struct joule_helper *helper, const char *what,
                        struct joule_error *err);

/* Whether it is time to try (again), and how the try went. */
bool joule_helper_is_due(const struct joule_helper *helper, int64_t now_ns);
void joule_helper_worked(struct joule_helper *helper);
void joule_helper_failed(struct joule_helper *helper, int64_t now_ns);

/* Look after those that were killed. */
void joule_helper_reap(struct joule_helper *helper);

/* Close the socket and wait a moment for the process to end by itself; then
 * kill it.  Another one may be started. */
void joule_helper_destroy(struct joule_helper *helper);

#endif
