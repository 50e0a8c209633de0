/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fakereader - stands in for joule-ipmi-reader.  What it does is its name: a
 * test makes a symbolic link to it.  Where a name ends in a number, it is
 * well for so many readings.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_wire.h"

extern char **environ;

static const char *mode;
static unsigned well; /* readings before the fault */
static struct joule_ipmi_config config;
static int file_fd = -1; /* that came with the last request */

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void answer(const struct joule_helper_head *request, void *packet,
                   size_t size)
{
    struct joule_helper_head *head = packet;

    head->version = JOULE_WIRE_VERSION;
    head->type = request->type;
    head->seq = request->seq;
    head->size = (uint32_t)size;
    if (send(0, packet, size, MSG_NOSIGNAL) != (ssize_t)size)
        _exit(3);
}

static void answer_error(const struct joule_helper_head *request, int errnum,
                         const char *text)
{
    struct joule_helper_head head = {.error = errnum};

    snprintf(head.text, sizeof(head.text), "%s", text);
    answer(request, &head, sizeof(head));
}

/* What a process can learn about how it was started. */
static void look_around(char *text, size_t size)
{
    char line[256] = "", cwd[64] = "?";
    int fds = 0, flags = 0, ignored = 0, variables = 0;
    ssize_t n;
    sigset_t mask;
    bool blocked = false;
    DIR *dir = opendir("/proc/self/fd");
    int fd = open("/proc/self/cmdline", O_RDONLY);

    while (dir && readdir(dir))
        fds++;
    fds -= 4; /* ".", "..", the directory, cmdline */
    n = read(fd, line, sizeof(line) - 1);
    for (ssize_t i = 0; i < n - 1; i++)
        if (line[i] == '\0')
            line[i] = '|';
    for (int i = 0; i < 3; i++)
        flags = flags * 10 + (fcntl(i, F_GETFL) & O_ACCMODE);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < 32; i++) {
        struct sigaction sa;

        if (sigismember(&mask, i) == 1)
            blocked = true;
        /* A sanitizer has handlers of its own. */
        if (i == SIGSEGV || i == SIGBUS || i == SIGFPE)
            continue;
        if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL)
            ignored++;
    }
    while (environ && environ[variables])
        variables++;
    if (!getcwd(cwd, sizeof(cwd)))
        cwd[0] = '\0';
    snprintf(text, size,
             "fds=%d flags=%d env=%d cmdline=%s session=%s blocked=%d "
             "handlers=%d cwd=%s",
             fds, flags, variables, line, getsid(0) == getpid() ? "own" : "?",
             blocked, ignored, cwd);
    close(fd);
    closedir(dir);
}

static void find(struct joule_wire_reply *reply)
{
    reply->count = config.sensor_count;
    for (uint32_t i = 0; i < config.sensor_count; i++) {
        struct joule_wire_found *found = &reply->found[i];
        const struct joule_ipmi_sensor *sensor = &config.sensor[i];

        found->kind = sensor->kind;
        if (sensor->kind <= JOULE_IPMI_SENSOR_NAME) {
            found->kind = JOULE_IPMI_SENSOR_RECORD;
            found->record_id = sensor->record_id ? sensor->record_id : 2;
            snprintf(found->name, sizeof(found->name), "%s",
                     sensor->name[0] ? sensor->name : "Node");
            found->step_w = 2;
            found->max_w = 510;
        }
        snprintf(found->unit, sizeof(found->unit), "W");
        /* A later connection must know what the first has found. */
        if (is("remembers") && sensor->found_name[0])
            snprintf(reply->head.text, sizeof(reply->head.text), "knows %s",
                     sensor->found_name);
    }
}

/* The file's name, and what is in it. */
static void tell_file(const char *name, char *text, size_t size)
{
    char content[64];
    ssize_t n = read(file_fd, content, sizeof(content));

    snprintf(text, size, "%.400s: %.*s", name, n < 0 ? 0 : (int)n, content);
}

static void open_bmc(const struct joule_wire_request *request)
{
    struct joule_wire_reply reply;

    config = request->config;
    memset(&reply, 0, sizeof(reply));
    if (is("refuses")) {
        answer_error(&request->head, EACCES, "the BMC refuses the password");
        return;
    }
    if (is("refuses-again")) {
        answer_error(&request->head, EAGAIN, "");
        return;
    }
    if (is("connects-late"))
        sleep(60);
    find(&reply);
    if (is("looks"))
        look_around(reply.head.text, sizeof(reply.head.text));
    if (is("counts-wrong"))
        reply.count++;
    if (is("reads-file"))
        tell_file(request->head.text, reply.head.text, sizeof(reply.head.text));
    answer(&request->head, &reply, sizeof(reply));
}

/* Sensor i reads 100 + i W: or what its name says, "=-5" or "!3" (status 3).
 */
static void measure(struct joule_wire_reply *reply)
{
    reply->count = config.sensor_count;
    for (uint32_t i = 0; i < config.sensor_count; i++) {
        struct joule_wire_value *v = &reply->value[i];
        const char *name = config.sensor[i].name;

        v->begin_ns = joule_clock_mono_ns(&joule_clock_system);
        v->end_ns = v->begin_ns + 10;
        v->watts = name[0] == '=' ? strtod(name + 1, NULL) : 100.0 + i;
        if (name[0] == '!')
            v->status = (enum joule_power_status)atoi(name + 1);
        if (name[0] == '@') {
            v->begin_ns = atoll(name + 1);
            v->end_ns = v->begin_ns + 100;
        }
    }
}

/* The fault of this mode.  true: an answer is due nevertheless. */
static bool fault(const struct joule_helper_head *request,
                  struct joule_wire_reply *reply)
{
    struct joule_helper_head other = *request;

    if (is("late"))
        usleep(60 * 1000 * 1000);
    else if (is("stops"))
        raise(SIGSTOP);
    else if (is("crashes"))
        raise(SIGKILL); /* no core file, no handler of a sanitizer */
    else if (is("forbidden"))
        raise(SIGSYS);
    else if (is("remembers"))
        _exit(0);
    else if (is("exits") || is("reads-file"))
        _exit(7);
    else if (is("closes")) {
        close(0);
        sleep(60);
    } else if (is("fails"))
        answer_error(request, EIO, "the BMC dropped the session");
    else if (is("fails-and-goes")) {
        answer_error(request, EIO, "the BMC dropped the session");
        _exit(0);
    } else if (is("fails-mute"))
        answer_error(request, -1, "");
    else if (is("babbles")) {
        if (send(0, "what?", 5, 0) < 0)
            _exit(3);
    } else if (is("old")) {
        reply->head.version = JOULE_WIRE_VERSION + 1;
        reply->head.seq = request->seq;
        reply->head.size = JOULE_WIRE_VALUES_SIZE;
        if (send(0, reply, JOULE_WIRE_VALUES_SIZE, 0) < 0)
            _exit(3);
    } else if (is("short"))
        answer(request, reply, JOULE_WIRE_VALUES_SIZE - 8);
    else if (is("long")) {
        static char big[1 << 16];

        answer(request, big, sizeof(big));
    } else if (is("confuses")) {
        other.type = JOULE_WIRE_OPEN;
        answer(&other, reply, JOULE_WIRE_VALUES_SIZE);
    } else if (is("wrong-seq")) {
        other.seq--;
        answer(&other, reply, JOULE_WIRE_VALUES_SIZE);
    } else if (is("wrong-seq-first")) {
        other.seq += 1000;
        reply->value[0].watts = 666;
        answer(&other, reply, JOULE_WIRE_VALUES_SIZE);
        reply->value[0].watts = 100;
        return true;
    } else if (is("twice")) {
        answer(request, reply, JOULE_WIRE_VALUES_SIZE);
        reply->value[0].watts = 666;
        return true;
    } else if (is("slow")) {
        usleep(50 * 1000);
        return true;
    } else if (is("one-less")) {
        reply->count--;
        return true;
    } else {
        return true;
    }
    return false;
}

static ssize_t receive(void *request, size_t size)
{
    struct iovec part = {request, size};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(0, &packet, 0);

    if (n > 0 && CMSG_FIRSTHDR(&packet))
        memcpy(&file_fd, CMSG_DATA(CMSG_FIRSTHDR(&packet)), sizeof(file_fd));
    return n;
}

/* One sensor: what it reads may be nothing that there is. */
static void list(const struct joule_helper_head *request)
{
    static struct joule_wire_reply reply;

    reply.count = is("lists-many") ? JOULE_IPMI_SENSORS_MAX + 1 : 1;
    if (is("lists-nothing"))
        reply.value[0].status = JOULE_POWER_STATUS_COUNT;
    answer(request, &reply, sizeof(reply));
}

int main(int argc, char *argv[])
{
    static union {
        struct joule_helper_head head;
        struct joule_wire_request open;
    } request;
    static struct joule_wire_reply reply;
    char none[1] = "", *name = argc == 1 ? basename(argv[0]) : none;
    char *number = strpbrk(name, "0123456789");

    mode = name;
    if (number) {
        well = (unsigned)atoi(number);
        *number = '\0';
    }
    if (is("gone"))
        _exit(0);
    while (receive(&request, sizeof(request)) > 0) {
        if (request.head.type == JOULE_WIRE_OPEN) {
            open_bmc(&request.open);
            continue;
        }
        if (request.head.type == JOULE_WIRE_LIST) {
            list(&request.head);
            continue;
        }
        memset(&reply, 0, sizeof(reply));
        measure(&reply);
        if (well > 0) {
            well--;
            answer(&request.head, &reply, JOULE_WIRE_VALUES_SIZE);
        } else if (fault(&request.head, &reply)) {
            answer(&request.head, &reply, JOULE_WIRE_VALUES_SIZE);
        }
    }
    _exit(0);
}
