/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/worker.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/parse.h"

/* Tasks that a worker has before it is through with the first of them. */
#define AHEAD 4

#define TICK_MS 100

/* A slot is sent once it holds so much, while it is still in the caches. */
#define SENT_FROM ((size_t)224 << 10)

#define CPU_S  5
#define WALL_S 60

/* See joule_work.bytes. */
#define CPU_BYTES_PER_S  ((uint64_t)16 << 20)
#define WALL_BYTES_PER_S ((uint64_t)1 << 20)

/* A chunk of JOULE_CHUNK_MAX in three shapes, libhdf5's caches, a buffer of
 * 64 KiB for each of two files: what a whole file needs is below 20 MiB. */
#define DATA_BYTES ((size_t)48 << 20)

/* A worker's freed memory up to here stays its own. */
#define HEAP_KEPT (16 << 20)

/* To a worker. */
struct order {
    uint64_t task;
    uint64_t cpu_s;
    uint64_t has_fd;
};

/* From a worker. */
struct message {
    uint32_t is_end; /* of the task */
    uint32_t slot;
    uint64_t length; /* of what is in the slot, perhaps nothing */
    int32_t errnum;
    char text[JOULE_ERROR_MAX];
};

/* Memory of a worker and its parent. */
struct shared {
    sem_t free; /* slots that neither of them has */
    char slot[JOULE_WORKER_SLOTS][JOULE_WORKER_SLOT_SIZE];
};

struct joule_out {
    struct shared *shared;
    int fd;
    unsigned slot;  /* the one that is filled */
    size_t used;    /* bytes of it */
    unsigned cpu_s; /* of the task that is run */
};

struct worker {
    pid_t pid;
    int fd; /* our end of its socket; -1 */
    struct shared *shared;
    size_t next_task; /* that is given to it */
};

struct pool {
    const struct joule_work *work;
    size_t tasks;
    unsigned jobs;
    struct worker worker[JOULE_WORKERS_MAX];
    bool *is_refused; /* of each task: it was not opened */
};

/* ---- what a worker gives up ---- */

static bool is_kept(int fd, const int *keep, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (keep[i] == fd)
            return true;
    return false;
}

static int close_others(const int *keep, size_t count, bool keeps_stderr)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        uint64_t fd;

        /* "." and ".." are no numbers. */
        if (joule_parse_u64(entry->d_name, 0, INT_MAX, &fd) == 0 &&
            (int)fd != dirfd(dir) && !is_kept((int)fd, keep, count) &&
            !(keeps_stderr && fd == STDERR_FILENO))
            close((int)fd);
    }
    return closedir(dir);
}

/* What this process has of data, which the limit counts as well: that of its
 * parent, whose list of files may be long.  proc(5): the sixth number, in
 * pages, has the stack in it. */
static int own_data(rlim_t *ret_bytes)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages;
    int count;

    if (!f)
        return -1;
    count = fscanf(f, "%*s %*s %*s %*s %*s %lu", &pages);
    fclose(f);
    if (count != 1)
        return errno = EINVAL, -1;
    *ret_bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int bound_resources(size_t data_bytes)
{
    const struct rlimit none = {0, 0};
    struct rlimit data;

    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return -1;
    if (JOULE_HAS_SANITIZER)
        return 0;
    if (own_data(&data.rlim_cur) < 0)
        return -1;
    data.rlim_max = data.rlim_cur += data_bytes;
    return setrlimit(RLIMIT_DATA, &data);
}

/* All that read their arguments from registers or write to our own memory.
 * What others there are fails with EPERM. */
static const int calls[] = {
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_lseek,
    SYS_fstat,
    SYS_close,
    SYS_write,
    SYS_sendmsg,
    SYS_sendto,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_setitimer,
    SYS_getitimer,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_sched_yield,
    SYS_restart_syscall,
    SYS_newfstatat,
    /* The last two only for who writes files. */
    SYS_pwrite64,
    SYS_ftruncate,
};

/*
 * In a child after fork, before it reads a file that may be hostile: it keeps
 * the descriptors [keep], dies with [parent], leaves no core file, gets no new
 * privileges, has bounded memory, and of system calls only those that reading
 * takes (seccomp(2), where the kernel has it): it can open no file, start no
 * program and reach no other process.  Standard error is kept where no files are
 * written.  Built with sanitizers, which need more, it is always kept, and memory
 * and calls are not bounded.
 */
static int enter_sandbox(const struct joule_work *work, pid_t parent,
                         const int *keep, size_t count)
{
    size_t data_bytes = work->data_bytes ? work->data_bytes : DATA_BYTES;
    size_t allowed =
        sizeof(calls) / sizeof(calls[0]) - (work->writes_files ? 0 : 2);

    if (close_others(keep, count, !work->writes_files || JOULE_HAS_SANITIZER) <
            0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0 || bound_resources(data_bytes) < 0)
        return -1;
    return joule_callfilter_enter(calls, allowed, SECCOMP_RET_ERRNO | EPERM);
}

/* The process is killed after [seconds] of CPU time unless this is called
 * again; 0: no more. */
static void watch(unsigned seconds)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)seconds};

    setitimer(ITIMER_PROF, &timer, NULL);
}

/* ---- in a worker ---- */

/* Hand over what is in the slot, and wait for one that is free. */
static int send_slot(struct joule_out *out, struct message *m)
{
    ssize_t n;

    m->slot = out->slot;
    m->length = out->used;
    do
        n = send(out->fd, m, sizeof(*m), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*m))
        return -1;
    if (out->used == 0)
        return 0;
    while (sem_wait(&out->shared->free) < 0)
        if (errno != EINTR)
            return -1;
    out->slot = (out->slot + 1) % JOULE_WORKER_SLOTS;
    out->used = 0;
    return 0;
}

static int flush(struct joule_out *out)
{
    struct message m = {0};

    if (out->used == 0)
        return 0;
    watch(out->cpu_s);
    return send_slot(out, &m);
}

void *joule_out_room(struct joule_out *out, size_t size,
                     struct joule_error *err)
{
    if (size > JOULE_WORKER_SLOT_SIZE) {
        joule_error_set(err, EMSGSIZE, "a piece of %zu bytes is too large",
                        size);
        return NULL;
    }
    if ((size > JOULE_WORKER_SLOT_SIZE - out->used || out->used >= SENT_FROM) &&
        flush(out) < 0) {
        joule_error_set(err, EPIPE, "who wants the output is gone");
        return NULL;
    }
    return out->shared->slot[out->slot] + out->used;
}

void joule_out_commit(struct joule_out *out, size_t size)
{
    out->used += size;
}

/* 0; -1: there are no more. */
static int receive_order(int from, struct order *ret, int *ret_fd)
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    struct cmsghdr *c;
    ssize_t n;

    do
        n = recvmsg(from, &m, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret))
        return -1;
    *ret_fd = -1;
    c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    return ret->has_fd && *ret_fd < 0 ? -1 : 0;
}

/* With the descriptor [fd], unless it is -1. */
static int send_order(int to, const struct order *order, int fd)
{
    struct order copy = *order;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof(copy)};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
    }
    do
        n = sendmsg(to, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(copy) ? 0 : -1;
}

/* Never returns. */
static void work_in_child(const struct joule_work *work, struct joule_out *out,
                          pid_t parent)
{
    int keep[JOULE_WORK_KEEP_MAX + 1];
    size_t keeps = 0;
    struct order order;
    struct message m;
    int fd;

    keep[keeps++] = out->fd;
    for (size_t i = 0; i < work->keeps && i < JOULE_WORK_KEEP_MAX; i++)
        keep[keeps++] = work->keep[i];
    if (enter_sandbox(work, parent, keep, keeps) < 0)
        _exit(125);
    /* What one file took, the next takes again: giving it back to the kernel
     * in between costs more than reading a small file. */
    mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    mallopt(M_TOP_PAD, 2 << 20);
    while (receive_order(out->fd, &order, &fd) == 0) {
        struct joule_error err = {""};

        memset(&m, 0, sizeof(m));
        m.is_end = 1;
        out->cpu_s = (unsigned)order.cpu_s;
        watch(out->cpu_s);
        if (work->run(work->arg, (size_t)order.task, fd, out, &err) < 0)
            m.errnum = errno ? errno : EIO;
        memcpy(m.text, err.text, sizeof(m.text));
        watch(0);
        joule_close(fd);
        if (send_slot(out, &m) < 0)
            break;
    }
    _exit(0);
}

/* ---- in the parent ---- */

static int start_worker(struct pool *pool, struct worker *w,
                        struct joule_error *err)
{
    pid_t parent = getpid();
    int ends[2];

    if (!w->shared) {
        w->shared = mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (w->shared == MAP_FAILED) {
            w->shared = NULL;
            return joule_error_set(err, errno, "no memory for a reader: %m");
        }
    }
    sem_init(&w->shared->free, 1, JOULE_WORKER_SLOTS - 1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return joule_error_set(err, errno, "cannot start a reader: %m");
    w->pid = fork();
    if (w->pid == 0) {
        struct joule_out out = {.shared = w->shared, .fd = ends[1]};

        work_in_child(pool->work, &out, parent);
    }
    close(ends[1]);
    w->fd = ends[0];
    if (w->pid > 0)
        return 0;
    return joule_error_set(err, errno, "cannot start a reader: %m");
}

/* End it; what waitpid says of it. */
static int stop_worker(struct worker *w, bool kill_it)
{
    int status = 0;

    joule_close(w->fd);
    w->fd = -1;
    if (w->pid > 0) {
        if (kill_it)
            kill(w->pid, SIGKILL);
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    w->pid = 0;
    return status;
}

static uint64_t bytes_of(const struct joule_work *work, size_t task)
{
    return work->bytes ? work->bytes(work->arg, task) : 0;
}

static int end_task(const struct pool *pool, size_t task, int errnum,
                    const char *sentence, bool is_dead, struct joule_error *err)
{
    const struct joule_work_end end = {errnum, sentence, is_dead};

    return pool->work->ended(pool->work->arg, task, &end, err);
}

/* Give the worker tasks until it has enough; [task] is the one whose output is
 * taken next. */
static int feed(struct pool *pool, struct worker *w, size_t task,
                struct joule_error *err)
{
    const struct joule_work *work = pool->work;

    while (w->next_task < pool->tasks &&
           w->next_task < task + (work->is_fresh ? 1 : AHEAD * pool->jobs)) {
        struct order order = {.task = w->next_task};
        size_t next = w->next_task;
        struct joule_error why;
        int fd = -1, rc;

        if (work->open)
            fd = work->open(work->arg, next, &why);
        if (work->open && fd < 0 && next != task)
            return 0; /* ended() is called in order: when its turn comes */
        if (work->open && fd < 0) {
            pool->is_refused[next] = true;
            w->next_task += pool->jobs;
            return end_task(pool, next, errno, why.text, false, err);
        }
        if (w->pid == 0 && start_worker(pool, w, err) < 0) {
            joule_close(fd);
            return -1;
        }
        order.has_fd = fd >= 0;
        order.cpu_s = (work->cpu_s ? work->cpu_s : CPU_S) +
                      bytes_of(work, next) / CPU_BYTES_PER_S;
        rc = send_order(w->fd, &order, fd);
        joule_close(fd);
        if (rc < 0)
            return 0; /* it is gone: seen when it is waited for */
        w->next_task += pool->jobs;
    }
    return 0;
}

/* 1: a message; 0: the worker has ended; -1 with a sentence: it is late. */
static int wait_message(const struct pool *pool, const struct worker *w,
                        size_t task, struct message *m, struct joule_error *err)
{
    uint64_t wall_s = (pool->work->wall_s ? pool->work->wall_s : WALL_S) +
                      bytes_of(pool->work, task) / WALL_BYTES_PER_S;
    int64_t end_ns = joule_deadline_in((int64_t)wall_s * JOULE_NS_PER_S);
    struct pollfd p = {.fd = w->fd, .events = POLLIN};

    for (;;) {
        int rc = poll(&p, 1, TICK_MS);
        ssize_t n;

        if (pool->work->tick)
            pool->work->tick(pool->work->arg);
        if (rc <= 0 && joule_deadline_left(end_ns) == 0)
            return joule_error_set(err, ETIMEDOUT,
                                   "it could not be read within %llu s",
                                   (unsigned long long)wall_s);
        if (rc <= 0)
            continue;
        n = recv(w->fd, m, sizeof(*m), MSG_DONTWAIT);
        if (n == (ssize_t)sizeof(*m))
            return 1;
        /* ECONNRESET is told before what the worker has sent: it died with
         * orders that it had not read. */
        if (n >= 0 ||
            (errno != EINTR && errno != EAGAIN && errno != ECONNRESET))
            return 0;
    }
}

static void explain(int status, struct joule_error *err)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        joule_error_set(err, ETIMEDOUT, "damaged: its reader came to no end");
    else if (WIFSIGNALED(status))
        joule_error_set(err, EBADMSG, "damaged: its reader died of signal %d",
                        WTERMSIG(status));
    else
        joule_error_set(err, EBADMSG, "its reader ended by itself (status %d)",
                        WEXITSTATUS(status));
}

/* The worker is no good: end it, and the task with it. */
static int give_up(struct pool *pool, struct worker *w, size_t task,
                   struct joule_error *why, struct joule_error *err)
{
    int errnum = errno;
    bool is_gone = errnum == ECHILD;
    int status = stop_worker(w, !is_gone);

    if (is_gone) {
        explain(status, why);
        errnum = errno;
    }
    w->next_task = task + pool->jobs;
    return end_task(pool, task, errnum, why->text, true, err);
}

/* What the worker has put into a slot.  0, -1 with [why]; the slot is its own
 * again. */
static int take_slot(struct pool *pool, struct worker *w, size_t task,
                     const struct message *m, struct joule_error *why)
{
    const struct joule_work *work = pool->work;

    if (m->length == 0)
        return 0;
    if (m->slot >= JOULE_WORKER_SLOTS || m->length > JOULE_WORKER_SLOT_SIZE)
        return joule_error_set(why, EBADMSG, "its reader sent nonsense");
    if (work->take(work->arg, task, w->shared->slot[m->slot], (size_t)m->length,
                   why) < 0)
        return -1;
    sem_post(&w->shared->free);
    return 0;
}

/* Take the output of [task], which was given to [w]. */
static int take_task(struct pool *pool, struct worker *w, size_t task,
                     struct joule_error *err)
{
    for (;;) {
        struct joule_error why = {""};
        struct message m;
        int rc = wait_message(pool, w, task, &m, &why);

        if (rc == 0)
            errno = ECHILD;
        if (rc <= 0)
            return give_up(pool, w, task, &why, err);
        if (take_slot(pool, w, task, &m, &why) < 0) {
            if (errno == EBADMSG)
                return give_up(pool, w, task, &why, err);
            return joule_error_set(err, errno, "%s", why.text);
        }
        if (!m.is_end)
            continue;
        m.text[sizeof(m.text) - 1] = '\0';
        joule_error_set(&why, 0, "%s", m.text);
        return end_task(pool, task, m.errnum, why.text, false, err);
    }
}

static int run_tasks(struct pool *pool, struct joule_error *err)
{
    for (size_t task = 0; task < pool->tasks; task++) {
        struct worker *w = &pool->worker[task % pool->jobs];

        /* All workers have something to do before we wait for one. */
        for (unsigned i = 0; i < pool->jobs; i++)
            if (feed(pool, &pool->worker[(task + i) % pool->jobs], task, err) <
                0)
                return -1;
        if (!pool->is_refused[task] && take_task(pool, w, task, err) < 0)
            return -1;
        if (pool->work->is_fresh)
            stop_worker(w, false);
    }
    return 0;
}

int joule_work_run(const struct joule_work *work, size_t tasks, unsigned jobs,
                   struct joule_error *err)
{
    struct pool *pool;
    int rc, saved;

    if (tasks == 0)
        return 0;
    pool = calloc(1, sizeof(*pool));
    if (pool)
        pool->is_refused = calloc(tasks, sizeof(*pool->is_refused));
    if (!pool || !pool->is_refused) {
        free(pool);
        return joule_error_set(err, ENOMEM, "out of memory");
    }
    pool->work = work;
    pool->tasks = tasks;
    pool->jobs = jobs < 1 ? 1 : jobs;
    if (pool->jobs > JOULE_WORKERS_MAX)
        pool->jobs = JOULE_WORKERS_MAX;
    for (unsigned i = 0; i < pool->jobs; i++) {
        pool->worker[i].fd = -1;
        pool->worker[i].next_task = i;
    }
    rc = run_tasks(pool, err);
    saved = errno;
    for (unsigned i = 0; i < pool->jobs; i++) {
        stop_worker(&pool->worker[i], rc < 0);
        if (pool->worker[i].shared)
            munmap(pool->worker[i].shared, sizeof(struct shared));
    }
    free(pool->is_refused);
    free(pool);
    errno = saved;
    return rc;
}
