/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cpu_counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/energy/counter.h"

#include "common/sensors/powercap.h"

static struct joule_counters *open_msrs(int root_fd,
                                        const struct joule_cpu_options *opt,
                                        struct joule_rapl_info *ret_info,
                                        struct joule_error *err)
{
    const struct joule_rapl_options rapl = {
        .total_kinds = opt->total_kinds,
        .with_cores = opt->with_cores,
        .ret_info = ret_info,
    };

    return joule_rapl_create(root_fd, &rapl, err);
}

/* What is wrong with [total_kinds], or with this process, is no matter of the way. */
static bool may_be_elsewhere(int errnum)
{
    return errnum != E2BIG && errnum != ENOMEM && errnum != EMFILE &&
           errnum != ENFILE;
}

/* In place of the MSRs, [why] not, or which do not have all. */
static struct joule_counters *open_powercap(int root_fd, unsigned total_kinds,
                                            const struct joule_error *why,
                                            struct joule_error *err)
{
    struct joule_counters *counters =
        joule_powercap_create(root_fd, total_kinds, err);

    if (counters)
        joule_error_set(&counters->remark, 0,
                        "the energy counters are read in /sys/class/powercap: "
                        "%s",
                        why->text);
    return counters;
}

/* ---- two ways to the same counters ---- */

#define COMPARE_NS   JOULE_NS_PER_S
#define COMPARE_UJ   1000000 /* of less nothing can be said */
#define APART_PERMIL 20

/* What one of them has seen of the packages. */
struct side {
    struct joule_counters *counters;
    struct joule_counter counter[JOULE_DOMAINS_MAX];
    struct joule_raw raw[JOULE_DOMAINS_MAX];
};

/* The MSRs, and powercap until both were compared. */
struct pair {
    struct joule_counters counters; /* first */
    struct joule_counters *msrs;
    struct side *side; /* both; NULL: that is over */
    int64_t begun_ns;
};

static uint64_t follow(struct side *s, int64_t now_ns)
{
    const struct joule_counters *c = s->counters;
    uint64_t uj = 0;

    for (size_t i = 0; i < c->domain_count; i++) {
        joule_counter_update(&s->counter[i], &c->domains[i], s->raw[i], now_ns);
        if (c->domains[i].kind == JOULE_DOMAIN_PACKAGE)
            uj += joule_unit_to_uj(c->domains[i].unit, s->counter[i].ticks);
    }
    return uj;
}

static void end_comparison(struct pair *p)
{
    p->side[1].counters->ops->destroy(p->side[1].counters);
    free(p->side);
    p->side = NULL;
}

/* [out] is what the MSRs say now. */
static void compare(struct pair *p, const struct joule_raw *out)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);
    uint64_t msr_uj, other_uj, more_uj, apart_uj;

    memcpy(p->side[0].raw, out,
           p->counters.domain_count * sizeof(p->side[0].raw[0]));
    p->side[1].counters->ops->read(p->side[1].counters, p->side[1].raw);
    msr_uj = follow(&p->side[0], now_ns);
    other_uj = follow(&p->side[1], now_ns);
    if (p->begun_ns == 0)
        p->begun_ns = now_ns;
    if (now_ns - p->begun_ns < COMPARE_NS)
        return;
    more_uj = msr_uj > other_uj ? msr_uj : other_uj;
    apart_uj = more_uj - (msr_uj > other_uj ? other_uj : msr_uj);
    if (more_uj > COMPARE_UJ && apart_uj > more_uj / 1000 * APART_PERMIL)
        joule_error_set(&p->counters.remark, 0,
                        "the MSRs count %.1f J of the packages where "
                        "/sys/class/powercap counts %.1f J: one of them is "
                        "wrong; the MSRs are read, unless JouleCPUCounters "
                        "says otherwise",
                        (double)msr_uj / 1e6, (double)other_uj / 1e6);
    end_comparison(p);
}

static void pair_read(struct joule_counters *counters, struct joule_raw *out)
{
    struct pair *p = (struct pair *)counters;

    p->msrs->ops->read(p->msrs, out);
    if (p->side)
        compare(p, out);
    if (p->msrs->remark.text[0] && !counters->remark.text[0]) {
        counters->remark = p->msrs->remark;
        p->msrs->remark.text[0] = '\0';
    }
}

static void pair_destroy(struct joule_counters *counters)
{
    struct pair *p = (struct pair *)counters;

    if (p->side)
        end_comparison(p);
    p->msrs->ops->destroy(p->msrs);
    free(p);
}

static const struct joule_counters_ops pair_ops = {
    .read = pair_read,
    .destroy = pair_destroy,
};

/* The MSRs, which are compared with powercap if there is that, too. */
static struct joule_counters *compared(int root_fd, unsigned total_kinds,
                                       struct joule_counters *msrs)
{
    struct joule_counters *other =
        joule_powercap_create(root_fd, total_kinds, NULL);
    struct pair *p = other ? calloc(1, sizeof(*p)) : NULL;
    struct side *side = p ? calloc(2, sizeof(*side)) : NULL;

    if (!side) {
        if (other)
            other->ops->destroy(other);
        free(p);
        return msrs;
    }
    side[0].counters = p->msrs = msrs;
    side[1].counters = other;
    p->side = side;
    p->counters = *msrs;
    p->counters.ops = &pair_ops;
    msrs->remark.text[0] = '\0';
    return &p->counters;
}

static struct joule_counters *choose(int root_fd,
                                     const struct joule_cpu_options *opt,
                                     struct joule_rapl_info *ret_info,
                                     struct joule_error *err)
{
    struct joule_error msr_error, other_error;
    struct joule_counters *counters =
                              open_msrs(root_fd, opt, ret_info, &msr_error),
                          *other;
    int errnum = errno;

    if (counters && !ret_info->kernel_has_more)
        return opt->compares ? compared(root_fd, opt->total_kinds, counters)
                             : counters;
    if (counters)
        joule_error_set(&msr_error, 0,
                        "the kernel knows more of them on this CPU (%s)",
                        ret_info->row);
    else if (!may_be_elsewhere(errnum))
        goto fail;
    other = open_powercap(root_fd, opt->total_kinds, &msr_error, &other_error);
    if (other && counters)
        counters->ops->destroy(counters);
    if (other || counters)
        return other ? other : counters;
    /* Without zones there is nothing that it could say. */
    if (errno != ENOENT) {
        joule_error_set(err, errno, "%s; powercap: %s", msr_error.text,
                        other_error.text);
        return NULL;
    }
fail:
    joule_error_set(err, errnum, "%s", msr_error.text);
    return NULL;
}

/* It tells who the CPU is, all the same. */
static struct joule_counters *only_powercap(int root_fd,
                                            const struct joule_cpu_options *opt,
                                            struct joule_rapl_info *ret_info,
                                            struct joule_error *err)
{
    struct joule_counters *msrs = open_msrs(root_fd, opt, ret_info, NULL);

    if (msrs)
        msrs->ops->destroy(msrs);
    return joule_powercap_create(root_fd, opt->total_kinds, err);
}

struct joule_counters *
joule_cpu_counters_create(int root_fd, const struct joule_cpu_options *opt,
                          struct joule_error *err)
{
    struct joule_rapl_info info = {0};
    struct joule_counters *counters;
    int saved;

    if (opt->way == JOULE_CPU_AUTO)
        counters = choose(root_fd, opt, &info, err);
    else if (opt->way == JOULE_CPU_MSR)
        counters = open_msrs(root_fd, opt, &info, err);
    else
        counters = only_powercap(root_fd, opt, &info, err);
    saved = errno;
    if (opt->ret_info)
        *opt->ret_info = info;
    errno = saved;
    return counters;
}
