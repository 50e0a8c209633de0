/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/process.h"
#include "common/node/node_dir.h"

#define LEDGER_MAGIC   UINT64_C(0x31306472676c644a) /* "Jdlgrd01" */
#define LEDGER_VERSION 8

#define ANOTHER_WRITER "another slurmd writes the ledger of this node"

_Static_assert(sizeof(struct joule_row) % sizeof(uint64_t) == 0 &&
                   sizeof(struct joule_ledger_part) % sizeof(uint64_t) == 0 &&
                   sizeof(struct joule_ledger_totals) % sizeof(uint64_t) == 0 &&
                   sizeof(struct ledger_head) % sizeof(uint64_t) == 0 &&
                   JOULE_LEDGER_PATH_MAX % sizeof(uint64_t) == 0,
               "everything is copied in 64-bit words");
_Static_assert(JOULE_LEDGER_SLOTS_MAX <= JOULE_JOBS_MAX,
               "each slot may be a job of its own");

static size_t slot_size(size_t words)
{
    return sizeof(struct ledger_slot) + 2 * words * sizeof(uint64_t);
}

static size_t length_of(size_t words, size_t slots)
{
    return sizeof(struct ledger_head) + slots * slot_size(words);
}

/* Read, not mapped: a fault on a hole of the file is a SIGBUS if there is no
 * block for it. */
static bool read_head(int fd, const char boot_id[JOULE_BOOT_ID_MAX],
                      struct ledger_head *head)
{
    size_t n = offsetof(struct ledger_head, totals);
    struct stat st;

    return pread(fd, head, n, 0) == (ssize_t)n && fstat(fd, &st) == 0 &&
           head->magic == LEDGER_MAGIC && head->version == LEDGER_VERSION &&
           head->size == sizeof(*head) && head->words >= 1 &&
           head->words <= JOULE_LEDGER_WORDS_MAX &&
           head->slot_size == slot_size(head->words) &&
           memcmp(head->boot_id, boot_id, JOULE_BOOT_ID_MAX) == 0 &&
           st.st_size >= (off_t)length_of(head->words, 0);
}

static struct joule_ledger *map_file(int fd, size_t words, bool writable,
                                     struct joule_error *err)
{
    struct joule_ledger *l = calloc(1, sizeof(*l));
    void *at;

    if (!l) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    l->length = length_of(words, JOULE_LEDGER_SLOTS_MAX);
    /* All that the file may come to: what is behind its end is not touched
     * until it has grown. */
    at = mmap(NULL, l->length, writable ? PROT_READ | PROT_WRITE : PROT_READ,
              MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        joule_error_set(err, errno, "cannot map the ledger: %s",
                        strerror(errno));
        free(l);
        return NULL;
    }
    /* A child, which may come to be a user's, has nothing mapped. */
    madvise(at, l->length, MADV_DONTFORK);
    l->pid = getpid();
    l->head = at;
    l->slots = (char *)at + sizeof(struct ledger_head);
    l->words = words;
    l->slot_size = slot_size(words);
    l->writable = writable;
    l->fd = fd;
    return l;
}

/* A new file, which has not its name yet. */
static int make_file(int dir_fd, size_t words,
                     const char boot_id[JOULE_BOOT_ID_MAX],
                     struct joule_error *err)
{
    struct ledger_head head = {
        .magic = LEDGER_MAGIC,
        .version = LEDGER_VERSION,
        .size = sizeof(head),
        .words = (uint32_t)words,
        .slot_size = (uint32_t)slot_size(words),
        .slots = JOULE_LEDGER_SEGMENT,
    };
    size_t n = offsetof(struct ledger_head, totals);
    int fd, rc;

    memcpy(head.boot_id, boot_id, JOULE_BOOT_ID_MAX);
    if (unlinkat(dir_fd, "ledger.new", 0) < 0 && errno != ENOENT)
        return joule_error_set(err, errno, "cannot remove ledger.new: %s",
                               strerror(errno));
    fd = openat(dir_fd, "ledger.new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                0600);
    if (fd < 0)
        return joule_error_set(err, errno, "cannot make the ledger: %s",
                               strerror(errno));
    rc = posix_fallocate(fd, 0, (off_t)length_of(words, JOULE_LEDGER_SEGMENT));
    errno = EIO; /* a short write sets none */
    if (rc == 0 && pwrite(fd, &head, n, 0) != (ssize_t)n)
        rc = errno;
    if (rc == 0)
        return fd;
    close(fd);
    unlinkat(dir_fd, "ledger.new", 0);
    return joule_error_set(err, rc, "no room for the ledger in /run: %s",
                           strerror(rc));
}

/* What a writer that was killed had prepared is not to be published by the
 * next one. */
static void drop_unpublished(struct joule_ledger *l)
{
    uint64_t generation = l->head->generation;
    size_t slots = joule_ledger_slots(l);

    for (size_t i = 0; i < slots; i++)
        for (int v = 0; v < 2; v++)
            if (ledger_slot(l, i)->version[v].generation > generation)
                ledger_slot(l, i)->version[v].generation = 0;
}

/*
 * The lock is for this moment only: a child of fork has it, too, and one that
 * hangs before its exec (slurmd opens the file of an sbcast in such a child,
 * perhaps on a dead NFS) would keep the next slurmd out.
 */
static int lock(int dir_fd, struct joule_error *err)
{
    if (flock(dir_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return joule_error_set(err, errno,
                           errno == EWOULDBLOCK ? ANOTHER_WRITER
                                                : "cannot lock the directory "
                                                  "of the ledger");
}

/* The file that is there, if it is of this boot and version; NULL without an
 * error: none is. */
static struct joule_ledger *map_old(int dir_fd, const char *node,
                                    const char boot_id[JOULE_BOOT_ID_MAX],
                                    struct joule_error *err)
{
    struct joule_ledger *l = NULL;
    struct ledger_head head;
    int fd = joule_nodedir_file(dir_fd, node, "ledger", O_RDWR, err);

    if (fd < 0 && errno == ENOENT)
        errno = 0;
    if (fd < 0)
        return NULL;
    errno = 0;
    if (read_head(fd, boot_id, &head))
        l = map_file(fd, head.words, true, err);
    if (!l)
        joule_close(fd);
    return l;
}

/* Another file for more CPUs: the node's total goes on in it.  Nobody has the
 * new one yet, and nobody writes the old one. */
static void copy_node(struct ledger_head *to, const struct ledger_head *from)
{
    uint64_t generation = from->generation;

    if (generation == 0)
        return;
    memcpy(to->node[1], from->node[generation & 1], sizeof(to->node[1]));
    memcpy(to->state[1], from->state[generation & 1], sizeof(to->state[1]));
    to->generation = 1;
}

/* Whole before it has its name: a writer that is killed here, or fails, leaves
 * the old one in its place. */
static struct joule_ledger *make_new(int dir_fd, size_t words,
                                     const char boot_id[JOULE_BOOT_ID_MAX],
                                     const struct joule_ledger *old,
                                     struct joule_error *err)
{
    struct joule_ledger *l;
    int saved, fd = make_file(dir_fd, words, boot_id, err);

    if (fd < 0)
        return NULL;
    l = map_file(fd, words, true, err);
    if (!l) {
        joule_close(fd);
        goto fail;
    }
    if (old)
        copy_node(l->head, old->head);
    if (renameat(dir_fd, "ledger.new", dir_fd, "ledger") == 0)
        return l;
    joule_error_set(err, errno, "cannot name the ledger: %s", strerror(errno));
    joule_ledger_destroy(l);
fail:
    saved = errno;
    unlinkat(dir_fd, "ledger.new", 0);
    errno = saved;
    return NULL;
}

struct joule_ledger *joule_ledger_create(int root_fd, const char *node,
                                         size_t words, struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_ledger *l = NULL, *old = NULL;
    uint64_t start = 0;
    int dir_fd;

    if (words == 0 || words > JOULE_LEDGER_WORDS_MAX) {
        joule_error_set(err, EINVAL, "a ledger for %zu CPUs cannot be",
                        words * 64);
        return NULL;
    }
    dir_fd = joule_nodedir_open(root_fd, node, true, boot_id, err);
    if (dir_fd < 0)
        return NULL;
    if (lock(dir_fd, err) < 0) {
        joule_close(dir_fd);
        return NULL;
    }
    old = map_old(dir_fd, node, boot_id, err);
    if (!old && errno)
        goto out;
    if (old && !joule_process_is_dead(root_fd, old->head->writer)) {
        joule_error_set(err, EWOULDBLOCK, ANOTHER_WRITER);
        goto out;
    }
    if (old && old->words >= words) {
        l = old;
        old = NULL;
    } else {
        l = make_new(dir_fd, words, boot_id, old, err);
    }
    if (l) {
        drop_unpublished(l);
        /* Without proc there is no writer but this one. */
        joule_process_start(root_fd, getpid(), &start);
        l->number = joule_process_number(getpid(), start);
        atomic_store(&l->head->writer, l->number);
    }
out:
    joule_ledger_destroy(old);
    flock(dir_fd, LOCK_UN);
    joule_close(dir_fd);
    return l;
}

struct joule_ledger *joule_ledger_open(int root_fd, const char *node,
                                       struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_ledger *l = NULL;
    struct ledger_head head;
    bool writable;
    int dir_fd, fd, saved;

    dir_fd = joule_nodedir_open(root_fd, node, false, boot_id, err);
    if (dir_fd < 0)
        return NULL;
    fd = joule_nodedir_reader(dir_fd, node, "ledger", &writable, err);
    if (fd < 0)
        goto out;
    if (read_head(fd, boot_id, &head))
        l = map_file(fd, head.words, writable, err);
    else
        joule_error_set(err, ESTALE,
                        "the ledger of node %s is of another boot or version",
                        node);
out:
    saved = errno;
    if (!l && fd >= 0)
        close(fd);
    close(dir_fd);
    errno = saved;
    return l;
}

void joule_ledger_destroy(struct joule_ledger *l)
{
    int saved = errno;
    uint64_t number;

    if (!l)
        return;
    number = l->number;
    if (l->pid == getpid()) { /* in a child, something else may be there */
        /* Whoever writes it now has put another number there. */
        if (number)
            atomic_compare_exchange_strong(&l->head->writer, &number, 0);
        munmap(l->head, l->length);
    }
    close(l->fd);
    free(l);
    errno = saved;
}

size_t joule_ledger_words(const struct joule_ledger *l)
{
    return l->words;
}

/* The number in the file is not believed: behind its end is a SIGBUS. */
size_t joule_ledger_slots(struct joule_ledger *l)
{
    size_t slots = atomic_load_explicit(&l->head->slots, memory_order_acquire);
    struct stat st;

    if (slots > JOULE_LEDGER_SLOTS_MAX)
        slots = JOULE_LEDGER_SLOTS_MAX;
    if (slots > l->known && fstat(l->fd, &st) == 0) {
        size_t there = ((size_t)st.st_size - sizeof(*l->head)) / l->slot_size;

        l->known = slots < there ? slots : there;
    }
    return l->known;
}

int joule_ledger_grow(struct joule_ledger *l, size_t count)
{
    uint32_t slots = atomic_load(&l->head->slots);
    int rc;

    if (count > JOULE_LEDGER_SLOTS_MAX) {
        errno = ENOSPC;
        return -1;
    }
    rc = posix_fallocate(l->fd, 0, (off_t)length_of(l->words, count));
    if (rc) {
        errno = rc;
        return -1;
    }
    /* Somebody else may have been here as well. */
    while (slots < count && !atomic_compare_exchange_weak(
                                &l->head->slots, &slots, (uint32_t)count))
        continue;
    return 0;
}
