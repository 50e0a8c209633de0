/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/parse.h"

struct sim_control {
    int dir_fd;
    int listen_fd;
    int clients[SIM_CONTROL_CLIENTS];
    size_t client_count;
    struct sim_node *node;
    struct sim_wattmeter *meter;
};

/* Commands: [arg] is the rest of the line, "" if none.  They return 0, with
 * an answer in [reply] if it is not just "ok", or -1 with a sentence. */

static int do_energy(struct sim_control *c, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    uint64_t uj = sim_node_exact(c->node, mono_ns).node_nj / 1000;
    unsigned packages = c->node->machine->packages;
    size_t used;

    (void)arg;
    (void)err;
    used = (size_t)snprintf(reply, size, "%" PRId64 " %" PRIu64, mono_ns, uj);
    for (unsigned i = 0; i < packages && used < size; i++)
        used += (size_t)snprintf(reply + used, size - used, " %" PRIu64,
                                 sim_part(uj, i, packages));
    return 0;
}

static int do_sync(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);

    (void)arg;
    (void)reply;
    (void)size;
    if (!c->meter)
        return joule_error_set(err, ENOENT, "there is no wattmeter log");
    sim_wattmeter_line(c->meter, mono_ns, joule_clock_wall_ns(c->node->clock),
                       sim_node_exact(c->node, mono_ns).node_nj);
    if (sim_wattmeter_sync(c->meter))
        return joule_error_set(err, errno, "cannot write the log: %m");
    return 0;
}

static int do_eio(struct sim_control *c, char *arg, char *reply, size_t size,
                  struct joule_error *err)
{
    uint64_t every;

    (void)reply;
    (void)size;
    if (!strcmp(arg, "off"))
        every = 0;
    else if (!strcmp(arg, "all"))
        every = 1;
    else if (strncmp(arg, "every ", 6) ||
             joule_parse_u64(arg + 6, 1, UINT64_MAX, &every))
        return joule_error_set(err, EINVAL,
                               "eio takes \"every N\", \"all\" or \"off\"");
    c->node->registers.eio_every = every;
    c->node->registers.reads = 0;
    return 0;
}

static int do_freeze(struct sim_control *c, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_freeze(&c->node->registers, &now);
    return 0;
}

static int do_thaw(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_thaw(&c->node->registers, &now);
    return 0;
}

static int do_load(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_load *load = sim_load_parse(arg, err);

    (void)reply;
    (void)size;
    if (!load)
        return -1;
    sim_model_set_load(c->node->model, load,
                       joule_clock_mono_ns(c->node->clock) - c->node->start_ns);
    return 0;
}

static int do_busy(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    (void)reply;
    (void)size;
    if (sim_parse_uw(arg, &c->node->busy_uw))
        return joule_error_set(err, EINVAL, "\"%s\" is not a power in watts",
                               arg);
    sim_node_busy_changed(c->node);
    return 0;
}

static int do_freq(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    int64_t khz;

    (void)reply;
    (void)size;
    if (sim_parse_fixed(arg, 6, 100000000, &khz) || khz < 1)
        return joule_error_set(err, EINVAL, "\"%s\" is not a frequency in GHz",
                               arg);
    c->node->khz = (uint64_t)khz;
    sim_node_busy_changed(c->node);
    return 0;
}

static int do_add_cgroup(struct sim_control *c, char *arg, char *reply,
                         size_t size, struct joule_error *err)
{
    (void)reply;
    (void)size;
    return sim_drive_add_cgroup(c->node->drive, arg, err);
}

static int do_add_pid(struct sim_control *c, char *arg, char *reply,
                      size_t size, struct joule_error *err)
{
    uint64_t pid;

    (void)reply;
    (void)size;
    if (joule_parse_u64(arg, 1, INT_MAX, &pid))
        return joule_error_set(err, EINVAL, "\"%s\" is not a process id", arg);
    return sim_drive_add_pid(c->node->drive, (pid_t)pid, err);
}

static const struct command {
    const char *name;
    const char *arg; /* NULL: takes none */
    int (*run)(struct sim_control *c, char *arg, char *reply, size_t size,
               struct joule_error *err);
    const char *help;
} commands[] = {
    {"energy", NULL, do_energy, "mono_ns node_uj package0_uj ... of now"},
    {"sync", NULL, do_sync, "write a line of now and flush the log"},
    {"eio", "every N|all|off", do_eio,
     "every Nth read of an energy counter fails"},
    {"freeze", NULL, do_freeze, "the counters stop; the wattmeter does not"},
    {"thaw", NULL, do_thaw, "they go on from where they stood"},
    {"load", "SPEC", do_load, "another generator from now on"},
    {"busy", "W", do_busy, "another power of a busy CPU from now on"},
    {"freq", "GHZ", do_freq, "another frequency from now on"},
    {"add-cgroup", "PATH", do_add_cgroup, "count this cgroup too"},
    {"add-pid", "PID", do_add_pid, "count this process too"},
    {NULL, NULL, NULL, NULL},
};

void sim_control_help(void)
{
    for (const struct command *c = commands; c->name; c++) {
        int used = printf("  %s %s", c->name, c->arg ? c->arg : "");

        printf("%*s%s\n", used < 28 ? 28 - used : 1, "", c->help);
    }
}

void sim_control_command(struct sim_control *control, char *line, char *reply,
                         size_t size)
{
    struct joule_error err = {""};
    const struct command *c = commands;
    char *arg;
    int rc;

    line[strcspn(line, "\n")] = '\0';
    arg = strchrnul(line, ' ');
    if (*arg)
        *arg++ = '\0';
    while (c->name && strcmp(c->name, line))
        c++;
    reply[0] = '\0';
    if (!c->name)
        rc = joule_error_set(&err, EINVAL, "no command \"%s\"", line);
    else if (!c->arg != !*arg)
        rc = joule_error_set(&err, EINVAL, "usage: %s %s", c->name,
                             c->arg ? c->arg : "");
    else
        rc = c->run(control, arg, reply, size, &err);
    if (rc)
        snprintf(reply, size, "error: %s", err.text);
    else if (!*reply)
        snprintf(reply, size, "ok");
}

/* The address of "control" in a directory, whatever the length of its path:
 * sun_path holds 108 characters only. */
static struct sockaddr_un control_address(int dir_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path),
             "/proc/self/fd/%d/control", dir_fd);
    return address;
}

struct sim_control *sim_control_create(int dir_fd, struct sim_node *node,
                                       struct sim_wattmeter *meter,
                                       struct joule_error *err)
{
    struct sim_control *c = calloc(1, sizeof(*c));
    struct sockaddr_un address;
    mode_t mask;
    int rc;

    if (!c) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    c->node = node;
    c->meter = meter;
    c->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    c->listen_fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->dir_fd < 0 || c->listen_fd < 0)
        goto fail;
    unlinkat(c->dir_fd, "control", 0);
    address = control_address(c->dir_fd);
    mask = umask(0177);
    rc = bind(c->listen_fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    if (rc || listen(c->listen_fd, SIM_CONTROL_CLIENTS))
        goto fail;
    return c;
fail:
    joule_error_set(err, errno, "cannot listen at the control socket: %m");
    sim_control_destroy(c);
    return NULL;
}

void sim_control_destroy(struct sim_control *control)
{
    int saved = errno;

    if (!control)
        return;
    for (size_t i = 0; i < control->client_count; i++)
        close(control->clients[i]);
    if (control->listen_fd >= 0)
        close(control->listen_fd);
    if (control->dir_fd >= 0) {
        unlinkat(control->dir_fd, "control", 0);
        close(control->dir_fd);
    }
    free(control);
    errno = saved;
}

size_t sim_control_poll(const struct sim_control *control, struct pollfd *fds)
{
    /* With every place taken, the next client waits in the backlog. */
    bool room = control->client_count < SIM_CONTROL_CLIENTS;

    fds[0] = (struct pollfd){control->listen_fd, room ? POLLIN : 0, 0};
    for (size_t i = 0; i < control->client_count; i++)
        fds[1 + i] = (struct pollfd){control->clients[i], POLLIN, 0};
    return 1 + control->client_count;
}

/* Answer one packet; -1 when the client is gone. */
static int client_serve(struct sim_control *control, int fd)
{
    char line[SIM_CONTROL_LINE], reply[SIM_CONTROL_LINE];
    ssize_t len = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len <= 0)
        return -1;
    line[len] = '\0';
    sim_control_command(control, line, reply, sizeof(reply));
    len = (ssize_t)strlen(reply);
    return send(fd, reply, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len
               ? 0
               : -1;
}

void sim_control_serve(struct sim_control *control, const struct pollfd *fds)
{
    size_t polled = control->client_count, kept = 0;

    for (size_t i = 0; i < polled; i++) {
        int fd = control->clients[i];

        if (fds[1 + i].revents && client_serve(control, fd))
            close(fd);
        else
            control->clients[kept++] = fd;
    }
    control->client_count = kept;
    if (fds[0].revents & POLLIN) {
        int fd = accept4(control->listen_fd, NULL, NULL,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0)
            control->clients[control->client_count++] = fd;
    }
}

int sim_control_ask(const char *dir, const char *command, char *reply,
                    size_t size, struct joule_error *err)
{
    const struct timeval timeout = {.tv_sec = 5};
    struct sockaddr_un address;
    int dir_fd, fd = -1, rc = -1;
    ssize_t len = -1;

    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", dir);
    address = control_address(dir_fd);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
        connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        joule_error_set(err, errno, "no nodesim answers at %s: %m", dir);
        goto out;
    }
    if (send(fd, command, strlen(command), MSG_NOSIGNAL) >= 0)
        len = recv(fd, reply, size - 1, 0);
    if (len <= 0) {
        joule_error_set(err, len ? errno : ECONNRESET,
                        "the nodesim at %s gave no answer", dir);
        goto out;
    }
    reply[len] = '\0';
    if (strncmp(reply, "error: ", 7))
        rc = 0;
    else
        joule_error_set(err, EPROTO, "%s", reply + 7);
out:
    if (fd >= 0)
        close(fd);
    close(dir_fd);
    return rc;
}
