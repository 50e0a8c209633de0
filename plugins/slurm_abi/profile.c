/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lifetime of everything here is init() to fini(), and of a profile
 * node_step_start() to node_step_end(), which Slurm leaves out when the launch
 * of a step fails.
 */
#include "plugins/slurm_abi/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/profile/config.h"
#include "common/profile/writer.h"
#include "common/sensors/cpu_states.h"
#include "common/sensors/topology.h"
#include "common/step/energy_series.h"
#include "common/step/regions.h"
#include "common/step/state_series.h"
#include "plugins/slurm_abi/conf.h"
#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/series_input.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/slurm_step.h"
#include "plugins/slurm_abi/timers.h"

/* The entry points, as libslurm looks them up. */
JOULE_SLURM_EXPORT int init(void);
JOULE_SLURM_EXPORT int fini(void);
JOULE_SLURM_EXPORT void acct_gather_profile_p_child_forked(void);
JOULE_SLURM_EXPORT void
acct_gather_profile_p_conf_options(s_p_options_t **full_options,
                                   int *full_options_cnt);
JOULE_SLURM_EXPORT void acct_gather_profile_p_conf_set(s_p_hashtbl_t *table);
JOULE_SLURM_EXPORT void
acct_gather_profile_p_conf_values(joule_slurm_list *data);
JOULE_SLURM_EXPORT void *
acct_gather_profile_p_get(enum acct_gather_profile_info type, void *data);
JOULE_SLURM_EXPORT int acct_gather_profile_p_node_step_start(void *record);
JOULE_SLURM_EXPORT int acct_gather_profile_p_node_step_end(void);
JOULE_SLURM_EXPORT int acct_gather_profile_p_task_start(uint32_t taskid);
JOULE_SLURM_EXPORT int acct_gather_profile_p_task_end(pid_t pid);
JOULE_SLURM_EXPORT int64_t acct_gather_profile_p_create_group(const char *name);
JOULE_SLURM_EXPORT int
acct_gather_profile_p_create_dataset(const char *name, int64_t parent,
                                     acct_gather_profile_dataset_t *dataset);
JOULE_SLURM_EXPORT int
acct_gather_profile_p_add_sample_data(uint32_t dataset_id, void *data,
                                      time_t sample_time);
JOULE_SLURM_EXPORT bool acct_gather_profile_p_is_active(uint32_t type);

_Static_assert(ACCT_GATHER_PROFILE_NONE == JOULE_PROFILE_NONE &&
                   ACCT_GATHER_PROFILE_ENERGY == JOULE_PROFILE_ENERGY &&
                   ACCT_GATHER_PROFILE_TASK == JOULE_PROFILE_TASK &&
                   ACCT_GATHER_PROFILE_LUSTRE == JOULE_PROFILE_FILESYSTEM &&
                   ACCT_GATHER_PROFILE_NETWORK == JOULE_PROFILE_NETWORK &&
                   ACCT_GATHER_PROFILE_ALL == JOULE_PROFILE_ALL,
               "the bits of what is profiled are not Slurm's");

#define GROUPS_MAX 64

#define CONVERTER JOULE_LIBEXECDIR "/joule-profile-convert"

/* Two buffers of this are the most that waits for the disk. */
#define QUEUE_BYTES (1024 * 1024)

/* The period of a step that has not said which, but that it wants regions. */
#define REGIONS_PERIOD    "100ms"
#define REGIONS_PERIOD_NS (100 * JOULE_NS_PER_MS)

/* How long the end of a step may wait for a disk that does not answer, and for
 * the HDF5 file. */
#define CLOSE_NS (10 * JOULE_NS_PER_S)

/* Slurm's timer gives two samples when it begins; no other two are as near. */
#define TWICE_NS (100 * JOULE_NS_PER_MS)

/* A data set as Slurm knows it. */
struct dataset {
    int table;        /* of the writer */
    bool in_group;    /* of a task: its rows come when they come */
    unsigned rows;    /* 0, 1, more */
    int64_t first_ns; /* when the first came */
};

static struct {
    enum joule_host host;
    struct joule_profile_config config;
    struct joule_series_input *input;
    struct joule_timers *timers;
    struct joule_ticker *waker;
    atomic_int period_s; /* of Slurm's energy series, when tasks began */
    /* a profile */
    pthread_mutex_t lock; /* of all below */
    uint32_t running;     /* bits; 0: not decided yet */
    struct joule_writer *writer;
    struct joule_energy_series *energy;
    struct joule_regions *regions;
    struct joule_state_series *states;
    char *groups[GROUPS_MAX];
    int64_t group_count;
    struct dataset *datasets;
    uint32_t dataset_count;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say_problem(const char *text, void *arg)
{
    (void)arg;
    slurm_error("%s: %s", joule_profile_name, text);
}

static bool is_profiled(uint32_t bits)
{
    return bits > ACCT_GATHER_PROFILE_NONE;
}

int init(void)
{
    struct joule_error err;

    if (joule_host_check(&err) < 0) {
        slurm_error("%s: %s", joule_profile_name, err.text);
        return SLURM_ERROR;
    }
    self.host = joule_host_find();
    joule_option_defaults(joule_profile_options, &self.config);
    if (self.host == JOULE_HOST_SLURMSTEPD && !self.input)
        self.input = joule_series_input_create();
    return SLURM_SUCCESS;
}

static void forget_datasets(void)
{
    int64_t i;

    for (i = 0; i < self.group_count; i++)
        free(self.groups[i]);
    self.group_count = 0;
    free(self.datasets);
    self.datasets = NULL;
    self.dataset_count = 0;
}

/* Samples that come after this find no writer.  The lock is not held while the
 * file is written: the energy thread of Slurm may be about to add a row. */
static void close_profile(void)
{
    struct joule_energy_series *energy;
    struct joule_state_series *states;
    struct joule_regions *regions;
    struct joule_writer *writer;
    size_t refused;

    pthread_mutex_lock(&self.lock);
    energy = self.energy;
    regions = self.regions;
    states = self.states;
    writer = self.writer;
    self.energy = NULL;
    self.regions = NULL;
    self.states = NULL;
    self.writer = NULL;
    forget_datasets();
    pthread_mutex_unlock(&self.lock);
    joule_energy_series_destroy(energy);
    refused = joule_regions_destroy(regions);
    if (refused > 0)
        slurm_info(
            "%s: %zu processes have no regions: there were too many at a "
            "time",
            joule_profile_name, refused);
    joule_state_series_destroy(states);
    joule_writer_close(writer, CLOSE_NS);
}

int fini(void)
{
    close_profile();
    /* Slurm has waited for its threads by now. */
    joule_ticker_destroy(self.waker);
    self.waker = NULL;
    joule_series_input_destroy(self.input);
    self.input = NULL;
    self.running = ACCT_GATHER_PROFILE_NOT_SET;
    return SLURM_SUCCESS;
}

/* The file is closed on exec. */
void acct_gather_profile_p_child_forked(void)
{
}

void acct_gather_profile_p_conf_options(s_p_options_t **full_options,
                                        int *full_options_cnt)
{
    joule_conf_register(joule_profile_options, full_options, full_options_cnt);
}

/* slurmstepd of 24.11 and later calls this twice: with its own reading of
 * acct_gather.conf, then with slurmd's. */
void acct_gather_profile_p_conf_set(s_p_hashtbl_t *table)
{
    bool quiet =
        self.host != JOULE_HOST_SLURMD && self.host != JOULE_HOST_SLURMCTLD;

    joule_conf_load(joule_profile_options, &self.config, table, quiet);
    if (!self.config.dir[0] && !quiet)
        slurm_error("%s: ProfileHDF5Dir is not set in acct_gather.conf: "
                    "nothing is profiled",
                    joule_profile_name);
    if (self.input)
        joule_series_input_configure(self.input, table);
}

void acct_gather_profile_p_conf_values(joule_slurm_list *data)
{
    joule_conf_values(joule_profile_options, &self.config, *data);
}

void *acct_gather_profile_p_get(enum acct_gather_profile_info type, void *data)
{
    switch (type) {
    case ACCT_GATHER_PROFILE_DIR:
        *(char **)data = slurm_xstrdup(self.config.dir);
        break;
    case ACCT_GATHER_PROFILE_DEFAULT:
        *(uint32_t *)data = self.config.default_bits;
        break;
    case ACCT_GATHER_PROFILE_RUNNING:
        *(uint32_t *)data = self.running;
        break;
    default:
        slurm_error("%s: Slurm asks for unknown profile data %d",
                    joule_profile_name, (int)type);
    }
    return NULL;
}

/* ---- the step ---- */

static bool has_wish(const struct joule_slurm_step *step, const char *name)
{
    const char *text = joule_slurm_step_getenv(step, name);

    return text && *text && strcmp(text, "none") != 0;
}

/* srun --energy-regions, or the user himself, has set the one; --energy-waits the
 * other, which is of steps with a number. */
static bool wants_energy(const struct joule_slurm_step *step)
{
    return (step->step_id != SLURM_EXTERN_CONT &&
            has_wish(step, "JOULE_REGIONS")) ||
           (step->step_id < SLURM_MAX_NORMAL_STEP_ID &&
            has_wish(step, "JOULE_ENERGY_WAITS"));
}

/* Regions and waits are of no use without energy, but --profile=none stays what it is. */
static uint32_t wanted(const struct joule_slurm_step *step)
{
    uint32_t bits = step->profile != ACCT_GATHER_PROFILE_NOT_SET
                        ? step->profile
                        : self.config.default_bits;

    if (step->step_id == SLURM_EXTERN_CONT && !self.config.extern_step)
        return ACCT_GATHER_PROFILE_NONE;
    if (step->profile == ACCT_GATHER_PROFILE_NONE || !wants_energy(step))
        return bits;
    return (is_profiled(bits) ? bits : 0) | ACCT_GATHER_PROFILE_ENERGY;
}

/* Of the energy series, in ns; 0: as Slurm's timer has it.  Regions are often short. */
static int64_t period_of(const struct joule_slurm_step *step)
{
    const char *wish = joule_slurm_step_getenv(step, "JOULE_PROFILE_PERIOD");
    int64_t period_ns = self.config.period_ns;
    struct joule_error err;

    if (!wish && wants_energy(step) &&
        (period_ns == 0 || period_ns > REGIONS_PERIOD_NS))
        wish = REGIONS_PERIOD;
    if (joule_profile_period(&self.config, wish, &period_ns, &err) < 0)
        slurm_info("%s: %s", joule_profile_name, err.text);
    return period_ns;
}

/* One that an admin has named is started as root, too: nobody else may have put
 * it there.  NULL: somebody could, and the profile stays a log. */
static const char *find_converter(void)
{
    const char *program = self.config.converter;
    struct joule_error err;
    int root, fd = -1;

    if (!program[0])
        return CONVERTER;
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0) {
        fd = joule_file_open_trusted(root, program, 022, &err);
        close(root);
    } else {
        joule_error_set(&err, errno, "cannot open /: %m");
    }
    if (fd >= 0) {
        close(fd);
        return program;
    }
    slurm_error("%s: JouleProfileConverter is not used: %s", joule_profile_name,
                err.text);
    return NULL;
}

static struct joule_writer *open_writer(const struct joule_slurm_step *step,
                                        struct joule_error *err)
{
    char base[512];
    struct joule_writer_options opt = {
        .place = {.dir = self.config.dir,
                  .user = step->user,
                  .uid = step->uid,
                  .gid = step->gid,
                  .groups = step->groups,
                  .group_count = step->group_count,
                  .admin = &slurm_conf ? slurm_conf.slurm_user_id : 0},
        .base = base,
        .facts = {.node = step->node,
                  .writer = PACKAGE_STRING,
                  .node_index = step->node_index,
                  .tasks = step->node_tasks,
                  .cpus_per_task = step->cpus_per_task,
                  .chunk_rows = self.config.chunk_rows,
                  .pack = joule_profile_pack(&self.config)},
        .helper = find_converter(),
        .clock = &joule_clock_system,
        .flush_ns = self.config.flush_ns,
        .queue_bytes = QUEUE_BYTES,
        .problem = say_problem,
    };

    if (joule_slurm_step_file(step, base, sizeof(base)) < 0) {
        joule_error_set(err, ENAMETOOLONG, "the node's name is too long");
        return NULL;
    }
    return joule_writer_create(&opt, err);
}

/*
 * Slurm's timer of the energy series, as --acctg-freq set it.  That is after
 * node_step_start; a second later, when the series asks, it is there, and is
 * gone if the step has ended by then.
 */
static int64_t slurm_period_ns(void)
{
    int seconds = joule_timers_energy_s(self.timers);

    if (seconds == 0)
        seconds = atomic_load(&self.period_s);
    if (seconds <= 0 || seconds > 7 * 24 * 3600)
        return 0;
    return seconds * JOULE_NS_PER_S;
}

/* With an energy plugin that is not ours, its series is Slurm's affair. */
static struct joule_energy_series *
open_energy(const struct joule_slurm_step *step, struct joule_writer *writer,
            int64_t period_ns)
{
    struct joule_energy_series_options opt = {
        .clock = &joule_clock_system,
        .writer = writer,
        .period_ns = period_ns,
        .ask_period_ns = slurm_period_ns,
    };
    struct joule_error err;

    if (!self.input ||
        joule_series_input_open(self.input, step, &opt, &err) < 0) {
        slurm_debug("%s: %s", joule_profile_name,
                    self.input ? err.text : "out of memory");
        return NULL;
    }
    return joule_energy_series_create(&opt);
}

/* Regions of the step's processes, where its energy is profiled, too. */
static struct joule_regions *open_regions(const struct joule_slurm_step *step,
                                          struct joule_writer *writer,
                                          int64_t period_ns)
{
    char name[64];
    struct joule_regions_options opt = {
        .root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .node = step->node,
        .name = name,
        .uid = step->uid,
        .gid = step->gid,
        .clock = &joule_clock_system,
        .writer = writer,
        .period_ns = period_ns,
        .ask_period_ns = slurm_period_ns,
    };
    struct joule_regions *regions;
    struct joule_error err;

    if (step->step_id == SLURM_BATCH_SCRIPT)
        snprintf(name, sizeof(name), "%u.batch", step->job_id);
    else
        snprintf(name, sizeof(name), "%u.%u", step->job_id, step->step_id);
    regions = joule_regions_create(&opt, &err);
    if (!regions)
        slurm_error("%s: no regions: %s", joule_profile_name, err.text);
    if (opt.root_fd >= 0)
        close(opt.root_fd);
    return regions;
}

/* The CPUs that have the step's cores; all of the node where Slurm counts others than
 * the machine has. */
static int find_cpus(int root_fd, const struct joule_slurm_step *step,
                     struct joule_cpus *ret, struct joule_error *err)
{
    const char *list = step->step_cores ? step->step_cores : step->job_cores;
    struct joule_topology topology = {0};
    unsigned *cores = NULL;
    size_t count;
    int rc = -1;

    memset(ret, 0, sizeof(*ret));
    if (list && joule_parse_cpulist(list, &cores, &count) == 0 &&
        joule_topology_read(root_fd, &topology, NULL) == 0)
        rc = joule_topology_core_cpus(&topology, cores, count, ret->bits,
                                      sizeof(ret->bits) / sizeof(*ret->bits));
    joule_topology_free(&topology);
    free(cores);
    if (rc > 0)
        return 0;
    rc = joule_cpu_states_limit(root_fd, err);
    for (int cpu = 0; cpu < rc; cpu++)
        joule_cpus_add(ret, (unsigned)cpu);
    return rc > 0 ? 0 : -1;
}

static struct joule_state_series *
open_states(const struct joule_slurm_step *step, struct joule_writer *writer)
{
    const char *wish = joule_slurm_step_getenv(step, "JOULE_PROFILE_STATES");
    struct joule_cpus cpus;
    struct joule_state_series_options opt = {
        .clock = &joule_clock_system, .writer = writer, .cpus = &cpus};
    struct joule_state_series *states = NULL;
    struct joule_error err;

    if (joule_profile_states(&self.config, wish, &opt.period_ns, &err) < 0)
        slurm_info("%s: %s", joule_profile_name, err.text);
    if (opt.period_ns == 0)
        return NULL;
    opt.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (find_cpus(opt.root_fd, step, &cpus, &err) == 0)
        states = joule_state_series_create(&opt, &err);
    if (!states)
        slurm_info("%s: no C- and P-states: %s", joule_profile_name, err.text);
    if (opt.root_fd >= 0)
        close(opt.root_fd);
    return states;
}

/* What goes wrong here is said once, and the step runs without a profile. */
int acct_gather_profile_p_node_step_start(void *record)
{
    struct joule_slurm_step step;
    struct joule_writer *writer;
    struct joule_error err;
    int64_t period_ns;

    close_profile();
    self.running = ACCT_GATHER_PROFILE_NONE;
    atomic_store(&self.period_s, 0);
    if (joule_slurm_step_read(record, &step, &err) < 0) {
        slurm_error("%s: no profile: %s", joule_profile_name, err.text);
        return SLURM_SUCCESS;
    }
    if (!is_profiled(wanted(&step)))
        return SLURM_SUCCESS;
    if (!self.config.dir[0]) {
        slurm_error("%s: no profile: ProfileHDF5Dir is not set",
                    joule_profile_name);
        return SLURM_SUCCESS;
    }
    writer = open_writer(&step, &err);
    if (!writer) {
        slurm_error("%s: no profile: %s", joule_profile_name, err.text);
        return SLURM_SUCCESS;
    }
    self.running = wanted(&step);
    period_ns = period_of(&step);
    /* Not by a thread: the tasks are forked while it runs, and a lock of the
     * loader that it held would never be released in them. */
    self.timers = joule_timers_find();
    if (self.running & ACCT_GATHER_PROFILE_ENERGY)
        self.energy = open_energy(&step, writer, period_ns);
    if (self.energy) {
        self.regions = open_regions(&step, writer, period_ns);
        self.states = open_states(&step, writer);
    }
    pthread_mutex_lock(&self.lock);
    self.writer = writer;
    pthread_mutex_unlock(&self.lock);
    return SLURM_SUCCESS;
}

/*
 * Slurm's energy thread was told to end a moment ago, which it only hears while
 * it sleeps.  If it is still taking a sample when acct_gather_profile_fini
 * tells it for the last time, slurmstepd waits for it for ever: the thread for
 * the signal that it has missed, or in 22.05 for the lock that the waiting one
 * has.  So this waits for the sample: for the lock that the thread has
 * meanwhile.  RECONFIG is nothing to any energy plugin.
 */
static void await_energy_thread(void)
{
    if (is_profiled(self.running) &&
        (self.running & ACCT_GATHER_PROFILE_ENERGY) &&
        acct_gather_energy_g_set_data)
        acct_gather_energy_g_set_data(ENERGY_DATA_RECONFIG, NULL);
}

/* Others may miss it as well: they are told again until fini, before which
 * Slurm waits for them (timers.h). */
static void wake_until_fini(void)
{
    struct joule_error err;

    if (!is_profiled(self.running) || !self.timers || self.waker)
        return;
    self.waker = joule_timers_wake(self.timers, &err);
    if (!self.waker)
        slurm_debug("%s: %s", joule_profile_name, err.text);
}

int acct_gather_profile_p_node_step_end(void)
{
    await_energy_thread();
    close_profile();
    wake_until_fini();
    return SLURM_SUCCESS;
}

int acct_gather_profile_p_task_start(uint32_t taskid)
{
    int seconds = joule_timers_energy_s(self.timers);

    (void)taskid;
    if (seconds)
        atomic_store(&self.period_s, seconds);
    /* slurmstepd has moved to the step's cgroups by now. */
    pthread_mutex_lock(&self.lock);
    if (self.energy) {
        joule_energy_series_launched(self.energy);
        /* Slurm's thread would be woken for rows that are made here. */
        joule_timers_stop_energy(self.timers);
    }
    pthread_mutex_unlock(&self.lock);
    return SLURM_SUCCESS;
}

int acct_gather_profile_p_task_end(pid_t pid)
{
    (void)pid;
    return SLURM_SUCCESS;
}

bool acct_gather_profile_p_is_active(uint32_t type)
{
    if (!is_profiled(self.running))
        return false;
    return type == ACCT_GATHER_PROFILE_NOT_SET || (self.running & type);
}

/* ---- series that come through Slurm ---- */

int64_t acct_gather_profile_p_create_group(const char *name)
{
    int64_t group = SLURM_ERROR;

    pthread_mutex_lock(&self.lock);
    if (self.group_count < GROUPS_MAX) {
        self.groups[self.group_count] = strdup(name);
        if (self.groups[self.group_count])
            group = self.group_count++;
    }
    pthread_mutex_unlock(&self.lock);
    return group;
}

static size_t count_fields(const acct_gather_profile_dataset_t *dataset)
{
    size_t count = 0;

    while (dataset && dataset[count].type != JOULE_PROFILE_FIELD_END)
        count++;
    return count;
}

static int add_table(const char *name,
                     const acct_gather_profile_dataset_t *dataset)
{
    size_t count = count_fields(dataset), i;
    struct joule_field *fields;
    int table;

    if (count > JOULE_FIELDS_MAX)
        return -1;
    fields = calloc(count + 1, sizeof(*fields));
    if (!fields)
        return -1;
    for (i = 0; i < count; i++) {
        fields[i].name = dataset[i].name;
        fields[i].type = dataset[i].type == JOULE_PROFILE_FIELD_DOUBLE
                             ? JOULE_FIELD_DOUBLE
                             : JOULE_FIELD_U64;
    }
    table = joule_writer_add_table(self.writer, name, fields, count, 0);
    free(fields);
    return table;
}

/* Under the lock. */
static int add_dataset(const char *name, bool in_group,
                       const acct_gather_profile_dataset_t *fields)
{
    struct dataset *list;

    if (self.energy && !in_group && strcmp(name, "Energy") == 0)
        return JOULE_PROFILE_FILLED;
    list = realloc(self.datasets, (self.dataset_count + 1) * sizeof(*list));
    if (!list)
        return SLURM_ERROR;
    self.datasets = list;
    list += self.dataset_count;
    memset(list, 0, sizeof(*list));
    list->in_group = in_group;
    list->table = add_table(name, fields);
    if (list->table < 0) {
        slurm_error("%s: no table %s: %s", joule_profile_name, name,
                    strerror(errno));
        return SLURM_ERROR;
    }
    return (int)self.dataset_count++;
}

int acct_gather_profile_p_create_dataset(const char *name, int64_t parent,
                                         acct_gather_profile_dataset_t *dataset)
{
    char path[512];
    int id = SLURM_ERROR, length;

    pthread_mutex_lock(&self.lock);
    if (!self.writer || parent >= self.group_count) {
        pthread_mutex_unlock(&self.lock);
        return SLURM_ERROR;
    }
    length = parent < 0 ? snprintf(path, sizeof(path), "%s", name)
                        : snprintf(path, sizeof(path), "%s/%s",
                                   self.groups[parent], name);
    if (length > 0 && (size_t)length < sizeof(path))
        id = add_dataset(path, parent >= 0, dataset);
    pthread_mutex_unlock(&self.lock);
    return id;
}

/* The second of the two samples with which Slurm's timer begins. */
static bool is_twice(struct dataset *dataset, int64_t now_ns)
{
    if (dataset->in_group || dataset->rows > 1)
        return false;
    if (dataset->rows == 1 && now_ns - dataset->first_ns < TWICE_NS)
        return true;
    if (dataset->rows == 0)
        dataset->first_ns = now_ns;
    dataset->rows++;
    return false;
}

int acct_gather_profile_p_add_sample_data(uint32_t dataset_id, void *data,
                                          time_t sample_time)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);
    int rc = SLURM_SUCCESS;

    pthread_mutex_lock(&self.lock);
    /* Without a writer, the step has ended. */
    if (self.writer && dataset_id == JOULE_PROFILE_FILLED) {
        rc = SLURM_SUCCESS;
    } else if (self.writer && dataset_id >= self.dataset_count) {
        rc = SLURM_ERROR;
    } else if (self.writer) {
        struct dataset *dataset = &self.datasets[dataset_id];

        /* Rows that are dropped are counted, and said by the writer. */
        if (!is_twice(dataset, now_ns))
            joule_writer_append(self.writer, dataset->table, data, sample_time,
                                now_ns);
    }
    pthread_mutex_unlock(&self.lock);
    return rc;
}
