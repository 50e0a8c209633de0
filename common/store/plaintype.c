/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/plaintype.h"

#include <errno.h>
#include <string.h>

#include "common/store/little.h"
#include "common/store/typeform.h"

/* Behind the name of a member. */
#define MEMBER_HEAD (JOULE_HDF_MEMBER_OFFSET + JOULE_HDF_MEMBER_DIMENSIONS)

/* What is left of the message. */
struct input {
    const unsigned char *at;
    size_t left;
};

static const unsigned char *take(struct input *in, size_t size)
{
    const unsigned char *at = in->at;

    if (size > in->left)
        return NULL;
    in->at += size;
    in->left -= size;
    return at;
}

static bool is_ieee(const unsigned char *head, const unsigned char *properties)
{
    uint64_t size = joule_little_get(head + 4, 4);

    return (size == 8 || size == 4) && head[1] == JOULE_HDF_BIT_IMPLIED &&
           head[2] == size * 8 - 1 && head[3] == 0 &&
           memcmp(properties, joule_hdf_ieee(size), JOULE_HDF_REAL_SIZE) == 0;
}

static int read_integer(struct input *in, const unsigned char *head,
                        struct joule_column *column)
{
    const unsigned char *properties = take(in, 4);
    uint64_t size = joule_little_get(head + 4, 4);

    if (!properties || (size != 1 && size != 2 && size != 4 && size != 8) ||
        (head[1] & ~JOULE_HDF_BIT_SIGNED) || head[2] || head[3] ||
        joule_little_get(properties, 2) != 0 ||
        joule_little_get(properties + 2, 2) != size * 8)
        return -1;
    column->kind = head[1] & JOULE_HDF_BIT_SIGNED ? JOULE_KIND_SIGNED
                                                  : JOULE_KIND_UNSIGNED;
    return 0;
}

static int read_float(struct input *in, const unsigned char *head,
                      struct joule_column *column)
{
    const unsigned char *properties = take(in, JOULE_HDF_REAL_SIZE);

    if (!properties || !is_ieee(head, properties))
        return -1;
    column->kind = JOULE_KIND_FLOAT;
    return 0;
}

static int read_string(const unsigned char *head, struct joule_column *column)
{
    if ((head[1] & 0x0f) > 2 || head[1] >> 4 > 1 || head[2] || head[3])
        return -1;
    column->kind = JOULE_KIND_STRING;
    column->pad = head[1] & 0x0f;
    column->cset = head[1] >> 4;
    return 0;
}

/* Everything of a column but its name and place; [head] has been taken. */
static int read_element(struct input *in, const unsigned char *head,
                        struct joule_column *column)
{
    uint64_t size = joule_little_get(head + 4, 4);

    if (head[0] >> 4 != 1 || size == 0 || size > JOULE_ROW_MAX)
        return -1;
    column->size = (uint32_t)size;
    column->count = 1;
    switch (head[0] & 0x0f) {
    case JOULE_HDF_INTEGER:
        return read_integer(in, head, column);
    case JOULE_HDF_REAL:
        return read_float(in, head, column);
    case JOULE_HDF_STRING:
        return read_string(head, column);
    default:
        return -1;
    }
}

static int read_member(struct input *in, struct joule_column *column)
{
    size_t len = strnlen((const char *)in->at, in->left);
    const unsigned char *name = take(in, (len + 8) / 8 * 8);
    const unsigned char *place = name ? take(in, MEMBER_HEAD) : NULL;
    const unsigned char *head = place ? take(in, JOULE_HDF_TYPE_HEAD) : NULL;

    if (!head || len == 0 || len >= sizeof(column->name) || place[4] != 0)
        return -1;
    memset(column, 0, sizeof(*column));
    memcpy(column->name, name, len);
    column->offset = (uint32_t)joule_little_get(place, 4);
    return read_element(in, head, column);
}

static int read_type(struct input *in, struct joule_rowtype *ret)
{
    const unsigned char *head = take(in, JOULE_HDF_TYPE_HEAD);
    uint64_t size, count;

    if (!head)
        return -1;
    size = joule_little_get(head + 4, 4);
    count = joule_little_get(head + 1, 2);
    if (size == 0 || size > JOULE_ROW_MAX)
        return -1;
    ret->size = (uint32_t)size;
    if ((head[0] & 0x0f) != JOULE_HDF_COMPOUND) {
        ret->count = 1;
        memset(&ret->column[0], 0, sizeof(ret->column[0]));
        return read_element(in, head, &ret->column[0]);
    }
    if (head[0] >> 4 != 1 || head[3] || count == 0 || count > JOULE_COLUMNS_MAX)
        return -1;
    ret->is_compound = 1;
    ret->count = (uint32_t)count;
    for (uint32_t i = 0; i < ret->count; i++)
        if (read_member(in, &ret->column[i]) < 0)
            return -1;
    return 0;
}

int joule_plaintype_read(const unsigned char *bytes, size_t size,
                         struct joule_rowtype *ret)
{
    struct input in = {bytes, size};

    memset(ret, 0, offsetof(struct joule_rowtype, column));
    if (read_type(&in, ret) == 0 &&
        joule_rowtype_check(ret, joule_rowtype_bytes(ret)) == 0)
        return 0;
    errno = ENOTSUP;
    return -1;
}
