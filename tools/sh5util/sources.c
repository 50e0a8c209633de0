/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *pa, const void *pb)
{
    const struct joule_source *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    return order ? order : strverscmp(a->node, b->node);
}

/* The source of a node-step file; they stand first in the list. */
static struct joule_source *find_file(const struct joule_sources *s,
                                      const struct joule_plan_node *n)
{
    for (size_t i = 0; i < s->files.count; i++)
        if (strcmp(s->source[i].node, n->name) == 0 &&
            strcmp(s->source[i].step, n->step) == 0)
            return &s->source[i];
    return NULL;
}

static bool is_busy(const struct joule_sources *s,
                    const struct joule_stepfile *file)
{
    bool busy = false;
    struct stat st;
    int fd = joule_stepfile_open(&s->files, file, &st, &busy, NULL);

    if (fd >= 0)
        close(fd);
    return busy;
}

bool joule_sources_have(const struct joule_sources *s, const char *step)
{
    for (size_t i = 0; i < s->files.count; i++)
        if (strcmp(s->files.file[i].step, step) == 0)
            return true;
    for (size_t i = 0; i < s->old.nodes; i++)
        if (strcmp(s->old.node[i].step, step) == 0)
            return true;
    return false;
}

/* A file that is being written ends with a hole that holds nothing yet. */
uint64_t joule_source_bytes(const struct joule_source *source)
{
    uint64_t size = (uint64_t)source->st.st_size;
    uint64_t on_disk = (uint64_t)source->st.st_blocks * 512;

    return on_disk > 0 && on_disk < size ? on_disk : size;
}

int joule_sources_list(struct joule_sources *s, struct joule_error *err)
{
    s->source = calloc(s->files.count + s->old.nodes + 1, sizeof(*s->source));
    if (!s->source)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < s->files.count; i++) {
        const struct joule_stepfile *file = &s->files.file[i];
        struct joule_source *source = &s->source[s->count++];

        *source = (struct joule_source){
            .step = file->step, .node = file->node, .file = file, .fd = -1};
        if (fstatat(s->files.dir_fd, file->name, &source->st,
                    AT_SYMLINK_NOFOLLOW) == 0)
            s->bytes += joule_source_bytes(source);
    }
    for (size_t i = 0; i < s->old.nodes; i++) {
        const struct joule_plan_node *n = &s->old.node[i];
        struct joule_source *source = find_file(s, n);

        if (!source) {
            s->source[s->count++] = (struct joule_source){
                .step = n->step, .node = n->name, .fd = -1};
        } else if (!s->unfinished && source->file && is_busy(s, source->file)) {
            source->later = source->file;
            source->file = NULL;
        }
    }
    qsort(s->source, s->count, sizeof(*s->source), compare);
    return 0;
}

void joule_sources_free(struct joule_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        joule_source_close(&s->source[i]);
    free(s->source);
    if (s->old_fd >= 0)
        close(s->old_fd);
    joule_plan_free(&s->old);
    joule_stepfiles_free(&s->files);
}

static int duplicate(int of, struct joule_error *err)
{
    int fd = fcntl(of, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        joule_error_set(err, errno, "cannot use it: %m");
    return fd;
}

int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err)
{
    int fd =
        source->file
            ? joule_stepfile_open(&s->files, source->file, &source->st,
                                  s->unfinished ? &source->is_busy : NULL, err)
            : duplicate(s->old_fd, err);

    if (fd < 0)
        return -1;
    joule_source_close(source);
    source->fd = duplicate(fd, err);
    if (source->fd >= 0)
        return fd;
    close(fd);
    return -1;
}

void joule_source_close(struct joule_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err)
{
    const char *name = source->file->name;
    const struct stat *then = &source->st;
    struct stat now;

    if (fstatat(s->files.dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
        now.st_size != then->st_size ||
        now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return joule_error_set(
            err, EBUSY, "%s: it has changed meanwhile and is kept", name);
    if (unlinkat(s->files.dir_fd, name, 0) < 0)
        return joule_error_set(err, errno, "%s: it cannot be removed: %m",
                               name);
    return 0;
}
