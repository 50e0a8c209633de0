/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * server.h - answers pmlib's clients of one user, on 127.0.0.1.
 *
 *     s = joule_pm_server_open(port, &devices, clock, &err);
 *     while (!done)
 *         joule_pm_server_run(s, wake_fd);
 *     joule_pm_server_close(s);
 *
 * Connections of other users than the effective one and root are closed without
 * an answer, as are more than JOULE_PM_CONNECTIONS.  One that sends half a request,
 * takes no answer, or has nothing asked yet is closed after 5 s; one that sends
 * what is no request gets -1 before.
 */
#ifndef JOULE_PMSERVER_SERVER_H
#define JOULE_PMSERVER_SERVER_H

#include "tools/pmserver/device.h"

#define JOULE_PM_CONNECTIONS 64

struct joule_pm_server;

/* [port] 0: any.  Devices are the caller's, and stay.  NULL with errno and a
 * sentence: EADDRINUSE, ENOMEM, ... */
struct joule_pm_server *joule_pm_server_open(uint16_t port,
                                             struct joule_pm_devices *devices,
                                             const struct joule_clock *clock,
                                             struct joule_error *err);
void joule_pm_server_close(struct joule_pm_server *server);

uint16_t joule_pm_server_port(const struct joule_pm_server *server);

/* Serve until [wake_fd] can be read.  -1 with errno of poll. */
int joule_pm_server_run(struct joule_pm_server *server, int wake_fd);

#endif
