/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into slurmd and slurmstepd under valgrind, which shows a process its
 * command line as it was at the start: /proc/self/cmdline is the title that
 * slurmstepd has given to itself since ("slurmstepd: [7.0]"), as it is without
 * valgrind.  Without it no plugin of ours believes the step's record.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int open_title(const char *title)
{
    int fd = memfd_create("title", MFD_CLOEXEC);
    size_t size = strlen(title) + 1;

    if (fd >= 0 && (write(fd, title, size) != (ssize_t)size ||
                    lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

EXPORT int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    mode_t mode = 0;
    va_list arg;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_start(arg, flags);
        mode = va_arg(arg, mode_t);
        va_end(arg);
    }
    /* The title stands where the name was. */
    if (strcmp(path, "/proc/self/cmdline") == 0 &&
        strncmp(program_invocation_name, "slurmstepd:", 11) == 0)
        return open_title(program_invocation_name);
    if (!real && !(*(void **)&real = dlsym(RTLD_NEXT, "open")))
        abort();
    return real(path, flags, mode);
}
