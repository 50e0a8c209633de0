/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spool.h - write a new file from its beginning to its end.
 *
 * Small pieces are put together, large ones are written from where they are.
 * Places may be kept free on the way and filled later.  The disk is told to
 * begin before all is written, so that who syncs the file in the end does not
 * wait for all of it.
 *
 * The first error stays; what follows it is not written.  One thread at a time.
 */
#ifndef JOULE_STORE_SPOOL_H
#define JOULE_STORE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

struct joule_spool;

/* Into the empty file [fd], which stays the caller's.  NULL: ENOMEM. */
struct joule_spool *joule_spool_create(int fd);
void joule_spool_destroy(struct joule_spool *spool);

/* Append [size] bytes, at the next multiple of 8; returns where they are. */
uint64_t joule_spool_put(struct joule_spool *spool, const void *data,
                         size_t size);

/*
 * Append [size] bytes that lie in the file [fd] at [at]; *ret_at is where they
 * are then.  The kernel copies them, where it can, and whole pages of memory
 * where there are many.  -1 with errno of pread(2),
 * or ENODATA: the file ends before; nothing is appended then.
 */
int joule_spool_copy(struct joule_spool *spool, int fd, uint64_t at,
                     size_t size, uint64_t *ret_at);

/* Append [size] bytes of zeros, for joule_spool_fill. */
uint64_t joule_spool_keep(struct joule_spool *spool, size_t size);

/* Fill [size] bytes at [at], which lie before the end. */
void joule_spool_fill(struct joule_spool *spool, uint64_t at, const void *data,
                      size_t size);

/* Bytes so far. */
uint64_t joule_spool_size(const struct joule_spool *spool);

/* errno of the first write that failed, or 0. */
int joule_spool_error(const struct joule_spool *spool);

/* All of it to the file.  0, or -1 with errno of write(2). */
int joule_spool_flush(struct joule_spool *spool);

#endif
