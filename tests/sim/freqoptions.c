/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqoptions.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/option.h"
#include "common/base/parse.h"
#include "tests/sim/freqcontrol.h"

/* In the order of sim_freq_drivers, from 1 on. */
static const struct joule_word drivers[] = {
    {"acpi-cpufreq", 1},      {"cppc_cpufreq", 2},   {"pcc-cpufreq", 3},
    {"intel_pstate", 4},      {"intel_cpufreq", 5},  {"amd-pstate", 6},
    {"amd-pstate-guided", 7}, {"amd-pstate-epp", 8}, {NULL, 0},
};

/* Bits as in struct sim_freq_options. */
static const struct joule_word governors[] = {
    {"none", 0},
    {"performance", 1u << SIM_PERFORMANCE},
    {"powersave", 1u << SIM_POWERSAVE},
    {"userspace", 1u << SIM_USERSPACE},
    {"ondemand", 1u << SIM_ONDEMAND},
    {"conservative", 1u << SIM_CONSERVATIVE},
    {"schedutil", 1u << SIM_SCHEDUTIL},
    {NULL, 0},
};

static const struct joule_word kernels[] = {
    {"4.18", SIM_LINUX_4_18}, {"6.1", SIM_LINUX_6_1}, {"6.12", SIM_LINUX_6_12},
    {"7.2", SIM_LINUX_7_2},   {NULL, 0},
};

#define AT(field) offsetof(struct sim_freqsim_options, field)
#define KHZ_MAX   10000000

static const struct joule_option table[] = {
    {.key = "driver",
     .type = JOULE_OPTION_WORD,
     .offset = AT(driver),
     .default_text = "acpi-cpufreq",
     .words = drivers,
     .help = "what serves the policies; it decides their files"},
    {.key = "cpus",
     .type = JOULE_OPTION_TEXT,
     .offset = AT(cpus),
     .default_text = "",
     .max = SIM_FREQ_TEXT,
     .help = "a CPU list (those of --base, else 0-1)"},
    {.key = "per-policy",
     .type = JOULE_OPTION_U64,
     .offset = AT(per_policy),
     .default_text = "1",
     .min = 1,
     .max = SIM_FREQ_CPUS,
     .help = "CPUs that share a policy"},
    {.key = "min-khz",
     .type = JOULE_OPTION_U64,
     .offset = AT(min_khz),
     .default_text = "1200000",
     .min = 1,
     .max = KHZ_MAX,
     .help = "cpuinfo_min_freq of drivers without a list"},
    {.key = "max-khz",
     .type = JOULE_OPTION_U64,
     .offset = AT(max_khz),
     .default_text = "3000000",
     .min = 1,
     .max = KHZ_MAX,
     .help = "the highest frequency, with turbo or boost"},
    {.key = "nominal-khz",
     .type = JOULE_OPTION_U64,
     .offset = AT(nominal_khz),
     .default_text = "2400000",
     .min = 1,
     .max = KHZ_MAX,
     .help = "the highest without turbo or boost"},
    {.key = "table",
     .type = JOULE_OPTION_TEXT,
     .offset = AT(table),
     .default_text = "",
     .max = SIM_FREQ_TEXT,
     .help = "acpi-cpufreq: kHz,kHz,... (1500000,2000000,2600000,3000000)"},
    {.key = "governors",
     .type = JOULE_OPTION_WORDS,
     .offset = AT(freq.governors),
     .default_text = "performance,powersave,userspace,ondemand,"
                     "conservative,schedutil",
     .words = governors,
     .help = "those that the kernel has"},
    {.key = "loadable",
     .type = JOULE_OPTION_WORDS,
     .offset = AT(freq.loadable),
     .default_text = "none",
     .words = governors,
     .help = "those that it loads when they are written"},
    {.key = "governor",
     .type = JOULE_OPTION_WORD,
     .offset = AT(governor),
     .default_text = "none",
     .words = governors,
     .help = "the one at first; none: the driver's or the kernel's own"},
    {.key = "load",
     .type = JOULE_OPTION_U64,
     .offset = AT(load_pct),
     .default_text = "0",
     .min = 0,
     .max = 100,
     .help = "how busy the CPUs are, for the governors that follow it"},
    {.key = "no-hwp",
     .type = JOULE_OPTION_BOOL,
     .offset = AT(freq.no_hwp),
     .default_text = "no",
     .help = "intel_pstate without HWP: no energy preferences, can be off"},
    {.key = "kernel",
     .type = JOULE_OPTION_WORD,
     .offset = AT(freq.kernel),
     .default_text = "6.1",
     .words = kernels,
     .help = "4.18: a minimum above the maximum is refused; 6.12: limits are "
             "whole numbers, none rounded up; 7.2: so is setspeed, and shown "
             "as written"},
    {.key = "limits-delay",
     .type = JOULE_OPTION_DURATION,
     .offset = AT(freq.limits_ns),
     .default_text = "0",
     .min = 0,
     .max = 10 * JOULE_NS_PER_S,
     .help = "how long after a write limits take effect (kernels put it off)"},
    {.key = "base",
     .type = JOULE_OPTION_TEXT,
     .offset = AT(base),
     .default_text = "",
     .max = SIM_FREQ_TEXT,
     .help = "a directory as /sys/devices/system/cpu, for everything else"},
    {.key = "nodesim",
     .type = JOULE_OPTION_TEXT,
     .offset = AT(nodesim),
     .default_text = "",
     .max = SIM_FREQ_TEXT,
     .help = "the directory of a nodesim, which is told the frequencies"},
    {.key = "log",
     .type = JOULE_OPTION_TEXT,
     .offset = AT(log),
     .default_text = "",
     .max = SIM_FREQ_TEXT,
     .help = "a line for each write: ns pid name path value result"},
    {.key = NULL},
};

void sim_freqsim_options_help(void)
{
    char range[256];

    printf("usage: freqsim [--KEY VALUE]... DIR\n"
           "       freqsim --ask DIR COMMAND\n\n"
           "Simulate the frequency policies of a kernel: DIR/cpu is a\n"
           "/sys/devices/system/cpu, through FUSE.  DIR/ready appears when it\n"
           "is served.  SIGTERM and SIGINT unmount and exit 0.\n\n");
    for (const struct joule_option *row = table; row->key; row++) {
        joule_option_range(row, range, sizeof(range));
        printf("  --%-13s %s\n%*s%s%s%s%s\n", row->key, row->help, 18, "",
               range, row->default_text[0] ? " (" : "", row->default_text,
               row->default_text[0] ? ")" : "");
    }
    printf("\nCommands for --ask:\n");
    sim_freqcontrol_help();
    printf("\nExit: 0; 1 something failed; 2 wrong usage.\n");
}

static int table_parse(struct sim_freqsim_options *opt, struct joule_error *err)
{
    char copy[SIM_FREQ_TEXT + 1], *rest = copy, *word;
    size_t count = 0;
    uint64_t khz;

    if (!opt->table[0])
        return 0;
    strcpy(copy, opt->table);
    while ((word = strsep(&rest, ","))) {
        if (count == SIM_FREQ_TABLE || joule_parse_u64(word, 1, KHZ_MAX, &khz))
            return joule_error_set(err, EINVAL,
                                   "--table takes up to %d frequencies in kHz "
                                   "with commas between, not \"%s\"",
                                   SIM_FREQ_TABLE, opt->table);
        opt->freq.table_khz[count++] = (unsigned)khz;
    }
    return 0;
}

/* Into the fields of struct sim_freq_options. */
static int options_take(struct sim_freqsim_options *opt,
                        struct joule_error *err)
{
    struct sim_freq_options *freq = &opt->freq;

    freq->driver = &sim_freq_drivers[opt->driver - 1];
    freq->min_khz = (unsigned)opt->min_khz;
    freq->max_khz = (unsigned)opt->max_khz;
    freq->nominal_khz = (unsigned)opt->nominal_khz;
    freq->per_policy = (unsigned)opt->per_policy;
    freq->load_pct = (unsigned)opt->load_pct;
    freq->governor = opt->governor ? ffs((int)opt->governor) - 1 : -1;
    freq->cpus = opt->cpus[0] ? opt->cpus : opt->base[0] ? NULL : "0-1";
    return table_parse(opt, err);
}

int sim_freqsim_options_parse(struct sim_freqsim_options *opt, int argc,
                              char **argv, struct joule_error *err)
{
    char key[32];
    int i;

    *opt = (struct sim_freqsim_options){.mode = SIM_FREQ_SERVE};
    sim_freq_options_init(&opt->freq);
    joule_option_defaults(table, opt);
    for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i++) {
        const struct joule_option *row;
        char *value = strchrnul(argv[i], '=');

        if (!strcmp(argv[i], "--help")) {
            opt->mode = SIM_FREQ_HELP;
            return 0;
        }
        if (!strcmp(argv[i], "--ask")) {
            opt->mode = SIM_FREQ_ASK;
            continue;
        }
        snprintf(key, sizeof(key), "%.*s", (int)(value - argv[i] - 2),
                 argv[i] + 2);
        row = joule_option_find(table, key);
        if (!row || (!*value && i + 1 == argc))
            return joule_error_set(err, EINVAL, "%s: %s; see --help", argv[i],
                                   row ? "a value is needed"
                                       : "no such option");
        if (joule_option_set(row, opt, *value ? value + 1 : argv[++i], err))
            return -1;
    }
    if (argc - i != (opt->mode == SIM_FREQ_ASK ? 2 : 1))
        return joule_error_set(err, EINVAL,
                               opt->mode == SIM_FREQ_ASK
                                   ? "--ask takes DIR and one COMMAND"
                                   : "one directory is needed; see --help");
    opt->dir = argv[i];
    if (opt->mode == SIM_FREQ_ASK) {
        opt->command = argv[i + 1];
        return 0;
    }
    return options_take(opt, err);
}
