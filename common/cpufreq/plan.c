/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What cpufreq drivers make of the same files. */
struct driver {
    const char *name; /* scaling_driver; NULL: all others */
    const char *mode; /* that it must be in; NULL: any */
    /*
     * A frequency is held by governor userspace and scaling_setspeed, where
     * there is that governor.  Else, and always if not set, by lower limit =
     * upper limit, which holds under every governor.
     */
    bool has_setspeed;
    /*
     * The hardware chooses the frequency, told by a preference: the only
     * governors are performance and powersave, and this powersave is a governor
     * that follows the load.
     */
    bool is_autonomous;
};

/*
 * Sources: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst,
 * Documentation/cpu-freq/pcc-cpufreq.txt, drivers/cpufreq/.  intel_pstate in
 * passive mode calls itself intel_cpufreq.
 */
static const struct driver drivers[] = {
    {.name = "intel_pstate", .is_autonomous = true},
    {.name = "amd-pstate-epp", .is_autonomous = true},
    /* Guided: the firmware chooses between the limits, setspeed or not. */
    {.name = "amd-pstate", .mode = "guided"},
    /* acpi-cpufreq, cppc_cpufreq, pcc-cpufreq, intel_cpufreq, amd-pstate ... */
    {.name = NULL, .has_setspeed = true},
};

/* Between two frequencies, where the driver lists none. */
#define STEP_KHZ 100000

static const struct driver *find_driver(const struct joule_cpufreq_policy *p)
{
    const struct driver *d = drivers;

    while (d->name && (strcmp(d->name, p->driver) != 0 ||
                       (d->mode && strcmp(d->mode, p->mode) != 0)))
        d++;
    return d;
}

/* How an autonomous driver does what a governor of others would. */
struct stand_in {
    enum joule_governor asked;
    const char *governor;
    const char *epp; /* NULL: governor performance brings its own */
};

static const struct stand_in stand_ins[] = {
    {JOULE_GOVERNOR_PERFORMANCE, "performance", NULL},
    {JOULE_GOVERNOR_ONDEMAND, "powersave", "balance_performance"},
    {JOULE_GOVERNOR_SCHEDUTIL, "powersave", "balance_performance"},
    {JOULE_GOVERNOR_CONSERVATIVE, "powersave", "balance_power"},
    {JOULE_GOVERNOR_POWERSAVE, "powersave", "power"},
};

/* NULL: it has nothing of that kind (userspace). */
static const struct stand_in *find_stand_in(enum joule_governor asked)
{
    for (size_t i = 0; i < sizeof(stand_ins) / sizeof(stand_ins[0]); i++)
        if (stand_ins[i].asked == asked)
            return &stand_ins[i];
    return NULL;
}

struct planner {
    const struct joule_cpufreq_policy *policy;
    const struct driver *driver;
    const struct joule_cpufreq_state *original;
    const struct joule_cpufreq_rules *rules;
    struct joule_cpufreq_plan plan;
    struct joule_error *err;
    bool is_adjusted;
};

static void set_governor(struct planner *k, const char *name)
{
    struct joule_cpufreq_state *t = &k->plan.target;

    snprintf(t->governor, sizeof(t->governor), "%s", name);
    k->plan.touches |= JOULE_CPUFREQ_GOVERNOR;
    /* Governors take these along. */
    if (*k->original->epp)
        k->plan.touches |= JOULE_CPUFREQ_EPP;
    k->plan.touches |= JOULE_CPUFREQ_SETSPEED;
}

static void set_limits(struct planner *k, uint32_t min_khz, uint32_t max_khz)
{
    struct joule_cpufreq_state *t = &k->plan.target;

    t->min_khz = min_khz;
    t->max_khz = max_khz;
    k->plan.touches |= JOULE_CPUFREQ_MIN | JOULE_CPUFREQ_MAX;
    if (!t->setspeed_khz)
        return;
    /* Userspace's frequency follows the limits. */
    k->plan.touches |= JOULE_CPUFREQ_SETSPEED;
    if (t->setspeed_khz < min_khz)
        t->setspeed_khz = min_khz;
    if (t->setspeed_khz > max_khz)
        t->setspeed_khz = max_khz;
}

/* The [n]-th of the frequencies that the driver lists, or would. */
static uint32_t named_khz(const struct planner *k, enum joule_speed_kind kind)
{
    const struct joule_cpufreq_policy *p = k->policy;
    unsigned count = p->step_count;
    uint32_t low = p->hw_min_khz, high = p->hw_max_khz;

    if (count > 0) {
        unsigned n = kind == JOULE_SPEED_LOW      ? 0
                     : kind == JOULE_SPEED_MEDIUM ? (count - 1) / 2
                     : kind == JOULE_SPEED_HIGHM1 ? (count > 1 ? count - 2 : 0)
                                                  : count - 1;
        return p->step_khz[n];
    }
    if (kind == JOULE_SPEED_LOW || high - low <= STEP_KHZ)
        return kind == JOULE_SPEED_HIGH ? high : low;
    if (kind == JOULE_SPEED_MEDIUM)
        return low + (high - low) / 2 / STEP_KHZ * STEP_KHZ;
    return kind == JOULE_SPEED_HIGHM1 ? high - STEP_KHZ : high;
}

static uint32_t adjusted(struct planner *k, uint32_t asked, uint32_t khz,
                         const char *why)
{
    k->is_adjusted = true;
    joule_error_set(k->err, ERANGE, "%u kHz is %s: policy%u gets %u kHz", asked,
                    why, k->policy->id, khz);
    return khz;
}

/* The lowest frequency of the hardware that is not below. */
static uint32_t resolve(struct planner *k, struct joule_speed speed)
{
    const struct joule_cpufreq_policy *p = k->policy;
    unsigned n = p->step_count;
    uint32_t low = n ? p->step_khz[0] : p->hw_min_khz,
             high = n ? p->step_khz[n - 1] : p->hw_max_khz, khz = speed.khz;

    if (speed.kind != JOULE_SPEED_KHZ) {
        khz = named_khz(k, speed.kind);
    } else if (khz < low) {
        khz = adjusted(k, khz, low, "less than the hardware has");
    } else if (khz > high) {
        khz = adjusted(k, khz, high, "more than the hardware has");
    } else if (n) {
        unsigned i = 0;

        while (p->step_khz[i] < khz)
            i++;
        khz = p->step_khz[i];
    }
    if (k->rules->keep_limits && khz < k->original->min_khz)
        khz = adjusted(k, khz, k->original->min_khz, "below the site's limit");
    if (k->rules->keep_limits && khz > k->original->max_khz)
        khz = adjusted(k, khz, k->original->max_khz, "above the site's limit");
    return khz;
}

static int plan_governor(struct planner *k, enum joule_governor governor)
{
    const struct stand_in *own = NULL;
    const char *name = joule_governor_name(governor);

    if (!(k->rules->governors & governor))
        return joule_error_set(k->err, ENOTSUP,
                               "governor %s is not one of CpuFreqGovernors",
                               name);
    if (k->driver->is_autonomous) {
        own = find_stand_in(governor);
        name = own ? own->governor : name;
    }
    if (!joule_cpufreq_has_word(k->policy->governors, name))
        return joule_error_set(
            k->err, ENOTSUP, "policy%u (%s) has no governor %s, only: %s",
            k->policy->id, k->policy->driver, joule_governor_name(governor),
            k->policy->governors);
    set_governor(k, name);
    if (own && *k->original->epp) {
        const char *epp = own->epp ? own->epp : "performance";

        if (!own->epp || joule_cpufreq_has_word(k->policy->epps, epp))
            snprintf(k->plan.target.epp, sizeof(k->plan.target.epp), "%s", epp);
    }
    return 0;
}

static void plan_pin(struct planner *k, uint32_t khz)
{
    const struct joule_cpufreq_state *o = k->original;

    k->plan.ceiling_khz = khz;
    if (!k->driver->has_setspeed ||
        !(k->rules->governors & JOULE_GOVERNOR_USERSPACE) ||
        !joule_cpufreq_has_word(k->policy->governors, "userspace")) {
        set_limits(k, khz, khz);
        return;
    }
    set_governor(k, "userspace");
    k->plan.target.setspeed_khz = khz;
    /* Limits are left alone where they allow it: what is not written need not
     * be written back. */
    if (khz < o->min_khz || khz > o->max_khz)
        set_limits(k, khz < o->min_khz ? khz : o->min_khz,
                   khz > o->max_khz ? khz : o->max_khz);
}

static int plan_range(struct planner *k, const struct joule_request *r)
{
    uint32_t max_khz = resolve(k, r->max), min_khz = k->original->min_khz;

    if (r->min.kind != JOULE_SPEED_NONE)
        min_khz = resolve(k, r->min);
    else if (min_khz > max_khz)
        min_khz = max_khz;
    if (min_khz > max_khz)
        return joule_error_set(k->err, ENOTSUP,
                               "the range of frequencies is empty on policy%u: "
                               "%u to %u kHz",
                               k->policy->id, min_khz, max_khz);
    set_limits(k, min_khz, max_khz);
    k->plan.ceiling_khz = max_khz;
    return 0;
}

int joule_cpufreq_plan(const struct joule_cpufreq_policy *p,
                       const struct joule_cpufreq_state *original,
                       const struct joule_request *request,
                       const struct joule_cpufreq_rules *rules,
                       struct joule_cpufreq_plan *ret, struct joule_error *err)
{
    struct planner k = {
        .policy = p,
        .driver = find_driver(p),
        .original = original,
        .rules = rules,
        .plan = {.target = *original, .ceiling_khz = original->max_khz},
        .err = err,
    };
    enum joule_governor governor = request->governor;

    if (request->pin) {
        plan_pin(&k, resolve(&k, request->max));
        *ret = k.plan;
        return k.is_adjusted;
    }
    if (request->max.kind != JOULE_SPEED_NONE) {
        if (plan_range(&k, request) < 0)
            return -1;
        if (governor == JOULE_GOVERNOR_NONE)
            governor = rules->range_governor;
    }
    if (governor != JOULE_GOVERNOR_NONE && plan_governor(&k, governor) < 0)
        return -1;
    /* Others than the autonomous ones hold the lower limit. */
    if (governor == JOULE_GOVERNOR_POWERSAVE && !k.driver->is_autonomous)
        k.plan.ceiling_khz = k.plan.target.min_khz;
    /* Where nobody has set it, the governor keeps the frequency that it finds. */
    if (governor == JOULE_GOVERNOR_USERSPACE && original->setspeed_khz)
        k.plan.ceiling_khz = original->setspeed_khz;
    *ret = k.plan;
    return k.is_adjusted;
}

unsigned joule_state_differences(const struct joule_cpufreq_state *now,
                                 const struct joule_cpufreq_state *target,
                                 unsigned touches)
{
    unsigned found = 0;

    if (strcmp(now->governor, target->governor) != 0)
        found |= JOULE_CPUFREQ_GOVERNOR;
    if (now->min_khz != target->min_khz)
        found |= JOULE_CPUFREQ_MIN;
    if (now->max_khz != target->max_khz)
        found |= JOULE_CPUFREQ_MAX;
    if (strcmp(target->governor, "userspace") == 0 && target->setspeed_khz &&
        now->setspeed_khz != target->setspeed_khz)
        found |= JOULE_CPUFREQ_SETSPEED;
    if (*target->epp && strcmp(now->epp, target->epp) != 0)
        found |= JOULE_CPUFREQ_EPP;
    return found & touches;
}

static void value_of(const struct joule_cpufreq_state *s,
                     enum joule_cpufreq_field field,
                     char buf[JOULE_CPUFREQ_WORD])
{
    uint32_t khz = field == JOULE_CPUFREQ_MIN   ? s->min_khz
                   : field == JOULE_CPUFREQ_MAX ? s->max_khz
                                                : s->setspeed_khz;

    if (field == JOULE_CPUFREQ_GOVERNOR || field == JOULE_CPUFREQ_EPP)
        snprintf(buf, JOULE_CPUFREQ_WORD, "%s",
                 field == JOULE_CPUFREQ_EPP ? s->epp : s->governor);
    else
        snprintf(buf, JOULE_CPUFREQ_WORD, "%u", (unsigned)khz);
}

unsigned joule_cpufreq_ops(const struct joule_cpufreq_state *now,
                           const struct joule_cpufreq_state *target,
                           unsigned touches, struct joule_write_op *ret_ops)
{
    enum joule_cpufreq_field order[JOULE_CPUFREQ_OPS_MAX] = {
        JOULE_CPUFREQ_MAX, JOULE_CPUFREQ_MIN, JOULE_CPUFREQ_GOVERNOR,
        JOULE_CPUFREQ_SETSPEED, JOULE_CPUFREQ_EPP};
    unsigned count = 0,
             which =
                 now ? joule_state_differences(now, target, touches) : touches;

    /* The upper limit first, unless it would come below the present lower
     * one. */
    if (now && (which & JOULE_CPUFREQ_MAX) && target->max_khz < now->min_khz) {
        order[0] = JOULE_CPUFREQ_MIN;
        order[1] = JOULE_CPUFREQ_MAX;
    }
    /* A new governor userspace holds the frequency of that moment. */
    if (which & JOULE_CPUFREQ_GOVERNOR)
        which |= touches & (JOULE_CPUFREQ_SETSPEED | JOULE_CPUFREQ_EPP);
    if (strcmp(target->governor, "userspace") != 0 || !target->setspeed_khz)
        which &= ~(unsigned)JOULE_CPUFREQ_SETSPEED;
    if (!*target->epp || (strcmp(target->governor, "performance") == 0 &&
                          strcmp(target->epp, "performance") == 0))
        which &= ~(unsigned)JOULE_CPUFREQ_EPP;
    for (unsigned i = 0; i < JOULE_CPUFREQ_OPS_MAX; i++) {
        if (!(which & order[i]))
            continue;
        ret_ops[count].field = order[i];
        value_of(target, order[i], ret_ops[count++].text);
    }
    return count;
}
