/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/regions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/thread.h"
#include "common/node/node_dir.h"
#include "common/step/region_reader.h"

#define THREAD_STACK (256 * 1024)

/* Messages that are taken in a row. */
#define RECEIVE_MAX 64

/* CPU times are read at the energy series' period, but not more often or seldom. */
#define PERIOD_MIN_NS (10 * JOULE_NS_PER_MS)
#define PERIOD_MAX_NS JOULE_NS_PER_S

/* Records of all processes between two looks at the queue, 100 ms apart, of which
 * reading takes a fifth at most. */
#define PASS_NS   (100 * JOULE_NS_PER_MS)
#define PASS_ROWS 1024
#define READ_NS   JOULE_NS_PER_S
#define CLOSE_NS  (2 * JOULE_NS_PER_S)

/* A CPU time that lies this near to the line through the last two rows needs no
 * row: a part of a period. */
#define LINE_PART 50

/* The time for reading the CPU time of a process, of which it takes 1 %: with more
 * processes than the period has room for, it becomes longer. */
#define CPU_PACE_NS (50 * 1000)

/* Descriptors that are left to slurmstepd. */
#define OWN_FILES 256

#define NAME_SLOTS (2 * JOULE_REGIONS_NAMES)

struct process {
    struct joule_region_reader *reader;
    pid_t pid;
    int pidfd; /* -1: the kernel has none, or there is no descriptor left */
    clockid_t cpu_clock;
    uint32_t number;
    int64_t begin_ns; /* since the step began */
    /* CPU time: the last two rows, and the last reading if it has none */
    int64_t row_ns[2];
    uint64_t row_cpu_ns[2];
    int rows;
    int64_t due_ns; /* none is read before */
    int64_t read_ns;
    uint64_t read_cpu_ns;
    bool has_ended;
};

struct joule_regions {
    struct joule_regions_options opt;
    pthread_t thread;
    int dir_fd, socket_fd, stop_fd;
    char name[64];
    /* the thread's */
    int table, names_table, processes_table, cpu_table;
    struct process *processes;
    size_t count, room, most, refused;
    size_t turn;         /* the process that is read first */
    uint32_t registered; /* processes so far */
    char **names;
    uint32_t name_count;
    uint32_t name_slot[NAME_SLOTS]; /* index in names, + 1 */
    uint64_t hash_begin;            /* of names; nobody can foretell it */
    struct process *reading;        /* whose regions are handed out */
    size_t rows_left;               /* that may be added for them now */
    uint64_t dropped;               /* rows of them that were not */
    int64_t offset_ns;              /* opt.clock less CLOCK_MONOTONIC */
    int64_t now_ns;                 /* opt.clock */
};

/* ---- rows ---- */

static int64_t since_begin(const struct joule_regions *r, int64_t mono_ns)
{
    int64_t ns = mono_ns + r->offset_ns - joule_writer_start_ns(r->opt.writer);

    return ns > 0 ? ns : 0;
}

static void look_at_clocks(struct joule_regions *r)
{
    r->now_ns = joule_clock_mono_ns(r->opt.clock);
    r->offset_ns = r->now_ns - joule_deadline_now();
}

static void add_row(struct joule_regions *r, int table, const void *cells,
                    int64_t mono_ns)
{
    int64_t wall_ns = joule_clock_wall_ns(r->opt.clock);

    joule_writer_append(r->opt.writer, table, cells, wall_ns / JOULE_NS_PER_S,
                        mono_ns);
}

static int add_tables(struct joule_regions *r)
{
    static const struct joule_field regions[] = {
        {"Process", JOULE_FIELD_U64}, {"Thread", JOULE_FIELD_U64},
        {"Depth", JOULE_FIELD_U64},   {"Region", JOULE_FIELD_U64},
        {"Kind", JOULE_FIELD_U64},    {"Count", JOULE_FIELD_U64},
        {"BeginNs", JOULE_FIELD_U64}, {"EndNs", JOULE_FIELD_U64},
        {"TimeNs", JOULE_FIELD_U64},
    };
    static const struct joule_field names[] = {
        {"Region", JOULE_FIELD_U64},
        {"Name", JOULE_FIELD_TEXT},
    };
    static const struct joule_field processes[] = {
        {"Process", JOULE_FIELD_U64},     {"PID", JOULE_FIELD_U64},
        {"Rank", JOULE_FIELD_U64},        {"BeginNs", JOULE_FIELD_U64},
        {"EndNs", JOULE_FIELD_U64},       {"Lost", JOULE_FIELD_U64},
        {"TooDeep", JOULE_FIELD_U64},     {"WithoutBegin", JOULE_FIELD_U64},
        {"WithoutName", JOULE_FIELD_U64},
    };
    static const struct joule_field cpu[] = {
        {"Process", JOULE_FIELD_U64},
        {"CPUTimeNs", JOULE_FIELD_U64},
        {"AtNs", JOULE_FIELD_U64},
    };
#define ADD(name, fields, period)                                              \
    joule_writer_add_table(r->opt.writer, name, fields,                        \
                           sizeof(fields) / sizeof((fields)[0]), period)

    r->names_table = ADD("RegionNames", names, 0);
    r->table = ADD("Regions", regions, 0);
    r->cpu_table = ADD("RegionCPU", cpu, r->opt.period_ns);
    r->processes_table = ADD("RegionProcesses", processes, 0);
    return r->processes_table < 0 ? -1 : 0;
#undef ADD
}

/* ---- names ---- */

static void add_name_row(struct joule_regions *r, uint32_t number,
                         const char *text)
{
    uint64_t cells[1 + JOULE_TEXT_CELLS] = {number};

    for (size_t i = 0; text[i] && i < JOULE_REGION_NAME_MAX; i++)
        cells[1 + i / 8] |= (uint64_t)(unsigned char)text[i] << i % 8 * 8;
    add_row(r, r->names_table, cells, r->now_ns);
}

/* 0 is JOULE_OTHER_NAMES, of a step as of a process. */
static uint32_t number_name(void *arg, const char *text)
{
    struct joule_regions *r = arg;
    uint64_t hash = r->hash_begin;
    uint32_t *slot;
    char *copy;

    for (const char *c = text; *c; c++)
        hash = joule_hash_u64(hash, (unsigned char)*c);
    for (;; hash++) {
        slot = &r->name_slot[hash % NAME_SLOTS];
        if (*slot == 0)
            break;
        if (strcmp(r->names[*slot - 1], text) == 0)
            return *slot - 1;
    }
    copy = r->name_count < JOULE_REGIONS_NAMES ? strdup(text) : NULL;
    if (!copy)
        return 0;
    r->names[r->name_count] = copy;
    *slot = ++r->name_count;
    add_name_row(r, r->name_count - 1, text);
    return r->name_count - 1;
}

static void put_region(void *arg, const struct joule_region *region)
{
    struct joule_regions *r = arg;
    const uint64_t cells[] = {
        r->reading->number,
        region->thread,
        region->depth,
        region->name,
        region->kind,
        region->count,
        (uint64_t)since_begin(r, (int64_t)region->begin_ns),
        (uint64_t)since_begin(r, (int64_t)region->end_ns),
        region->time_ns,
    };

    /* Rows of other tables need the rest of the queue. */
    if (r->rows_left == 0) {
        r->dropped++;
        return;
    }
    r->rows_left--;
    add_row(r, r->table, cells, r->now_ns);
}

/* ---- CPU time ---- */

static void add_cpu_row(struct joule_regions *r, struct process *p, int64_t ns,
                        uint64_t cpu_ns)
{
    /* Rows of all processes are in one table, whose ElapsedTimeNs never falls: the
     * moment of this reading needs a column of its own. */
    const uint64_t cells[] = {
        p->number, cpu_ns,
        (uint64_t)(ns - joule_writer_start_ns(r->opt.writer))};

    p->row_ns[0] = p->row_ns[1];
    p->row_cpu_ns[0] = p->row_cpu_ns[1];
    p->row_ns[1] = ns;
    p->row_cpu_ns[1] = cpu_ns;
    p->rows++;
    add_row(r, r->cpu_table, cells, ns);
}

/* Whether a reading lies on the line through the last two rows. */
static bool is_on_line(const struct process *p, int64_t ns, uint64_t cpu_ns,
                       int64_t period_ns)
{
    double slope, off;

    if (p->rows < 2 || p->row_ns[1] <= p->row_ns[0])
        return false;
    slope = (double)(p->row_cpu_ns[1] - p->row_cpu_ns[0]) /
            (double)(p->row_ns[1] - p->row_ns[0]);
    off = (double)cpu_ns - (double)p->row_cpu_ns[1] -
          slope * (double)(ns - p->row_ns[1]);
    return off * LINE_PART < (double)period_ns &&
           -off * LINE_PART < (double)period_ns;
}

/* The reading before one that leaves the line has a row, too: it ends there. */
static void read_cpu(struct joule_regions *r, struct process *p)
{
    int64_t ns = joule_clock_mono_ns(r->opt.clock);
    struct timespec ts;
    uint64_t cpu_ns;

    if (p->has_ended || ns < p->due_ns || clock_gettime(p->cpu_clock, &ts) < 0)
        return;
    p->due_ns = ns + r->opt.period_ns / 2;
    cpu_ns = (uint64_t)ts.tv_sec * JOULE_NS_PER_S + (uint64_t)ts.tv_nsec;
    if (!is_on_line(p, ns, cpu_ns, r->opt.period_ns)) {
        if (p->read_ns)
            add_cpu_row(r, p, p->read_ns, p->read_cpu_ns);
        if (!is_on_line(p, ns, cpu_ns, r->opt.period_ns)) {
            add_cpu_row(r, p, ns, cpu_ns);
            p->read_ns = 0;
            return;
        }
    }
    p->read_ns = ns;
    p->read_cpu_ns = cpu_ns;
}

/* ---- processes ---- */

static bool has_ended(const struct process *p)
{
    struct pollfd poll_fd = {.fd = p->pidfd, .events = POLLIN};
    struct timespec ts;

    if (p->has_ended || p->pidfd >= 0)
        return p->has_ended || poll(&poll_fd, 1, 0) > 0;
    return clock_gettime(p->cpu_clock, &ts) < 0;
}

/* A short one may have ended before its message is read, and has no number if its
 * parent knows that. */
static void set_process(struct process *p, pid_t pid)
{
    p->pid = pid;
    p->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    p->has_ended = pid <= 0 || (p->pidfd < 0 && errno == ESRCH) ||
                   clock_getcpuclockid(pid, &p->cpu_clock) != 0;
}

/* [most]: records that may still be read. */
static void end_process(struct joule_regions *r, struct process *p, size_t most)
{
    const struct joule_region_sink sink = {number_name, put_region, r};
    struct joule_region_counts counts;
    uint64_t cells[9];

    if (p->read_ns)
        add_cpu_row(r, p, p->read_ns, p->read_cpu_ns);
    r->reading = p;
    r->rows_left = 2 * PASS_ROWS;
    r->dropped = 0;
    joule_region_reader_end(
        p->reader, &sink,
        (uint64_t)(joule_writer_start_ns(r->opt.writer) - r->offset_ns),
        (uint64_t)joule_deadline_now(), most, &counts);
    cells[0] = p->number;
    cells[1] = (uint64_t)p->pid;
    cells[2] = joule_region_reader_rank(p->reader);
    cells[3] = (uint64_t)p->begin_ns;
    cells[4] = (uint64_t)since_begin(r, joule_deadline_now());
    cells[5] = counts.lost + r->dropped;
    cells[6] = counts.too_deep;
    cells[7] = counts.without_begin;
    cells[8] = counts.without_name;
    add_row(r, r->processes_table, cells, r->now_ns);
}

static void release_process(struct process *p)
{
    joule_region_reader_close(p->reader);
    if (p->pidfd >= 0)
        close(p->pidfd);
}

static int make_room(struct joule_regions *r)
{
    size_t room = r->room ? 2 * r->room : 16;
    struct process *more;

    if (r->count < r->room)
        return 0;
    more = reallocarray(r->processes, room, sizeof(*more));
    if (!more)
        return -1;
    r->processes = more;
    r->room = room;
    return 0;
}

/* Slurm says its period a second after the step has begun. */
static void find_period(struct joule_regions *r)
{
    int64_t ns = r->opt.period_ns;

    if (ns == 0 && r->opt.ask_period_ns)
        ns = r->opt.ask_period_ns();
    if (ns <= 0 || ns > PERIOD_MAX_NS)
        ns = PERIOD_MAX_NS;
    r->opt.period_ns = ns < PERIOD_MIN_NS ? PERIOD_MIN_NS : ns;
}

/* The file of a message, or -1; a sender may add others. */
static int take_files(const struct cmsghdr *c)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int file = -1;

    for (size_t i = 0; i < count; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
        if (file >= 0 || count > 1)
            close(fd);
        else
            file = fd;
    }
    return file;
}

/* The next message: 1; 0: there is none.  *ret_file is -1 if it is no good. */
static int receive(const struct joule_regions *r, struct ucred *ret_peer,
                   int *ret_file)
{
    struct joule_hello hello;
    struct iovec text = {&hello, sizeof(hello)};
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *c;

    *ret_file = -1;
    *ret_peer = (struct ucred){.uid = (uid_t)-1};
    if (recvmsg(r->socket_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
        return 0;
    for (c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_RIGHTS)
            *ret_file = take_files(c);
        else if (c->cmsg_type == SCM_CREDENTIALS)
            memcpy(ret_peer, CMSG_DATA(c), sizeof(*ret_peer));
    }
    return 1;
}

/* Takes [file] if it succeeds. */
static int register_process(struct joule_regions *r, pid_t pid, int file)
{
    struct process p = {.pidfd = -1};
    struct joule_error err;

    if (r->count >= r->most || make_room(r) < 0) {
        r->refused++;
        return -1;
    }
    p.reader = joule_region_reader_open(file, &err);
    if (!p.reader)
        return -1;
    if (r->registered == 0) {
        find_period(r);
        if (add_tables(r) < 0) {
            joule_region_reader_close(p.reader);
            return 0;
        }
        number_name(r, JOULE_OTHER_NAMES);
    }
    set_process(&p, pid);
    joule_region_reader_fold(p.reader, (uint64_t)r->opt.period_ns);
    p.number = r->registered++;
    p.begin_ns = since_begin(r, joule_deadline_now());
    r->processes[r->count++] = p;
    read_cpu(r, &r->processes[r->count - 1]);
    return 0;
}

/* false: there may be more. */
static bool receive_some(struct joule_regions *r)
{
    struct ucred peer;
    int file;

    look_at_clocks(r);
    for (int i = 0; i < RECEIVE_MAX; i++) {
        if (!receive(r, &peer, &file))
            return true;
        if (file >= 0 &&
            (peer.uid != r->opt.uid || register_process(r, peer.pid, file) < 0))
            close(file);
    }
    return false;
}

/* ---- the thread ---- */

/* Read regions of all processes, or until [until_ns], beginning with another one each
 * time.  false: there may be more of them. */
static bool read_regions(struct joule_regions *r, int64_t until_ns)
{
    const struct joule_region_sink sink = {number_name, put_region, r};
    uint64_t from_ns =
        (uint64_t)(joule_writer_start_ns(r->opt.writer) - r->offset_ns);
    size_t left = PASS_ROWS, i;

    r->rows_left = PASS_ROWS;
    for (i = 0; i < r->count && left > 0; i++) {
        if (joule_deadline_left(until_ns) == 0)
            break;
        r->reading = &r->processes[(r->turn + i) % r->count];
        left -= joule_region_reader_read(r->reading->reader, &sink, from_ns,
                                         (uint64_t)joule_deadline_now(), left);
    }
    r->turn += i < r->count ? i : 1;
    return left > 0 && i == r->count;
}

/* Of those that have ended, or of [all], while there is room for their rows, and
 * until [until_ns]. */
static void end_processes(struct joule_regions *r, bool all, int64_t until_ns)
{
    for (size_t i = 0; i < r->count;) {
        struct process *p = &r->processes[i];

        if (joule_writer_is_behind(r->opt.writer) ||
            joule_deadline_left(until_ns) == 0)
            return;
        if (!all && !has_ended(p)) {
            i++;
            continue;
        }
        end_process(r, p, PASS_ROWS);
        release_process(p);
        *p = r->processes[--r->count];
    }
}

/* [read_at_ns]: when regions are read next. */
static void work(struct joule_regions *r, int64_t *read_at_ns)
{
    int64_t now_ns = joule_deadline_now(), until_ns = now_ns + PASS_NS / 5;
    bool is_done;

    look_at_clocks(r);
    for (size_t i = 0; i < r->count; i++)
        read_cpu(r, &r->processes[i]);
    if (now_ns < *read_at_ns)
        return;
    is_done = false;
    if (!joule_writer_is_behind(r->opt.writer)) {
        is_done = read_regions(r, until_ns);
        if (is_done)
            end_processes(r, false, until_ns);
    }
    *read_at_ns = now_ns + (is_done ? READ_NS : PASS_NS);
}

/* All that is there, as fast as the queue lets it; what remains then is not told. */
static void finish(struct joule_regions *r)
{
    int64_t end_ns = joule_deadline_in(CLOSE_NS);
    bool is_read = false;

    while (!receive_some(r) && joule_deadline_left(end_ns) > 0)
        continue;
    for (size_t i = 0; i < r->count; i++)
        read_cpu(r, &r->processes[i]);
    while (r->count > 0 && joule_deadline_left(end_ns) > 0) {
        if (joule_writer_is_behind(r->opt.writer))
            joule_sleep_ns(PERIOD_MIN_NS);
        else if (!is_read)
            is_read = read_regions(r, end_ns);
        else
            end_processes(r, true, end_ns);
    }
}

static void run(struct joule_regions *r)
{
    struct pollfd fds[] = {{.fd = r->stop_fd, .events = POLLIN},
                           {.fd = r->socket_fd, .events = POLLIN}};
    int64_t next_ns = 0, read_at_ns = 0, pace_ns;

    for (;;) {
        int64_t left_ns = joule_deadline_left(next_ns);
        struct timespec wait = joule_timespec(left_ns);

        if (ppoll(fds, 2, r->count ? &wait : NULL, NULL) < 0 && errno != EINTR)
            return;
        if (fds[0].revents)
            return;
        if (fds[1].revents)
            receive_some(r);
        if (r->count == 0 || joule_deadline_left(next_ns) > 0)
            continue;
        work(r, &read_at_ns);
        pace_ns = (int64_t)r->count * CPU_PACE_NS;
        if (pace_ns < r->opt.period_ns)
            pace_ns = r->opt.period_ns;
        next_ns += pace_ns;
        if (joule_deadline_left(next_ns) == 0)
            next_ns = joule_deadline_in(pace_ns);
    }
}

static void *thread_main(void *arg)
{
    struct joule_regions *r = arg;

    prctl(PR_SET_NAME, "joule-regions");
    run(r);
    finish(r);
    return NULL;
}

/* ---- the socket ---- */

/* Each takes two descriptors, and slurmstepd needs some itself. */
static size_t count_room(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
        limit.rlim_cur >= OWN_FILES + 2 * JOULE_REGIONS_PROCESSES)
        return JOULE_REGIONS_PROCESSES;
    return limit.rlim_cur > OWN_FILES ? (limit.rlim_cur - OWN_FILES) / 2 : 0;
}

/* RUNDIR/NODE/regions, which may be passed through and not listed. */
static int open_dir(const struct joule_regions_options *opt,
                    struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    int node_fd =
        joule_nodedir_open(opt->root_fd, opt->node, true, boot_id, err);
    int fd = -1;

    if (node_fd < 0)
        return -1;
    if (mkdirat(node_fd, JOULE_REGIONS_DIR, 0711) < 0 && errno != EEXIST)
        joule_error_set(err, errno, "cannot make the directory of regions: %s",
                        strerror(errno));
    else
        fd = openat(node_fd, JOULE_REGIONS_DIR,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 &&
        (fchmod(fd, 0711) < 0 ||
         joule_file_check_owner(fd, S_IFDIR, S_IWGRP | S_IWOTH,
                                "the directory of regions", err) < 0)) {
        joule_close(fd);
        fd = -1;
    }
    joule_close(node_fd);
    return fd;
}

static struct sockaddr_un address_of(int dir_fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path),
             "/proc/self/fd/%d/%.64s", dir_fd, name);
    return address;
}

/* Remove the sockets of steps whose slurmstepd was killed: a connect to them is
 * refused. */
static void remove_stale(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct sockaddr_un address = address_of(dir_fd, entry->d_name);
        int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (s >= 0 && entry->d_name[0] != '.' &&
            connect(s, (struct sockaddr *)&address, sizeof(address)) < 0 &&
            errno == ECONNREFUSED)
            unlinkat(dir_fd, entry->d_name, 0);
        joule_close(s);
    }
    if (dir)
        closedir(dir);
    else
        joule_close(fd);
}

static int make_socket(struct joule_regions *r, struct joule_error *err)
{
    struct sockaddr_un address = address_of(r->dir_fd, r->name);
    int on = 1;

    remove_stale(r->dir_fd);

    r->socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (unlinkat(r->dir_fd, r->name, 0) < 0 && errno != ENOENT)
        return joule_error_set(err, errno, "cannot replace the socket %s: %s",
                               r->name, strerror(errno));
    if (r->socket_fd < 0 ||
        bind(r->socket_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchmodat(r->dir_fd, r->name, 0600, 0) < 0 ||
        fchownat(r->dir_fd, r->name, r->opt.uid, r->opt.gid,
                 AT_SYMLINK_NOFOLLOW) < 0 ||
        setsockopt(r->socket_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return joule_error_set(err, errno, "cannot make the socket %s: %s",
                               r->name, strerror(errno));
    return 0;
}

static void release(struct joule_regions *r)
{
    if (r->dir_fd >= 0 && r->socket_fd >= 0)
        unlinkat(r->dir_fd, r->name, 0);
    for (size_t i = 0; i < r->count; i++)
        release_process(&r->processes[i]);
    for (uint32_t i = 0; i < r->name_count; i++)
        free(r->names[i]);
    free(r->names);
    free(r->processes);
    joule_close(r->dir_fd);
    joule_close(r->socket_fd);
    joule_close(r->stop_fd);
    free(r);
}

struct joule_regions *
joule_regions_create(const struct joule_regions_options *opt,
                     struct joule_error *err)
{
    struct joule_regions *r = calloc(1, sizeof(*r));
    int rc;

    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->opt = *opt;
    r->most = count_room();
    r->dir_fd = r->socket_fd = r->stop_fd = -1;
    snprintf(r->name, sizeof(r->name), "%s", opt->name);
    r->names = calloc(JOULE_REGIONS_NAMES, sizeof(*r->names));
    if (getrandom(&r->hash_begin, sizeof(r->hash_begin), GRND_NONBLOCK) < 0)
        r->hash_begin = JOULE_HASH_BEGIN;
    r->stop_fd = eventfd(0, EFD_CLOEXEC);
    r->dir_fd = open_dir(opt, err);
    if (!r->names || r->stop_fd < 0)
        joule_error_set(err, ENOMEM, "out of memory");
    else if (r->dir_fd >= 0 && make_socket(r, err) == 0) {
        rc = joule_thread_start(&r->thread, THREAD_STACK, thread_main, r);
        if (rc == 0)
            return r;
        joule_error_set(err, rc, "cannot start the thread of regions: %s",
                        strerror(rc));
    }
    release(r);
    return NULL;
}

size_t joule_regions_destroy(struct joule_regions *r)
{
    uint64_t one = 1;
    size_t refused;

    if (!r || write(r->stop_fd, &one, sizeof(one)) < 0) /* cannot be */
        return 0;
    pthread_join(r->thread, NULL);
    refused = r->refused;
    release(r);
    return refused;
}
