/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the command line of nodesim.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <sys/types.h>

#include "tests/sim/machine.h"

#define SIM_MEMBERS_MAX 64

struct sim_options {
    enum { SIM_SERVE, SIM_ASK, SIM_INTEGRATE, SIM_HELP } mode;
    const char *dir;     /* SERVE, ASK */
    const char *command; /* ASK */
    const char *log;     /* INTEGRATE */
    int64_t from_ns, to_ns;

    struct sim_machine_options machine;
    int64_t step_ns;
    int64_t idle_uw, busy_uw;
    int64_t khz, ref_khz;
    int64_t dram_ppm; /* -1: by the machine */
    const char *load, *trace;
    bool trace_repeat;
    const char *jobs, *jobs_also;
    bool stat;
    const char *cgroups[SIM_MEMBERS_MAX];
    size_t cgroup_count;
    pid_t pids[SIM_MEMBERS_MAX];
    size_t pid_count;
    const char *wattmeter;
    int64_t log_ns;
    int ready_fd; /* -1: none */
};

/* Strings point into argv.  0, or -1 with errno EINVAL and a sentence. */
int sim_options_parse(struct sim_options *opt, int argc, char **argv,
                      struct joule_error *err);

/* To standard output. */
void sim_options_help(void);

#endif
