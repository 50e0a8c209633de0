/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_MAX_LEN 32

struct sim_talk {
    int dir_fd, listen_fd, epoll_fd;
    char name[NAME_MAX_LEN];
    size_t clients;
    sim_talk_f command;
    void *arg;
};

/* The address of a socket in a directory, whatever the length of its path:
 * sun_path holds 108 characters only. */
static struct sockaddr_un talk_address(int dir_fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path),
             "/proc/self/fd/%d/%.*s", dir_fd, NAME_MAX_LEN, name);
    return address;
}

/* Bind with a mode that no moment makes wider. */
static int talk_bind(struct sim_talk *talk)
{
    struct sockaddr_un address = talk_address(talk->dir_fd, talk->name);
    mode_t mask = umask(0177);
    int rc;

    unlinkat(talk->dir_fd, talk->name, 0);
    rc = bind(talk->listen_fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    return rc;
}

static int talk_watch(struct sim_talk *talk, int op, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(talk->epoll_fd, op, fd, &event);
}

struct sim_talk *sim_talk_create(int dir_fd, const char *name,
                                 sim_talk_f command, void *arg,
                                 struct joule_error *err)
{
    struct sim_talk *talk = calloc(1, sizeof(*talk));

    if (!talk) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    talk->command = command;
    talk->arg = arg;
    snprintf(talk->name, sizeof(talk->name), "%s", name);
    talk->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    talk->listen_fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    talk->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (talk->dir_fd >= 0 && talk->listen_fd >= 0 && talk->epoll_fd >= 0 &&
        !talk_bind(talk) && !listen(talk->listen_fd, SIM_TALK_CLIENTS) &&
        !talk_watch(talk, EPOLL_CTL_ADD, talk->listen_fd))
        return talk;
    joule_error_set(err, errno, "cannot listen at the %s socket: %m", name);
    sim_talk_destroy(talk);
    return NULL;
}

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

void sim_talk_destroy(struct sim_talk *talk)
{
    int saved = errno;

    if (!talk)
        return;
    close_if(talk->epoll_fd);
    close_if(talk->listen_fd);
    if (talk->dir_fd >= 0)
        unlinkat(talk->dir_fd, talk->name, 0);
    close_if(talk->dir_fd);
    free(talk);
    errno = saved;
}

int sim_talk_fd(const struct sim_talk *talk)
{
    return talk->epoll_fd;
}

/* Answer one packet; -1 when the client is gone. */
static int client_serve(struct sim_talk *talk, int fd)
{
    char line[SIM_TALK_LINE], reply[SIM_TALK_LINE];
    ssize_t len = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len <= 0)
        return -1;
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    reply[0] = '\0';
    talk->command(talk->arg, line, reply, sizeof(reply));
    len = (ssize_t)strlen(reply);
    return send(fd, reply, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len
               ? 0
               : -1;
}

static void client_accept(struct sim_talk *talk)
{
    int fd = accept4(talk->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (talk_watch(talk, EPOLL_CTL_ADD, fd)) {
        close(fd);
        return;
    }
    /* With every place taken, the next client waits in the backlog. */
    if (++talk->clients == SIM_TALK_CLIENTS)
        talk_watch(talk, EPOLL_CTL_DEL, talk->listen_fd);
}

static void client_close(struct sim_talk *talk, int fd)
{
    close(fd);
    if (talk->clients-- == SIM_TALK_CLIENTS)
        talk_watch(talk, EPOLL_CTL_ADD, talk->listen_fd);
}

void sim_talk_serve(struct sim_talk *talk)
{
    struct epoll_event events[1 + SIM_TALK_CLIENTS];
    int count = epoll_wait(talk->epoll_fd, events, 1 + SIM_TALK_CLIENTS, 0);

    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;

        if (fd == talk->listen_fd)
            client_accept(talk);
        else if (client_serve(talk, fd))
            client_close(talk, fd);
    }
}

/* The client. */

int sim_talk_open(const char *dir, const char *name, int wait_ms,
                  struct joule_error *err)
{
    const struct timeval timeout = {.tv_sec = wait_ms / 1000,
                                    .tv_usec = wait_ms % 1000 * 1000};
    struct sockaddr_un address;
    int dir_fd, fd;

    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", dir);
    address = talk_address(dir_fd, name);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
        connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        joule_error_set(err, errno, "no simulator answers at %s/%s: %m", dir,
                        name);
        close_if(fd);
        fd = -1;
    }
    close(dir_fd);
    return fd;
}

int sim_talk_exchange(int fd, const char *command, char *reply, size_t size,
                      struct joule_error *err)
{
    ssize_t len = -1;

    if (send(fd, command, strlen(command), MSG_NOSIGNAL) >= 0)
        len = recv(fd, reply, size - 1, 0);
    if (len <= 0)
        return joule_error_set(err, len ? errno : ECONNRESET,
                               "the simulator gave no answer");
    reply[len] = '\0';
    if (strncmp(reply, "error: ", 7))
        return 0;
    return joule_error_set(err, EPROTO, "%s", reply + 7);
}

int sim_talk_ask(const char *dir, const char *name, const char *command,
                 char *reply, size_t size, struct joule_error *err)
{
    int fd = sim_talk_open(dir, name, 5000, err);
    int rc;

    if (fd < 0)
        return -1;
    rc = sim_talk_exchange(fd, command, reply, size, err);
    close(fd);
    return rc;
}
