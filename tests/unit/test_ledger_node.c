/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of a node, its one writer, and the node's total in it.  The
 * registrations and rows of steps: test_ledger.c; tickets: test_request.c.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/node/ledger_file.h"
#include "tests/unit/dice.h"
#include "tests/unit/fail.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define BOOT_ID "proc/sys/kernel/random/boot_id"
#define DIR     "run/slurm-joule/n1"
#define LEDGER  DIR "/ledger"
#define ROWS    8

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

/* -- what is published: all of it follows from one number --------------- */

static void fill(struct joule_snapshot *s, uint64_t k, uint64_t count)
{
    memset(s, 0, sizeof(*s));
    s->samples = k;
    s->wall_ns = (int64_t)(k * 3);
    s->total.mw = k * 5;
    s->total.node_uj = k * 7;
    s->total.count = count;
    for (uint64_t i = 0; i < count; i++) {
        s->total.reading[i].uj = k * 11 + i;
        s->total.reading[i].mono_ns = (int64_t)(k + i);
        s->total.reading[i].state = k;
    }
}

static bool is_whole(const struct joule_snapshot *s, uint64_t k)
{
    if (s->samples != k || s->wall_ns != (int64_t)(k * 3) ||
        s->total.mw != k * 5 || s->total.node_uj != k * 7)
        return false;
    for (uint64_t i = 0; i < s->total.count; i++)
        if (s->total.reading[i].uj != k * 11 + i ||
            s->total.reading[i].mono_ns != (int64_t)(k + i) ||
            s->total.reading[i].state != k)
            return false;
    return true;
}

static void fill_state(struct joule_sensor_state *s, uint64_t k,
                       uint64_t counters, uint64_t integrators)
{
    memset(s, 0, sizeof(*s));
    s->domain_key = k;
    s->counters = counters;
    s->integrators = integrators;
    s->fused.mono_ns = (int64_t)(k * 13);
    for (uint64_t i = 0; i < counters; i++) {
        s->counter[i].raw = k + i;
        s->counter[i].state = (uint32_t)k;
    }
    for (uint64_t i = 0; i < integrators; i++) {
        s->integrator[i].power_w = (double)(k + i);
        s->integrator[i].lost = (uint32_t)k;
    }
}

static bool is_whole_state(const struct joule_sensor_state *s, uint64_t k)
{
    if (s->domain_key != k || s->fused.mono_ns != (int64_t)(k * 13))
        return false;
    for (uint64_t i = 0; i < s->counters; i++)
        if (s->counter[i].raw != k + i || s->counter[i].state != (uint32_t)k)
            return false;
    for (uint64_t i = 0; i < s->integrators; i++)
        if ((uint64_t)s->integrator[i].power_w != k + i ||
            s->integrator[i].lost != (uint32_t)k)
            return false;
    return true;
}

static void stage_node(struct joule_ledger *l, uint64_t k, uint64_t count)
{
    struct joule_snapshot s;
    struct joule_sensor_state state;

    fill(&s, k, count);
    fill_state(&state, k, count, count);
    joule_ledger_stage_node(l, &s, &state);
}

static void stage_rows(struct joule_ledger *l, uint64_t k)
{
    for (unsigned i = 0; i < ROWS; i++) {
        struct joule_row row = {.owner = 1 + i, .uj = k, .job_uj = 3 * k};

        joule_ledger_stage(l, i, &row);
    }
}

static void publish_totals(struct joule_ledger *l, uint64_t k)
{
    struct joule_ledger_totals totals = {
        .mono_ns = (int64_t)k, .jobs_uj = 2 * k, .part_count = 2};

    totals.part[1].uj = 5 * k;
    joule_ledger_publish(l, &totals);
}

static void publish(struct joule_ledger *l, uint64_t k, uint64_t count)
{
    stage_rows(l, k);
    stage_node(l, k, count);
    publish_totals(l, k);
}

static void publish_node(struct joule_ledger *l, uint64_t k, uint64_t count)
{
    stage_node(l, k, count);
    joule_ledger_publish(l, NULL);
}

/* All that there is of one publication. */
struct view {
    uint64_t generation;
    struct joule_snapshot node;
    struct joule_sensor_state state;
    struct joule_ledger_totals totals;
    struct joule_row row[ROWS];
};

/* 0, or errno; EAGAIN: both are whole, but not of the same publication;
 * EBADMSG: a writer without any pause has overtaken every try. */
static int look(struct joule_ledger *l, struct view *v)
{
    size_t count = ROWS;

    v->generation = joule_ledger_generation(l);
    if (joule_ledger_read_node(l, &v->node, &v->state) < 0 ||
        joule_ledger_read(l, &v->totals, v->row, &count) < 0)
        return errno;
    return joule_ledger_generation(l) == v->generation ? 0 : EAGAIN;
}

/* The node and its state are those of [node], all else of [charged]. */
static bool is_of(const struct view *v, uint64_t node, uint64_t charged)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (v->row[i].owner != 1 + i || v->row[i].uj != charged ||
            v->row[i].job_uj != 3 * charged)
            return false;
    return is_whole(&v->node, node) && is_whole_state(&v->state, node) &&
           v->totals.mono_ns == (int64_t)charged &&
           v->totals.jobs_uj == 2 * charged &&
           v->totals.part[1].uj == 5 * charged;
}

static void must_be(struct joule_ledger *l, uint64_t node, uint64_t charged)
{
    static struct view v;

    ck_assert_int_eq(look(l, &v), 0);
    ck_assert(is_of(&v, node, charged));
}

static void must_be_node(struct joule_ledger *l, uint64_t k)
{
    struct joule_snapshot s;
    struct joule_sensor_state state;

    ck_assert_int_eq(joule_ledger_read_node(l, &s, &state), 0);
    ck_assert(is_whole(&s, k));
    ck_assert(is_whole_state(&state, k));
}

static void must_have_no_node(struct joule_ledger *l)
{
    struct joule_snapshot s;
    struct joule_sensor_state state;

    errno = 0;
    ck_assert_int_eq(joule_ledger_read_node(l, &s, NULL), -1);
    ck_assert_int_eq(errno, ENODATA);
    errno = 0;
    ck_assert_int_eq(joule_ledger_read_node(l, &s, &state), -1);
    ck_assert_int_eq(errno, ENODATA);
}

static void must_have_no_totals(struct joule_ledger *l)
{
    struct joule_ledger_totals totals;

    errno = 0;
    ck_assert_int_eq(joule_ledger_read(l, &totals, NULL, NULL), -1);
    ck_assert_int_eq(errno, ENODATA);
}

/* -- ledgers ------------------------------------------------------------ */

static struct joule_ledger *must_create_for(size_t words)
{
    struct joule_ledger *l = joule_ledger_create(tree.fd, "n1", words, &err);

    ck_assert_msg(l != NULL, "%s", err.text);
    return l;
}

static struct joule_ledger *must_create(void)
{
    return must_create_for(1);
}

static struct joule_ledger *must_open(void)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, "n1", &err);

    ck_assert_msg(l != NULL, "%s", err.text);
    return l;
}

static struct joule_ledger *create(int root_fd, const char *node,
                                   struct joule_error *e)
{
    return joule_ledger_create(root_fd, node, 1, e);
}

static void must_refuse(struct joule_ledger *(*f)(int, const char *,
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
    must_refuse(create, "n1", errnum, sentence);
    must_refuse(joule_ledger_open, "n1", errnum, sentence);
}

static void refuse_second_writer(void)
{
    must_refuse(create, "n1", EWOULDBLOCK, "another slurmd");
}

static void make_ledger(uint64_t k)
{
    struct joule_ledger *l = must_create();

    publish(l, k, 4);
    joule_ledger_destroy(l);
}

static bool is_there(const char *path)
{
    return faccessat(tree.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_root(const char *test)
{
    if (geteuid() == 0)
        return true;
    fprintf(stderr, "skip - ledger_node: %s # needs root\n", test);
    return false;
}

/* -- refused ------------------------------------------------------------ */

static const char *const bad_names[] = {
    "", ".", "..", "../n1", "a/b", "/", ".hidden",
};

START_TEST(bad_node_name)
{
    must_refuse(create, bad_names[_i], EINVAL, "node name");
    must_refuse(joule_ledger_open, bad_names[_i], EINVAL, "node name");
}
END_TEST

START_TEST(long_node_name)
{
    char name[257];
    struct joule_ledger *l;

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    must_refuse(create, name, EINVAL, "node name");
    name[255] = '\0';
    l = create(tree.fd, name, &err);
    ck_assert_msg(l != NULL, "%s", err.text);
    joule_ledger_destroy(l);
}
END_TEST

START_TEST(bad_words)
{
    static const size_t bad[] = {0, JOULE_LEDGER_WORDS_MAX + 1, SIZE_MAX};

    for (int i = 0; i < COUNT(bad); i++) {
        errno = 0;
        ck_assert_ptr_null(joule_ledger_create(tree.fd, "n1", bad[i], &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "CPUs cannot be"));
    }
    ck_assert(!is_there("run"));
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
    ck_assert_ptr_null(create(-1, "n1", &err));
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(no_ledger)
{
    must_refuse(joule_ledger_open, "n1", ENOENT, "run");
    joule_ledger_destroy(must_create());
    must_refuse(joule_ledger_open, "n2", ENOENT, "n2");
    tree_remove(&tree, LEDGER);
    must_refuse(joule_ledger_open, "n1", ENOENT, "n1");
}
END_TEST

static const char *const dirs[] = {"run", "run/slurm-joule", DIR};

START_TEST(symlinked_dir)
{
    char target[160];

    make_ledger(1);
    ck_assert_int_eq(renameat(tree.fd, dirs[_i], tree.fd, "away"), 0);
    /* Absolute, so that it resolves from any depth. */
    snprintf(target, sizeof(target), "%s/away", tree.path);
    ck_assert_int_eq(symlinkat(target, tree.fd, dirs[_i]), 0);
    refused_by_both(EPERM, "cannot open directory");
}
END_TEST

START_TEST(writable_dir)
{
    make_ledger(1);
    ck_assert_int_eq(fchmodat(tree.fd, dirs[_i], 0777, 0), 0);
    refused_by_both(EPERM, "may be written by others");
    ck_assert_int_eq(fchmodat(tree.fd, dirs[_i], 0720, 0), 0);
    refused_by_both(EPERM, "may be written by others");
}
END_TEST

START_TEST(sticky_run)
{
    make_ledger(1);
    ck_assert_int_eq(fchmodat(tree.fd, "run", 01777, 0), 0);
    joule_ledger_destroy(must_open());
    joule_ledger_destroy(must_create());
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
    make_ledger(1);
    ck_assert_int_eq(fchownat(tree.fd, dirs[_i], 65534, 0, 0), 0);
    refused_by_both(EPERM, "belongs to user 65534");
}
END_TEST

START_TEST(symlinked_ledger)
{
    make_ledger(1);
    ck_assert_int_eq(renameat(tree.fd, LEDGER, tree.fd, "away"), 0);
    ck_assert_int_eq(symlinkat("../../../away", tree.fd, LEDGER), 0);
    refused_by_both(EPERM, "cannot open the ledger");
}
END_TEST

START_TEST(second_name)
{
    make_ledger(1);
    ck_assert_int_eq(linkat(tree.fd, LEDGER, tree.fd, "other", 0), 0);
    refused_by_both(EPERM, "more than one name");
}
END_TEST

START_TEST(writable_ledger)
{
    make_ledger(1);
    ck_assert_int_eq(fchmodat(tree.fd, LEDGER, 0602, 0), 0);
    refused_by_both(EPERM, "may be written by others");
    ck_assert_int_eq(fchmodat(tree.fd, LEDGER, 0620, 0), 0);
    refused_by_both(EPERM, "may be written by others");
}
END_TEST

START_TEST(foreign_ledger)
{
    if (!is_root("foreign_ledger"))
        return;
    make_ledger(1);
    ck_assert_int_eq(fchownat(tree.fd, LEDGER, 65534, 0, 0), 0);
    refused_by_both(EPERM, "belongs to user 65534");
}
END_TEST

/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
START_TEST(ledger_is_fifo)
{
    make_ledger(1);
    tree_remove(&tree, LEDGER);
    ck_assert_int_eq(mkfifoat(tree.fd, LEDGER, 0600), 0);
    refused_by_both(EPERM, "not a regular file");
}
END_TEST

/* A writer that was killed has left half a file, which has not its name. */
START_TEST(half_a_ledger)
{
    make_ledger(1);
    tree_remove(&tree, LEDGER);
    tree_write(&tree, DIR "/ledger.new", "half");
    must_refuse(joule_ledger_open, "n1", ENOENT, "ledger");
    make_ledger(2);
    ck_assert(!is_there(DIR "/ledger.new"));
    tree_remove(&tree, LEDGER);
    tree_mkdir(&tree, DIR "/ledger.new");
    must_refuse(create, "n1", EISDIR, "cannot remove ledger.new");
}
END_TEST

/* In its own mount namespace, so that nothing is left behind. */
static int mount_run(const char *path)
{
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", path, "tmpfs", 0, "size=4k,mode=755") < 0)
        return -1;
    /* The old descriptor sees the old mounts. */
    close(tree.fd);
    tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static bool is_refused_for_room(size_t words)
{
    return !joule_ledger_create(tree.fd, "n1", words, &err) &&
           errno == ENOSPC && strstr(err.text, "no room") &&
           !is_there(DIR "/ledger.new");
}

/* 0: as wanted; 77: may not mount; else the line that was not. */
static int full_run(void)
{
    struct joule_snapshot s;
    struct joule_ledger *l;
    char path[80], size[32];
    struct stat st;

    snprintf(path, sizeof(path), "%s/run", tree.path);
    if (mount_run(path) < 0)
        return 77;
    if (!is_refused_for_room(1))
        return __LINE__ % 256;
    if (joule_ledger_open(tree.fd, "n1", &err) || errno != ENOENT)
        return __LINE__ % 256;
    if (mount("none", path, NULL, MS_REMOUNT, "size=4m") < 0)
        return 77;
    l = create(tree.fd, "n1", &err);
    if (!l)
        return __LINE__ % 256;
    publish(l, 5, 4);
    joule_ledger_destroy(l);
    /* For more CPUs: what there is stays. */
    if (fstatat(tree.fd, LEDGER, &st, 0) < 0)
        return __LINE__ % 256;
    snprintf(size, sizeof(size), "size=%lldk",
             (long long)st.st_size / 1024 + 32);
    if (mount("none", path, NULL, MS_REMOUNT, size) < 0)
        return 77;
    if (!is_refused_for_room(JOULE_LEDGER_WORDS_MAX))
        return __LINE__ % 256;
    l = joule_ledger_open(tree.fd, "n1", &err);
    if (!l || joule_ledger_read_node(l, &s, NULL) < 0 || !is_whole(&s, 5))
        return __LINE__ % 256;
    joule_ledger_destroy(l);
    return 0;
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
        fprintf(stderr, "skip - ledger_node: no_room # may not mount\n");
        return;
    }
    ck_assert_msg(status == 0, "line %d", WEXITSTATUS(status));
}
END_TEST

/* Each allocation on the way to a ledger for more CPUs: what there is stays. */
START_TEST(no_memory)
{
    unsigned fds = tree_open_fds();
    struct joule_ledger *l = NULL;
    int n;

    make_ledger(5);
    for (n = 1; !l; n++) {
        fail_calloc = n;
        errno = 0;
        l = joule_ledger_create(tree.fd, "n1", 2, &err);
        if (l)
            break;
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_str_eq(err.text, "out of memory");
        ck_assert_int_eq(fail_calloc, 0);
        ck_assert_uint_eq(tree_open_fds(), fds);
        ck_assert(!tree_is_mapped(&tree));
        ck_assert(!is_there(DIR "/ledger.new"));
        l = must_open();
        ck_assert_uint_eq(joule_ledger_words(l), 1);
        must_be(l, 5, 5);
        joule_ledger_destroy(l);
        l = NULL;
    }
    fail_calloc = 0;
    ck_assert_int_gt(n, 2);
    joule_ledger_destroy(l);
    fail_calloc = 1;
    ck_assert_ptr_null(joule_ledger_open(tree.fd, "n1", &err));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_str_eq(err.text, "out of memory");
    /* The first ledger of a boot. */
    tree_remove(&tree, LEDGER);
    fail_calloc = 1;
    ck_assert_ptr_null(create(tree.fd, "n1", &err));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert(!is_there(LEDGER) && !is_there(DIR "/ledger.new"));
    make_ledger(1);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(destroy_null)
{
    errno = 123;
    joule_ledger_destroy(NULL);
    ck_assert_int_eq(errno, 123);
}
END_TEST

/* -- one writer --------------------------------------------------------- */

/* A child that does [what] and then hangs until it is killed. */
static pid_t start(void (*what)(void *), void *arg)
{
    int ready[2];
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        what(arg);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_gt(pid, 0);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static void end(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void write_ledger(void *arg)
{
    struct joule_ledger *l;

    (void)arg;
    tree_process(&tree, (unsigned)getpid(), 5);
    l = create(tree.fd, "n1", NULL);
    if (!l)
        _exit(1);
    publish(l, 7, 4);
}

START_TEST(second_writer)
{
    pid_t pid = start(write_ledger, NULL);
    struct joule_ledger *l;

    refuse_second_writer();
    /* Nor for more CPUs. */
    ck_assert_ptr_null(joule_ledger_create(tree.fd, "n1", 2, &err));
    ck_assert_int_eq(errno, EWOULDBLOCK);
    l = must_open();
    must_be(l, 7, 7);
    joule_ledger_destroy(l);
    refuse_second_writer();
    /* It has no chance to say that it goes. */
    end(pid);
    tree_process(&tree, (unsigned)pid, 0);
    tree_process(&tree, (unsigned)getpid(), 5);
    l = must_create();
    must_be(l, 7, 7);
    refuse_second_writer();
    joule_ledger_destroy(l);
    joule_ledger_destroy(must_create());
}
END_TEST

/* Another process has the number of the one that wrote the ledger. */
START_TEST(number_of_the_last_writer)
{
    struct joule_ledger *old, *l;

    tree_process(&tree, (unsigned)getpid(), 5);
    old = must_create();
    refuse_second_writer();
    tree_process(&tree, (unsigned)getpid(), 6);
    l = must_create();
    /* The old one does not take the new one's number away. */
    joule_ledger_destroy(old);
    refuse_second_writer();
    joule_ledger_destroy(l);
}
END_TEST

static void let_go(void *arg)
{
    joule_ledger_destroy(arg);
}

static void keep(void *arg)
{
    (void)arg;
}

static void (*const children[])(void *) = {let_go, keep};

/* The writer ends while a child of it, forked and not yet another program,
 * hangs. */
START_TEST(child_of_the_last_writer)
{
    struct joule_ledger *l;
    pid_t pid;

    tree_process(&tree, (unsigned)getpid(), 5);
    l = must_create();
    pid = start(children[_i], l);
    refuse_second_writer();
    publish(l, 3, 4);
    must_be(l, 3, 3);
    joule_ledger_destroy(l);
    joule_ledger_destroy(must_create());
    end(pid);
}
END_TEST

/* 0: as wanted; else the line that was not. */
static int without_mapping(struct joule_ledger *writer,
                           struct joule_ledger *reader)
{
    char *at = (char *)writer->head;

    if (tree_is_mapped(&tree))
        return __LINE__ % 256;
    /* The child's own, where the ledger was. */
    if (mmap(at, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
        return __LINE__ % 256;
    joule_ledger_destroy(writer);
    joule_ledger_destroy(reader);
    return *at;
}

START_TEST(child_has_no_mapping)
{
    struct joule_ledger *writer = must_create(), *reader = must_open();
    int status;
    pid_t pid;

    ck_assert(tree_is_mapped(&tree));
    pid = fork();
    if (pid == 0)
        _exit(without_mapping(writer, reader));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
    ck_assert(!tree_is_mapped(&tree));
}
END_TEST

static void lock_directory(void *arg)
{
    int fd = openat(tree.fd, DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    if (flock(fd, LOCK_EX) < 0)
        _exit(1);
}

/* Two slurmd begin at the same time. */
START_TEST(locked_directory)
{
    pid_t pid;

    make_ledger(4);
    pid = start(lock_directory, NULL);
    refuse_second_writer();
    joule_ledger_destroy(must_open());
    end(pid);
    joule_ledger_destroy(must_create());
}
END_TEST

START_TEST(another_node_is_another_ledger)
{
    struct joule_ledger *one, *two;

    tree_process(&tree, (unsigned)getpid(), 5);
    one = must_create();
    two = joule_ledger_create(tree.fd, "n2", 1, &err);
    ck_assert_ptr_nonnull(two);
    publish(one, 1, 4);
    publish(two, 2, 4);
    must_be(one, 1, 1);
    must_be(two, 2, 2);
    joule_ledger_destroy(one);
    joule_ledger_destroy(two);
}
END_TEST

/* -- which file is continued -------------------------------------------- */

/* It is not opened, and is replaced: nothing of it goes on. */
static void must_be_replaced(void)
{
    struct joule_ledger *l;

    must_refuse(joule_ledger_open, "n1", ESTALE, "another boot or version");
    l = must_create();
    ck_assert_uint_eq(joule_ledger_generation(l), 0);
    must_have_no_node(l);
    must_have_no_totals(l);
    joule_ledger_destroy(l);
    joule_ledger_destroy(must_open());
}

static const off_t heads[] = {
    offsetof(struct ledger_head, magic),
    offsetof(struct ledger_head, version),
    offsetof(struct ledger_head, size),
    offsetof(struct ledger_head, words),
    offsetof(struct ledger_head, slot_size),
    offsetof(struct ledger_head, boot_id),
    offsetof(struct ledger_head, boot_id) + JOULE_BOOT_ID_MAX - 1,
};

START_TEST(other_head)
{
    make_ledger(5);
    tree_poke(&tree, LEDGER, heads[_i], "\xfd", 1);
    must_be_replaced();
}
END_TEST

START_TEST(other_boot)
{
    make_ledger(5);
    tree_write(&tree, BOOT_ID, "3c5e0f6a-0000-4000-8000-000000000002\n");
    must_be_replaced();
}
END_TEST

static const off_t lengths[] = {
    0,
    100,
    offsetof(struct ledger_head, totals),
    sizeof(struct ledger_head) - 1,
};

START_TEST(cut_short)
{
    make_ledger(5);
    tree_truncate(&tree, LEDGER, lengths[_i]);
    must_be_replaced();
}
END_TEST

/* The slurmstepd of before an upgrade has the old file mapped: cut short, it
 * would be a SIGBUS. */
START_TEST(old_reader_stays)
{
    struct joule_ledger *reader, *writer;

    make_ledger(5);
    reader = must_open();
    tree_write(&tree, BOOT_ID, "3c5e0f6a-0000-4000-8000-000000000002\n");
    writer = must_create();
    publish(writer, 6, 4);
    must_be(reader, 5, 5);
    must_be(writer, 6, 6);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

START_TEST(continues)
{
    struct joule_ledger *reader, *writer;

    make_ledger(41);
    reader = must_open();
    ck_assert_uint_eq(joule_ledger_generation(reader), 1);
    writer = must_create();
    ck_assert_uint_eq(joule_ledger_generation(writer), 1);
    must_be(writer, 41, 41);
    publish(writer, 42, 4);
    ck_assert_uint_eq(joule_ledger_generation(reader), 2);
    must_be(reader, 42, 42);
    /* What the last writer had staged is not published by the next one. */
    stage_node(writer, 43, 4);
    joule_ledger_destroy(writer);
    writer = must_create();
    must_be(writer, 42, 42);
    joule_ledger_publish(writer, NULL);
    ck_assert_uint_eq(joule_ledger_generation(reader), 3);
    must_be(reader, 42, 42);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

START_TEST(room_for_more_cpus)
{
    struct joule_ledger *l = must_create_for(4);

    publish(l, 5, 4);
    joule_ledger_destroy(l);
    for (size_t words = 1; words <= 4; words++) {
        l = must_create_for(words);
        ck_assert_uint_eq(joule_ledger_words(l), 4);
        must_be(l, 5, 5);
        joule_ledger_destroy(l);
    }
    l = must_open();
    ck_assert_uint_eq(joule_ledger_words(l), 4);
    joule_ledger_destroy(l);
}
END_TEST

/* Of either version.  The rows' bitmaps have no room: they do not go on. */
START_TEST(too_few_cpus)
{
    struct joule_ledger *old, *writer = must_create();
    uint64_t generations = 4 + (uint64_t)_i;

    for (uint64_t k = 1; k <= generations; k++)
        publish(writer, k, JOULE_DOMAINS_MAX);
    old = must_open();
    joule_ledger_destroy(writer);
    writer = must_create_for(JOULE_LEDGER_WORDS_MAX);
    ck_assert_uint_eq(joule_ledger_words(writer), JOULE_LEDGER_WORDS_MAX);
    ck_assert(!is_there(DIR "/ledger.new"));
    must_be_node(writer, generations);
    must_have_no_totals(writer);
    joule_ledger_publish(writer, NULL);
    must_be_node(writer, generations);
    publish(writer, 77, 4);
    must_be(writer, 77, 77);
    joule_ledger_destroy(writer);
    must_be(old, generations, generations);
    joule_ledger_destroy(old);
    old = must_open();
    must_be(old, 77, 77);
    joule_ledger_destroy(old);
}
END_TEST

START_TEST(too_few_cpus_and_no_node)
{
    struct joule_ledger *l;

    joule_ledger_destroy(must_create());
    l = must_create_for(2);
    ck_assert_uint_eq(joule_ledger_generation(l), 0);
    must_have_no_node(l);
    joule_ledger_destroy(l);
}
END_TEST

/* -- the node ----------------------------------------------------------- */

START_TEST(nothing_published)
{
    struct joule_ledger *writer = must_create();
    struct joule_ledger *reader = must_open();

    ck_assert_uint_eq(joule_ledger_generation(reader), 0);
    must_have_no_node(writer);
    must_have_no_node(reader);
    stage_node(writer, 1, 4);
    must_have_no_node(reader);
    /* Rows alone are a publication, too. */
    joule_ledger_destroy(writer);
    writer = must_create();
    publish_totals(writer, 1);
    ck_assert_uint_eq(joule_ledger_generation(reader), 1);
    must_have_no_node(reader);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

/* Both versions, and sets of domains of changing size. */
START_TEST(publish_and_read)
{
    struct joule_snapshot s, got;
    struct joule_sensor_state state, got_state;
    struct joule_ledger *writer = must_create();
    struct joule_ledger *reader = must_open();

    for (uint64_t k = 1; k < 300; k++) {
        fill(&s, k, k % (JOULE_DOMAINS_MAX + 1));
        fill_state(&state, k, k * 3 % (JOULE_DOMAINS_MAX + 1),
                   k * 7 % (JOULE_DOMAINS_MAX + 1));
        joule_ledger_stage_node(writer, &s, &state);
        joule_ledger_publish(writer, NULL);
        ck_assert_uint_eq(joule_ledger_generation(reader), k);
        memset(&got, 0, sizeof(got));
        memset(&got_state, 0, sizeof(got_state));
        ck_assert_int_eq(joule_ledger_read_node(reader, &got, &got_state), 0);
        ck_assert_mem_eq(&got, &s, sizeof(s));
        ck_assert_mem_eq(&got_state, &state, sizeof(state));
        memset(&got, 0, sizeof(got));
        ck_assert_int_eq(joule_ledger_read_node(reader, &got, NULL), 0);
        ck_assert_mem_eq(&got, &s, sizeof(s));
        must_be_node(writer, k);
    }
    must_have_no_totals(reader);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

/* Every word of as many domains as there can be: staged in either version, and
 * kept in either. */
START_TEST(every_word)
{
    static union {
        struct joule_snapshot s;
        uint64_t word[sizeof(struct joule_snapshot) / 8];
    } in, out;
    static union {
        struct joule_sensor_state s;
        uint64_t word[sizeof(struct joule_sensor_state) / 8];
    } state_in, state_out;
    struct joule_ledger *writer = must_create();
    struct joule_ledger *reader = must_open();

    for (int round = 0; round < 6; round++) {
        bool is_staged = round % 3 != 2;

        for (int i = 0; is_staged && i < COUNT(in.word); i++)
            in.word[i] =
                (uint64_t)(i + round + 1) * UINT64_C(0x9e3779b97f4a7c15);
        for (int i = 0; is_staged && i < COUNT(state_in.word); i++)
            state_in.word[i] =
                (uint64_t)(i + round + 9) * UINT64_C(0x9e3779b97f4a7c15);
        in.s.total.count = JOULE_DOMAINS_MAX;
        state_in.s.counters = state_in.s.integrators = JOULE_DOMAINS_MAX;
        if (is_staged)
            joule_ledger_stage_node(writer, &in.s, &state_in.s);
        joule_ledger_publish(writer, NULL);
        memset(&out, 0, sizeof(out));
        memset(&state_out, 0, sizeof(state_out));
        ck_assert_int_eq(joule_ledger_read_node(reader, &out.s, &state_out.s),
                         0);
        ck_assert_mem_eq(&out, &in, sizeof(in));
        ck_assert_mem_eq(&state_out, &state_in, sizeof(state_in));
    }
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

/* What a publication has not anew stays as it was. */
START_TEST(what_is_not_staged)
{
    struct joule_ledger *writer = must_create();
    struct joule_ledger *reader = must_open();

    publish(writer, 1, 4);
    must_be(reader, 1, 1);
    publish_node(writer, 2, 4);
    must_be(reader, 2, 1);
    publish_node(writer, 3, 4);
    must_be(reader, 3, 1);
    stage_rows(writer, 4);
    publish_totals(writer, 4);
    must_be(reader, 3, 4);
    stage_rows(writer, 5);
    publish_totals(writer, 5);
    must_be(reader, 3, 5);
    joule_ledger_publish(writer, NULL);
    must_be(reader, 3, 5);
    joule_ledger_publish(writer, NULL);
    must_be(reader, 3, 5);
    ck_assert_uint_eq(joule_ledger_generation(reader), 7);
    /* Staged is not published; what was staged last is. */
    stage_node(writer, 8, 4);
    stage_rows(writer, 8);
    must_be(reader, 3, 5);
    stage_node(writer, 9, 2);
    stage_rows(writer, 9);
    must_be(reader, 3, 5);
    ck_assert_uint_eq(joule_ledger_generation(reader), 7);
    publish_totals(writer, 9);
    must_be(reader, 9, 9);
    joule_ledger_destroy(reader);
    joule_ledger_destroy(writer);
}
END_TEST

/* Of domains, of the state's counters and of its integrators, in the version
 * that is published. */
START_TEST(senseless_count)
{
    const off_t at[] = {
        (off_t)(offsetof(struct ledger_head, node) +
                sizeof(struct joule_snapshot) +
                offsetof(struct joule_snapshot, total.count)),
        (off_t)(offsetof(struct ledger_head, state) +
                sizeof(struct joule_sensor_state) +
                offsetof(struct joule_sensor_state, counters)),
        (off_t)(offsetof(struct ledger_head, state) +
                sizeof(struct joule_sensor_state) +
                offsetof(struct joule_sensor_state, integrators)),
    };
    static const uint64_t huge[] = {JOULE_DOMAINS_MAX + 1, UINT64_MAX,
                                    UINT64_C(1) << 32};
    static const uint64_t most = JOULE_DOMAINS_MAX;
    struct joule_snapshot s;
    struct joule_sensor_state state;
    struct joule_ledger *l = must_create();
    bool is_state = _i > 0;

    publish(l, 1, 4);
    for (int i = 0; i < COUNT(huge); i++) {
        tree_poke(&tree, LEDGER, at[_i], &huge[i], sizeof(huge[i]));
        errno = 0;
        ck_assert_int_eq(joule_ledger_read_node(l, &s, NULL),
                         is_state ? 0 : -1);
        ck_assert_int_eq(errno, is_state ? 0 : EBADMSG);
        errno = 0;
        ck_assert_int_eq(joule_ledger_read_node(l, &s, &state), -1);
        ck_assert_int_eq(errno, EBADMSG);
    }
    tree_poke(&tree, LEDGER, at[_i], &most, sizeof(most));
    ck_assert_int_eq(joule_ledger_read_node(l, &s, &state), 0);
    joule_ledger_destroy(l);
}
END_TEST

/* A child that is not root.  0: as wanted; else the line that was not. */
static int reader_only(void)
{
    static const uint64_t cpus[1];
    struct joule_registration r = {.owner = 1};
    struct joule_snapshot s;
    struct joule_ledger *l;
    unsigned slot;

    if (setgid(65534) < 0 || setuid(65534) < 0)
        return __LINE__ % 256;
    l = joule_ledger_open(tree.fd, "n1", &err);
    if (!l)
        return __LINE__ % 256;
    if (joule_ledger_read_node(l, &s, NULL) < 0 || s.samples != 5)
        return __LINE__ % 256;
    errno = 0;
    if (joule_ledger_ask(l, 0) == 0 || errno != EACCES)
        return __LINE__ % 256;
    if (joule_ledger_register(l, tree.fd, &r, cpus, cpus, &slot, &err) == 0 ||
        errno != EACCES)
        return __LINE__ % 256;
    /* A process that is dead has left it. */
    if (joule_ledger_owner_of(l, 0) != 99 ||
        joule_ledger_sweep(l, tree.fd, 0) || joule_ledger_owner_of(l, 0) != 99)
        return __LINE__ % 256;
    joule_ledger_release(l, 0, 99);
    joule_ledger_end(l, 0, 99, 1);
    joule_ledger_report_cpu(l, 0, 99, 1);
    joule_ledger_add_surplus(l);
    joule_ledger_destroy(l);
    return 0;
}

START_TEST(reader_who_may_not_write)
{
    static const uint64_t cpus[1];
    struct joule_registration r = {.owner = 99};
    struct joule_ledger *l;
    unsigned slot;
    pid_t pid;
    int status;

    if (!is_root("reader_who_may_not_write"))
        return;
    make_ledger(5);
    l = must_open();
    ck_assert_int_eq(
        joule_ledger_register(l, tree.fd, &r, cpus, cpus, &slot, &err), 0);
    ck_assert_uint_eq(slot, 0);
    joule_ledger_destroy(l);
    ck_assert_int_eq(fchmodat(tree.fd, DIR, 0755, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, LEDGER, 0644, 0), 0);
    pid = fork();
    if (pid == 0)
        _exit(reader_only());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "status %x, line %d", (unsigned)status,
                  WEXITSTATUS(status));
}
END_TEST

/* -- publications are whole --------------------------------------------- */

/* What the child publishes, and what is there of it then. */
static const struct {
    bool has_node, has_rows;
} publications[] = {
    {true, true},
    {false, true},
    {true, false},
};

/* Stops before it stages and after it has published.  Its parent may kill it at
 * any instruction between: what readers see then, they see now. */
static void publish_stepwise(bool has_node, bool has_rows)
{
    struct joule_ledger *l = create(tree.fd, "n1", NULL);

    if (!l)
        _exit(1);
    publish(l, 1, 2);
    publish(l, 2, 2);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(77);
    raise(SIGSTOP);
    if (has_node)
        stage_node(l, 3, 2);
    if (has_rows) {
        stage_rows(l, 3);
        publish_totals(l, 3);
    } else {
        joule_ledger_publish(l, NULL);
    }
    raise(SIGSTOP);
    _exit(1);
}

/* One instruction.  false: it has published. */
static bool step(pid_t pid)
{
    int status;

    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0 ||
        waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        ck_abort_msg("the writer cannot be followed: %s", strerror(errno));
    return WSTOPSIG(status) == SIGTRAP;
}

START_TEST(writer_stopped_at_every_instruction)
{
    static struct view v;
    uint64_t node = publications[_i].has_node ? 3 : 2;
    uint64_t charged = publications[_i].has_rows ? 3 : 2;
    unsigned steps = 0, published = 0;
    struct joule_ledger *reader;
    int status, rc;
    bool is_right;
    pid_t pid = fork();

    if (pid == 0)
        publish_stepwise(publications[_i].has_node, publications[_i].has_rows);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        fprintf(stderr, "skip - ledger_node: "
                        "writer_stopped_at_every_instruction # no ptrace\n");
        return;
    }
    ck_assert(WIFSTOPPED(status));
    reader = must_open();
    while (step(pid)) {
        steps++;
        rc = look(reader, &v);
        if (v.generation == 2 && published == 0) {
            is_right = rc == 0 && is_of(&v, 2, 2);
        } else {
            is_right = rc == 0 && v.generation == 3 && is_of(&v, node, charged);
            published++;
        }
        if (!is_right)
            ck_abort_msg("instruction %u, generation %llu: %s", steps,
                         (unsigned long long)v.generation, strerror(rc));
    }
    ck_assert_uint_gt(published, 0);
    ck_assert_uint_gt(steps - published, 1000);
    end(pid);
    must_be(reader, node, charged);
    joule_ledger_destroy(reader);
}
END_TEST

/* Publishes as fast as it can until it is killed. */
static void publish_for_ever(int ready_fd)
{
    static struct view v;
    struct joule_ledger *l = create(tree.fd, "n1", NULL);
    uint64_t k = 0;

    if (!l)
        _exit(1);
    if (joule_ledger_generation(l) > 0) {
        /* Nothing of what the last writer had staged. */
        joule_ledger_publish(l, NULL);
        if (look(l, &v) != 0 || !is_of(&v, v.node.samples, v.node.samples))
            _exit(2);
        k = v.node.samples;
    }
    for (;;) {
        publish(l, ++k, JOULE_DOMAINS_MAX);
        if (ready_fd >= 0 && write(ready_fd, "", 1) == 1)
            ready_fd = -1;
    }
}

/* All of one publication, and no older than *last: 0, or errno as of look. */
static int must_be_whole(struct joule_ledger *l, uint64_t *last)
{
    static struct view v;
    int rc = look(l, &v);

    if (rc != 0)
        return rc;
    ck_assert(is_of(&v, v.node.samples, v.node.samples));
    ck_assert_uint_ge(v.node.samples, *last);
    *last = v.node.samples;
    return 0;
}

/* The next writer takes over, and a reader in another process is there all the
 * while. */
START_TEST(writers_are_killed)
{
    struct joule_ledger *reader = NULL;
    uint64_t seed = dice_seed(), last = 0;
    char byte;

    for (uint64_t i = 0; i < 200; i++) {
        int fds[2];
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
        for (uint64_t n = dice(&seed, 20); n > 0; n--) {
            int rc = must_be_whole(reader, &last);

            ck_assert_msg(rc == 0 || rc == EAGAIN || rc == EBADMSG, "%s",
                          strerror(rc));
        }
        usleep((useconds_t)dice(&seed, 500));
        end(pid);
        ck_assert_int_eq(must_be_whole(reader, &last), 0);
        ck_assert_uint_gt(last, i);
    }
    joule_ledger_destroy(reader);
}
END_TEST

struct crowd {
    struct joule_ledger *ledger; /* one handle for all of them */
    _Atomic bool stop;
    _Atomic unsigned torn, failed, back, reads;
};

static void *read_for_ever(void *arg)
{
    struct crowd *c = arg;
    struct joule_snapshot s;
    struct joule_sensor_state state;
    uint64_t last = 0;

    while (!c->stop) {
        if (joule_ledger_read_node(c->ledger, &s, &state) < 0) {
            c->failed++;
            continue;
        }
        c->torn +=
            !is_whole(&s, s.samples) || !is_whole_state(&state, s.samples);
        c->back += s.samples < last;
        c->reads++;
        last = s.samples;
    }
    return NULL;
}

/* A hundred times as fast as the shortest period. */
START_TEST(readers_and_a_writer)
{
    struct joule_ledger *writer = must_create();
    struct crowd c = {0};
    pthread_t threads[3];

    c.ledger = must_open();
    publish(writer, 1, 20);
    for (int i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_for_ever, &c),
                         0);
    for (uint64_t k = 2; k < 3000; k++) {
        const struct timespec pause = {.tv_nsec = 100000};

        publish(writer, k, 20);
        nanosleep(&pause, NULL);
    }
    c.stop = true;
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(c.torn, 0);
    ck_assert_uint_eq(c.back, 0);
    ck_assert_uint_eq(c.failed, 0);
    ck_assert_uint_gt(c.reads, 100);
    joule_ledger_destroy(c.ledger);
    joule_ledger_destroy(writer);
}
END_TEST

static void add_refused(TCase *tc)
{
    tcase_add_loop_test(tc, bad_node_name, 0, COUNT(bad_names));
    tcase_add_test(tc, long_node_name);
    tcase_add_test(tc, bad_words);
    tcase_add_test(tc, no_boot_id);
    tcase_add_test(tc, long_boot_id);
    tcase_add_test(tc, bad_root);
    tcase_add_test(tc, no_ledger);
    tcase_add_loop_test(tc, symlinked_dir, 0, COUNT(dirs));
    tcase_add_loop_test(tc, writable_dir, 0, COUNT(dirs));
    tcase_add_test(tc, sticky_run);
    tcase_add_loop_test(tc, file_for_dir, 0, COUNT(dirs));
    tcase_add_loop_test(tc, foreign_dir, 0, COUNT(dirs));
    tcase_add_test(tc, symlinked_ledger);
    tcase_add_test(tc, second_name);
    tcase_add_test(tc, writable_ledger);
    tcase_add_test(tc, foreign_ledger);
    tcase_add_test(tc, ledger_is_fifo);
    tcase_add_test(tc, half_a_ledger);
    tcase_add_test(tc, no_room);
    tcase_add_test(tc, no_memory);
    tcase_add_test(tc, destroy_null);
}

static void add_writer(TCase *tc)
{
    tcase_add_test(tc, second_writer);
    tcase_add_test(tc, number_of_the_last_writer);
    tcase_add_loop_test(tc, child_of_the_last_writer, 0, COUNT(children));
    tcase_add_test(tc, child_has_no_mapping);
    tcase_add_test(tc, locked_directory);
    tcase_add_test(tc, another_node_is_another_ledger);
}

static void add_files(TCase *tc)
{
    tcase_add_loop_test(tc, other_head, 0, COUNT(heads));
    tcase_add_test(tc, other_boot);
    tcase_add_loop_test(tc, cut_short, 0, COUNT(lengths));
    tcase_add_test(tc, old_reader_stays);
    tcase_add_test(tc, continues);
    tcase_add_test(tc, room_for_more_cpus);
    tcase_add_loop_test(tc, too_few_cpus, 0, 2);
    tcase_add_test(tc, too_few_cpus_and_no_node);
}

static void add_node(TCase *tc)
{
    tcase_add_test(tc, nothing_published);
    tcase_add_test(tc, publish_and_read);
    tcase_add_test(tc, every_word);
    tcase_add_test(tc, what_is_not_staged);
    tcase_add_loop_test(tc, senseless_count, 0, 3);
    tcase_add_test(tc, reader_who_may_not_write);
}

static void add_whole(TCase *tc)
{
    tcase_set_timeout(tc, 120);
    /* Millions of instructions are the thread sanitizer's own. */
#ifndef __SANITIZE_THREAD__
    tcase_add_loop_test(tc, writer_stopped_at_every_instruction, 0,
                        dice_is_long() ? COUNT(publications) : 1);
#else
    (void)writer_stopped_at_every_instruction;
    fprintf(stderr, "skip - ledger_node: "
                    "writer_stopped_at_every_instruction # thread sanitizer\n");
#endif
    tcase_add_test(tc, writers_are_killed);
    tcase_add_test(tc, readers_and_a_writer);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*add)(TCase *tc);
    } cases[] = {
        {"refused", add_refused},
        {"one writer", add_writer},
        {"which file is continued", add_files},
        {"the node", add_node},
        {"publications are whole", add_whole},
    };
    Suite *suite = suite_create("ledger_node");
    SRunner *runner;
    int failed;

    for (int i = 0; i < COUNT(cases); i++) {
        TCase *tc = tcase_create(cases[i].name);

        tcase_add_checked_fixture(tc, setup, teardown);
        cases[i].add(tc);
        suite_add_tcase(suite, tc);
    }
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
