/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/asker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/bmc.h"

/* IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_OPEN_SESSION_PRIVILEGE of FreeIPMI. */
#define OPEN_SESSION_PRIVILEGE 0x10

static void die(const char *what)
{
    fprintf(stderr, "asker: %s: %s\n", what, strerror(errno));
    abort();
}

void asker_config(struct joule_ipmi_config *config, unsigned port)
{
    memset(config, 0, sizeof(*config));
    config->driver = JOULE_IPMI_DRIVER_LAN_2_0;
    snprintf(config->host, sizeof(config->host), "127.0.0.1:%u", port);
    snprintf(config->username, sizeof(config->username), "%s", BMC_USER);
    snprintf(config->password, sizeof(config->password), "%s", BMC_PASSWORD);
    config->privilege = 2;
    config->cipher_suite = 3;
    config->workaround_flags = OPEN_SESSION_PRIVILEGE;
    config->period_ns = JOULE_NS_PER_S;
    config->answer_ns = JOULE_NS_PER_S;
    config->connect_ns = 1500 * JOULE_NS_PER_MS;
    config->label_count = 1;
    snprintf(config->label[0], sizeof(config->label[0]), "Node");
}

struct joule_ipmi_sensor *asker_sensor(struct joule_ipmi_config *config,
                                       enum joule_ipmi_sensor_kind kind)
{
    struct joule_ipmi_sensor *s = &config->sensor[config->sensor_count++];

    s->kind = kind;
    return s;
}

void asker_start(struct asker *a, const char *program, const char *preload)
{
    int fds[2];

    memset(a, 0, sizeof(*a));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        die("socketpair");
    a->pid = fork();
    if (a->pid < 0)
        die("fork");
    if (a->pid == 0) {
        if (preload)
            setenv("LD_PRELOAD", preload, 1);
        /* Where it is built with the sanitizer, that wants to be the first. */
        if (preload)
            setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
        dup2(fds[1], 0);
        execl(program, program, NULL);
        _exit(127);
    }
    close(fds[1]);
    a->fd = fds[0];
}

int asker_stop(struct asker *a)
{
    int status = 0;

    close(a->fd);
    if (waitpid(a->pid, &status, 0) != a->pid)
        die("waitpid");
    return status;
}

ssize_t asker_raw(struct asker *a, const void *packet, size_t size, void *reply,
                  size_t reply_size)
{
    ssize_t n;

    if (send(a->fd, packet, size, MSG_NOSIGNAL) < 0)
        return 0;
    n = recv(a->fd, reply, reply_size, 0);
    return n < 0 ? 0 : n;
}

static int ask(struct asker *a, void *request, size_t size,
               enum joule_wire_type type, struct joule_helper_head *reply,
               size_t reply_size)
{
    struct joule_helper_head *head = request;
    ssize_t n;

    head->version = JOULE_WIRE_VERSION;
    head->type = type;
    head->seq = ++a->seq;
    head->size = (uint32_t)size;
    n = asker_raw(a, request, size, reply, reply_size);
    if (n == 0)
        return -1;
    if ((size_t)n < sizeof(*reply) || reply->size != (size_t)n ||
        reply->seq != a->seq || reply->type != type ||
        (reply->error == 0 && (size_t)n != reply_size)) {
        errno = EPROTO;
        die("reply");
    }
    return reply->error;
}

int asker_open(struct asker *a)
{
    static struct joule_wire_request request;

    memset(&request, 0, sizeof(request));
    request.config = a->config;
    return ask(a, &request, sizeof(request), JOULE_WIRE_OPEN, &a->opened.head,
               sizeof(a->opened));
}

int asker_read(struct asker *a)
{
    struct joule_helper_head request = {0};

    return ask(a, &request, sizeof(request), JOULE_WIRE_READ, &a->values.head,
               JOULE_WIRE_VALUES_SIZE);
}

long asker_status_kb(const struct asker *a, const char *key)
{
    char path[64], line[256];
    long value = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)a->pid);
    file = fopen(path, "re");
    if (!file)
        die(path);
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key) + 1, NULL, 10);
    fclose(file);
    return value;
}

double asker_cpu_s(const struct asker *a)
{
    struct timespec t = {0};
    clockid_t clock;

    if (clock_getcpuclockid(a->pid, &clock) != 0 ||
        clock_gettime(clock, &t) < 0)
        die("CPU clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
