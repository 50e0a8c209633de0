/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cpu_counters.h"

#include <errno.h>

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
        return counters;
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
