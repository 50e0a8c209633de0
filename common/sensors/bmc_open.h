/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bmc_open.h - the BMC of a node as acct_gather.conf says, read by the
 * installed reader process.
 */
#ifndef JOULE_SENSORS_BMC_OPEN_H
#define JOULE_SENSORS_BMC_OPEN_H

#include "common/sensors/energy_config.h"
#include "common/sensors/sensor.h"

/* The source of ipmi_helper.h for NodeName [node], asked each period_ns;
 * files below root_fd.  NULL with errno and a sentence: of
 * joule_ipmi_config_make and joule_ipmi_helper_create, or that JouleIPMIReader
 * is a file that others than root could have put there. */
struct joule_sensor *joule_bmc_open(int root_fd,
                                    const struct joule_energy_config *config,
                                    const char *node, int64_t period_ns,
                                    struct joule_error *err);

#endif
