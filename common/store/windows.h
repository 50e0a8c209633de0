/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * windows.h - read a file here and there, in large pieces that are kept.
 *
 * The tables of Slurm's plugin are made of pieces of a few hundred bytes, with
 * their index in between: a system call for each would cost more than all
 * else.  Eight stretches are in memory, of 32 KB, or of 256 KB where a reader
 * goes on from one; the one that was not used for the longest time makes room.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_WINDOWS_H
#define JOULE_STORE_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

/* The most that can be looked at in one piece. */
#define JOULE_WINDOW_MAX ((size_t)128 << 10)

struct joule_windows;

/* Of the file [fd] of [size] bytes, which is borrowed.  NULL: ENOMEM. */
struct joule_windows *joule_windows_create(int fd, uint64_t size);
void joule_windows_destroy(struct joule_windows *w);

/* The size given above. */
uint64_t joule_windows_size(const struct joule_windows *w);

/* [size] bytes at [at], up to JOULE_WINDOW_MAX of them, good until the next
 * call but seven.  NULL with EINVAL (beyond the end), ENOMEM, or errno of
 * pread (ENODATA: the file has become shorter). */
const unsigned char *joule_windows_look(struct joule_windows *w, uint64_t at,
                                        size_t size);

/* The same of any size, to [buf].  0, or -1 with errno. */
int joule_windows_read(struct joule_windows *w, uint64_t at, size_t size,
                       void *buf);

#endif
