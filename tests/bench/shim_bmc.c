/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into a slurmd with Slurm's acct_gather_energy/ipmi, which asks the
 * machine's own BMC alone: its library, libipmimonitoring, is told to ask the
 * BMC at $JOULE_SHIM_BMC, with all else that the plugin has set, and to keep its
 * sensor records in $JOULE_SHIM_CACHE.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <ipmi_monitoring.h>

#define EXPORT __attribute__((visibility("default")))

/* The library's own. */
static void *real_one(const char *name)
{
    void *library = dlopen("libipmimonitoring.so.6", RTLD_LAZY);
    void *found = library ? dlsym(library, name) : NULL;

    if (!found) {
        fprintf(stderr, "shim_bmc: %s\n", dlerror());
        abort();
    }
    return found;
}

EXPORT int ipmi_monitoring_ctx_sdr_cache_directory(ipmi_monitoring_ctx_t c,
                                                   const char *dir)
{
    int (*real)(ipmi_monitoring_ctx_t, const char *);
    const char *other = getenv("JOULE_SHIM_CACHE");

    *(void **)&real = real_one(__func__);
    return real(c, other ? other : dir);
}

EXPORT int ipmi_monitoring_sensor_readings_by_record_id(
    ipmi_monitoring_ctx_t c, const char *hostname,
    struct ipmi_monitoring_ipmi_config *config, unsigned int flags,
    unsigned int *record_ids, unsigned int count,
    Ipmi_Monitoring_Callback callback, void *callback_data)
{
    int (*real)(ipmi_monitoring_ctx_t, const char *,
                struct ipmi_monitoring_ipmi_config *, unsigned int,
                unsigned int *, unsigned int, Ipmi_Monitoring_Callback, void *);

    *(void **)&real = real_one(__func__);
    return real(c, hostname ? hostname : getenv("JOULE_SHIM_BMC"), config,
                flags, record_ids, count, callback, callback_data);
}
