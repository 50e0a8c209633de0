/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/ipmi-reader/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi.h"
#include "tools/ipmi-reader/harden.h"

union reply {
    struct joule_helper_head head;
    struct joule_wire_opened opened;
    struct joule_wire_values values;
    struct joule_wire_listed listed;
};

struct loop {
    int fd;
    pid_t parent;
    bool dropped;       /* root's rights are gone */
    bool over;          /* this process can do no more */
    int credentials_fd; /* came with the request; -1: none did */
    struct joule_ipmi *ipmi;
    union reply reply;
    /* The one place of the password. */
    struct joule_wire_open request;
};

static bool is_lan(const struct joule_ipmi_config *config)
{
    return config->driver == JOULE_IPMI_DRIVER_LAN ||
           config->driver == JOULE_IPMI_DRIVER_LAN_2_0;
}

/* ---- replies ---- */

static void begin_reply(struct loop *l, const struct joule_helper_head *request)
{
    memset(&l->reply, 0, sizeof(l->reply));
    l->reply.head.version = JOULE_WIRE_VERSION;
    l->reply.head.type = request->type;
    l->reply.head.seq = request->seq;
    l->reply.head.size = sizeof(l->reply.head);
}

static void refuse(struct loop *l, int errnum, const struct joule_error *err)
{
    l->reply.head.error = errnum ? errnum : EPROTO;
    l->reply.head.size = sizeof(l->reply.head);
    memcpy(l->reply.head.text, err->text, sizeof(err->text));
}

static int send_reply(const struct loop *l)
{
    ssize_t n = send(l->fd, &l->reply, l->reply.head.size, MSG_NOSIGNAL);

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

static int connect_bmc(struct loop *l, struct joule_error *remark,
                       struct joule_error *err)
{
    struct joule_wire_listed *listed = &l->reply.listed;

    if (l->request.head.type == JOULE_WIRE_LIST)
        return joule_ipmi_list(l->ipmi, listed->found, listed->value,
                               &listed->count, &listed->more, err);
    return joule_ipmi_connect(l->ipmi, l->reply.opened.found, remark, err);
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
static int connect_with_rights(struct loop *l, struct joule_error *remark,
                               struct joule_error *err)
{
    bool lan = is_lan(&l->request.config);

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
    if (!l->ipmi || connect_bmc(l, remark, err) < 0)
        return -1;
    return lan ? 0 : drop(l, joule_ipmi_wants_ipc(l->ipmi), err);
}

static void do_open(struct loop *l)
{
    struct joule_error remark = {""}, err;

    if (connect_with_rights(l, &remark, &err) < 0) {
        refuse(l, errno, &err);
        return;
    }
    if (l->request.head.type == JOULE_WIRE_LIST) {
        l->reply.head.size = sizeof(l->reply.listed);
        return;
    }
    l->reply.head.size = sizeof(l->reply.opened);
    l->reply.opened.count = joule_ipmi_count(l->ipmi);
    memcpy(l->reply.head.text, remark.text, sizeof(remark.text));
}

static void do_read(struct loop *l)
{
    struct joule_error err = {""};

    if (!l->ipmi)
        errno = ENOTCONN;
    if (!l->ipmi || joule_ipmi_read(l->ipmi, l->reply.values.value, &err) < 0) {
        refuse(l, errno, &err);
        if (l->ipmi && !is_lan(&l->request.config))
            l->over = true;
        return;
    }
    l->reply.head.size = sizeof(l->reply.values);
    l->reply.values.count = joule_ipmi_count(l->ipmi);
}

/* A packet, as recv(2), and the descriptor that came with it. */
static ssize_t receive(struct loop *l, void *buf)
{
    struct iovec part = {buf, JOULE_WIRE_REQUEST_MAX};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n = recvmsg(l->fd, &packet, MSG_TRUNC | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&packet);

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&l->credentials_fd, CMSG_DATA(c), sizeof(int));
    return n;
}

static void close_credentials(struct loop *l)
{
    if (l->credentials_fd >= 0)
        close(l->credentials_fd);
    l->credentials_fd = -1;
}

/* 1: a request was done, 0: the other side is gone, -1: nothing more can be
 * done. */
static int serve(struct loop *l, void *buf)
{
    const struct joule_helper_head *head = buf;
    struct joule_error err;
    ssize_t n = receive(l, buf);

    if (n < 0)
        return errno == EINTR ? 1 : -1;
    if (n == 0)
        return 0;
    if ((size_t)n < sizeof(*head))
        return -1; /* nobody to answer to */
    begin_reply(l, head);
    if (joule_wire_request_check(buf, (size_t)n, &err) < 0) {
        refuse(l, EPROTO, &err);
    } else if (head->type != JOULE_WIRE_READ) {
        memcpy(&l->request, buf, sizeof(l->request));
        explicit_bzero(buf, JOULE_WIRE_REQUEST_MAX);
        do_open(l);
    } else {
        do_read(l);
    }
    close_credentials(l);
    if (send_reply(l) < 0)
        return 0;
    return l->over ? -1 : 1;
}

/* Wait for a request; what there is to do meanwhile is done. */
static int wait_request(struct loop *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};

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

int joule_reader_loop(int fd, pid_t parent)
{
    struct loop *l = calloc(1, sizeof(*l));
    void *buf = calloc(1, JOULE_WIRE_REQUEST_MAX);
    int rc = -1;

    if (l && buf) {
        l->fd = fd;
        l->parent = parent;
        l->credentials_fd = -1;
        /* Kept out of the swap where the limits allow it. */
        mlock(l, sizeof(*l));
        mlock(buf, JOULE_WIRE_REQUEST_MAX);
        do
            rc = wait_request(l) < 0 ? -1 : serve(l, buf);
        while (rc > 0);
        joule_ipmi_destroy(l->ipmi);
        explicit_bzero(&l->request, sizeof(l->request));
        explicit_bzero(buf, JOULE_WIRE_REQUEST_MAX);
    }
    free(buf);
    free(l);
    return rc == 0 ? 0 : 1;
}
