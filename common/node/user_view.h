/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_view.h - what a user may see of the ledger: his own rows, in a file that
 * only he and root can read, /run/slurm-joule/<NodeName>/users/<uid>/rows.
 *
 * The sampler writes one file for each user who has rows, or had some within the
 * last minute: root's, 0600, in a directory of its own, 0700, both with an
 * access list (POSIX ACL) that lets the user in.  The numbers change no more
 * often than the admin allows (CVE-2020-8694), and power is the mean between two
 * changes.  Energy up to a moment between two changes (the end of a step), or of
 * less time than that, is in whole joules, unless each job is charged the whole
 * node.
 *
 * The writer is passive and belongs to one thread at a time: the writer of the
 * ledger.  Readers need nothing of it; one that overlaps
 * with the writer tries again.
 */
#ifndef JOULE_NODE_USER_VIEW_H
#define JOULE_NODE_USER_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/clock.h"
#include "common/node/ledger.h"
#include "lib/user_rows.h"

#define JOULE_USERVIEW_LINGER_NS (60 * JOULE_NS_PER_S)
#define JOULE_USERVIEW_PAST      64 /* rows of a user that are remembered */
#define JOULE_USERVIEW_USERS     JOULE_LEDGER_SLOTS_MAX
#define JOULE_USERVIEW_OPEN      64 /* files: half of the cost is opening one */
#define JOULE_USERVIEW_ROWS_MAX  JOULE_USER_ROWS_MAX /* in all */

/* What stands above the rows. */
struct joule_user_totals {
    int64_t mono_ns, wall_ns; /* of the sample in which they were so */
    int64_t period_ns;        /* they change no more often than that */
    int64_t sample_period_ns; /* nor than the sampler samples */
    enum joule_attribution how;
};

struct joule_userview;

struct joule_userview_options {
    int64_t period_ns;        /* JouleUserPeriod; one of them may be a sixteenth
                                 shorter, the next is longer then */
    int64_t sample_period_ns; /* JouleSamplePeriod, for readers to know */
    enum joule_attribution attribution;
};

/*
 * Make the directory of the files below root_fd
 * ("run/slurm-joule/NODE/users") where it is missing, and remove what an
 * earlier writer has left in it.  NULL with errno and a sentence: EINVAL,
 * ENOMEM, EOPNOTSUPP (the file system has no access lists: nobody but root can
 * be shown anything), and as joule_nodedir_open.
 */
struct joule_userview *
joule_userview_create(int root_fd, const char *node,
                      const struct joule_userview_options *options,
                      struct joule_error *err);

/* NULL is a no-op; errno is kept.  The files stay, as the ledger does. */
void joule_userview_destroy(struct joule_userview *view);

/*
 * After each publication of the ledger: rows[i] is that of slot i (owner 0:
 * none), as they are at [mono_ns].  Files are written when the period is over
 * and something in them has changed; a row that has gone is shown as ended for
 * JOULE_USERVIEW_LINGER_NS, then the user's file goes with the last of them.
 * Of users with a row in the ledger up to JOULE_USERVIEW_OPEN files stay open.
 *
 * Returns 0, or -1 with errno and a sentence if a file could not be written or
 * removed: its user then has none until the next call, which tries again.
 * Costs some ns a row, and a few us for each file that is written.
 */
int joule_userview_publish(struct joule_userview *view,
                           const struct joule_row *rows, size_t count,
                           int64_t mono_ns, int64_t wall_ns,
                           struct joule_error *err);

/*
 * The numbers of [uid]: as this user, or as root.  *count in: room in
 * ret_rows, out: rows there are, if fewer (JOULE_USERVIEW_ROWS_MAX is room for
 * any).  -1 with errno and a sentence:
 *   ENOENT      no sampler has run, or the user had no step in the last minute
 *   ESTALE      the file is of another boot or version
 *   EOPNOTSUPP  there are no files, because the file system has no access
 *               lists
 *   EACCES      it is another user's
 *   EPERM       something on the path is a symbolic link, has another owner or
 *               may be written by others
 *   EBADMSG     what is there makes no sense
 */
int joule_userview_read(int root_fd, const char *node, uid_t uid,
                        struct joule_user_totals *ret_totals,
                        struct joule_user_row *ret_rows, size_t *count,
                        struct joule_error *err);

#endif
