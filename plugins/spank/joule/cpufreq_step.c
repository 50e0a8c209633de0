/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/spank/joule/spank_joule.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup/cpuset.h"
#include "plugins/slurm_abi/slurm_abi.h"

/* The longest request that is looked at. */
#define REQUEST_MAX 256

/* To the user's terminal and the log; of CpuFreqDef to the log alone. */
static void tell(const struct joule_spank_step *s, const char *text)
{
    if (s->is_default)
        slurm_info("joule_cpufreq: step %u.%s: CpuFreqDef: %s", s->claim.job,
                   s->name, text);
    else
        slurm_error("joule_cpufreq: %s", text);
}

/* The same of the request.  Where it is the end of the step, its first task
 * says so. */
static void complain(struct joule_spank_step *s, const char *text)
{
    if (!s->failure) {
        tell(s, text);
        return;
    }
    slurm_info("joule_cpufreq: step %u.%s fails: %s", s->claim.job, s->name,
               text);
    snprintf(s->failure->text, sizeof(s->failure->text), "%s", text);
}

/* What became of it: to the log, and to the user who wants to know. */
static void report(const struct joule_spank_step *s, const char *text)
{
    slurm_info("joule_cpufreq: step %u.%s: %s", s->claim.job, s->name, text);
    if (s->is_verbose)
        slurm_spank_log("joule_cpufreq: %s", text);
}

static bool is_doomed(const struct joule_spank_step *s)
{
    return s->failure && *s->failure->text;
}

/* Without memory that the tasks share, a strict step runs all the same. */
static void prepare_doom(struct joule_spank_step *s)
{
    void *page;

    if (!s->options.strict || s->is_default)
        return;
    page = mmap(NULL, sizeof(*s->failure), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED)
        s->failure = page;
    else
        slurm_error("joule_cpufreq: no memory: not strict for this step");
}

/* "0", "batch"; false for steps that run no user's program. */
static bool find_name(struct joule_spank_step *s, uint32_t step_id)
{
    switch (step_id) {
    case SLURM_BATCH_SCRIPT:
        snprintf(s->name, sizeof(s->name), "batch");
        return s->options.batch;
    case SLURM_INTERACTIVE_STEP:
        snprintf(s->name, sizeof(s->name), "interactive");
        return s->options.batch;
    default:
        snprintf(s->name, sizeof(s->name), "%u", step_id);
        return step_id <= SLURM_MAX_NORMAL_STEP_ID;
    }
}

/* 1: there is a request; 0: there is none; -1: one that means nothing. */
static int find_request(struct joule_spank_step *s, spank_t spank,
                        struct joule_control_config *ret_config,
                        struct joule_error *err)
{
    struct joule_request standard;
    bool has_standard = joule_core_conf(&s->options, ret_config, &standard);
    char text[REQUEST_MAX] = "";
    spank_err_t rc =
        spank_getenv(spank, "SLURM_CPU_FREQ_REQ", text, sizeof(text));

    if (rc == ESPANK_NOSPACE)
        return joule_error_set(err, EINVAL,
                               "--cpu-freq is too long to be a "
                               "frequency");
    if (rc == ESPANK_SUCCESS && *text) {
        if (joule_request_parse(text, &s->claim.request, err) < 0)
            return -1;
    } else if (has_standard) {
        s->claim.request = standard;
        s->is_default = true;
    } else {
        return 0;
    }
    joule_request_format(&s->claim.request, s->asked);
    return 1;
}

/* All policies on record before Slurm's code writes: nobody knows yet which
 * CPUs it will be. */
static void watch_all(struct joule_spank_step *s)
{
    struct joule_control_claim claim = s->claim;
    struct joule_error err;

    claim.is_watch = true;
    memset(&claim.request, 0, sizeof(claim.request));
    memset(&claim.cpus, 0xff, sizeof(claim.cpus));
    if (joule_control_hold(&s->control, &claim, &s->watch, &err) < 0)
        tell(s, err.text);
}

/* Nothing is amiss with a node that has no cpufreq. */
static bool has_policies(const struct joule_spank_step *s)
{
    struct joule_cpus ids;

    return joule_cpufreq_list(s->root_fd, &ids, NULL) < 0 ||
           !joule_cpus_is_empty(&ids);
}

static void begin(struct joule_spank_step *s, spank_t spank)
{
    struct joule_control_config config;
    struct joule_error err;
    int asked = find_request(s, spank, &config, &err);

    if (asked != 0)
        prepare_doom(s);
    s->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->root_fd < 0) {
        complain(s, "cannot open /");
        return;
    }
    if (s->is_default && !has_policies(s))
        asked = 0;
    joule_control_init(&s->control, s->root_fd, &config);
    if (asked <= 0) {
        /* It is not to run on what others left behind. */
        if (joule_control_recover(&s->control, NULL, NULL) < 0)
            slurm_debug("joule_cpufreq: cannot look for steps that have ended");
        joule_control_destroy(&s->control);
        close(s->root_fd);
        if (asked < 0)
            complain(s, err.text);
        return;
    }
    if (!s->options.core && joule_core_off(&err) < 0) {
        tell(s, err.text);
        s->options.core = true;
    }
    s->is_active = true;
    if (s->options.core)
        watch_all(s);
}

void joule_spank_step_begin(struct joule_spank_step *s, spank_t spank,
                            const struct joule_spank_options *options)
{
    uint32_t job_id, step_id;
    char text[8];

    memset(s, 0, sizeof(*s));
    s->options = *options;
    if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
        !find_name(s, step_id))
        return;
    s->claim.job = job_id;
    s->claim.step = s->name;
    s->claim.pid = getpid();
    /* 3 and one more for each -v of srun. */
    s->is_verbose = spank_getenv(spank, "SRUN_DEBUG", text, sizeof(text)) ==
                        ESPANK_SUCCESS &&
                    text[0] >= '4';
    begin(s, spank);
}

static void say_grant(const struct joule_spank_step *s)
{
    const struct joule_control_grant *g = &s->grant;
    char cpus[JOULE_CPUS_TEXT_MAX], text[512];

    if (joule_cpus_format(&s->claim.cpus, cpus, sizeof(cpus)) < 0)
        cpus[0] = '\0';
    snprintf(text, sizeof(text),
             "--cpu-freq=%s: set %s, %u to %u kHz, on CPUs %.128s (%u "
             "polic%s, %u not as asked)",
             s->asked, g->governor, g->low_khz, g->high_khz, cpus, g->met,
             g->met == 1 ? "y" : "ies", g->unmet);
    report(s, text);
}

/*
 * The frequency of a profiled step, over time: a table that the configured
 * profile plugin, whichever it is, is given through Slurm.  KHz is the mean of
 * the step's CPUs since the row before, while they ran; NaN: they did not, or
 * nobody knows.
 */
static void begin_series(struct joule_spank_step *s)
{
    acct_gather_profile_dataset_t fields[] = {
        {"MinKHz", JOULE_PROFILE_FIELD_UINT64},
        {"MaxKHz", JOULE_PROFILE_FIELD_UINT64},
        {"KHz", JOULE_PROFILE_FIELD_DOUBLE},
        {NULL, JOULE_PROFILE_FIELD_END},
    };

    s->dataset = -1;
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

/* In the average's thread. */
static void add_row(void *arg, uint32_t khz)
{
    const struct joule_spank_step *s = arg;
    /* As Slurm takes it: 8 bytes a column. */
    struct {
        uint64_t min_khz, max_khz;
        double khz;
    } row = {s->grant.low_khz, s->grant.high_khz, khz ? khz : (double)NAN};

    if (s->dataset >= 0)
        acct_gather_profile_g_add_sample_data(s->dataset, &row, time(NULL));
}

static void watch_average(struct joule_spank_step *s)
{
    const struct joule_average_options opt = {
        .root_fd = s->root_fd,
        .cpus = s->claim.cpus,
        .policies = s->grant.policies,
        .tell = add_row,
        .arg = s,
    };

    begin_series(s);
    s->average = joule_average_create(&opt, NULL);
}

/* All tasks are there: what they may use together is set. */
static void set(struct joule_spank_step *s)
{
    const struct joule_control_notes *notes = &s->grant.notes;
    struct joule_error err;
    int rc = joule_control_hold(&s->control, &s->claim, &s->grant, &err);

    if (s->options.core && joule_control_narrow(&s->control, &s->watch,
                                                &s->grant.policies, NULL) < 0)
        slurm_debug("joule_cpufreq: the other CPUs stay on record");
    if (rc < 0) {
        complain(s, err.text);
        return;
    }
    say_grant(s);
    if (notes->count > 0)
        complain(s, notes->first.text);
    if (!joule_cpus_is_empty(&s->grant.policies))
        watch_average(s);
}

static void add_task(struct joule_spank_step *s, spank_t spank)
{
    struct joule_cpus cpus;
    struct joule_error err;
    pid_t pid;

    if (spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
        complain(s, "Slurm does not tell the task's process");
    else if (joule_cgroup_cpus_of(s->root_fd, pid, &cpus, &err) < 0)
        complain(s, err.text);
    else
        joule_cpus_unite(&s->claim.cpus, &cpus);
}

void joule_spank_step_task(struct joule_spank_step *s, spank_t spank)
{
    if (!s->is_active)
        return;
    if (s->tasks == 0 && (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT,
                                         &s->tasks) != ESPANK_SUCCESS ||
                          s->tasks == 0))
        s->tasks = 1;
    s->forked++;
    add_task(s, spank);
    if (s->forked == s->tasks && !is_doomed(s))
        set(s);
}

void joule_spank_step_gate(const struct joule_spank_step *s, spank_t spank)
{
    int task_id = 0;

    if (!is_doomed(s))
        return;
    spank_get_item(spank, S_TASK_ID, &task_id);
    if (task_id == 0)
        dprintf(STDERR_FILENO, "joule_cpufreq: error: %s\n", s->failure->text);
    _exit(EXIT_FAILURE);
}

static void say_average(struct joule_spank_step *s)
{
    struct joule_average_result result;
    char text[256], how[64] = "counted by the CPUs";

    joule_average_destroy(s->average, &result);
    s->average = NULL;
    if (result.khz == 0)
        return;
    if (!result.is_counted)
        snprintf(how, sizeof(how), "%u reading%s", result.readings,
                 result.readings == 1 ? "" : "s");
    snprintf(text, sizeof(text), "--cpu-freq=%s: ran at %u kHz on average (%s)",
             s->asked, result.khz, how);
    report(s, text);
}

static void give_back(struct joule_spank_step *s,
                      struct joule_control_grant *grant)
{
    struct joule_error err, why;

    if (grant->number == 0)
        return;
    if (joule_control_release(&s->control, grant, &why) < 0) {
        joule_error_set(&err, EAGAIN, "not put back yet, slurmd goes on: %s",
                        why.text);
        tell(s, err.text);
    }
    grant->number = 0;
}

void joule_spank_step_task_end(struct joule_spank_step *s)
{
    if (!s->is_active || ++s->ended < s->tasks)
        return;
    say_average(s);
    /* Where Slurm's code works, it has not put its own back yet. */
    if (!s->options.core)
        give_back(s, &s->grant);
}

void joule_spank_step_end(struct joule_spank_step *s)
{
    if (!s->is_active)
        return;
    s->is_active = false;
    say_average(s);
    give_back(s, &s->grant);
    give_back(s, &s->watch);
    joule_control_destroy(&s->control);
    close(s->root_fd);
}
