/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - what is wrong with the BMC: a line of "key=value" words, all of
 * them in one table.
 */
#ifndef BMCSIM_FAULT_H
#define BMCSIM_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct bmc_faults {
    /* Get Sensor Reading */
    int sens_num;     /* of this sensor only; -1: of all */
    int sens_cc;      /* completion code; 0: none */
    int sens_raw;     /* raw value; -1: the true one */
    int sens_unavail; /* 1: "reading/state unavailable" */
    int sens_noscan;  /* 1: "scanning disabled" */
    int sens_stuck;   /* 1: each sensor keeps its first raw value */
    int sens_short;   /* 1: the answer ends after the raw value */
    /* DCMI Get Power Reading */
    int dcmi_cc;
    int dcmi_w;      /* current power; -1: the true one */
    int dcmi_active; /* 0: power measurement is not active */
    int dcmi_stuck;
    int dcmi_short;
    /* every answer, or those to one network function and command */
    int netfn, cmd; /* -1: any */
    int delay_ms;   /* late; other requests are not */
    int block_ms;   /* the whole BMC does nothing else for so long */
    int drop_n;     /* no answer to the next so many */
    int drop_pct;   /* no answer to so many of a hundred */
};

/*
 * Parse a line; what it does not name is as it should be, so an empty line
 * is no fault at all.  -1 with EINVAL and a sentence, *ret unchanged.
 */
int bmc_faults_parse(const char *line, struct bmc_faults *ret,
                     struct joule_error *err);

#endif
