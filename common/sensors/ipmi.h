/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi.h - the power sensors of one BMC: connect, find, read, keep alive.
 *
 * For the reader process only: see ipmi_link.h for what it does to SIGALRM.
 * One thread.
 */
#ifndef JOULE_SENSORS_IPMI_H
#define JOULE_SENSORS_IPMI_H

#include "common/sensors/ipmi_wire.h"

struct joule_ipmi;

/* Not connected yet.  [config] is kept, not copied; it may be changed before
 * each joule_ipmi_connect.  NULL with errno and a sentence. */
struct joule_ipmi *joule_ipmi_create(const struct joule_ipmi_config *config,
                                     struct joule_error *err);

/* Ends the session; NULL is a no-op; errno is kept. */
void joule_ipmi_destroy(struct joule_ipmi *ipmi);

/*
 * Connect (again) and find the sensors, within config->connect_ns: count, found
 * and a remark in the head's text, which may be empty.  [list]: instead of those
 * of the configuration every sensor whose power can be read, each with its
 * value, the BMC's own (DCMI) last and only if it measures or could if it were
 * active; nothing is connected afterwards.
 * -1 with a sentence and errno of joule_ipmi_link_open, joule_ipmi_link_ask,
 * for JOULE_IPMI_SENSOR_DEFAULT joule_ipmi_choose, or
 *   ENOENT    there is no such record or name; the records are others than
 *             found_name says
 *   ENOTUNIQ  a name that several records have
 *   EINVAL    a record that is not in watts
 *   ENOMSG    a record that is not an analog sensor's
 *   EBADMSG   the BMC answers, but no record comes out of it
 *   ENOTSUP   a conversion that is not supported; no DCMI
 */
int joule_ipmi_connect(struct joule_ipmi *ipmi, bool list,
                       struct joule_wire_reply *reply, struct joule_error *err);

/*
 * Read every sensor, one message each, within config->answer_ns.  A session
 * that is gone, or that FreeIPMI thinks is (it counts in wall time), is replaced
 * by a new one once, if time is left and the link is LAN; the records are looked
 * at again then.
 * -1 with a sentence and errno:
 *   ESTALE     the BMC's sensor records have changed; connect again
 *   ENOTCONN   not connected
 *   others     of joule_ipmi_link_ask and joule_ipmi_link_open
 */
int joule_ipmi_read(struct joule_ipmi *ipmi, struct joule_wire_reply *reply,
                    struct joule_error *err);

/*
 * Between readings: keep the session alive, and see once a minute (more
 * often where the period is below 1 s) whether each sensor record is what it
 * was.  Takes 1 s at most if the next reading may come.  Returns after how
 * many ns it wants to be called again, -1: never.
 */
int64_t joule_ipmi_idle(struct joule_ipmi *ipmi);

/* Connected in-band through a driver that uses root's semaphores. */
bool joule_ipmi_wants_ipc(const struct joule_ipmi *ipmi);

#endif
