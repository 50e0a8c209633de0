/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/node/ledger.h"
#include "common/node/node_dir.h"
#include "common/sensors/cpu_states.h"
#include "lib/joule.h"

#define GROUPS       JOULE_CPU_STATE_GROUPS
#define STATES_HZ    10 /* below 100 ms stays are longer than the interval */
#define PERIOD_MIN   (20 * JOULE_NS_PER_MS)
#define PERIOD_MAX   (500 * JOULE_NS_PER_MS)
#define NODENAME_MAX 256

/* Figures that change once in [ns] are looked at four times as often, so that
 * they are known soon. */
static void set_pace(struct joule_pm_device *d, int64_t ns)
{
    d->max_hz = ns > 0 && ns < JOULE_NS_PER_S ? (int)(JOULE_NS_PER_S / ns) : 1;
    d->period_ns = ns / 4;
    if (d->period_ns < PERIOD_MIN)
        d->period_ns = PERIOD_MIN;
    if (d->period_ns > PERIOD_MAX)
        d->period_ns = PERIOD_MAX;
}

static void watts_line(const struct joule_pm_device *d, unsigned line,
                       char buf[JOULE_PM_NAME_MAX + 1])
{
    (void)line;
    snprintf(buf, JOULE_PM_NAME_MAX + 1, "%s", d->name);
}

/* ---- the own step ---- */

static int read_step(struct joule_pm_device *d, bool *ret_rate)
{
    struct joule_energy energy;

    if (joule_energy(&energy) < 0)
        return -1;
    set_pace(d, energy.period_ms * JOULE_NS_PER_MS);
    d->time_ns = energy.time_ns;
    d->amount[0] = (double)energy.step_uj / 1e6;
    d->rate[0] = energy.power_mw / 1e3;
    *ret_rate = energy.power_mw > 0;
    return 0;
}

/* The first figures of a step come within a period after it began. */
static bool may_come(void)
{
    const char *run = secure_getenv("JOULE_RUN_DIR");
    const char *node = getenv("SLURMD_NODENAME");
    char path[512];
    struct stat st;

    return node &&
           snprintf(path, sizeof(path), "%s/%s", run ? run : JOULE_RUN_DIR,
                    node) < (int)sizeof(path) &&
           stat(path, &st) == 0;
}

static int open_step(struct joule_pm_device *d, struct joule_error *err)
{
    bool rate;

    set_pace(d, JOULE_NS_PER_S);
    if (read_step(d, &rate) == 0 || (errno == ENOENT && may_come()))
        return 0;
    if (errno == ENODATA)
        return joule_error_set(err, ENODATA, "this is no step of a Slurm job");
    return joule_error_set(err, errno, "slurmd tells nothing of this step: %m");
}

static const struct joule_pm_kind step_kind = {
    .description = "what this job step uses on this node",
    .open = open_step,
    .read = read_step,
    .line = watts_line,
};

/* ---- the node ---- */

static int read_node(struct joule_pm_device *d, bool *ret_rate)
{
    struct joule_snapshot s;

    if (joule_ledger_read_node(d->reader, &s, NULL) < 0)
        return -1;
    if (!s.total.valid) {
        errno = ENODATA;
        return -1;
    }
    set_pace(d, s.period_ns);
    d->time_ns = s.total.mono_ns;
    d->amount[0] = (double)s.total.node_uj / 1e6;
    *ret_rate = s.total.mw != JOULE_MW_UNKNOWN;
    if (*ret_rate)
        d->rate[0] = (double)s.total.mw / 1e3;
    return 0;
}

static void close_node(struct joule_pm_device *d)
{
    joule_ledger_destroy(d->reader);
}

static int open_node(struct joule_pm_device *d, struct joule_error *err)
{
    struct joule_nodename from = {
        .option = d->node, .is_tool = true, .job = getenv("SLURMD_NODENAME")};
    char name[NODENAME_MAX];
    bool rate;

    if (joule_nodename_find(&from, d->root_fd, name, sizeof(name), err) < 0)
        return -1;
    set_pace(d, JOULE_NS_PER_S);
    d->reader = joule_ledger_open(d->root_fd, name, err);
    if (!d->reader)
        return errno == EACCES
                   ? joule_error_set(err, EACCES, "only root may read it")
                   : -1;
    if (read_node(d, &rate) < 0) {
        int errnum = errno;

        close_node(d);
        return joule_error_set(err, errnum, "the node's energy is not known");
    }
    return 0;
}

static const struct joule_pm_kind node_kind = {
    .description = "what this node uses",
    .open = open_node,
    .read = read_node,
    .close = close_node,
    .line = watts_line,
};

/* ---- states of CPUs ---- */

static int read_states(struct joule_pm_device *d, bool *ret_rate)
{
    *ret_rate = false;
    if (joule_cpu_states_read(d->reader, NULL) < 0)
        return -1;
    d->time_ns = joule_cpu_states_time(d->reader);
    for (unsigned i = 0; i < d->lines; i++)
        d->amount[i] =
            (double)joule_cpu_states_of(d->reader, d->first + i / GROUPS)
                ->group_ns[i % GROUPS] /
            1e7;
    return 0;
}

static int open_states(struct joule_pm_device *d,
                       enum joule_cpu_states_kind kind, struct joule_error *err)
{
    d->max_hz = STATES_HZ;
    d->period_ns = JOULE_NS_PER_S / STATES_HZ;
    d->reader = joule_cpu_states_open(d->root_fd, kind, d->first,
                                      d->lines / GROUPS, d->clock, err);
    return d->reader ? 0 : -1;
}

static void close_states(struct joule_pm_device *d)
{
    joule_cpu_states_close(d->reader);
}

static int open_cstates(struct joule_pm_device *d, struct joule_error *err)
{
    return open_states(d, JOULE_CSTATES, err);
}

static int open_pstates(struct joule_pm_device *d, struct joule_error *err)
{
    return open_states(d, JOULE_PSTATES, err);
}

static void cstate_line(const struct joule_pm_device *d, unsigned line,
                        char buf[JOULE_PM_NAME_MAX + 1])
{
    static const char *const groups[] = {"C0", "C1", "middle", "deepest"};

    snprintf(buf, JOULE_PM_NAME_MAX + 1, "cpu%u %s", d->first + line / GROUPS,
             groups[line % GROUPS]);
}

static void pstate_line(const struct joule_pm_device *d, unsigned line,
                        char buf[JOULE_PM_NAME_MAX + 1])
{
    static const char *const groups[] = {"highest", "high", "low", "lowest"};

    snprintf(buf, JOULE_PM_NAME_MAX + 1, "cpu%u %s", d->first + line / GROUPS,
             groups[line % GROUPS]);
}

static const struct joule_pm_kind cstates_kind = {
    .description = "percent of the time in idle states",
    .open = open_cstates,
    .read = read_states,
    .close = close_states,
    .line = cstate_line,
};

static const struct joule_pm_kind pstates_kind = {
    .description = "percent of the time at frequencies",
    .open = open_pstates,
    .read = read_states,
    .close = close_states,
    .line = pstate_line,
};

/* ---- one device ---- */

int joule_pm_device_read(struct joule_pm_device *d)
{
    double before[JOULE_PM_LINES_MAX];
    int64_t before_ns = d->known ? d->time_ns : 0;
    double passed_s;
    bool rate = false;

    memcpy(before, d->amount, sizeof(before));
    d->fails = d->kind->read(d, &rate) < 0;
    if (d->fails)
        return -1;
    passed_s = (double)(d->time_ns - before_ns) / 1e9;
    for (unsigned i = 0; i < d->lines && d->known; i++) {
        /* What was used is not taken back. */
        if (d->amount[i] < before[i])
            d->amount[i] = before[i];
        if (!rate && passed_s > 0)
            d->rate[i] = (d->amount[i] - before[i]) / passed_s;
    }
    if (d->known && d->time_ns <= before_ns) {
        d->time_ns = before_ns;
        return 0;
    }
    d->known = true;
    return 1;
}

int joule_pm_device_hold(struct joule_pm_device *d, struct joule_error *err)
{
    if (d->users == 0) {
        d->known = d->fails = false;
        memset(d->rate, 0, sizeof(d->rate));
        if (d->kind->open(d, err) < 0)
            return -1;
        joule_pm_device_read(d);
    }
    d->users++;
    return 0;
}

void joule_pm_device_let_go(struct joule_pm_device *d)
{
    if (--d->users == 0 && d->kind->close)
        d->kind->close(d);
}

/* ---- all of them ---- */

static void miss(struct joule_pm_devices *list, const char *name,
                 const struct joule_error *why)
{
    if (list->missing_count < JOULE_PM_MISSING_MAX)
        list->missing[list->missing_count++] =
            (struct joule_pm_missing){name, *why};
}

/* Take the device if it can be opened. */
static int add(struct joule_pm_devices *list, struct joule_pm_device *d,
               struct joule_error *err)
{
    if (joule_pm_device_hold(d, err) < 0)
        return -1;
    joule_pm_device_let_go(d);
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 8;
        struct joule_pm_device *more =
            reallocarray(list->device, room, sizeof(*more));

        if (!more)
            return joule_error_set(err, ENOMEM, "out of memory");
        list->device = more;
        list->room = room;
    }
    list->device[list->count++] = *d;
    return 0;
}

static void add_watts(struct joule_pm_devices *list,
                      const struct joule_pm_device *model,
                      const struct joule_pm_kind *kind, const char *name)
{
    struct joule_pm_device d = *model;
    struct joule_error why;

    d.kind = kind;
    d.lines = 1;
    snprintf(d.name, sizeof(d.name), "%s", name);
    if (add(list, &d, &why) < 0)
        miss(list, name, &why);
}

static void add_states(struct joule_pm_devices *list,
                       const struct joule_pm_device *model,
                       const struct joule_pm_kind *kind, const char *name)
{
    struct joule_error why = {""};
    int cpus = joule_cpu_states_limit(model->root_fd, &why);
    size_t before = list->count;

    for (int first = 0; first < cpus; first += JOULE_PM_STATE_CPUS) {
        int count = cpus - first;
        struct joule_pm_device d = *model;

        if (count > JOULE_PM_STATE_CPUS)
            count = JOULE_PM_STATE_CPUS;
        d.kind = kind;
        d.first = (unsigned)first;
        d.lines = (unsigned)count * GROUPS;
        snprintf(d.name, sizeof(d.name), "%s%d", name,
                 first / JOULE_PM_STATE_CPUS);
        add(list, &d, &why);
    }
    if (list->count == before)
        miss(list, name, &why);
}

void joule_pm_devices_find(struct joule_pm_devices *list, int root_fd,
                           const char *node, const struct joule_clock *clock)
{
    const struct joule_pm_device model = {
        .root_fd = root_fd, .node = node, .clock = clock};

    *list = (struct joule_pm_devices){0};
    add_watts(list, &model, &step_kind, "step");
    add_watts(list, &model, &node_kind, "node");
    add_states(list, &model, &cstates_kind, "CSTATES");
    add_states(list, &model, &pstates_kind, "PSTATES");
}

void joule_pm_devices_free(struct joule_pm_devices *list)
{
    free(list->device);
    *list = (struct joule_pm_devices){0};
}

struct joule_pm_device *joule_pm_devices_get(struct joule_pm_devices *list,
                                             const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->device[i].name, name) == 0)
            return &list->device[i];
    return NULL;
}
