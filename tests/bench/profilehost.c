/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/profilehost.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define TITLE "slurmstepd: [7.0]"

/* ---- what a host of the plugins exports ---- */

JOULE_SLURM_EXPORT extern uint32_t slurm_daemon;
JOULE_SLURM_EXPORT bool slurm_running_in_slurmstepd(void);
JOULE_SLURM_EXPORT int acct_gather_energy_g_set_data(enum acct_energy_type type,
                                                     void *data);
JOULE_SLURM_EXPORT int slurm_s_p_get_string(char **ret, const char *key,
                                            const s_p_hashtbl_t *table);

uint32_t slurm_daemon = 1u << 5;
static const char *library_path, *profile_dir, *converter_path;

bool slurm_running_in_slurmstepd(void)
{
    return true;
}

/* No thread of this host samples energy. */
int acct_gather_energy_g_set_data(enum acct_energy_type type, void *data)
{
    (void)type;
    (void)data;
    return SLURM_SUCCESS;
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    if (!found)
        bench_die(name, dlerror());
    return found;
}

/* acct_gather.conf */
int slurm_s_p_get_string(char **ret, const char *key,
                         const s_p_hashtbl_t *table)
{
    char *(*duplicate)(const char *);
    const char *value = NULL;

    (void)table;
    if (strcmp(key, "ProfileHDF5Dir") == 0)
        value = profile_dir;
    if (strcmp(key, "JouleProfileConverter") == 0)
        value = converter_path;
    if (!value)
        return 0;
    *(void **)&duplicate = symbol(RTLD_DEFAULT, "slurm_xstrdup");
    *ret = duplicate(value);
    return 1;
}

void profilehost_set(const char *library, const char *directory,
                     const char *converter)
{
    library_path = library;
    profile_dir = directory;
    converter_path = converter;
}

void profilehost_load_library(void)
{
    if (!dlopen(library_path, RTLD_NOW | RTLD_GLOBAL))
        bench_die(library_path, dlerror());
}

static bool is_titled(void)
{
    char title[64] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY);

    if (fd < 0 || read(fd, title, sizeof(title) - 1) < 0)
        bench_die("/proc/self/cmdline", strerror(errno));
    close(fd);
    return strcmp(title, TITLE) == 0;
}

void profilehost_begin(char **argv)
{
    if (is_titled())
        return;
    argv[0] = (char *)TITLE;
    setenv("SLURMD_NODENAME", "n1", 1);
    execv("/proc/self/exe", argv);
    bench_die("/proc/self/exe", strerror(errno));
}

/* ---- a plugin ---- */

struct profilehost_plugin profilehost_load(const char *path)
{
    struct profilehost_plugin p;
    void *handle;

    profilehost_load_library();
    handle = dlopen(path, RTLD_LAZY);
    if (!handle)
        bench_die(path, dlerror());
    *(void **)&p.init = symbol(handle, "init");
    *(void **)&p.conf_set = symbol(handle, "acct_gather_profile_p_conf_set");
    *(void **)&p.start =
        symbol(handle, "acct_gather_profile_p_node_step_start");
    *(void **)&p.end = symbol(handle, "acct_gather_profile_p_node_step_end");
    *(void **)&p.create_group =
        symbol(handle, "acct_gather_profile_p_create_group");
    *(void **)&p.create_dataset =
        symbol(handle, "acct_gather_profile_p_create_dataset");
    *(void **)&p.add = symbol(handle, "acct_gather_profile_p_add_sample_data");
    if (p.init() != SLURM_SUCCESS)
        bench_die(path, "init failed");
    p.conf_set(&p); /* not NULL: it is looked at by slurm_s_p_get_string */
    return p;
}

/* stepd_step_rec_t of 22.05: see plugins/slurm_abi/slurm_step.c. */
void profilehost_record(unsigned char record[PROFILEHOST_RECORD_BYTES],
                        const char *user)
{
    static const char *node = "n1";
    uint32_t job = 7, step = 0, one = 1, all = ACCT_GATHER_PROFILE_ALL;

    memset(record, 0, PROFILEHOST_RECORD_BYTES);
    memcpy(record + 112, &job, 4);
    memcpy(record + 120, &step, 4);
    memcpy(record + 144, &one, 4);
    memcpy(record + 224, &one, 2);
    memcpy(record + 288, &node, sizeof(node));
    memcpy(record + 360, &user, sizeof(user));
    memcpy(record + 432, &all, 4);
}

acct_gather_profile_dataset_t profilehost_energy[] = {
    {(char *)"Power", JOULE_PROFILE_FIELD_UINT64},
    {NULL, JOULE_PROFILE_FIELD_END},
};

uint64_t profilehost_power(unsigned *seed)
{
    static int watts = 250;

    watts += rand_r(seed) % 7 - 3;
    if (watts < 180 || watts > 320)
        watts = 250;
    return (uint64_t)watts;
}

double profilehost_cpu_ns(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9 +
           ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}
