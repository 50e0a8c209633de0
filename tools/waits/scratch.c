/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/file.h"

#define BUFFER_RECORDS 1024

int joule_scratch_init(struct joule_scratch *s, int fd, size_t size,
                       struct joule_error *err)
{
    memset(s, 0, sizeof(*s));
    s->fd = fd;
    s->size = size;
    pthread_mutex_init(&s->lock, NULL);
    if (fd < 0)
        return -1;
    for (int i = 0; i < JOULE_MATCHER_PARTS_MAX; i++) {
        s->part[i].buffer = malloc(BUFFER_RECORDS * size);
        if (!s->part[i].buffer)
            return joule_error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

void joule_scratch_free(struct joule_scratch *s)
{
    if (s->at)
        munmap(s->at, s->count * s->size);
    for (int i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        free(s->part[i].buffer);
    joule_close(s->fd);
    pthread_mutex_destroy(&s->lock);
    memset(s, 0, sizeof(*s));
    s->fd = -1;
}

/* Behind what the others have written. */
static void flush(struct joule_scratch *s, struct joule_scratch_part *p)
{
    size_t done = 0;

    pthread_mutex_lock(&s->lock);
    while (done < p->used && s->error == 0) {
        ssize_t n = write(s->fd, p->buffer + done, p->used - done);

        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            s->error = errno;
    }
    s->count += p->used / s->size;
    p->used = 0;
    pthread_mutex_unlock(&s->lock);
}

void joule_scratch_add(struct joule_scratch *s, unsigned part,
                       const void *record)
{
    struct joule_scratch_part *p = &s->part[part];

    memcpy(p->buffer + p->used, record, s->size);
    p->used += s->size;
    if (p->used == BUFFER_RECORDS * s->size)
        flush(s, p);
}

int joule_scratch_sort(struct joule_scratch *s,
                       int (*compare)(const void *, const void *),
                       struct joule_error *err)
{
    for (int i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        flush(s, &s->part[i]);
    if (s->error)
        return joule_error_set(err, s->error, "a temporary file: %s",
                               strerror(s->error));
    if (s->count == 0)
        return 0;
    s->at = mmap(NULL, s->count * s->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                 s->fd, 0);
    if (s->at == MAP_FAILED) {
        s->at = NULL;
        return joule_error_set(err, errno, "a temporary file: %m");
    }
    qsort(s->at, s->count, s->size, compare);
    return 0;
}
