/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol is pmlib's: integers and doubles as the machine has them, a name
 * is its length and its bytes, nothing says how long an answer is.  What a server
 * says is checked before it is used, and before memory is taken for it.
 */
#include "lib/pmlib.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define JOULE_API __attribute__((visibility("default")))

#define LINES_MAX   (8 * LINE_SETSIZE)
#define DEVICES_MAX 4096
#define NAME_MAX_PM 1023
#define SETS_MAX    5000
#define WATTS_MAX   (1 << 24) /* values of an answer: 128 MiB */

#define QUIET_MS  5000  /* without a byte */
#define ANSWER_MS 60000 /* for all of an answer */

enum operation {
    CREATE,
    START,
    CONTINUE,
    STOP,
    GET,
    FINALIZE,
    INFO_DEVICE,
    LIST_DEVICES,
};

static int fails(int error)
{
    errno = error;
    return -1;
}

/* ---- the connection ---- */

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* 0 when the socket is ready for [events], until the deadline. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t quiet_ms = now_ms() + QUIET_MS;

    if (quiet_ms > deadline_ms)
        quiet_ms = deadline_ms;
    for (;;) {
        int64_t left_ms = quiet_ms - now_ms();
        int rc = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);

        if (rc > 0)
            return 0;
        if (rc == 0)
            return fails(ETIMEDOUT);
        if (errno != EINTR)
            return -1;
    }
}

static bool try_again(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int send_all(int fd, const void *from, size_t size)
{
    const char *at = from;
    int64_t deadline_ms = now_ms() + ANSWER_MS;

    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && !try_again())
            return -1;
        if (n < 0) {
            if (wait_for(fd, POLLOUT, deadline_ms) < 0)
                return -1;
            continue;
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int receive(int fd, void *to, size_t size, int64_t deadline_ms)
{
    char *at = to;

    while (size > 0) {
        ssize_t n = recv(fd, at, size, MSG_DONTWAIT);

        if (n == 0)
            return fails(ECONNRESET);
        if (n < 0 && !try_again())
            return -1;
        if (n < 0) {
            if (wait_for(fd, POLLIN, deadline_ms) < 0)
                return -1;
            continue;
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int receive_int(int fd, int min, int max, int *ret, int64_t deadline_ms)
{
    int32_t value;

    if (receive(fd, &value, sizeof(value), deadline_ms) < 0)
        return -1;
    if (value < min || value > max)
        return fails(EPROTO);
    *ret = value;
    return 0;
}

/* The first integer of an answer, from 0 to [max]; a negative one is a refusal. */
static int receive_answer(int fd, int max, int *ret, int64_t deadline_ms)
{
    int value;

    if (receive_int(fd, INT_MIN, max, &value, deadline_ms) < 0)
        return -1;
    if (value < 0)
        return fails(EREMOTEIO);
    *ret = value;
    return 0;
}

/* The caller frees it. */
static int receive_name(int fd, char **ret, int64_t deadline_ms)
{
    char *name;
    int length;

    if (receive_int(fd, 0, NAME_MAX_PM, &length, deadline_ms) < 0)
        return -1;
    name = calloc((size_t)length + 1, 1);
    if (!name)
        return -1;
    if (receive(fd, name, (size_t)length, deadline_ms) < 0) {
        free(name);
        return -1;
    }
    *ret = name;
    return 0;
}

static void close_quietly(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
}

/* connect(2) that waits no longer than the rest does. */
static int connect_to(const server_t *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char ip[SERVER_IP_LEN];
    int fd, error = 0;
    socklen_t size = sizeof(error);

    memcpy(ip, server->server_ip, sizeof(ip));
    ip[sizeof(ip) - 1] = '\0';
    if (inet_pton(AF_INET, ip, &address.sin_addr) != 1 || server->port < 1 ||
        server->port > UINT16_MAX)
        return fails(EINVAL);
    address.sin_port = htons((uint16_t)server->port);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if ((errno == EINPROGRESS || errno == EINTR) &&
        wait_for(fd, POLLOUT, INT64_MAX) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0) {
        if (error == 0)
            return fd;
        errno = error;
    }
    close_quietly(fd);
    return -1;
}

/* A request that begins with the name of a device; [rest] follows it. */
static int send_named(int fd, int operation, const char *name, const void *rest,
                      size_t size)
{
    char request[2 * sizeof(int32_t) + NAME_MAX_PM + 64];
    size_t length = name ? strlen(name) : 0;
    int32_t head[2] = {operation, (int32_t)length};

    if (length == 0 || length > NAME_MAX_PM)
        return fails(EINVAL);
    memcpy(request, head, sizeof(head));
    memcpy(request + sizeof(head), name, length);
    memcpy(request + sizeof(head) + length, rest, size);
    return send_all(fd, request, sizeof(head) + length + size);
}

/* What comes next would be the rest of an answer that failed: nothing shall. */
static int give_up(int fd)
{
    int error = errno;

    if (error != EREMOTEIO)
        shutdown(fd, SHUT_RDWR);
    return fails(error);
}

/* A request to a counter, and the answer to it. */
static int ask(const counter_t *c, int32_t operation)
{
    int answer;

    if (send_all(c->sock, &operation, sizeof(operation)) < 0 ||
        receive_answer(c->sock, 0, &answer, now_ms() + ANSWER_MS) < 0)
        return give_up(c->sock);
    return 0;
}

/* ---- server and devices ---- */

/* The variable's "IP:PORT". */
static int server_of_environment(server_t *ret)
{
    const char *text = secure_getenv("JOULE_PMSERVER");
    const char *colon = text ? strchr(text, ':') : NULL;
    char ip[SERVER_IP_LEN] = "", *end;
    unsigned long port;

    if (!text)
        return fails(ENOENT);
    if (!colon || colon - text >= SERVER_IP_LEN || colon[1] < '0' ||
        colon[1] > '9')
        return fails(EINVAL);
    memcpy(ip, text, (size_t)(colon - text));
    port = strtoul(colon + 1, &end, 10);
    if (*end || !*ip || port > UINT16_MAX)
        return fails(EINVAL);
    return pm_set_server(ip, (int)port, ret);
}

JOULE_API int pm_set_server(char *ip, int port, server_t *pm_server)
{
    struct in_addr address;

    memset(pm_server, 0, sizeof(*pm_server));
    if (!ip || !*ip)
        return server_of_environment(pm_server);
    if (inet_pton(AF_INET, ip, &address) != 1 || port < 1 || port > UINT16_MAX)
        return fails(EINVAL);
    memcpy(pm_server->server_ip, ip, strlen(ip));
    pm_server->port = port;
    return 0;
}

/* A number at *at, which moves on. */
static int number_at(const char **at, int *ret)
{
    int number = 0;

    if (**at < '0' || **at > '9')
        return fails(EINVAL);
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        number = 10 * number + (**at - '0');
        if (number >= LINES_MAX)
            return fails(ERANGE);
    }
    *ret = number;
    return 0;
}

JOULE_API int pm_set_lines(char *lines_string, line_t *lines)
{
    const char *at = lines_string;
    line_t set;
    int first, last;

    LINE_CLR_ALL(&set);
    if (!at)
        return fails(EINVAL);
    while (*at) {
        if (number_at(&at, &first) < 0)
            return -1;
        last = first;
        if (*at == '-' && (at++, number_at(&at, &last) < 0))
            return -1;
        if (last < first || (*at && (*at != ',' || !at[1])))
            return fails(EINVAL);
        for (; first <= last; first++)
            LINE_SET(first, &set);
        at += *at == ',';
    }
    *lines = set;
    return 0;
}

JOULE_API int pm_get_devices(server_t pm_server, char ***devices_list,
                             int *num_devices)
{
    const int32_t operation = LIST_DEVICES;
    int64_t deadline_ms = now_ms() + ANSWER_MS;
    int fd = connect_to(&pm_server), count = 0, got = 0;
    char **list = NULL;

    if (fd < 0)
        return -1;
    if (send_all(fd, &operation, sizeof(operation)) < 0 ||
        receive_answer(fd, DEVICES_MAX, &count, deadline_ms) < 0)
        goto fail;
    list = calloc((size_t)count + 1, sizeof(*list));
    if (!list)
        goto fail;
    for (; got < count; got++)
        if (receive_name(fd, &list[got], deadline_ms) < 0)
            goto fail;
    close(fd);
    *devices_list = list;
    *num_devices = count;
    return 0;
fail:
    while (got > 0)
        free(list[--got]);
    free(list);
    close_quietly(fd);
    return -1;
}

JOULE_API int pm_get_device_info(server_t pm_server, char *pm_id, device_t *d)
{
    int64_t deadline_ms = now_ms() + ANSWER_MS;
    int fd = connect_to(&pm_server);
    device_t device = {0};

    if (fd < 0)
        return -1;
    if (send_named(fd, INFO_DEVICE, pm_id, "", 0) < 0 ||
        receive_answer(fd, INT_MAX, &device.max_frecuency, deadline_ms) < 0 ||
        receive_int(fd, 0, LINES_MAX, &device.n_lines, deadline_ms) < 0 ||
        receive_name(fd, &device.name, deadline_ms) < 0) {
        close_quietly(fd);
        return -1;
    }
    close(fd);
    *d = device;
    return 0;
}

/* ---- counters ---- */

static int count_lines(const line_t *set)
{
    int count = 0;

    for (int i = 0; i < LINES_MAX; i++)
        count += LINE_ISSET(i, set);
    return count;
}

static pm_measures_wt *new_measures(void)
{
    pm_measures_wt *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->timing = calloc(2 * SETS_MAX, sizeof(*m->timing));
    if (!m->timing) {
        free(m);
        return NULL;
    }
    return m;
}

static void forget_data(pm_measures *e)
{
    free(e->watts);
    free(e->watts_sets);
    *e = (pm_measures){0};
}

static void free_measures(pm_measures_wt *m)
{
    if (!m)
        return;
    forget_data(&m->energy);
    free(m->timing);
    free(m);
}

/* Of the lines that were asked for those that the device has. */
static void choose_lines(line_t *lines, int num_lines)
{
    bool all = count_lines(lines) == 0;

    for (int i = 0; i < LINES_MAX; i++) {
        if (i >= num_lines)
            LINE_CLR(i, lines);
        else if (all)
            LINE_SET(i, lines);
    }
}

JOULE_API int pm_create_counter(char *pm_id, line_t lines, int aggregate,
                                int interval, server_t pm_server,
                                counter_t *pm_counter)
{
    counter_t c = {.sock = -1, .aggregate = aggregate != 0, .lines = lines};
    struct {
        int32_t interval, aggregate, size;
        line_t lines;
    } request = {interval, c.aggregate, LINE_SETSIZE, lines};
    device_t device = {0};
    int answer;

    /* Programs go on after an error, as the original ends them. */
    *pm_counter = c;
    c.measures = new_measures();
    if (!c.measures)
        return -1;
    c.sock = connect_to(&pm_server);
    if (c.sock < 0 ||
        send_named(c.sock, CREATE, pm_id, &request, sizeof(request)) < 0 ||
        receive_answer(c.sock, 0, &answer, now_ms() + ANSWER_MS) < 0 ||
        pm_get_device_info(pm_server, pm_id, &device) < 0)
        goto fail;
    free(device.name);
    c.num_lines = device.n_lines;
    c.interval = interval ? interval : device.max_frecuency;
    choose_lines(&c.lines, c.num_lines);
    *pm_counter = c;
    return 0;
fail:
    if (c.sock >= 0)
        close_quietly(c.sock);
    free_measures(c.measures);
    return -1;
}

static double wall_s(void)
{
    struct timeval tv;

    gettimeofday(&tv, NULL);
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static int begin_set(counter_t *c, int operation, int set)
{
    pm_measures_wt *m = c->measures;

    if (!m)
        return fails(EINVAL);
    if (set < 0 || set >= SETS_MAX)
        return fails(ENOSPC);
    if (ask(c, operation) < 0)
        return -1;
    m->timing[2 * set] = m->timing[2 * set + 1] = wall_s();
    m->next_timing = set + 1;
    return 0;
}

JOULE_API int pm_start_counter(counter_t *pm_counter)
{
    return begin_set(pm_counter, START, 0);
}

JOULE_API int pm_continue_counter(counter_t *pm_counter)
{
    return begin_set(pm_counter, CONTINUE,
                     pm_counter->measures ? pm_counter->measures->next_timing
                                          : 0);
}

JOULE_API int pm_stop_counter(counter_t *pm_counter)
{
    pm_measures_wt *m = pm_counter->measures;
    double stop_s = wall_s();

    if (!m || m->next_timing < 1)
        return fails(EINVAL);
    if (ask(pm_counter, STOP) < 0)
        return -1;
    m->timing[2 * m->next_timing - 1] = stop_s;
    return 0;
}

/* The sets lie one behind the other, and there are as many values as they say. */
static bool is_sound(const counter_t *c, const pm_measures *e)
{
    int64_t samples;

    for (int i = 0; i < e->watts_sets_size; i++)
        if (e->watts_sets[i] < (i ? e->watts_sets[i - 1] : 0) ||
            (i == 0 && e->watts_sets[0] != 0))
            return false;
    samples = e->watts_sets[e->watts_sets_size - 1];
    if (c->aggregate)
        return e->watts_size == samples;
    return e->lines_len == count_lines(&c->lines) &&
           e->watts_size == samples * e->lines_len;
}

static int receive_data(const counter_t *c, pm_measures *e)
{
    int64_t deadline_ms = now_ms() + ANSWER_MS;
    int fd = c->sock;

    if (receive_answer(fd, WATTS_MAX, &e->watts_size, deadline_ms) < 0 ||
        receive_int(fd, 1, SETS_MAX + 1, &e->watts_sets_size, deadline_ms) <
            0 ||
        receive_int(fd, 0, LINES_MAX, &e->lines_len, deadline_ms) < 0)
        return -1;
    e->watts_sets = calloc((size_t)e->watts_sets_size, sizeof(int));
    if (!e->watts_sets ||
        receive(fd, e->watts_sets, (size_t)e->watts_sets_size * sizeof(int),
                deadline_ms) < 0)
        return -1;
    if (!is_sound(c, e))
        return fails(EPROTO);
    e->watts = calloc((size_t)e->watts_size + 1, sizeof(double));
    if (!e->watts)
        return -1;
    return receive(fd, e->watts, (size_t)e->watts_size * sizeof(double),
                   deadline_ms);
}

JOULE_API int pm_get_counter_data(counter_t *pm_counter)
{
    const int32_t operation = GET;
    pm_measures e = {0};

    if (!pm_counter->measures)
        return fails(EINVAL);
    if (send_all(pm_counter->sock, &operation, sizeof(operation)) < 0 ||
        receive_data(pm_counter, &e) < 0) {
        give_up(pm_counter->sock);
        forget_data(&e);
        return -1;
    }
    forget_data(&pm_counter->measures->energy);
    pm_counter->measures->energy = e;
    return 1;
}

JOULE_API int pm_get_counter_num_sets(counter_t pm_counter, int *num_sets)
{
    if (!pm_counter.measures || !pm_counter.measures->energy.watts_sets)
        return fails(ENODATA);
    *num_sets = pm_counter.measures->energy.watts_sets_size - 1;
    return 0;
}

JOULE_API int pm_finalize_counter(counter_t *pm_counter)
{
    int rc = ask(pm_counter, FINALIZE), error = errno;

    if (pm_counter->sock >= 0)
        close(pm_counter->sock);
    pm_counter->sock = -1;
    free_measures(pm_counter->measures);
    pm_counter->measures = NULL;
    errno = error;
    return rc;
}
