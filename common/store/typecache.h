/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * typecache.h - types as they stand in files, kept: those of one node are those
 * of the next.
 */
#ifndef JOULE_STORE_TYPECACHE_H
#define JOULE_STORE_TYPECACHE_H

#include "common/store/object.h"
#include "common/store/rowtype.h"

#define JOULE_TYPECACHE_SIZE 32

/* Begins with all zeros. */
struct joule_typecache {
    struct joule_typecache_entry {
        struct joule_rowtype *type; /* its columns that are set */
        unsigned char *bytes;
        size_t size;
    } entry[JOULE_TYPECACHE_SIZE];
    unsigned next; /* that makes room */
};

/* Good until the next call but JOULE_TYPECACHE_SIZE.  -1 as
 * joule_rowtype_encode says. */
int joule_typecache_get(struct joule_typecache *cache,
                        const struct joule_rowtype *type,
                        struct joule_type_bytes *ret);

void joule_typecache_free(struct joule_typecache *cache);

#endif
