/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/daemon/step_rows.h"
#include "common/base/hash.h"
#include "common/cgroup/busy.h"
#include "common/cgroup/usage.h"
#include "common/sensors/topology.h"

/* Who has no directory in proc is dead; whether it is still the same process
 * costs as much to know as its CPU time, and is looked at in one of so many
 * samples. */
#define SWEEPS 8

/* CPU time of a job without a step that is worth a word: what is left of its
 * tasks when the last step has ended takes less. */
#define STRAY_NS UINT64_C(1000000000)

/* The CPU time of a job's group, from its first step here until the group is
 * gone. */
struct job_reader {
    uint32_t job;              /* 0: none */
    struct joule_usage *usage; /* NULL: there is no group */
    bool has_step;
    bool has_foreign; /* groups that Slurm has not made were found */
    uint64_t cpu_ns;  /* that was read last */
    uint64_t left_ns; /* when its last step was there */
};

struct joule_steps {
    struct joule_steps_options opt;
    struct joule_ledger *ledger;
    struct joule_step_rows *rows;
    struct joule_busy *busy; /* NULL: not known */
    size_t cpus;             /* highest number + 1 */
    size_t words;
    size_t part_count;
    uint16_t package[JOULE_PARTS_MAX]; /* of each part, ascending */
    bool by_package, has_whole_node;
    bool has_more;       /* the total has more than packages and their DRAM */
    uint8_t *part_of;    /* [cpus]; JOULE_PARTS_MAX: of none */
    uint64_t *part_cpus; /* [part_count][words] */
    uint64_t *cpu_ns;    /* [cpus]: scratch */
    uint64_t part_uj[JOULE_PARTS_MAX], busy_ns[JOULE_PARTS_MAX];
    uint64_t component_uj[JOULE_PARTS_MAX * JOULE_COMPONENTS];
    struct joule_usage *reader[JOULE_LEDGER_SLOTS_MAX];
    uint64_t owner[JOULE_LEDGER_SLOTS_MAX]; /* of each reader */
    struct joule_step_cpu_time usage[JOULE_LEDGER_SLOTS_MAX];
    uint64_t *part_ns; /* [JOULE_LEDGER_SLOTS_MAX][part_count] */
    size_t job_of[JOULE_LEDGER_SLOTS_MAX]; /* of each reader: in job[] */
    struct job_reader job[JOULE_LEDGER_SLOTS_MAX];
    struct joule_job_cpu_time job_usage[JOULE_LEDGER_SLOTS_MAX];
    uint64_t *job_part_ns; /* as part_ns */
    size_t jobs;           /* none from here on */
    struct joule_steps_remarks remarks;
    char *node;
    size_t slots; /* none has a reader from here on */
    unsigned round;
    int64_t gap_ns; /* of the total, at the last sample */
};

/* -- the parts ---------------------------------------------------------- */

static void add_package(struct joule_steps *b, uint16_t package)
{
    size_t i = 0;

    while (i < b->part_count && b->package[i] < package)
        i++;
    if (i < b->part_count && b->package[i] == package)
        return;
    if (b->part_count == JOULE_PARTS_MAX) {
        b->by_package = false;
        return;
    }
    memmove(&b->package[i + 1], &b->package[i],
            (b->part_count - i) * sizeof(b->package[0]));
    b->package[i] = package;
    b->part_count++;
}

static bool is_of_package(const struct joule_domain *d)
{
    return d->kind == JOULE_DOMAIN_PACKAGE || d->kind == JOULE_DOMAIN_DRAM;
}

/* Where one domain is the whole node, packages beside it say how its energy is
 * divided. */
static bool has_whole_node(const struct joule_sensor *sensor)
{
    for (size_t i = 0; i < sensor->domain_count; i++)
        if (sensor->domains[i].in_total &&
            sensor->domains[i].kind == JOULE_DOMAIN_POWER)
            return true;
    return false;
}

static bool is_counted(const struct joule_steps *b,
                       const struct joule_domain *d)
{
    return b->has_whole_node ? is_of_package(d) : d->in_total;
}

/* By package only if all energy is some package's. */
static void find_parts(struct joule_steps *b)
{
    const struct joule_sensor *sensor = b->opt.sensor;

    b->has_whole_node = has_whole_node(sensor);
    b->by_package = true;
    for (size_t i = 0; i < sensor->domain_count; i++) {
        const struct joule_domain *d = &sensor->domains[i];

        b->has_more |= d->in_total && !is_of_package(d);
        if (!is_counted(b, d))
            continue;
        if (is_of_package(d))
            add_package(b, d->package);
        else
            b->by_package = false;
    }
    if (b->part_count == 0)
        b->by_package = false;
    if (!b->by_package)
        b->part_count = 1;
}

static uint8_t part_of_package(const struct joule_steps *b, uint16_t package)
{
    for (size_t p = 0; b->by_package && p < b->part_count; p++)
        if (b->package[p] == package)
            return (uint8_t)p;
    return b->by_package ? JOULE_PARTS_MAX : 0;
}

static int make_arrays(struct joule_steps *b)
{
    b->part_of = malloc(b->cpus);
    b->part_cpus = calloc(b->part_count * b->words, sizeof(*b->part_cpus));
    b->cpu_ns = calloc(b->cpus, sizeof(*b->cpu_ns));
    b->part_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * b->part_count, sizeof(*b->part_ns));
    b->job_part_ns =
        calloc(JOULE_LEDGER_SLOTS_MAX * b->part_count, sizeof(*b->part_ns));
    if (!b->part_of || !b->part_cpus || !b->cpu_ns || !b->part_ns ||
        !b->job_part_ns) {
        errno = ENOMEM;
        return -1;
    }
    memset(b->part_of, JOULE_PARTS_MAX, b->cpus);
    return 0;
}

/* One that is there may have room for more CPUs. */
static int open_ledger(struct joule_steps *b, struct joule_error *err)
{
    b->ledger =
        joule_ledger_create(b->opt.root_fd, b->node, (b->cpus + 63) / 64, err);
    if (!b->ledger)
        return -1;
    b->words = joule_ledger_words(b->ledger);
    return 0;
}

static void put_cpu(struct joule_steps *b, uint32_t cpu, uint8_t part)
{
    if (part >= b->part_count)
        return;
    b->part_of[cpu] = part;
    b->part_cpus[part * b->words + cpu / 64] |= UINT64_C(1) << cpu % 64;
}

/* The CPUs that are online now, each in its part.  Without a topology that can
 * be read they are in one. */
static int place_cpus(struct joule_steps *b, struct joule_error *err)
{
    struct joule_topology t = {0};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int rc;

    if (joule_topology_read(b->opt.root_fd, &t, err) < 0) {
        b->by_package = false;
        b->part_count = 1;
        b->cpus = online > 0 ? (size_t)online : 1;
    } else {
        b->cpus = t.cpus[t.cpu_count - 1].cpu + 1;
    }
    if (b->cpus > JOULE_LEDGER_WORDS_MAX * 64)
        return joule_error_set(err, EINVAL,
                               "CPU %zu is beyond what a ledger "
                               "can hold",
                               b->cpus - 1);
    rc = open_ledger(b, err);
    if (rc == 0 && make_arrays(b) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < t.cpu_count; i++)
        put_cpu(b, t.cpus[i].cpu, part_of_package(b, t.cpus[i].package));
    for (uint32_t cpu = 0; rc == 0 && t.cpu_count == 0 && cpu < b->cpus; cpu++)
        put_cpu(b, cpu, 0);
    joule_topology_free(&t);
    return rc;
}

/* Tells this set of parts, and what is counted in them, from another.  Labels
 * of a BMC that say nothing of the node may come and go. */
static uint64_t parts_key(const struct joule_steps *b)
{
    const struct joule_sensor *sensor = b->opt.sensor;
    uint64_t key = JOULE_HASH_BEGIN;

    for (size_t i = 0; i < sensor->domain_count; i++)
        if (sensor->domains[i].in_total || is_of_package(&sensor->domains[i]))
            key =
                joule_hash_u64(key, joule_domains_key(&sensor->domains[i], 1));
    for (size_t i = 0; i < b->part_count * b->words; i++)
        key = joule_hash_u64(key, b->part_cpus[i]);
    return joule_hash_u64(key, b->part_count);
}

struct joule_steps *joule_steps_create(const struct joule_steps_options *opt,
                                       struct joule_error *err)
{
    struct joule_steps *b = calloc(1, sizeof(*b));
    struct joule_step_rows_options rows = {
        .attribution = opt->attribution,
        .idle_uw = opt->idle_uw,
    };
    int saved;

    if (!b) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    b->opt = *opt;
    b->opt.node = NULL;
    b->node = strdup(opt->node);
    if (!b->node) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto fail;
    }
    find_parts(b);
    if (place_cpus(b, err) < 0)
        goto fail;
    rows.ledger = b->ledger;
    rows.part_cpus = b->part_cpus;
    rows.part_count = b->part_count;
    rows.part_key = parts_key(b);
    b->rows = joule_step_rows_create(&rows, err);
    if (!b->rows)
        goto fail;
    b->remarks.is_spoiled = joule_step_rows_is_spoiled(b->rows);
    b->busy = joule_busy_create(opt->root_fd, b->cpus, NULL);
    return b;
fail:
    saved = errno;
    joule_steps_destroy(b);
    errno = saved;
    return NULL;
}

void joule_steps_destroy(struct joule_steps *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < JOULE_LEDGER_SLOTS_MAX; i++) {
        joule_usage_destroy(b->reader[i]);
        joule_usage_destroy(b->job[i].usage);
    }
    joule_busy_destroy(b->busy);
    joule_step_rows_destroy(b->rows);
    joule_ledger_destroy(b->ledger);
    free(b->part_of);
    free(b->part_cpus);
    free(b->cpu_ns);
    free(b->part_ns);
    free(b->job_part_ns);
    free(b->node);
    free(b);
}

struct joule_ledger *joule_steps_ledger(struct joule_steps *b)
{
    return b->ledger;
}

/* -- CPU time ----------------------------------------------------------- */

static void add_by_part(const struct joule_steps *b, const uint64_t *by_cpu,
                        uint64_t *ret)
{
    memset(ret, 0, b->part_count * sizeof(*ret));
    for (size_t c = 0; c < b->cpus; c++)
        if (b->part_of[c] < b->part_count)
            ret[b->part_of[c]] += by_cpu[c];
}

/* The place of a job; JOULE_LEDGER_SLOTS_MAX: there is none left. */
static size_t find_job(struct joule_steps *b, uint32_t job)
{
    size_t first = JOULE_LEDGER_SLOTS_MAX;

    for (size_t i = 0; i < b->jobs; i++) {
        if (b->job[i].job == job)
            return i;
        if (b->job[i].job == 0 && i < first)
            first = i;
    }
    if (first == JOULE_LEDGER_SLOTS_MAX && b->jobs < JOULE_LEDGER_SLOTS_MAX)
        first = b->jobs++;
    if (first < JOULE_LEDGER_SLOTS_MAX) {
        b->job[first] = (struct job_reader){.job = job};
        b->job_usage[first] = (struct joule_job_cpu_time){0};
    }
    return first;
}

/* The reader of a slot's CPU time follows who has the slot. */
static void follow_owner(struct joule_steps *b, unsigned slot)
{
    uint64_t owner = joule_ledger_owner_of(b->ledger, slot);
    struct joule_registration r;
    struct joule_usage_step step = {.node = b->node, .path = r.path};

    if (owner == b->owner[slot] && (owner == 0 || b->reader[slot]))
        return;
    joule_usage_destroy(b->reader[slot]);
    b->reader[slot] = NULL;
    b->owner[slot] = 0;
    if (owner == 0 ||
        joule_ledger_registered(b->ledger, slot, &r, NULL, NULL) < 0)
        return;
    step.pid = joule_process_pid(r.owner);
    step.job = r.job;
    step.step = r.step;
    step.uid = r.uid;
    b->reader[slot] =
        joule_usage_create(b->opt.root_fd, &step, b->by_package ? b->cpus : 0);
    b->owner[slot] = r.owner;
    b->job_of[slot] = find_job(b, r.job);
}

/* A step that is there finds the group of its job. */
static void follow_job(struct joule_steps *b, unsigned slot)
{
    struct job_reader *j;
    struct joule_job_cpu_time *u;

    if (b->job_of[slot] == JOULE_LEDGER_SLOTS_MAX || !b->reader[slot])
        return;
    j = &b->job[b->job_of[slot]];
    u = &b->job_usage[b->job_of[slot]];
    j->has_step = true;
    if (j->usage)
        return;
    j->usage = joule_usage_create_job(b->reader[slot]);
    if (!j->usage && errno == ENOENT)
        u->state = JOULE_USAGE_GONE;
}

static void read_usage(struct joule_steps *b, unsigned slot)
{
    struct joule_step_cpu_time *u = &b->usage[slot];
    const uint64_t *by_cpu;

    *u = (struct joule_step_cpu_time){.owner = b->owner[slot]};
    if (!b->reader[slot])
        return;
    if (joule_usage_read(b->reader[slot], &u->cpu_ns, &by_cpu) < 0) {
        if (errno == ENODEV || errno == ESRCH)
            u->state = JOULE_USAGE_GONE;
        return;
    }
    u->state = JOULE_USAGE_KNOWN;
    u->stepd_ns = joule_usage_stepd_ns(b->reader[slot]);
    if (!by_cpu || !b->by_package)
        return;
    add_by_part(b, by_cpu, b->part_ns + slot * b->part_count);
    u->part_ns = b->part_ns + slot * b->part_count;
}

/* A job without a step keeps its place as long as its group is there. */
static void read_job(struct joule_steps *b, size_t i)
{
    struct job_reader *j = &b->job[i];
    struct joule_job_cpu_time *u = &b->job_usage[i];
    const uint64_t *by_cpu;

    if (j->usage && joule_usage_read(j->usage, &u->cpu_ns, &by_cpu) == 0) {
        u->state = JOULE_USAGE_KNOWN;
        j->cpu_ns = u->cpu_ns;
        if (by_cpu && b->by_package) {
            u->part_ns = b->job_part_ns + i * b->part_count;
            add_by_part(b, by_cpu, b->job_part_ns + i * b->part_count);
        }
    } else if (j->usage && errno == ENODEV) {
        u->state = JOULE_USAGE_GONE;
        joule_usage_destroy(j->usage);
        j->usage = NULL;
    }
    if (j->has_step)
        j->left_ns = j->cpu_ns;
    else if (j->usage && j->cpu_ns - j->left_ns >= STRAY_NS &&
             j->cpu_ns > j->left_ns)
        b->remarks.stray_job = j->job;
    else if (!j->usage)
        *j = (struct job_reader){0};
}

/* Returns how many jobs were found to have foreign groups. */
static uint64_t read_jobs(struct joule_steps *b)
{
    uint64_t foreign = 0;
    size_t jobs = b->jobs;

    for (size_t i = 0; i < jobs; i++) {
        struct job_reader *j = &b->job[i];
        size_t groups;

        b->job_usage[i].job = j->job;
        if (j->job == 0)
            continue;
        read_job(b, i);
        if (!j->usage || j->has_foreign || i % SWEEPS != b->round % SWEEPS)
            continue;
        groups = joule_usage_foreign(j->usage);
        if (groups == 0)
            continue;
        j->has_foreign = true;
        foreign++;
        b->remarks.foreign_job = j->job;
        b->remarks.foreign_groups = groups;
    }
    while (b->jobs > 0 && b->job[b->jobs - 1].job == 0)
        b->jobs--;
    return foreign;
}

static void forget_jobs(struct joule_steps *b)
{
    for (size_t i = 0; i < b->jobs; i++) {
        b->job[i].has_step = false;
        b->job_usage[i] = (struct joule_job_cpu_time){0};
    }
}

static bool has_process(const struct joule_steps *b, unsigned slot)
{
    char path[32];

    snprintf(path, sizeof(path), "proc/%lld",
             (long long)joule_process_pid(b->owner[slot]));
    return faccessat(b->opt.root_fd, path, F_OK, 0) == 0 || errno != ENOENT;
}

static size_t read_usages(struct joule_steps *b)
{
    size_t taken = joule_ledger_taken(b->ledger);
    size_t slots = taken > b->slots ? taken : b->slots;

    b->slots = 0;
    forget_jobs(b);
    for (unsigned i = 0; i < slots; i++) {
        follow_owner(b, i);
        if (b->owner[i] == 0) {
            b->usage[i].owner = 0;
            continue;
        }
        b->slots = i + 1;
        read_usage(b, i);
        follow_job(b, i);
        if (i % SWEEPS == b->round % SWEEPS || !has_process(b, i))
            joule_ledger_sweep(b->ledger, b->opt.root_fd, i);
    }
    return slots;
}

/* -- energy ------------------------------------------------------------- */

static void find_part_energy(struct joule_steps *b,
                             const struct joule_snapshot *s)
{
    const struct joule_sensor *sensor = b->opt.sensor;

    memset(b->part_uj, 0, sizeof(b->part_uj));
    for (size_t i = 0; i < sensor->domain_count; i++) {
        const struct joule_domain *d = &sensor->domains[i];
        uint8_t part = part_of_package(b, d->package);

        if (is_counted(b, d) && part < b->part_count)
            b->part_uj[part] += s->total.reading[i].uj;
    }
}

/* Returns those that are measured: 1 << enum joule_component. */
static uint64_t find_component_energy(struct joule_steps *b,
                                      const struct joule_snapshot *s)
{
    const struct joule_sensor *sensor = b->opt.sensor;
    uint64_t known = 0, unknown = 0;

    memset(b->component_uj, 0, sizeof(b->component_uj));
    for (size_t i = 0; i < sensor->domain_count; i++) {
        const struct joule_domain *d = &sensor->domains[i];
        const struct joule_reading *r = &s->total.reading[i];
        uint8_t part = part_of_package(b, d->package);
        enum joule_component k = d->kind == JOULE_DOMAIN_DRAM
                                     ? JOULE_COMPONENT_MEMORY
                                     : JOULE_COMPONENT_CPU;

        if (!is_of_package(d) || !(d->in_total || b->has_more) ||
            part >= b->part_count)
            continue;
        known |= UINT64_C(1) << k;
        if (r->state == JOULE_READING_UNKNOWN)
            unknown |= UINT64_C(1) << k;
        b->component_uj[part * JOULE_COMPONENTS + k] += r->uj;
    }
    return known & ~unknown;
}

const struct joule_ledger_totals *
joule_steps_sample(struct joule_steps *b, const struct joule_snapshot *s)
{
    struct joule_step_rows_sample sample = {
        .mono_ns = s->total.mono_ns,
        .node_uj = s->total.node_uj,
        .node_since_ns = s->since_ns,
        .measured_ns = s->total.from_ns,
        .sensor_key = s->total.sensor_key,
        .usage = b->usage,
        .jobs = b->job_usage,
        .gap = s->total.gap_ns > b->gap_ns,
    };
    uint64_t generation = joule_ledger_generation(b->ledger);
    const struct joule_ledger_totals *totals;

    if (!s->total.valid) {
        joule_ledger_publish(b->ledger, NULL);
        return NULL;
    }
    b->gap_ns = s->total.gap_ns;
    if (b->by_package) {
        find_part_energy(b, s);
        sample.part_uj = b->part_uj;
    }
    sample.component_uj = b->component_uj;
    sample.components = find_component_energy(b, s);
    if (b->busy && joule_busy_read(b->busy, b->cpu_ns) == 0) {
        add_by_part(b, b->cpu_ns, b->busy_ns);
        sample.part_busy_ns = b->busy_ns;
    }
    sample.usage_count = read_usages(b);
    sample.job_count = b->jobs;
    sample.foreign = read_jobs(b);
    b->round++;
    totals = joule_step_rows_update(b->rows, &sample);
    /* There was no interval: the clock stands where it was. */
    if (joule_ledger_generation(b->ledger) == generation)
        joule_ledger_publish(b->ledger, NULL);
    return totals;
}

struct joule_steps_remarks joule_steps_remarks(const struct joule_steps *b)
{
    return b->remarks;
}

const struct joule_row *joule_steps_rows(const struct joule_steps *b,
                                         size_t *ret_count)
{
    return joule_step_rows_list(b->rows, ret_count);
}
