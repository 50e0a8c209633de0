/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy.h - the six entry points of an acct_gather_energy plugin, written
 * once over a driver row.
 *
 * A plugin is a file that defines joule_energy_driver and the three variables
 * plugin_name, plugin_type and plugin_version; the entry points are linked
 * from energy.c.  Slurm serialises all calls with one lock, so the adaptor
 * has none of its own, and each call is bounded: get_data copies from the
 * board and, in slurmstepd, reads the counters if the source has counters.
 */
#ifndef JOULE_SLURM_ENERGY_H
#define JOULE_SLURM_ENERGY_H

#include "common/base/error.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/sensor.h"

/* Who opens the source. */
enum joule_energy_role {
    JOULE_ENERGY_SAMPLER,  /* slurmd: its thread reads the source */
    JOULE_ENERGY_FOLLOWER, /* slurmstepd: counters are read; a power source
                              only lends its domains, power is the board's */
};

struct joule_energy_driver {
    const char *name; /* for log lines: "joule_rapl" */
    /* required: open the counters, or the power source, of NodeName [node]
     * below root_fd; NULL with errno and a sentence.  Must not wait for
     * hardware that may be slow. */
    struct joule_sensor *(*open)(int root_fd,
                                 const struct joule_energy_config *config,
                                 const char *node, enum joule_energy_role role,
                                 struct joule_error *err);
    /* optional, power sources: whether a step's energy is carried on from the
     * last sample with the last power; without it, it is. */
    bool (*extends)(const struct joule_energy_config *config);
    /* optional: one sentence for the log of slurmd about a source that
     * works, or 0 if there is nothing to say. */
    int (*remark)(const struct joule_sensor *source, char *buf, size_t size);
};

extern const struct joule_energy_driver joule_energy_driver;

#endif
