/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sampler/config.h"

#include <errno.h>
#include <stddef.h>

#include "common/base/clock.h"
#include "common/source/source.h"

#define PACKAGE JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE)
#define DRAM    JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM)
#define PSYS    JOULE_DOMAIN_BIT(JOULE_DOMAIN_PSYS)

static const struct joule_word total_words[] = {
    {"package", PACKAGE},
    {"dram", DRAM},
    {"psys", PSYS},
    {NULL, 0},
};

/* PSYS holds package and DRAM: a sum of them would count energy twice.
 * DRAM alone is no node total. */
static int total_check(const void *field)
{
    unsigned bits = *(const unsigned *)field;

    if (bits == PACKAGE || bits == (PACKAGE | DRAM) || bits == PSYS)
        return 0;
    errno = EINVAL;
    return -1;
}

const struct joule_option joule_config_options[] = {
    {.key = "JouleSamplePeriod",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct joule_config, sample_period_ns),
     .default_text = "1s",
     .min = 10 * JOULE_NS_PER_MS,
     .max = 60 * JOULE_NS_PER_S,
     .help = "how often slurmd reads the energy counters"},
    {.key = "JouleRAPLDomains",
     .type = JOULE_OPTION_WORDS,
     .offset = offsetof(struct joule_config, rapl_total_kinds),
     .default_text = "package,dram",
     .words = total_words,
     .check = total_check,
     .range = "package,dram or package or psys",
     .help = "which RAPL domains make the node's energy"},
    {0},
};
