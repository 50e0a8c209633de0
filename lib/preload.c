/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct search {
    const char *name;
    void *found;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    Dl_info own, other;
    void *object, *found;

    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name)
        return 0;
    object = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!object)
        return 0;
    found = dlsym(object, search->name);
    if (found && dladdr((void *)look_into, &own) && dladdr(found, &other) &&
        own.dli_fbase != other.dli_fbase)
        search->found = found;
    dlclose(object);
    return search->found != NULL;
}

void *joule_preload_find(const char *name)
{
    struct search search = {name, dlsym(RTLD_NEXT, name)};

    if (!search.found)
        dl_iterate_phdr(look_into, &search);
    return search.found;
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
