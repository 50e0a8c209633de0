/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule-pmserver - a server for programs that are written for pmlib. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tools/joule/command.h"
#include "tools/pmserver/server.h"

#define PORT      6526 /* pmlib's */
#define VARIABLE  "JOULE_PMSERVER"
#define NOT_FOUND 127
#define NOT_RUN   126

static const char usage[] =
    "usage: joule pmserver [OPTION]... [-- COMMAND...]\n"
    "\n"
    "Answer programs that are written for pmlib, on 127.0.0.1: what this job\n"
    "step uses, what the node uses, and the states of its CPUs.  Only "
    "programs\n"
    "of the same user, and root's, are answered.\n"
    "\n"
    "With a COMMAND, run it with the server's address in JOULE_PMSERVER, and\n"
    "end with it, and with its exit status:\n"
    "\n"
    "  srun joule pmserver -- ./program\n"
    "\n"
    "  --port=N      listen on this port; 0 is any (default: 6526, with a\n"
    "                COMMAND 0)\n"
    "  --list        print the devices, and why others are not there\n"
    "  --node NAME   the NodeName (default: as for joule ledger)\n"
    "  --root DIR    look at the /sys and /run of DIR\n"
    "  --help        print this\n"
    "\n"
    "Exit status: that of COMMAND; else 0 well, 1 there is no device, or the\n"
    "server cannot begin, 2 usage error.\n";

static int fails(const char *text)
{
    fprintf(stderr, "joule pmserver: %s\n", text);
    return 1;
}

static int list_devices(const struct joule_pm_devices *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct joule_pm_device *d = &list->device[i];

        printf("%-10s %3u line%s %3d Hz  %s\n", d->name, d->lines,
               d->lines == 1 ? " " : "s", d->max_hz, d->kind->description);
    }
    for (size_t i = 0; i < list->missing_count; i++)
        printf("%-10s not there: %s\n", list->missing[i].name,
               list->missing[i].why.text);
    return list->count > 0 ? 0 : 1;
}

/* ---- the command ---- */

/* What the server has changed of its process, and the command must not have. */
struct before {
    sigset_t signals;
    struct rlimit files;
};

/* Each idle state of each CPU has a descriptor. */
static void raise_files(struct before *before)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &before->files) < 0)
        before->files = (struct rlimit){1024, 4096};
    files = before->files;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static pid_t start(char **command, uint16_t port, const struct before *before)
{
    char address[32];
    pid_t pid;

    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    if (setenv(VARIABLE, address, 1) < 0)
        return -1;
    pid = fork();
    if (pid != 0)
        return pid;
    setrlimit(RLIMIT_NOFILE, &before->files);
    sigprocmask(SIG_SETMASK, &before->signals, NULL);
    execvp(command[0], command);
    fprintf(stderr, "joule pmserver: cannot run %s: %s\n", command[0],
            strerror(errno));
    _exit(errno == ENOENT ? NOT_FOUND : NOT_RUN);
}

/* Its exit status as a shell has it; -1: it runs. */
static int status_of(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, WNOHANG) != pid)
        return -1;
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Serve until the command ends; without one (-1) until a signal. */
static int serve(struct joule_pm_server *s, int signal_fd, pid_t pid)
{
    struct signalfd_siginfo info;
    int status;

    for (;;) {
        if (joule_pm_server_run(s, signal_fd) < 0)
            return fails(strerror(errno));
        if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
            continue;
        if (pid < 0 && info.ssi_signo != SIGCHLD)
            return 0;
        if (pid < 0)
            continue;
        status = status_of(pid);
        if (status >= 0)
            return status;
        /* The terminal sends it SIGINT and SIGQUIT. */
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGINT &&
            info.ssi_signo != SIGQUIT)
            kill(pid, (int)info.ssi_signo);
    }
}

static int run(struct joule_pm_server *s, char **command)
{
    struct before before;
    sigset_t signals;
    pid_t pid = -1;
    int fd, status;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGQUIT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, &before.signals);
    signal(SIGCHLD, SIG_DFL);
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return fails(strerror(errno));
    raise_files(&before);
    if (command) {
        pid = start(command, joule_pm_server_port(s), &before);
    } else {
        printf(VARIABLE "=127.0.0.1:%u\n", (unsigned)joule_pm_server_port(s));
        fflush(stdout);
    }
    status = command && pid < 0 ? fails(strerror(errno)) : serve(s, fd, pid);
    close(fd);
    return status;
}

/* ---- the command line ---- */

/* Behind "--", which becomes the end of the options. */
static char **split(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++)
        if (strcmp(argv[i], "--") == 0) {
            argv[i] = NULL;
            *argc = i;
            return argv + i + 1;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *port_text = NULL, *node = NULL, *root = "/";
    bool list = false;
    const struct joule_command_option options[] = {
        {"port", .text = &port_text},
        {"list", .flag = &list},
        {"node", .text = &node},
        {"root", .text = &root},
        {NULL},
    };
    struct joule_pm_devices devices;
    struct joule_pm_server *server;
    struct joule_error err;
    uint64_t port = PORT;
    char **command;
    int root_fd, status;

    if (argc < 2 || strcmp(argv[1], "pmserver") != 0)
        return fails("joule-pmserver is started by joule(1)"), 2;
    argc--;
    argv++;
    command = split(&argc, argv);
    status = joule_command_parse(options, usage, argc, argv);
    if (status >= 0)
        return status;
    if (command && !*command)
        return joule_command_error(argv[0], "there is no COMMAND behind --");
    if (command)
        port = 0;
    if (port_text && joule_parse_u64(port_text, 0, UINT16_MAX, &port) < 0)
        return joule_command_error(argv[0], "--port takes 0 to 65535");
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        fprintf(stderr, "joule pmserver: cannot open %s: %s\n", root,
                strerror(errno));
        return 2;
    }
    joule_pm_devices_find(&devices, root_fd, node, &joule_clock_system);
    if (list) {
        status = list_devices(&devices);
    } else {
        if (devices.count == 0)
            fails("there is no device here: joule pmserver --list");
        server = joule_pm_server_open((uint16_t)port, &devices,
                                      &joule_clock_system, &err);
        status = server ? run(server, command) : fails(err.text);
        joule_pm_server_close(server);
    }
    joule_pm_devices_free(&devices);
    close(root_fd);
    return status;
}
