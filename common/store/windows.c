/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOWS     8
#define WINDOW_SIZE (2 * JOULE_WINDOW_MAX)

/* A place that is read out of order, with what stands about it. */
#define SPOT_ALIGN ((size_t)16 << 10)
#define SPOT_SIZE  (2 * SPOT_ALIGN)

struct window {
    unsigned char *data; /* NULL: not yet */
    uint64_t start;
    size_t length;
    uint64_t used; /* the larger, the later */
};

struct joule_windows {
    int fd;
    uint64_t size, now;
    struct window *last; /* that was looked at */
    struct window window[WINDOWS];
};

struct joule_windows *joule_windows_create(int fd, uint64_t size)
{
    struct joule_windows *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->fd = fd;
    w->size = size;
    w->last = &w->window[0];
    return w;
}

void joule_windows_destroy(struct joule_windows *w)
{
    if (!w)
        return;
    for (int i = 0; i < WINDOWS; i++)
        free(w->window[i].data);
    free(w);
}

uint64_t joule_windows_size(const struct joule_windows *w)
{
    return w->size;
}

/* Exactly [size] bytes. */
static int read_exactly(int fd, void *buf, size_t size, uint64_t at)
{
    char *to = buf;

    while (size > 0) {
        ssize_t n = pread(fd, to, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENODATA;
        if (n <= 0)
            return -1;
        to += n;
        size -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

static int is_inside(const struct joule_windows *w, uint64_t at, size_t size)
{
    if (at <= w->size && size <= w->size - at)
        return 1;
    errno = EINVAL;
    return 0;
}

static int holds(const struct window *w, uint64_t at, size_t size)
{
    return at >= w->start && at - w->start <= w->length &&
           size <= w->length - (at - w->start);
}

/* Whether [at] is where a reader comes to that goes on from the window. */
static int goes_on(const struct window *w, uint64_t at)
{
    return w->length && at >= w->start &&
           at - w->start <= w->length + SPOT_ALIGN;
}

static int fill(const struct joule_windows *all, struct window *w,
                uint64_t start, size_t length)
{
    if (length > all->size - start)
        length = (size_t)(all->size - start);
    if (!w->data)
        w->data = malloc(WINDOW_SIZE);
    w->length = 0;
    if (!w->data || read_exactly(all->fd, w->data, length, start) < 0)
        return -1;
    w->start = start;
    w->length = length;
    return 0;
}

/* The one that holds it, else the one that was used longest ago, filled.
 * Headers are read backwards, and from object to object all over a large file:
 * much more is only read where a reader goes on. */
static struct window *find(struct joule_windows *all, uint64_t at, size_t size)
{
    struct window *oldest = &all->window[0];
    uint64_t start = at - at % SPOT_ALIGN;
    size_t length = SPOT_SIZE;

    for (int i = 0; i < WINDOWS; i++) {
        struct window *w = &all->window[i];

        if (holds(w, at, size))
            return w;
        if (goes_on(w, at))
            length = WINDOW_SIZE;
        if (w->used < oldest->used)
            oldest = w;
    }
    if (length < at - start + size)
        length = (size_t)(at - start) + size;
    return fill(all, oldest, start, length) < 0 ? NULL : oldest;
}

const unsigned char *joule_windows_look(struct joule_windows *all, uint64_t at,
                                        size_t size)
{
    struct window *w = all->last;

    if (!holds(w, at, size)) {
        if (size > JOULE_WINDOW_MAX || !is_inside(all, at, size)) {
            errno = EINVAL;
            return NULL;
        }
        w = find(all, at, size);
        if (!w)
            return NULL;
        all->last = w;
    }
    w->used = ++all->now;
    return w->data + (at - w->start);
}

int joule_windows_read(struct joule_windows *w, uint64_t at, size_t size,
                       void *buf)
{
    const unsigned char *from;

    if (size > JOULE_WINDOW_MAX)
        return is_inside(w, at, size) ? read_exactly(w->fd, buf, size, at) : -1;
    from = joule_windows_look(w, at, size);
    if (!from)
        return -1;
    memcpy(buf, from, size);
    return 0;
}
