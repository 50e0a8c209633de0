/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Names of objects.  They are looked into once dl_iterate_phdr has returned: it holds a
 * lock that another thread's dlopen may wait for. */
#define OBJECTS_MAX 4096

struct objects {
    char *name[OBJECTS_MAX];
    size_t count;
};

static int keep_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct objects *objects = arg;

    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name)
        return 0;
    if (objects->count == OBJECTS_MAX)
        return 1;
    objects->name[objects->count] = strdup(info->dlpi_name);
    return !objects->name[objects->count++];
}

static void *look_into(const char *path, const char *name)
{
    void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found;
    Dl_info own, other;

    if (!object)
        return NULL;
    found = dlsym(object, name);
    if (found && dladdr((void *)look_into, &own) && dladdr(found, &other) &&
        own.dli_fbase == other.dli_fbase)
        found = NULL;
    dlclose(object);
    return found;
}

void *joule_preload_find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    struct objects *objects;

    if (found)
        return found;
    objects = calloc(1, sizeof(*objects));
    if (!objects)
        return NULL;
    dl_iterate_phdr(keep_name, objects);
    for (size_t i = 0; i < objects->count; i++) {
        if (!found && objects->name[i])
            found = look_into(objects->name[i], name);
        free(objects->name[i]);
    }
    free(objects);
    return found;
}

bool joule_preload_copy_text(const void *at, char text[JOULE_PRELOAD_TEXT])
{
    const size_t most = JOULE_PRELOAD_TEXT - 1;
    size_t got = 0;

    while (at && got < most) {
        size_t piece = 64 - ((uintptr_t)at + got) % 64;
        struct iovec local = {text + got,
                              piece < most - got ? piece : most - got};
        struct iovec remote = {(char *)at + got, local.iov_len};
        char *end;

        if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) !=
            (ssize_t)local.iov_len)
            return false;
        end = memchr(text + got, '\0', local.iov_len);
        for (const char *c = text + got; c < text + got + local.iov_len; c++) {
            if (c == end)
                return c > text;
            if (*c < ' ' || *c > '~')
                return false;
        }
        got += local.iov_len;
    }
    text[most] = '\0';
    return false;
}
