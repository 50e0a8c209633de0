/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is what a BMC says: the size of a sensor record, the record, and
 * an answer to each question about power.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/sensors/sdr.h"
#include "tests/fuzz/fuzz.h"

static void check_value(const struct joule_wire_value *v)
{
    FUZZ_MUST((unsigned)v->status < JOULE_POWER_STATUS_COUNT);
    if (v->status == JOULE_POWER_OK)
        FUZZ_MUST(v->watts > 0 && v->watts <= JOULE_POWER_MAX_W);
    else
        FUZZ_MUST(v->watts == 0);
    FUZZ_MUST((v->code != 0) == (v->status == JOULE_POWER_REFUSED));
}

static void check_record(const uint8_t *record, size_t size,
                         struct joule_sdr *sdr)
{
    struct joule_error err = {""};
    size_t len;

    if (joule_sdr_parse(record, size, sdr, &err) < 0) {
        FUZZ_MUST(errno == ENOMSG || errno == EBADMSG);
        fuzz_check_sentence(&err);
        return;
    }
    len = strnlen(sdr->name, sizeof(sdr->name));
    FUZZ_MUST(len < sizeof(sdr->name));
    for (size_t i = 0; i < len; i++)
        FUZZ_MUST(sdr->name[i] >= 0x20 && sdr->name[i] < 0x7F);
    FUZZ_MUST(len == 0 || sdr->name[len - 1] != ' ');
    FUZZ_MUST(strnlen(sdr->unit, sizeof(sdr->unit)) < sizeof(sdr->unit));
    FUZZ_MUST(sdr->unit[0] != '\0');
    FUZZ_MUST(joule_sdr_step(sdr) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_sdr sdr = {.m = 1};
    struct joule_wire_value v = {0};
    uint8_t attribute = 0;
    size_t len;

    if (size == 0)
        return 0;
    len = data[0];
    data++;
    size--;
    if (len > size)
        len = size;
    check_record(data, len, &sdr);
    joule_ipmi_sensor_answer(&sdr, true, data + len, size - len, &v);
    check_value(&v);
    joule_ipmi_dcmi_answer(false, false, data + len, size - len, &v);
    check_value(&v);
    joule_ipmi_dcmi_answer(true, true, data + len, size - len, &v);
    check_value(&v);
    if (joule_ipmi_dcmi_window(data + len, size - len, &attribute) == 0)
        FUZZ_MUST((attribute & 0x3F) != 0);
    return 0;
}
