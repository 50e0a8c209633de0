/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/fused.h"

#include <math.h>
#include <string.h>

#include "common/energy/integrator.h"

/* Longer intervals say nothing of the power's shape. */
#define HISTORY_NS INT64_C(60000000000)

/* What no node uses while its counters do not answer. */
#define MOST_J 1e12

/* What the counters say of the interval. */
struct shape {
    bool known;
    double watts;    /* mean since from_ns */
    int64_t from_ns; /* they were read before */
};

struct unseen {
    int64_t ns;
    double joules;
};

bool joule_fused_check(const struct joule_fused_state *s, int64_t now_ns)
{
    const int64_t times[] = {s->mono_ns,     s->asked_ns,    s->bmc_mono_ns,
                             s->stand_in_ns, s->rapl_ns,     s->rapl_gap_ns,
                             s->basis_ns[0], s->basis_ns[1], s->basis_ns[2],
                             s->basis_ns[3]};

    _Static_assert(JOULE_FUSED_BASES == 4, "all are above");
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < 0 || times[i] > now_ns)
            return false;
    return s->basis < JOULE_FUSED_BASES && s->stand_in_j >= 0 &&
           s->stand_in_j <= MOST_J && s->debt_j >= 0 && s->debt_j <= MOST_J &&
           joule_is_power(s->bmc_w) && joule_is_power(s->watts) &&
           joule_lag_model_check(&s->lag_model);
}

const char *joule_fused_basis_words(enum joule_fused_basis basis)
{
    static const char *const words[JOULE_FUSED_BASES] = {
        [JOULE_FUSED_NONE] = "nothing",
        [JOULE_FUSED_BMC] = "BMC",
        [JOULE_FUSED_RAPL] = "RAPL",
        [JOULE_FUSED_BOTH] = "BMC and RAPL",
    };

    return words[basis];
}

/* The counters since they were read last. */
static struct shape follow_counters(struct joule_fused_state *s,
                                    const struct joule_node_total *rapl,
                                    int64_t now_ns)
{
    struct shape shape = {.known = false, .from_ns = s->rapl_ns};
    int64_t before_gap_ns = s->rapl_gap_ns;
    uint64_t before_uj = s->rapl_uj;
    bool was_valid = s->rapl_valid;

    s->rapl_ns = now_ns;
    s->rapl_gap_ns = rapl->gap_ns;
    s->rapl_uj = rapl->node_uj;
    s->rapl_valid = rapl->valid;
    if (now_ns <= shape.from_ns)
        return shape;
    if (!was_valid || !rapl->valid || rapl->stale ||
        rapl->gap_ns != before_gap_ns || rapl->node_uj < before_uj) {
        joule_lag_model_gap(&s->lag_model);
        return shape;
    }
    shape.watts = (double)(rapl->node_uj - before_uj) * 1e3 /
                  (double)(now_ns - shape.from_ns);
    shape.known = joule_is_power(shape.watts);
    if (!shape.known || now_ns - shape.from_ns > HISTORY_NS)
        joule_lag_model_gap(&s->lag_model);
    return shape;
}

/* The counters go on from a time later than the total: what was in between
 * nobody has measured. */
static struct unseen count_unseen(struct joule_fused_state *s,
                                  const struct shape *shape,
                                  struct joule_fused_interval *ret)
{
    struct unseen unseen = {shape->from_ns - s->mono_ns, 0};
    double watts = joule_lag_model_watts(&s->lag_model, shape->watts);

    if (unseen.ns <= 0)
        return (struct unseen){0, 0};
    if (!joule_is_power(watts))
        watts = shape->watts;
    if (unseen.ns <= JOULE_POWER_BRIDGE_NS)
        unseen.joules = (s->watts + watts) / 2 * (double)unseen.ns / 1e9;
    joule_lag_model_gap(&s->lag_model);
    s->basis_ns[JOULE_FUSED_NONE] += unseen.ns;
    s->mono_ns += unseen.ns;
    ret->ns -= unseen.ns;
    return unseen;
}

/* Without a BMC, and before it is known how it reads. */
static double power_alone(const struct joule_fused_state *s, double rapl_w,
                          int64_t now_ns, enum joule_fused_basis *ret_basis)
{
    *ret_basis = JOULE_FUSED_RAPL;
    if (s->bmc_mono_ns == 0 || now_ns - s->bmc_mono_ns > JOULE_POWER_BRIDGE_NS)
        return rapl_w;
    *ret_basis = JOULE_FUSED_NONE;
    return s->bmc_w > rapl_w ? s->bmc_w : rapl_w;
}

/* An interval, or the part of one before or behind the BMC's reading. */
static double shaped_j(struct joule_fused_state *s, double rapl_w, int64_t ns,
                       bool bmc_answers, int64_t now_ns,
                       enum joule_fused_basis *ret_basis)
{
    double watts;

    if (ns <= 0)
        return 0;
    joule_lag_model_rapl(&s->lag_model, rapl_w, ns);
    watts = joule_lag_model_watts(&s->lag_model, rapl_w);
    if (joule_lag_model_learned(&s->lag_model))
        *ret_basis = bmc_answers ? JOULE_FUSED_BOTH : JOULE_FUSED_RAPL;
    else if (bmc_answers)
        *ret_basis = JOULE_FUSED_BMC;
    else
        watts = power_alone(s, rapl_w, now_ns, ret_basis);
    if (*ret_basis == JOULE_FUSED_BMC)
        watts = s->bmc_w;
    if (!(watts >= rapl_w)) /* nor is NAN */
        watts = rapl_w;
    return watts * (double)ns / 1e9;
}

/* What has been learned of the BMC is of another sensor. */
static void follow_sensor(struct joule_fused_state *s,
                          const struct joule_power *bmc)
{
    if (bmc->sensor_key == 0 || bmc->sensor_key == s->bmc_key)
        return;
    if (s->bmc_key) {
        memset(&s->lag_model, 0, sizeof(s->lag_model));
        s->bmc_mono_ns = 0;
        s->stand_in_ns = 0;
        s->stand_in_j = s->debt_j = 0;
    }
    s->bmc_key = bmc->sensor_key;
}

static void take_bmc(struct joule_fused_state *s, const struct joule_power *bmc)
{
    s->bmc_w = bmc->watts;
    s->bmc_mono_ns = bmc->mono_ns;
    joule_lag_model_bmc(&s->lag_model, bmc->watts);
}

/* Both, or the counters alone. */
static void count_shaped(struct joule_fused_state *s, double rapl_w,
                         int64_t now_ns, const struct joule_power *bmc,
                         int64_t gap_ns, struct joule_fused_interval *ret)
{
    bool answers =
        bmc || (s->bmc_mono_ns != 0 && now_ns - s->bmc_mono_ns <= gap_ns);
    enum joule_fused_basis basis = JOULE_FUSED_RAPL;
    int64_t before_ns = ret->ns;

    if (bmc && bmc->mono_ns - s->mono_ns < ret->ns)
        before_ns = bmc->mono_ns > s->mono_ns ? bmc->mono_ns - s->mono_ns : 0;
    if (s->bmc_mono_ns == 0 && bmc)
        s->bmc_w = bmc->watts;
    ret->node_j = shaped_j(s, rapl_w, before_ns, answers, now_ns, &basis);
    if (bmc)
        take_bmc(s, bmc);
    ret->node_j +=
        shaped_j(s, rapl_w, ret->ns - before_ns, answers, now_ns, &basis);
    s->basis = basis;
    if (basis == JOULE_FUSED_NONE)
        ret->gap_ns = ret->ns;
}

/* The counters say nothing. */
static void count_plain(struct joule_fused_state *s,
                        const struct joule_power *bmc, int64_t gap_ns,
                        struct joule_fused_interval *ret)
{
    double before_w = s->bmc_mono_ns ? s->bmc_w : bmc ? bmc->watts : 0;

    if (bmc)
        take_bmc(s, bmc);
    if (ret->ns > gap_ns + JOULE_FUSED_WAIT_NS) {
        ret->gap_ns = ret->ns;
        if (ret->ns <= JOULE_POWER_BRIDGE_NS)
            ret->node_j = (s->watts + s->bmc_w) / 2 * (double)ret->ns / 1e9;
        s->basis = JOULE_FUSED_NONE;
        return;
    }
    ret->node_j = (before_w + s->bmc_w) / 2 * (double)ret->ns / 1e9;
    s->basis = JOULE_FUSED_BMC;
    if (!s->rapl_valid)
        return;
    s->stand_in_ns += ret->ns;
    s->stand_in_j += ret->node_j;
}

/* The counters have answered again: what they say of the time in which the BMC
 * stood in for them.  Returns what is to be added; what was too much is a
 * debt. */
static double correct_stand_in(struct joule_fused_state *s,
                               const struct shape *shape)
{
    int64_t before_ns = s->mono_ns - shape->from_ns;
    double more_j = 0;

    if (before_ns > 0)
        joule_lag_model_rapl(&s->lag_model, shape->watts, before_ns);
    if (s->stand_in_ns > 0 && before_ns >= s->stand_in_ns &&
        joule_lag_model_learned(&s->lag_model))
        more_j = joule_lag_model_watts(&s->lag_model, shape->watts) *
                     (double)s->stand_in_ns / 1e9 -
                 s->stand_in_j;
    if (more_j < 0)
        s->debt_j -= more_j;
    s->stand_in_ns = 0;
    s->stand_in_j = 0;
    return more_j > 0 ? more_j : 0;
}

/* No more than half of what is used: a power of 0 would be no power. */
static void pay_back(struct joule_fused_state *s,
                     struct joule_fused_interval *ret)
{
    double part_j = fmin(ret->node_j / 2, s->debt_j);

    ret->node_j -= part_j;
    s->debt_j -= part_j;
}

/* The count can begin: the BMC has answered, or has had its time to. */
static bool can_begin(struct joule_fused_state *s, bool has_counters,
                      int64_t now_ns, const struct joule_power *bmc)
{
    if (s->asked_ns == 0)
        s->asked_ns = now_ns;
    if (!bmc &&
        (!has_counters || now_ns - s->asked_ns < JOULE_FUSED_PATIENCE_NS))
        return false;
    if (bmc)
        take_bmc(s, bmc);
    s->watts = s->bmc_w;
    s->basis = bmc ? JOULE_FUSED_BMC : JOULE_FUSED_RAPL;
    return true;
}

/* The next reading of a counter covers the time of one that failed. */
static bool waits(const struct joule_fused_state *s, int64_t ns)
{
    return ns <= JOULE_FUSED_WAIT_NS && s->rapl_valid &&
           (s->basis == JOULE_FUSED_BOTH || s->basis == JOULE_FUSED_RAPL);
}

void joule_fused_advance(struct joule_fused_state *s,
                         const struct joule_node_total *rapl, int64_t now_ns,
                         const struct joule_power *bmc, int64_t gap_ns,
                         struct joule_fused_interval *ret)
{
    struct shape shape = {.known = false};
    struct unseen unseen = {0, 0};
    double correction_j = 0;

    *ret = (struct joule_fused_interval){.known = false};
    if (bmc &&
        (!joule_power_is_measured(bmc) || bmc->mono_ns <= s->bmc_mono_ns))
        bmc = NULL;
    if (bmc)
        follow_sensor(s, bmc);
    if (rapl)
        shape = follow_counters(s, rapl, now_ns);
    if (s->mono_ns == 0) {
        if (!can_begin(s, shape.known, now_ns, bmc))
            return;
        s->mono_ns = now_ns;
        ret->known = true;
        return;
    }
    ret->ns = now_ns - s->mono_ns;
    if (ret->ns <= 0)
        return;
    if (!rapl && waits(s, ret->ns)) {
        if (bmc) {
            s->bmc_w = bmc->watts;
            s->bmc_mono_ns = bmc->mono_ns;
        }
        return;
    }
    if (!shape.known && !bmc && now_ns - s->bmc_mono_ns > gap_ns)
        return;
    if (shape.known) {
        unseen = count_unseen(s, &shape, ret);
        correction_j = correct_stand_in(s, &shape);
        count_shaped(s, shape.watts, now_ns, bmc, gap_ns, ret);
    } else {
        count_plain(s, bmc, gap_ns, ret);
    }
    ret->known = true;
    s->watts = ret->node_j * 1e9 / (double)ret->ns;
    if (!joule_is_power(s->watts))
        s->watts = s->bmc_w;
    ret->node_j += correction_j;
    pay_back(s, ret);
    s->basis_ns[s->basis] += ret->ns;
    s->mono_ns = now_ns;
    ret->ns += unseen.ns;
    ret->gap_ns += unseen.ns;
    ret->node_j += unseen.joules;
}
