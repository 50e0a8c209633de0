/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

#define CLIENTS_MAX 32
#define LATE_MAX    256
#define PACKET_MAX  1024

/* Each client of the relay has a socket of its own towards the BMC. */
struct client {
    struct sockaddr_in at;
    int fd;
};

struct late {
    int64_t due_ns;
    struct sockaddr_in to;
    size_t size;
    uint8_t bytes[PACKET_MAX];
};

struct state {
    struct relay *relay;
    struct sockaddr_in bmc;
    int fd;
    unsigned clients; /* so far; the oldest makes room */
    struct client client[CLIENTS_MAX];
    unsigned late_count;
    struct late late[LATE_MAX]; /* in the order of their time */
};

static void die(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    abort();
}

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int socket_at(uint16_t port)
{
    struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        die("socket");
    return fd;
}

static struct client *client_of(struct state *s, const struct sockaddr_in *at)
{
    struct client *c;

    for (unsigned i = 0; i < s->clients && i < CLIENTS_MAX; i++)
        if (s->client[i].at.sin_port == at->sin_port)
            return &s->client[i];
    c = &s->client[s->clients++ % CLIENTS_MAX];
    if (s->clients > CLIENTS_MAX)
        close(c->fd);
    c->at = *at;
    c->fd = socket_at(0);
    return c;
}

static void from_client(struct state *s)
{
    struct sockaddr_in at;
    socklen_t at_size = sizeof(at);
    uint8_t buf[PACKET_MAX];
    ssize_t n =
        recvfrom(s->fd, buf, sizeof(buf), 0, (struct sockaddr *)&at, &at_size);

    if (n <= 0)
        return;
    atomic_fetch_add(&s->relay->requests, 1);
    sendto(client_of(s, &at)->fd, buf, (size_t)n, 0, (struct sockaddr *)&s->bmc,
           sizeof(s->bmc));
}

/* Whether there was one to take. */
static bool take_one(_Atomic unsigned *count)
{
    unsigned n = atomic_load(count);

    if (n != 0 && n != UINT_MAX)
        atomic_fetch_sub(count, 1);
    return n != 0;
}

static void from_bmc(struct state *s, const struct client *c)
{
    struct late *late = &s->late[s->late_count];
    ssize_t n = recv(c->fd, late->bytes, sizeof(late->bytes), 0);

    if (n <= 0 || take_one(&s->relay->lose))
        return;
    atomic_fetch_add(&s->relay->answers, 1);
    if (n > 3 && take_one(&s->relay->corrupt))
        late->bytes[n - 3] ^= 0x55;
    late->due_ns = now_ns() + (int64_t)s->relay->delay_us * 1000;
    late->to = c->at;
    late->size = (size_t)n;
    s->late_count++;
    for (unsigned i = s->relay->copies; i > 0 && s->late_count < LATE_MAX - 1;
         i--) {
        s->late[s->late_count] = *late;
        s->late_count++;
    }
}

/* Until the next one is due, in ms; -1: none is waiting. */
static int send_late(struct state *s)
{
    unsigned sent = 0;
    int64_t left_ns;

    while (sent < s->late_count && s->late[sent].due_ns <= now_ns()) {
        const struct late *l = &s->late[sent++];

        sendto(s->fd, l->bytes, l->size, 0, (const struct sockaddr *)&l->to,
               sizeof(l->to));
    }
    s->late_count -= sent;
    memmove(s->late, s->late + sent, s->late_count * sizeof(s->late[0]));
    if (s->late_count == 0)
        return -1;
    left_ns = s->late[0].due_ns - now_ns();
    return left_ns > 0 ? (int)(left_ns / JOULE_NS_PER_MS) : 0;
}

static void run(struct state *s)
{
    for (;;) {
        struct pollfd p[1 + CLIENTS_MAX];
        nfds_t n = 0;
        int timeout = send_late(s);

        p[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        for (; n - 1 < s->clients && n - 1 < CLIENTS_MAX; n++)
            p[n] = (struct pollfd){.fd = s->client[n - 1].fd, .events = POLLIN};
        if (poll(p, n, timeout) <= 0)
            continue;
        for (nfds_t i = 1; i < n; i++)
            if (p[i].revents && s->late_count < LATE_MAX - 1)
                from_bmc(s, &s->client[i - 1]);
        if (p[0].revents)
            from_client(s);
    }
}

struct relay *relay_create(uint16_t bmc_port)
{
    struct relay *relay = mmap(NULL, sizeof(*relay), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_in at;
    socklen_t size = sizeof(at);
    pid_t pid;
    struct state *s = calloc(1, sizeof(*s));

    if (relay == MAP_FAILED || !s)
        die("memory");
    s->relay = relay;
    s->bmc = loopback(bmc_port);
    s->fd = socket_at(0);
    if (getsockname(s->fd, (struct sockaddr *)&at, &size) < 0)
        die("port");
    relay->port = ntohs(at.sin_port);
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Others wait for the end of what this process would keep open. */
        for (int fd = 3; fd < 256; fd++)
            if (fd != s->fd)
                close(fd);
        run(s);
    }
    relay->pid = pid; /* shared: not for the child to write */
    close(s->fd);
    free(s);
    return relay;
}

void relay_destroy(struct relay *relay)
{
    kill(relay->pid, SIGKILL);
    waitpid(relay->pid, NULL, 0);
    munmap(relay, sizeof(*relay));
}
