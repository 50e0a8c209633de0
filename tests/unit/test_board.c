/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/node/board.h"
#include "tests/unit/fail.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define BOOT_ID "proc/sys/kernel/random/boot_id"
#define BOARD   "run/slurm-joule/n1/board"

static struct tree tree;
static struct joule_error err;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, BOOT_ID, "3c5e0f6a-0000-4000-8000-000000000001\n");
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* A snapshot of [count] counters in which every word follows from [k]. */
static void fill(struct joule_snapshot *s, uint64_t k, uint32_t count)
{
    memset(s, 0, sizeof(*s));
    s->samples = k;
    s->wall_ns = (int64_t)(k * 3);
    s->node_mw = k * 5;
    s->total.node_uj = k * 7;
    s->total.count = count;
    for (uint32_t i = 0; i < count; i++) {
        s->total.counter[i].raw = k + i;
        s->total.counter[i].ticks = k * 11 + i;
        s->total.counter[i].state = (uint32_t)k;
    }
}

static bool is_whole(const struct joule_snapshot *s)
{
    uint64_t k = s->samples;

    if (s->wall_ns != (int64_t)(k * 3) || s->node_mw != k * 5 ||
        s->total.node_uj != k * 7)
        return false;
    for (uint32_t i = 0; i < s->total.count; i++)
        if (s->total.counter[i].raw != k + i ||
            s->total.counter[i].ticks != k * 11 + i ||
            s->total.counter[i].state != (uint32_t)k)
            return false;
    return true;
}

static struct joule_board *must_create(void)
{
    struct joule_board *board = joule_board_create(tree.fd, "n1", &err);

    ck_assert_msg(board != NULL, "%s", err.text);
    return board;
}

static struct joule_board *must_open(void)
{
    struct joule_board *board = joule_board_open(tree.fd, "n1", &err);

    ck_assert_msg(board != NULL, "%s", err.text);
    return board;
}

static void must_refuse(struct joule_board *(*f)(int, const char *,
                                                 struct joule_error *),
                        const char *node, int errnum, const char *sentence)
{
    unsigned fds = tree_open_fds();

    memset(&err, 0, sizeof(err));
    errno = 0;
    ck_assert_ptr_null(f(tree.fd, node, &err));
    ck_assert_msg(errno == errnum, "%s: %s", strerror(errno), err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    errno = 0;
    ck_assert_ptr_null(f(tree.fd, node, NULL));
    ck_assert_int_eq(errno, errnum);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

static void refused_by_both(int errnum, const char *sentence)
{
    must_refuse(joule_board_create, "n1", errnum, sentence);
    must_refuse(joule_board_open, "n1", errnum, sentence);
}

static void make_board(uint64_t k)
{
    struct joule_snapshot s;
    struct joule_board *board = must_create();

    fill(&s, k, 4);
    joule_board_publish(board, &s);
    joule_board_destroy(board);
}

static bool is_root(const char *test)
{
    if (geteuid() == 0)
        return true;
    fprintf(stderr, "skip - board: %s # needs root\n", test);
    return false;
}

static const char *const bad_names[] = {
    "", ".", "..", "../n1", "a/b", "/", ".hidden",
};

START_TEST(bad_node_name)
{
    must_refuse(joule_board_create, bad_names[_i], EINVAL, "node name");
    must_refuse(joule_board_open, bad_names[_i], EINVAL, "node name");
}
END_TEST

START_TEST(long_node_name)
{
    char name[257];
    struct joule_board *board;

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    must_refuse(joule_board_create, name, EINVAL, "node name");
    name[255] = '\0';
    board = joule_board_create(tree.fd, name, &err);
    ck_assert_msg(board != NULL, "%s", err.text);
    joule_board_destroy(board);
}
END_TEST

START_TEST(no_boot_id)
{
    tree_remove(&tree, BOOT_ID);
    refused_by_both(ENOENT, "boot_id");
}
END_TEST

START_TEST(long_boot_id)
{
    tree_write(&tree, BOOT_ID,
               "3c5e0f6a-0000-4000-8000-000000000001-and-more\n");
    refused_by_both(EFBIG, "boot_id");
}
END_TEST

START_TEST(bad_root)
{
    struct joule_error e;

    ck_assert_ptr_null(joule_board_create(-1, "n1", &e));
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(no_board)
{
    must_refuse(joule_board_open, "n1", ENOENT, "run");
    joule_board_destroy(must_create());
    must_refuse(joule_board_open, "n2", ENOENT, "n2");
    tree_remove(&tree, BOARD);
    must_refuse(joule_board_open, "n1", ENOENT, "n1");
}
END_TEST

static const char *const dirs[] = {
    "run",
    "run/slurm-joule",
    "run/slurm-joule/n1",
};

START_TEST(symlinked_dir)
{
    char away[64];

    make_board(1);
    snprintf(away, sizeof(away), "away");
    ck_assert_int_eq(renameat(tree.fd, dirs[_i], tree.fd, away), 0);
    /* Absolute, so that it resolves from any depth. */
    char target[160];
    snprintf(target, sizeof(target), "%s/%s", tree.path, away);
    ck_assert_int_eq(symlinkat(target, tree.fd, dirs[_i]), 0);
    refused_by_both(EPERM, "cannot open directory");
}
END_TEST

START_TEST(world_writable_dir)
{
    make_board(1);
    ck_assert_int_eq(fchmodat(tree.fd, dirs[_i], 0777, 0), 0);
    refused_by_both(EPERM, "may be written by others");
    ck_assert_int_eq(fchmodat(tree.fd, dirs[_i], 0720, 0), 0);
    refused_by_both(EPERM, "may be written by others");
}
END_TEST

START_TEST(sticky_run)
{
    make_board(1);
    ck_assert_int_eq(fchmodat(tree.fd, "run", 01777, 0), 0);
    joule_board_destroy(must_open());
    joule_board_destroy(must_create());
}
END_TEST

START_TEST(file_for_dir)
{
    tree_write(&tree, dirs[_i], "");
    refused_by_both(EPERM, "cannot open directory");
}
END_TEST

START_TEST(foreign_dir)
{
    if (!is_root("foreign_dir"))
        return;
    make_board(1);
    ck_assert_int_eq(fchownat(tree.fd, dirs[_i], 65534, 0, 0), 0);
    refused_by_both(EPERM, "belongs to user 65534");
}
END_TEST

START_TEST(symlinked_board)
{
    make_board(1);
    ck_assert_int_eq(renameat(tree.fd, BOARD, tree.fd, "away"), 0);
    ck_assert_int_eq(symlinkat("../../../away", tree.fd, BOARD), 0);
    refused_by_both(EPERM, "cannot open the board");
}
END_TEST

START_TEST(hard_link)
{
    make_board(1);
    ck_assert_int_eq(linkat(tree.fd, BOARD, tree.fd, "other", 0), 0);
    refused_by_both(EPERM, "more than one name");
}
END_TEST

START_TEST(writable_board)
{
    make_board(1);
    ck_assert_int_eq(fchmodat(tree.fd, BOARD, 0662, 0), 0);
    refused_by_both(EPERM, "may be written by others");
}
END_TEST

START_TEST(foreign_board)
{
    if (!is_root("foreign_board"))
        return;
    make_board(1);
    ck_assert_int_eq(fchownat(tree.fd, BOARD, 65534, 0, 0), 0);
    refused_by_both(EPERM, "belongs to user 65534");
}
END_TEST

/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
START_TEST(board_is_fifo)
{
    make_board(1);
    tree_remove(&tree, BOARD);
    ck_assert_int_eq(mkfifoat(tree.fd, BOARD, 0600), 0);
    refused_by_both(EPERM, "not a regular file");
}
END_TEST

START_TEST(second_writer)
{
    struct joule_board *board;

    tree_process(&tree, (unsigned)getpid(), 5);
    board = must_create();

    must_refuse(joule_board_create, "n1", EWOULDBLOCK, "another slurmd");
    joule_board_destroy(must_open());
    joule_board_destroy(board);
    joule_board_destroy(must_create());
}
END_TEST

/* Another process has the number of the one that wrote the board. */
START_TEST(number_of_the_last_writer)
{
    struct joule_board *board;

    tree_process(&tree, (unsigned)getpid(), 5);
    board = must_create();
    must_refuse(joule_board_create, "n1", EWOULDBLOCK, "another slurmd");
    tree_process(&tree, (unsigned)getpid(), 6);
    joule_board_destroy(must_create());
    joule_board_destroy(board);
}
END_TEST

/* In a child: the board may be destroyed there, and that closes no file of its.
 */
static void child_without_lock(struct joule_board *board, int ready)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd < 64);
    joule_board_destroy(board);
    for (fd = 3; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            _exit(1);
    if (write(ready, "", 1) == 1)
        pause();
    _exit(1);
}

/* The writer ends while a child of it, forked and not yet another program,
 * hangs. */
START_TEST(child_of_the_last_writer)
{
    struct joule_board *board;
    int ready[2];
    char c;
    pid_t pid;

    tree_process(&tree, (unsigned)getpid(), 5);
    board = must_create();
    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0)
        child_without_lock(board, ready[1]);
    ck_assert_int_gt(pid, 0);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    must_refuse(joule_board_create, "n1", EWOULDBLOCK, "another slurmd");
    joule_board_destroy(board);
    joule_board_destroy(must_create());
    close(ready[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

/* 0: as wanted; else the line that was not. */
static int without_mapping(struct joule_board *writer,
                           struct joule_board *reader)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    /* The first member of the handle is the mapped page. */
    char *at = *(char **)(void *)writer;

    if (tree_is_mapped(&tree))
        return __LINE__ % 256;
    /* The child's own, where the board was. */
    if (mmap(at, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
        return __LINE__ % 256;
    joule_board_destroy(writer);
    joule_board_destroy(reader);
    return *at;
}

START_TEST(child_has_no_mapping)
{
    struct joule_board *writer = must_create(), *reader = must_open();
    int status;
    pid_t pid;

    ck_assert(tree_is_mapped(&tree));
    pid = fork();
    if (pid == 0)
        _exit(without_mapping(writer, reader));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    joule_board_destroy(reader);
    joule_board_destroy(writer);
    ck_assert(!tree_is_mapped(&tree));
}
END_TEST

START_TEST(another_node_is_another_board)
{
    struct joule_board *one = must_create();
    struct joule_board *two = joule_board_create(tree.fd, "n2", &err);

    ck_assert_ptr_nonnull(two);
    joule_board_destroy(one);
    joule_board_destroy(two);
}
END_TEST

/* In its own mount namespace, so that nothing is left behind. */
static int full_run(void)
{
    struct joule_error e = {""};
    struct joule_board *board;
    char path[80];

    snprintf(path, sizeof(path), "%s/run", tree.path);
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", path, "tmpfs", 0, "size=4k,mode=755") < 0)
        return 77;
    /* The old descriptor sees the old mounts. */
    close(tree.fd);
    tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (joule_board_create(tree.fd, "n1", &e) || errno != ENOSPC ||
        !strstr(e.text, "no room"))
        return 1;
    /* What is left must not kill a reader either. */
    if (joule_board_open(tree.fd, "n1", &e) || errno != ESTALE)
        return 2;
    if (mount("none", path, NULL, MS_REMOUNT, "size=64k") < 0)
        return 77;
    board = joule_board_create(tree.fd, "n1", &e);
    joule_board_destroy(board);
    return board ? 0 : 3;
}

START_TEST(no_room)
{
    pid_t pid;
    int status;

    if (!is_root("no_room"))
        return;
    tree_mkdir(&tree, "run");
    pid = fork();
    if (pid == 0)
        _exit(full_run());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        fprintf(stderr, "skip - board: no_room # may not mount\n");
        return;
    }
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(no_memory)
{
    fail_calloc = 1;
    ck_assert_ptr_null(joule_board_create(tree.fd, "n1", &err));
    ck_assert_int_eq(errno, ENOMEM);
    /* It is not written by anybody then. */
    make_board(1);
    fail_calloc = 1;
    ck_assert_ptr_null(joule_board_open(tree.fd, "n1", &err));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(nothing_published)
{
    struct joule_board *writer = must_create();
    struct joule_board *reader = must_open();
    struct joule_snapshot s;

    ck_assert_int_eq(joule_board_read(writer, &s), -1);
    ck_assert_int_eq(errno, ENODATA);
    ck_assert_int_eq(joule_board_read(reader, &s), -1);
    ck_assert_int_eq(errno, ENODATA);
    joule_board_destroy(reader);
    joule_board_destroy(writer);
}
END_TEST

/* Byte [offset] of the file is not what this version writes. */
static void spoil(off_t offset)
{
    int fd = openat(tree.fd, BOARD, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, offset), 1);
    byte++;
    ck_assert_int_eq(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

/* Magic, version, size, boot id. */
static const off_t heads[] = {0, 8, 12, 16};

START_TEST(other_head)
{
    struct joule_snapshot s;
    struct joule_board *board;

    make_board(5);
    spoil(heads[_i]);
    must_refuse(joule_board_open, "n1", ESTALE, "another boot or version");
    board = must_create();
    ck_assert_int_eq(joule_board_read(board, &s), -1);
    ck_assert_int_eq(errno, ENODATA);
    joule_board_destroy(board);
    joule_board_destroy(must_open());
}
END_TEST

START_TEST(other_boot)
{
    struct joule_snapshot s;
    struct joule_board *board;

    make_board(5);
    tree_write(&tree, BOOT_ID, "3c5e0f6a-0000-4000-8000-000000000002\n");
    must_refuse(joule_board_open, "n1", ESTALE, "another boot or version");
    board = must_create();
    ck_assert_int_eq(joule_board_read(board, &s), -1);
    joule_board_destroy(board);
}
END_TEST

START_TEST(other_size)
{
    static const off_t by[] = {-1, 1, 8};
    struct stat st;
    struct joule_board *board;

    make_board(5);
    ck_assert_int_eq(fstatat(tree.fd, BOARD, &st, 0), 0);
    tree_truncate(&tree, BOARD, _i < 3 ? st.st_size + by[_i] : 0);
    must_refuse(joule_board_open, "n1", ESTALE, "another boot or version");
    board = must_create();
    joule_board_destroy(board);
    joule_board_destroy(must_open());
}
END_TEST

/* The slurmstepd of before an upgrade has the old file mapped: cut short, it
 * would be a SIGBUS. */
START_TEST(old_reader_survives)
{
    struct joule_snapshot s;
    struct joule_board *reader, *writer;

    make_board(5);
    reader = must_open();
    tree_write(&tree, BOOT_ID, "3c5e0f6a-0000-4000-8000-000000000002\n");
    writer = must_create();
    fill(&s, 6, 4);
    joule_board_publish(writer, &s);
    ck_assert_int_eq(joule_board_read(reader, &s), 0);
    ck_assert_uint_eq(s.samples, 5);
    joule_board_destroy(reader);
    joule_board_destroy(writer);
}
END_TEST

START_TEST(senseless_count)
{
    struct joule_snapshot s;
    struct joule_board *board = must_create();
    off_t slot = 16 + 40 + 8 + 8 + sizeof(struct joule_snapshot);
    uint32_t huge = JOULE_DOMAINS_MAX + 1;
    int fd;

    fill(&s, 1, 4);
    joule_board_publish(board, &s);
    fd = openat(tree.fd, BOARD, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(
        pwrite(fd, &huge, sizeof(huge),
               slot + (off_t)offsetof(struct joule_snapshot, total.count)),
        sizeof(huge));
    close(fd);
    ck_assert_int_eq(joule_board_read(board, &s), -1);
    ck_assert_int_eq(errno, EBADMSG);
    joule_board_destroy(board);
}
END_TEST

START_TEST(destroy_null)
{
    errno = 123;
    joule_board_destroy(NULL);
    ck_assert_int_eq(errno, 123);
}
END_TEST

START_TEST(modes)
{
    struct stat st;

    umask(0);
    make_board(1);
    ck_assert_int_eq(fstatat(tree.fd, BOARD, &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(fstatat(tree.fd, "run/slurm-joule/n1", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0711);
    ck_assert_int_eq(fstatat(tree.fd, "run/slurm-joule", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0755);
}
END_TEST

/* Both slots, and sets of domains of changing size. */
START_TEST(publish_and_read)
{
    struct joule_snapshot s, got;
    struct joule_board *writer = must_create();
    struct joule_board *reader = must_open();

    for (uint64_t k = 1; k < 300; k++) {
        fill(&s, k, (uint32_t)(k % (JOULE_DOMAINS_MAX + 1)));
        joule_board_publish(writer, &s);
        memset(&got, 0, sizeof(got));
        ck_assert_int_eq(joule_board_read(reader, &got), 0);
        ck_assert_mem_eq(&got, &s, sizeof(s));
        ck_assert_int_eq(joule_board_read(writer, &got), 0);
        ck_assert_uint_eq(got.samples, k);
    }
    joule_board_destroy(reader);
    joule_board_destroy(writer);
}
END_TEST

START_TEST(continues)
{
    struct joule_snapshot s;
    struct joule_board *reader, *writer;

    make_board(41);
    reader = must_open();
    writer = must_create();
    ck_assert_int_eq(joule_board_read(writer, &s), 0);
    ck_assert_uint_eq(s.samples, 41);
    fill(&s, 42, 4);
    joule_board_publish(writer, &s);
    ck_assert_int_eq(joule_board_read(reader, &s), 0);
    ck_assert_uint_eq(s.samples, 42);
    joule_board_destroy(reader);
    joule_board_destroy(writer);
}
END_TEST

/* Publishes as fast as it can until it is killed. */
static void publish_for_ever(int ready_fd)
{
    struct joule_board *board = joule_board_create(tree.fd, "n1", NULL);
    struct joule_snapshot s;
    uint64_t k = 0;

    if (!board)
        _exit(1);
    if (joule_board_read(board, &s) == 0)
        k = s.samples;
    for (;;) {
        fill(&s, ++k, JOULE_DOMAINS_MAX);
        joule_board_publish(board, &s);
        if (ready_fd >= 0 && write(ready_fd, "", 1) == 1)
            ready_fd = -1;
    }
}

START_TEST(writer_killed_at_any_point)
{
    struct joule_board *reader = NULL;
    struct joule_snapshot s;
    uint64_t last = 0;
    char byte;

    srandom(7);
    for (int i = 0; i < 200; i++) {
        int fds[2], status;
        pid_t pid;

        ck_assert_int_eq(pipe(fds), 0);
        pid = fork();
        if (pid == 0)
            publish_for_ever(fds[1]);
        close(fds[1]);
        ck_assert_int_eq(read(fds[0], &byte, 1), 1);
        close(fds[0]);
        if (!reader)
            reader = must_open();
        for (long n = random() % 20; n > 0; n--) {
            /* A writer without any pause may overtake every try. */
            if (joule_board_read(reader, &s) == 0) {
                ck_assert(is_whole(&s));
                ck_assert_uint_ge(s.samples, last);
                last = s.samples;
            } else {
                ck_assert_int_eq(errno, EBADMSG);
            }
        }
        usleep((useconds_t)(random() % 500));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert_int_eq(joule_board_read(reader, &s), 0);
        ck_assert(is_whole(&s));
        ck_assert_uint_ge(s.samples, last);
        ck_assert_uint_gt(s.samples, (uint64_t)i);
        last = s.samples;
    }
    joule_board_destroy(reader);
}
END_TEST

struct crowd {
    struct joule_board *board;
    _Atomic bool stop;
    _Atomic unsigned torn, failed, back, reads;
};

static void *read_for_ever(void *arg)
{
    struct crowd *c = arg;
    struct joule_snapshot s;
    uint64_t last = 0;

    while (!c->stop) {
        if (joule_board_read(c->board, &s) < 0) {
            c->failed++;
            continue;
        }
        c->torn += !is_whole(&s);
        c->back += s.samples < last;
        c->reads++;
        last = s.samples;
    }
    return NULL;
}

/* A hundred times as fast as the shortest period. */
START_TEST(readers_and_a_writer)
{
    struct joule_board *writer = must_create();
    struct crowd c = {0};
    struct joule_snapshot s;
    pthread_t threads[3];

    c.board = must_open();
    fill(&s, 1, 20);
    joule_board_publish(writer, &s);
    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_for_ever, &c),
                         0);
    for (uint64_t k = 2; k < 3000; k++) {
        const struct timespec pause = {.tv_nsec = 100000};

        fill(&s, k, 20);
        joule_board_publish(writer, &s);
        nanosleep(&pause, NULL);
    }
    c.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(c.torn, 0);
    ck_assert_uint_eq(c.back, 0);
    ck_assert_uint_eq(c.failed, 0);
    ck_assert_uint_gt(c.reads, 100);
    joule_board_destroy(c.board);
    joule_board_destroy(writer);
}
END_TEST

/* A board of power has larger parts than one of counters. */
START_TEST(integrators)
{
    struct joule_snapshot s, got;
    struct joule_board *writer = must_create();
    struct joule_board *reader = must_open();

    memset(&s, 0, sizeof(s));
    s.power_faults[JOULE_POWER_STATUS_COUNT - 1] = 77;
    s.total.is_power = 1;
    s.total.count = JOULE_DOMAINS_MAX;
    for (uint32_t i = 0; i < JOULE_DOMAINS_MAX; i++) {
        s.total.integrator[i].power_w = i + 0.5;
        s.total.integrator[i].lost = i;
    }
    joule_board_publish(writer, &s);
    memset(&got, 0, sizeof(got));
    ck_assert_int_eq(joule_board_read(reader, &got), 0);
    ck_assert_mem_eq(&got, &s, sizeof(s));
    joule_board_destroy(reader);
    joule_board_destroy(writer);
}
END_TEST

START_TEST(edges)
{
    struct joule_board *writer = must_create();
    struct joule_board *one = must_open();
    struct joule_board *two = must_open();

    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX), 0);
    joule_board_edge(one, 100);
    joule_board_edge(two, 300);
    joule_board_edge(one, 200);
    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX), 300);
    ck_assert_int_eq(joule_board_last_edge(writer, 300), 300);
    ck_assert_int_eq(joule_board_last_edge(writer, 299), 200);
    ck_assert_int_eq(joule_board_last_edge(two, 150), 100);
    ck_assert_int_eq(joule_board_last_edge(writer, 99), 0);
    /* What makes no sense hides nothing, and is gone after a while. */
    joule_board_edge(two, INT64_MAX);
    joule_board_edge(two, INT64_MIN);
    joule_board_edge(two, -1);
    ck_assert_int_eq(joule_board_last_edge(writer, 1000), 300);
    for (int i = 1; i <= JOULE_BOARD_EDGES; i++)
        joule_board_edge(one, 1000 + i);
    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX),
                     1000 + JOULE_BOARD_EDGES);
    ck_assert_int_eq(joule_board_last_edge(writer, 1000), 0);
    joule_board_destroy(writer);
    writer = must_create();
    ck_assert_int_eq(joule_board_last_edge(writer, 1001), 1001);
    joule_board_destroy(one);
    joule_board_destroy(two);
    joule_board_destroy(writer);
}
END_TEST

/* A child that is not root: reads what it may read, declares nothing. */
static int reader_only(void)
{
    struct joule_board *board;
    struct joule_snapshot s;

    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 1;
    board = joule_board_open(tree.fd, "n1", &err);
    if (!board)
        return 2;
    joule_board_edge(board, 500);
    if (joule_board_last_edge(board, INT64_MAX) != 0)
        return 3;
    if (joule_board_read(board, &s) < 0 || s.samples != 5)
        return 4;
    joule_board_destroy(board);
    return 0;
}

START_TEST(edges_of_a_reader_who_may_not_write)
{
    struct joule_board *writer;
    pid_t pid;
    int status;

    if (!is_root("edges_of_a_reader_who_may_not_write"))
        return;
    make_board(5);
    ck_assert_int_eq(fchmodat(tree.fd, "run/slurm-joule/n1", 0755, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, BOARD, 0644, 0), 0);
    pid = fork();
    if (pid == 0)
        _exit(reader_only());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    writer = must_create();
    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX), 0);
    joule_board_destroy(writer);
}
END_TEST

/* 0: a store into the snapshot's part killed the child, as it must. */
static int overwrite(void)
{
    struct joule_board *board = joule_board_open(tree.fd, "n1", NULL);

    if (!board)
        return 1;
    /* The first member of the handle is the mapped page. */
    memset(*(void **)(void *)board, 0xFF, 64);
    return 2;
}

START_TEST(readers_cannot_write_the_totals)
{
    struct joule_snapshot s;
    struct joule_board *reader;
    pid_t pid;
    int status;

    make_board(5);
    pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(overwrite());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(!WIFEXITED(status) ||
              (WEXITSTATUS(status) != 1 && WEXITSTATUS(status) != 2));
    reader = must_open();
    ck_assert_int_eq(joule_board_read(reader, &s), 0);
    ck_assert_uint_eq(s.samples, 5);
    joule_board_destroy(reader);
}
END_TEST

struct declarer {
    struct joule_board *board;
    int64_t first_ns;
};

static void *declare(void *arg)
{
    struct declarer *d = arg;

    for (int64_t ns = d->first_ns; ns < d->first_ns + 20000; ns++)
        joule_board_edge(d->board, ns);
    return NULL;
}

START_TEST(edges_of_many)
{
    struct joule_board *writer = must_create();
    struct declarer d[3];
    pthread_t threads[3];
    int64_t last_ns;

    for (int i = 0; i < COUNT(d); i++) {
        d[i].board = must_open();
        d[i].first_ns = 1000000 * (i + 1);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, declare, &d[i]), 0);
    }
    for (int i = 0; i < 1000; i++) {
        last_ns = joule_board_last_edge(writer, 2500000);
        ck_assert(last_ns == 0 ||
                  (last_ns >= 1000000 && last_ns < 2000000 + 20000));
    }
    for (int i = 0; i < COUNT(d); i++) {
        pthread_join(threads[i], NULL);
        joule_board_destroy(d[i].board);
    }
    joule_board_edge(writer, 4000000);
    ck_assert_int_eq(joule_board_last_edge(writer, INT64_MAX), 4000000);
    joule_board_destroy(writer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("board");
    TCase *bad = tcase_create("refused");
    TCase *stale = tcase_create("other boards");
    TCase *good = tcase_create("boards");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_loop_test(bad, bad_node_name, 0, COUNT(bad_names));
    tcase_add_test(bad, long_node_name);
    tcase_add_test(bad, no_boot_id);
    tcase_add_test(bad, long_boot_id);
    tcase_add_test(bad, bad_root);
    tcase_add_test(bad, no_board);
    tcase_add_loop_test(bad, symlinked_dir, 0, COUNT(dirs));
    tcase_add_loop_test(bad, world_writable_dir, 0, COUNT(dirs));
    tcase_add_test(bad, sticky_run);
    tcase_add_loop_test(bad, file_for_dir, 0, COUNT(dirs));
    tcase_add_loop_test(bad, foreign_dir, 0, COUNT(dirs));
    tcase_add_test(bad, symlinked_board);
    tcase_add_test(bad, hard_link);
    tcase_add_test(bad, writable_board);
    tcase_add_test(bad, foreign_board);
    tcase_add_test(bad, board_is_fifo);
    tcase_add_test(bad, second_writer);
    tcase_add_test(bad, number_of_the_last_writer);
    tcase_add_test(bad, child_of_the_last_writer);
    tcase_add_test(bad, child_has_no_mapping);
    tcase_add_test(bad, another_node_is_another_board);
    tcase_add_test(bad, no_room);
    tcase_add_test(bad, no_memory);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(stale, setup, teardown);
    tcase_add_test(stale, nothing_published);
    tcase_add_loop_test(stale, other_head, 0, COUNT(heads));
    tcase_add_test(stale, other_boot);
    tcase_add_loop_test(stale, other_size, 0, 4);
    tcase_add_test(stale, old_reader_survives);
    tcase_add_test(stale, senseless_count);
    tcase_add_test(stale, destroy_null);
    suite_add_tcase(suite, stale);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_set_timeout(good, 120);
    tcase_add_test(good, modes);
    tcase_add_test(good, publish_and_read);
    tcase_add_test(good, continues);
    tcase_add_test(good, integrators);
    tcase_add_test(good, edges);
    tcase_add_test(good, edges_of_a_reader_who_may_not_write);
    tcase_add_test(good, readers_cannot_write_the_totals);
    tcase_add_test(good, edges_of_many);
    tcase_add_test(good, writer_killed_at_any_point);
    tcase_add_test(good, readers_and_a_writer);
    suite_add_tcase(suite, good);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
