/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/meter/split.h"

__extension__ typedef unsigned __int128 u128;

/* CPU time, that which was estimated for the job among those of whom it is
 * not known. */
static void weigh_steps(const struct joule_share *share,
                        const struct joule_step_claim *steps, size_t count,
                        uint64_t *weight)
{
    uint64_t guess[JOULE_CLAIMS_MAX];

    for (size_t i = 0; i < count; i++)
        weight[i] = steps[i].cpu_unknown ? 1 + steps[i].cpu_count : 0;
    joule_split_apportion(share->estimated_ns, weight, count, guess);
    for (size_t i = 0; i < count; i++) {
        uint64_t ns = steps[i].cpu_ns < JOULE_SPLIT_NS_MAX ? steps[i].cpu_ns
                                                           : JOULE_SPLIT_NS_MAX;

        ns += guess[i];
        weight[i] = ns < JOULE_SPLIT_NS_MAX ? ns : JOULE_SPLIT_NS_MAX;
    }
}

/* What no step holds or accounts for: to the extern step, else by CPUs and time. */
static void give_rest(uint64_t rest_uj, const struct joule_step_claim *steps,
                      size_t count, uint64_t *ret_uj)
{
    uint64_t weight[JOULE_CLAIMS_MAX], result[JOULE_CLAIMS_MAX];
    bool numbered = false, given = false;

    for (size_t i = 0; i < count; i++) {
        if (steps[i].kind == JOULE_STEP_EXTERN) {
            ret_uj[i] += rest_uj;
            return;
        }
        numbered |=
            steps[i].kind == JOULE_STEP_NUMBERED && steps[i].present_ns > 0;
    }
    /* By CPUs and time; who has no CPU of his own (--overlap) is charged only
     * if nobody has; and nobody may have been there for any time. */
    for (int pass = 0; pass < 3 && !given; pass++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t cpus = pass == 0 ? steps[i].cpu_count : 1;
            int64_t ns = pass == 2 ? 1 : steps[i].present_ns;
            u128 w;

            if (ns < 0 ||
                (pass < 2 && numbered && steps[i].kind != JOULE_STEP_NUMBERED))
                ns = 0;
            w = (u128)cpus * (uint64_t)ns;
            weight[i] =
                w < JOULE_SPLIT_NS_MAX ? (uint64_t)w : JOULE_SPLIT_NS_MAX;
        }
        given = joule_split_apportion(rest_uj, weight, count, result);
    }
    for (size_t i = 0; i < count; i++)
        ret_uj[i] += result[i];
}

void joule_split_steps(struct joule_splitter *s, size_t i,
                       const struct joule_claim *claim,
                       const struct joule_share *share,
                       const struct joule_step_claim *steps, size_t count,
                       uint64_t *ret_uj)
{
    uint64_t weight[JOULE_CLAIMS_MAX + 1], result[JOULE_CLAIMS_MAX + 1];
    uint64_t rest_uj = joule_split_idle(s, i, claim, steps, count, ret_uj);

    weigh_steps(share, steps, count, weight);
    weight[count] = share->other_ns < JOULE_SPLIT_NS_MAX ? share->other_ns
                                                         : JOULE_SPLIT_NS_MAX;
    if (joule_split_apportion(share->active_uj, weight, count + 1, result)) {
        for (size_t n = 0; n < count; n++)
            ret_uj[n] += result[n];
        rest_uj += result[count];
    } else {
        rest_uj += share->active_uj;
    }
    if (rest_uj)
        give_rest(rest_uj, steps, count, ret_uj);
}
