/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/request.h"

#include <errno.h>
#include <string.h>

/* What has come; [at] never passes [len]. */
struct input {
    const unsigned char *buf;
    size_t len, at;
};

/* 1: there it is; 0: it has not come yet. */
static int take(struct input *in, void *to, size_t size)
{
    if (in->len - in->at < size)
        return 0;
    memcpy(to, in->buf + in->at, size);
    in->at += size;
    return 1;
}

static int garbage(void)
{
    errno = EPROTO;
    return -1;
}

static int take_name(struct input *in, char name[JOULE_PM_NAME_MAX + 1])
{
    int32_t length;

    if (!take(in, &length, sizeof(length)))
        return 0;
    if (length < 0 || length > JOULE_PM_NAME_MAX)
        return garbage();
    memset(name, 0, JOULE_PM_NAME_MAX + 1);
    return take(in, name, (size_t)length);
}

static int take_counter(struct input *in, struct joule_pm_request *r)
{
    int32_t aggregate, bytes;

    if (!take(in, &r->frequency, sizeof(r->frequency)) ||
        !take(in, &aggregate, sizeof(aggregate)) ||
        !take(in, &bytes, sizeof(bytes)))
        return 0;
    if (bytes != JOULE_PM_MASK_BYTES)
        return garbage();
    r->aggregate = aggregate != 0;
    return take(in, r->mask, sizeof(r->mask));
}

static int take_request(struct input *in, struct joule_pm_request *r)
{
    int32_t operation;
    int rc = take(in, &operation, sizeof(operation));

    if (rc <= 0)
        return rc;
    if (operation < JOULE_PM_CREATE || operation > JOULE_PM_READ_DEVICE)
        return garbage();
    r->operation = (enum joule_pm_operation)operation;
    switch (r->operation) {
    case JOULE_PM_CREATE:
        rc = take_name(in, r->device);
        return rc > 0 ? take_counter(in, r) : rc;
    case JOULE_PM_INFO_DEVICE:
        return take_name(in, r->device);
    case JOULE_PM_READ_DEVICE:
        rc = take_name(in, r->device);
        return rc > 0 ? take(in, &r->frequency, sizeof(r->frequency)) : rc;
    default:
        return 1;
    }
}

ssize_t joule_pm_request_parse(const void *buf, size_t len,
                               struct joule_pm_request *ret)
{
    struct input in = {.buf = buf, .len = len};
    struct joule_pm_request r = {0};
    int rc = take_request(&in, &r);

    if (rc <= 0)
        return rc;
    *ret = r;
    return (ssize_t)in.at;
}
