/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_columns(struct joule_selection *s,
                       const struct joule_rowtype *type)
{
    for (uint32_t i = 0; i < type->count; i++) {
        const char *name = type->column[i].name;
        const char **more;
        size_t at = 0;

        while (at < s->columns && strcmp(s->column[at], name) != 0)
            at++;
        if (at < s->columns)
            continue;
        more = reallocarray(s->column, s->columns + 1, sizeof(*more));
        if (!more)
            return -1;
        s->column = more;
        s->column[s->columns++] = name;
    }
    return 0;
}

/* The part of a path in front of the first '/'. */
static bool same_series(const char *a, const char *b)
{
    size_t len = strcspn(a, "/");

    return len == strcspn(b, "/") && strncmp(a, b, len) == 0;
}

static int add_table(struct joule_selection *s,
                     const struct joule_plan_table *table)
{
    /* Tables of one kind stand together: look at each kind once. */
    bool is_new =
        s->tables == 0 || s->table[s->tables - 1]->type != table->type;

    if (s->tables > 0 && !same_series(s->table[0]->series, table->series))
        s->is_mixed = true;
    if (strchr(table->series, '/'))
        s->has_series = true;
    s->table[s->tables++] = table;
    return is_new ? add_columns(s, table->type) : 0;
}

int joule_select(const struct joule_plan *plan, const struct joule_job *job,
                 const char *node, const char *series,
                 struct joule_selection *ret)
{
    struct joule_selection s = {.plan = plan};

    s.table = calloc(plan->tables + 1, sizeof(*s.table));
    if (!s.table) {
        errno = ENOMEM;
        return -1;
    }
    for (size_t i = 0; i < plan->tables; i++) {
        const struct joule_plan_table *table = &plan->table[i];
        const struct joule_plan_node *n = &plan->node[table->node];

        if (!table->type->is_compound || !joule_job_has_step(job, n->step) ||
            (node && strcmp(node, n->name) != 0) ||
            !joule_series_matches(series, table->series))
            continue;
        if (add_table(&s, table) < 0) {
            joule_selection_free(&s);
            errno = ENOMEM;
            return -1;
        }
    }
    if (s.is_mixed)
        s.has_series = true;
    *ret = s;
    return 0;
}

void joule_selection_free(struct joule_selection *s)
{
    free(s->table);
    free(s->column);
    memset(s, 0, sizeof(*s));
}

const char *joule_selection_label(const struct joule_selection *s,
                                  const struct joule_plan_table *table)
{
    const char *slash = strchr(table->series, '/');

    return s->is_mixed || !slash ? table->series : slash + 1;
}
