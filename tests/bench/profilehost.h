/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profilehost.h - a program that goes for slurmstepd to profile plugins: it
 * exports what they look for, has slurmstepd's title, and builds a step's
 * record.  To be linked with -rdynamic; one plugin a process.
 *
 * A failure of these functions ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_PROFILEHOST_H
#define JOULE_BENCH_PROFILEHOST_H

#include <stdbool.h>
#include <stdint.h>

#include "plugins/slurm_abi/slurm_abi.h"

#define PROFILEHOST_RECORD_BYTES 1024

/* First of all: executes the program again where it has another title. */
void profilehost_begin(char **argv);

/* Where libslurmfull is, where profiles are to be, and the program that makes HDF5
 * files of ours. */
void profilehost_set(const char *library, const char *directory,
                     const char *converter);

/* What slurmstepd has loaded in any case. */
void profilehost_load_library(void);

struct profilehost_plugin {
    int (*init)(void);
    void (*conf_set)(void *table);
    int (*start)(void *record);
    int (*end)(void);
    int64_t (*create_group)(const char *name);
    int (*create_dataset)(const char *name, int64_t parent,
                          acct_gather_profile_dataset_t *dataset);
    int (*add)(int id, void *data, time_t when);
};

struct profilehost_plugin profilehost_load(const char *path);

/* stepd_step_rec_t of step 7.0 on node n1. */
void profilehost_record(unsigned char record[PROFILEHOST_RECORD_BYTES],
                        const char *user);

/* A series "Energy" with the column "Power". */
extern acct_gather_profile_dataset_t profilehost_energy[];

/* Of a node under load: 250 W give or take. */
uint64_t profilehost_power(unsigned *seed);

/* CPU time of this process so far. */
double profilehost_cpu_ns(void);

#endif
