/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1024 << 10)

/* Pieces from this size on are not copied into the buffer. */
#define LARGE ((size_t)64 << 10)

/* Of memory: where a piece begins within one, there its copy does, so that none
 * is written in two parts. */
#define PAGE 4096

#define WRITEBACK_SIZE (UINT64_C(4) << 20)

struct joule_spool {
    int fd;
    int error;
    uint64_t written; /* what lies before this is in the file */
    uint64_t unsent;  /* of it, what the disk was not told to begin with */
    size_t used;      /* of the buffer, which comes next */
    unsigned char buffer[BUFFER_SIZE];
};

struct joule_spool *joule_spool_create(int fd)
{
    struct joule_spool *spool = malloc(sizeof(*spool));

    if (!spool)
        return NULL;
    memset(spool, 0, offsetof(struct joule_spool, buffer));
    spool->fd = fd;
    return spool;
}

void joule_spool_destroy(struct joule_spool *spool)
{
    free(spool);
}

uint64_t joule_spool_size(const struct joule_spool *spool)
{
    return spool->written + spool->used;
}

int joule_spool_error(const struct joule_spool *spool)
{
    return spool->error;
}

/* All of both parts at [at]. */
static int write_at(int fd, struct iovec part[2], uint64_t at)
{
    int i = 0;

    while (i < 2) {
        ssize_t n;

        if (part[i].iov_len == 0) {
            i++;
            continue;
        }
        n = pwritev(fd, part + i, 2 - i, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        at += (uint64_t)n;
        for (; i < 2 && (size_t)n >= part[i].iov_len; i++)
            n -= (ssize_t)part[i].iov_len;
        if (i < 2) {
            part[i].iov_base = (char *)part[i].iov_base + n;
            part[i].iov_len -= (size_t)n;
        }
    }
    return 0;
}

/* So many bytes more are in the file; the disk is told from time to time. */
static void advance(struct joule_spool *spool, uint64_t size)
{
    spool->written += size;
    spool->unsent += size;
    if (spool->unsent < WRITEBACK_SIZE || spool->error)
        return;
    sync_file_range(spool->fd, (off_t)(spool->written - spool->unsent),
                    (off_t)spool->unsent, SYNC_FILE_RANGE_WRITE);
    spool->unsent = 0;
}

/* The buffer, and [size] bytes behind it. */
static void write_out(struct joule_spool *spool, const void *data, size_t size)
{
    struct iovec part[2] = {
        {.iov_base = spool->buffer, .iov_len = spool->used},
        {.iov_base = (void *)(uintptr_t)data, .iov_len = size},
    };
    uint64_t all = spool->used + size;

    if (spool->error == 0)
        spool->error = write_at(spool->fd, part, spool->written);
    spool->used = 0;
    advance(spool, all);
}

/* As much as the kernel copies from file to file: perhaps nothing. */
static size_t copy_in_kernel(int from, uint64_t from_at, int to, uint64_t to_at,
                             size_t size)
{
    size_t done = 0;

    while (done < size) {
        off_t source = (off_t)(from_at + done), target = (off_t)(to_at + done);
        ssize_t n = copy_file_range(from, &source, to, &target, size - done, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* All of it by way of the buffer, which is empty.  -1 with errno of reading;
 * an error of writing stays in the spool. */
static int copy_by_buffer(struct joule_spool *spool, int fd, uint64_t from,
                          uint64_t to, size_t size)
{
    while (size > 0 && spool->error == 0) {
        struct iovec part[2] = {{.iov_base = spool->buffer}};
        ssize_t n = pread(fd, spool->buffer,
                          size < BUFFER_SIZE ? size : BUFFER_SIZE, (off_t)from);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENODATA;
        if (n <= 0)
            return -1;
        part[0].iov_len = (size_t)n;
        spool->error = write_at(spool->fd, part, to);
        from += (uint64_t)n;
        to += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

/* The next piece begins at a multiple of 8. */
static void align(struct joule_spool *spool)
{
    size_t over = (size_t)(joule_spool_size(spool) % 8);

    if (over == 0)
        return;
    if (BUFFER_SIZE - spool->used < 8)
        write_out(spool, NULL, 0);
    memset(spool->buffer + spool->used, 0, 8 - over);
    spool->used += 8 - over;
}

int joule_spool_copy(struct joule_spool *spool, int fd, uint64_t at,
                     size_t size, uint64_t *ret_at)
{
    size_t done = 0;

    align(spool);
    if (size >= LARGE)
        joule_spool_keep(
            spool, (size_t)((at - joule_spool_size(spool)) % PAGE / 8 * 8));
    write_out(spool, NULL, 0);
    *ret_at = spool->written;
    if (spool->error == 0)
        done = copy_in_kernel(fd, at, spool->fd, spool->written, size);
    /* What it cannot do, and what goes wrong, is to be seen here. */
    if (copy_by_buffer(spool, fd, at + done, spool->written + done,
                       size - done) < 0)
        return -1;
    advance(spool, size);
    return 0;
}

uint64_t joule_spool_put(struct joule_spool *spool, const void *data,
                         size_t size)
{
    uint64_t at;

    align(spool);
    at = joule_spool_size(spool);
    if (size >= LARGE) {
        write_out(spool, data, size);
        return at;
    }
    if (size > BUFFER_SIZE - spool->used)
        write_out(spool, NULL, 0);
    memcpy(spool->buffer + spool->used, data, size);
    spool->used += size;
    return at;
}

uint64_t joule_spool_keep(struct joule_spool *spool, size_t size)
{
    static const unsigned char zero[512];
    uint64_t at;

    align(spool);
    at = joule_spool_size(spool);
    while (size > 0) {
        size_t n = size < sizeof(zero) ? size : sizeof(zero);

        joule_spool_put(spool, zero, n);
        size -= n;
    }
    return at;
}

void joule_spool_fill(struct joule_spool *spool, uint64_t at, const void *data,
                      size_t size)
{
    const unsigned char *from = data;
    size_t before = 0;

    if (at < spool->written) {
        before =
            spool->written - at < size ? (size_t)(spool->written - at) : size;
        struct iovec part[2] = {
            {.iov_base = (void *)(uintptr_t)from, .iov_len = before}};

        if (spool->error == 0)
            spool->error = write_at(spool->fd, part, at);
    }
    if (before < size)
        memcpy(spool->buffer + (at + before - spool->written), from + before,
               size - before);
}

int joule_spool_flush(struct joule_spool *spool)
{
    write_out(spool, NULL, 0);
    if (spool->error == 0)
        return 0;
    errno = spool->error;
    return -1;
}
