/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * totals.h - sums of waits: of each pattern, process, call path and communicator,
 * and of groups of these.
 *
 *     joule_totals_init(&list[part], pieces);
 *     joule_totals_add(&list[part], &envelope, &wait);     each in its thread
 *     joule_totals_join(&all, &list[part]);                of each part
 *     joule_totals_group(&all, JOULE_BY_PATH, &groups);
 *     joule_totals_free(&groups);
 *
 * All numbers are whole, so that sums are the same in any order.  Errors: -1 with
 * ENOMEM.
 */
#ifndef JOULE_WAITS_TOTALS_H
#define JOULE_WAITS_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "common/waits/matcher.h"
#include "common/waits/power_states.h"

enum joule_totals_by {
    JOULE_BY_PATTERN = 1,
    JOULE_BY_PATH = 2,
    JOULE_BY_PROCESS = 4,
    JOULE_BY_COMMUNICATOR = 8,
    JOULE_BY_ALL = 15,
};

/* What is not told apart is JOULE_NO_NUMBER. */
struct joule_total {
    uint32_t pattern, path, process, communicator;
    uint64_t count, ns, longest_ns;
    /* Set by whoever knows the processes' power (wait_profile.h), before groups are
     * made. */
    double uj, uncertain_uj;
};

struct joule_totals {
    struct joule_total *at;
    struct joule_power_use *use; /* [pieces] of each */
    size_t pieces, count, room;
    uint32_t *slot; /* of a hash: index + 1 */
    size_t slots;
};

void joule_totals_init(struct joule_totals *t, size_t pieces);
void joule_totals_free(struct joule_totals *t);

/* [envelope] NULL: pieces is 0. */
int joule_totals_add(struct joule_totals *t,
                     const struct joule_power_envelope *envelope,
                     const struct joule_wait *wait);

/* Add all of [from]. */
int joule_totals_join(struct joule_totals *to, const struct joule_totals *from);

/* Add all of [from] to [to], with only the fields of [by] (of enum
 * joule_totals_by) told apart.  Completions are left out unless [completions]. */
int joule_totals_group(struct joule_totals *to, const struct joule_totals *from,
                       unsigned by, bool completions);

#endif
