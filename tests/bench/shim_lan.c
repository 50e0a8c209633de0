/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into a slurmd with Slurm's acct_gather_energy/ipmi, which asks the
 * BMC of its own machine and no other: it is given the one at
 * $JOULE_BENCH_BMC, over the network, and keeps the BMC's records in
 * $JOULE_BENCH_CACHE instead of /tmp.
 */
#include <dlfcn.h>
#include <ipmi_monitoring.h>
#include <stdlib.h>

/* The library came with the plugin, and is not among the program's own. */
static void *real(const char *name)
{
    void *lib = dlopen("libipmimonitoring.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *f = lib ? dlsym(lib, name) : NULL;

    if (!f)
        abort();
    dlclose(lib);
    return f;
}

__attribute__((visibility("default"))) int
ipmi_monitoring_ctx_sdr_cache_directory(ipmi_monitoring_ctx_t ctx,
                                        const char *dir)
{
    int (*f)(ipmi_monitoring_ctx_t, const char *);
    const char *mine = getenv("JOULE_BENCH_CACHE");

    *(void **)&f = real("ipmi_monitoring_ctx_sdr_cache_directory");
    return f(ctx, mine ? mine : dir);
}

__attribute__((visibility("default"))) int
ipmi_monitoring_sensor_readings_by_record_id(
    ipmi_monitoring_ctx_t ctx, const char *host,
    struct ipmi_monitoring_ipmi_config *config, unsigned flags, unsigned *ids,
    unsigned count, Ipmi_Monitoring_Callback callback, void *data)
{
    static int (*f)(ipmi_monitoring_ctx_t, const char *,
                    struct ipmi_monitoring_ipmi_config *, unsigned, unsigned *,
                    unsigned, Ipmi_Monitoring_Callback, void *);

    if (!f)
        *(void **)&f = real("ipmi_monitoring_sensor_readings_by_record_id");
    if (!host)
        host = getenv("JOULE_BENCH_BMC");
    return f(ctx, host, config, flags, ids, count, callback, data);
}
