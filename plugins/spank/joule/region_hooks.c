/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule/spank_joule.h"

extern slurm_conf_t slurm_conf __attribute__((weak));

/* The longest value of LD_PRELOAD that is added to. */
#define PRELOAD_MAX 4096

#define PROFILE_TYPE "acct_gather_profile/joule_hdf5"

/* What libjoule_hooks.so knows, and whether it is there by LD_PRELOAD. */
static const struct {
    const char *name;
    bool is_preloaded;
} hooks[] = {
    {"mpi", true},     {"likwid", true}, {"roctx", true},
    {"kokkos", false}, {"nvtx", false},  {"ompt", true},
};

#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

static bool is_word(const char *at, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(at, name, length) == 0;
}

static bool is_hook(const char *at, size_t length)
{
    for (size_t i = 0; i < HOOKS; i++)
        if (is_word(at, length, hooks[i].name))
            return true;
    return is_word(at, length, "all");
}

static bool is_listed(const char *list, const char *name)
{
    size_t length;

    for (; *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        if (is_word(list, length, name) || is_word(list, length, "all"))
            return true;
    }
    return false;
}

int joule_spank_hooks_check(const char *list, struct joule_error *err)
{
    size_t length;
    const char *at = list;

    if (strlen(list) < JOULE_SPANK_HOOKS_MAX)
        do {
            length = strcspn(at, ",");
            if (!is_hook(at, length))
                break;
            at += length;
        } while (*at++ == ',');
    if (at > list && at[-1] == '\0')
        return 0;
    return joule_error_set(err, EINVAL,
                           "%.64s is no list of mpi, likwid, roctx, kokkos, "
                           "nvtx, ompt, or all",
                           list);
}

static int set(spank_t spank, const char *name, const char *value,
               struct joule_error *err)
{
    if (spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS)
        return 0;
    return joule_error_set(err, ENOMEM, "cannot set %s", name);
}

static bool is_set(spank_t spank, const char *name)
{
    char value[2];

    return spank_getenv(spank, name, value, sizeof(value)) !=
           ESPANK_ENV_NOEXIST;
}

int joule_spank_preload(struct spank_handle *spank, const char *object,
                        bool first, struct joule_error *err)
{
    char before[PRELOAD_MAX] = "", value[PRELOAD_MAX];
    spank_err_t rc = spank_getenv(spank, "LD_PRELOAD", before, sizeof(before));
    const char *colon = *before ? ":" : "";

    if (strstr(before, object))
        return 0;
    if ((rc == ESPANK_SUCCESS || rc == ESPANK_ENV_NOEXIST) &&
        (size_t)snprintf(value, sizeof(value), "%s%s%s",
                         first ? object : before, colon,
                         first ? before : object) < sizeof(value))
        return set(spank, "LD_PRELOAD", value, err);
    return joule_error_set(err, ENAMETOOLONG,
                           "LD_PRELOAD is too long to be added to");
}

static int set_hooks(spank_t spank, const char *list, const char *object,
                     struct joule_error *err)
{
    bool preload = false;

    for (size_t i = 0; i < HOOKS; i++)
        preload |= hooks[i].is_preloaded && is_listed(list, hooks[i].name);
    if (preload && joule_spank_preload(spank, object, false, err) < 0)
        return -1;
    /* The first is the name since Kokkos 4, the other one before. */
    if (is_listed(list, "kokkos") && !is_set(spank, "KOKKOS_TOOLS_LIBS") &&
        !is_set(spank, "KOKKOS_PROFILE_LIBRARY") &&
        (set(spank, "KOKKOS_TOOLS_LIBS", object, err) < 0 ||
         set(spank, "KOKKOS_PROFILE_LIBRARY", object, err) < 0))
        return -1;
    if (is_listed(list, "nvtx") && !is_set(spank, "NVTX_INJECTION64_PATH"))
        return set(spank, "NVTX_INJECTION64_PATH", object, err);
    return 0;
}

static int check_profile(struct joule_error *err)
{
    if (&slurm_conf && slurm_conf.acct_gather_profile_type &&
        strcmp(slurm_conf.acct_gather_profile_type, PROFILE_TYPE) != 0)
        return joule_error_set(err, ENOTSUP,
                               "no regions: this cluster has no " PROFILE_TYPE);
    if (acct_gather_profile_g_is_active &&
        !acct_gather_profile_g_is_active(ACCT_GATHER_PROFILE_ENERGY))
        return joule_error_set(err, ENODATA,
                               "no regions: the step has no energy profile, "
                               "which --profile=energy turns on");
    return 0;
}

/* sbatch's option is meant for the steps of the script. */
static bool is_script(struct spank_handle *spank)
{
    uint32_t step = 0;

    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step == SLURM_BATCH_SCRIPT;
}

int joule_spank_hooks_begin(struct spank_handle *spank, const char *wish,
                            const struct joule_spank_options *options,
                            struct joule_error *err)
{
    char list[JOULE_SPANK_HOOKS_MAX] = "";
    spank_err_t rc = ESPANK_SUCCESS;

    if (*wish)
        snprintf(list, sizeof(list), "%s", wish);
    else
        rc =
            spank_getenv(spank, JOULE_SPANK_HOOKS_VARIABLE, list, sizeof(list));
    if (rc == ESPANK_NOSPACE)
        return joule_error_set(err, EINVAL,
                               JOULE_SPANK_HOOKS_VARIABLE " is no list of mpi, "
                                                          "likwid, ...: it is "
                                                          "too long");
    if (!*list)
        return 0;
    if (joule_spank_hooks_check(list, err) < 0)
        return -1;
    if (check_profile(err) < 0)
        return is_script(spank) ? 0 : -1;
    if (set(spank, JOULE_SPANK_HOOKS_VARIABLE, list, err) < 0)
        return -1;
    /* The loader would say so for each program that it starts. */
    if (access(options->hooks, R_OK) < 0)
        return joule_error_set(err, errno,
                               "only regions that programs name by libjoule: "
                               "%s: %m",
                               options->hooks);
    return set_hooks(spank, list, options->hooks, err);
}
