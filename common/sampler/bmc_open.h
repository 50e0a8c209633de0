/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bmc_open.h - the BMC of a node as acct_gather.conf says, read by the
 * installed reader process.
 */
#ifndef JOULE_SAMPLER_BMC_OPEN_H
#define JOULE_SAMPLER_BMC_OPEN_H

#include "common/sampler/config.h"
#include "common/source/source.h"

/* The source of reader.h for NodeName [node], asked each period_ns;
 * files below root_fd.  NULL with errno and a sentence: of
 * joule_ipmi_config_make and joule_reader_create, or that JouleIPMIReader is a
 * file that others than root could have put there. */
struct joule_source *joule_bmc_open(int root_fd,
                                    const struct joule_config *config,
                                    const char *node, int64_t period_ns,
                                    struct joule_error *err);

#endif
