/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_answer.h - what the answers of a BMC to power questions mean.
 *
 * Pure functions.  An answer is what follows the command byte: the completion
 * code, then the data.  It comes from outside and may hold anything; what is
 * no measurement is said to be none, and nothing is guessed.
 */
#ifndef JOULE_SENSORS_IPMI_ANSWER_H
#define JOULE_SENSORS_IPMI_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sensors/ipmi_wire.h"
#include "common/sensors/sdr.h"

/* Get Sensor Reading (IPMI 2.0, 35.14).  [believe]: also what the BMC says that
 * it does not scan.  Fills watts, status and code. */
void joule_ipmi_sensor_answer(const struct joule_sdr *sdr, bool believe,
                              const uint8_t *rs, size_t size,
                              struct joule_wire_value *out);

/* Get Power Reading (DCMI 1.5, 6.6.1); [average] takes the mean of the BMC's
 * period instead of the present power, [believe] takes it also where the BMC
 * says that it is not active.  Fills watts, status and code. */
void joule_ipmi_dcmi_answer(bool average, bool believe, const uint8_t *rs,
                            size_t size, struct joule_wire_value *out);

/*
 * Get DCMI Capabilities Info, parameter 5 (DCMI 1.5, table 6-3): the attribute
 * byte of the shortest averaging period that is not "now".
 * -1 with ENOTSUP: there is none; EBADMSG: not such an answer.
 */
int joule_ipmi_dcmi_window(const uint8_t *rs, size_t size,
                           uint8_t *ret_attribute);

#endif
