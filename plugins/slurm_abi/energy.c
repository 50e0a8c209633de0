/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lifetime of everything here is init() to fini(): slurmd of 22.05 closes
 * and loads the plugin again at a reconfigure, later releases start a new
 * process and never call fini.  What must survive is in the ledger.
 */
#include "plugins/slurm_abi/energy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cgroup/usage.h"
#include "common/daemon/sampler.h"
#include "common/sensors/sensor_table.h"
#include "common/step/node_energy.h"
#include "common/step/step_energy.h"
#include "plugins/slurm_abi/conf.h"
#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/registration.h"
#include "plugins/slurm_abi/slurm_series.h"

/* The entry points, as libslurm looks them up. */
JOULE_SLURM_EXPORT int init(void);
JOULE_SLURM_EXPORT int fini(void);
JOULE_SLURM_EXPORT int acct_gather_energy_p_update_node_energy(void);
JOULE_SLURM_EXPORT int acct_gather_energy_p_get_data(enum acct_energy_type type,
                                                     void *data);
JOULE_SLURM_EXPORT int acct_gather_energy_p_set_data(enum acct_energy_type type,
                                                     void *data);
JOULE_SLURM_EXPORT void
acct_gather_energy_p_conf_options(s_p_options_t **full_options,
                                  int *full_options_count);
JOULE_SLURM_EXPORT void acct_gather_energy_p_conf_set(int context_id,
                                                      s_p_hashtbl_t *table);
JOULE_SLURM_EXPORT void
acct_gather_energy_p_conf_values(joule_slurm_list *data);

/* A node without counters is looked at again now and then: the msr module
 * may be loaded later. */
#define RETRY_NS (60 * JOULE_NS_PER_S)

/* The longest wait of an extern step for the other steps of its job. */
#define OTHERS_NS (600 * JOULE_NS_PER_S)

static struct {
    enum joule_host host;
    struct joule_energy_config config;
    bool configured;
    char node[256];
    int root_fd;
    struct joule_sensor *sensor;
    bool tried; /* to open what there is, since it was configured */
    int64_t tried_ns;
    time_t started;
    uint64_t before_j; /* the figure given last */
    /* slurmd */
    struct joule_sampler *sampler;
    bool said_missing;
    /* slurmstepd */
    struct joule_ledger *ledger; /* for the profile */
    struct joule_node_energy *node_energy;
    struct joule_slurm_series *series; /* NULL: no sample was asked for yet */
    enum joule_energy_columns_of columns; /* of it */
    uint32_t job;
    struct joule_step_energy
        *step_energy;          /* in the ledger; NULL: not registered */
    struct joule_usage *usage; /* of the step; NULL: as above */
    bool is_extern, said_unknown;
    bool step_begun; /* the first get_data: the tasks are about to run */
} self = {.root_fd = -1};

static void on_event(enum joule_event event, const char *text, void *arg)
{
    (void)arg;
    if (event == JOULE_EVENT_PROBLEM)
        slurm_error("%s: %s", joule_energy_plugin, text);
    else
        slurm_info("%s: %s", joule_energy_plugin, text);
}

static void close_all(void)
{
    joule_step_energy_destroy(self.step_energy);
    self.step_energy = NULL;
    joule_usage_destroy(self.usage);
    self.usage = NULL;
    joule_sampler_destroy(self.sampler);
    self.sampler = NULL;
    joule_slurm_series_destroy(self.series);
    self.series = NULL;
    joule_node_energy_destroy(self.node_energy);
    self.node_energy = NULL;
    joule_ledger_destroy(self.ledger);
    self.ledger = NULL;
    joule_sensor_destroy(self.sensor);
    self.sensor = NULL;
}

static int64_t sample_period_ns(void)
{
    int64_t asked_ns = self.config.sample_period_ns;
    int64_t wrap_ns = self.sensor->wrap_ns;
    int64_t ns = joule_sampler_period_ns(wrap_ns, asked_ns);
    char asked[32], used[32];

    if (ns < asked_ns) {
        joule_format_duration(asked_ns, asked, sizeof(asked));
        joule_format_duration(ns, used, sizeof(used));
        slurm_info("%s: JouleSamplePeriod=%s is too long for counters that "
                   "may wrap in %" PRId64 " s: %s is used",
                   joule_energy_plugin, asked, wrap_ns / JOULE_NS_PER_S, used);
    }
    return ns;
}

static void say_sensor(const struct joule_sampler_options *opt)
{
    const struct joule_sensor *sensor = opt->sensor;
    char names[JOULE_ERROR_MAX], period[32];
    size_t length = 0, i;

    joule_format_duration(opt->period_ns, period, sizeof(period));
    names[0] = '\0';
    for (i = 0; i < sensor->domain_count && length < sizeof(names); i++)
        length +=
            (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                             i ? ", " : "", sensor->domains[i].name);
    slurm_info("%s: samples the energy of %s every %s", joule_energy_plugin,
               names, period);
}

/* What the plugin that chooses has chosen on this node. */
static void say_choice(void)
{
    struct joule_error why;

    if (strcmp(joule_energy_plugin, JOULE_SENSOR_CHOICE) == 0 &&
        joule_sensor_choose(self.root_fd, &self.config, &why))
        slurm_info("%s: this node is measured by %s", joule_energy_plugin,
                   why.text);
}

static void slurmd_open(void)
{
    struct joule_sampler_options opt = {
        .clock = &joule_clock_system,
        .root_fd = self.root_fd,
        .node = self.node,
        .attribution = (enum joule_attribution)self.config.attribution,
        .idle_uw = self.config.idle_w * 1000000,
        .user_period_ns = self.config.user_period_ns,
        .event = on_event,
    };
    struct joule_error err;

    self.sensor =
        joule_sensor_open(joule_energy_plugin, self.root_fd, &self.config,
                          self.node, JOULE_SENSOR_MEASURE, &err);
    if (self.sensor) {
        opt.sensor = self.sensor;
        opt.period_ns = sample_period_ns();
        self.sampler = joule_sampler_create(&opt, &err);
    }
    if (!self.sampler) {
        close_all();
        if (!self.said_missing)
            slurm_error("%s: energy is unknown on this node: %s",
                        joule_energy_plugin, err.text);
        self.said_missing = true;
        return;
    }
    self.said_missing = false;
    say_choice();
    say_sensor(&opt);
}

/* What a profile needs is opened as root.  slurmd says what is wrong with the
 * node, once; a step does not repeat it. */
static void stepd_open(void)
{
    struct joule_error err;

    self.sensor =
        joule_sensor_open(joule_energy_plugin, self.root_fd, &self.config,
                          self.node, JOULE_SENSOR_FOLLOW, &err);
    if (self.sensor)
        self.ledger = joule_ledger_open(self.root_fd, self.node, &err);
    if (!self.ledger) {
        slurm_debug("%s: no energy profile: %s", joule_energy_plugin, err.text);
        return;
    }
    self.node_energy =
        joule_node_energy_create(&joule_clock_system, self.sensor, self.ledger);
    if (self.node_energy)
        joule_node_energy_begin(self.node_energy);
    else
        slurm_error("%s: out of memory", joule_energy_plugin);
}

static void open_all(void)
{
    struct joule_error err;

    self.tried = true;
    self.tried_ns = joule_clock_mono_ns(&joule_clock_system);
    if (self.root_fd < 0)
        self.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (joule_host_node_name(self.root_fd, self.node, sizeof(self.node), &err) <
        0) {
        slurm_error("%s: %s", joule_energy_plugin, err.text);
        return;
    }
    if (self.host == JOULE_HOST_SLURMD)
        slurmd_open();
    else if (self.host == JOULE_HOST_SLURMSTEPD)
        stepd_open();
}

int init(void)
{
    struct joule_error err;

    if (joule_host_check(&err) < 0) {
        slurm_error("%s: %s", joule_energy_plugin, err.text);
        return SLURM_ERROR;
    }
    self.host = joule_host_find();
    self.started = time(NULL);
    joule_option_defaults(joule_energy_config_options, &self.config);
    return SLURM_SUCCESS;
}

int fini(void)
{
    close_all();
    if (self.root_fd >= 0)
        close(self.root_fd);
    explicit_bzero(&self, sizeof(self));
    self.root_fd = -1;
    return SLURM_SUCCESS;
}

void acct_gather_energy_p_conf_options(s_p_options_t **full_options,
                                       int *full_options_count)
{
    joule_conf_register(joule_energy_config_options, full_options,
                        full_options_count);
}

/* slurmstepd of 24.11 and later calls this twice: with its own reading of
 * acct_gather.conf, then with slurmd's.  There the counters must be opened
 * here, as root: later the whole process runs as the job's user for a while.
 * slurmd's wait for the first call that needs them.  In 22.05 another thread
 * may register the node meanwhile; steps are launched from then on, and one
 * that comes before acct_gather.conf is packed for it is the end of slurmd. */
void acct_gather_energy_p_conf_set(int context_id, s_p_hashtbl_t *table)
{
    struct joule_energy_config config;

    (void)context_id;
    memset(&config, 0, sizeof(config));
    joule_conf_load(joule_energy_config_options, &config, table,
                    self.host != JOULE_HOST_SLURMD &&
                        self.host != JOULE_HOST_SLURMCTLD);
    if (self.configured && memcmp(&config, &self.config, sizeof(config)) == 0) {
        explicit_bzero(&config, sizeof(config)); /* the BMC's password */
        return;
    }
    close_all();
    self.config = config;
    explicit_bzero(&config, sizeof(config));
    self.configured = true;
    self.tried = false;
    if (self.host != JOULE_HOST_SLURMD)
        open_all();
}

void acct_gather_energy_p_conf_values(joule_slurm_list *data)
{
    joule_conf_values(joule_energy_config_options, &self.config, *data);
}

/* Joules and watts come to be here and nowhere else, rounded to the nearest. */
static uint64_t uj_to_j(uint64_t uj)
{
    return uj / 1000000 + (uj % 1000000 >= 500000);
}

static uint32_t mw_to_w(uint64_t mw)
{
    uint64_t w;

    if (mw == JOULE_MW_UNKNOWN)
        return NO_VAL;
    w = mw / 1000 + (mw % 1000 >= 500);
    return w < NO_VAL ? (uint32_t)w : NO_VAL;
}

static void fill(acct_gather_energy_t *energy, uint64_t used_uj,
                 uint64_t node_mw, uint64_t average_mw)
{
    energy->consumed_energy = uj_to_j(used_uj);
    energy->base_consumed_energy = 0;
    energy->previous_consumed_energy = self.before_j;
    energy->current_watts = mw_to_w(node_mw);
    energy->ave_watts = mw_to_w(average_mw);
    energy->poll_time = time(NULL);
#if JOULE_SLURM_SERIES >= JOULE_SLURM_24_11
    energy->slurmd_start_time = self.started;
#endif
    self.before_j = energy->consumed_energy;
}

static void fill_unknown(acct_gather_energy_t *energy)
{
    memset(energy, 0, sizeof(*energy));
    energy->consumed_energy = NO_VAL64;
    energy->current_watts = NO_VAL;
    energy->ave_watts = NO_VAL;
    energy->poll_time = time(NULL);
}

/* Not before conf_set, in whatever thread: the defaults are another node's. */
static void find_sampler(void)
{
    if (!self.configured || self.sampler)
        return;
    if (!self.tried ||
        joule_clock_mono_ns(&joule_clock_system) - self.tried_ns > RETRY_NS)
        open_all();
}

/* slurmd: the node since the sampler first ran in this boot. */
static int read_node(struct joule_snapshot *snapshot)
{
    find_sampler();
    if (!self.sampler)
        return -1;
    if (joule_sampler_read(self.sampler, snapshot) == 0)
        return snapshot->total.valid ? 0 : -1;
    if (errno == ECHILD) {
        /* slurmd went to the background after conf_set. */
        close_all();
        open_all();
    }
    return -1;
}

/*
 * Slurm takes the last figure of the extern step for that of the job, and ends
 * the extern step with the first signal of a job that is cancelled or has
 * reached its limit.  The tasks of its other steps may go on for KillWait.  So
 * that figure waits for them: Slurm's main thread asks for it, when the extern
 * step has no child left (that of 26.05 never has one), and the job cannot end
 * on this node before its other steps have.
 */
static void await_others(void)
{
    if (self.is_extern && self.step_begun && gettid() == getpid() &&
        !joule_host_has_children() &&
        joule_step_energy_await_others(self.step_energy, OTHERS_NS) < 0)
        slurm_info(
            "%s: other steps of the job still run: its energy is that up "
            "to now",
            joule_energy_plugin);
}

/* slurmd reads it too, unless it is away. */
static void report_cpu(void)
{
    uint64_t ns;

    if (self.usage && joule_usage_read(self.usage, &ns, NULL) == 0)
        joule_step_energy_report_cpu(self.step_energy, ns);
}

/* Slurm asks first when the tasks are about to run, and last when no child is
 * left: both take a ticket.  Its other polls get the last sample. */
static int read_step_energy(struct joule_step_energy_reading *reading)
{
    struct joule_error err;
    bool first = !self.step_begun;
    bool over = !first && !joule_host_has_children();
    int rc;

    await_others();
    self.step_begun = true;
    if (!self.step_energy)
        return -1;
    report_cpu();
    if (first && !self.is_extern)
        joule_step_energy_begin_tasks(self.step_energy);
    /* An extern step may go on: that of 26.05 never has a child. */
    if (over && !self.is_extern)
        joule_step_energy_end(self.step_energy);
    rc = first || over
             ? joule_step_energy_read_now(self.step_energy, reading, &err)
             : joule_step_energy_read(self.step_energy, reading, &err);
    if (rc == 0)
        return 0;
    /* Without counters slurmd has said why, and of steps that are too many,
     * once for all of them. */
    if (!self.said_unknown && self.sensor && errno == EDQUOT)
        slurm_debug("%s: the energy of the step is unknown: %s",
                    joule_energy_plugin, err.text);
    else if (!self.said_unknown && self.sensor)
        slurm_info("%s: the energy of the step is unknown: %s",
                   joule_energy_plugin, err.text);
    self.said_unknown = true;
    return -1;
}

/* Each job is charged the whole node, and so is each of its steps. */
static bool is_whole_node(void)
{
    return self.config.attribution == JOULE_ATTRIBUTION_NODE;
}

static void register_step(const void *record)
{
    struct joule_slurm_step step;
    struct joule_error err;

    if (self.step_energy || self.root_fd < 0)
        return;
    if (joule_slurm_step_read(record, &step, &err) == 0)
        self.step_energy = joule_registration_make(self.root_fd, &step, &err);
    self.is_extern = self.step_energy && step.step_id == SLURM_EXTERN_CONT;
    self.job = self.step_energy ? step.job_id : 0;
    if (self.step_energy && is_whole_node())
        joule_step_energy_count_node(self.step_energy);
    if (self.step_energy)
        self.usage = joule_usage_create(self.root_fd,
                                        &(struct joule_usage_step){
                                            .pid = getpid(),
                                            .job = step.job_id,
                                            .step = step.step_id,
                                            .uid = step.uid,
                                            .node = step.node,
                                        },
                                        0);
    else
        slurm_error("%s: the energy of the step is unknown: %s",
                    joule_energy_plugin, err.text);
}

static void get_energy(acct_gather_energy_t *energy)
{
    struct joule_step_energy_reading reading;
    struct joule_snapshot snapshot;

    if (self.host == JOULE_HOST_SLURMD && read_node(&snapshot) == 0)
        fill(energy, snapshot.total.node_uj, snapshot.total.mw,
             snapshot.average_mw);
    else if (self.host == JOULE_HOST_SLURMSTEPD &&
             read_step_energy(&reading) == 0)
        fill(energy, reading.used_uj, reading.mw, reading.average_mw);
    else
        fill_unknown(energy);
}

int acct_gather_energy_p_update_node_energy(void)
{
    return SLURM_SUCCESS;
}

int acct_gather_energy_p_get_data(enum acct_energy_type type, void *data)
{
    struct joule_snapshot snapshot;

    switch (type) {
    case ENERGY_DATA_NODE_ENERGY:
    case ENERGY_DATA_NODE_ENERGY_UP:
    case ENERGY_DATA_JOULES_TASK:
    case ENERGY_DATA_STRUCT:
        get_energy(data);
        return SLURM_SUCCESS;
    case ENERGY_DATA_LAST_POLL:
        *(time_t *)data = 0;
        if (self.host == JOULE_HOST_SLURMD && read_node(&snapshot) == 0)
            *(time_t *)data = (time_t)(snapshot.wall_ns / JOULE_NS_PER_S);
        return SLURM_SUCCESS;
    case ENERGY_DATA_SENSOR_CNT:
        /* Also without counters: the caller's array has as many entries as
         * this says, and one is filled with "unknown". */
        *(uint16_t *)data = 1;
        return SLURM_SUCCESS;
    default:
        slurm_error("%s: Slurm asks for unknown energy data %d",
                    joule_energy_plugin, (int)type);
        return SLURM_ERROR;
    }
}

/* Slurm's timer gives its first samples before the step is registered: until
 * then it is not known which columns there are. */
static bool find_series(void)
{
    if (!self.series && self.node_energy) {
        if (is_whole_node())
            self.columns = JOULE_ENERGY_COLUMNS_NODE;
        else if (self.config.profile_node == JOULE_PROFILE_NODE_ALWAYS)
            self.columns = JOULE_ENERGY_COLUMNS_BOTH;
        else if (!self.step_energy)
            return false;
        else
            self.columns = joule_step_energy_is_alone(self.step_energy)
                               ? JOULE_ENERGY_COLUMNS_ALONE
                               : JOULE_ENERGY_COLUMNS_STEP;
        self.series = joule_slurm_series_create(self.sensor, self.columns);
    }
    return self.series && joule_slurm_series_wanted(self.series);
}

static void add_to_series(void)
{
    struct joule_node_energy_reading reading;
    struct joule_step_energy_reading step_reading;
    bool known;

    if (!find_series())
        return;
    known = self.step_energy &&
            joule_step_energy_read(self.step_energy, &step_reading, NULL) == 0;
    /* The series has its columns: another job hides the node for good. */
    if (self.columns == JOULE_ENERGY_COLUMNS_ALONE &&
        joule_step_energy_has_other_job(self.step_energy, self.job))
        self.columns = JOULE_ENERGY_COLUMNS_STEP;
    if (self.columns == JOULE_ENERGY_COLUMNS_STEP)
        joule_slurm_series_add_step(self.series, known ? &step_reading : NULL,
                                    time(NULL));
    else if (joule_node_energy_update(self.node_energy, &reading) == 0)
        joule_slurm_series_add(self.series, &reading,
                               known ? &step_reading : NULL, time(NULL));
}

int acct_gather_energy_p_set_data(enum acct_energy_type type, void *data)
{
    switch (type) {
    case ENERGY_DATA_PROFILE:
        if (self.host == JOULE_HOST_SLURMSTEPD)
            add_to_series();
        return SLURM_SUCCESS;
    case ENERGY_DATA_STEP_PTR:
        if (self.host == JOULE_HOST_SLURMSTEPD)
            register_step(data);
        return SLURM_SUCCESS;
    case ENERGY_DATA_RECONFIG: /* 22.05: after init and conf_set */
        if (self.host == JOULE_HOST_SLURMD)
            find_sampler();
        return SLURM_SUCCESS;
    default:
        slurm_error("%s: Slurm sets unknown energy data %d",
                    joule_energy_plugin, (int)type);
        return SLURM_ERROR;
    }
}
