/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/sh5util/cells.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/select.h"

/* The length of the part that names the series: tasks are one. */
static size_t series_length(const char *path)
{
    return strcspn(path, "/");
}

static bool is_listed(const struct joule_selection *s, size_t i)
{
    const char *path = s->table[i]->series;

    for (size_t j = 0; j < i; j++)
        if (series_length(s->table[j]->series) == series_length(path) &&
            strncmp(s->table[j]->series, path, series_length(path)) == 0)
            return true;
    return false;
}

static void print_json(const char *text, size_t len)
{
    char buf[JOULE_PROFILE_NAME_MAX * 6 + 32];
    struct joule_cells c = {.at = buf, .json = true, .is_first = true};

    joule_cells_text(
        &c, text, len < JOULE_PROFILE_NAME_MAX ? len : JOULE_PROFILE_NAME_MAX);
    fwrite(buf, 1, (size_t)(c.at - buf), stdout);
}

/* The columns that tables of this series have, each once. */
static int print_series(const struct joule_plan *plan,
                        const struct joule_extract_request *r,
                        const struct joule_plan_table *table)
{
    struct joule_selection one;
    char *name = strndup(table->series, series_length(table->series));

    if (!name || joule_select(plan, r->job, r->node, name, &one) < 0) {
        free(name);
        return -1;
    }
    if (r->json) {
        fputs("\n{\"name\": ", stdout);
        print_json(name, strlen(name));
        fputs(", \"items\": [", stdout);
    } else if (!r->series) {
        joule_say_to(stdout, "%s%s", r->listed ? "  " : "", name);
    }
    for (size_t i = 0; i < one.columns; i++) {
        if (r->json) {
            fputs(i ? ", " : "", stdout);
            print_json(one.column[i], strlen(one.column[i]));
            continue;
        }
        joule_say_to(stdout, "%s%s%s", r->listed ? "  " : "",
                     r->series ? "" : "  ", one.column[i]);
    }
    if (r->json)
        fputs("]}", stdout);
    free(name);
    joule_selection_free(&one);
    return 0;
}

/* What stands in front of the series of a job: of several jobs, JSON is a list
 * and text has a line for each. */
static void print_head(const struct joule_extract_request *r)
{
    if (r->listed && r->json)
        fputs((*r->listed)++ ? ",\n" : "[", stdout);
    else if (r->listed)
        printf("Job %s\n", r->job->text);
    if (r->json)
        printf("{\"job\": \"%s\", \"series\": [", r->job->text);
}

static int print_all(const struct joule_plan *plan,
                     const struct joule_extract_request *r,
                     struct joule_error *err)
{
    struct joule_selection s;
    bool is_first = true;

    if (joule_select(plan, r->job, r->node, r->series, &s) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (s.tables == 0) {
        joule_selection_free(&s);
        return r->series
                   ? joule_error_set(err, ENOENT, "%s: Series %s not found",
                                     r->input, r->series)
                   : joule_error_set(err, ENOENT,
                                     "%s: there is no series in it", r->input);
    }
    print_head(r);
    for (size_t i = 0; i < s.tables; i++) {
        if (is_listed(&s, i))
            continue;
        if (r->json && !is_first)
            putchar(',');
        is_first = false;
        if (print_series(plan, r, s.table[i]) < 0) {
            joule_selection_free(&s);
            return joule_error_set(err, ENOMEM, "out of memory");
        }
    }
    if (r->json)
        puts("\n]}");
    joule_selection_free(&s);
    return 0;
}

int joule_extract_list(const struct joule_extract_request *r)
{
    struct joule_plan plan = {0};
    struct joule_error err = {""};
    struct stat st;
    int fd = joule_plan_open(AT_FDCWD, r->input, r->input, &st, &err);
    int rc = fd < 0 ? -1 : joule_plan_read(fd, &plan, &err);
    size_t notes = plan.notes;

    if (fd >= 0 && rc < 0)
        joule_error_set(&err, errno, "%s: %s", r->input, err.text);
    if (fd >= 0)
        close(fd);
    if (rc == 0) {
        if (!r->json)
            joule_say("Listing items from %s", r->input);
        if (notes)
            joule_say("%s: %s", r->input, plan.first_note.text);
        rc = print_all(&plan, r, &err);
    }
    joule_plan_free(&plan);
    if (rc < 0) {
        joule_say("%s", err.text);
        return JOULE_EXIT_NOTHING;
    }
    return notes ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}
