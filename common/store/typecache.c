/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/typecache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/typeencode.h"

static void clear(struct joule_typecache_entry *entry)
{
    free(entry->type);
    free(entry->bytes);
    memset(entry, 0, sizeof(*entry));
}

int joule_typecache_get(struct joule_typecache *cache,
                        const struct joule_rowtype *type,
                        struct joule_type_bytes *ret)
{
    size_t size = joule_rowtype_bytes(type);
    struct joule_typecache_entry *entry;

    for (int i = 0; i < JOULE_TYPECACHE_SIZE; i++) {
        entry = &cache->entry[i];
        if (entry->type && entry->type->count == type->count &&
            memcmp(entry->type, type, size) == 0)
            goto found;
    }
    entry = &cache->entry[cache->next++ % JOULE_TYPECACHE_SIZE];
    clear(entry);
    entry->bytes = joule_rowtype_encode(type, &entry->size);
    entry->type = malloc(size);
    if (!entry->bytes || !entry->type) {
        int saved = errno;

        clear(entry);
        errno = saved;
        return -1;
    }
    memcpy(entry->type, type, size);
found:
    ret->bytes = entry->bytes;
    ret->size = entry->size;
    return 0;
}

void joule_typecache_free(struct joule_typecache *cache)
{
    for (int i = 0; i < JOULE_TYPECACHE_SIZE; i++)
        clear(&cache->entry[i]);
}
