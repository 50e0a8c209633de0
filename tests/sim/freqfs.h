/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqfs.h - a struct sim_freq as /sys/devices/system/cpu, through FUSE.
 *
 * Its own files and directories, cpuN/cpufreq links, and beside them what is
 * in another directory (the topology of CPUs, say), read only, as far as it
 * has no name of ours.  Files are 4096 bytes long, cannot be made or removed,
 * and every read and write reaches the state at that moment.  An offline CPU
 * has no topology and no cache.
 */
#ifndef SIM_FREQFS_H
#define SIM_FREQFS_H

#include "common/base/error.h"
#include "tests/sim/freqfault.h"
#include "tests/sim/freqfile.h"

struct sim_freqfs;

struct sim_freqfs_options {
    struct sim_freq *freq;
    struct sim_freqfault *fault;
    int base_fd;          /* the other directory, or -1 */
    const bool *readonly; /* files cannot be opened for writing (EROFS) */
    /* After each change, before who made it hears of it. */
    void (*changed)(void *arg);
    void *arg;
};

/* Mount at [path]; what the options point to must outlive it.  NULL with
 * errno and a sentence. */
struct sim_freqfs *sim_freqfs_create(const char *path,
                                     const struct sim_freqfs_options *opt,
                                     struct joule_error *err);
/* Unmount.  NULL is a no-op. */
void sim_freqfs_destroy(struct sim_freqfs *fs);

/* See fusemount.h. */
int sim_freqfs_fd(const struct sim_freqfs *fs);
int sim_freqfs_serve(struct sim_freqfs *fs);

#endif
