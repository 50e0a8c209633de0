/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is what a client sends to `joule pmserver`: requests one after the
 * other, as they are, and in whatever pieces they come.
 */
#include <errno.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/pmserver/request.h"

/* Without the padding at the end. */
#define USED (offsetof(struct joule_pm_request, mask) + JOULE_PM_MASK_BYTES)

/* Of memory that has no byte more. */
static ssize_t parse(const uint8_t *data, size_t size,
                     struct joule_pm_request *r)
{
    uint8_t *copy = malloc(size ? size : 1);
    ssize_t n;

    FUZZ_MUST(copy);
    if (size > 0)
        memcpy(copy, data, size);
    memset(r, 0x55, sizeof(*r));
    errno = 0;
    n = joule_pm_request_parse(copy, size, r);
    free(copy);
    FUZZ_MUST(n >= -1 && n <= (ssize_t)size && n <= JOULE_PM_REQUEST_MAX);
    FUZZ_MUST((n < 0) == (errno == EPROTO));
    /* Half a request is never taken for longer than the longest one. */
    FUZZ_MUST(n != 0 || size < JOULE_PM_REQUEST_MAX);
    return n;
}

static void check(const struct joule_pm_request *r)
{
    FUZZ_MUST((unsigned)r->operation <= JOULE_PM_READ_DEVICE);
    FUZZ_MUST(memchr(r->device, '\0', sizeof(r->device)));
    FUZZ_MUST(!joule_pm_has_line(r->mask, JOULE_PM_LINES_MAX));
    FUZZ_MUST(!joule_pm_has_line(r->mask, UINT32_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_pm_request r, again;

    while (size > 0) {
        ssize_t n = parse(data, size, &r);

        if (n <= 0)
            break;
        check(&r);
        /* One byte less is half a request, and nothing more is needed. */
        FUZZ_MUST(parse(data, (size_t)n - 1, &again) == 0);
        FUZZ_MUST(parse(data, (size_t)n, &again) == n);
        FUZZ_MUST(memcmp(&r, &again, USED) == 0);
        data += n;
        size -= (size_t)n;
    }
    return 0;
}
