/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/outline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/headers.h"
#include "common/store/little.h"
#include "common/store/object.h"
#include "common/store/plaintype.h"

#define DEPTH_MAX   16
#define OBJECTS_MAX 262144
#define NODES_MAX   262144 /* of all trees of names */
#define KEPT_MAX    ((size_t)16 << 20)

/* Of a superblock of version 0: what lies where. */
#define SUPER_FLAGS 20
#define SUPER_BASE  24
#define SUPER_END   40
#define SUPER_ROOT  64

#define LEVELS_MAX 16
#define SOFT_LINK  2 /* kind of an entry */

struct joule_outline_block {
    struct joule_outline_block *next;
    unsigned char bytes[];
};

/* Where objects are that have been seen: a hash table, 0 is a free place. */
struct seen {
    uint64_t *header;
    size_t size; /* a power of two, or none */
    size_t used;
};

struct outliner {
    struct joule_outline *outline;
    struct joule_windows *windows;
    struct seen seen;
    unsigned depth;
    unsigned nodes;
};

/* The names of one group. */
struct names {
    const char *text;
    uint64_t size;
};

static int odd(void)
{
    errno = ENOTSUP;
    return -1;
}

const unsigned char *joule_outline_keep(struct joule_outline *o,
                                        struct joule_windows *windows,
                                        uint64_t at, uint64_t size)
{
    struct joule_outline_block *block;

    if (size > KEPT_MAX - o->kept) {
        odd();
        return NULL;
    }
    block = malloc(sizeof(*block) + size + 1);
    if (!block)
        return NULL;
    block->next = o->blocks;
    o->blocks = block;
    o->kept += size;
    block->bytes[size] = '\0';
    if (joule_windows_read(windows, at, size, block->bytes) == 0)
        return block->bytes;
    odd();
    return NULL;
}

static int read_object(struct outliner *x, uint64_t at, const char *name);

static uint64_t *place_of(const struct seen *seen, uint64_t header)
{
    size_t i = (size_t)((header >> 3) * 0x9E3779B97F4A7C15 >> 32);

    for (i &= seen->size - 1; seen->header[i] && seen->header[i] != header;)
        i = (i + 1) & (seen->size - 1);
    return &seen->header[i];
}

static int grow(struct seen *seen)
{
    struct seen larger = {.size = seen->size ? seen->size * 2 : 64,
                          .used = seen->used};

    larger.header = calloc(larger.size, sizeof(*larger.header));
    if (!larger.header)
        return -1;
    for (size_t i = 0; i < seen->size; i++)
        if (seen->header[i])
            *place_of(&larger, seen->header[i]) = seen->header[i];
    free(seen->header);
    *seen = larger;
    return 0;
}

/* Two names of one object would be visited twice. */
static bool is_new(struct seen *seen, uint64_t header)
{
    uint64_t *place;

    /* The superblock is at 0. */
    if (header == 0 || (seen->used >= seen->size / 2 && grow(seen) < 0))
        return false;
    place = place_of(seen, header);
    if (*place)
        return false;
    *place = header;
    seen->used++;
    return true;
}

static int read_entry(struct outliner *x, const struct names *names,
                      uint64_t at)
{
    const unsigned char *entry =
        joule_windows_look(x->windows, at, JOULE_HDF_LEAF_ENTRY);
    uint64_t offset, header;

    if (!entry || joule_little_get(entry + 16, 4) >= SOFT_LINK)
        return odd();
    offset = joule_little_get(entry, 8);
    header = joule_little_get(entry + 8, 8);
    /* What is kept ends with a NUL. */
    if (offset >= names->size || !joule_store_is_name(names->text + offset))
        return odd();
    return read_object(x, header, names->text + offset);
}

static int read_leaf(struct outliner *x, const struct names *names, uint64_t at)
{
    const unsigned char *head =
        joule_windows_look(x->windows, at, JOULE_HDF_LEAF_HEAD);
    unsigned count;

    if (!head || memcmp(head, "SNOD", 4) != 0 || head[4] != 1)
        return odd();
    count = (unsigned)joule_little_get(head + 6, 2);
    for (unsigned i = 0; i < count; i++)
        if (read_entry(x, names,
                       at + JOULE_HDF_LEAF_HEAD + i * JOULE_HDF_LEAF_ENTRY) < 0)
            return -1;
    return 0;
}

/* level -1: whatever the node says. */
static int read_tree(struct outliner *x, const struct names *names, uint64_t at,
                     int level)
{
    const unsigned char *head =
        joule_windows_look(x->windows, at, JOULE_HDF_TREE_HEAD);
    unsigned count;

    if (!head || memcmp(head, "TREE", 4) != 0 || head[4] != 0 ||
        head[5] > LEVELS_MAX || (level >= 0 && head[5] != level) ||
        x->nodes++ >= NODES_MAX)
        return odd();
    level = head[5];
    count = (unsigned)joule_little_get(head + 6, 2);
    for (unsigned i = 0; i < count; i++) {
        /* A key in front of each. */
        const unsigned char *child = joule_windows_look(
            x->windows, at + JOULE_HDF_TREE_HEAD + 8 + i * 16, 8);
        uint64_t to;

        if (!child)
            return odd();
        to = joule_little_get(child, 8);
        if ((level > 0 ? read_tree(x, names, to, level - 1)
                       : read_leaf(x, names, to)) < 0)
            return -1;
    }
    return 0;
}

static int read_group(struct outliner *x,
                      const struct joule_header_group *group)
{
    const unsigned char *head =
        joule_windows_look(x->windows, group->heap, JOULE_HDF_HEAP_HEAD);
    struct names names;
    uint64_t at;

    if (!head || memcmp(head, "HEAP", 4) != 0 || head[4] != 0)
        return odd();
    names.size = joule_little_get(head + 8, 8);
    at = joule_little_get(head + 24, 8);
    names.text = (const char *)joule_outline_keep(x->outline, x->windows, at,
                                                  names.size);
    return names.text ? read_tree(x, &names, group->tree, -1) : -1;
}

static int read_object(struct outliner *x, uint64_t at, const char *name)
{
    struct joule_header_group group;
    int rc;

    if (x->depth > DEPTH_MAX || x->outline->objects == OBJECTS_MAX ||
        !is_new(&x->seen, at))
        return odd();
    if (joule_headers_read(x->outline, x->windows, at, name, x->depth, &group) <
        0)
        return -1;
    if (!group.is_there)
        return 0;
    x->depth++;
    rc = read_group(x, &group);
    x->depth--;
    return rc;
}

/* One whose addresses count from the beginning of the file, all of which is
 * there. */
static bool is_plain(struct joule_windows *windows, uint64_t *ret_root)
{
    const unsigned char *s =
        joule_windows_look(windows, 0, JOULE_SUPERBLOCK_SIZE);

    if (!s || memcmp(s, "\x89HDF\r\n\x1a\n", 8) != 0 || s[8] != 0 ||
        s[13] != 8 || s[14] != 8 || joule_little_get(s + SUPER_FLAGS, 4) ||
        joule_little_get(s + SUPER_BASE, 8) ||
        joule_little_get(s + SUPER_END, 8) > joule_windows_size(windows))
        return false;
    *ret_root = joule_little_get(s + SUPER_ROOT, 8);
    return true;
}

struct joule_outline *joule_outline_read(struct joule_windows *windows)
{
    struct outliner x = {.windows = windows};
    uint64_t root;
    int rc;

    if (!is_plain(windows, &root)) {
        odd();
        return NULL;
    }
    x.outline = calloc(1, sizeof(*x.outline));
    if (!x.outline)
        return NULL;
    rc = read_object(&x, root, "");
    free(x.seen.header);
    if (rc == 0 && !x.outline->object[0].is_table)
        return x.outline;
    joule_outline_destroy(x.outline);
    odd();
    return NULL;
}

void joule_outline_destroy(struct joule_outline *o)
{
    if (!o)
        return;
    while (o->blocks) {
        struct joule_outline_block *block = o->blocks;

        o->blocks = block->next;
        free(block);
    }
    free(o->object);
    free(o->attribute);
    free(o);
}

const struct joule_outline_object *
joule_outline_find(const struct joule_outline *o, const char *path)
{
    size_t i = 0;

    for (unsigned depth = 1; *(path += strspn(path, "/")); depth++) {
        size_t len = strcspn(path, "/");

        for (i++; i < o->objects && o->object[i].depth >= depth; i++)
            if (o->object[i].depth == depth &&
                strncmp(o->object[i].name, path, len) == 0 &&
                o->object[i].name[len] == '\0')
                break;
        if (i == o->objects || o->object[i].depth != depth)
            return NULL;
        path += len;
    }
    return &o->object[i];
}

void joule_outline_layout(const struct joule_outline_object *table,
                          struct joule_layout *ret)
{
    memset(ret, 0, offsetof(struct joule_layout, type));
    ret->rows = table->rows;
    ret->chunk_rows = table->chunk_rows;
    ret->pipeline = table->pipeline;
    ret->is_known = 1;
    joule_plaintype_read(table->type.bytes, table->type.size, &ret->type);
}

void joule_outline_value(const struct joule_outline_attribute *attribute,
                         struct joule_attribute *ret)
{
    memset(ret->name, 0, sizeof(ret->name));
    memcpy(ret->name, attribute->name, strlen(attribute->name));
    ret->elements = attribute->elements;
    ret->bytes = attribute->bytes;
    memcpy(ret->data, attribute->data, attribute->bytes);
    joule_plaintype_read(attribute->type.bytes, attribute->type.size,
                         &ret->type);
}
