/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/pool.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/store/sandbox.h"

/* Tasks that a worker has before it is through with the first of them. */
#define AHEAD 4

#define TICK_MS 100

/* A slot is sent once it holds so much, while it is still in the caches. */
#define SENT_FROM ((size_t)224 << 10)

/* A worker's freed memory up to here stays its own; less than sandbox.c
 * allows it. */
#define HEAP_KEPT (16 << 20)

struct message {
    uint32_t is_end; /* of the task */
    uint32_t slot;
    uint64_t length; /* of what is in the slot, perhaps nothing */
    int32_t errnum;
    char text[JOULE_ERROR_MAX];
};

struct joule_out {
    char *slots;
    int fd;
    unsigned free; /* slots that the parent does not have */
    unsigned slot; /* the one that is filled */
    size_t used;   /* bytes of it */
    unsigned cpu_s;
};

struct worker {
    pid_t pid;
    int task_fd, data_fd; /* our ends; -1 */
    char *slots;
    size_t next_task; /* that is given to it */
    bool is_equipped; /* begun after equip(): it lacks nothing */
};

struct pool {
    const struct joule_work *work;
    size_t tasks;
    unsigned jobs;
    struct worker worker[JOULE_POOL_JOBS_MAX];
    bool *is_refused; /* of each task: it was not opened */
};

static int send_message(int fd, const struct message *m)
{
    ssize_t n;

    do
        n = send(fd, m, sizeof(*m), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*m) ? 0 : -1;
}

/* Hand over what is in the slot, and wait for one that is free. */
static int send_slot(struct joule_out *out, struct message *m)
{
    char credit;

    m->slot = out->slot;
    m->length = out->used;
    if (send_message(out->fd, m) < 0)
        return -1;
    if (out->used == 0)
        return 0;
    out->free--;
    while (out->free == 0 ||
           recv(out->fd, &credit, 1, MSG_DONTWAIT | MSG_PEEK) == 1) {
        ssize_t n = recv(out->fd, &credit, 1, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        out->free++;
    }
    out->slot = (out->slot + 1) % JOULE_POOL_SLOTS;
    out->used = 0;
    return 0;
}

static int flush(struct joule_out *out)
{
    struct message m = {0};

    if (out->used == 0)
        return 0;
    joule_sandbox_watch(out->cpu_s);
    return send_slot(out, &m);
}

void *joule_out_room(struct joule_out *out, size_t size,
                     struct joule_error *err)
{
    if (size > JOULE_POOL_SLOT_SIZE) {
        joule_error_set(err, EMSGSIZE, "a piece of %zu bytes is too large",
                        size);
        return NULL;
    }
    if ((size > JOULE_POOL_SLOT_SIZE - out->used || out->used >= SENT_FROM) &&
        flush(out) < 0) {
        joule_error_set(err, EPIPE, "who wants the output is gone");
        return NULL;
    }
    return out->slots + out->slot * JOULE_POOL_SLOT_SIZE + out->used;
}

void joule_out_commit(struct joule_out *out, size_t size)
{
    out->used += size;
}

/* The next task and its descriptor; -1: no more. */
static int receive_task(int fd, uint64_t *ret_task, int *ret_fd)
{
    struct iovec part = {.iov_base = ret_task, .iov_len = sizeof(*ret_task)};
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
        n = recvmsg(fd, &m, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret_task))
        return -1;
    c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    return 0;
}

static int send_task(int to, uint64_t task, int fd)
{
    struct iovec part = {.iov_base = &task, .iov_len = sizeof(task)};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t n;

    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    do
        n = sendmsg(to, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(task) ? 0 : -1;
}

/* Never returns. */
static void work_in_child(const struct joule_work *work, int task_fd,
                          struct joule_out *out, pid_t parent)
{
    const int keep[] = {task_fd, out->fd};
    struct message m;
    uint64_t task;
    int fd;

    if (joule_sandbox_enter(parent, keep, 2, NULL) < 0)
        _exit(125);
    /* What one file took, the next takes again: giving it back to the kernel
     * in between costs more than reading a small file. */
    mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    while (receive_task(task_fd, &task, &fd) == 0) {
        struct joule_error err = {""};

        memset(&m, 0, sizeof(m));
        m.is_end = 1;
        joule_sandbox_watch(out->cpu_s);
        if (work->run(work->arg, (size_t)task, fd, out, &err) < 0)
            m.errnum = errno ? errno : EIO;
        memcpy(m.text, err.text, sizeof(m.text));
        joule_sandbox_watch(0);
        if (!work->keeps_fd)
            close(fd);
        if (send_slot(out, &m) < 0)
            break;
    }
    _exit(0);
}

static int start_worker(struct pool *pool, struct worker *w,
                        struct joule_error *err)
{
    int task[2], data[2];
    pid_t parent = getpid();

    if (!w->slots) {
        w->slots =
            mmap(NULL, JOULE_POOL_SLOTS * JOULE_POOL_SLOT_SIZE,
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (w->slots == MAP_FAILED) {
            w->slots = NULL;
            return joule_error_set(err, errno, "no memory for a reader: %m");
        }
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, task) < 0)
        return joule_error_set(err, errno, "cannot start a reader: %m");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, data) < 0) {
        close(task[0]);
        close(task[1]);
        return joule_error_set(err, errno, "cannot start a reader: %m");
    }
    w->pid = fork();
    if (w->pid == 0) {
        struct joule_out out = {.slots = w->slots,
                                .fd = data[1],
                                .free = JOULE_POOL_SLOTS,
                                .cpu_s = pool->work->cpu_s};

        work_in_child(pool->work, task[1], &out, parent);
    }
    close(task[1]);
    close(data[1]);
    w->task_fd = task[0];
    w->data_fd = data[0];
    if (w->pid > 0)
        return 0;
    return joule_error_set(err, errno, "cannot start a reader: %m");
}

/* End it; what waitpid says of it. */
static int stop_worker(struct worker *w, bool kill_it)
{
    int status = 0;

    if (w->task_fd >= 0)
        close(w->task_fd);
    if (w->data_fd >= 0)
        close(w->data_fd);
    w->task_fd = w->data_fd = -1;
    if (w->pid > 0) {
        if (kill_it)
            kill(w->pid, SIGKILL);
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    w->pid = 0;
    return status;
}

/* Give the worker tasks until it has enough; [task] is the one whose output is
 * taken next. */
static int feed(struct pool *pool, struct worker *w, size_t task,
                struct joule_error *err)
{
    const struct joule_work *work = pool->work;

    while (w->next_task < pool->tasks &&
           w->next_task < task + (size_t)AHEAD * pool->jobs) {
        size_t next = w->next_task;
        struct joule_error why;
        int fd, rc;

        fd = work->open(work->arg, next, &why);
        if (fd < 0 && next != task)
            return 0; /* ended() is called in order: when its turn comes */
        if (fd < 0) {
            int errnum = errno;

            pool->is_refused[next] = true;
            w->next_task += pool->jobs;
            return work->ended(work->arg, next, errnum, why.text, err);
        }
        if (w->pid == 0 && start_worker(pool, w, err) < 0) {
            close(fd);
            return -1;
        }
        rc = send_task(w->task_fd, next, fd);
        close(fd);
        if (rc < 0)
            return 0; /* it is gone: seen when it is waited for */
        w->next_task += pool->jobs;
    }
    return 0;
}

/* 1: a message; 0: the worker has ended; -1 with a sentence: it is late. */
static int wait_message(const struct pool *pool, const struct worker *w,
                        struct message *m, struct joule_error *err)
{
    int64_t start_ns = joule_clock_mono_ns(&joule_clock_system);
    struct pollfd p = {.fd = w->data_fd, .events = POLLIN};

    for (;;) {
        int rc = poll(&p, 1, TICK_MS);
        int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);

        if (pool->work->tick)
            pool->work->tick(pool->work->arg);
        if (rc > 0) {
            ssize_t n = recv(w->data_fd, m, sizeof(*m), MSG_DONTWAIT);

            if (n == (ssize_t)sizeof(*m))
                return 1;
            if (n < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            return 0;
        }
        if (now_ns - start_ns > (int64_t)pool->work->wall_s * JOULE_NS_PER_S)
            return joule_error_set(err, ETIMEDOUT,
                                   "it could not be read within %u s",
                                   pool->work->wall_s);
    }
}

static void explain(const struct pool *pool, int status,
                    struct joule_error *err)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        joule_error_set(err, ETIMEDOUT,
                        "damaged: its reader came to no end within %u s",
                        pool->work->cpu_s);
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
        explain(pool, status, why);
        errnum = errno;
    }
    w->next_task = task + pool->jobs;
    return pool->work->ended(pool->work->arg, task, errnum, why->text, err);
}

/* What the worker has put into a slot.  0, -1 with [why]; the slot is its own
 * again. */
static int take_slot(struct pool *pool, struct worker *w, size_t task,
                     const struct message *m, struct joule_error *why)
{
    const struct joule_work *work = pool->work;

    if (m->length == 0)
        return 0;
    if (m->slot >= JOULE_POOL_SLOTS || m->length > JOULE_POOL_SLOT_SIZE)
        return joule_error_set(why, EBADMSG, "its reader sent nonsense");
    if (work->take(work->arg, task, w->slots + m->slot * JOULE_POOL_SLOT_SIZE,
                   (size_t)m->length, why) < 0)
        return -1;
    /* A worker that is gone is seen at the next turn. */
    (void)!send(w->data_fd, "", 1, MSG_NOSIGNAL);
    return 0;
}

/* The worker lacks what the task takes: end it, for the task to be given to one
 * that has it.  1, or 0 if there will be none, and the task is ended. */
static int equip(struct pool *pool, struct worker *w, size_t task,
                 struct joule_error *err)
{
    const struct joule_work *work = pool->work;
    struct joule_error why = {""};

    stop_worker(w, true);
    w->next_task = task + pool->jobs;
    if (work->equip(&why) < 0)
        return work->ended(work->arg, task, errno, why.text, err);
    w->is_equipped = true;
    w->next_task = task;
    return 1;
}

/* Take the output of [task], which was given to [w].  0: it is ended; 1: it is
 * to be given to a worker anew. */
static int take_task(struct pool *pool, struct worker *w, size_t task,
                     struct joule_error *err)
{
    const struct joule_work *work = pool->work;
    bool has_output = false;

    for (;;) {
        struct joule_error why = {""};
        struct message m;
        int rc = wait_message(pool, w, &m, &why);

        if (rc == 0)
            errno = ECHILD;
        if (rc <= 0)
            return give_up(pool, w, task, &why, err);
        if (take_slot(pool, w, task, &m, &why) < 0) {
            if (errno == EBADMSG)
                return give_up(pool, w, task, &why, err);
            return joule_error_set(err, errno, "%s", why.text);
        }
        has_output = has_output || m.length > 0;
        if (!m.is_end)
            continue;
        if (m.errnum == ELIBACC && work->equip && !w->is_equipped &&
            !has_output)
            return equip(pool, w, task, err);
        m.text[sizeof(m.text) - 1] = '\0';
        joule_error_set(&why, 0, "%s", m.text);
        return work->ended(work->arg, task, m.errnum, why.text, err);
    }
}

static int run_tasks(struct pool *pool, struct joule_error *err)
{
    for (size_t task = 0; task < pool->tasks;) {
        struct worker *w = &pool->worker[task % pool->jobs];
        int rc = 0;

        /* All workers have something to do before we wait for one. */
        for (unsigned i = 0; i < pool->jobs; i++)
            if (feed(pool, &pool->worker[(task + i) % pool->jobs], task, err) <
                0)
                return -1;
        if (!pool->is_refused[task])
            rc = take_task(pool, w, task, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            task++;
    }
    return 0;
}

int joule_pool_run(const struct joule_work *work, size_t tasks, unsigned jobs,
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
    if (pool->jobs > JOULE_POOL_JOBS_MAX)
        pool->jobs = JOULE_POOL_JOBS_MAX;
    for (unsigned i = 0; i < pool->jobs; i++) {
        pool->worker[i].task_fd = pool->worker[i].data_fd = -1;
        pool->worker[i].next_task = i;
    }
    rc = run_tasks(pool, err);
    saved = errno;
    for (unsigned i = 0; i < pool->jobs; i++) {
        stop_worker(&pool->worker[i], rc < 0);
        if (pool->worker[i].slots)
            munmap(pool->worker[i].slots,
                   JOULE_POOL_SLOTS * JOULE_POOL_SLOT_SIZE);
    }
    free(pool->is_refused);
    free(pool);
    errno = saved;
    return rc;
}
