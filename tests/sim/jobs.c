/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/sim/cgroup.h"
#include "tests/sim/jobtree.h"

#define SEARCH_NS (5 * JOULE_NS_PER_MS)
#define WINDOW_NS JOULE_NS_PER_S

struct group {
    struct sim_cgroup cgroup; /* not open: it counts nothing */
    ino_t ino; /* of its directory: what tells it from an earlier one */
    size_t job;
    uint64_t *last_ns; /* [cpus]: its counter when it was last read */
    unsigned search;   /* in which it was last found */
};

/* What has been used on a CPU of the host; where CPU time is not known by CPU
 * there is one for all. */
struct cpu {
    unsigned package;
    uint64_t first_ns; /* of the node's counter, at the beginning */
    uint64_t jobs_ns, system_ns;
};

struct sim_jobs {
    struct sim_jobtree *tree;
    struct sim_jobtree *also; /* or NULL */
    struct sim_cgroup node;
    size_t cpus;
    struct cpu *cpu;   /* [cpus] */
    uint64_t *node_ns; /* [cpus]: the node's counter when it was last read */
    int64_t price_uw;
    struct sim_job *job;
    size_t job_count, job_space;
    struct group *group;
    size_t group_count, group_space;
    unsigned search;
    int64_t searched_ns, window_from_ns;
    sim_fj cost; /* of all, in millionths of a fJ */
    sim_fj package_cost[SIM_PACKAGES_MAX];
    sim_fj window_cost;     /* when the window began */
    uint64_t window_cpu_ns; /* used in it by all */
};

/* Room for one more in an array. */
static void *grow(void *array, size_t count, size_t *space, size_t size)
{
    size_t more = *space ? *space * 2 : 16;

    if (count < *space)
        return array;
    array = realloc(array, more * size);
    if (array)
        *space = more;
    return array;
}

/* The place of a job, made if it is new; -1 with ENOMEM. */
static ssize_t job_place(struct sim_jobs *jobs, uint32_t id)
{
    struct sim_job *job;

    for (size_t i = 0; i < jobs->job_count; i++)
        if (jobs->job[i].id == id)
            return (ssize_t)i;
    job = grow(jobs->job, jobs->job_count, &jobs->job_space, sizeof(*job));
    if (!job)
        return -1;
    jobs->job = job;
    jobs->job[jobs->job_count] =
        (struct sim_job){.id = id, .intensity_ppm = SIM_INTENSITY_ONE};
    return (ssize_t)jobs->job_count++;
}

static void charge(struct sim_jobs *jobs, struct sim_job *job, uint64_t ns,
                   const struct cpu *cpu)
{
    sim_fj cost = (sim_fj)jobs->price_uw * (sim_fj)job->intensity_ppm * ns;

    job->cpu_ns += ns;
    job->cost += cost;
    job->window_ns += ns;
    jobs->cost += cost;
    jobs->package_cost[cpu->package] += cost;
    jobs->window_cpu_ns += ns;
}

/* A counter, by CPU as the node's is; it never falls. */
static int counter_read(const struct sim_jobs *jobs,
                        const struct sim_cgroup *cgroup, uint64_t *ns)
{
    uint64_t now[SIM_CGROUP_CPUS];
    size_t count;

    if (sim_cgroup_read_each(cgroup, now, &count))
        return -1;
    for (size_t i = 0; i < count && i < jobs->cpus; i++)
        if (now[i] > ns[i])
            ns[i] = now[i];
    return 0;
}

static void group_close(struct group *g)
{
    sim_cgroup_close(&g->cgroup);
    free(g->last_ns);
}

/* Whether the group is known, and was found again. */
static bool group_known(struct sim_jobs *jobs, ino_t ino, uint32_t id,
                        bool counts)
{
    for (size_t i = 0; i < jobs->group_count; i++) {
        struct group *g = &jobs->group[i];

        if (g->ino == ino && jobs->job[g->job].id == id &&
            (g->cgroup.fd >= 0) == counts) {
            g->search = jobs->search;
            return true;
        }
    }
    return false;
}

/* A new one that counts nothing, at the end of the groups: it is one of them as
 * soon as they are one more.  NULL: no memory. */
static struct group *group_make(struct sim_jobs *jobs, ino_t ino, uint32_t id)
{
    struct group *g =
        grow(jobs->group, jobs->group_count, &jobs->group_space, sizeof(*g));
    ssize_t place = g ? job_place(jobs, id) : -1;

    if (g)
        jobs->group = g;
    if (place < 0)
        return NULL;
    g += jobs->group_count;
    *g = (struct group){.cgroup = {.fd = -1},
                        .ino = ino,
                        .job = (size_t)place,
                        .search = jobs->search};
    return g;
}

/* A sim_jobtree_f. */
static void group_found(void *arg, int at_fd, const char *dir, ino_t ino,
                        uint32_t id)
{
    struct sim_jobs *jobs = arg;
    struct sim_cgroup cgroup;
    struct group *g;

    if (group_known(jobs, ino, id, true))
        return;
    /* Not set up yet, or gone again: the next search looks again. */
    if (sim_cgroup_open(&cgroup, at_fd, dir, jobs->node.each))
        return;
    g = group_make(jobs, ino, id);
    if (!g) {
        sim_cgroup_close(&cgroup);
        return;
    }
    g->cgroup = cgroup;
    g->last_ns = calloc(jobs->cpus, sizeof(*g->last_ns));
    /* What it used before it was found is its own, but not what was used
     * before the simulation. */
    if (!g->last_ns ||
        (jobs->search == 1 && counter_read(jobs, &g->cgroup, g->last_ns)))
        group_close(g);
    else
        jobs->group_count++;
}

/* Another: below the path of sim_jobs_also. */
static void also_found(void *arg, int at_fd, const char *dir, ino_t ino,
                       uint32_t id)
{
    struct sim_jobs *jobs = arg;

    (void)at_fd;
    (void)dir;
    if (!group_known(jobs, ino, id, false) && group_make(jobs, ino, id))
        jobs->group_count++;
}

/* Take in what has been used in it; -1: it is gone. */
static int group_count(struct sim_jobs *jobs, struct group *g)
{
    struct sim_job *job = &jobs->job[g->job];
    uint64_t before[SIM_CGROUP_CPUS];

    memcpy(before, g->last_ns, jobs->cpus * sizeof(*before));
    if (counter_read(jobs, &g->cgroup, g->last_ns))
        return -1;
    for (size_t i = 0; i < jobs->cpus; i++) {
        uint64_t ns = g->last_ns[i] - before[i];

        jobs->cpu[i].jobs_ns += ns;
        charge(jobs, job, ns, &jobs->cpu[i]);
    }
    return 0;
}

/* false: it is gone. */
static bool group_read(struct sim_jobs *jobs, struct group *g, int64_t now_ns)
{
    struct sim_job *job = &jobs->job[g->job];

    if ((g->cgroup.fd >= 0 && group_count(jobs, g)) ||
        g->search != jobs->search)
        return false;
    if (!job->seen)
        job->first_ns = now_ns;
    job->seen = true;
    job->last_ns = now_ns;
    return true;
}

/* The rest of what the node has used. */
static void system_charge(struct sim_jobs *jobs, int64_t now_ns)
{
    struct sim_job *system = &jobs->job[0];

    system->last_ns = now_ns;
    for (size_t i = 0; i < jobs->cpus; i++) {
        struct cpu *cpu = &jobs->cpu[i];
        uint64_t used = jobs->node_ns[i] - cpu->first_ns;

        if (used <= cpu->jobs_ns + cpu->system_ns)
            continue;
        used -= cpu->jobs_ns + cpu->system_ns;
        cpu->system_ns += used;
        charge(jobs, system, used, cpu);
    }
}

void sim_jobs_update(struct sim_jobs *jobs, int64_t now_ns)
{
    /* The whole first: the rest of it is then never too much, and what is
     * missing is there the next time. */
    counter_read(jobs, &jobs->node, jobs->node_ns);
    if (!jobs->search || now_ns - jobs->searched_ns >= SEARCH_NS) {
        jobs->searched_ns = now_ns;
        jobs->search++;
        sim_jobtree_walk(jobs->tree, group_found, jobs);
        if (jobs->also)
            sim_jobtree_walk(jobs->also, also_found, jobs);
    }
    for (size_t i = 0; i < jobs->group_count;) {
        struct group *g = &jobs->group[i];

        if (group_read(jobs, g, now_ns)) {
            i++;
            continue;
        }
        group_close(g);
        *g = jobs->group[--jobs->group_count];
    }
    system_charge(jobs, now_ns);
    if (now_ns - jobs->window_from_ns >= WINDOW_NS)
        sim_jobs_settle(jobs, now_ns);
}

void sim_jobs_settle(struct sim_jobs *jobs, int64_t now_ns)
{
    sim_fj fj = (jobs->cost - jobs->window_cost) / SIM_INTENSITY_ONE;

    jobs->window_from_ns = now_ns;
    if (!jobs->window_cpu_ns)
        return;
    for (size_t i = 0; i < jobs->job_count; i++) {
        struct sim_job *job = &jobs->job[i];

        /* At most 2^87 fJ (100 kW x 1000 x 1024 CPUs, 1 s) x 2^40 ns. */
        job->share_fj += fj * job->window_ns / jobs->window_cpu_ns;
        job->window_ns = 0;
    }
    jobs->window_cost = jobs->cost;
    jobs->window_cpu_ns = 0;
}

/* The node's counter: how many CPUs it tells of, and where it stands. */
static int node_open(struct sim_jobs *jobs, const char *path,
                     const struct sim_machine *machine, struct joule_error *err)
{
    uint64_t now[SIM_CGROUP_CPUS];

    if (sim_cgroup_open(&jobs->node, AT_FDCWD, path, true) ||
        sim_cgroup_read_each(&jobs->node, now, &jobs->cpus))
        return joule_error_set(err, errno,
                               "group %s of jobs has no readable "
                               "cpuacct.usage_percpu or cpu.stat: %m",
                               path);
    if (!jobs->node.each && machine->packages > 1)
        return joule_error_set(err, ENOTSUP,
                               "group %s of jobs does not tell CPU time by "
                               "CPU: only one package will do",
                               path);
    jobs->tree = sim_jobtree_create(path, jobs->node.micro);
    jobs->cpu = calloc(jobs->cpus, sizeof(*jobs->cpu));
    jobs->node_ns = calloc(jobs->cpus, sizeof(*jobs->node_ns));
    if (!jobs->tree || !jobs->cpu || !jobs->node_ns)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < jobs->cpus; i++) {
        size_t at = sim_machine_host_cpu(machine, (unsigned)i);

        jobs->cpu[i].package = machine->cpus[at].package;
        jobs->cpu[i].first_ns = jobs->node_ns[i] = now[i];
    }
    return 0;
}

struct sim_jobs *sim_jobs_create(const char *path,
                                 const struct sim_machine *machine,
                                 int64_t now_ns, struct joule_error *err)
{
    struct sim_jobs *jobs = calloc(1, sizeof(*jobs));

    if (!jobs) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    jobs->node.fd = -1;
    jobs->window_from_ns = now_ns;
    if (job_place(jobs, SIM_JOB_SYSTEM) < 0) {
        joule_error_set(err, ENOMEM, "out of memory");
    } else if (!node_open(jobs, path, machine, err)) {
        jobs->job[0].seen = true;
        jobs->job[0].first_ns = now_ns;
        sim_jobs_update(jobs, now_ns);
        return jobs;
    }
    sim_jobs_destroy(jobs);
    return NULL;
}

int sim_jobs_also(struct sim_jobs *jobs, const char *path,
                  struct joule_error *err)
{
    if (access(path, X_OK))
        return joule_error_set(err, errno, "group %s of jobs: %m", path);
    jobs->also = sim_jobtree_create(path, false);
    if (!jobs->also)
        return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

void sim_jobs_destroy(struct sim_jobs *jobs)
{
    int saved = errno;

    if (!jobs)
        return;
    for (size_t i = 0; i < jobs->group_count; i++)
        group_close(&jobs->group[i]);
    sim_cgroup_close(&jobs->node);
    free(jobs->cpu);
    free(jobs->node_ns);
    free(jobs->group);
    free(jobs->job);
    sim_jobtree_destroy(jobs->tree);
    sim_jobtree_destroy(jobs->also);
    free(jobs);
    errno = saved;
}

sim_fj sim_jobs_fj(const struct sim_jobs *jobs)
{
    return jobs->cost / SIM_INTENSITY_ONE;
}

static uint64_t cost_nj(sim_fj cost)
{
    return (uint64_t)(cost / SIM_INTENSITY_ONE / SIM_FJ_PER_NJ);
}

uint64_t sim_job_nj(const struct sim_job *job)
{
    return cost_nj(job->cost);
}

uint64_t sim_jobs_package_nj(const struct sim_jobs *jobs, unsigned package)
{
    return cost_nj(jobs->package_cost[package]);
}

void sim_jobs_set_price(struct sim_jobs *jobs, int64_t price_uw)
{
    jobs->price_uw = price_uw;
}

int sim_jobs_set_intensity(struct sim_jobs *jobs, uint32_t id, int64_t ppm)
{
    ssize_t place = job_place(jobs, id);

    if (place < 0)
        return errno = ENOMEM, -1;
    jobs->job[place].intensity_ppm = ppm;
    return 0;
}

size_t sim_jobs_count(const struct sim_jobs *jobs)
{
    return jobs->job_count;
}

const struct sim_job *sim_jobs_at(const struct sim_jobs *jobs, size_t i)
{
    return &jobs->job[i];
}

bool sim_jobs_know_cpus(const struct sim_jobs *jobs)
{
    return jobs->node.each;
}

const uint64_t *sim_jobs_by_cpu(const struct sim_jobs *jobs, size_t *ret_count)
{
    *ret_count = jobs->cpus;
    return jobs->node_ns;
}
