/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cgroup/hierarchy.h"
#include "tools/joule/ledger_command.h"

/* What is left of a job's tasks when its last step has ended uses less. */
#define STRAY_MIN_NS UINT64_C(1000000000)

/* ---- slurm.conf ---- */

static const char *value_of(const struct joule_slurmconf *conf, const char *key)
{
    const struct joule_slurmconf_setting *s = joule_slurmconf_find(conf, key);

    return s ? s->value : "";
}

#define WITHOUT_GROUPS                                                         \
    "CPU time is added up from the processes in /proc, and one that leaves "   \
    "its parent (double fork, ignored SIGCHLD) hides what it uses from its "   \
    "job: do not bill by JouleAttribution=cputime there; the line is for "     \
    "acct_gather.conf"

/* Where nobody makes cgroups for steps. */
static void check_cpu_time(const struct joule_slurmconf *conf,
                           struct joule_findings *findings)
{
    const struct joule_slurmconf_setting *gather =
        joule_slurmconf_find(conf, "JobAcctGatherType");
    const struct joule_slurmconf_setting *track =
        joule_slurmconf_find(conf, "ProctrackType");
    bool no_track = track && !strcasestr(track->value, "cgroup");

    if (!gather || strcasestr(gather->value, "none"))
        return;
    if (strcasestr(gather->value, "cgroup") ? !no_track : track && !no_track)
        return;
    joule_finding_add(
        findings, JOULE_WARNING, "cpu-time",
        no_track ? &track->place : &gather->place, "JouleAttribution=alloc",
        "with %s=%s, without cgroups that hold on to processes, " WITHOUT_GROUPS
        ", or set ProctrackType=proctrack/cgroup and "
        "JobAcctGatherType=jobacct_gather/cgroup",
        no_track ? "ProctrackType" : "JobAcctGatherType",
        no_track ? track->value : gather->value);
}

/* Whatever slurm.conf says. */
static void check_hierarchies(int root_fd, struct joule_findings *findings)
{
    char dir[JOULE_CGROUP_DIR_MAX];

    if (faccessat(root_fd, "proc/self/mountinfo", R_OK, 0) < 0 ||
        joule_cgroup_mount(root_fd, "cpuacct", dir) == 0 ||
        joule_cgroup_mount(root_fd, NULL, dir) == 0)
        return;
    joule_finding_add(findings, JOULE_WARNING, "no-cgroup", NULL,
                      "JouleAttribution=alloc",
                      "this node has no cgroup hierarchy with CPU times (v2, "
                      "or cpuacct of v1): " WITHOUT_GROUPS);
}

static void check_whole_node(const struct joule_slurmconf *conf,
                             struct joule_findings *findings)
{
    if (!strcasestr(value_of(conf, "SelectType"), "cons_") ||
        !conf->shared_partition[0])
        return;
    joule_finding_add(findings, JOULE_WARNING, "whole-node",
                      &conf->shared_place, "JouleAttribution=cputime",
                      "JouleAttribution=node charges each job with the whole "
                      "node, and jobs of partition %s may share nodes (it has "
                      "no OverSubscribe=EXCLUSIVE): their energies then add up "
                      "to more than the node has used; the line is for "
                      "acct_gather.conf",
                      conf->shared_partition);
}

void joule_attribution_check_conf(const struct joule_slurmconf *conf,
                                  const struct joule_energy_config *config,
                                  struct joule_findings *findings)
{
    if (config->attribution == JOULE_ATTRIBUTION_CPUTIME)
        check_cpu_time(conf, findings);
    if (config->attribution == JOULE_ATTRIBUTION_NODE)
        check_whole_node(conf, findings);
}

/* ---- the ledger ---- */

static int compare_jobs(const void *a, const void *b)
{
    uint32_t x = ((const struct joule_row *)a)->job;
    uint32_t y = ((const struct joule_row *)b)->job;

    return (x > y) - (x < y);
}

static void count_rows(struct joule_attribution_check *s,
                       struct joule_row *rows, size_t slots)
{
    for (size_t i = 0; i < slots; i++)
        if (rows[i].owner)
            rows[s->rows++] = rows[i];
    qsort(rows, s->rows, sizeof(*rows), compare_jobs);
    for (size_t i = 0; i < s->rows; i++)
        s->jobs += i == 0 || rows[i].job != rows[i - 1].job;
}

static int read_ledger(struct joule_probe *p)
{
    struct joule_attribution_check *s = &p->share;
    struct joule_ledger *ledger =
        joule_ledger_open(p->root_fd, p->node.name, &s->error);
    struct joule_row *rows;
    size_t slots = JOULE_LEDGER_SLOTS_MAX;
    int rc = -1, errnum;

    if (!ledger)
        return -1;
    rows = calloc(slots, sizeof(*rows));
    if (rows)
        rc = joule_ledger_read(ledger, &s->totals, rows, &slots);
    errnum = errno;
    if (rc == 0)
        count_rows(s, rows, slots);
    free(rows);
    joule_ledger_destroy(ledger);
    if (rc == 0)
        return 0;
    return joule_error_set(&s->error, errnum, "%s",
                           errnum == ENODATA  ? "it has no sample yet"
                           : errnum == ENOMEM ? "out of memory"
                                              : "it makes no sense");
}

static void judge_config(struct joule_probe *p)
{
    const struct joule_attribution_check *s = &p->share;
    const struct joule_energy_config *config = &p->conf.config;
    struct joule_findings *findings = &p->findings;
    const struct joule_ledger_totals *t = &s->totals;
    const char *how = joule_ledger_how(t->how);
    uint64_t idle_power_uw = 0;

    if (how && t->how != config->attribution + 1)
        joule_finding_add(findings, JOULE_WARNING, "attribution", NULL, NULL,
                          "slurmd divides by JouleAttribution=%s, but "
                          "acct_gather.conf says %s: run "
                          "'scontrol reconfigure'",
                          how, joule_ledger_how(config->attribution + 1));
    for (size_t i = 0; i < t->part_count; i++) {
        if (t->part[i].idle_power.idle_power_uw == 0)
            return;
        idle_power_uw += t->part[i].idle_power.idle_power_uw;
    }
    if (config->idle_w * 1000000 > idle_power_uw + idle_power_uw / 10)
        joule_finding_add(findings, JOULE_WARNING, "idle-watts", NULL, NULL,
                          "JouleIdleWatts=%" PRIu64 " is more than the node "
                          "has used in its lowest minute (%.1f W): what jobs "
                          "use above idle is then divided by CPUs",
                          config->idle_w, (double)idle_power_uw / 1e6);
}

static void judge(const struct joule_ledger_totals *t,
                  struct joule_findings *findings)
{

    if (t->faults)
        joule_finding_add(findings, JOULE_WARNING, "ledger-faults", NULL, NULL,
                          "over %" PRIu64 " intervals jobs, unallocated and "
                          "system did not add up to the node's energy: please "
                          "report this",
                          t->faults);
    if (t->multiple_uj)
        joule_finding_add(findings, JOULE_WARNING, "charged-twice", NULL,
                          "JouleAttribution=cputime",
                          "jobs have shared this node: %.0f J were charged to "
                          "more than one of them; the line is for "
                          "acct_gather.conf",
                          (double)t->multiple_uj / 1e6);
    if (t->surplus)
        joule_finding_add(findings, JOULE_NOTE, "ledger-surplus", NULL, NULL,
                          "%" PRIu64 " steps have no energy of their own, as "
                          "their jobs had too many steps here at once: it is "
                          "charged to the jobs",
                          t->surplus);
    if (t->foreign)
        joule_finding_add(findings, JOULE_WARNING, "foreign-cgroups", NULL,
                          NULL,
                          "%" PRIu64 " jobs had cgroups that Slurm has not "
                          "made: with cgroup v1 a process can use them to be "
                          "charged to another job of its user, or to outlive "
                          "its own; cgroup v2 does not allow that",
                          t->foreign);
    if (t->stray_ns >= STRAY_MIN_NS)
        joule_finding_add(findings, JOULE_WARNING, "stray-processes", NULL,
                          NULL,
                          "processes of jobs that had no step left used %.0f s "
                          "of CPU time, which nobody is charged for",
                          (double)t->stray_ns / 1e9);
    if (t->refused)
        joule_finding_add(findings, JOULE_WARNING, "ledger-refused", NULL, NULL,
                          "%" PRIu64 " times a step was registered in a way "
                          "that makes no sense, and was passed over: are all "
                          "parts of slurm-joule of one version?",
                          t->refused);
}

void joule_attribution_check_ledger(struct joule_probe *p)
{
    struct joule_attribution_check *s = &p->share;

    if (p->conf.config_known &&
        p->conf.config.attribution == JOULE_ATTRIBUTION_CPUTIME)
        check_hierarchies(p->root_fd, &p->findings);
    if (read_ledger(p) < 0)
        return;
    s->present = true;
    judge(&s->totals, &p->findings);
    if (p->conf.config_known)
        judge_config(p);
}
