/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loop.h - the reader's life: take a request, do it, answer.
 */
#ifndef JOULE_TOOLS_IPMI_READER_LOOP_H
#define JOULE_TOOLS_IPMI_READER_LOOP_H

#include <sys/types.h>

/* Serve the socket [fd] until it is closed.  Returns the exit code: 0, or 1
 * when it could not go on. */
int joule_reader_loop(int fd, pid_t parent);

#endif
