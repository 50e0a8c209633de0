/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/jobtables.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"
#include "common/profile/worker.h"

#define TABLES_MAX 1000000
#define TYPES_MAX  4096

enum record_kind {
    RECORD_NODE,  /* of [step]: "Joule Start Wall ns" */
    RECORD_TABLE, /* of the node before it: path, rows, and a joule_rowtype */
    RECORD_NOTE,  /* [text] cannot be read */
};

/* What the worker sends, one behind the other. */
struct record {
    uint32_t kind, has_start;
    uint64_t number;     /* the time, or rows */
    uint64_t type_bytes; /* that follow */
    char step[JOULE_PROFILE_NAME_MAX], node[JOULE_PROFILE_NAME_MAX];
    char text[JOULE_ERROR_MAX];
};

/* A plan that is being read. */
struct builder {
    int fd;
    struct joule_plan *plan;
    bool is_read;
    struct joule_error why;
};

/* ---- in the worker: [arg] is its output ---- */

static int send_record(struct joule_out *out, const struct record *record,
                       const struct joule_rowtype *type,
                       struct joule_error *err)
{
    size_t bytes = sizeof(*record) + record->type_bytes;
    char *at = joule_out_room(out, bytes, err);

    if (!at)
        return -1;
    memcpy(at, record, sizeof(*record));
    if (type)
        memcpy(at + sizeof(*record), type, record->type_bytes);
    joule_out_commit(out, bytes);
    return 0;
}

static int send_node(void *arg, const char *step, const char *name, hid_t group,
                     struct joule_error *err)
{
    struct record record = {.kind = RECORD_NODE};

    snprintf(record.step, sizeof(record.step), "%s", step);
    snprintf(record.node, sizeof(record.node), "%s", name);
    record.has_start = joule_hdf5_read_number(group, "Joule Start Wall ns",
                                              &record.number) == 0;
    return send_record(arg, &record, NULL, err);
}

static int send_table(void *arg, const char *path,
                      struct joule_hdf5_table *table, struct joule_error *err)
{
    const struct joule_rowtype *type = table->row;
    struct record record = {.kind = RECORD_TABLE,
                            .number = table->rows,
                            .type_bytes = joule_rowtype_bytes(type)};

    snprintf(record.text, sizeof(record.text), "%s", path);
    return send_record(arg, &record, type, err);
}

static int send_note(void *arg, const char *path, const char *sentence,
                     struct joule_error *err)
{
    struct record record = {.kind = RECORD_NOTE};
    struct joule_error text;

    joule_error_set(&text, 0, "%.100s%s%.300s", path ? path : "",
                    path ? ": " : "", sentence);
    memcpy(record.text, text.text, sizeof(record.text));
    return send_record(arg, &record, NULL, err);
}

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    const struct joule_hdf5_visitor visitor = {
        .node = send_node, .table = send_table, .note = send_note, .arg = out};
    const struct builder *b = arg;
    hid_t file;
    int rc;

    (void)task;
    (void)fd;
    file = joule_hdf5_open_fd(b->fd, err);
    if (file < 0)
        return -1;
    rc = joule_hdf5_walk_job(file, &visitor, err);
    joule_hdf5_close(file, NULL);
    return rc;
}

/* ---- in the parent ---- */

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

static int add_node(struct joule_plan *plan, const struct record *record,
                    struct joule_error *err)
{
    struct joule_plan_node *more = grow(plan->node, plan->nodes, sizeof(*more));

    if (!more)
        return no_memory(err);
    plan->node = more;
    more += plan->nodes;
    *more = (struct joule_plan_node){
        .step = strdup(record->step),
        .name = strdup(record->node),
        .has_start = record->has_start != 0,
        .start_wall_ns = record->number,
    };
    plan->nodes++;
    return more->step && more->name ? 0 : no_memory(err);
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

static int add_table(struct joule_plan *plan, const struct record *record,
                     const struct joule_rowtype *type, struct joule_error *err)
{
    struct joule_plan_table *more;

    if (plan->nodes == 0)
        return joule_error_set(err, EBADMSG, "its reader sent nonsense");
    if (plan->tables == TABLES_MAX)
        return joule_error_set(err, E2BIG, "too many tables");
    more = grow(plan->table, plan->tables, sizeof(*more));
    if (!more)
        return no_memory(err);
    plan->table = more;
    more += plan->tables;
    more->type = intern(plan, type, err);
    if (!more->type)
        return -1;
    more->node = plan->nodes - 1;
    more->rows = record->number;
    more->series = strdup(record->text);
    if (!more->series)
        return no_memory(err);
    plan->tables++;
    return 0;
}

static void add_note(struct joule_plan *plan, const char *sentence)
{
    if (plan->notes++ == 0)
        joule_error_set(&plan->first_note, 0, "%s", sentence);
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* The record at [data]; its bytes, or 0: it is nonsense. */
static size_t check_record(const char *data, size_t len, struct record *ret)
{
    const struct joule_rowtype *type =
        (const struct joule_rowtype *)(data + sizeof(*ret));

    if (len < sizeof(*ret))
        return 0;
    memcpy(ret, data, sizeof(*ret));
    if (ret->kind > RECORD_NOTE || ret->type_bytes > len - sizeof(*ret) ||
        !is_text(ret->step, sizeof(ret->step)) ||
        !is_text(ret->node, sizeof(ret->node)) ||
        !is_text(ret->text, sizeof(ret->text)) ||
        (ret->kind == RECORD_TABLE) != (ret->type_bytes > 0) ||
        (ret->type_bytes > 0 && joule_rowtype_check(type, ret->type_bytes) < 0))
        return 0;
    return sizeof(*ret) + ret->type_bytes;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct builder *b = arg;
    struct record record;
    char *copy = malloc(len), *at = copy;
    int rc = 0;

    (void)task;
    if (!copy)
        return no_memory(err);
    /* Its reader may still write to what is checked here. */
    memcpy(copy, data, len);
    while (rc == 0 && len > 0) {
        size_t bytes = check_record(at, len, &record);

        if (bytes == 0)
            rc = joule_error_set(err, EBADMSG, "its reader sent nonsense");
        else if (record.kind == RECORD_NODE)
            rc = add_node(b->plan, &record, err);
        else if (record.kind == RECORD_TABLE)
            rc = add_table(b->plan, &record,
                           (const void *)(at + sizeof(record)), err);
        else
            add_note(b->plan, record.text);
        at += bytes;
        len -= bytes;
    }
    free(copy);
    return rc;
}

/* What was described before the reader failed is good. */
static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct builder *b = arg;

    (void)task;
    (void)err;
    if (end->errnum == 0) {
        b->is_read = true;
        return 0;
    }
    joule_error_set(&b->why, end->errnum, "%s", end->sentence);
    add_note(b->plan, end->sentence);
    return 0;
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

int joule_plan_open(int dir_fd, const char *name, const char *path,
                    struct stat *ret_st, struct joule_error *err)
{
    int fd = openat(dir_fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ELOOP)
        return joule_error_set(err, ELOOP, "%s is a link: name the file itself",
                               path);
    if (fd < 0)
        return joule_error_set(err, errno, "Failed to open %s: %m", path);
    if (fstat(fd, ret_st) < 0)
        joule_error_set(err, errno, "cannot examine %s: %m", path);
    else if (!S_ISREG(ret_st->st_mode))
        joule_error_set(err, EINVAL, "%s is no regular file", path);
    else if (geteuid() == 0 && ret_st->st_uid != 0)
        joule_error_set(err, EPERM,
                        "%s belongs to user %u, whom -u must name if root is "
                        "to read it",
                        path, (unsigned)ret_st->st_uid);
    else
        return fd;
    joule_close(fd);
    return -1;
}

int joule_plan_read(int fd, struct joule_plan *ret, struct joule_error *err)
{
    struct joule_plan plan = {0};
    struct builder b = {.fd = fd, .plan = &plan};
    const struct joule_work work = {
        .run = run_task,
        .take = take,
        .ended = ended,
        .arg = &b,
        .keep = &fd,
        .keeps = 1,
    };
    int rc, saved;

    joule_hdf5_prepare();
    rc = joule_work_run(&work, 1, 1, err);
    if (rc == 0 && plan.nodes == 0)
        rc = joule_error_set(err, EBADMSG, "%s",
                             b.is_read ? "it has no steps: it is no job file"
                                       : b.why.text);
    if (rc < 0) {
        saved = errno;
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
