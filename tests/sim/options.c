/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "tests/sim/control.h"
#include "tests/sim/number.h"

/* The last CPU time of a job is read so long before its end at most. */
#define JOBS_NS_MAX (10 * JOULE_NS_PER_MS)

/* A parser of a value: 0, or -1 and the value is not what [what] says. */
typedef int (*parse_f)(struct sim_options *opt, const char *text);

#define MACHINE_UNSIGNED(name, field, min, max)                                \
    static int name(struct sim_options *opt, const char *text)                 \
    {                                                                          \
        uint64_t value;                                                        \
                                                                               \
        if (joule_parse_u64(text, min, max, &value))                           \
            return -1;                                                         \
        opt->machine.field = (unsigned)value;                                  \
        return 0;                                                              \
    }

MACHINE_UNSIGNED(parse_packages, packages, 1, SIM_PACKAGES_MAX)
MACHINE_UNSIGNED(parse_dies, dies, 1, 64)
MACHINE_UNSIGNED(parse_threads, threads, 1, 8)
MACHINE_UNSIGNED(parse_cpus, cpus, 1, 8192)
MACHINE_UNSIGNED(parse_esu, esu, 0, 31)
MACHINE_UNSIGNED(parse_dram_esu, dram_esu, 0, 31)

#define MACHINE_FLAG(name, field)                                              \
    static int name(struct sim_options *opt, const char *text)                 \
    {                                                                          \
        (void)text;                                                            \
        opt->machine.field = true;                                             \
        return 0;                                                              \
    }

MACHINE_FLAG(parse_sparse, sparse)
MACHINE_FLAG(parse_no_physical_id, no_physical_id)
MACHINE_FLAG(parse_no_dram, no_dram)
MACHINE_FLAG(parse_pp0, pp0)
MACHINE_FLAG(parse_pp1, pp1)
MACHINE_FLAG(parse_psys, psys)
MACHINE_FLAG(parse_hypervisor, hypervisor)
MACHINE_FLAG(parse_dead, dead)
MACHINE_FLAG(parse_powercap, powercap)
MACHINE_FLAG(parse_no_msr, no_msr)
MACHINE_FLAG(parse_cray, cray)
MACHINE_FLAG(parse_grace, grace)

#define STRING(name, field)                                                    \
    static int name(struct sim_options *opt, const char *text)                 \
    {                                                                          \
        opt->field = text;                                                     \
        return 0;                                                              \
    }

STRING(parse_cpu_numbers, machine.cpu_numbers)
STRING(parse_offline, machine.offline)
STRING(parse_start, machine.start)
STRING(parse_load, load)
static int parse_stat(struct sim_options *opt, const char *text)
{
    (void)text;
    opt->stat = true;
    return 0;
}

STRING(parse_jobs, jobs)
STRING(parse_jobs_also, jobs_also)
STRING(parse_trace, trace)
STRING(parse_wattmeter, wattmeter)

static int parse_vendor(struct sim_options *opt, const char *text)
{
    static const struct joule_word words[] = {
        {"intel", 1}, {"amd", 2}, {"hygon", 4}, {NULL, 0}};
    unsigned bit;

    if (joule_parse_words(text, words, &bit) || (bit & (bit - 1)))
        return -1;
    opt->machine.vendor = bit == 1 ? SIM_INTEL : bit == 2 ? SIM_AMD : SIM_HYGON;
    return 0;
}

/* cpuid holds no more than 0xf + 0xff and 0xff. */
static int parse_family(struct sim_options *opt, const char *text)
{
    uint64_t value;

    if (joule_parse_hex64(text, &value) || value > 0x10e)
        return -1;
    opt->machine.family = (unsigned)value;
    return 0;
}

static int parse_model(struct sim_options *opt, const char *text)
{
    uint64_t value;

    if (joule_parse_hex64(text, &value) || value > 0xff)
        return -1;
    opt->machine.model = (unsigned)value;
    return 0;
}

static int parse_width(struct sim_options *opt, const char *text)
{
    if (strcmp(text, "32") && strcmp(text, "64"))
        return -1;
    opt->machine.width = text[0] == '3' ? 32 : 64;
    return 0;
}

static int parse_filtering(struct sim_options *opt, const char *text)
{
    bool on = true;

    if (text && joule_parse_bool(text, &on))
        return -1;
    opt->machine.filtering = on ? SIM_FILTERING_ON : SIM_FILTERING_OFF;
    return 0;
}

static int parse_step(struct sim_options *opt, const char *text)
{
    uint64_t us;

    if (joule_parse_u64(text, 1, 1000000, &us))
        return -1;
    opt->step_ns = (int64_t)us * 1000;
    return 0;
}

static int parse_idle(struct sim_options *opt, const char *text)
{
    return sim_parse_uw(text, &opt->idle_uw);
}

static int parse_busy(struct sim_options *opt, const char *text)
{
    return sim_parse_uw(text, &opt->busy_uw);
}

static int parse_ghz(const char *text, int64_t *ret_khz)
{
    int64_t khz;

    if (sim_parse_fixed(text, 6, 100000000, &khz) || khz < 1)
        return -1;
    *ret_khz = khz;
    return 0;
}

static int parse_freq_ghz(struct sim_options *opt, const char *text)
{
    return parse_ghz(text, &opt->khz);
}

static int parse_freq_ref(struct sim_options *opt, const char *text)
{
    return parse_ghz(text, &opt->ref_khz);
}

static int parse_dram_share(struct sim_options *opt, const char *text)
{
    return sim_parse_ppm(text, &opt->dram_ppm);
}

static int parse_trace_repeat(struct sim_options *opt, const char *text)
{
    (void)text;
    opt->trace_repeat = true;
    return 0;
}

static int parse_cgroup(struct sim_options *opt, const char *text)
{
    if (opt->cgroup_count == SIM_MEMBERS_MAX)
        return -1;
    opt->cgroups[opt->cgroup_count++] = text;
    return 0;
}

static int parse_pid(struct sim_options *opt, const char *text)
{
    uint64_t pid;

    if (opt->pid_count == SIM_MEMBERS_MAX ||
        joule_parse_u64(text, 1, INT_MAX, &pid))
        return -1;
    opt->pids[opt->pid_count++] = (pid_t)pid;
    return 0;
}

static int parse_log_ms(struct sim_options *opt, const char *text)
{
    uint64_t ms;

    if (joule_parse_u64(text, 1, 3600000, &ms))
        return -1;
    opt->log_ns = (int64_t)ms * JOULE_NS_PER_MS;
    return 0;
}

static int parse_ready_fd(struct sim_options *opt, const char *text)
{
    uint64_t fd;

    if (joule_parse_u64(text, 0, INT_MAX, &fd))
        return -1;
    opt->ready_fd = (int)fd;
    return 0;
}

enum arg { NO_ARG, ARG, MAYBE_ARG };

static const struct row {
    const char *name;
    enum arg arg;
    const char *value; /* for --help */
    parse_f parse;
    const char *what; /* completes "--NAME takes ..." */
    const char *help;
} rows[] = {
    {"vendor", ARG, "V", parse_vendor, "intel, amd or hygon",
     "intel (default), amd or hygon"},
    {"family", ARG, "N", parse_family, "a CPU family up to 0x10e",
     "CPU family, decimal or 0x (default 6, AMD 0x19, Hygon 0x18)"},
    {"model", ARG, "N", parse_model, "a CPU model up to 0xff",
     "CPU model (default 0x55 SKX, AMD 0x01 Milan); it decides units, width"},
    {"packages", ARG, "N", parse_packages, "a number from 1 to 64",
     "packages (2)"},
    {"dies", ARG, "N", parse_dies, "a number from 1 to 64",
     "dies per package (1); Intel: one set of counters each"},
    {"threads", ARG, "N", parse_threads, "a number from 1 to 8",
     "threads per core (1)"},
    {"cpus", ARG, "N", parse_cpus, "a number from 1 to 8192",
     "logical CPUs in all (as the host, rounded up to fit)"},
    {"sparse", NO_ARG, "", parse_sparse, "", "CPUs are numbered 1, 3, 5, ..."},
    {"cpu-numbers", ARG, "LIST", parse_cpu_numbers, "",
     "the CPUs by number, in place of --cpus"},
    {"offline", ARG, "LIST", parse_offline, "", "CPUs that are offline"},
    {"no-physical-id", NO_ARG, "", parse_no_physical_id, "",
     "cpuinfo without physical id, siblings, core id (sysfs keeps them)"},
    {"hypervisor", NO_ARG, "", parse_hypervisor, "",
     "\"hypervisor\" among the flags of cpuinfo"},
    {"esu", ARG, "N", parse_esu, "a number from 0 to 31",
     "energy unit 2^-N J of the unit register (by the model)"},
    {"dram-esu", ARG, "N", parse_dram_esu, "a number from 0 to 31",
     "DRAM counts 2^-N J (by the model: 16 on HSX..ICX, KNL; else as --esu)"},
    {"width", ARG, "BITS", parse_width, "32 or 64",
     "where counters wrap (32; AMD from Zen 4 on 64)"},
    {"start", ARG, "TICKS", parse_start, "",
     "first raw value of every counter, N or wrap-N (1000000)"},
    {"no-dram", NO_ARG, "", parse_no_dram, "", "no DRAM counter"},
    {"pp0", NO_ARG, "", parse_pp0, "", "PP0 counter: 70 % of package"},
    {"pp1", NO_ARG, "", parse_pp1, "", "PP1 counter: 5 % of package"},
    {"psys", NO_ARG, "", parse_psys, "",
     "PSYS counter on package 0: 110 % of the node + 20 W"},
    {"filtering", MAYBE_ARG, "[=on|off]", parse_filtering, "on or off",
     "energy filtering: MSR 0xBC exists and is on (values stay exact)"},
    {"powercap", NO_ARG, "", parse_powercap, "",
     "the counters in sys/class/powercap, too"},
    {"no-msr", NO_ARG, "", parse_no_msr, "", "no MSR devices"},
    {"cray", NO_ARG, "", parse_cray, "",
     "sys/cray/pm_counters: whole J of the node, and of parts, ten times a "
     "second"},
    {"grace", NO_ARG, "", parse_grace, "",
     "power meters in sys/class/hwmon, as NVIDIA Grace has: the packages are "
     "modules"},
    {"dead", NO_ARG, "", parse_dead, "", "counters read 0 and never move"},
    {"step-us", ARG, "US", parse_step, "1 to 1000000",
     "counters move every so many us (1000)"},
    {"idle", ARG, "W", parse_idle, "watts, 0 to 100000",
     "floor of the whole node (100)"},
    {"busy", ARG, "W", parse_busy, "watts, 0 to 100000",
     "power of a busy CPU at the reference frequency (10)"},
    {"freq-ghz", ARG, "F", parse_freq_ghz, "GHz above 0, up to 100",
     "frequency of the CPUs: busy x (F/R)^3 (as --freq-ref)"},
    {"freq-ref", ARG, "R", parse_freq_ref, "GHz above 0, up to 100",
     "reference frequency (2.4)"},
    {"dram-share", ARG, "X", parse_dram_share, "a fraction from 0 to 1",
     "part of the energy that is DRAM's (0.15; 0 without DRAM counter, where"
     " a share shows up nowhere)"},
    {"load", ARG, "SPEC", parse_load, "",
     "in place of the floor: const:W, square:LOW:HIGH:PERIOD_S[:DUTY],"
     " ramp:LOW:HIGH:PERIOD_S"},
    {"trace", ARG, "FILE", parse_trace, "",
     "in place of the floor: lines \"seconds,watts\", linear in between, two"
     " at one time are a step, the last one holds"},
    {"trace-repeat", NO_ARG, "", parse_trace_repeat, "",
     "the trace begins again at its end"},
    {"cgroup", ARG, "PATH", parse_cgroup, "at most 64 directories",
     "on top: --busy for its CPU time from now on; repeatable"},
    {"pid", ARG, "PID", parse_pid, "at most 64 process ids",
     "the same for a process and its descendants; repeatable"},
    {"jobs", ARG, "PATH", parse_jobs, "",
     "the group of a node of Slurm: --busy, times an intensity, for the CPU "
     "time"
     " of each job below it and of the rest"},
    {"jobs-also", ARG, "PATH", parse_jobs_also, "",
     "the same group in another hierarchy of v1: a job is there while it has"
     " a group in one of them"},
    {"stat", NO_ARG, "", parse_stat, "",
     "the /proc/stat also without --jobs: what cgroups and processes used"},
    {"wattmeter", ARG, "FILE", parse_wattmeter, "",
     "CSV log mono_ns,wall_ns,node_uj,package0_uj,..."},
    {"log-ms", ARG, "MS", parse_log_ms, "1 to 3600000",
     "a line every so many ms (10)"},
    {"ready-fd", ARG, "FD", parse_ready_fd, "a file descriptor",
     "write \"ready\" there when serving, and close it"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
enum { OPT_ASK = ROWS, OPT_INTEGRATE, OPT_HELP, OPT_COUNT };

void sim_options_help(void)
{
    printf(
        "usage: nodesim [options] DIR\n"
        "       nodesim --ask DIR COMMAND\n"
        "       nodesim --integrate FILE FROM_NS TO_NS\n\n"
        "Simulate the energy counters of a node: DIR/proc/cpuinfo,\n"
        "DIR/sys/devices/system/cpu and, through FUSE, DIR/dev/cpu/N/msr.\n"
        "DIR/ready appears when they are served.  SIGTERM and SIGINT unmount,\n"
        "finish the wattmeter log and exit 0.\n\n"
        "The node's energy is the integral of the floor (--idle), load or\n"
        "trace, plus --busy watts for each CPU second of cgroups and\n"
        "processes, split evenly over packages and dies.  What jobs use is\n"
        "that of the packages where they used it; and DIR/dev/cpu/stat is\n"
        "the /proc/stat of a node whose CPUs do nothing else.\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        int used =
            printf("  --%s%s%s", r->name, r->arg == ARG ? " " : "", r->value);

        printf("%*s%s\n", used < 24 ? 24 - used : 1, "", r->help);
    }
    printf("\nCommands for --ask:\n");
    sim_control_help();
    printf("\n--integrate prints the uJ of the node between two mono_ns times"
           " of a log.\nExit: 0; 1 something failed; 2 wrong usage, or times"
           " outside of the log.\n");
}

static int row_parse(const struct row *row, struct sim_options *opt,
                     const char *text, struct joule_error *err)
{
    if (!row->parse(opt, text))
        return 0;
    return joule_error_set(err, EINVAL, "--%s takes %s, not \"%s\"", row->name,
                           row->what, text);
}

static int check(const struct sim_options *opt, struct joule_error *err)
{
    if (opt->load && opt->trace)
        return joule_error_set(err, EINVAL, "--load excludes --trace");
    if (opt->trace_repeat && !opt->trace)
        return joule_error_set(err, EINVAL, "--trace-repeat needs --trace");
    if (opt->machine.cpu_numbers && (opt->machine.cpus || opt->machine.sparse))
        return joule_error_set(err, EINVAL,
                               "--cpu-numbers excludes --cpus and --sparse");
    if (opt->jobs_also && !opt->jobs)
        return joule_error_set(err, EINVAL, "--jobs-also needs --jobs");
    if (opt->jobs && opt->log_ns > JOBS_NS_MAX)
        return joule_error_set(err, EINVAL,
                               "--jobs are looked at every --log-ms, which "
                               "must be 10 or less");
    return 0;
}

/* What is not an option: DIR, DIR COMMAND or FILE FROM TO. */
static int operands(struct sim_options *opt, int count, char **arg,
                    struct joule_error *err)
{
    static const int wanted[] = {
        [SIM_SERVE] = 1, [SIM_ASK] = 2, [SIM_INTEGRATE] = 3};
    uint64_t from, to;

    if (count != wanted[opt->mode])
        return joule_error_set(
            err, EINVAL,
            opt->mode == SIM_SERVE ? "one directory is needed; see --help"
            : opt->mode == SIM_ASK ? "--ask takes DIR and one COMMAND"
                                   : "--integrate takes FILE FROM_NS TO_NS");
    switch (opt->mode) {
    case SIM_ASK:
        opt->command = arg[1];
        /* fall through */
    case SIM_SERVE:
        opt->dir = arg[0];
        return check(opt, err);
    case SIM_INTEGRATE:
        opt->log = arg[0];
        if (joule_parse_u64(arg[1], 0, INT64_MAX, &from) ||
            joule_parse_u64(arg[2], 0, INT64_MAX, &to))
            return joule_error_set(err, EINVAL,
                                   "FROM_NS and TO_NS are whole ns");
        opt->from_ns = (int64_t)from;
        opt->to_ns = (int64_t)to;
        return 0;
    default:
        return 0;
    }
}

int sim_options_parse(struct sim_options *opt, int argc, char **argv,
                      struct joule_error *err)
{
    struct option options[OPT_COUNT + 1] = {
        [OPT_ASK] = {"ask", no_argument, NULL, OPT_ASK},
        [OPT_INTEGRATE] = {"integrate", no_argument, NULL, OPT_INTEGRATE},
        [OPT_HELP] = {"help", no_argument, NULL, OPT_HELP},
    };
    int at;

    *opt = (struct sim_options){
        .step_ns = JOULE_NS_PER_MS,
        .idle_uw = 100000000,
        .busy_uw = 10000000,
        .ref_khz = 2400000,
        .dram_ppm = -1,
        .log_ns = 10 * JOULE_NS_PER_MS,
        .ready_fd = -1,
    };
    sim_machine_options_init(&opt->machine);
    for (size_t i = 0; i < ROWS; i++)
        options[i] =
            (struct option){rows[i].name,
                            rows[i].arg == ARG      ? required_argument
                            : rows[i].arg == NO_ARG ? no_argument
                                                    : optional_argument,
                            NULL, (int)i};
    opterr = 0;
    optind = 1;
    while ((at = getopt_long(argc, argv, "+:", options, NULL)) >= 0) {
        if (at == '?' || at == ':')
            return joule_error_set(
                err, EINVAL, "%s: %s; see --help", argv[optind - 1],
                at == ':' ? "a value is needed" : "no such option");
        if (at == OPT_HELP) {
            opt->mode = SIM_HELP;
            return 0;
        }
        if (at == OPT_ASK)
            opt->mode = SIM_ASK;
        else if (at == OPT_INTEGRATE)
            opt->mode = SIM_INTEGRATE;
        else if (row_parse(&rows[at], opt, optarg, err))
            return -1;
    }
    if (!opt->khz)
        opt->khz = opt->ref_khz;
    return operands(opt, argc - optind, argv + optind, err);
}
