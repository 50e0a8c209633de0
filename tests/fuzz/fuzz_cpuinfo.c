/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The input is the text of /proc/cpuinfo. */
#include <errno.h>
#include <string.h>

#include "common/sensors/cpuinfo.h"
#include "common/sensors/rapl_row.h"
#include "tests/fuzz/fuzz.h"

static void check_printable(const char *text, size_t size)
{
    size_t len = strnlen(text, size);

    FUZZ_MUST(len < size);
    for (size_t i = 0; i < len; i++)
        FUZZ_MUST(text[i] >= 0x20 && text[i] < 0x7F);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_cpuinfo info, before;
    struct joule_error err = {""};
    const struct joule_rapl_row *row;
    struct joule_unit unit;

    memset(&info, 0xA5, sizeof(info));
    memcpy(&before, &info, sizeof(info));
    if (joule_cpuinfo_parse((const char *)data, size, &info, &err) < 0) {
        FUZZ_MUST(errno == EINVAL);
        FUZZ_MUST(memcmp(&before, &info, sizeof(info)) == 0);
        fuzz_check_sentence(&err);
        return 0;
    }
    check_printable(info.vendor, sizeof(info.vendor));
    check_printable(info.name, sizeof(info.name));
    FUZZ_MUST(info.family <= 4095 && info.model <= 4095);
    row = joule_rapl_row_find(&info);
    if (row &&
        joule_rapl_row_unit(row, JOULE_DOMAIN_PACKAGE, size << 8, &unit) == 0)
        FUZZ_MUST(unit.num >= 1 && unit.shift <= 31);
    return 0;
}
