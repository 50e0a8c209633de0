/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recordbody.h - the bytes of records, for record.c and recordsend.c alone.
 */
#ifndef JOULE_STORE_RECORDBODY_H
#define JOULE_STORE_RECORDBODY_H

#include <stddef.h>
#include <stdint.h>

#include "common/store/visitor.h"

enum joule_record_kind {
    JOULE_RECORD_GROUP = 1,
    JOULE_RECORD_LEAVE,
    JOULE_RECORD_ATTRIBUTE,
    JOULE_RECORD_TABLE,
    JOULE_RECORD_TABLE_END,
    JOULE_RECORD_ROWS,
    JOULE_RECORD_CHUNK,
    JOULE_RECORD_NOTE,
    JOULE_RECORD_RUN,
};

/* In front of each record; the next one begins at a multiple of 8. */
struct joule_record_head {
    uint32_t kind;
    uint32_t bytes; /* of the body */
};

struct joule_record_table {
    char name[JOULE_STORE_NAME_MAX];
    uint64_t is_stored;
    struct joule_layout layout; /* the columns that are there */
};

struct joule_record_attribute {
    char name[JOULE_STORE_NAME_MAX];
    uint32_t elements, bytes;
    struct joule_rowtype type; /* the columns that are there; then the data */
};

struct joule_record_data {
    uint64_t rows;
    uint32_t mask, bytes;
};

static inline size_t joule_record_padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

#endif
