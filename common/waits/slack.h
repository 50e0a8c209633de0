/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slack.h - how much longer a process could have computed without making another one
 * wait.
 *
 *     s = joule_slack_create();
 *     joule_slack_compute(s, path, ns);     it computes,
 *     joule_slack_begin(s, &call);          and comes to a call;
 *     joule_slack_keep(s, call);            something of the call is not known yet
 *     joule_slack_release(s, call, limit_ns, wait_ns);   now it is
 *     joule_slack_finish(s);
 *     list = joule_slack_paths(s, &count);
 *     joule_slack_destroy(s);
 *
 * A call could have come [limit_ns] later before somebody had waited for it, or waited
 * longer; and [wait_ns] of it the process has waited itself.  Computing that takes
 * longer moves all calls behind it, by no more than the limit of each, until what they
 * wait for has swallowed the delay: what can be swallowed is the slack.
 *
 * The slack of a call path is what it has if all others compute as long as they did:
 * those of several paths must not be added up.  That of the process is of all its
 * paths together.  Slack of several processes may be used at the same time.  It knows
 * of no time that messages take: it is an upper bound.
 *
 * Each path costs memory, and each call that is not known yet; a call that stays unknown
 * behind JOULE_SLACK_OPEN_MAX later ones is taken for one that must not move.
 *
 * Units: ns.  Threads: one at a time.  Errors: -1 with ENOMEM.
 */
#ifndef JOULE_WAITS_SLACK_H
#define JOULE_WAITS_SLACK_H

#include <stddef.h>
#include <stdint.h>

#define JOULE_SLACK_OPEN_MAX ((size_t)1 << 16)
#define JOULE_SLACK_NO_LIMIT UINT64_MAX /* nobody waits for it */
#define JOULE_SLACK_NO_CALL  UINT32_MAX
#define JOULE_SLACK_ALL      UINT32_MAX /* the path of what is of all paths */

struct joule_slack_path {
    uint32_t path;
    uint64_t computed_ns, slack_ns;
    uint64_t carry_ns; /* the delay that it may have brought until here */
};

struct joule_slack;

/* NULL: out of memory. */
struct joule_slack *joule_slack_create(void);
void joule_slack_destroy(struct joule_slack *s);

int joule_slack_compute(struct joule_slack *s, uint32_t path, uint64_t ns);

/* It is kept once already. */
int joule_slack_begin(struct joule_slack *s, uint32_t *ret_call);

/* Of JOULE_SLACK_NO_CALL, and of calls that were given up, nothing happens. */
void joule_slack_keep(struct joule_slack *s, uint32_t call);
void joule_slack_release(struct joule_slack *s, uint32_t call,
                         uint64_t limit_ns, uint64_t wait_ns);

/* What was never told does not bound anything. */
void joule_slack_finish(struct joule_slack *s);

/* All that has computed, and first JOULE_SLACK_ALL; it belongs to [s]. */
const struct joule_slack_path *joule_slack_paths(const struct joule_slack *s,
                                                 size_t *ret_count);

#endif
