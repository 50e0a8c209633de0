/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image.h - a file that is changed in memory, and on disk by commits alone.
 *
 * Whoever formats the file writes into the image; nothing reaches the
 * disk.  A commit first writes what nothing on disk refers to yet, waits for
 * it, and then what refers to it, kind by kind, outermost last.  So at every
 * moment, and after a crash at any of them, the file on disk is one that a
 * reader accepts, with the rows of this commit or of the one before.  A commit
 * that fails loses nothing: the next one tries again.
 *
 * Structures of one page or less never lie across the border of two pages, so
 * that each is written whole or not at all when the process is killed.
 *
 * Belongs to one thread at a time.  No function but commit and rescue writes
 * to the disk.
 */
#ifndef JOULE_STORE_IMAGE_H
#define JOULE_STORE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct joule_image;

/* In the order in which a commit changes what is already on disk.  Data is
 * always written first: it goes to new places, or behind the rows that are
 * there. */
enum joule_image_kind {
    JOULE_IMAGE_DATA,
    JOULE_IMAGE_SUPER,  /* superblock: only its end of file ever changes */
    JOULE_IMAGE_NAME,   /* heaps of names */
    JOULE_IMAGE_INDEX,  /* B-trees: outer levels first, then what they hold */
    JOULE_IMAGE_HEADER, /* object headers: the number of rows */
};

#define JOULE_IMAGE_NOWHERE UINT64_MAX

/* Of an empty file; [fd] is borrowed.  [compact]: structures are not kept
 * from page borders, for a file that nobody sees before it is whole.  NULL
 * with ENOMEM. */
struct joule_image *joule_image_create(int fd, bool compact);
void joule_image_destroy(struct joule_image *image);

/*
 * A place for size bytes, a multiple of 8; it stays unused on disk until the
 * next commit.  Small headers that are made between two commits share pages.
 */
uint64_t joule_image_alloc(struct joule_image *image,
                           enum joule_image_kind kind, uint64_t size);

/* Data at this place is no longer referred to after the next commit; some
 * commits later the place is used again for data of the same size. */
void joule_image_release(struct joule_image *image, uint64_t at, uint64_t size);

/*
 * Data is put above [at] from now on, wherever places are free.  Who copies a
 * file reads it from its beginning: data that lies behind what tells its
 * extent is never older than that.
 */
void joule_image_set_floor(struct joule_image *image, uint64_t at);

/* The end of all places. */
uint64_t joule_image_used(const struct joule_image *image);

/* The end of file that readers are to be told: well behind that. */
uint64_t joule_image_end(const struct joule_image *image);

/* 0, or -1 with errno (pread; EIO for what was never written; ENOMEM). */
int joule_image_read(struct joule_image *image, uint64_t at, void *buf,
                     size_t size);
int joule_image_write(struct joule_image *image, enum joule_image_kind kind,
                      uint64_t at, const void *buf, size_t size);

/*
 * Bring everything to the file.  Whoever opens it then sees all of it, also if
 * this process is killed; that much is on the disk itself after a sync or the
 * next commit, and until then all of this commit or of the one before.  -1 with
 * errno of pwrite, ftruncate or fdatasync; the image is as before and the file
 * holds the old rows or the new.
 */
int joule_image_commit(struct joule_image *image);
int joule_image_sync(struct joule_image *image);

/*
 * For a disk that is full: after a commit that failed, what is written to
 * object headers from the mark on goes to disk alone, in its place.  It needs
 * no room, and must mean something without the rest.  -1 with errno of pwrite
 * or fdatasync.
 */
void joule_image_mark(struct joule_image *image);
int joule_image_rescue(struct joule_image *image);

/* Bytes that lie unused between places (for the decision to copy). */
uint64_t joule_image_unused(const struct joule_image *image);

#endif
