/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/node/node_dir.h"

static void judge(const struct joule_node *n, struct joule_findings *findings)
{
    const struct joule_snapshot *s = &n->snapshot;
    bool power = n->is_power;

    if (!n->fresh)
        joule_finding_add(findings, JOULE_WARNING, "total-old", NULL, NULL,
                          "the node's last sample is %.0f s old: slurmd "
                          "with this plugin does not run now",
                          (double)n->age_ns / 1e9);
    else if (!s->total.valid)
        joule_finding_add(
            findings, JOULE_WARNING, "total-unknown", NULL, NULL,
            "slurmd %s: the node's energy is unknown to it",
            power ? "asks the BMC, but has no measurement of the power yet"
                  : "reads the counters, but they have not moved");
    else if (s->total.stale)
        joule_finding_add(findings, JOULE_WARNING, "total-stale", NULL, NULL,
                          "slurmd %s",
                          power ? "asks the BMC, but its last measurement of "
                                  "the power is too old"
                                : "reads the counters, but they have stopped");
    if (s->total.gap_ns > 0)
        joule_finding_add(
            findings, JOULE_WARNING, "total-gap", NULL, NULL,
            "over %.0f s since the node's total began, %s",
            (double)s->total.gap_ns / 1e9,
            n->is_fused ? "neither BMC nor counters were measured: the "
                          "total is joined over that time, or lacks "
                          "energy"
            : power     ? "the power was not measured: the total is "
                          "joined over that time, or lacks energy"
                        : "counters may have wrapped unseen: the total "
                          "may lack energy");
}

static int read_node(struct joule_node *n, int root_fd)
{
    struct joule_ledger *ledger;
    int rc, errnum;

    ledger = joule_ledger_open(root_fd, n->name, &n->error);
    if (!ledger)
        return -1;
    rc = joule_ledger_read_node(ledger, &n->snapshot, &n->state);
    errnum = errno;
    joule_ledger_destroy(ledger);
    if (rc < 0) {
        memset(&n->snapshot, 0, sizeof(n->snapshot));
        return joule_error_set(&n->error, errnum, "%s",
                               errnum == ENODATA
                                   ? "the ledger has no sample yet"
                                   : "the ledger makes no sense");
    }
    n->is_power = n->state.integrators > 0;
    n->is_fused = n->state.is_fused &&
                  n->state.fused.basis < JOULE_FUSED_BASES &&
                  joule_lag_model_check(&n->state.fused.lag_model);
    return 0;
}

int joule_node_name(int root_fd, const char *option, char name[JOULE_NODE_MAX],
                    unsigned *ret_nodes, struct joule_error *err)
{
    struct joule_nodename from = {
        .option = option, .is_tool = true, .job = getenv("SLURMD_NODENAME")};
    int rc = joule_nodename_find(&from, root_fd, name, JOULE_NODE_MAX, err);

    *ret_nodes = from.ret_count;
    return rc;
}

int joule_node_missing(const char *name, unsigned nodes,
                       struct joule_error *err)
{
    return joule_error_set(err, ENOENT,
                           nodes > 1 ? "there are ledgers, but none of node %s "
                                       "(say --node NAME)"
                                     : "slurmd of node %s has not measured "
                                       "since the last boot",
                           name);
}

void joule_node_collect(struct joule_probe *p, const char *option)
{
    struct joule_node *n = &p->node;
    struct joule_snapshot *s = &n->snapshot;
    unsigned nodes;

    if (joule_node_name(p->root_fd, option, n->name, &nodes, &n->error) < 0 ||
        read_node(n, p->root_fd) < 0) {
        bool normal = errno == ENOENT || errno == ENODATA || errno == ESTALE;
        struct joule_error why;

        if (errno == ENOENT)
            joule_node_missing(n->name, nodes, &why);
        else
            joule_error_set(&why, errno, "no total of node %s: %s", n->name,
                            n->error.text);
        joule_finding_add(&p->findings, normal ? JOULE_NOTE : JOULE_WARNING,
                          "no-total", NULL, NULL, "%s", why.text);
        return;
    }
    n->present = true;
    n->age_ns = joule_clock_mono_ns(p->clock) - s->total.mono_ns;
    n->fresh = n->age_ns <= 3 * s->period_ns;
    for (uint64_t i = 0; i < s->total.count; i++)
        n->errors += s->total.reading[i].errors;
    for (uint64_t i = 0; i < n->state.counters; i++)
        n->wraps += n->state.counter[i].wraps;
    judge(n, &p->findings);
}
