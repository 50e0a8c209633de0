/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "tools/pmserver/counter.h"
#include "tools/pmserver/peer.h"
#include "tools/pmserver/reply.h"

#define QUIET_NS (5 * JOULE_NS_PER_S)
/* Clients wait for the first figures of a step, and those of a set's end. */
#define LATE_NS (3 * JOULE_NS_PER_S)
/* No longer is the last power carried on, as slurmd itself does. */
#define CARRY_NS  (300 * JOULE_NS_PER_S)
#define REFUSE_NS JOULE_NS_PER_S /* where no connection can be taken */
#define BACKLOG   16
#define NEVER     INT64_MAX

#define NO_DEVICE -1
#define TOO_OFTEN -2 /* READ_DEVICE: the highest frequency follows */

/* What a client reads of a device all the time. */
struct stream {
    struct joule_pm_device *device; /* NULL: none */
    double step_s;
    int64_t time_ns; /* of what was sent last; 0: nothing yet */
    double amount[JOULE_PM_LINES_MAX];
};

struct connection {
    int fd; /* -1: free */
    char address[INET_ADDRSTRLEN + 8];
    unsigned char in[2 * JOULE_PM_REQUEST_MAX];
    size_t in_len;
    struct joule_pm_reply reply;
    struct joule_pm_counter *counter;
    struct stream stream;
    bool waits; /* [request] is answered when there are figures */
    struct joule_pm_request request;
    int64_t late_ns;  /* or by then */
    int64_t quiet_ns; /* when it is closed; CLOCK_MONOTONIC as the other */
    bool ends;        /* it is closed when the reply is sent */
};

struct joule_pm_server {
    int fd;
    uint16_t port;
    struct joule_pm_devices *devices;
    const struct joule_clock *clock;
    int64_t refuse_ns; /* no connection is taken until then */
    struct connection connection[JOULE_PM_CONNECTIONS];
};

/* ---- connections ---- */

static void stop(struct connection *c)
{
    joule_pm_counter_destroy(c->counter);
    c->counter = NULL;
    if (c->stream.device)
        joule_pm_device_let_go(c->stream.device);
    c->stream.device = NULL;
    c->waits = false;
}

/* What was sent and is not read would make the kernel drop the last answer. */
static void discard_input(const struct connection *c)
{
    char rest[4096];

    for (int i = 0; i < 16; i++)
        if (recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT) <= 0)
            return;
}

static void end(struct connection *c)
{
    stop(c);
    if (c->ends)
        discard_input(c);
    joule_pm_reply_clear(&c->reply);
    joule_close(c->fd);
    c->fd = -1;
}

static struct connection *free_one(struct joule_pm_server *s)
{
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
        if (s->connection[i].fd < 0)
            return &s->connection[i];
    return NULL;
}

static bool may_ask(int fd)
{
    uid_t uid;

    return joule_pm_peer_uid(fd, &uid) == 0 && (uid == 0 || uid == geteuid());
}

static void take_connection(struct joule_pm_server *s)
{
    struct sockaddr_in from = {0};
    socklen_t size = sizeof(from);
    struct connection *c;
    char ip[INET_ADDRSTRLEN] = "";
    int on = 1, fd;

    fd = accept4(s->fd, (struct sockaddr *)&from, &size,
                 SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM)
            s->refuse_ns = joule_deadline_in(REFUSE_NS);
        return;
    }
    c = free_one(s);
    if (!c || !may_ask(fd)) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *c = (struct connection){
        .fd = fd,
        .quiet_ns = joule_deadline_in(QUIET_NS),
    };
    inet_ntop(AF_INET, &from.sin_addr, ip, sizeof(ip));
    snprintf(c->address, sizeof(c->address), "%s:%u", ip,
             (unsigned)ntohs(from.sin_port));
}

/* ---- devices ---- */

static void feed_stream(struct connection *c)
{
    struct stream *s = &c->stream;
    const struct joule_pm_device *d = s->device;
    double passed_s = (double)(d->time_ns - s->time_ns) / 1e9, value;

    if (!d->known || (s->time_ns && passed_s < 0.75 * s->step_s))
        return;
    /* One that is slow misses some. */
    if (s->time_ns && !joule_pm_reply_is_empty(&c->reply))
        return;
    if (s->time_ns) {
        joule_pm_put_int(&c->reply, (int32_t)d->lines);
        for (unsigned i = 0; i < d->lines; i++) {
            value = (d->amount[i] - s->amount[i]) / passed_s;
            joule_pm_put(&c->reply, &value, sizeof(value));
        }
    }
    s->time_ns = d->time_ns;
    memcpy(s->amount, d->amount, sizeof(s->amount));
}

static void read_device(struct joule_pm_server *s, struct joule_pm_device *d)
{
    if (joule_pm_device_read(d) <= 0)
        return;
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++) {
        struct connection *c = &s->connection[i];

        if (c->fd < 0)
            continue;
        if (c->counter && joule_pm_counter_device(c->counter) == d)
            joule_pm_counter_feed(c->counter);
        if (c->stream.device == d)
            feed_stream(c);
    }
}

static void read_due(struct joule_pm_server *s)
{
    int64_t now_ns = joule_deadline_now();

    for (size_t i = 0; i < s->devices->count; i++) {
        struct joule_pm_device *d = &s->devices->device[i];

        if (d->users == 0 || d->due_ns > now_ns)
            continue;
        d->due_ns += d->period_ns;
        if (d->due_ns <= now_ns)
            d->due_ns = now_ns + d->period_ns;
        read_device(s, d);
    }
}

/* ---- requests ---- */

static void create(struct joule_pm_server *s, struct connection *c)
{
    struct joule_pm_device *d =
        joule_pm_devices_get(s->devices, c->request.device);

    if (d && !c->counter && !c->stream.device)
        c->counter = joule_pm_counter_create(d, &c->request);
    else
        d = NULL;
    joule_pm_put_int(&c->reply, d && c->counter ? 0 : -1);
}

/* START and CONTINUE; false: it must wait. */
static bool begin(struct joule_pm_server *s, struct connection *c, bool late)
{
    struct joule_pm_device *d;
    bool known;
    int rc = -1;

    if (c->counter && !joule_pm_counter_is_open(c->counter)) {
        d = joule_pm_counter_device(c->counter);
        read_device(s, d);
        known = d->known && !d->fails;
        if (!known && !late)
            return false;
        if (c->request.operation == JOULE_PM_START)
            joule_pm_counter_clear(c->counter);
        if (known)
            rc = joule_pm_counter_begin(c->counter,
                                        joule_clock_mono_ns(s->clock));
    }
    joule_pm_put_int(&c->reply, rc);
    return true;
}

static void stop_counter(struct joule_pm_server *s, struct connection *c)
{
    int64_t now_ns = joule_clock_mono_ns(s->clock);
    int rc = -1;

    if (c->counter) {
        rc = joule_pm_counter_end(c->counter, now_ns);
        read_device(s, joule_pm_counter_device(c->counter));
    }
    joule_pm_put_int(&c->reply, rc);
}

static void put_data(struct connection *c)
{
    int32_t index[JOULE_PM_SETS_MAX + 1];
    unsigned line[JOULE_PM_LINES_MAX];
    unsigned lines = joule_pm_counter_lines(c->counter, line);
    unsigned rows = joule_pm_counter_is_aggregate(c->counter) ? 1 : lines;
    size_t sets = joule_pm_counter_sizes(c->counter, index);
    size_t samples = (size_t)index[sets];
    double *values = malloc((samples + 1) * sizeof(*values));

    if (!values) {
        joule_pm_put_int(&c->reply, -1);
        return;
    }
    joule_pm_put_int(&c->reply, (int32_t)(samples * rows));
    joule_pm_put_int(&c->reply, (int32_t)sets + 1);
    joule_pm_put_int(&c->reply, (int32_t)lines);
    joule_pm_put(&c->reply, index, (sets + 1) * sizeof(*index));
    for (unsigned i = 0; i < rows; i++) {
        joule_pm_counter_samples(c->counter, i, values);
        joule_pm_put(&c->reply, values, samples * sizeof(*values));
    }
    free(values);
}

/* GET; false: it must wait. */
static bool get(struct joule_pm_server *s, struct connection *c, bool late)
{
    const struct joule_pm_counter *k = c->counter;
    const struct joule_pm_device *d;

    if (!k || joule_pm_counter_is_open(k) || joule_pm_counter_sets(k) == 0) {
        joule_pm_put_int(&c->reply, -1);
        return true;
    }
    if (!joule_pm_counter_is_complete(k)) {
        if (!late)
            return false;
        d = joule_pm_counter_device(k);
        if (d->fails || joule_clock_mono_ns(s->clock) - d->time_ns > CARRY_NS) {
            joule_pm_put_int(&c->reply, -1);
            return true;
        }
    }
    put_data(c);
    return true;
}

static void finalize(struct connection *c)
{
    joule_pm_put_int(&c->reply, c->counter ? 0 : -1);
    stop(c);
    c->ends = true;
}

static void tell_device(struct joule_pm_server *s, struct connection *c)
{
    const struct joule_pm_device *d =
        joule_pm_devices_get(s->devices, c->request.device);

    if (!d) {
        joule_pm_put_int(&c->reply, -1);
        return;
    }
    joule_pm_put_int(&c->reply, d->max_hz);
    joule_pm_put_int(&c->reply, (int32_t)d->lines);
    joule_pm_put_text(&c->reply, d->name);
}

static void list_devices(struct joule_pm_server *s, struct connection *c)
{
    joule_pm_put_int(&c->reply, (int32_t)s->devices->count);
    for (size_t i = 0; i < s->devices->count; i++)
        joule_pm_put_text(&c->reply, s->devices->device[i].name);
}

/* Counters of a device, each with its lines. */
static void tell_counters(const struct joule_pm_server *s,
                          const struct joule_pm_device *d,
                          struct joule_pm_reply *reply)
{
    unsigned line[JOULE_PM_LINES_MAX];
    int32_t count = 0;

    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
        count += s->connection[i].counter &&
                 joule_pm_counter_device(s->connection[i].counter) == d;
    joule_pm_put_int(reply, count);
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++) {
        const struct connection *c = &s->connection[i];
        unsigned lines;

        if (!c->counter || joule_pm_counter_device(c->counter) != d)
            continue;
        lines = joule_pm_counter_lines(c->counter, line);
        joule_pm_put_int(reply, (int32_t)i);
        joule_pm_put_text(reply, c->address);
        joule_pm_put_int(reply, (int32_t)lines);
        for (unsigned k = 0; k < lines; k++)
            joule_pm_put_int(reply, (int32_t)line[k]);
    }
}

static void tell_status(const struct joule_pm_server *s, struct connection *c)
{
    char host[64] = "", name[JOULE_PM_NAME_MAX + 1];

    gethostname(host, sizeof(host) - 1);
    joule_pm_put_int(&c->reply, (int32_t)s->devices->count);
    for (size_t i = 0; i < s->devices->count; i++) {
        const struct joule_pm_device *d = &s->devices->device[i];

        joule_pm_put_text(&c->reply, d->name);
        joule_pm_put_int(&c->reply, d->max_hz);
        joule_pm_put_int(&c->reply, (int32_t)d->lines);
        joule_pm_put_int(&c->reply, 0); /* one computer */
        joule_pm_put_text(&c->reply, host);
        for (unsigned k = 0; k < d->lines; k++) {
            d->kind->line(d, k, name);
            joule_pm_put_int(&c->reply, (int32_t)k);
            joule_pm_put_text(&c->reply, name);
            joule_pm_put_float(&c->reply, 0); /* volts: it is no power line */
            joule_pm_put_text(&c->reply, d->kind->description);
        }
        tell_counters(s, d, &c->reply);
    }
}

static void read_all_the_time(struct joule_pm_server *s, struct connection *c)
{
    struct joule_pm_device *d =
        joule_pm_devices_get(s->devices, c->request.device);
    int hz = c->request.frequency;

    if (!d || c->counter || joule_pm_device_hold(d, NULL) < 0) {
        joule_pm_put_int(&c->reply, NO_DEVICE);
        c->ends = true;
        return;
    }
    if (hz < 0 || hz > d->max_hz) {
        joule_pm_device_let_go(d);
        joule_pm_put_int(&c->reply, TOO_OFTEN);
        joule_pm_put_int(&c->reply, d->max_hz);
        c->ends = true;
        return;
    }
    if (hz == 0)
        hz = d->max_hz;
    c->stream = (struct stream){
        .device = d,
        .step_s = round((double)d->max_hz / hz) / d->max_hz,
    };
    joule_pm_put_int(&c->reply, 0);
    read_device(s, d);
    feed_stream(c);
}

/* Answer, or let it wait for figures that come soon. */
static void answer(struct joule_pm_server *s, struct connection *c, bool late)
{
    bool done = true;

    switch (c->request.operation) {
    case JOULE_PM_CREATE:
        create(s, c);
        break;
    case JOULE_PM_START:
    case JOULE_PM_CONTINUE:
        done = begin(s, c, late);
        break;
    case JOULE_PM_STOP:
        stop_counter(s, c);
        break;
    case JOULE_PM_GET:
        done = get(s, c, late);
        break;
    case JOULE_PM_FINALIZE:
        finalize(c);
        break;
    case JOULE_PM_INFO_DEVICE:
        tell_device(s, c);
        break;
    case JOULE_PM_LIST_DEVICES:
        list_devices(s, c);
        break;
    case JOULE_PM_STATUS:
        tell_status(s, c);
        break;
    case JOULE_PM_READ_DEVICE:
        read_all_the_time(s, c);
        break;
    }
    if (!done && !c->waits)
        c->late_ns = joule_deadline_in(LATE_NS);
    c->waits = !done;
}

/* ---- input and output ---- */

static void drop_input(struct connection *c, size_t len)
{
    c->in_len -= len;
    memmove(c->in, c->in + len, c->in_len);
}

/* A client of a stream says 0 when it has had enough; nothing else matters. */
static void read_acknowledgements(struct connection *c)
{
    int32_t word;

    while (c->in_len >= sizeof(word)) {
        memcpy(&word, c->in, sizeof(word));
        drop_input(c, sizeof(word));
        if (word == 0)
            c->ends = true;
    }
}

/* What has come, as far as it can be answered now. */
static void use_input(struct joule_pm_server *s, struct connection *c)
{
    while (c->in_len > 0 && !c->ends && !c->waits &&
           joule_pm_reply_is_empty(&c->reply)) {
        ssize_t n;

        if (c->stream.device) {
            read_acknowledgements(c);
            return;
        }
        n = joule_pm_request_parse(c->in, c->in_len, &c->request);
        if (n == 0)
            return;
        if (n < 0) {
            joule_pm_put_int(&c->reply, -1);
            c->ends = true;
            return;
        }
        drop_input(c, (size_t)n);
        answer(s, c, false);
    }
}

static int read_input(struct connection *c)
{
    ssize_t n;

    if (c->in_len == sizeof(c->in))
        return 0;
    n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
    if (n == 0)
        return -1;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    c->in_len += (size_t)n;
    return 0;
}

/* A counter, or a stream, is asked for nothing for as long as it likes. */
static void set_quiet(struct connection *c, bool moved)
{
    bool rests = joule_pm_reply_is_empty(&c->reply) && c->in_len == 0 &&
                 (c->counter || c->stream.device);

    if (rests || c->waits)
        c->quiet_ns = NEVER;
    else if (moved || c->quiet_ns == NEVER)
        c->quiet_ns = joule_deadline_in(QUIET_NS);
}

/* All that can be done for a connection now. */
static void serve(struct joule_pm_server *s, struct connection *c, short events)
{
    int64_t now_ns = joule_deadline_now();
    bool moved = false;
    int64_t sent;

    if ((events & POLLIN) ? read_input(c) < 0
                          : (events & (POLLERR | POLLHUP))) {
        end(c);
        return;
    }
    if (!events && !c->waits) {
        if (now_ns >= c->quiet_ns)
            end(c);
        return;
    }
    if (c->waits)
        answer(s, c, now_ns >= c->late_ns);
    for (;;) {
        use_input(s, c);
        if (joule_pm_reply_is_empty(&c->reply))
            break;
        sent = joule_pm_reply_send(&c->reply, c->fd);
        if (sent < 0) {
            end(c);
            return;
        }
        moved |= sent > 0;
        if (!joule_pm_reply_is_empty(&c->reply))
            break;
    }
    set_quiet(c, moved);
    if (c->ends && joule_pm_reply_is_empty(&c->reply))
        end(c);
}

/* ---- the loop ---- */

static int64_t next_deadline(const struct joule_pm_server *s)
{
    int64_t next_ns = NEVER;

    for (size_t i = 0; i < s->devices->count; i++)
        if (s->devices->device[i].users > 0 &&
            s->devices->device[i].due_ns < next_ns)
            next_ns = s->devices->device[i].due_ns;
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++) {
        const struct connection *c = &s->connection[i];

        if (c->fd >= 0 && c->quiet_ns < next_ns)
            next_ns = c->quiet_ns;
        if (c->fd >= 0 && c->waits && c->late_ns < next_ns)
            next_ns = c->late_ns;
    }
    return next_ns;
}

static int timeout_ms(int64_t deadline_ns)
{
    int64_t left_ms;

    if (deadline_ns == NEVER)
        return -1;
    left_ms = (joule_deadline_left(deadline_ns) + JOULE_NS_PER_MS - 1) /
              JOULE_NS_PER_MS;
    return left_ms < 60000 ? (int)left_ms : 60000;
}

static short wanted(const struct connection *c)
{
    short events = 0;

    if (!joule_pm_reply_is_empty(&c->reply))
        events |= POLLOUT;
    if (!c->waits && !c->ends && c->in_len < sizeof(c->in))
        events |= POLLIN;
    return events;
}

int joule_pm_server_run(struct joule_pm_server *s, int wake_fd)
{
    struct pollfd p[2 + JOULE_PM_CONNECTIONS];
    int64_t next_ns, now_ns;
    int rc;

    for (;;) {
        now_ns = joule_deadline_now();
        next_ns = next_deadline(s);
        p[0] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
        p[1] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        if (s->refuse_ns > now_ns) {
            p[1].fd = -1;
            if (s->refuse_ns < next_ns)
                next_ns = s->refuse_ns;
        }
        for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
            p[2 + i] = (struct pollfd){.fd = s->connection[i].fd,
                                       .events = wanted(&s->connection[i])};
        rc = poll(p, 2 + JOULE_PM_CONNECTIONS, timeout_ms(next_ns));
        if (rc < 0 && errno != EINTR)
            return -1;
        if (rc > 0 && p[0].revents)
            return 0;
        read_due(s);
        for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
            if (s->connection[i].fd >= 0)
                serve(s, &s->connection[i],
                      rc > 0 ? p[2 + i].revents : (short)0);
        if (rc > 0 && (p[1].revents & POLLIN))
            take_connection(s);
    }
}

/* ---- open and close ---- */

static int listen_on(struct joule_pm_server *s, uint16_t port)
{
    struct sockaddr_in here = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof(here);
    int on = 1;

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0 ||
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(s->fd, (struct sockaddr *)&here, sizeof(here)) < 0 ||
        listen(s->fd, BACKLOG) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&here, &size) < 0)
        return -1;
    s->port = ntohs(here.sin_port);
    return 0;
}

struct joule_pm_server *joule_pm_server_open(uint16_t port,
                                             struct joule_pm_devices *devices,
                                             const struct joule_clock *clock,
                                             struct joule_error *err)
{
    struct joule_pm_server *s = calloc(1, sizeof(*s));

    if (!s) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    s->devices = devices;
    s->clock = clock;
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
        s->connection[i].fd = -1;
    if (listen_on(s, port) < 0) {
        joule_error_set(err, errno, "cannot listen on 127.0.0.1:%u: %m",
                        (unsigned)port);
        joule_close(s->fd);
        free(s);
        return NULL;
    }
    return s;
}

void joule_pm_server_close(struct joule_pm_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < JOULE_PM_CONNECTIONS; i++)
        if (s->connection[i].fd >= 0)
            end(&s->connection[i]);
    joule_close(s->fd);
    free(s);
}

uint16_t joule_pm_server_port(const struct joule_pm_server *s)
{
    return s->port;
}
