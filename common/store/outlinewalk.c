/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/outlinewalk.h"

#include <errno.h>
#include <stdlib.h>

#include "common/store/tablesend.h"

struct walk {
    const struct joule_outline *outline;
    struct joule_windows *windows;
    enum joule_walk how;
    const struct joule_visitor *visitor;
    const struct joule_outline_object *table; /* that is being sent */
    struct joule_layout layout;               /* large */
    struct joule_attribute attribute;         /* large */
};

static int visit_attributes(struct walk *w,
                            const struct joule_outline_object *object,
                            struct joule_error *err)
{
    const struct joule_visitor *v = w->visitor;

    for (size_t i = 0; i < object->attributes; i++) {
        joule_outline_value(&w->outline->attribute[object->attribute + i],
                            &w->attribute);
        if (v->attribute(v->arg, &w->attribute, err) < 0)
            return -1;
    }
    return 0;
}

static int table_attributes(void *arg, struct joule_error *err)
{
    struct walk *w = arg;

    return visit_attributes(w, w->table, err);
}

static int visit_table(struct walk *w, const struct joule_outline_object *table,
                       struct joule_error *err)
{
    struct joule_rows *rows;
    int rc;

    joule_outline_layout(table, &w->layout);
    rows = joule_rows_create(&w->layout, w->windows, table->header, err);
    if (!rows)
        return -1;
    w->table = table;
    rc = joule_table_send(rows, table->name, w->how, w->visitor,
                          table_attributes, w, err);
    joule_rows_close(rows);
    return rc;
}

static int visit_group(struct walk *w, const struct joule_outline_object *group,
                       struct joule_error *err)
{
    const struct joule_visitor *v = w->visitor;

    if (v->group(v->arg, group->name, err) < 0)
        return -1;
    return visit_attributes(w, group, err);
}

/* Everything below the object at [top]. */
static int visit_below(struct walk *w, size_t top, struct joule_error *err)
{
    const struct joule_outline *o = w->outline;
    const struct joule_visitor *v = w->visitor;
    unsigned least = o->object[top].depth, depth = least;
    int rc = visit_attributes(w, &o->object[top], err);

    for (size_t i = top + 1;
         rc == 0 && i < o->objects && o->object[i].depth > least; i++) {
        const struct joule_outline_object *object = &o->object[i];

        for (; rc == 0 && depth >= object->depth; depth--)
            rc = v->leave(v->arg, err);
        if (rc < 0)
            break;
        rc = object->is_table ? visit_table(w, object, err)
                              : visit_group(w, object, err);
        /* In which group the next one is, unless it says otherwise. */
        depth = object->is_table ? object->depth - 1 : object->depth;
    }
    for (; rc == 0 && depth > least; depth--)
        rc = v->leave(v->arg, err);
    return rc;
}

int joule_outline_walk(const struct joule_outline *o,
                       struct joule_windows *windows, const char *path,
                       enum joule_walk how, const struct joule_visitor *visitor,
                       struct joule_error *err)
{
    const struct joule_outline_object *group = joule_outline_find(o, path);
    struct walk *w;
    int rc, saved;

    if (!group || group->is_table)
        return joule_error_set(err, ENOENT, "there is no group %s", path);
    w = calloc(1, sizeof(*w));
    if (!w)
        return joule_error_set(err, ENOMEM, "out of memory");
    w->outline = o;
    w->windows = windows;
    w->how = how;
    w->visitor = visitor;
    rc = visit_below(w, (size_t)(group - o->object), err);
    saved = errno;
    free(w);
    errno = saved;
    return rc;
}

struct joule_rows *joule_outline_rows(const struct joule_outline *o,
                                      struct joule_windows *windows,
                                      const char *path, struct joule_error *err)
{
    const struct joule_outline_object *table = joule_outline_find(o, path);
    struct joule_layout *layout = malloc(sizeof(*layout));
    struct joule_rows *rows = NULL;

    if (!layout) {
        joule_error_set(err, ENOMEM, "out of memory");
    } else if (!table || !table->is_table) {
        joule_error_set(err, ENOENT, "there is no table %s", path);
    } else {
        joule_outline_layout(table, layout);
        rows = joule_rows_create(layout, windows, table->header, err);
    }
    free(layout);
    return rows;
}
