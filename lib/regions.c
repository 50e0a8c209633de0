/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A begin and an end write to the calling thread's own part of the segment, and
 * share no line of cache with other threads.  Locks and system calls are left to
 * what happens once: a process, a thread, a name.
 *
 * What belongs to the process lies on pages that fork clears in the child
 * (MADV_WIPEONFORK), whichever way it forks: the child has no segment, and gets
 * one of its own if it records.
 */
#include "lib/joule.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/segment.h"

#define JOULE_API __attribute__((visibility("default")))

#define likely(x) __builtin_expect(!!(x), 1)

#define HASH_SLOTS 2048 /* a power of two, well above the number of names */

/* Names that a thread has used last, found by where their text is. */
#define CACHE_SLOTS 8

/* How long the queue of the step's socket may be full, in seconds. */
#define SEND_S 1

enum state {
    NEW, /* what fork leaves */
    RECORDING,
    OFF,
};

/* The process; on pages that fork clears. */
struct process {
    uint32_t pid;         /* 0: not recording.  Written last */
    int state;            /* enum state */
    pthread_mutex_t lock; /* all zeros: PTHREAD_MUTEX_INITIALIZER */
    char status[256];
    uint32_t id[HASH_SLOTS]; /* of a name, + 1; 0: free */
};

static struct process *process;
static struct joule_segment *segment;
static pthread_key_t thread_end; /* its value is the thread's part */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Of the initial TLS: no call to find it. */
static __thread struct {
    uint32_t pid; /* of the process whose segment [part] lies in */
    struct joule_region_thread *part;
    struct {
        const char *text;
        uint32_t id;
    } cache[CACHE_SLOTS];
} me __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* While the lock is held, or the step's socket waited for, the thread is neither
 * cancelled nor interrupted: a handler of a signal that is in a region would wait for
 * itself. */
struct undisturbed {
    sigset_t mask;
    int cancel;
};

static void begin_undisturbed(struct undisturbed *u)
{
    sigset_t all;

    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &u->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &u->mask);
}

static void end_undisturbed(const struct undisturbed *u)
{
    pthread_sigmask(SIG_SETMASK, &u->mask, NULL);
    pthread_setcancelstate(u->cancel, NULL);
}

/* What is counted in the head: rare, and by any thread. */
static void add_one(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- records ---- */

static void publish(const struct joule_region_record *record)
{
    uint64_t index =
        __atomic_fetch_add(&segment->head.record_count, 1, __ATOMIC_ACQ_REL);
    struct joule_region_record *to =
        &segment->record[index % JOULE_SEGMENT_RECORDS];
    struct joule_region_name *name = &segment->name[record->name];

    /* Not a store: what follows must not be seen before it. */
    __atomic_exchange_n(&to->seq, 0, __ATOMIC_ACQ_REL);
    memcpy((char *)to + sizeof(to->seq),
           (const char *)record + sizeof(record->seq),
           sizeof(*record) - sizeof(record->seq));
    __atomic_store_n(&to->seq, index + 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&name->count, record->count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&name->time_ns, record->time_ns, __ATOMIC_RELAXED);
}

static void publish_ended(const struct joule_region_thread *part,
                          const struct joule_region_cell *ended)
{
    const struct joule_region_record record = {
        .name = ended->name,
        .thread = (uint16_t)part->number,
        .depth = (uint8_t)ended->depth,
        .kind = JOULE_REGION_ENDED,
        .count = ended->count,
        .begin_ns = ended->begin_ns,
        .end_ns = ended->end_ns,
        .time_ns = ended->time_ns,
    };

    publish(&record);
}

static void publish_cell(const struct joule_region_thread *part,
                         struct joule_region_cell *cell)
{
    if (cell->count > 0)
        publish_ended(part, cell);
    __atomic_store_n(&cell->count, 0, __ATOMIC_RELEASE);
}

/* A region has ended: into the record of its name, or a new one.  A long one is a
 * record of its own at once. */
static void end_region(struct joule_region_thread *part, uint32_t name,
                       uint32_t depth, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t fold_ns =
        __atomic_load_n(&segment->head.fold_ns, __ATOMIC_RELAXED);
    struct joule_region_cell *cell =
        &part->cell[(name + 7 * depth) % JOULE_REGION_CELLS];
    struct joule_region_cell ended = {.name = name,
                                      .depth = depth,
                                      .begin_ns = begin_ns,
                                      .end_ns = end_ns,
                                      .time_ns = end_ns - begin_ns};

    if (likely(cell->count > 0 && cell->name == name && cell->depth == depth &&
               end_ns - cell->begin_ns <= fold_ns)) {
        cell->end_ns = end_ns;
        cell->time_ns += end_ns - begin_ns;
        __atomic_store_n(&cell->count, cell->count + 1, __ATOMIC_RELEASE);
        return;
    }
    publish_cell(part, cell);
    if (end_ns - begin_ns < fold_ns) {
        *cell = ended;
        __atomic_store_n(&cell->count, 1, __ATOMIC_RELEASE);
    } else {
        ended.count = 1;
        publish_ended(part, &ended);
    }
}

/* ---- names ---- */

static bool is_name(uint32_t id, const char *text)
{
    return strncmp(segment->text + segment->name[id].at, text,
                   JOULE_REGION_NAME_MAX) == 0;
}

static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < JOULE_REGION_NAME_MAX && text[i]; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* The slot of this name, or the free one where it would be. */
static uint32_t *find_slot(const char *text)
{
    uint32_t at = hash(text), id;

    for (;; at++) {
        uint32_t *slot = &process->id[at % HASH_SLOTS];

        id = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (id == 0 || is_name(id - 1, text))
            return slot;
    }
}

/* 0 where there is no room. */
static uint32_t add_name(const char *text)
{
    struct joule_segment_head *head = &segment->head;
    size_t length = strnlen(text, JOULE_REGION_NAME_MAX);
    uint32_t id = head->name_count;

    if (id == JOULE_SEGMENT_NAMES ||
        length >= JOULE_SEGMENT_TEXT - head->text_used)
        return 0;
    memcpy(segment->text + head->text_used, text, length);
    segment->name[id].at = head->text_used;
    segment->name[id].length = (uint32_t)length;
    head->text_used += (uint32_t)length + 1;
    __atomic_store_n(&head->name_count, id + 1, __ATOMIC_RELEASE);
    __atomic_store_n(find_slot(text), id + 1, __ATOMIC_RELEASE);
    return id;
}

static uint32_t find_name(const char *text)
{
    uint32_t id = __atomic_load_n(find_slot(text), __ATOMIC_ACQUIRE);
    struct undisturbed u;

    if (id > 0)
        return id - 1;
    begin_undisturbed(&u);
    pthread_mutex_lock(&process->lock);
    id = *find_slot(text);
    id = id > 0 ? id - 1 : add_name(text);
    pthread_mutex_unlock(&process->lock);
    end_undisturbed(&u);
    return id;
}

/* The text that was at this place last time may be another by now. */
static uint32_t name_id(const char *text)
{
    size_t slot = ((uintptr_t)text >> 3) % CACHE_SLOTS;
    uint32_t id;

    if (likely(me.cache[slot].text == text && is_name(me.cache[slot].id, text)))
        return me.cache[slot].id;
    id = find_name(text);
    if (id == 0) {
        add_one(&segment->head.without_name);
        return 0;
    }
    me.cache[slot].text = text;
    me.cache[slot].id = id;
    return id;
}

/* ---- threads ---- */

static void end_thread(struct joule_region_thread *part, uint64_t ns)
{
    uint32_t depth = part->depth;

    for (int i = 0; i < JOULE_REGION_CELLS; i++)
        publish_cell(part, &part->cell[i]);
    if (depth > JOULE_REGION_DEPTH)
        depth = JOULE_REGION_DEPTH;
    while (depth-- > 0) {
        struct joule_region_record record = {
            .name = part->open[depth].name,
            .thread = (uint16_t)part->number,
            .depth = (uint8_t)depth,
            .kind = JOULE_REGION_UNENDED,
            .count = 1,
            .begin_ns = part->open[depth].begin_ns,
            .end_ns = ns,
            .time_ns = ns - part->open[depth].begin_ns,
        };

        __atomic_store_n(&part->depth, depth, __ATOMIC_RELEASE);
        publish(&record);
    }
}

/* Called at the end of a thread that has a part. */
static void on_thread_end(void *arg)
{
    struct joule_region_thread *part = arg;

    if (me.part != part || me.pid != process->pid)
        return; /* it was its parent's */
    end_thread(part, now_ns());
    me.pid = 0;
    me.part = NULL;
    if (part->number == JOULE_REGION_NO_THREAD)
        munmap(part, sizeof(*part));
    else
        __atomic_store_n(&part->is_used, 0, __ATOMIC_RELEASE);
}

static void note_thread(uint32_t count)
{
    uint32_t *most = &segment->head.thread_count;
    uint32_t before = __atomic_load_n(most, __ATOMIC_RELAXED);

    while (before < count &&
           !__atomic_compare_exchange_n(most, &before, count, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

/* A part of the segment, or where all are taken, one that is lost if the process
 * is killed; NULL: no memory. */
static struct joule_region_thread *new_part(void)
{
    struct joule_region_thread *part;

    for (uint32_t i = 0; i < JOULE_SEGMENT_THREADS; i++) {
        uint32_t free = 0;

        part = &segment->thread[i];
        if (__atomic_load_n(&part->is_used, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&part->is_used, &free, 1, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            part->number = i;
            note_thread(i + 1);
            return part;
        }
    }
    part = mmap(NULL, sizeof(*part), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (part == MAP_FAILED)
        return NULL;
    part->number = JOULE_REGION_NO_THREAD;
    return part;
}

/* ---- the process ---- */

static void make_process(void)
{
    size_t bytes = sizeof(struct process);
    struct process *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return;
    if (madvise(p, bytes, MADV_WIPEONFORK) < 0 ||
        pthread_key_create(&thread_end, on_thread_end) != 0) {
        munmap(p, bytes);
        return;
    }
    __atomic_store_n(&process, p, __ATOMIC_RELEASE);
}

/* Why there is nothing to be recorded. */
static int refuse(const char *sentence, const char *detail)
{
    snprintf(process->status, sizeof(process->status), "%s%s%s", sentence,
             detail ? ": " : "", detail ? detail : "");
    return -1;
}

/* JOB.STEP of the node.  -1: there is none. */
static int socket_name(struct sockaddr_un *address)
{
    const char *run = secure_getenv("JOULE_RUN_DIR");
    const char *node = secure_getenv("SLURMD_NODENAME");
    const char *job = secure_getenv("SLURM_JOB_ID");
    const char *step = secure_getenv("SLURM_STEP_ID");
    int length;

    if (!node || !job)
        return refuse("this is no step of a Slurm job", NULL);
    length =
        snprintf(address->sun_path, sizeof(address->sun_path),
                 "%s/%s/" JOULE_REGIONS_DIR "/%s.%s", run ? run : JOULE_RUN_DIR,
                 node, job, step ? step : "batch");
    if (length < 0 || (size_t)length >= sizeof(address->sun_path))
        return refuse("the name of the step's socket is too long", NULL);
    return 0;
}

static int send_segment(const struct sockaddr_un *address, int fd)
{
    struct joule_hello hello = {JOULE_SEGMENT_MAGIC, JOULE_SEGMENT_VERSION,
                                JOULE_SEGMENT_BYTES};
    struct iovec text = {&hello, sizeof(hello)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {
        .msg_name = (void *)address,
        .msg_namelen = sizeof(*address),
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    struct timeval wait = {.tv_sec = SEND_S};
    int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

    if (socket_fd < 0)
        return refuse("cannot make a socket", strerror(errno));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    if (sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0)
        rc = errno == ENOENT
                 ? refuse("the step has no energy profile (srun "
                          "--profile=energy), or slurm-joule is not there",
                          NULL)
                 : refuse("slurmstepd cannot be reached", strerror(errno));
    close(socket_fd);
    return rc;
}

/* The process's number among those of an MPI program, else of the step. */
static uint32_t find_rank(void)
{
    const char *const names[] = {"PMIX_RANK", "PMI_RANK",
                                 "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        unsigned long rank;
        char *end;

        if (!text || *text < '0' || *text > '9')
            continue;
        errno = 0;
        rank = strtoul(text, &end, 10);
        if (*end == '\0' && errno == 0 && rank < JOULE_REGION_NO_RANK)
            return (uint32_t)rank;
    }
    return JOULE_REGION_NO_RANK;
}

static struct joule_segment *make_segment(int fd)
{
    static const char other[] = JOULE_OTHER_NAMES;
    struct joule_segment *s;
    struct rlimit limit;

    /* It would end the program with SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
        limit.rlim_cur < JOULE_SEGMENT_BYTES) {
        errno = EFBIG;
        return NULL;
    }
    if (ftruncate(fd, JOULE_SEGMENT_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return NULL;
    s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->head.magic = JOULE_SEGMENT_MAGIC;
    s->head.version = JOULE_SEGMENT_VERSION;
    s->head.rank = find_rank();
    s->head.fold_ns = JOULE_REGION_FOLD_NS;
    memcpy(s->text, other, sizeof(other));
    s->name[0].length = sizeof(other) - 1;
    s->head.text_used = sizeof(other);
    s->head.name_count = 1;
    return s;
}

static int start_recording(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct joule_segment *s;
    int fd, rc;

    if (socket_name(&address) < 0)
        return -1;
    fd = memfd_create("joule-regions", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    s = fd < 0 ? NULL : make_segment(fd);
    rc = s ? send_segment(&address, fd)
           : refuse("no shared memory", strerror(errno));
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        if (s)
            munmap(s, sizeof(*s));
        return -1;
    }
    /* The parent's, in a child. */
    if (segment)
        munmap(segment, sizeof(*segment));
    segment = s;
    snprintf(process->status, sizeof(process->status), "recording");
    return 0;
}

/* Under the lock. */
static void decide(void)
{
    if (process->state != NEW)
        return;
    if (start_recording() < 0) {
        __atomic_store_n(&process->state, OFF, __ATOMIC_RELEASE);
        return;
    }
    __atomic_store_n(&process->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
    __atomic_store_n(&process->state, RECORDING, __ATOMIC_RELEASE);
}

static struct joule_region_thread *find_part(void)
{
    struct joule_region_thread *part;
    struct process *p;

    pthread_once(&once, make_process);
    p = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
    if (!p || __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == OFF)
        return NULL;
    pthread_mutex_lock(&p->lock);
    decide();
    pthread_mutex_unlock(&p->lock);
    part = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == RECORDING
               ? new_part()
               : NULL;
    if (part) {
        memset(me.cache, 0, sizeof(me.cache));
        me.part = part;
        me.pid = p->pid;
        pthread_setspecific(thread_end, part);
    }
    return part;
}

/* The thread's first call, or the first after fork.  NULL: nothing is recorded. */
static struct joule_region_thread *begin_thread(void)
{
    struct joule_region_thread *part;
    struct undisturbed u;
    int error = errno;

    begin_undisturbed(&u);
    part = find_part();
    end_undisturbed(&u);
    errno = error;
    return part;
}

static struct joule_region_thread *my_part(void)
{
    struct process *p = __atomic_load_n(&process, __ATOMIC_ACQUIRE);

    if (likely(p && me.pid != 0 &&
               me.pid == __atomic_load_n(&p->pid, __ATOMIC_RELAXED)))
        return me.part;
    if (p && __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == OFF)
        return NULL;
    return begin_thread();
}

/* ---- calls ---- */

JOULE_API void joule_region_begin(const char *name)
{
    struct joule_region_thread *part = my_part();
    uint32_t depth;

    if (!part || !name)
        return;
    depth = part->depth;
    if (likely(depth < JOULE_REGION_DEPTH)) {
        part->open[depth].name = name_id(name);
        part->open[depth].begin_ns = now_ns();
    } else {
        add_one(&segment->head.too_deep);
    }
    __atomic_store_n(&part->depth, depth + 1, __ATOMIC_RELEASE);
}

/* Of the regions that are open the innermost of this name, or of any; -1: none. */
static int find_open(const struct joule_region_thread *part, const char *name)
{
    int at = (int)part->depth - 1;

    if (!name)
        return at;
    while (at >= 0 && !is_name(part->open[at].name, name))
        at--;
    /* One that had no room for its name. */
    if (at < 0)
        for (at = (int)part->depth - 1; at >= 0 && part->open[at].name; at--)
            continue;
    return at;
}

JOULE_API void joule_region_end(const char *name)
{
    struct joule_region_thread *part = my_part();
    struct joule_region_open region;
    uint32_t depth;
    uint64_t ns;
    int at;

    if (!part)
        return;
    ns = now_ns();
    depth = part->depth;
    /* Which of those that are too deep it is, is not known. */
    if (depth > JOULE_REGION_DEPTH) {
        __atomic_store_n(&part->depth, depth - 1, __ATOMIC_RELEASE);
        return;
    }
    at = find_open(part, name);
    if (at < 0) {
        add_one(&segment->head.without_begin);
        return;
    }
    region = part->open[at];
    for (uint32_t i = (uint32_t)at; i + 1 < depth; i++)
        part->open[i] = part->open[i + 1];
    __atomic_store_n(&part->depth, depth - 1, __ATOMIC_RELEASE);
    end_region(part, region.name, (uint32_t)at, region.begin_ns, ns);
}

JOULE_API void joule_mark(const char *name)
{
    struct joule_region_thread *part = my_part();
    struct joule_region_record record = {
        .kind = JOULE_REGION_MARK,
        .count = 1,
    };

    if (!part || !name)
        return;
    record.begin_ns = now_ns();
    record.name = name_id(name);
    record.thread = (uint16_t)part->number;
    record.depth = (uint8_t)(part->depth < 255 ? part->depth : 255);
    record.end_ns = record.begin_ns;
    publish(&record);
}

JOULE_API const char *joule_status(void)
{
    if (!my_part() && !process)
        return "no memory, or a kernel before Linux 4.14";
    return process->status;
}
