/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_find.h - which of a BMC's sensors those of the configuration are, and
 * whether they still are the same.
 */
#ifndef JOULE_SENSORS_IPMI_FIND_H
#define JOULE_SENSORS_IPMI_FIND_H

#include "common/sensors/ipmi_repo.h"
#include "common/sensors/ipmi_wire.h"

/* A sensor of the configuration, found. */
struct joule_ipmi_slot {
    enum joule_ipmi_sensor_kind kind; /* RECORD, DCMI or DCMI_ENHANCED */
    uint8_t attribute;                /* DCMI_ENHANCED: averaging period */
    bool changed;                     /* not what found_name or *before said */
    struct joule_sdr sdr;             /* RECORD */
};

/*
 * Find every sensor that the configuration names: slots[sensor_count]. [before]
 * are those of an earlier connection, or NULL.  *ret_remark says what the admin
 * may want to know, or is empty.
 * -1 with a sentence and errno
 *   ENOENT    there is no such record or name; the records are others than
 *             found_name says
 *   ENOTUNIQ  a name that several records have
 *   EINVAL    a record that is not in watts
 *   ENOTSUP   a conversion that is not supported; no DCMI
 *   others    of joule_ipmi_repo_read
 */
int joule_ipmi_find(struct joule_ipmi_repo *repo,
                    const struct joule_ipmi_config *config,
                    const struct joule_ipmi_slot *before, int64_t deadline_ns,
                    struct joule_ipmi_slot *slots,
                    struct joule_error *ret_remark, struct joule_error *err);

/* Say in *ret_remark that records were skipped, if any were. */
void joule_ipmi_say_skipped(const struct joule_ipmi_skipped *skipped,
                            struct joule_error *ret_remark);

/* Whether the slot's record still says what it said.  0, or -1 with a sentence
 * and errno: ESTALE if it does not, else of joule_ipmi_repo_read. */
int joule_ipmi_verify(struct joule_ipmi_repo *repo,
                      const struct joule_ipmi_slot *slot, int64_t deadline_ns,
                      struct joule_error *err);

/* Whether power can be read from what the record describes.  -1 with a
 * sentence and EINVAL or ENOTSUP, as above. */
int joule_ipmi_check_sdr(const struct joule_sdr *sdr, struct joule_error *err);

/* Ask for the slot's power, one message; the configuration says what is
 * believed.  -1: of joule_ipmi_link_ask. */
int joule_ipmi_ask_power(struct joule_ipmi_link *link,
                         const struct joule_ipmi_config *config,
                         const struct joule_ipmi_slot *slot,
                         int64_t deadline_ns, struct joule_wire_value *out,
                         struct joule_error *err);

#endif
