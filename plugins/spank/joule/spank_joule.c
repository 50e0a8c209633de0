/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spank_joule: --cpu-freq, set on the CPUs of a step and put back whatever happens;
 * --energy-regions, which names regions of programs for the energy profile;
 * --energy-waits, which records the calls of MPI.
 *
 * slurmstepd sets frequencies and puts them back; a process beside slurmd looks after
 * those that could not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cpufreq/keeper.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule/spank_joule.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const unsigned int plugin_version;
JOULE_SLURM_EXPORT extern const unsigned int spank_plugin_version;

const char plugin_name[] = "joule";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

/* In spank.h these are declared without visibility. */
JOULE_SLURM_EXPORT extern spank_f slurm_spank_init;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_init_post_opt;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_local_user_init;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_post_fork;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_init;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_exit;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_exit;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_job_epilog;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_slurmd_exit;

/* A process is one of these; SPANK calls it with one thread. */
static struct joule_spank_step step;
static int keeper_fd = -1; /* its end is the end of slurmd */
static char
    regions[JOULE_SPANK_HOOKS_MAX]; /* of --energy-regions; "": not given */
static char waits[JOULE_SPANK_WAITS_MAX]; /* of --energy-waits; "": not given */
/* What its user is told, when he can hear it. */
static struct joule_error problem, waits_problem;

/* In srun, sbatch and salloc it goes into the environment: there our profile plugin
 * looks for it, and the steps of a job have it from the job. */
static int take_regions(int value, const char *list, int is_remote)
{
    struct joule_error err;

    (void)value;
    /* That is what 22.05 makes of no argument for the steps of a job. */
    if (!list || !*list || strcmp(list, "(null)") == 0)
        list = "all";
    if (joule_spank_hooks_check(list, &err) < 0) {
        slurm_error("--energy-regions: %s", err.text);
        return -1;
    }
    snprintf(regions, sizeof(regions), "%s", list);
    if (!is_remote && setenv(JOULE_SPANK_HOOKS_VARIABLE, list, 1) < 0) {
        slurm_error("--energy-regions: %m");
        return -1;
    }
    return 0;
}

/* The same, but for the profile. */
static int take_waits(int value, const char *directory, int is_remote)
{
    struct joule_error err;

    (void)value;
    snprintf(waits, sizeof(waits), "%s",
             directory && *directory && strcmp(directory, "(null)") != 0
                 ? directory
                 : JOULE_SPANK_WAITS_DEFAULT);
    if (is_remote || joule_spank_waits_wish(directory, &err) == 0)
        return 0;
    slurm_error("--energy-waits: %s", err.text);
    return -1;
}

/* sbatch and salloc know only options that are registered by a call. */
static void register_options(spank_t spank)
{
    struct spank_option option[] = {
        {.name = (char *)"energy-regions",
         .arginfo = (char *)"[mpi,likwid,...]",
         .usage = (char *)"energy of the regions that programs name for MPI, "
                          "LIKWID, Kokkos, NVTX, ROCTX or OMPT (default: all "
                          "of them), and for libjoule; see joule regions",
         .has_arg = 2,
         .cb = take_regions},
        {.name = (char *)"energy-waits",
         .arginfo = (char *)"[directory]",
         .usage =
             (char *)"record when the processes of an MPI program wait for "
                     "each other (default: in joule-waits-%j.%s; none: do "
                     "not); see joule waits",
         .has_arg = 2,
         .cb = take_waits}};

    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++)
        if (spank_option_register(spank, &option[i]) != ESPANK_SUCCESS)
            slurm_error("spank_joule: Slurm does not take --%s",
                        option[i].name);
}

/* slurmd says what is wrong with them, and not each step to its user. */
static void parse_options(struct joule_spank_options *options, int argc,
                          char **argv)
{
    struct joule_error err;

    if (joule_spank_options_parse(options, argc, argv, &err) == 0)
        return;
    if (spank_context() == S_CTX_SLURMD)
        slurm_error("joule_cpufreq: plugstack.conf: %s", err.text);
    else
        slurm_debug("joule_cpufreq: plugstack.conf: %s", err.text);
}

static void start_keeper(int argc, char **argv)
{
    struct joule_spank_options options;
    struct joule_control_config config;
    struct joule_request ignored;
    char log[JOULE_KEEPER_LOG_MAX + 1];
    struct joule_error err;

    if (keeper_fd >= 0)
        return;
    parse_options(&options, argc, argv);
    if (!options.cpufreq)
        return;
    joule_core_conf(&options, &config, &ignored);
    joule_core_slurmd_log(log, sizeof(log));
    keeper_fd = joule_keeper_start(options.keeper, &config,
                                   options.keeper_period_ns, log, &err);
    if (keeper_fd < 0)
        slurm_error("joule_cpufreq: %s: frequencies of steps that are killed "
                    "stay until the next step",
                    err.text);
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    struct joule_spank_options options;

    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        register_options(spank);
        return ESPANK_SUCCESS;
    case S_CTX_SLURMD:
        start_keeper(argc, argv);
        return ESPANK_SUCCESS;
    case S_CTX_REMOTE:
        register_options(spank);
        parse_options(&options, argc, argv);
        if (options.cpufreq)
            joule_spank_step_begin(&step, spank, &options);
        return ESPANK_SUCCESS;
    default:
        return ESPANK_SUCCESS;
    }
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
    struct joule_spank_options options;

    if (spank_context() != S_CTX_REMOTE)
        return ESPANK_SUCCESS;
    joule_spank_options_parse(&options, argc, argv, NULL);
    if (joule_spank_hooks_begin(spank, regions, &options, &problem) == 0)
        *problem.text = '\0';
    if (joule_spank_waits_begin(spank, waits, &options, &waits_problem) == 0)
        *waits_problem.text = '\0';
    return ESPANK_SUCCESS;
}

int slurm_spank_local_user_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_LOCAL)
        joule_spank_waits_local(spank);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() != S_CTX_REMOTE)
        return ESPANK_SUCCESS;
    if (*problem.text)
        slurm_error("spank_joule: --energy-regions: %s", problem.text);
    if (*waits_problem.text)
        slurm_error("spank_joule: --energy-waits: %s", waits_problem.text);
    *problem.text = *waits_problem.text = '\0';
    joule_spank_step_task(&step, spank);
    return ESPANK_SUCCESS;
}

/* Called after the one above: tasks wait until their parent has done it. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        joule_spank_step_gate(&step, spank);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
    (void)spank;
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        joule_spank_step_task_end(&step);
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
    struct joule_spank_options options;

    (void)spank;
    if (spank_context() == S_CTX_REMOTE)
        joule_spank_step_end(&step);
    if (spank_context() != S_CTX_LOCAL)
        return ESPANK_SUCCESS;
    joule_spank_options_parse(&options, argc, argv, NULL);
    joule_spank_waits_local_end(&options, *waits != '\0');
    return ESPANK_SUCCESS;
}

/* A process of its own at the end of each job. */
int slurm_spank_job_epilog(spank_t spank, int argc, char **argv)
{
    struct joule_spank_options options;
    struct joule_control_config config;
    struct joule_request ignored;
    struct joule_control_recovery r;
    struct joule_control control;
    struct joule_error err;
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)spank;
    parse_options(&options, argc, argv);
    if (root_fd < 0 || !options.cpufreq) {
        if (root_fd >= 0)
            close(root_fd);
        return ESPANK_SUCCESS;
    }
    joule_core_conf(&options, &config, &ignored);
    joule_control_init(&control, root_fd, &config);
    if (joule_control_recover(&control, &r, &err) < 0)
        slurm_error("joule_cpufreq: %s", err.text);
    else if (r.failed > 0)
        slurm_error("joule_cpufreq: not put back yet: %s", r.notes.first.text);
    joule_control_destroy(&control);
    close(root_fd);
    return ESPANK_SUCCESS;
}

int slurm_spank_slurmd_exit(spank_t spank, int argc, char **argv)
{
    (void)spank;
    (void)argc;
    (void)argv;
    if (keeper_fd >= 0)
        close(keeper_fd);
    keeper_fd = -1;
    return ESPANK_SUCCESS;
}
