/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/spank/joule/spank_joule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

#define OFFSET(field) offsetof(struct joule_spank_options, field)

static const struct joule_word limits_words[] = {
    {"hardware", JOULE_LIMITS_HARDWARE},
    {"site", JOULE_LIMITS_SITE},
    {NULL, 0},
};

static int check_path(const void *field, struct joule_error *reason)
{
    (void)reason;
    if (*(const char *)field == '/')
        return 0;
    errno = EINVAL;
    return -1;
}

const struct joule_option joule_spank_option_table[] = {
    {.key = "cpufreq",
     .type = JOULE_OPTION_BOOL,
     .offset = OFFSET(cpufreq),
     .default_text = "yes",
     .help = "whether --cpu-freq is this plugin's; no: all is left to Slurm"},
    {.key = "core",
     .type = JOULE_OPTION_BOOL,
     .offset = OFFSET(core),
     .default_text = "off",
     .help = "whether Slurm's own code for --cpu-freq goes on working"},
    {.key = "batch",
     .type = JOULE_OPTION_BOOL,
     .offset = OFFSET(batch),
     .default_text = "no",
     .help = "set frequencies for batch scripts and interactive steps, too"},
    {.key = "strict",
     .type = JOULE_OPTION_BOOL,
     .offset = OFFSET(strict),
     .default_text = "no",
     .help = "a step whose request cannot be fulfilled fails"},
    {.key = "limits",
     .type = JOULE_OPTION_WORD,
     .offset = OFFSET(limits),
     .default_text = "site",
     .words = limits_words,
     .help = "how far a request may go: to the limits that were set before, or "
             "to what the hardware has"},
    {.key = "lock_wait",
     .type = JOULE_OPTION_DURATION,
     .offset = OFFSET(lock_wait_ns),
     .default_text = "5s",
     .min = 10 * JOULE_NS_PER_MS,
     .max = 60 * JOULE_NS_PER_S,
     .help = "how long a step waits for others that set frequencies"},
    {.key = "keeper_period",
     .type = JOULE_OPTION_DURATION,
     .offset = OFFSET(keeper_period_ns),
     .default_text = "2s",
     .min = 100 * JOULE_NS_PER_MS,
     .max = 60 * JOULE_NS_PER_S,
     .help = "how often slurmd looks for steps that ended without giving back"},
    {.key = "keeper",
     .type = JOULE_OPTION_TEXT,
     .offset = OFFSET(keeper),
     .default_text = JOULE_LIBEXECDIR "/joule-cpufreq-keeper",
     .max = JOULE_SPANK_PATH_MAX,
     .check = check_path,
     .range = "an absolute path",
     .help = "the program that slurmd starts to look for them"},
    {.key = "hooks",
     .type = JOULE_OPTION_TEXT,
     .offset = OFFSET(hooks),
     .default_text = JOULE_HOOKSDIR "/libjoule_hooks.so",
     .max = JOULE_SPANK_PATH_MAX,
     .check = check_path,
     .range = "an absolute path",
     .help = "the library that --energy-regions puts into a step's programs"},
    {.key = "waits",
     .type = JOULE_OPTION_TEXT,
     .offset = OFFSET(waits),
     .default_text = JOULE_HOOKSDIR "/libjoule_waits.so",
     .max = JOULE_SPANK_PATH_MAX,
     .check = check_path,
     .range = "an absolute path",
     .help = "the library that --energy-waits puts into a step's programs"},
    {.key = "report",
     .type = JOULE_OPTION_TEXT,
     .offset = OFFSET(report),
     .default_text = JOULE_LIBEXECDIR "/joule-report",
     .max = JOULE_SPANK_PATH_MAX,
     .check = check_path,
     .range = "an absolute path",
     .help = "the program that srun starts when a step with --energy-waits is "
             "over"},
    {.key = NULL},
};

static int set_one(struct joule_spank_options *o, const char *text,
                   struct joule_error *err)
{
    const char *value = strchr(text, '=');
    const struct joule_option *row = NULL;
    char key[32];

    if (value && (size_t)(value - text) < sizeof(key)) {
        snprintf(key, sizeof(key), "%.*s", (int)(value - text), text);
        row = joule_option_find(joule_spank_option_table, key);
    }
    if (!row)
        return joule_error_set(err, EINVAL, "%s is no option of spank_joule",
                               text);
    return joule_option_set(row, o, value + 1, err);
}

int joule_spank_options_parse(struct joule_spank_options *ret, int argc,
                              char *const *argv, struct joule_error *err)
{
    int rc = 0, errnum = 0;

    memset(ret, 0, sizeof(*ret));
    joule_option_defaults(joule_spank_option_table, ret);
    for (int i = 0; i < argc; i++) {
        if (set_one(ret, argv[i], rc == 0 ? err : NULL) == 0)
            continue;
        if (rc == 0)
            errnum = errno;
        rc = -1;
    }
    errno = errnum;
    return rc;
}
