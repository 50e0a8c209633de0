/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/ipmi-reader/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/source/ipmi.h"
#include "tools/ipmi-reader/harden.h"

union reply {
    struct joule_wire_head head;
    struct joule_wire_opened opened;
    struct joule_wire_values values;
    struct joule_wire_listed listed;
};

struct loop {
    int fd;
    pid_t parent;
    bool dropped; /* root's rights are gone */
    bool over;    /* this process can do no more */
    struct joule_ipmi *ipmi;
    union reply reply;
    struct joule_wire_read reading; /* the last, `more` of it to come */
    int64_t due_ns;                 /* the next of them */
    /* The one place of the password: requests come in here. */
    struct joule_wire_open request;
};

static bool is_lan(const struct joule_ipmi_config *config)
{
    return config->driver == JOULE_IPMI_DRIVER_LAN ||
           config->driver == JOULE_IPMI_DRIVER_LAN_2_0;
}

/* ---- replies ---- */

static void begin_reply(struct loop *l, const struct joule_wire_head *request)
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
    if (lan && drop(l, false, err) < 0)
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
    l->reply.opened.count = l->request.config.sensor_count;
    memcpy(l->reply.head.text, remark.text, sizeof(remark.text));
}

static void do_read(struct loop *l)
{
    struct joule_error err = {""};

    if (!l->ipmi)
        errno = ENOTCONN;
    if (!l->ipmi || joule_ipmi_read(l->ipmi, l->reply.values.value, &err) < 0) {
        refuse(l, errno, &err);
        l->reading.more = 0;
        if (l->ipmi && !is_lan(&l->request.config))
            l->over = true;
        return;
    }
    l->reply.head.size = sizeof(l->reply.values);
    l->reply.values.count = l->request.config.sensor_count;
}

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

/* 1: it was sent, 0: the other side is gone, -1: nothing more can be done. */
static int finish(struct loop *l)
{
    if (send_reply(l) < 0)
        return 0;
    return l->over ? -1 : 1;
}

/* As finish. */
static int read_again(struct loop *l)
{
    int64_t period_ns = l->request.config.period_ns, now = now_ns();

    l->reading.more--;
    l->due_ns += period_ns;
    if (l->due_ns < now)
        l->due_ns = now + period_ns;
    begin_reply(l, &l->reading.head);
    do_read(l);
    if (!l->reply.head.error)
        return finish(l);
    /* Who asked may not look for replies now, but sees the end of them.  It
     * need not wait for that of the session. */
    send_reply(l);
    shutdown(l->fd, SHUT_RDWR);
    return 0;
}

/* As finish, for one request. */
static int serve(struct loop *l, void *buf)
{
    const struct joule_wire_head *head = buf;
    struct joule_error err;
    ssize_t n = recv(l->fd, buf, JOULE_WIRE_REQUEST_MAX, MSG_TRUNC);

    if (n < 0)
        return errno == EINTR ? 1 : -1;
    if (n == 0)
        return 0;
    if ((size_t)n < sizeof(*head))
        return -1; /* nobody to answer to */
    l->reading.more = 0;
    begin_reply(l, head);
    if (joule_wire_request_check(buf, (size_t)n, &err) < 0) {
        refuse(l, EPROTO, &err);
    } else if (head->type != JOULE_WIRE_READ) {
        memcpy(&l->request, buf, sizeof(l->request));
        explicit_bzero(buf, JOULE_WIRE_REQUEST_MAX);
        do_open(l);
    } else {
        memcpy(&l->reading, buf, sizeof(l->reading));
        l->due_ns = now_ns() + l->request.config.period_ns;
        do_read(l);
    }
    return finish(l);
}

/* Until there is something to do; -1: nothing but a request. */
static int64_t wait_ns(const struct loop *l)
{
    int64_t idle_ns = l->ipmi ? joule_ipmi_idle(l->ipmi) : -1;
    int64_t due_ns;

    if (l->reading.more == 0)
        return idle_ns;
    due_ns = l->due_ns - now_ns();
    if (idle_ns >= 0 && idle_ns < due_ns)
        return idle_ns;
    return due_ns > 0 ? due_ns : 0;
}

/* Wait for a request (0) or the next reading of the last one (1); what there is
 * to do meanwhile is done. */
static int wait_work(struct loop *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};

    for (;;) {
        int64_t ns = wait_ns(l);
        const struct timespec t = {ns / JOULE_NS_PER_S, ns % JOULE_NS_PER_S};
        int n = ppoll(&p, 1, ns < 0 ? NULL : &t, NULL);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        if (l->reading.more > 0 && now_ns() >= l->due_ns)
            return 1;
    }
}

/* One piece of work; as finish. */
static int work(struct loop *l, void *buf)
{
    int rc = wait_work(l);

    if (rc < 0)
        return -1;
    return rc == 0 ? serve(l, buf) : read_again(l);
}

int joule_reader_loop(int fd, pid_t parent)
{
    struct loop *l = calloc(1, sizeof(*l));
    void *buf = calloc(1, JOULE_WIRE_REQUEST_MAX);
    int rc = -1;

    if (l && buf) {
        l->fd = fd;
        l->parent = parent;
        /* Kept out of the swap where the limits allow it. */
        mlock(l, sizeof(*l));
        mlock(buf, JOULE_WIRE_REQUEST_MAX);
        do
            rc = work(l, buf);
        while (rc > 0);
        joule_ipmi_destroy(l->ipmi);
        explicit_bzero(&l->request, sizeof(l->request));
        explicit_bzero(buf, JOULE_WIRE_REQUEST_MAX);
    }
    free(buf);
    free(l);
    return rc == 0 ? 0 : 1;
}
