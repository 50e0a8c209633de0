/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regions.h - regions of a step's processes (lib/joule.h), collected by slurmstepd
 * into tables of the step's profile.
 *
 *     regions = joule_regions_create(&options, &err);      as root
 *     ...
 *     joule_regions_destroy(regions);                      before the writer's end
 *
 * A thread waits at the socket RUNDIR/NODE/regions/JOB.STEP, which only the step's
 * user can open.  While a process is registered the thread reads its CPU time at
 * each period of the energy series, and its regions at least once a second: as
 * fast as rows are written, and not more than some ten thousand a second.  What
 * does not fit stays as one sum for each name.  When a process has ended, what
 * was left in its memory follows.
 *
 * Tables (doc/hdf5-format.md): Regions, RegionNames, RegionProcesses, RegionCPU.
 * They are made when the first process registers.
 *
 * Bounds of a step on a node: JOULE_REGIONS_PROCESSES at a time (fewer where the
 * limit of descriptors does not let slurmstepd have two for each, and 256 for
 * itself), of 1 MiB each that is the step's memory; JOULE_REGIONS_NAMES names.
 */
#ifndef JOULE_STEP_REGIONS_H
#define JOULE_STEP_REGIONS_H

#include <sys/types.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/profile/writer.h"

#define JOULE_REGIONS_PROCESSES 4096
#define JOULE_REGIONS_NAMES     4096 /* more are "(other names)" */

struct joule_regions;

struct joule_regions_options {
    int root_fd;      /* that RUNDIR lies below; for the call */
    const char *node; /* likewise */
    const char *name; /* JOB.STEP; likewise */
    uid_t uid;
    gid_t gid;
    const struct joule_clock *clock;
    struct joule_writer *writer; /* borrowed until destroy */
    int64_t period_ns;           /* of the energy series; 0: ask */
    int64_t (*ask_period_ns)(void);
};

/* NULL with a sentence and errno ENOMEM, or of the socket. */
struct joule_regions *
joule_regions_create(const struct joule_regions_options *opt,
                     struct joule_error *err);

/* Read what is left, and end the thread; takes 2 s at most.  Returns how many
 * processes there was no room for; of NULL 0. */
size_t joule_regions_destroy(struct joule_regions *regions);

#endif
