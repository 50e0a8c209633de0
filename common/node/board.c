/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/process.h"
#include "common/base/words.h"
#include "common/node/node_dir.h"

#define BOARD_MAGIC   UINT64_C(0x31306472616f624a) /* "Jboard01" */
#define BOARD_VERSION 7

#define ANOTHER_WRITER "another slurmd writes this node's board"

#define SNAPSHOT_WORDS (sizeof(struct joule_snapshot) / sizeof(uint64_t))
#define FIXED_WORDS                                                            \
    (offsetof(struct joule_snapshot, total.counter) / sizeof(uint64_t))
/* Of counters and integrators whichever takes more: a few words too many of
 * the other are copied. */
#define DOMAIN_WORDS                                                           \
    ((sizeof(struct joule_integrator) > sizeof(struct joule_counter)           \
          ? sizeof(struct joule_integrator)                                    \
          : sizeof(struct joule_counter)) /                                    \
     sizeof(uint64_t))

/* Up to the counters, of which as many are copied as there are. */
#define FUSED_WORDS (sizeof(struct joule_fused_state) / sizeof(uint64_t))
#define FUSED_FIXED_WORDS                                                      \
    (offsetof(struct joule_fused_state, rapl.counter) / sizeof(uint64_t))
#define COUNTER_WORDS (sizeof(struct joule_counter) / sizeof(uint64_t))

_Static_assert(sizeof(struct joule_fused_state) % sizeof(uint64_t) == 0 &&
                   offsetof(struct joule_fused_state, rapl.counter) %
                           sizeof(uint64_t) ==
                       0 &&
                   sizeof(struct joule_fused_state) ==
                       sizeof(uint64_t) * FUSED_WORDS,
               "so is the state of a source of energy");

_Static_assert(
    sizeof(struct joule_snapshot) % sizeof(uint64_t) == 0 &&
        sizeof(struct joule_counter) % sizeof(uint64_t) == 0 &&
        sizeof(struct joule_integrator) % sizeof(uint64_t) == 0 &&
        FIXED_WORDS + JOULE_DOMAINS_MAX * DOMAIN_WORDS == SNAPSHOT_WORDS &&
        offsetof(struct joule_snapshot, total.counter) % sizeof(uint64_t) == 0,
    "snapshots are copied in 64-bit words");

/* Words are atomic so that a copy which the writer overtakes is a stale copy,
 * not a data race; the generation then tells. */
struct page {
    uint64_t magic;
    uint32_t version;
    uint32_t size;
    char boot_id[JOULE_BOOT_ID_MAX];
    _Atomic uint64_t writer;     /* process.h; 0: there is none */
    _Atomic uint64_t generation; /* 0: nothing is published */
    _Atomic uint64_t slot[2][SNAPSHOT_WORDS];
    /* With the slot of the same number; the first word says whether there is
     * any. */
    _Atomic uint64_t has_fused[2];
    _Atomic uint64_t fused[2][FUSED_WORDS];
};

/* In the memory page behind struct page, so that readers can have it alone
 * writable. */
struct edges {
    _Atomic uint64_t next;
    _Atomic int64_t ns[JOULE_BOARD_EDGES];
};

struct joule_board {
    struct page *page;
    struct edges *edges; /* NULL: a reader may not write */
    uint64_t number;     /* the writer's, as in the page; 0: a reader */
    pid_t pid;           /* of the process that has them mapped */
};

/* Where the edges begin: the next page of memory, as large as this kernel has
 * them (the file is of this boot). */
static size_t edges_offset(void)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);

    return (sizeof(struct page) + page_size - 1) / page_size * page_size;
}

static size_t file_size(void)
{
    return edges_offset() + sizeof(struct edges);
}

static bool page_is_ours(const struct page *page,
                         const char boot_id[JOULE_BOOT_ID_MAX])
{
    return page->magic == BOARD_MAGIC && page->version == BOARD_VERSION &&
           page->size == sizeof(*page) &&
           memcmp(page->boot_id, boot_id, JOULE_BOOT_ID_MAX) == 0;
}

/* Read, not mapped: a fault on a hole of the file needs a block, and without
 * one it is a SIGBUS. */
static bool file_is_ours(int fd, const char boot_id[JOULE_BOOT_ID_MAX])
{
    struct page head;
    size_t length = offsetof(struct page, writer);
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size == (off_t)file_size() &&
           pread(fd, &head, length, 0) == (ssize_t)length &&
           page_is_ours(&head, boot_id);
}

/* What a reader must not write it has not mapped writable.  A child of fork,
 * which may come to be a user's, has nothing mapped. */
static struct joule_board *board_map(int fd, int prot, bool has_edges,
                                     struct joule_error *err)
{
    struct joule_board *board = calloc(1, sizeof(*board));
    void *at;

    if (!board) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    board->pid = getpid();
    at = mmap(NULL, sizeof(struct page), prot, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        goto fail;
    madvise(at, sizeof(struct page), MADV_DONTFORK);
    board->page = at;
    if (!has_edges)
        return board;
    at = mmap(NULL, sizeof(struct edges), PROT_READ | PROT_WRITE, MAP_SHARED,
              fd, (off_t)edges_offset());
    if (at == MAP_FAILED)
        goto fail;
    madvise(at, sizeof(struct edges), MADV_DONTFORK);
    board->edges = at;
    return board;
fail:
    joule_error_set(err, errno, "cannot map the board: %s", strerror(errno));
    joule_board_destroy(board);
    return NULL;
}

/* Blocks are allocated here: a full /run must be a sentence now and not a
 * SIGBUS in slurmd later. */
static int size_file(int fd, struct joule_error *err)
{
    int rc;

    if (ftruncate(fd, (off_t)file_size()) < 0)
        return joule_error_set(err, errno, "cannot size the board: %s",
                               strerror(errno));
    rc = posix_fallocate(fd, 0, (off_t)file_size());
    if (rc == 0)
        return 0;
    if (ftruncate(fd, 0) < 0)
        rc = errno;
    return joule_error_set(err, rc, "no room for the board in /run: %s",
                           strerror(rc));
}

/* true: "board" still names the file that was locked; whoever had the lock
 * before may have put a new one in its place. */
static bool is_current(int dir_fd, int fd)
{
    struct stat mine, named;

    return fstat(fd, &mine) == 0 &&
           fstatat(dir_fd, "board", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* A child that has inherited the file does not keep the lock. */
static void unlock(int fd)
{
    int saved = errno;

    if (fd >= 0)
        flock(fd, LOCK_UN);
    joule_close(fd);
    errno = saved;
}

/*
 * The board's file, locked.  One of another boot or version is not cut short
 * but replaced: a slurmstepd of the version before an upgrade may have it
 * mapped, and would die of SIGBUS.
 */
static int lock_file(int dir_fd, const char *node,
                     const char boot_id[JOULE_BOOT_ID_MAX], bool *ret_fresh,
                     struct joule_error *err)
{
    struct stat st;
    int fd, tries;

    for (tries = 0; tries < 8; tries++) {
        fd = joule_nodedir_file(dir_fd, node, "board", O_RDWR | O_CREAT, err);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            joule_error_set(err, errno,
                            errno == EWOULDBLOCK ? ANOTHER_WRITER
                                                 : "cannot lock the board");
            goto fail;
        }
        if (is_current(dir_fd, fd)) {
            *ret_fresh = !file_is_ours(fd, boot_id);
            if (!*ret_fresh)
                return fd;
            if (fstat(fd, &st) == 0 && st.st_size == 0) {
                if (size_file(fd, err) == 0)
                    return fd;
                goto fail;
            }
            if (unlinkat(dir_fd, "board", 0) < 0) {
                joule_error_set(err, errno, "cannot replace the board: %s",
                                strerror(errno));
                goto fail;
            }
        }
        unlock(fd);
    }
    return joule_error_set(err, EWOULDBLOCK, ANOTHER_WRITER);
fail:
    unlock(fd);
    return -1;
}

/*
 * With the file's lock.  The lock is for this moment only: a child of fork has
 * it, too, and one that hangs before its exec (slurmd opens the file of an
 * sbcast in such a child, perhaps on a dead NFS) would keep the next slurmd
 * out.
 */
static int take_over(struct joule_board *board, int root_fd,
                     struct joule_error *err)
{
    uint64_t start = 0, before = atomic_load(&board->page->writer);

    if (!joule_process_is_dead(root_fd, before))
        return joule_error_set(err, EWOULDBLOCK, ANOTHER_WRITER);
    /* Without proc there is no writer but this one. */
    joule_process_start(root_fd, getpid(), &start);
    board->number = joule_process_number(getpid(), start);
    atomic_store(&board->page->writer, board->number);
    return 0;
}

struct joule_board *joule_board_create(int root_fd, const char *node,
                                       struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_board *board = NULL;
    bool fresh = false;
    int dir_fd, fd;

    dir_fd = joule_nodedir_open(root_fd, node, true, boot_id, err);
    if (dir_fd < 0)
        return NULL;
    fd = lock_file(dir_fd, node, boot_id, &fresh, err);
    if (fd < 0)
        goto out;
    board = board_map(fd, PROT_READ | PROT_WRITE, true, err);
    if (!board)
        goto out;
    if (fresh) {
        struct page *page = board->page;

        memcpy(page->boot_id, boot_id, JOULE_BOOT_ID_MAX);
        page->version = BOARD_VERSION;
        page->size = sizeof(*page);
        page->magic = BOARD_MAGIC;
    }
    if (take_over(board, root_fd, err) < 0) {
        joule_board_destroy(board);
        board = NULL;
    }
out:
    unlock(fd);
    joule_close(dir_fd);
    return board;
}

struct joule_board *joule_board_open(int root_fd, const char *node,
                                     struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_board *board = NULL;
    bool has_edges;
    int dir_fd, fd;

    dir_fd = joule_nodedir_open(root_fd, node, false, boot_id, err);
    if (dir_fd < 0)
        return NULL;
    fd = joule_nodedir_reader(dir_fd, node, "board", &has_edges, err);
    if (fd < 0)
        goto out;
    if (file_is_ours(fd, boot_id))
        board = board_map(fd, PROT_READ, has_edges, err);
    else
        joule_error_set(err, ESTALE,
                        "the board of node %s is of another boot or version",
                        node);
out:
    joule_close(fd);
    joule_close(dir_fd);
    return board;
}

void joule_board_destroy(struct joule_board *board)
{
    int saved = errno;

    if (!board)
        return;
    /* In a child, something else may be there. */
    if (board->number && board->pid == getpid())
        atomic_store(&board->page->writer, 0);
    if (board->page && board->pid == getpid())
        munmap(board->page, sizeof(struct page));
    if (board->edges && board->pid == getpid())
        munmap(board->edges, sizeof(struct edges));
    free(board);
    errno = saved;
}

void joule_board_publish_fused(struct joule_board *board,
                               const struct joule_snapshot *snapshot,
                               const struct joule_fused_state *state)
{
    struct page *page = board->page;
    uint64_t next =
        atomic_load_explicit(&page->generation, memory_order_relaxed) + 1;

    /* Readers that see a word of this slot must also see the generation
     * that made the slot free: it was released before. */
    atomic_thread_fence(memory_order_release);
    joule_words_store(page->slot[next & 1], snapshot,
                      FIXED_WORDS + snapshot->total.count * DOMAIN_WORDS);
    atomic_store_explicit(&page->has_fused[next & 1], state != NULL,
                          memory_order_relaxed);
    if (state)
        joule_words_store(page->fused[next & 1], state,
                          FUSED_FIXED_WORDS +
                              state->rapl.count * COUNTER_WORDS);
    atomic_store_explicit(&page->generation, next, memory_order_release);
}

void joule_board_publish(struct joule_board *board,
                         const struct joule_snapshot *snapshot)
{
    joule_board_publish_fused(board, snapshot, NULL);
}

int joule_board_read(const struct joule_board *board,
                     struct joule_snapshot *ret_snapshot)
{
    const struct page *page = board->page;
    int tries;

    /* A second try is needed only if the writer published during the copy,
     * which takes less than a microsecond; the shortest period is 10 ms. */
    for (tries = 0; tries < 8; tries++) {
        uint64_t generation =
            atomic_load_explicit(&page->generation, memory_order_acquire);
        const _Atomic uint64_t *slot = page->slot[generation & 1];
        uint32_t count;

        if (generation == 0) {
            errno = ENODATA;
            return -1;
        }
        joule_words_load(ret_snapshot, slot, FIXED_WORDS);
        count = ret_snapshot->total.count;
        if (count <= JOULE_DOMAINS_MAX)
            joule_words_load(ret_snapshot, slot,
                             FIXED_WORDS + count * DOMAIN_WORDS);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&page->generation, memory_order_relaxed) !=
            generation)
            continue;
        if (count <= JOULE_DOMAINS_MAX)
            return 0;
        break;
    }
    errno = EBADMSG;
    return -1;
}

int joule_board_read_fused(const struct joule_board *board,
                           struct joule_fused_state *ret)
{
    const struct page *page = board->page;
    int tries;

    for (tries = 0; tries < 8; tries++) {
        uint64_t generation =
            atomic_load_explicit(&page->generation, memory_order_acquire);
        const _Atomic uint64_t *fused = page->fused[generation & 1];
        bool has = generation != 0 &&
                   atomic_load_explicit(&page->has_fused[generation & 1],
                                        memory_order_relaxed) == 1;
        uint32_t count;

        memset(ret, 0, sizeof(*ret));
        if (has)
            joule_words_load(ret, fused, FUSED_FIXED_WORDS);
        count = ret->rapl.count;
        if (count <= JOULE_DOMAINS_MAX)
            joule_words_load(ret, fused,
                             FUSED_FIXED_WORDS + count * COUNTER_WORDS);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&page->generation, memory_order_relaxed) !=
            generation)
            continue;
        if (!has) {
            errno = ENODATA;
            return -1;
        }
        if (count <= JOULE_DOMAINS_MAX)
            return 0;
        break;
    }
    errno = EBADMSG;
    return -1;
}

void joule_board_edge(struct joule_board *board, int64_t ns)
{
    struct edges *e = board->edges;
    uint64_t i;

    if (!e)
        return;
    i = atomic_fetch_add_explicit(&e->next, 1, memory_order_relaxed);
    atomic_store_explicit(&e->ns[i % JOULE_BOARD_EDGES], ns,
                          memory_order_relaxed);
}

int64_t joule_board_last_edge(const struct joule_board *board, int64_t by_ns)
{
    const struct edges *e = board->edges;
    int64_t last_ns = 0;
    int i;

    if (!e)
        return 0;
    for (i = 0; i < JOULE_BOARD_EDGES; i++) {
        int64_t ns = atomic_load_explicit(&e->ns[i], memory_order_relaxed);

        if (ns > last_ns && ns <= by_ns)
            last_ns = ns;
    }
    return last_ns;
}
