/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spank_joule_cpufreq: --cpu-freq, set on the CPUs of a step and put back
 * whatever happens.
 *
 * slurmstepd sets and puts back; a process beside slurmd looks after those that
 * could not.
 */
#include <fcntl.h>
#include <unistd.h>

#include "common/cpufreq/keeper.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule_cpufreq/joule_cpufreq.h"

JOULE_SLURM_EXPORT extern const char plugin_name[];
JOULE_SLURM_EXPORT extern const char plugin_type[];
JOULE_SLURM_EXPORT extern const unsigned int plugin_version;
JOULE_SLURM_EXPORT extern const unsigned int spank_plugin_version;

const char plugin_name[] = "joule_cpufreq";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

/* In spank.h these are declared without visibility. */
JOULE_SLURM_EXPORT extern spank_f slurm_spank_init;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_post_fork;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_init;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_task_exit;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_exit;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_job_epilog;
JOULE_SLURM_EXPORT extern spank_f slurm_spank_slurmd_exit;

/* A process is one of these; SPANK calls it with one thread. */
static struct joule_spank_step step;
static int keeper_fd = -1; /* its end is the end of slurmd */

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
    case S_CTX_SLURMD:
        start_keeper(argc, argv);
        return ESPANK_SUCCESS;
    case S_CTX_REMOTE:
        parse_options(&options, argc, argv);
        joule_spank_step_begin(&step, spank, &options);
        return ESPANK_SUCCESS;
    default:
        return ESPANK_SUCCESS;
    }
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
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
    (void)spank;
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_REMOTE)
        joule_spank_step_end(&step);
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
    if (root_fd < 0)
        return ESPANK_SUCCESS;
    parse_options(&options, argc, argv);
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
