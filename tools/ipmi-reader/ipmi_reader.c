/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule-ipmi-reader - asks a BMC for the node's power, for the sampler in
 * slurmd, which talks to it over descriptor 0 (common/sensors/ipmi_wire.h).
 *
 * It is a process of its own so that nothing FreeIPMI does, waits for or
 * breaks happens in slurmd.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "tools/ipmi-reader/harden.h"
#include "tools/ipmi-reader/loop.h"

#define NAME "joule-ipmi-reader"

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

static int is_packet_socket(int fd)
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
    return joule_reader_loop(STDIN_FILENO, parent);
}
