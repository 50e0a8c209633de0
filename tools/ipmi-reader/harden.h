/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * harden.h - what the reader process gives up before it talks to a BMC.
 */
#ifndef JOULE_TOOLS_IPMI_READER_HARDEN_H
#define JOULE_TOOLS_IPMI_READER_HARDEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/error.h"

/*
 * At the start, before anything is read: no descriptor but 0, 1 and 2, no
 * environment, no core file, not
 * to be traced, no new privileges, a bound on memory, all signals blocked.
 * The process is killed with [parent].  -1 with errno and a sentence.
 */
int joule_harden_start(pid_t parent, struct joule_error *err);

/*
 * Before packets of the LAN are parsed, and once a device is open: be the user
 * "slurm-joule" of /etc/passwd, or nobody if there is none, without
 * capabilities and with an empty bounding set; [keep_ipc] keeps CAP_IPC_OWNER.
 * A process that is not root stays who it is.  From then on a system call that
 * reading a BMC does not need ends the process (SIGSYS).  Once only; cannot be
 * undone; -1 with errno and a sentence: go on in no case.
 */
int joule_harden_drop(pid_t parent, bool keep_ipc, struct joule_error *err);

#endif
