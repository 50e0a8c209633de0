/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay - a UDP relay on the loopback in front of a BMC that loses, delays,
 * doubles and spoils packets on request.  See --help.
 *
 * One thread: poll over the listening socket, one socket to the BMC for each
 * client, the commands' socket and signals.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "tests/sim/bmcsim/queue.h"
#include "tests/sim/bmcsim/words.h"
#include "tests/sim/talk.h"

#define CLIENTS_MAX 64

enum { EXIT_USAGE = 2 };

struct trouble {
    int delay_ms, jitter_ms, drop_pct, dup, corrupt;
    int req_delay_ms, req_jitter_ms, req_drop_pct;
    int setup, data;   /* which packets: of session set-up, in a session */
    int from_nth, max; /* from the n-th such answer on, so many of them */
};

#define FIELD(name) offsetof(struct trouble, name)

static const struct sim_word troubles[] = {
    {"delay_ms", FIELD(delay_ms), 0, 600000, 0},
    {"jitter_ms", FIELD(jitter_ms), 0, 600000, 0},
    {"drop_pct", FIELD(drop_pct), 0, 100, 0},
    {"dup", FIELD(dup), 0, 8, 0},
    {"corrupt", FIELD(corrupt), 0, 1, 0},
    {"req_delay_ms", FIELD(req_delay_ms), 0, 600000, 0},
    {"req_jitter_ms", FIELD(req_jitter_ms), 0, 600000, 0},
    {"req_drop_pct", FIELD(req_drop_pct), 0, 100, 0},
    {"setup", FIELD(setup), 0, 1, 1},
    {"data", FIELD(data), 0, 1, 1},
    {"from_nth", FIELD(from_nth), 1, INT32_MAX, 1},
    {"max", FIELD(max), 0, INT32_MAX, INT32_MAX},
    {NULL, 0, 0, 0, 0},
};

struct client {
    int fd; /* to the BMC; -1: the place is free */
    uint32_t generation;
    int64_t used_ns;
    struct sockaddr_in address;
};

struct counts {
    uint64_t requests, answers; /* that came in */
    uint64_t lost, held, doubled, spoilt, overflow;
};

struct relay {
    int listen_fd, signal_fd;
    struct sockaddr_in bmc;
    struct client clients[CLIENTS_MAX];
    struct relay_queue queue;
    struct trouble trouble;
    int answers, hit; /* since the trouble began */
    unsigned random;
    struct counts counts;
    struct sim_talk *talk;
};

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

/* Packets. */

static void packet_send(struct relay *relay, const struct relay_packet *packet)
{
    const struct client *c = &relay->clients[packet->client];

    if (c->fd < 0 || c->generation != packet->generation)
        return;
    if (packet->answer)
        sendto(relay->listen_fd, packet->data, packet->len, MSG_DONTWAIT,
               (const struct sockaddr *)&c->address, sizeof(c->address));
    else
        send(c->fd, packet->data, packet->len, MSG_DONTWAIT);
}

static void queue_send(struct relay *relay)
{
    const struct relay_packet *packet;

    while ((packet = relay_queue_head(&relay->queue)) &&
           packet->due_ns <= now_ns()) {
        packet_send(relay, packet);
        relay_queue_pop(&relay->queue);
    }
}

static void packet_hold(struct relay *relay, struct relay_packet *packet,
                        int64_t wait_ns)
{
    if (!wait_ns) {
        packet_send(relay, packet);
        return;
    }
    packet->due_ns = now_ns() + wait_ns;
    relay->counts.held++;
    if (relay_queue_push(&relay->queue, packet))
        relay->counts.overflow++;
}

/*
 * Whether it belongs to a session: RMCP+ has the session's number in bytes 6
 * to 9 (IPMI 2.0, 13.6), IPMI 1.5 in bytes 9 to 12; both are 0 before.
 */
static bool packet_in_session(const struct relay_packet *p)
{
    const uint8_t *number = p->data + (p->data[4] == 6 ? 6 : 9);

    if (p->len < 14)
        return false;
    return number[0] || number[1] || number[2] || number[3];
}

static bool chance(struct relay *relay, int percent)
{
    return (int)(rand_r(&relay->random) % 100) < percent;
}

static int64_t wait_of(struct relay *relay, int ms, int jitter_ms)
{
    int64_t ns = ms * JOULE_NS_PER_MS;

    if (jitter_ms)
        ns += rand_r(&relay->random) % (unsigned)jitter_ms * JOULE_NS_PER_MS;
    return ns;
}

static bool applies(const struct relay *relay, const struct relay_packet *p)
{
    return packet_in_session(p) ? relay->trouble.data : relay->trouble.setup;
}

static void request_relay(struct relay *relay, struct relay_packet *packet)
{
    const struct trouble *t = &relay->trouble;

    relay->counts.requests++;
    if (!applies(relay, packet)) {
        packet_send(relay, packet);
        return;
    }
    if (chance(relay, t->req_drop_pct)) {
        relay->counts.lost++;
        return;
    }
    packet_hold(relay, packet,
                wait_of(relay, t->req_delay_ms, t->req_jitter_ms));
}

static void answer_relay(struct relay *relay, struct relay_packet *packet)
{
    const struct trouble *t = &relay->trouble;

    relay->counts.answers++;
    if (!applies(relay, packet) || ++relay->answers < t->from_nth ||
        relay->hit >= t->max) {
        packet_send(relay, packet);
        return;
    }
    relay->hit++;
    if (chance(relay, t->drop_pct)) {
        relay->counts.lost++;
        return;
    }
    if (t->corrupt && packet->len > 3) {
        packet->data[packet->len - 3] ^= 0x55;
        relay->counts.spoilt++;
    }
    for (int i = 0; i <= t->dup; i++) {
        relay->counts.doubled += i > 0;
        packet_hold(relay, packet, wait_of(relay, t->delay_ms, t->jitter_ms));
    }
}

/* Clients. */

static void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->generation++;
}

static bool same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
    return a->sin_port == b->sin_port &&
           a->sin_addr.s_addr == b->sin_addr.s_addr;
}

/* The place of an address; a new one takes a free place or that of the client
 * that has been silent for longest.  -1: no socket. */
static int client_find(struct relay *relay, const struct sockaddr_in *address)
{
    struct client *c, *oldest = &relay->clients[0];

    for (int i = 0; i < CLIENTS_MAX; i++) {
        c = &relay->clients[i];
        if (c->fd >= 0 && same(&c->address, address))
            return i;
        if (oldest->fd >= 0 && (c->fd < 0 || c->used_ns < oldest->used_ns))
            oldest = c;
    }
    client_close(oldest);
    oldest->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (oldest->fd < 0 || connect(oldest->fd, (struct sockaddr *)&relay->bmc,
                                  sizeof(relay->bmc))) {
        client_close(oldest);
        return -1;
    }
    oldest->address = *address;
    return (int)(oldest - relay->clients);
}

static void requests_serve(struct relay *relay)
{
    struct relay_packet packet = {.answer = false};
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    ssize_t len;
    int place;

    while ((len = recvfrom(relay->listen_fd, packet.data, sizeof(packet.data),
                           MSG_DONTWAIT, (struct sockaddr *)&from,
                           &from_len)) >= 0) {
        place = client_find(relay, &from);
        if (place < 0)
            continue;
        relay->clients[place].used_ns = now_ns();
        packet.client = (unsigned)place;
        packet.generation = relay->clients[place].generation;
        packet.len = (size_t)len;
        request_relay(relay, &packet);
        from_len = sizeof(from);
    }
}

static void answers_serve(struct relay *relay, unsigned place)
{
    const struct client *c = &relay->clients[place];
    struct relay_packet packet = {
        .answer = true, .client = place, .generation = c->generation};
    ssize_t len;

    /* A BMC that is gone shows as ECONNREFUSED, which is read and over. */
    while ((len = recv(c->fd, packet.data, sizeof(packet.data),
                       MSG_DONTWAIT)) >= 0 ||
           errno == ECONNREFUSED) {
        if (len < 0)
            continue;
        packet.len = (size_t)len;
        answer_relay(relay, &packet);
    }
}

/* Commands. */

static void command(void *arg, char *line, char *reply, size_t size)
{
    struct relay *relay = arg;
    struct joule_error err = {""};
    struct trouble trouble;

    if (!strcmp(line, "count")) {
        snprintf(reply, size,
                 "requests=%" PRIu64 " answers=%" PRIu64 " lost=%" PRIu64
                 " held=%" PRIu64 " doubled=%" PRIu64 " spoilt=%" PRIu64
                 " overflow=%" PRIu64,
                 relay->counts.requests, relay->counts.answers,
                 relay->counts.lost, relay->counts.held, relay->counts.doubled,
                 relay->counts.spoilt, relay->counts.overflow);
    } else if (!strcmp(line, "count-reset")) {
        relay->counts = (struct counts){0};
        snprintf(reply, size, "ok");
    } else if (strncmp(line, "set", 3) || (line[3] && line[3] != ' ')) {
        snprintf(reply, size, "error: no command \"%s\"", line);
    } else if (sim_words_parse(troubles, line + 3, &trouble, &err)) {
        snprintf(reply, size, "error: %s", err.text);
    } else {
        relay->trouble = trouble;
        relay->answers = relay->hit = 0;
        snprintf(reply, size, "ok");
    }
}

/* The program. */

static int loop(struct relay *relay)
{
    enum { LISTEN, SIGNAL, TALK, CLIENTS, COUNT = CLIENTS + CLIENTS_MAX };
    struct pollfd fds[COUNT];

    for (;;) {
        const struct relay_packet *head;
        struct timespec wait = {0};

        queue_send(relay);
        fds[LISTEN] = (struct pollfd){relay->listen_fd, POLLIN, 0};
        fds[SIGNAL] = (struct pollfd){relay->signal_fd, POLLIN, 0};
        fds[TALK] = (struct pollfd){sim_talk_fd(relay->talk), POLLIN, 0};
        for (int i = 0; i < CLIENTS_MAX; i++)
            fds[CLIENTS + i] = (struct pollfd){relay->clients[i].fd, POLLIN, 0};
        head = relay_queue_head(&relay->queue);
        if (head) {
            int64_t ns = head->due_ns - now_ns();

            ns = ns > 0 ? ns : 0;
            wait.tv_sec = ns / JOULE_NS_PER_S;
            wait.tv_nsec = ns % JOULE_NS_PER_S;
        }
        if (ppoll(fds, COUNT, head ? &wait : NULL, NULL) < 0 && errno != EINTR)
            return -1;
        if (fds[SIGNAL].revents)
            return 0;
        if (fds[TALK].revents)
            sim_talk_serve(relay->talk);
        for (unsigned i = 0; i < CLIENTS_MAX; i++)
            if (fds[CLIENTS + i].revents && relay->clients[i].fd >= 0)
                answers_serve(relay, i);
        if (fds[LISTEN].revents)
            requests_serve(relay);
    }
}

/* "127.0.0.1:9001" */
static int parse_address(const char *text, struct sockaddr_in *ret)
{
    char host[INET_ADDRSTRLEN];
    const char *colon = strchr(text, ':');
    uint64_t port;

    memset(ret, 0, sizeof(*ret));
    ret->sin_family = AF_INET;
    if (!colon || (size_t)(colon - text) >= sizeof(host) ||
        joule_parse_u64(colon + 1, 0, 65535, &port))
        return -1;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    ret->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &ret->sin_addr) == 1 ? 0 : -1;
}

static int relay_open(struct relay *relay, const struct sockaddr_in *address,
                      const char *dir, struct joule_error *err)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sigset_t set;

    if (dir_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", dir);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    relay->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    relay->listen_fd =
        socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (relay->signal_fd < 0 || relay->listen_fd < 0 ||
        bind(relay->listen_fd, (const struct sockaddr *)address,
             sizeof(*address)))
        joule_error_set(err, errno, "cannot listen: %m");
    else
        relay->talk = sim_talk_create(dir_fd, "relay", command, relay, err);
    close(dir_fd);
    return relay->talk ? 0 : -1;
}

static void help(void)
{
    puts("usage: relay LISTEN-ADDRESS:PORT BMC-ADDRESS:PORT DIR\n\n"
         "Relay UDP packets both ways; commands over the socket DIR/relay:\n"
         "  set [KEY=VALUE ...]  from now on this, and nothing else:");
    for (const struct sim_word *w = troubles; w->name; w++)
        printf("    %s=%d..%d\n", w->name, w->min, w->max);
    puts("  count                packets so far\n"
         "  count-reset");
}

int main(int argc, char **argv)
{
    static struct relay relay = {.listen_fd = -1, .signal_fd = -1, .random = 1};
    struct joule_error err = {""};
    struct sockaddr_in address;
    int rc = EXIT_FAILURE;

    if (argc == 2 && !strcmp(argv[1], "--help")) {
        help();
        return EXIT_SUCCESS;
    }
    if (argc != 4 || parse_address(argv[1], &address) ||
        parse_address(argv[2], &relay.bmc)) {
        fprintf(stderr, "relay: wrong arguments; see --help\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < CLIENTS_MAX; i++)
        relay.clients[i].fd = -1;
    sim_words_parse(troubles, "", &relay.trouble, NULL);
    if (relay_open(&relay, &address, argv[3], &err))
        fprintf(stderr, "relay: %s\n", err.text);
    else if (loop(&relay))
        perror("relay: poll");
    else
        rc = EXIT_SUCCESS;
    sim_talk_destroy(relay.talk);
    relay_queue_clear(&relay.queue);
    for (int i = 0; i < CLIENTS_MAX; i++)
        client_close(&relay.clients[i]);
    return rc;
}
