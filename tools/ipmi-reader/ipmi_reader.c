/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule-ipmi-reader - asks a BMC for the node's power, for the sampler in
 * slurmd, which talks to it over descriptor 0 (common/sensors/ipmi_wire.h).
 *
 * It is a process of its own so that nothing FreeIPMI does, waits for or
 * breaks happens in slurmd.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi.h"
#include "config.h"
#include "tools/ipmi-reader/harden.h"

#define NAME "joule-ipmi-reader"

struct loop {
    pid_t parent;
    bool dropped;       /* root's rights are gone */
    bool over;          /* this process can do no more */
    int credentials_fd; /* came with the request; -1: none did */
    struct joule_ipmi *ipmi;
    struct joule_wire_reply reply;
    /* The places of the password: the last OPEN or LIST, and what comes. */
    struct joule_wire_request request, packet;
};

/* ---- replies ---- */

static void begin_reply(struct loop *l, const struct joule_helper_head *request)
{
    memset(&l->reply, 0, sizeof(l->reply));
    l->reply.head = (struct joule_helper_head){.version = JOULE_WIRE_VERSION,
                                               .type = request->type,
                                               .seq = request->seq};
}

static void refuse(struct loop *l, int errnum, const struct joule_error *err)
{
    l->reply.head.error = errnum ? errnum : EPROTO;
    l->reply.head.size = sizeof(l->reply.head);
    memcpy(l->reply.head.text, err->text, sizeof(err->text));
}

static int send_reply(const struct loop *l)
{
    ssize_t n = send(STDIN_FILENO, &l->reply, l->reply.head.size, MSG_NOSIGNAL);

    return n == (ssize_t)l->reply.head.size ? 0 : -1;
}

/* ---- requests ---- */

static int drop(struct loop *l, bool keep_ipc, struct joule_error *err)
{
    if (joule_harden_drop(l->parent, keep_ipc, err) < 0) {
        l->over = true;
        return -1;
    }
    l->dropped = true;
    return 0;
}

/* Without root's rights, which the descriptor does not need. */
static int take_credentials(struct loop *l, struct joule_error *err)
{
    const char *name = l->request.head.text;

    if (!name[0])
        return 0;
    if (l->credentials_fd < 0)
        return joule_error_set(err, EPROTO,
                               "a request without the file that it names");
    return joule_ipmi_credentials_read(l->credentials_fd, name,
                                       &l->request.config, err);
}

/* LAN: rights go before the first packet.  In-band: once the device is open. */
static int connect_bmc(struct loop *l, struct joule_error *err)
{
    bool lan = joule_ipmi_is_lan(&l->request.config);

    if (!lan && l->dropped) {
        l->over = true;
        return joule_error_set(err, ESTALE,
                               "the reader may not open a device any more");
    }
    if (lan && !l->dropped && drop(l, false, err) < 0)
        return -1;
    if (take_credentials(l, err) < 0)
        return -1;
    if (!l->ipmi)
        l->ipmi = joule_ipmi_create(&l->request.config, err);
    if (!l->ipmi)
        return -1;
    if (joule_ipmi_connect(l->ipmi, l->request.head.type == JOULE_WIRE_LIST,
                           &l->reply, err) < 0)
        return -1;
    return lan ? 0 : drop(l, joule_ipmi_wants_ipc(l->ipmi), err);
}

static int read_bmc(struct loop *l, struct joule_error *err)
{
    if (!l->ipmi)
        return joule_error_set(err, ENOTCONN, "there is no connection");
    if (joule_ipmi_read(l->ipmi, &l->reply, err) == 0)
        return 0;
    l->over = !joule_ipmi_is_lan(&l->request.config);
    return -1;
}

/* A packet, as recv(2), and the descriptor that came with it. */
static ssize_t receive(struct loop *l)
{
    struct iovec part = {&l->packet, sizeof(l->packet)};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n = recvmsg(STDIN_FILENO, &packet, MSG_TRUNC | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&packet);

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&l->credentials_fd, CMSG_DATA(c), sizeof(int));
    return n;
}

static int obey(struct loop *l, size_t size, struct joule_error *err)
{
    if (joule_wire_request_check(&l->packet, size, err) < 0)
        return -1;
    if (l->packet.head.type == JOULE_WIRE_READ) {
        l->reply.head.size = JOULE_WIRE_VALUES_SIZE;
        return read_bmc(l, err);
    }
    l->request = l->packet;
    explicit_bzero(&l->packet, sizeof(l->packet));
    l->reply.head.size = sizeof(l->reply);
    return connect_bmc(l, err);
}

/* 1: a request was done, 0: the other side is gone, -1: nothing more can be
 * done. */
static int serve(struct loop *l)
{
    struct joule_error err = {""};
    ssize_t n = receive(l);

    if (n < 0)
        return errno == EINTR ? 1 : -1;
    if (n == 0)
        return 0;
    if ((size_t)n < sizeof(l->packet.head))
        return -1; /* nobody to answer to */
    begin_reply(l, &l->packet.head);
    if (obey(l, (size_t)n, &err) < 0)
        refuse(l, errno, &err);
    if (l->credentials_fd >= 0)
        close(l->credentials_fd);
    l->credentials_fd = -1;
    if (send_reply(l) < 0)
        return 0;
    return l->over ? -1 : 1;
}

/* Wait for a request; what there is to do meanwhile is done. */
static int wait_request(struct loop *l)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    for (;;) {
        int64_t in_ns = l->ipmi ? joule_ipmi_idle(l->ipmi) : -1;
        int timeout_ms = in_ns < 0 ? -1 : (int)(in_ns / JOULE_NS_PER_MS) + 1;
        int n = poll(&p, 1, timeout_ms);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
    }
}

/* Until the socket is closed.  The exit code. */
static int run(pid_t parent)
{
    struct loop *l = calloc(1, sizeof(*l));
    int rc;

    if (!l)
        return 1;
    l->parent = parent;
    l->credentials_fd = -1;
    /* Kept out of the swap where the limits allow it. */
    mlock(l, sizeof(*l));
    do
        rc = wait_request(l) < 0 ? -1 : serve(l);
    while (rc > 0);
    joule_ipmi_destroy(l->ipmi);
    explicit_bzero(l, sizeof(*l));
    free(l);
    return rc == 0 ? 0 : 1;
}

/* ---- main ---- */

static int usage(FILE *to)
{
    fprintf(to, "usage: " NAME " [--help | --version]\n"
                "Reads a BMC's power sensors for slurmd, which starts it with "
                "a socket as\nstandard input; it is of no use by itself.  To "
                "see what it would read: joule probe\n");
    return to == stdout ? 0 : 2;
}

/* What cannot be said over the socket. */
static int fail(const char *text)
{
    fprintf(stderr, NAME ": %s\n", text);
    return 2;
}

static bool is_packet_socket(int fd)
{
    int type = 0, domain = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           type == SOCK_SEQPACKET && domain == AF_UNIX;
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    struct joule_error err;

    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts(NAME " (" PACKAGE_NAME ") " PACKAGE_VERSION);
        return 0;
    }
    if (argc != 1)
        return usage(stderr);
    if (!is_packet_socket(STDIN_FILENO))
        return fail("standard input is not the socket of slurmd's sampler "
                    "(see --help)");
    if (joule_harden_start(parent, &err) < 0)
        return fail(err.text);
    return run(parent);
}
