/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/spank/joule_cpufreq/cpufreq_series.h"

#include <math.h>
#include <time.h>

#include "plugins/slurm_abi/slurm_abi.h"

/* As Slurm takes it: 8 bytes a column. */
struct row {
    uint64_t min_khz, max_khz;
    double khz;
};

void joule_spank_series_begin(struct joule_spank_series *s, uint32_t low_khz,
                              uint32_t high_khz)
{
    acct_gather_profile_dataset_t fields[] = {
        {"MinKHz", JOULE_PROFILE_FIELD_UINT64},
        {"MaxKHz", JOULE_PROFILE_FIELD_UINT64},
        {"KHz", JOULE_PROFILE_FIELD_DOUBLE},
        {NULL, JOULE_PROFILE_FIELD_END},
    };

    s->dataset = -1;
    s->low_khz = low_khz;
    s->high_khz = high_khz;
    if (!acct_gather_profile_g_create_dataset ||
        !acct_gather_profile_g_add_sample_data ||
        !acct_gather_profile_g_is_active ||
        !acct_gather_profile_g_is_active(ACCT_GATHER_PROFILE_ENERGY))
        return;
    s->dataset = acct_gather_profile_g_create_dataset(
        "CPUFreq", JOULE_PROFILE_NO_PARENT, fields);
    if (s->dataset < 0)
        slurm_error("joule_cpufreq: the profile plugin refuses the series of "
                    "the frequency; this step has none");
}

void joule_spank_series_add(void *series, uint32_t khz)
{
    const struct joule_spank_series *s = series;
    struct row row = {s->low_khz, s->high_khz, khz ? khz : (double)NAN};

    if (s->dataset >= 0)
        acct_gather_profile_g_add_sample_data(s->dataset, &row, time(NULL));
}
