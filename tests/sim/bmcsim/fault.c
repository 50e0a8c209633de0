/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/fault.h"

#include <errno.h>
#include <string.h>

#include "tests/sim/bmcsim/words.h"

#define FIELD(name) offsetof(struct bmc_faults, name)

static const struct sim_word faults[] = {
    {"sens_num", FIELD(sens_num), -1, 255, -1},
    {"sens_cc", FIELD(sens_cc), 0, 255, 0},
    {"sens_raw", FIELD(sens_raw), -1, 255, -1},
    {"sens_unavail", FIELD(sens_unavail), 0, 1, 0},
    {"sens_noscan", FIELD(sens_noscan), 0, 1, 0},
    {"sens_stuck", FIELD(sens_stuck), 0, 1, 0},
    {"sens_short", FIELD(sens_short), 0, 1, 0},
    {"dcmi_cc", FIELD(dcmi_cc), 0, 255, 0},
    {"dcmi_w", FIELD(dcmi_w), -1, 65535, -1},
    {"dcmi_active", FIELD(dcmi_active), 0, 1, 1},
    {"dcmi_stuck", FIELD(dcmi_stuck), 0, 1, 0},
    {"dcmi_short", FIELD(dcmi_short), 0, 1, 0},
    {"netfn", FIELD(netfn), -1, 63, -1},
    {"cmd", FIELD(cmd), -1, 255, -1},
    {"delay_ms", FIELD(delay_ms), 0, 600000, 0},
    {"block_ms", FIELD(block_ms), 0, 600000, 0},
    {"drop_n", FIELD(drop_n), 0, 1000000, 0},
    {"drop_pct", FIELD(drop_pct), 0, 100, 0},
    {NULL, 0, 0, 0, 0},
};

int bmc_faults_parse(const char *line, struct bmc_faults *ret,
                     struct joule_error *err)
{
    struct bmc_faults parsed;

    if (sim_words_parse(faults, line, &parsed, err))
        return -1;
    *ret = parsed;
    return 0;
}
