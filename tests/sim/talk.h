/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talk.h - one line commands to a running simulator over a SOCK_SEQPACKET
 * socket of mode 0600 in a directory: a packet is a command, the answer is a
 * packet with one line, "ok", what was asked for, or "error: SENTENCE".
 */
#ifndef SIM_TALK_H
#define SIM_TALK_H

#include <stddef.h>

#include "common/base/error.h"

#define SIM_TALK_CLIENTS 16
#define SIM_TALK_LINE    131072 /* below what a socket takes at once */

struct sim_talk;

/* Answer one command: [line] may be changed, [reply] takes the answer,
 * without newline. */
typedef void (*sim_talk_f)(void *arg, char *line, char *reply, size_t size);

/* Listen at [name] in [dir_fd], in place of one left by an earlier run.
 * NULL with errno and a sentence. */
struct sim_talk *sim_talk_create(int dir_fd, const char *name,
                                 sim_talk_f command, void *arg,
                                 struct joule_error *err);
/* Closes and removes the socket.  NULL is a no-op; errno is kept. */
void sim_talk_destroy(struct sim_talk *talk);

/* One descriptor that is readable when there is something to serve; valid
 * until the destroy. */
int sim_talk_fd(const struct sim_talk *talk);
/* Never waits. */
void sim_talk_serve(struct sim_talk *talk);

/*
 * The client: a connection to [name] in [dir], on which a call waits at most
 * wait_ms for the answer.  The descriptor, or -1 with errno and a sentence.
 */
int sim_talk_open(const char *dir, const char *name, int wait_ms,
                  struct joule_error *err);
/* One command and its answer.  0, or -1 with errno and a sentence: EPROTO for
 * an "error:" answer, anything else when the connection is of no use any
 * more. */
int sim_talk_exchange(int fd, const char *command, char *reply, size_t size,
                      struct joule_error *err);
/* All of it, waiting at most 5 s. */
int sim_talk_ask(const char *dir, const char *name, const char *command,
                 char *reply, size_t size, struct joule_error *err);

#endif
