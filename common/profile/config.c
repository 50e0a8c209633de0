/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/config.h"

#include <errno.h>
#include <stddef.h>

#include "common/base/clock.h"
#include "common/base/parse.h"

#define SHUFFLE 0x400u /* beside 1 << level */

static const struct joule_word series_words[] = {
    {"All", JOULE_PROFILE_ALL},
    {"None", JOULE_PROFILE_NONE},
    {"Energy", JOULE_PROFILE_ENERGY},
    {"Task", JOULE_PROFILE_TASK},
    {"Filesystem", JOULE_PROFILE_FILESYSTEM},
    {"Lustre", JOULE_PROFILE_FILESYSTEM}, /* its name in Slurm before 15.08 */
    {"Network", JOULE_PROFILE_NETWORK},
    {NULL, 0},
};

static const struct joule_word pack_words[] = {
    {"shuffle", SHUFFLE}, {"none", 1u << 0}, {"1", 1u << 1}, {"2", 1u << 2},
    {"3", 1u << 3},       {"4", 1u << 4},    {"5", 1u << 5}, {"6", 1u << 6},
    {"7", 1u << 7},       {"8", 1u << 8},    {"9", 1u << 9}, {NULL, 0},
};

static int check_path(const void *field, struct joule_error *reason)
{
    const char *path = field;

    if (path[0] == '\0' || path[0] == '/')
        return 0;
    return joule_error_set(reason, EINVAL, "it is not an absolute path");
}

static int check_series(const void *field, struct joule_error *reason)
{
    unsigned bits = *(const unsigned *)field;

    (void)reason;
    if (bits == JOULE_PROFILE_ALL || bits == JOULE_PROFILE_NONE ||
        !(bits & JOULE_PROFILE_NONE))
        return 0;
    errno = EINVAL;
    return -1;
}

static int check_pack(const void *field, struct joule_error *reason)
{
    unsigned bits = *(const unsigned *)field, levels = bits & ~SHUFFLE;

    (void)reason;
    if (levels && !(levels & (levels - 1)) && bits != (SHUFFLE | 1u))
        return 0;
    errno = EINVAL;
    return -1;
}

/* A power of two: Slurm's readers read 10 rows at a time, ours whole chunks. */
static int check_chunk(const void *field, struct joule_error *reason)
{
    uint64_t rows = *(const uint64_t *)field;

    (void)reason;
    if (rows == 0 || (rows >= 64 && !(rows & (rows - 1))))
        return 0;
    errno = EINVAL;
    return -1;
}

static int check_period(const void *field, struct joule_error *reason)
{
    int64_t ns = *(const int64_t *)field;

    (void)reason;
    if (ns == 0 || ns >= JOULE_PROFILE_PERIOD_MIN_NS)
        return 0;
    errno = ERANGE;
    return -1;
}

static int check_states(const void *field, struct joule_error *reason)
{
    int64_t ns = *(const int64_t *)field;

    (void)reason;
    if (ns == 0 || ns >= JOULE_PROFILE_STATES_MIN_NS)
        return 0;
    errno = ERANGE;
    return -1;
}

const struct joule_option joule_profile_options[] = {
    {.key = "ProfileHDF5Dir",
     .type = JOULE_OPTION_TEXT,
     .offset = offsetof(struct joule_profile_config, dir),
     .default_text = "",
     .max = JOULE_PROFILE_DIR_SIZE - 1,
     .check = check_path,
     .help = "directory of the profiles, one directory in it for each user"},
    {.key = "ProfileHDF5Default",
     .type = JOULE_OPTION_WORDS,
     .offset = offsetof(struct joule_profile_config, default_bits),
     .default_text = "None",
     .words = series_words,
     .check = check_series,
     .range = "All, None, or of Energy, Task, Filesystem, Network, separated "
              "by commas",
     .help = "what is profiled of jobs that do not say --profile"},
    {.key = "JouleProfileChunk",
     .type = JOULE_OPTION_U64,
     .offset = offsetof(struct joule_profile_config, chunk_rows),
     .default_text = "0",
     .min = 0,
     .max = 65536,
     .check = check_chunk,
     .range = "a power of two from 64 to 65536, or 0: by the period",
     .help = "rows that are compressed and read together"},
    {.key = "JouleProfileCompression",
     .type = JOULE_OPTION_WORDS,
     .offset = offsetof(struct joule_profile_config, compression),
     .default_text = "shuffle,1",
     .words = pack_words,
     .check = check_pack,
     .range = "none, or a level from 1 to 9, with shuffle or without it "
              "(shuffle,1)",
     .help = "how the tables are compressed"},
    {.key = "JouleProfileFlush",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct joule_profile_config, flush_ns),
     .default_text = "10s",
     .min = JOULE_NS_PER_S / 2,
     .max = 600 * JOULE_NS_PER_S,
     .help = "how often a profile is brought to disk: what is lost at most "
             "in a crash"},
    {.key = "JouleProfileExtern",
     .type = JOULE_OPTION_BOOL,
     .offset = offsetof(struct joule_profile_config, extern_step),
     .default_text = "no",
     .help = "whether extern steps are profiled by ProfileHDF5Default"},
    {.key = "JouleProfilePeriod",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct joule_profile_config, period_ns),
     .default_text = "0s",
     .min = 0,
     .max = JOULE_PROFILE_PERIOD_MAX_NS,
     .check = check_period,
     .range = "10ms to 1s, or 0: as --acctg-freq says",
     .help = "period of the energy series"},
    {.key = "JouleProfilePeriodMin",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct joule_profile_config, period_min_ns),
     .default_text = "1s",
     .min = JOULE_PROFILE_PERIOD_MIN_NS,
     .max = JOULE_PROFILE_PERIOD_MAX_NS,
     .help = "shortest period that a job may wish with JOULE_PROFILE_PERIOD"},
    {.key = "JouleProfileStates",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct joule_profile_config, states_ns),
     .default_text = "0s",
     .min = 0,
     .max = JOULE_PROFILE_STATES_MAX_NS,
     .check = check_states,
     .range = "100ms to 1h, or 0: where a job wishes it",
     .help = "period of the C- and P-states of a step's CPUs"},
    {.key = "JouleProfileConverter",
     .type = JOULE_OPTION_TEXT,
     .offset = offsetof(struct joule_profile_config, converter),
     .default_text = "",
     .max = JOULE_PROFILE_DIR_SIZE - 1,
     .check = check_path,
     .range = "an absolute path",
     .help = "program to start in place of the installed "
             "joule-profile-convert"},
    {0},
};

struct joule_pack joule_profile_pack(const struct joule_profile_config *config)
{
    struct joule_pack pack = {.shuffle = config->compression & SHUFFLE};
    int level;

    for (level = 1; level <= 9; level++)
        if (config->compression & (1u << level))
            pack.level = level;
    return pack;
}

int joule_profile_period(const struct joule_profile_config *config,
                         const char *wish, int64_t *ret_ns,
                         struct joule_error *err)
{
    int64_t least_ns = config->period_min_ns, ns = config->period_ns;
    int rc = 0;

    if (wish && joule_parse_duration_ns(wish, JOULE_PROFILE_PERIOD_MIN_NS,
                                        JOULE_PROFILE_PERIOD_MAX_NS, &ns) < 0)
        rc = joule_error_set(err, errno,
                             "JOULE_PROFILE_PERIOD=%.64s is not a period "
                             "from 10ms to 1s",
                             wish);
    /* What the admin has for all jobs, any job may wish. */
    if (config->period_ns && config->period_ns < least_ns)
        least_ns = config->period_ns;
    *ret_ns = (ns + least_ns - 1) / least_ns * least_ns;
    return rc;
}

int joule_profile_states(const struct joule_profile_config *config,
                         const char *wish, int64_t *ret_ns,
                         struct joule_error *err)
{
    int64_t least_ns = config->period_min_ns, ns = config->states_ns;
    int rc = 0;

    if (wish && joule_parse_duration_ns(wish, JOULE_PROFILE_STATES_MIN_NS,
                                        JOULE_PROFILE_STATES_MAX_NS, &ns) < 0)
        rc = joule_error_set(err, errno,
                             "JOULE_PROFILE_STATES=%.64s is not a period "
                             "from 100ms to 1h",
                             wish);
    /* As for the period of energy. */
    if (config->states_ns && config->states_ns < least_ns)
        least_ns = config->states_ns;
    *ret_ns = ns && ns < least_ns ? least_ns : ns;
    return rc;
}
