/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY      (UINT64_C(16) << 20)
#define MEMORY_MIN  (UINT64_C(1) << 20)
#define MEMORY_MAX  (UINT64_C(1) << 32)
#define COMMS_MAX   65536
#define NAMES_MAX   4096
#define STACK_BYTES (64 * 1024)
#define CACHE       256
#define ABORT_S     3

enum { FREE, FILLS, FULL };

_Atomic bool joule_recorder_runs, joule_recorder_pauses;
_Thread_local struct joule_waits_thread joule_recorder_self
    __attribute__((tls_model("initial-exec")));

/* What the thread has looked for before. */
static _Thread_local struct {
    struct joule_caller caller[CACHE];
    uint16_t name[CACHE];
} cache __attribute__((tls_model("initial-exec")));

/* Whose id another one may have, whose blocks follow. */
struct ended_thread {
    uint32_t id;
    uint64_t number; /* of the next block */
};

/* A process has one log, and all of its threads write it. */
static struct {
    struct joule_waits_head head;
    struct joule_recorder_block *block;
    size_t blocks;
    struct joule_waits_comm *comm; /* [COMMS_MAX] */
    struct joule_waits_text *name; /* [NAMES_MAX] */
    _Atomic uint32_t comms, names; /* of them are set */
    uint32_t comms_written, names_written;
    _Atomic uint64_t lost, not_done, unknown;
    uint32_t threads;           /* ids that there are */
    struct ended_thread *ended; /* [JOULE_WAITS_THREADS] */
    uint32_t ended_threads;
    pthread_key_t key; /* of each thread that has an id */
    bool has_key;
    _Atomic uint32_t full; /* blocks that have become so; a futex */
    atomic_bool ends, stops;
    enum joule_waits_state end_state; /* set before it stops */
    struct joule_waits_clock end_clock;
    pthread_mutex_t lock; /* comm, name, threads and ended */
    pthread_t writer;
    pid_t pid;
    int fd;
    struct stat file; /* what it is, as long as the program leaves it alone */
    off_t length;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- records ---- */

static struct joule_recorder_block *find_block(void)
{
    for (size_t i = 0; i < self.blocks; i++) {
        uint32_t state = FREE;

        if (atomic_load_explicit(&self.block[i].state, memory_order_relaxed) ==
                FREE &&
            atomic_compare_exchange_strong(&self.block[i].state, &state, FILLS))
            return &self.block[i];
    }
    return NULL;
}

/* false: there are too many threads. */
static bool take_id(struct joule_waits_thread *thread)
{
    pthread_mutex_lock(&self.lock);
    if (self.ended_threads > 0) {
        struct ended_thread *e = &self.ended[--self.ended_threads];

        thread->id = e->id;
        thread->number = e->number;
        thread->is_known = true;
    } else if (self.threads < JOULE_WAITS_THREADS) {
        thread->id = self.threads++;
        thread->number = 0;
        thread->is_known = true;
    }
    pthread_mutex_unlock(&self.lock);
    if (thread->is_known && self.has_key)
        pthread_setspecific(self.key, thread);
    return thread->is_known;
}

static void hand_over(struct joule_waits_thread *thread)
{
    if (!thread->block)
        return;
    atomic_store_explicit(&thread->block->state, FULL, memory_order_release);
    thread->block = NULL;
    atomic_fetch_add(&self.full, 1);
    syscall(SYS_futex, &self.full, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* They are not the regions of the next thread that has the id. */
static void end_regions(struct joule_waits_thread *thread)
{
    int64_t now_ns = joule_recorder_now_ns();

    for (; thread->regions > 0; thread->regions--) {
        *joule_recorder_add(thread) =
            (struct joule_waits_record){.kind = JOULE_WAITS_REGION_END,
                                        .enter_ns = now_ns,
                                        .leave_ns = now_ns};
        joule_recorder_added(thread);
    }
}

/* The thread ends.  What calls MPI even later gets an id as a new one does. */
static void end_thread(void *arg)
{
    struct joule_waits_thread *thread = arg;

    end_regions(thread);
    hand_over(thread);
    pthread_mutex_lock(&self.lock);
    self.ended[self.ended_threads++] =
        (struct ended_thread){thread->id, thread->number};
    pthread_mutex_unlock(&self.lock);
    thread->is_known = false;
}

struct joule_waits_record *
joule_recorder_more(struct joule_waits_thread *thread)
{
    struct joule_recorder_block *block = NULL;

    hand_over(thread);
    if (thread->is_known || take_id(thread))
        block = thread->block = find_block();
    if (!block) {
        atomic_fetch_add(&self.lost, 1);
        return &thread->spare;
    }
    /* Seen by the writer with the first record. */
    block->thread = thread->id;
    block->number = thread->number++;
    return &block->record[0];
}

void joule_recorder_not_done(void)
{
    if (atomic_load(&joule_recorder_pauses))
        return;
    atomic_fetch_add_explicit(&self.not_done, 1, memory_order_relaxed);
}

void joule_recorder_unknown(void)
{
    atomic_fetch_add_explicit(&self.unknown, 1, memory_order_relaxed);
}

/* ---- definitions ---- */

uint32_t joule_recorder_comm(uint64_t id, int rank, int size)
{
    uint32_t n;

    pthread_mutex_lock(&self.lock);
    n = atomic_load(&self.comms);
    if (n < COMMS_MAX) {
        self.comm[n] = (struct joule_waits_comm){
            .id = id, .comm = n, .rank = rank, .size = size};
        atomic_store(&self.comms, n + 1);
    }
    pthread_mutex_unlock(&self.lock);
    return n < COMMS_MAX ? n : JOULE_WAITS_NO_COMM;
}

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool is_name(uint32_t n, const char *text, size_t length)
{
    return self.name[n].length == length &&
           memcmp(self.name[n].text, text, length) == 0;
}

static uint32_t find_name(const char *text, size_t length, uint32_t names)
{
    uint32_t n = 0;

    while (n < names && !is_name(n, text, length))
        n++;
    return n;
}

uint16_t joule_recorder_name(const char *text, size_t length)
{
    uint32_t n, names;
    uint16_t *seen;

    if (length > JOULE_WAITS_TEXT)
        length = JOULE_WAITS_TEXT;
    /* A name stays as it is once it is there. */
    seen = &cache.name[hash_of(text, length) % CACHE];
    if (*seen && is_name(*seen - 1u, text, length))
        return *seen;
    pthread_mutex_lock(&self.lock);
    names = atomic_load(&self.names);
    n = find_name(text, length, names);
    if (n == names && n < NAMES_MAX) {
        self.name[n].name = n + 1;
        self.name[n].length = (uint32_t)length;
        memcpy(self.name[n].text, text, length);
        atomic_store(&self.names, n + 1);
    }
    pthread_mutex_unlock(&self.lock);
    *seen = n < NAMES_MAX ? (uint16_t)(n + 1) : 0;
    return *seen;
}

struct joule_caller *joule_recorder_caller(const void *address)
{
    return &cache.caller[((uintptr_t)address >> 2) % CACHE];
}

/* ---- the file ---- */

/* What cannot be written is lost: no more is tried. */
static bool write_all(const void *data, size_t size)
{
    const char *at = data;
    ssize_t n;

    while (size > 0 && self.head.error == 0) {
        n = pwrite(self.fd, at, size, self.length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            self.head.error = n < 0 ? errno : EIO;
            break;
        }
        at += n;
        size -= (size_t)n;
        self.length += n;
    }
    return self.head.error == 0;
}

static bool write_block(uint32_t kind, const struct joule_recorder_block *from,
                        uint32_t first, uint32_t count, const void *data,
                        size_t each)
{
    struct joule_waits_block head = {
        .kind = kind,
        .thread = from ? from->thread : 0,
        .first = first,
        .count = count,
        .number = from ? from->number : 0,
    };
    off_t before = self.length;

    if (write_all(&head, sizeof(head)) && write_all(data, count * each))
        return true;
    /* No half block is behind the last whole one. */
    self.length = before;
    if (self.head.error != EBADF && ftruncate(self.fd, before) < 0)
        self.head.error = errno;
    return false;
}

static void write_definitions(void)
{
    uint32_t comms = atomic_load(&self.comms), names = atomic_load(&self.names);

    if (comms > self.comms_written &&
        write_block(JOULE_WAITS_COMMS, NULL, self.comms_written,
                    comms - self.comms_written, &self.comm[self.comms_written],
                    sizeof(*self.comm)))
        self.comms_written = comms;
    if (names > self.names_written &&
        write_block(JOULE_WAITS_NAMES, NULL, self.names_written,
                    names - self.names_written, &self.name[self.names_written],
                    sizeof(*self.name)))
        self.names_written = names;
}

static void write_records(struct joule_recorder_block *block)
{
    /* A block that is full has its last count. */
    uint32_t state = atomic_load_explicit(&block->state, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&block->count, memory_order_acquire);
    uint32_t more;

    if (state == FREE)
        return;
    more = count > block->written ? count - block->written : 0;
    if (more > 0) {
        if (!write_block(JOULE_WAITS_RECORDS, block, block->written, more,
                         &block->record[block->written],
                         sizeof(block->record[0])))
            atomic_fetch_add(&self.lost, more);
        block->written = count;
    }
    if (state == FULL) {
        block->written = 0;
        atomic_store_explicit(&block->count, 0, memory_order_relaxed);
        atomic_store_explicit(&block->state, FREE, memory_order_release);
    }
}

static void write_head(void)
{
    struct joule_waits_head head = self.head;
    ssize_t n;

    head.lost = atomic_load(&self.lost);
    head.not_done = atomic_load(&self.not_done);
    head.unknown = atomic_load(&self.unknown);
    pthread_mutex_lock(&self.lock);
    head.threads = self.threads;
    pthread_mutex_unlock(&self.lock);
    do
        n = pwrite(self.fd, &head, sizeof(head), 0);
    while (n < 0 && errno == EINTR);
}

/* A program may close descriptors that it does not know, and open others. */
static bool is_own(int fd)
{
    struct stat now;

    return fstat(fd, &now) == 0 && now.st_dev == self.file.st_dev &&
           now.st_ino == self.file.st_ino;
}

static void write_what_there_is(void)
{
    if (!is_own(self.fd))
        self.head.error = EBADF;
    write_definitions();
    for (size_t i = 0; i < self.blocks; i++)
        write_records(&self.block[i]);
}

static void set_end(void)
{
    self.head.state = self.end_state;
    self.head.end_ns = joule_recorder_now_ns();
    self.head.clock[1] = self.end_clock;
}

static void *run_writer(void *arg)
{
    const struct timespec second = {1, 0};
    uint32_t full = 0;
    bool stops;

    (void)arg;
    do {
        stops = atomic_load(&self.stops);
        if (!stops)
            syscall(SYS_futex, &self.full, FUTEX_WAIT_PRIVATE, full, &second,
                    NULL, 0);
        full = atomic_load(&self.full);
        write_what_there_is();
        if (stops)
            set_end();
        if (self.head.error != EBADF)
            write_head();
    } while (!stops);
    return NULL;
}

/* ---- begin and end ---- */

/* A limit of file sizes (ulimit -f) is an error of a write, and no signal, also in the
 * program's own threads. */
struct size_signal {
    sigset_t set, before;
    bool was_pending;
};

static void block_size_signal(struct size_signal *s)
{
    sigset_t pending;

    sigemptyset(&s->set);
    sigaddset(&s->set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &s->set, &s->before);
    s->was_pending =
        sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
}

static void restore_size_signal(const struct size_signal *s)
{
    const struct timespec now = {0, 0};

    if (!s->was_pending)
        sigtimedwait(&s->set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

static uint64_t memory_bytes(void)
{
    const char *text = secure_getenv("JOULE_WAITS_MEMORY");
    uint64_t mib = text ? strtoull(text, NULL, 10) : 0;

    if (mib == 0)
        return MEMORY;
    if (mib > MEMORY_MAX >> 20)
        return MEMORY_MAX;
    return mib << 20 > MEMORY_MIN ? mib << 20 : MEMORY_MIN;
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static int make_file(const struct joule_waits_head *head)
{
    const char *directory = secure_getenv("JOULE_WAITS_DIR");
    char path[PATH_MAX];
    int n;

    if (!directory || !*directory) {
        errno = ENOENT;
        return -1;
    }
    /* Whoever comes first makes it. */
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return -1;
    n = snprintf(path, sizeof(path), "%s/%s.%u" JOULE_WAITS_SUFFIX, directory,
                 head->node, head->pid);
    if (n >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    self.fd =
        open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (self.fd < 0)
        return -1;
    return fstat(self.fd, &self.file);
}

static int start_writer(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES + (size_t)PTHREAD_STACK_MIN);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = pthread_create(&self.writer, &attr, run_writer, NULL);
    /* Thread-local variables of the program may need more. */
    if (rc == EINVAL)
        rc = pthread_create(&self.writer, NULL, run_writer, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    errno = rc;
    return rc ? -1 : 0;
}

/* The child has neither the thread nor a part in the parent's run. */
static void in_child(void)
{
    atomic_store(&joule_recorder_runs, false);
    pthread_mutex_init(&self.lock, NULL);
    if (self.fd >= 0 && is_own(self.fd))
        close(self.fd);
    self.fd = -1;
}

static void release(void)
{
    int saved = errno;

    if (self.fd >= 0)
        close(self.fd);
    self.fd = -1;
    errno = saved;
}

int joule_recorder_start(const struct joule_waits_head *head)
{
    uint64_t bytes = memory_bytes();
    struct size_signal signals;

    if (self.fd >= 0 || make_file(head) < 0)
        return -1;
    self.blocks = bytes / sizeof(*self.block);
    self.block = map(self.blocks * sizeof(*self.block));
    self.comm = map(COMMS_MAX * sizeof(*self.comm));
    self.name = map(NAMES_MAX * sizeof(*self.name));
    self.ended = map(JOULE_WAITS_THREADS * sizeof(*self.ended));
    self.head = *head;
    self.length = sizeof(self.head);
    self.pid = getpid();
    if (!self.block || !self.comm || !self.name || !self.ended ||
        pthread_atfork(NULL, NULL, in_child) != 0) {
        errno = ENOMEM;
        release();
        return -1;
    }
    /* Without a key those that have ended keep what they had. */
    self.has_key = pthread_key_create(&self.key, end_thread) == 0;
    block_size_signal(&signals);
    write_head();
    restore_size_signal(&signals);
    if (start_writer() < 0) {
        release();
        return -1;
    }
    atomic_store(&joule_recorder_runs, true);
    return 0;
}

void joule_recorder_pause(bool pause)
{
    atomic_store(&joule_recorder_pauses, pause);
}

/* false: it has stopped before, or is not this process's. */
static bool begin_stop(enum joule_waits_state state,
                       const struct joule_waits_clock *clock)
{
    if (self.fd < 0 || self.pid != getpid() ||
        atomic_exchange(&self.ends, true))
        return false;
    self.end_state = state;
    if (clock)
        self.end_clock = *clock;
    atomic_store(&joule_recorder_runs, false);
    atomic_store(&self.stops, true);
    atomic_fetch_add(&self.full, 1);
    syscall(SYS_futex, &self.full, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return true;
}

void joule_recorder_stop(enum joule_waits_state state,
                         const struct joule_waits_clock *clock)
{
    int saved = errno;

    if (!begin_stop(state, clock))
        return;
    pthread_join(self.writer, NULL);
    if (self.head.error != EBADF)
        release();
    self.fd = -1;
    errno = saved;
}

void joule_recorder_abort(void)
{
    struct timespec until;
    int saved = errno;

    if (!begin_stop(JOULE_WAITS_ENDED, NULL))
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_S;
    pthread_timedjoin_np(self.writer, NULL, &until);
    errno = saved;
}

__attribute__((destructor)) static void at_exit(void)
{
    joule_recorder_stop(JOULE_WAITS_ENDED, NULL);
}
