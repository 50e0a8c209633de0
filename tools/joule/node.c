/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/node/node_dir.h"

static void judge(const struct joule_node *n, struct joule_findings *findings)
{
    const struct joule_snapshot *s = &n->snapshot;
    bool power = s->total.is_power;

    if (!n->fresh)
        joule_finding_add(findings, JOULE_WARNING, "board-old", NULL, NULL,
                          "the last sample of the board is %.0f s old: slurmd "
                          "with this plugin does not run now",
                          (double)n->age_ns / 1e9);
    else if (!s->total.valid)
        joule_finding_add(
            findings, JOULE_WARNING, "board-unknown", NULL, NULL,
            "slurmd %s: the node's energy is unknown to it",
            power ? "asks the BMC, but has no measurement of the power yet"
                  : "reads the counters, but they have not moved");
    else if (s->stale)
        joule_finding_add(findings, JOULE_WARNING, "board-stale", NULL, NULL,
                          "slurmd %s",
                          power ? "asks the BMC, but its last measurement of "
                                  "the power is too old"
                                : "reads the counters, but they have stopped");
    if (s->total.gap_ns > 0)
        joule_finding_add(
            findings, JOULE_WARNING, "board-gap", NULL, NULL,
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

static int read_board(struct joule_node *n, int root_fd)
{
    struct joule_board *board;
    int rc, errnum;

    board = joule_board_open(root_fd, n->name, &n->error);
    if (!board)
        return -1;
    rc = joule_board_read(board, &n->snapshot);
    errnum = errno;
    n->is_fused = rc == 0 && joule_board_read_fused(board, &n->fused) == 0 &&
                  n->fused.basis < JOULE_FUSED_BASES &&
                  joule_lag_model_check(&n->fused.lag_model);
    joule_board_destroy(board);
    if (rc == 0)
        return 0;
    memset(&n->snapshot, 0, sizeof(n->snapshot));
    return joule_error_set(&n->error, errnum, "%s",
                           errnum == ENODATA ? "the board has no sample yet"
                                             : "the board makes no sense");
}

void joule_node_collect(struct joule_node *n, int root_fd,
                        const struct joule_clock *clock, const char *name,
                        struct joule_findings *findings)
{
    struct joule_snapshot *s = &n->snapshot;
    struct joule_nodename from = {
        .option = name, .is_tool = true, .job = getenv("SLURMD_NODENAME")};

    memset(n, 0, sizeof(*n));
    if (joule_nodename_find(&from, root_fd, n->name, sizeof(n->name),
                            &n->error) < 0 ||
        read_board(n, root_fd) < 0) {
        bool normal = errno == ENOENT || errno == ENODATA || errno == ESTALE;

        joule_finding_add(findings, normal ? JOULE_NOTE : JOULE_WARNING,
                          "no-board", NULL, NULL,
                          errno == ENOENT && from.ret_count > 1
                              ? "there are boards, but none of node %s (say "
                                "--node NAME)"
                          : errno == ENOENT
                              ? "slurmd of node %s has not measured since the "
                                "last boot"
                              : "no board of node %s: %s",
                          n->name, n->error.text);
        return;
    }
    n->present = true;
    n->age_ns = joule_clock_mono_ns(clock) - s->total.mono_ns;
    n->fresh = n->age_ns <= 3 * s->period_ns;
    for (uint32_t i = 0; i < s->total.count; i++) {
        if (s->total.is_power) {
            n->errors += s->total.integrator[i].errors;
            continue;
        }
        n->wraps += s->total.counter[i].wraps;
        n->errors += s->total.counter[i].errors;
    }
    judge(n, findings);
}
