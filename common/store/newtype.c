/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/newtype.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

/* Class, and in the upper half the version; bits; bytes of a value. */
#define HEAD        8
#define TEXT        0x13
#define COMPOUND    0x16
#define MEMBER_HEAD 32 /* behind a name: offset, and an array's dimensions */

#define MEMBERS_MAX 65535

/* Then for a number offset and precision in bits; for a real one places and
 * lengths of exponent and mantissa, and the bias. */
static const unsigned char i32[] = {0x10, 0x08, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0};
static const unsigned char u64[] = {0x10, 0, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0};
static const unsigned char f64[] = {0x11, 0x20, 63,   0,    8, 0,  0,
                                    0,    0,    0,    64,   0, 52, 11,
                                    0,    52,   0xff, 0x03, 0, 0};

const struct joule_type_bytes joule_newtype_i32 = {i32, sizeof(i32)};
const struct joule_type_bytes joule_newtype_u64 = {u64, sizeof(u64)};
const struct joule_type_bytes joule_newtype_f64 = {f64, sizeof(f64)};

struct joule_type_bytes
joule_newtype_text(unsigned char room[JOULE_NEWTYPE_TEXT_SIZE], size_t length)
{
    memset(room, 0, JOULE_NEWTYPE_TEXT_SIZE);
    room[0] = TEXT;
    joule_little_put(room + 4, length, 4);
    return (struct joule_type_bytes){room, JOULE_NEWTYPE_TEXT_SIZE};
}

/* Members are met one by one: of those before, names and lengths are known. */
static bool has_name(const struct joule_newtype_row *row, const char *name)
{
    size_t at = HEAD;

    while (at < row->used) {
        const char *is = (const char *)row->bytes + at;
        const unsigned char *type;

        if (strcmp(is, name) == 0)
            return true;
        at += joule_hdf_padded(strlen(is) + 1) + MEMBER_HEAD;
        type = row->bytes + at;
        at += type[0] == f64[0] ? sizeof(f64) : sizeof(u64);
    }
    return false;
}

static int make_room(struct joule_newtype_row *row, size_t size)
{
    unsigned char *more;
    size_t room;

    if (row->used + size <= row->room)
        return 0;
    room = (row->used + size) * 2;
    more = realloc(row->bytes, room);
    if (!more)
        return -1;
    row->bytes = more;
    row->room = room;
    return 0;
}

int joule_newtype_add(struct joule_newtype_row *row, const char *name,
                      struct joule_type_bytes type)
{
    size_t length = strlen(name) + 1, size;
    unsigned char *at;

    if (row->used == 0) {
        if (make_room(row, HEAD) < 0)
            return -1;
        row->used = HEAD;
    }
    if (length == 1 || has_name(row, name)) {
        errno = EINVAL;
        return -1;
    }
    size = joule_hdf_padded(length) + MEMBER_HEAD + type.size;
    if (row->used + size > JOULE_MESSAGE_MAX || row->members == MEMBERS_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (make_room(row, size) < 0)
        return -1;
    at = row->bytes + row->used;
    memset(at, 0, size);
    memcpy(at, name, length);
    at += joule_hdf_padded(length);
    joule_little_put(at, row->row_size, 4);
    memcpy(at + MEMBER_HEAD, type.bytes, type.size);
    row->row_size += joule_little_get(type.bytes + 4, 4);
    row->used += size;
    row->members++;
    return 0;
}

struct joule_type_bytes joule_newtype_seal(struct joule_newtype_row *row)
{
    memset(row->bytes, 0, HEAD);
    row->bytes[0] = COMPOUND;
    joule_little_put(row->bytes + 1, row->members, 2);
    joule_little_put(row->bytes + 4, row->row_size, 4);
    return (struct joule_type_bytes){row->bytes, row->used};
}

void joule_newtype_free(struct joule_newtype_row *row)
{
    free(row->bytes);
    memset(row, 0, sizeof(*row));
}
