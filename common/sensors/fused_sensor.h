/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fused_sensor.h - a source of energy made of two: the counters (RAPL), read
 * whenever it is asked, and a BMC, which a thread of its own asks once a
 * second, so that nobody who asks this source ever waits for the BMC.
 *
 * Its domains are "Node" (in the total), "BMC", which is the BMC's reading of
 * the node as it was, one for each other label of the BMC, whose power holds
 * until the next reading, and one for each counter, in uJ.  What becomes of
 * them is arithmetic of common/energy/fused.h.
 *
 * A process that follows the board has such a source too, without the thread:
 * it goes on with what slurmd has published, by the counters that it reads
 * itself.
 */
#ifndef JOULE_SENSORS_FUSED_SENSOR_H
#define JOULE_SENSORS_FUSED_SENSOR_H

#include "common/base/clock.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/sensor.h"

enum {
    JOULE_FUSED_SENSOR_NODE,
    JOULE_FUSED_SENSOR_BMC,
    JOULE_FUSED_SENSOR_LABELS
};

struct joule_fused_sensor_options {
    const struct joule_clock *clock; /* required; kept */
    struct joule_sensor *counters;   /* owned by the source then; NULL: none */
    struct joule_sensor *bmc;        /* required; owned by the source then */
    int64_t bmc_period_ns; /* how often the BMC is asked; 0: never, [bmc] lends
                              its domains */
    int64_t gap_ns; /* a BMC without a measurement for longer does not answer */
};

/*
 * read_power gives energy as sensor.h says: EAGAIN as long as nothing is known.
 * With 0 or EAGAIN there may be a sentence: why the BMC could not be read.  The
 * thread is started by the first read_power, and ends with the first one after
 * interrupt().
 * NULL with errno and a sentence on failure, and then the sources are still the
 * caller's:
 *   EINVAL  a label of the BMC has the name of another domain
 *   E2BIG   there are too many domains
 */
struct joule_sensor *
joule_fused_sensor_create(const struct joule_fused_sensor_options *opt,
                          struct joule_error *err);

/* The one of a process that follows the board, as acct_gather.conf says: the
 * node's counters below root_fd, if it has any, and the labels.  NULL with
 * errno and a sentence. */
struct joule_sensor *
joule_fused_sensor_follower_open(int root_fd,
                                 const struct joule_energy_config *config,
                                 struct joule_error *err);

#endif
