/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests for frequencies and the journal.  The first byte says which; a
 * journal gets the checksum that it needs.
 */
#include <errno.h>
#include <string.h>

#include "common/cpufreq/journal.h"
#include "tests/fuzz/fuzz.h"

#define TITLE "slurm-joule cpufreq journal 1\n"

static void request(const char *text)
{
    char canonical[JOULE_REQUEST_TEXT_MAX];
    struct joule_request r, again;
    struct joule_error err = {""};

    if (joule_request_parse(text, &r, &err) < 0) {
        FUZZ_MUST(errno == EINVAL || errno == ERANGE);
        fuzz_check_sentence(&err);
        return;
    }
    joule_request_format(&r, canonical);
    FUZZ_MUST(joule_request_parse(canonical, &again, NULL) == 0);
    FUZZ_MUST(memcmp(&r, &again, sizeof(r)) == 0);
}

static uint32_t crc32_of(const char *text, size_t len)
{
    uint32_t crc = UINT32_MAX;

    while (len-- > 0) {
        crc ^= (unsigned char)*text++;
        for (int i = 0; i < 8; i++)
            crc = crc & 1 ? crc >> 1 ^ UINT32_C(0xEDB88320) : crc >> 1;
    }
    return ~crc;
}

static void journal(const char *text, size_t len)
{
    struct joule_journal j, again;
    struct joule_error err = {""};
    char *out;
    size_t n;

    if (joule_journal_parse(text, len, &j, &err) < 0) {
        FUZZ_MUST(errno == EBADMSG || errno == ENOMEM);
        FUZZ_MUST(!j.entry && !j.holder);
        fuzz_check_sentence(&err);
        return;
    }
    out = joule_journal_format(&j, &n);
    FUZZ_MUST(out != NULL);
    FUZZ_MUST(joule_journal_parse(out, n, &again, NULL) == 0);
    FUZZ_MUST(again.entry_count == j.entry_count &&
              again.holder_count == j.holder_count);
    free(out);
    joule_journal_clear(&j);
    joule_journal_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text, *whole;
    size_t len;

    if (size == 0)
        return 0;
    text = strndup((const char *)data + 1, size - 1);
    FUZZ_MUST(text != NULL);
    if (data[0] % 4 == 0) {
        request(text);
    } else if (data[0] % 4 == 1) {
        journal((const char *)data + 1, size - 1);
    } else {
        len = strlen(TITLE) + strlen(text);
        whole = malloc(len + 32);
        FUZZ_MUST(whole != NULL);
        snprintf(whole, len + 1, TITLE "%s", text);
        len += (size_t)snprintf(whole + len, 32, "crc32=%08x\n",
                                (unsigned)crc32_of(whole, len));
        journal(whole, len);
        free(whole);
    }
    free(text);
    return 0;
}
