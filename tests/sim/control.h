/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - the commands to a running node over DIR/control (talk.h).
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "common/base/error.h"
#include "tests/sim/node.h"
#include "tests/sim/wattmeter.h"

#define SIM_CONTROL_NAME "control"

struct sim_control {
    struct sim_node *node;
    struct sim_wattmeter *meter; /* may be NULL */
    int dir_fd;                  /* where the node's tree is */
};

/* Answer one command, without newline: a sim_talk_f, [arg] is a struct
 * sim_control. */
void sim_control_command(void *arg, char *line, char *reply, size_t size);

/* The commands, for --help. */
void sim_control_help(void);

#endif
