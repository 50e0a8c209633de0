/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/plan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/store/pool.h"
#include "common/store/record.h"
#include "common/store/send.h"

#define DEPTH_MAX  40
#define TABLES_MAX 1000000
#define TYPES_MAX  4096

/* Seconds of a reader's CPU, and of silence: see pool.h. */
#define CPU_S  5
#define WALL_S 60

/* Where the description stands. */
struct builder {
    struct joule_plan *plan;
    int fd;
    unsigned depth;
    char name[DEPTH_MAX][JOULE_STORE_NAME_MAX];
    struct joule_decoder decoder;
    struct joule_visitor visitor;
    bool is_read;
    struct joule_error why;
};

/* /Steps/S/Nodes/N: what is below that is a node's. */
#define NODE_DEPTH 4

static bool is_in_node(const struct builder *b)
{
    return b->depth >= NODE_DEPTH && strcmp(b->name[0], "Steps") == 0 &&
           strcmp(b->name[2], "Nodes") == 0;
}

/* Room for one more at the end of [array], which grows by halves. */
static void *grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0)
        return array;
    return reallocarray(array, count ? count * 2 : 1, size);
}

static int no_memory(struct joule_error *err)
{
    return joule_error_set(err, ENOMEM, "out of memory");
}

static int add_node(struct builder *b, struct joule_error *err)
{
    struct joule_plan *plan = b->plan;
    struct joule_plan_node *more = grow(plan->node, plan->nodes, sizeof(*more));

    if (!more)
        return no_memory(err);
    plan->node = more;
    more += plan->nodes;
    memset(more, 0, sizeof(*more));
    more->step = strdup(b->name[1]);
    more->name = strdup(b->name[3]);
    plan->nodes++;
    return more->step && more->name ? 0 : no_memory(err);
}

static int on_group(void *arg, const char *name, struct joule_error *err)
{
    struct builder *b = arg;

    if (b->depth == DEPTH_MAX)
        return joule_error_set(err, EBADMSG, "too many groups");
    snprintf(b->name[b->depth++], sizeof(b->name[0]), "%s", name);
    if (b->depth == NODE_DEPTH && is_in_node(b))
        return add_node(b, err);
    return 0;
}

static int on_leave(void *arg, struct joule_error *err)
{
    struct builder *b = arg;

    (void)err;
    b->depth--;
    return 0;
}

static int on_attribute(void *arg, const struct joule_attribute *a,
                        struct joule_error *err)
{
    struct builder *b = arg;
    struct joule_plan_node *node;

    (void)err;
    if (b->depth != NODE_DEPTH || !is_in_node(b) || b->decoder.in_table ||
        strcmp(a->name, "Joule Start Wall ns") != 0 ||
        a->type.column[0].kind != JOULE_KIND_UNSIGNED)
        return 0;
    node = &b->plan->node[b->plan->nodes - 1];
    node->has_start = true;
    node->start_wall_ns = joule_column_u64(&a->type.column[0], a->data);
    return 0;
}

static const struct joule_rowtype *intern(struct joule_plan *plan,
                                          const struct joule_rowtype *type,
                                          struct joule_error *err)
{
    size_t bytes = joule_rowtype_bytes(type);
    struct joule_rowtype **more, *copy;

    for (size_t i = plan->types; i-- > 0;)
        if (plan->type[i]->count == type->count &&
            memcmp(plan->type[i], type, bytes) == 0)
            return plan->type[i];
    if (plan->types == TYPES_MAX) {
        joule_error_set(err, E2BIG, "too many kinds of tables");
        return NULL;
    }
    more = grow(plan->type, plan->types, sizeof(*more));
    if (more)
        plan->type = more;
    copy = malloc(bytes);
    if (!more || !copy) {
        free(copy);
        no_memory(err);
        return NULL;
    }
    memcpy(copy, type, bytes);
    plan->type[plan->types++] = copy;
    return copy;
}

/* The names below the node, joined by '/'. */
static char *join(const struct builder *b, const char *last)
{
    size_t size = strlen(last) + 1, at = 0;
    char *path;

    for (unsigned i = NODE_DEPTH; i < b->depth; i++)
        size += strlen(b->name[i]) + 1;
    path = malloc(size);
    if (!path)
        return NULL;
    for (unsigned i = NODE_DEPTH; i < b->depth; i++)
        at += (size_t)sprintf(path + at, "%s/", b->name[i]);
    strcpy(path + at, last);
    return path;
}

static int on_table(void *arg, const char *name,
                    const struct joule_layout *layout, bool stored,
                    struct joule_error *err)
{
    struct builder *b = arg;
    struct joule_plan *plan = b->plan;
    struct joule_plan_table *more;

    (void)stored;
    if (!is_in_node(b))
        return 0;
    if (plan->tables == TABLES_MAX)
        return joule_error_set(err, E2BIG, "too many tables");
    more = grow(plan->table, plan->tables, sizeof(*more));
    if (!more)
        return no_memory(err);
    plan->table = more;
    more += plan->tables;
    more->type = intern(plan, &layout->type, err);
    if (!more->type)
        return -1;
    more->node = plan->nodes - 1;
    more->rows = layout->rows;
    more->series = join(b, name);
    if (!more->series)
        return no_memory(err);
    plan->tables++;
    return 0;
}

static int on_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    (void)arg;
    (void)lost;
    (void)err;
    return 0;
}

static int on_note(void *arg, const char *sentence, struct joule_error *err)
{
    struct builder *b = arg;

    (void)err;
    if (b->plan->notes++ == 0)
        joule_error_set(&b->plan->first_note, 0, "%s", sentence);
    return 0;
}

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    const struct builder *b = arg;
    int fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);

    (void)task;
    if (fd < 0)
        joule_error_set(err, errno, "cannot use it: %m");
    return fd;
}

/* In the worker. */
static int describe(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    (void)arg;
    (void)task;
    return joule_send_file(fd, "/", NULL, JOULE_WALK_DESCRIBE, out, err);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct builder *b = arg;

    (void)task;
    return joule_decoder_take(&b->decoder, data, len, err);
}

/* What was described before the reader failed is good. */
static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    struct builder *b = arg;

    (void)task;
    if (errnum == 0) {
        b->is_read = true;
        return 0;
    }
    joule_error_set(&b->why, errnum, "%s", sentence);
    return on_note(b, sentence, err);
}

static int step_rank(const char *step)
{
    if (isdigit((unsigned char)*step))
        return 0;
    if (strcmp(step, "batch") == 0)
        return 1;
    return 2;
}

int joule_step_compare(const char *a, const char *b)
{
    int rank = step_rank(a) - step_rank(b);

    return rank ? rank : strverscmp(a, b);
}

static int compare_tables(const void *pa, const void *pb, void *arg)
{
    const struct joule_plan_table *a = pa, *b = pb;
    const struct joule_plan *plan = arg;
    const struct joule_plan_node *na = &plan->node[a->node];
    const struct joule_plan_node *nb = &plan->node[b->node];
    int order = joule_step_compare(na->step, nb->step);

    if (order == 0)
        order = strverscmp(na->name, nb->name);
    return order ? order : strverscmp(a->series, b->series);
}

int joule_plan_read(int fd, struct joule_plan *ret, struct joule_error *err)
{
    struct joule_plan plan = {0};
    struct builder *b = calloc(1, sizeof(*b));
    struct joule_work work = {
        .open = open_task,
        .run = describe,
        .take = take,
        .ended = ended,
        .equip = joule_reader_equip,
        .arg = b,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };
    int rc;

    if (!b)
        return no_memory(err);
    b->plan = &plan;
    b->fd = fd;
    b->visitor = (struct joule_visitor){
        .group = on_group,
        .leave = on_leave,
        .attribute = on_attribute,
        .table = on_table,
        .table_end = on_table_end,
        .note = on_note,
        .arg = b,
    };
    joule_decoder_start(&b->decoder, &b->visitor);
    rc = joule_pool_run(&work, 1, 1, err);
    if (rc == 0 && plan.nodes == 0)
        rc = joule_error_set(err, EBADMSG, "%s",
                             b->is_read ? "it has no steps: it is no job file"
                                        : b->why.text);
    free(b);
    if (rc < 0) {
        int saved = errno;

        joule_plan_free(&plan);
        errno = saved;
        return -1;
    }
    qsort_r(plan.table, plan.tables, sizeof(*plan.table), compare_tables,
            &plan);
    *ret = plan;
    return 0;
}

void joule_plan_free(struct joule_plan *plan)
{
    for (size_t i = 0; i < plan->nodes; i++) {
        free(plan->node[i].step);
        free(plan->node[i].name);
    }
    for (size_t i = 0; i < plan->tables; i++)
        free(plan->table[i].series);
    for (size_t i = 0; i < plan->types; i++)
        free(plan->type[i]);
    free(plan->node);
    free(plan->table);
    free(plan->type);
    memset(plan, 0, sizeof(*plan));
}

char *joule_plan_path(const struct joule_plan *plan,
                      const struct joule_plan_table *table)
{
    const struct joule_plan_node *node = &plan->node[table->node];
    char *path;

    if (asprintf(&path, "/Steps/%s/Nodes/%s/%s", node->step, node->name,
                 table->series) < 0)
        return NULL;
    return path;
}

bool joule_series_matches(const char *spec, const char *path)
{
    size_t len;

    if (!spec)
        return true;
    if (strcasecmp(spec, "Task") == 0)
        spec = "Tasks";
    if (strncasecmp(spec, "Task_", 5) == 0 ||
        strncasecmp(spec, "Tasks_", 6) == 0)
        return strncasecmp(path, "Tasks/", 6) == 0 &&
               strcmp(path + 6, strchr(spec, '_') + 1) == 0;
    len = strlen(spec);
    return strncasecmp(spec, path, len) == 0 &&
           (path[len] == '\0' || path[len] == '/');
}
