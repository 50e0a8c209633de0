/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#define TABLE       "/proc/net/tcp"
#define ESTABLISHED 1 /* include/net/tcp_states.h */
#define LINE_SIZE   256

struct row {
    unsigned from, from_port, to, to_port, state, uid;
    unsigned long inode;
};

int joule_pm_peer_find(FILE *table, const struct sockaddr_in *from,
                       const struct sockaddr_in *to, uid_t *ret)
{
    char line[LINE_SIZE];
    struct row r;

    while (fgets(line, sizeof(line), table)) {
        /* A socket that is closed has neither an owner nor an inode. */
        if (sscanf(line,
                   "%*u: %8X:%4X %8X:%4X %2X %*X:%*X %*X:%*X %*X %u %*d %lu",
                   &r.from, &r.from_port, &r.to, &r.to_port, &r.state, &r.uid,
                   &r.inode) != 7 ||
            r.state != ESTABLISHED || r.inode == 0)
            continue;
        if (r.from == from->sin_addr.s_addr && r.to == to->sin_addr.s_addr &&
            r.from_port == ntohs(from->sin_port) &&
            r.to_port == ntohs(to->sin_port)) {
            *ret = r.uid;
            return 0;
        }
    }
    errno = ENOENT;
    return -1;
}

int joule_pm_peer_uid(int fd, uid_t *ret)
{
    struct sockaddr_in here, there;
    socklen_t size = sizeof(here), size_there = sizeof(there);
    FILE *table;
    int rc, saved;

    if (getsockname(fd, (struct sockaddr *)&here, &size) < 0 ||
        getpeername(fd, (struct sockaddr *)&there, &size_there) < 0)
        return -1;
    table = fopen(TABLE, "re");
    if (!table)
        return -1;
    rc = joule_pm_peer_find(table, &there, &here, ret);
    saved = errno;
    fclose(table);
    errno = saved;
    return rc;
}
