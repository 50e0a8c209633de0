/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_link.h"

#include <errno.h>
#include <freeipmi/freeipmi.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"

#define NS_PER_MS JOULE_NS_PER_MS

/* The first wait before FreeIPMI asks again.  It counts an answer only to its
 * latest try, so it must be above what the BMC needs: it doubles until the
 * BMC is heard, and halves after many quick answers. */
#define RETRY_MS    500u
#define QUICK_MAX   64u
#define QUICK_RATIO 8

/* After the deadline the alarm repeats: the first may fall just before the
 * system call that it is to end. */
#define REPEAT_NS (5 * NS_PER_MS)

/* For the BMC to acknowledge the end of a session. */
#define CLOSE_NS (100 * NS_PER_MS)

#define BMC_ADDRESS  0x20
#define PORT_DEFAULT "623"

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

/* ---- the alarm ---- */

static void on_alarm(int signum)
{
    (void)signum; /* only to end a system call with EINTR */
}

static int alarm_create(timer_t *ret_timer)
{
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGALRM};
    sigset_t set;

    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    if (sigaction(SIGALRM, &action, NULL) < 0 ||
        sigprocmask(SIG_UNBLOCK, &set, NULL) < 0)
        return -1;
    return timer_create(CLOCK_MONOTONIC, &event, ret_timer);
}

static void alarm_set(timer_t timer, int64_t in_ns)
{
    struct itimerspec t = {.it_interval.tv_nsec = REPEAT_NS};

    if (in_ns < 1)
        in_ns = 1;
    t.it_value.tv_sec = (time_t)(in_ns / JOULE_NS_PER_S);
    t.it_value.tv_nsec = (long)(in_ns % JOULE_NS_PER_S);
    timer_settime(timer, 0, &t, NULL);
}

static void alarm_clear(timer_t timer)
{
    const struct itimerspec off = {0};

    timer_settime(timer, 0, &off, NULL);
}

/* ---- init and close ---- */

int joule_ipmi_link_init(struct joule_ipmi_link *link,
                         const struct joule_ipmi_config *config,
                         struct joule_error *err)
{
    memset(link, 0, sizeof(*link));
    link->config = config;
    link->retry_ms = RETRY_MS;
    if (alarm_create(&link->timer) < 0)
        return joule_error_set(err, errno, "cannot set a timer: %m");
    return 0;
}

void joule_ipmi_link_close(struct joule_ipmi_link *link)
{
    int saved = errno;

    if (!link->ctx)
        return;
    alarm_set(link->timer, CLOSE_NS);
    ipmi_ctx_close(link->ctx);
    ipmi_ctx_destroy(link->ctx);
    alarm_clear(link->timer);
    link->ctx = NULL;
    errno = saved;
}

/* ---- who it is ---- */

/* The host's numeric address into link->address: no later connection waits
 * for a resolver. */
static int lookup_host(struct joule_ipmi_link *link, struct joule_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    char host[JOULE_IPMI_HOST_SIZE], numeric[256];
    const char *port = joule_ipmi_host_split(link->config->host, host);
    struct addrinfo *found = NULL;
    int rc;

    if (!port)
        port = PORT_DEFAULT;
    rc = getaddrinfo(host, port, &hints, &found);
    if (rc == EAI_NONAME) {
        hints.ai_flags = AI_NUMERICSERV;
        rc = getaddrinfo(host, port, &hints, &found);
    }
    if (rc == 0)
        rc = getnameinfo(found->ai_addr, found->ai_addrlen, numeric,
                         sizeof(numeric), NULL, 0, NI_NUMERICHOST);
    if (rc == 0)
        snprintf(link->address, sizeof(link->address),
                 found->ai_family == AF_INET6 ? "[%s]:%.6s" : "%s:%.6s",
                 numeric, port);
    if (found)
        freeaddrinfo(found);
    if (rc != 0)
        return joule_error_set(err, EHOSTUNREACH,
                               "the BMC's host \"%s\" has no address: %s",
                               link->config->host, gai_strerror(rc));
    return 0;
}

/* "the BMC at HOST" */
static const char *who(const struct joule_ipmi_link *link, char buf[300])
{
    if (joule_ipmi_is_lan(link->config))
        snprintf(buf, 300, "the BMC at %s", link->config->host);
    else if (link->config->device[0])
        snprintf(buf, 300, "the BMC behind %s", link->config->device);
    else
        snprintf(buf, 300, "this node's BMC");
    return buf;
}

/* ---- open ---- */

static int open_error(const struct joule_ipmi_link *link, int errnum,
                      struct joule_error *err)
{
    const char *user = link->config->username;
    char buf[300];
    const char *bmc = who(link, buf);

    switch (errnum) {
    case IPMI_ERR_USERNAME_INVALID:
        return joule_error_set(err, EACCES, "%s does not know the user \"%s\"",
                               bmc, user);
    case IPMI_ERR_PASSWORD_INVALID:
    case IPMI_ERR_PASSWORD_VERIFICATION_TIMEOUT:
        return joule_error_set(err, EACCES,
                               "%s refuses the password of the user \"%s\"",
                               bmc, user);
    case IPMI_ERR_PRIVILEGE_LEVEL_INSUFFICIENT:
    case IPMI_ERR_PRIVILEGE_LEVEL_CANNOT_BE_OBTAINED:
        return joule_error_set(err, EPERM,
                               "%s does not give the user \"%s\" the "
                               "privilege that is asked for",
                               bmc, user);
    case IPMI_ERR_PERMISSION:
        return joule_error_set(err, EPERM, "may not open %s: run as root", bmc);
    case IPMI_ERR_DEVICE_NOT_FOUND:
    case IPMI_ERR_DEVICE_NOT_SUPPORTED:
        return joule_error_set(err, ENODEV,
                               "there is no IPMI device: load the kernel "
                               "modules ipmi_si and ipmi_devintf, or name the "
                               "BMC's host");
    case IPMI_ERR_AUTHENTICATION_TYPE_UNAVAILABLE:
    case IPMI_ERR_CIPHER_SUITE_ID_UNAVAILABLE:
    case IPMI_ERR_IPMI_2_0_UNAVAILABLE:
        return joule_error_set(err, EPROTO, "%s does not support this: %s", bmc,
                               ipmi_ctx_strerror(errnum));
    case IPMI_ERR_BMC_BUSY:
    case IPMI_ERR_DRIVER_BUSY:
        return joule_error_set(err, EBUSY, "%s is busy", bmc);
    case IPMI_ERR_CONNECTION_TIMEOUT:
    case IPMI_ERR_SESSION_TIMEOUT:
    case IPMI_ERR_MESSAGE_TIMEOUT:
    case IPMI_ERR_DRIVER_TIMEOUT:
        return joule_error_set(err, ETIMEDOUT, "%s does not answer", bmc);
    case IPMI_ERR_SUCCESS: /* seen where every packet came twice */
        return joule_error_set(err, EPROTO,
                               "%s gives answers that make no session", bmc);
    default:
        return joule_error_set(err, EPROTO, "cannot connect to %s: %s", bmc,
                               ipmi_ctx_strerror(errnum));
    }
}

/* FreeIPMI counts a session's time from the last answer, pauses included, and
 * with wall time; the alarm is what ends a call. */
static unsigned session_ms(const struct joule_ipmi_config *config)
{
    int64_t pause_ns = config->period_ns;

    if (config->session_timeout_ms)
        return config->session_timeout_ms;
    if (pause_ns < JOULE_IPMI_IDLE_NS)
        pause_ns = JOULE_IPMI_IDLE_NS;
    return (unsigned)((pause_ns + config->answer_ns) / NS_PER_MS);
}

static int open_lan(struct joule_ipmi_link *link)
{
    const struct joule_ipmi_config *c = link->config;
    unsigned session = session_ms(c);
    unsigned retry = link->retry_ms < session ? link->retry_ms : session;

    if (c->driver == JOULE_IPMI_DRIVER_LAN)
        return ipmi_ctx_open_outofband(link->ctx, link->address, c->username,
                                       c->password, (uint8_t)c->authentication,
                                       (uint8_t)c->privilege, session, retry,
                                       c->workaround_flags, IPMI_FLAGS_DEFAULT);
    return ipmi_ctx_open_outofband_2_0(
        link->ctx, link->address, c->username, c->password, NULL, 0,
        (uint8_t)c->privilege, (uint8_t)c->cipher_suite, session, retry,
        c->workaround_flags, IPMI_FLAGS_DEFAULT);
}

/* -1 also where no device is found; then FreeIPMI's error is success. */
static int open_inband(struct joule_ipmi_link *link)
{
    static const ipmi_driver_type_t types[] = {
        [JOULE_IPMI_DRIVER_OPENIPMI] = IPMI_DEVICE_OPENIPMI,
        [JOULE_IPMI_DRIVER_KCS] = IPMI_DEVICE_KCS,
        [JOULE_IPMI_DRIVER_SSIF] = IPMI_DEVICE_SSIF,
    };
    const struct joule_ipmi_config *c = link->config;
    const char *device = c->device[0] ? c->device : NULL;

    ipmi_driver_type_t type = types[c->driver];
    int rc;

    if (c->driver == JOULE_IPMI_DRIVER_ANY)
        rc = ipmi_ctx_find_inband(link->ctx, &type, c->no_probe,
                                  (uint16_t)c->driver_address,
                                  (uint8_t)c->register_spacing, device,
                                  c->workaround_flags, IPMI_FLAGS_DEFAULT) == 1
                 ? 0
                 : -1;
    else
        rc = ipmi_ctx_open_inband(link->ctx, type, c->no_probe,
                                  (uint16_t)c->driver_address,
                                  (uint8_t)c->register_spacing, device,
                                  c->workaround_flags, IPMI_FLAGS_DEFAULT);
    link->wants_ipc = type == IPMI_DEVICE_KCS || type == IPMI_DEVICE_SSIF;
    return rc;
}

/* Nobody was heard for longer than it takes to ask again. */
static void wait_longer(struct joule_ipmi_link *link, int64_t waited_ns)
{
    unsigned most_ms = (unsigned)(link->config->answer_ns / NS_PER_MS);

    link->quick = 0;
    if (link->config->retransmission_timeout_ms ||
        waited_ns < link->retry_ms * NS_PER_MS)
        return;
    link->retry_ms *= 2;
    if (link->retry_ms > most_ms)
        link->retry_ms = most_ms > RETRY_MS ? most_ms : RETRY_MS;
}

/* The answers are quick again: the next session may ask sooner. */
static void note_answer(struct joule_ipmi_link *link, int64_t took_ns)
{
    link->slowest_ns -= link->slowest_ns / 8;
    if (took_ns > link->slowest_ns)
        link->slowest_ns = took_ns;
    if (took_ns * QUICK_RATIO > link->retry_ms * NS_PER_MS) {
        link->quick = 0;
    } else if (++link->quick == QUICK_MAX) {
        link->quick = 0;
        if (!link->config->retransmission_timeout_ms &&
            link->retry_ms > RETRY_MS)
            link->retry_ms /= 2;
    }
}

/* Whether the deadline is what ended it; then the sentence is set. */
static bool timed_out(const struct joule_ipmi_link *link, int64_t waited_ns,
                      struct joule_error *err)
{
    char buf[300];

    if (link->asked_ns + NS_PER_MS < link->deadline_ns)
        return false;
    joule_error_set(err, ETIMEDOUT, "no answer from %s within %.1f s",
                    who(link, buf), (double)waited_ns / 1e9);
    return true;
}

int joule_ipmi_link_open(struct joule_ipmi_link *link, bool lookup,
                         struct joule_error *err)
{
    bool lan = joule_ipmi_is_lan(link->config);
    int64_t begin_ns;
    int rc, errnum;

    joule_ipmi_link_close(link);
    if (lan && (lookup || !link->address[0]) && lookup_host(link, err) < 0)
        return -1;
    if (link->config->retransmission_timeout_ms)
        link->retry_ms = link->config->retransmission_timeout_ms;
    link->ctx = ipmi_ctx_create();
    if (!link->ctx)
        return joule_error_set(err, ENOMEM, "FreeIPMI: out of memory");
    begin_ns = now_ns();
    alarm_set(link->timer, link->deadline_ns - begin_ns);
    rc = lan ? open_lan(link) : open_inband(link);
    alarm_clear(link->timer);
    link->asked_ns = now_ns();
    if (rc == 0)
        return 0;
    errnum = ipmi_ctx_errnum(link->ctx);
    if (errnum == IPMI_ERR_SUCCESS && !lan)
        errnum = IPMI_ERR_DEVICE_NOT_FOUND;
    joule_ipmi_link_close(link);
    wait_longer(link, link->asked_ns - begin_ns);
    if (timed_out(link, link->asked_ns - begin_ns, err))
        return -1;
    return open_error(link, errnum, err);
}

/* ---- ask ---- */

static int ask(struct joule_ipmi_link *link,
               const struct joule_ipmi_question *q, uint8_t *rs, size_t size)
{
    uint8_t rq[1 + sizeof(q->data)];

    rq[0] = q->cmd;
    memcpy(rq + 1, q->data, q->size);
    if (q->owner == 0 || q->owner == BMC_ADDRESS)
        return ipmi_cmd_raw(link->ctx, q->lun, q->net_fn, rq, q->size + 1u, rs,
                            (unsigned)size);
    return ipmi_cmd_raw_ipmb(link->ctx, q->channel, q->owner, q->lun, q->net_fn,
                             rq, q->size + 1u, rs, (unsigned)size);
}

/* Close what does not work any more. */
static int lose(struct joule_ipmi_link *link, int64_t waited_ns,
                struct joule_error *err)
{
    int errnum = ipmi_ctx_errnum(link->ctx);
    char buf[300];

    joule_ipmi_link_close(link);
    wait_longer(link, waited_ns);
    if (timed_out(link, waited_ns, err))
        return -1;
    if (errnum == IPMI_ERR_SESSION_TIMEOUT)
        return joule_error_set(err, ENOTCONN, "%s does not answer",
                               who(link, buf));
    return joule_error_set(err, EPROTO, "cannot ask %s: %s", who(link, buf),
                           ipmi_ctx_strerror(errnum));
}

int joule_ipmi_link_ask(struct joule_ipmi_link *link,
                        const struct joule_ipmi_question *question,
                        uint8_t rs[JOULE_IPMI_ANSWER_MAX],
                        struct joule_error *err)
{
    uint8_t buf[1 + JOULE_IPMI_ANSWER_MAX]; /* the command comes first */
    int64_t begin_ns = now_ns();
    int n;

    if (!link->ctx)
        return joule_error_set(err, ENOTCONN, "there is no connection");
    if (begin_ns >= link->deadline_ns)
        return joule_error_set(err, ETIMEDOUT, "there was no time left to ask");
    alarm_set(link->timer, link->deadline_ns - begin_ns);
    n = ask(link, question, buf, sizeof(buf));
    alarm_clear(link->timer);
    link->asked_ns = now_ns();
    if (n < 0)
        return lose(link, link->asked_ns - begin_ns, err);
    note_answer(link, link->asked_ns - begin_ns);
    n--;
    if (n < 1 || n > JOULE_IPMI_ANSWER_MAX) {
        joule_ipmi_link_close(link);
        return joule_error_set(err, EPROTO, "an answer of %d bytes", n);
    }
    memcpy(rs, buf + 1, (size_t)n);
    return n;
}
