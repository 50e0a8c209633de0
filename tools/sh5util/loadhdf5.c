/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule_libhdf5_load (libhdf5.h) for the installed program, which starts
 * without libhdf5.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/store/libhdf5.h"

#define MODULE "hdf5-reader.so"

/* Beside the program, where it has just been built; else where it is
 * installed. */
static void find_module(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

    while (len > 0 && path[len - 1] != '/')
        len--;
    if (len > 0 && (size_t)len + sizeof(MODULE) <= PATH_MAX) {
        memcpy(path + len, MODULE, sizeof(MODULE));
        if (access(path, R_OK) == 0)
            return;
    }
    snprintf(path, PATH_MAX, "%s/%s", JOULE_LIBEXECDIR, MODULE);
}

const struct joule_libhdf5 *joule_libhdf5_load(struct joule_error *err)
{
    const struct joule_libhdf5 *functions;
    char path[PATH_MAX];
    void *module;

    find_module(path);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        joule_error_set(err, ENOENT,
                        "what reads such a file cannot be loaded: %s",
                        dlerror());
        return NULL;
    }
    functions = dlsym(module, JOULE_LIBHDF5_SYMBOL);
    if (!functions || functions->version != JOULE_LIBHDF5_VERSION) {
        dlclose(module);
        joule_error_set(err, EPROTO, "%s is of another version of sh5util",
                        path);
        return NULL;
    }
    functions->prepare();
    return functions;
}
