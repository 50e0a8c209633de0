/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqcontrol.h - the commands to a running freqsim over DIR/control (talk.h).
 */
#ifndef SIM_FREQCONTROL_H
#define SIM_FREQCONTROL_H

#include "tests/sim/freqfault.h"
#include "tests/sim/freqfile.h"

struct sim_freqcontrol {
    struct sim_freq *freq;
    struct sim_freqfault *fault;
    bool readonly;
    void (*changed)(void *arg); /* as in struct sim_freqfs_options */
    void *arg;
};

/* Answer one command, without newline: a sim_talk_f, [arg] is a struct
 * sim_freqcontrol. */
void sim_freqcontrol_command(void *arg, char *line, char *reply, size_t size);

/* The commands, for --help. */
void sim_freqcontrol_help(void);

#endif
