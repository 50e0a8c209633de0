/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule waits --otf2: a copy of the trace in which the waits are marked. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "config.h"
#include "tools/report/waits.h"
#include "tools/sh5util/outfile.h"
#include "tools/waits/trace_copy.h"

int joule_waits_scratch(struct joule_scratch *s, const char *path, size_t size,
                        struct joule_error *err)
{
    struct joule_outfile beside = {.fd = -1};
    char *copy = strdup(path);
    int fd = -1;

    if (!copy)
        joule_error_set(err, ENOMEM, "out of memory");
    beside.dir_fd =
        copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (beside.dir_fd >= 0)
        fd = joule_outfile_scratch(&beside, err);
    else if (copy)
        joule_error_set(err, errno, "cannot write %s: %m", path);
    joule_close(beside.dir_fd);
    free(copy);
    return joule_scratch_init(s, fd, size, err);
}

#ifdef HAVE_OTF2

/* "out/" is "out". */
static void strip_slashes(char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* No archive is better than a part of one. */
static int copy_into(const struct joule_trace_copying *copying,
                     const char *directory, struct joule_trace_copied *ret,
                     struct joule_error *err)
{
    int rc = joule_trace_copy(copying, ret, err);

    if (rc == 0 && rename(copying->directory, directory) < 0)
        rc = joule_error_set(err, errno, "cannot write %s: %m", directory);
    if (rc < 0)
        nftw(copying->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

static void tell(uint64_t count, const char *text)
{
    if (count > 0)
        fprintf(stderr, "joule waits: %llu %s\n", (unsigned long long)count,
                text);
}

int joule_waits_write_otf2(struct joule_scratch *marks, const char *trace,
                           const char *path, void (*tick)(void *arg),
                           struct joule_error *err)
{
    char *directory = strdup(path), *temporary = NULL;
    struct joule_trace_copied facts;
    struct joule_trace_copying copying = {.path = trace, .tick = tick};
    int rc = 0;

    if (directory)
        strip_slashes(directory);
    if (!directory ||
        asprintf(&temporary, "%s.part-%ld", directory, (long)getpid()) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    else if (access(directory, F_OK) == 0)
        rc = joule_error_set(err, EEXIST, "%s is there already", directory);
    if (rc == 0)
        rc = joule_scratch_sort(marks, joule_mark_compare, err);
    if (rc == 0) {
        copying.directory = temporary;
        copying.mark = marks->at;
        copying.marks = marks->count;
        rc = copy_into(&copying, directory, &facts, err);
    }
    if (rc == 0) {
        tell(facts.left_out, "events of other kinds are not in the copy");
        tell(facts.not_marked, "waits are not marked: they are within others");
    }
    free(temporary);
    free(directory);
    return rc;
}

#endif
