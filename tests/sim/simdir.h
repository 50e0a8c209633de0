/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simdir.h - what every simulator that serves a directory does: take the
 * directory, catch the signals that end it, say that it is ready.
 */
#ifndef SIM_SIMDIR_H
#define SIM_SIMDIR_H

#include "common/base/error.h"

/*
 * Open DIR, made if missing, and lock it: its files are replaced, so it must
 * neither be the machine's own root nor that of another simulator.  A file
 * "ready" of an earlier run is removed.  [who] is the simulator's name.  The
 * descriptor, or -1 with errno and a sentence.
 */
int sim_dir_open(const char *dir, const char *who, struct joule_error *err);

/* Block SIGTERM, SIGINT and SIGHUP (before anything is mounted: none can end
 * the process without the unmount), ignore SIGPIPE.  A descriptor that is
 * readable after one of them, or -1 with errno and a sentence. */
int sim_signals_open(struct joule_error *err);

/* Make the file "ready", and write "ready" to [ready_fd] and close it if it
 * is not -1.  0, or -1 with errno and a sentence. */
int sim_ready_tell(int dir_fd, int ready_fd, struct joule_error *err);

#endif
