/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/newtable.h"
#include "common/store/spool.h"
#include "common/store/typecache.h"

#define DEPTH_MAX 40

/* A group that is not written yet. */
struct group {
    char name[JOULE_STORE_NAME_MAX];
    struct joule_header header; /* its attributes */
    struct joule_members members;
};

struct joule_copy {
    struct joule_spool *spool;
    struct joule_typecache types;
    struct group root, steps;
    struct group step, nodes; /* the last one, and its "Nodes" */
    int32_t node_count, step_count;
    char node[JOULE_STORE_NAME_MAX];
    int fd;           /* of the node's file; -1 */
    unsigned depth;   /* of the group that is open */
    unsigned skipped; /* depth within a group that is left out */
    struct group group[DEPTH_MAX];
    struct joule_newtable table;
    char table_name[JOULE_STORE_NAME_MAX];
    struct joule_copy_state state;
    bool has_node;
    struct joule_visitor visitor;
};

static void set_name(char to[JOULE_STORE_NAME_MAX], const char *name)
{
    size_t len = strnlen(name, JOULE_STORE_NAME_MAX - 1);

    memcpy(to, name, len);
    to[len] = '\0';
}

/* -1 if a write has failed. */
static int check_disk(struct joule_copy *c, struct joule_error *err)
{
    int error = joule_spool_error(c->spool);

    return error ? joule_error_set(err, error, "cannot write: %s",
                                   strerror(error))
                 : 0;
}

static int out_of_memory(struct joule_error *err)
{
    return joule_error_set(err, ENOMEM, "out of memory");
}

static void free_group(struct group *group)
{
    joule_header_free(&group->header);
    joule_members_free(&group->members);
}

static int put_count(struct joule_copy *c, struct group *group,
                     const char *name, int32_t value)
{
    const struct joule_rowtype type = {
        .size = 4,
        .count = 1,
        .column[0] = {.size = 4, .count = 1, .kind = JOULE_KIND_SIGNED}};
    struct joule_type_bytes bytes;
    unsigned char little[4];

    for (int i = 0; i < 4; i++)
        little[i] = (unsigned char)((uint32_t)value >> 8 * i);
    if (joule_typecache_get(&c->types, &type, &bytes) < 0)
        return -1;
    return joule_header_attribute(&group->header, name, bytes, 1, little, 4);
}

/* Write it, as a member of [parent]. */
static int close_group(struct joule_copy *c, struct group *group,
                       struct group *parent)
{
    uint64_t at;

    if (joule_group_write(&group->members, &group->header, c->spool, &at) < 0)
        return -1;
    return joule_members_add(&parent->members, group->name, at);
}

struct joule_copy *joule_copy_create(int fd, struct joule_error *err)
{
    struct joule_copy *c = calloc(1, sizeof(*c));

    if (c)
        c->spool = joule_spool_create(fd);
    if (!c || !c->spool) {
        free(c);
        out_of_memory(err);
        return NULL;
    }
    /* Of zeros, and no file, until it is finished. */
    joule_spool_keep(c->spool, JOULE_SUPERBLOCK_SIZE);
    set_name(c->steps.name, "Steps");
    set_name(c->nodes.name, "Nodes");
    return c;
}

static int close_step(struct joule_copy *c)
{
    if (c->step.name[0] == '\0')
        return 0;
    if (c->node_count > 0 &&
        put_count(c, &c->step, "Number of Nodes", c->node_count) < 0)
        return -1;
    if (close_group(c, &c->nodes, &c->step) < 0 ||
        close_group(c, &c->step, &c->steps) < 0)
        return -1;
    c->step.name[0] = '\0';
    return 0;
}

static int open_step(struct joule_copy *c, const char *name,
                     struct joule_error *err)
{
    if (strcmp(c->step.name, name) == 0)
        return 0;
    if (close_step(c) < 0)
        return out_of_memory(err);
    if (joule_members_have(&c->steps.members, name))
        return joule_error_set(err, EINVAL, "step %s is complete already",
                               name);
    set_name(c->step.name, name);
    c->node_count = 0;
    c->step_count++;
    return 0;
}

static struct group *current(struct joule_copy *c)
{
    return c->depth > 0 ? &c->group[c->depth - 1] : &c->nodes;
}

static int copy_note(void *arg, const char *sentence, struct joule_error *err)
{
    struct joule_copy *c = arg;

    (void)err;
    if (c->state.left_out++ == 0)
        memcpy(c->state.note, sentence,
               strnlen(sentence, sizeof(c->state.note) - 1));
    return 0;
}

static int copy_group(void *arg, const char *name, struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct group *group;

    if (c->skipped > 0 || (c->depth == 0 && strcmp(name, c->node) != 0)) {
        if (c->skipped++ == 0) {
            struct joule_error text;

            joule_error_set(&text, 0,
                            "the group %s is not of the node the file is "
                            "named after",
                            name);
            return copy_note(c, text.text, err);
        }
        return 0;
    }
    if (c->depth == DEPTH_MAX)
        return joule_error_set(err, EBADMSG, "too many groups");
    if (joule_members_have(&current(c)->members, name))
        return joule_error_set(err, EBADMSG, "%s is there twice", name);
    group = &c->group[c->depth++];
    set_name(group->name, name);
    c->has_node = true;
    return 0;
}

static int copy_leave(void *arg, struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct group *group;

    if (c->skipped > 0) {
        c->skipped--;
        return 0;
    }
    if (c->depth == 0)
        return 0;
    group = &c->group[--c->depth];
    if (close_group(c, group, current(c)) < 0)
        return errno == ENOMEM
                   ? out_of_memory(err)
                   : joule_error_set(err, EBADMSG, "the group %s: %m",
                                     group->name);
    return check_disk(c, err);
}

static int copy_attribute(void *arg, const struct joule_attribute *a,
                          struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct joule_header *header;
    struct joule_type_bytes type;

    /* Of the file as a whole: it has no place here. */
    if (c->skipped > 0 || (c->depth == 0 && !c->table.is_open))
        return 0;
    if (c->depth == 1 && strcmp(a->name, "Joule End ns") == 0 &&
        a->type.column[0].kind == JOULE_KIND_UNSIGNED)
        c->state.is_open = joule_column_u64(&a->type.column[0], a->data) == 0;
    header = c->table.is_open ? &c->table.header : &current(c)->header;
    if (joule_typecache_get(&c->types, &a->type, &type) == 0 &&
        joule_header_attribute(header, a->name, type, a->elements, a->data,
                               a->bytes) == 0)
        return 0;
    return copy_note(c, "an attribute cannot be kept", err);
}

static int copy_table(void *arg, const char *name,
                      const struct joule_layout *layout, bool stored,
                      struct joule_error *err)
{
    struct joule_copy *c = arg;

    if (c->skipped > 0)
        return 0;
    if (c->depth == 0)
        return copy_note(c, "a table outside of the node's group", err);
    if (joule_members_have(&current(c)->members, name))
        return joule_error_set(err, EBADMSG, "%s is there twice", name);
    if (joule_newtable_begin(&c->table, c->spool, &c->types, layout, stored) <
        0)
        return copy_note(c, "a table cannot be kept", err);
    set_name(c->table_name, name);
    c->state.tables++;
    return 0;
}

/* What has become of rows that were given to the table. */
static int judge(struct joule_copy *c, int rc, struct joule_error *err)
{
    if (rc == 0)
        return check_disk(c, err);
    if (errno == ENOMEM)
        return out_of_memory(err);
    return joule_error_set(err, EBADMSG, "the rows of %s: %m", c->table_name);
}

static int copy_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                     struct joule_error *err)
{
    struct joule_copy *c = arg;

    (void)bytes;
    if (!c->table.is_open)
        return 0;
    return judge(c, joule_newtable_rows(&c->table, rows, count), err);
}

static int copy_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                      size_t len, struct joule_error *err)
{
    struct joule_copy *c = arg;

    if (!c->table.is_open)
        return 0;
    return judge(c, joule_newtable_chunk(&c->table, rows, mask, data, len),
                 err);
}

static int copy_run(void *arg, const struct joule_run *run,
                    struct joule_error *err)
{
    struct joule_copy *c = arg;
    int rc;

    if (!c->table.is_open)
        return 0;
    rc = joule_newtable_run(&c->table, run, c->fd);
    if (rc < 0 && errno == ENODATA)
        return joule_error_set(err, EBADMSG, "the file has become shorter");
    return judge(c, rc, err);
}

static int copy_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    struct joule_copy *c = arg;
    uint64_t at;
    int rc;

    if (!c->table.is_open)
        return 0;
    rc = joule_newtable_end(&c->table, &at);
    if (rc == 0)
        rc = joule_members_add(&current(c)->members, c->table_name, at);
    c->state.rows += c->table.rows;
    c->state.lost_rows += lost;
    return judge(c, rc, err);
}

const struct joule_visitor *joule_copy_begin(struct joule_copy *c,
                                             const char *step, const char *node,
                                             int fd, struct joule_error *err)
{
    if (open_step(c, step, err) < 0)
        return NULL;
    if (joule_members_have(&c->nodes.members, node)) {
        joule_error_set(err, EEXIST, "step %s has a node %s already", step,
                        node);
        return NULL;
    }
    set_name(c->node, node);
    c->fd = fd;
    memset(&c->state, 0, sizeof(c->state));
    c->has_node = false;
    c->visitor = (struct joule_visitor){
        .group = copy_group,
        .leave = copy_leave,
        .attribute = copy_attribute,
        .table = copy_table,
        .table_end = copy_table_end,
        .note = copy_note,
        .rows = copy_rows,
        .chunk = copy_chunk,
        .run = fd >= 0 ? copy_run : NULL,
        .arg = c,
    };
    return &c->visitor;
}

int joule_copy_end(struct joule_copy *c, struct joule_copy_state *ret_state,
                   struct joule_error *err)
{
    int rc = copy_table_end(c, 0, err);

    c->skipped = 0;
    while (rc == 0 && c->depth > 0)
        rc = copy_leave(c, err);
    if (c->has_node)
        c->node_count++;
    c->state.is_empty = !c->has_node;
    *ret_state = c->state;
    return rc;
}

int joule_copy_finish(struct joule_copy *c, struct joule_error *err)
{
    unsigned char superblock[JOULE_SUPERBLOCK_SIZE];
    uint64_t root;

    if (close_step(c) < 0 ||
        put_count(c, &c->root, "Number of Steps", c->step_count) < 0 ||
        close_group(c, &c->steps, &c->root) < 0 ||
        joule_group_write(&c->root.members, &c->root.header, c->spool, &root) <
            0)
        return out_of_memory(err);
    joule_superblock(superblock, joule_spool_size(c->spool), root,
                     &joule_group_shape);
    if (joule_spool_flush(c->spool) == 0)
        joule_spool_fill(c->spool, 0, superblock, sizeof(superblock));
    return check_disk(c, err);
}

void joule_copy_destroy(struct joule_copy *c)
{
    int saved = errno;

    if (!c)
        return;
    for (int i = 0; i < DEPTH_MAX; i++)
        free_group(&c->group[i]);
    free_group(&c->nodes);
    free_group(&c->step);
    free_group(&c->steps);
    free_group(&c->root);
    joule_newtable_free(&c->table);
    joule_typecache_free(&c->types);
    joule_spool_destroy(c->spool);
    free(c);
    errno = saved;
}
