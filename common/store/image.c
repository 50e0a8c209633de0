/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)

/* The end of file that the superblock tells is ahead of what is used, so that
 * it is on disk before anything refers to what lies behind the old one. */
#define AHEAD (UINT64_C(1024) * 1024)

/* Headers up to this size share pages: most of a commit is to them, and each
 * page is a request to the disk. */
#define SMALL 1024

/* A place that is no longer referred to is left alone for so many commits:
 * whoever copies the file at its leisure may have read what referred to it. */
#define REST 12

struct write {
    struct write *next;
    enum joule_image_kind kind;
    int rank;       /* within the kind: lower first */
    uint64_t stamp; /* when it was written last */
    uint64_t at;
    size_t size;
    unsigned char bytes[];
};

struct place {
    struct place *next;
    uint64_t at;
    uint64_t size;
    uint64_t commit; /* the number of the one that it was released for */
};

struct joule_image {
    int fd;
    bool compact;
    uint64_t used;      /* end of what is allocated */
    uint64_t told;      /* end that readers are told, >= used */
    uint64_t on_disk;   /* what lies before was there at the last commit */
    uint64_t file_size; /* of the file on disk */
    uint64_t skipped;   /* bytes lost at page borders */
    uint64_t shared;    /* next place in the page of small headers */
    uint64_t shared_end;
    uint64_t commits;
    uint64_t stamp;
    uint64_t floor;       /* data is put above this */
    struct write *writes; /* oldest first */
    struct write **tail;
    struct place *unused; /* no longer referred to */
};

struct joule_image *joule_image_create(int fd, bool compact)
{
    struct joule_image *image = calloc(1, sizeof(*image));

    if (!image)
        return NULL;
    image->fd = fd;
    image->compact = compact;
    image->tail = &image->writes;
    return image;
}

static void free_places(struct place *place)
{
    while (place) {
        struct place *next = place->next;

        free(place);
        place = next;
    }
}

static void free_writes(struct joule_image *image)
{
    while (image->writes) {
        struct write *next = image->writes->next;

        free(image->writes);
        image->writes = next;
    }
    image->tail = &image->writes;
}

void joule_image_destroy(struct joule_image *image)
{
    if (!image)
        return;
    free_writes(image);
    free_places(image->unused);
    free(image);
}

/* Only data is put where data was: of structures too little is ever freed. */
static bool reuse(struct joule_image *image, uint64_t size, uint64_t *ret_at)
{
    struct place **link, *place;

    for (link = &image->unused; (place = *link) != NULL; link = &place->next) {
        if (place->size != size || place->at < image->floor ||
            place->commit + REST > image->commits)
            continue;
        *ret_at = place->at;
        *link = place->next;
        free(place);
        return true;
    }
    return false;
}

static void set_end(struct joule_image *image, uint64_t end)
{
    image->used = end;
    if (image->compact)
        image->told = end;
    else if (image->used + AHEAD / 2 > image->told)
        image->told = (image->used / AHEAD + 2) * AHEAD;
}

static uint64_t next_page(struct joule_image *image)
{
    uint64_t at = (image->used + PAGE - 1) / PAGE * PAGE;

    image->skipped += at - image->used;
    return at;
}

/* No more headers are put there. */
static void leave_page(struct joule_image *image)
{
    image->skipped += image->shared_end - image->shared;
    image->shared = image->shared_end;
}

static uint64_t share_page(struct joule_image *image, uint64_t size)
{
    uint64_t at;

    if (image->shared_end - image->shared < size) {
        leave_page(image);
        image->shared = next_page(image);
        image->shared_end = image->shared + PAGE;
        set_end(image, image->shared_end);
    }
    at = image->shared;
    image->shared += size;
    return at;
}

uint64_t joule_image_alloc(struct joule_image *image,
                           enum joule_image_kind kind, uint64_t size)
{
    uint64_t at;

    size = (size + 7) / 8 * 8;
    if (kind == JOULE_IMAGE_DATA && reuse(image, size, &at))
        return at;
    if (!image->compact && kind == JOULE_IMAGE_HEADER && size <= SMALL)
        return share_page(image, size);
    at = image->used;
    if (!image->compact && kind != JOULE_IMAGE_DATA && size <= PAGE &&
        at % PAGE + size > PAGE)
        at = next_page(image);
    set_end(image, at + size);
    return at;
}

void joule_image_release(struct joule_image *image, uint64_t at, uint64_t size)
{
    struct place *place = malloc(sizeof(*place));

    if (!place)
        return; /* a hole stays in the file */
    place->at = at;
    place->size = (size + 7) / 8 * 8;
    place->commit = image->commits;
    place->next = image->unused;
    image->unused = place;
}

void joule_image_set_floor(struct joule_image *image, uint64_t at)
{
    image->floor = at;
}

uint64_t joule_image_used(const struct joule_image *image)
{
    return image->used;
}

uint64_t joule_image_end(const struct joule_image *image)
{
    return image->told;
}

static int read_disk(int fd, uint64_t at, unsigned char *buf, size_t size)
{
    while (size > 0) {
        ssize_t n = pread(fd, buf, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0) {
            memset(buf, 0, size);
            break;
        }
        buf += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

int joule_image_read(struct joule_image *image, uint64_t at, void *buf,
                     size_t size)
{
    const struct write *w;

    if (read_disk(image->fd, at, buf, size) < 0)
        return -1;
    for (w = image->writes; w; w = w->next) {
        uint64_t from = w->at > at ? w->at : at;
        uint64_t to = w->at + w->size < at + size ? w->at + w->size : at + size;

        if (from < to)
            memcpy((unsigned char *)buf + (from - at),
                   w->bytes + (from - w->at), to - from);
    }
    return 0;
}

/*
 * B-tree nodes begin with "TREE", a type and the level.  Outer nodes are
 * written first.  The nodes of names ("SNOD") are what group trees hold.
 */
static int rank_of(enum joule_image_kind kind, const unsigned char *bytes,
                   size_t size)
{
    if (kind == JOULE_IMAGE_INDEX && size > 6 && memcmp(bytes, "TREE", 4) == 0)
        return -(int)bytes[5] - 1;
    return 0;
}

/* The same place written again before a commit: only the last counts. */
static struct write *find_same(struct joule_image *image,
                               enum joule_image_kind kind, uint64_t at,
                               size_t size)
{
    struct write *w;

    if (kind == JOULE_IMAGE_DATA)
        return NULL;
    for (w = image->writes; w; w = w->next)
        if (w->at == at && w->size == size && w->kind == kind)
            return w;
    return NULL;
}

int joule_image_write(struct joule_image *image, enum joule_image_kind kind,
                      uint64_t at, const void *buf, size_t size)
{
    struct write *w = find_same(image, kind, at, size);

    if (!w) {
        w = malloc(sizeof(*w) + size);
        if (!w)
            return -1;
        w->next = NULL;
        w->kind = kind;
        w->at = at;
        w->size = size;
        *image->tail = w;
        image->tail = &w->next;
    }
    memcpy(w->bytes, buf, size);
    w->rank = rank_of(kind, w->bytes, size);
    w->stamp = image->stamp;
    return 0;
}

static int write_disk(int fd, const struct write *w)
{
    const unsigned char *from = w->bytes;
    uint64_t at = w->at;
    size_t left = w->size;

    while (left > 0) {
        ssize_t n = pwrite(fd, from, left, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        from += n;
        at += (uint64_t)n;
        left -= (size_t)n;
    }
    return 0;
}

/* Nothing on disk refers to it, or it is behind the rows that are told. */
static bool is_unseen(const struct joule_image *image, const struct write *w)
{
    if (w->kind == JOULE_IMAGE_SUPER)
        return false; /* a file without one is not a file yet */
    return w->kind == JOULE_IMAGE_DATA || w->at >= image->on_disk;
}

static int write_unseen(struct joule_image *image, bool *ret_any)
{
    const struct write *w;

    for (w = image->writes; w; w = w->next) {
        if (!is_unseen(image, w))
            continue;
        if (write_disk(image->fd, w) < 0)
            return -1;
        *ret_any = true;
    }
    return 0;
}

/* All of one kind and rank; the next rank of that kind in ret_next, if any. */
static int write_rank(struct joule_image *image, enum joule_image_kind kind,
                      int rank, bool *ret_any, int *ret_next)
{
    const struct write *w;
    bool more = false;

    for (w = image->writes; w; w = w->next) {
        if (w->kind != kind || is_unseen(image, w) || w->rank < rank)
            continue;
        if (w->rank > rank) {
            if (!more || w->rank < *ret_next)
                *ret_next = w->rank;
            more = true;
            continue;
        }
        if (write_disk(image->fd, w) < 0)
            return -1;
        *ret_any = true;
    }
    return more ? 1 : 0;
}

static bool has_kind(const struct joule_image *image,
                     enum joule_image_kind kind)
{
    const struct write *w;

    for (w = image->writes; w; w = w->next)
        if (w->kind == kind && !is_unseen(image, w))
            return true;
    return false;
}

/* Each kind and rank waits for the one before it; nothing waits for the last,
 * which is on disk with the next commit at the latest. */
static int write_kind(struct joule_image *image, enum joule_image_kind kind)
{
    int rank = -256, next = 0, more;

    do {
        bool any = false;

        more = write_rank(image, kind, rank, &any, &next);
        if (more < 0 ||
            (any && kind != JOULE_IMAGE_HEADER && fdatasync(image->fd) < 0))
            return -1;
        rank = next;
    } while (more);
    return 0;
}

static int write_seen(struct joule_image *image)
{
    int kind;

    for (kind = JOULE_IMAGE_SUPER; kind <= JOULE_IMAGE_HEADER; kind++)
        if (has_kind(image, (enum joule_image_kind)kind) &&
            write_kind(image, (enum joule_image_kind)kind) < 0)
            return -1;
    return 0;
}

int joule_image_commit(struct joule_image *image)
{
    bool any = false;

    if (!image->writes)
        return 0;
    /* Readers refuse a file that is shorter than its superblock says. */
    if (image->file_size < image->told) {
        if (ftruncate(image->fd, (off_t)image->told) < 0)
            return -1;
        image->file_size = image->told;
    }
    if (write_unseen(image, &any) < 0 || (any && fdatasync(image->fd) < 0) ||
        write_seen(image) < 0)
        return -1;
    free_writes(image);
    image->commits++;
    leave_page(image);
    image->on_disk = image->used;
    return 0;
}

int joule_image_sync(struct joule_image *image)
{
    return fdatasync(image->fd);
}

void joule_image_mark(struct joule_image *image)
{
    image->stamp++;
}

int joule_image_rescue(struct joule_image *image)
{
    const struct write *w;

    for (w = image->writes; w; w = w->next)
        if (w->kind == JOULE_IMAGE_HEADER && w->stamp == image->stamp &&
            !is_unseen(image, w) && write_disk(image->fd, w) < 0)
            return -1;
    return fdatasync(image->fd);
}

uint64_t joule_image_unused(const struct joule_image *image)
{
    uint64_t bytes = image->skipped;
    const struct place *place;

    for (place = image->unused; place; place = place->next)
        bytes += place->size;
    return bytes;
}
