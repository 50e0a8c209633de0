/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peer.h - whose a connection is.
 *
 * TCP does not tell, but both of its ends are on this machine, and the kernel's
 * table says whose each is (proc(5), /proc/net/tcp).
 */
#ifndef JOULE_PMSERVER_PEER_H
#define JOULE_PMSERVER_PEER_H

#include <netinet/in.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * The user of the other end of the connected IPv4 socket [fd].  -1 with errno:
 * ENOENT (not established any more, or not of this machine), or of getsockname,
 * getpeername or open.  Reads the table: some ms where there are thousands of
 * connections.
 */
int joule_pm_peer_uid(int fd, uid_t *ret);

/* The same of a table: the established connection from [from] to [to]. */
int joule_pm_peer_find(FILE *table, const struct sockaddr_in *from,
                       const struct sockaddr_in *to, uid_t *ret);

#endif
