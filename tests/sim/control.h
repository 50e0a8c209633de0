/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - one line commands to a running node over DIR/control, a
 * SOCK_SEQPACKET socket of mode 0600: a packet is a command, the answer is a
 * packet with one line, "ok", what was asked for, or "error: SENTENCE".
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <poll.h>

#include "common/base/error.h"
#include "tests/sim/node.h"
#include "tests/sim/wattmeter.h"

#define SIM_CONTROL_CLIENTS 16
#define SIM_CONTROL_LINE    4096

struct sim_control;

/* Listen at "control" in [dir_fd], in place of one left by an earlier run.
 * [node] and [meter] (may be NULL) must outlive it.  NULL with errno and a
 * sentence. */
struct sim_control *sim_control_create(int dir_fd, struct sim_node *node,
                                       struct sim_wattmeter *meter,
                                       struct joule_error *err);
/* Closes and removes the socket.  NULL is a no-op. */
void sim_control_destroy(struct sim_control *control);

/* Fill fds[1 + SIM_CONTROL_CLIENTS] to be polled; returns how many. */
size_t sim_control_poll(const struct sim_control *control, struct pollfd *fds);
/* Serve the descriptors of sim_control_poll after poll(2). */
void sim_control_serve(struct sim_control *control, const struct pollfd *fds);

/* The answer to one command, without newline. */
void sim_control_command(struct sim_control *control, char *line, char *reply,
                         size_t size);

/* The client: send one command to the node of [dir] and wait at most 5 s.
 * 0 or -1 with errno and a sentence; an "error:" answer is EPROTO. */
int sim_control_ask(const char *dir, const char *command, char *reply,
                    size_t size, struct joule_error *err);

/* The commands, for --help. */
void sim_control_help(void);

#endif
