/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/page.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/joule/json.h"
#include "tools/waits/page_text.h"

/* Zeros that a run of values goes on over: a new one takes as much room. */
#define ZEROS_MAX 16
/* Points of all curves of power together, and of each. */
#define POINTS_ALL 131072
#define POINTS_MAX 4096
#define POINTS_MIN 256
#define INDEX_MAX  (1 << 24)

/* ---- what the caller has given ---- */

static int check_trees(const struct joule_page *p, struct joule_error *err)
{
    if (p->metrics > 4096 || p->paths > INDEX_MAX || p->processes > INDEX_MAX ||
        p->nodes > INDEX_MAX)
        return joule_error_set(err, EINVAL, "the page has too many lines");
    if (p->metrics > 0 && p->selected_metric >= p->metrics)
        return joule_error_set(err, EINVAL, "there is no metric %zu",
                               p->selected_metric);
    for (size_t i = 0; i < p->metrics; i++) {
        const struct joule_page_metric *m = &p->metric[i], *parent;

        if (m->parent < -1 || m->parent >= (int)i)
            return joule_error_set(
                err, EINVAL, "the parent of metric %s is not before it", m->id);
        if (m->parent < 0)
            continue;
        parent = &p->metric[m->parent];
        if (strcmp(m->unit, parent->unit) != 0 || m->is_sum != parent->is_sum)
            return joule_error_set(
                err, EINVAL, "metric %s is of another kind than its parent %s",
                m->id, parent->id);
    }
    for (size_t i = 0; i < p->paths; i++)
        if (p->path[i].parent < -1 || p->path[i].parent >= (int)i)
            return joule_error_set(
                err, EINVAL, "the parent of call path %zu is not before it", i);
    for (size_t i = 0; i < p->processes; i++)
        if (p->process[i].node < 0 || p->process[i].node >= (int)p->nodes)
            return joule_error_set(err, EINVAL, "process %zu has no node", i);
    return 0;
}

static int check_values(const struct joule_page *p, struct joule_error *err)
{
    for (size_t i = 0; i < p->values; i++) {
        const struct joule_page_value *v = &p->value[i];

        if (v->metric >= p->metrics || v->path >= p->paths ||
            v->process >= p->processes)
            return joule_error_set(
                err, EINVAL, "value %zu is of no metric, path or process", i);
        if (!isfinite(v->value) || fabs(v->value) > (double)FLT_MAX)
            return joule_error_set(err, EINVAL, "value %zu is no number", i);
    }
    for (size_t i = 0; i < p->powers; i++)
        if (p->power[i].node < 0 || p->power[i].node >= (int)p->nodes)
            return joule_error_set(err, EINVAL, "power %zu has no node", i);
    if (!isfinite(p->begin_s) || !isfinite(p->end_s) || p->end_s < p->begin_s)
        return joule_error_set(err, EINVAL, "the program has no duration");
    return 0;
}

int joule_page_check(const struct joule_page *p, struct joule_error *err)
{
    return check_trees(p, err) < 0 || check_values(p, err) < 0 ? -1 : 0;
}

/* ---- numbers as text: floats, least byte first, in base64 ---- */

/* A NUL too. */
static size_t base64_size(size_t floats)
{
    return (floats * sizeof(float) + 2) / 3 * 4 + 1;
}

static void put_base64(char *to, const float *from, size_t count)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, held = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t word;

        memcpy(&word, &from[i], sizeof(word));
        for (int byte = 0; byte < 4; byte++, word >>= 8) {
            held = held << 8 | (word & 0xFF);
            bits += 8;
            while (bits >= 6) {
                bits -= 6;
                *to++ = letters[held >> bits & 0x3F];
            }
        }
    }
    if (bits > 0)
        *to++ = letters[held << (6 - bits) & 0x3F];
    for (; bits > 0 && bits < 6; bits += 2)
        *to++ = '=';
    *to = '\0';
}

/* ---- values ---- */

/* Of each metric and path one after the other, [first] of cell i to that of i + 1. */
struct cells {
    size_t *first, *value; /* indices of the caller's values */
    float *of_process;
    char *text;
};

static void destroy_cells(struct cells *c)
{
    free(c->first);
    free(c->value);
    free(c->of_process);
    free(c->text);
}

static bool create_cells(struct cells *c, const struct joule_page *p)
{
    size_t count = p->metrics * p->paths;

    *c = (struct cells){
        .first = calloc(count + 2, sizeof(*c->first)),
        .value = calloc(p->values + 1, sizeof(*c->value)),
        .of_process = calloc(p->processes + 1, sizeof(*c->of_process)),
        .text = calloc(1, 64 + base64_size(p->processes)),
    };
    if (!c->first || !c->value || !c->of_process || !c->text)
        return false;
    /* Counted one further, so that filling them moves each to its place. */
    for (size_t i = 0; i < p->values; i++)
        c->first[p->value[i].metric * p->paths + p->value[i].path + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        c->first[i] += c->first[i - 1];
    for (size_t i = 0; i < p->values; i++)
        c->value[c->first[p->value[i].metric * p->paths + p->value[i].path +
                          1]++] = i;
    return true;
}

static void add_value(float *to, double value, bool is_sum)
{
    if (is_sum)
        *to += (float)value;
    else if (*to < (float)value)
        *to = (float)value;
}

/* "METRIC PATH FIRST VALUES": of the processes from FIRST on. */
static void put_run(struct joule_json *j, struct cells *c, size_t metric,
                    size_t path, size_t first, size_t end)
{
    int length = sprintf(c->text, "%zu %zu %zu ", metric, path, first);

    put_base64(c->text + length, c->of_process + first, end - first);
    joule_json_string(j, NULL, c->text);
}

static void put_cell(struct joule_json *j, const struct joule_page *p,
                     struct cells *c, size_t metric, size_t path)
{
    size_t cell = metric * p->paths + path, first = p->processes, last = 0;

    for (size_t i = c->first[cell]; i < c->first[cell + 1]; i++) {
        const struct joule_page_value *v = &p->value[c->value[i]];

        add_value(&c->of_process[v->process], v->value,
                  p->metric[metric].is_sum);
        if (v->process < first)
            first = v->process;
        if (v->process > last)
            last = v->process;
    }
    for (size_t i = first, begin = first, end = first; i <= last; i++) {
        if (c->of_process[i] != 0) {
            if (i - end > ZEROS_MAX && end > begin) {
                put_run(j, c, metric, path, begin, end);
                begin = i;
            } else if (end == begin)
                begin = i;
            end = i + 1;
        }
        if (i == last && end > begin)
            put_run(j, c, metric, path, begin, end);
    }
    for (size_t i = first; i <= last; i++)
        c->of_process[i] = 0;
}

static int put_values(struct joule_json *j, const struct joule_page *p,
                      struct joule_error *err)
{
    struct cells cells;
    int rc = 0;

    joule_json_array(j, "values");
    if (!create_cells(&cells, p))
        rc =
            joule_error_set(err, ENOMEM, "no memory for %zu values", p->values);
    else
        for (size_t metric = 0; metric < p->metrics; metric++)
            for (size_t path = 0; path < p->paths; path++)
                put_cell(j, p, &cells, metric, path);
    joule_json_close(j);
    destroy_cells(&cells);
    return rc;
}

/* ---- power ---- */

struct points {
    size_t count;
    float *s, *watts;
};

static void add_point(struct points *to, const struct joule_page *p,
                      const struct joule_page_power *power, size_t i)
{
    to->s[to->count] = (float)(power->s[i] - p->begin_s);
    to->watts[to->count++] = (float)power->watts[i];
}

/* The least and the greatest of a stretch in their order.  One that is not known makes
 * a gap, which none of the others may close. */
static void add_stretch(struct points *to, const struct joule_page *p,
                        const struct joule_page_power *power, size_t begin,
                        size_t end)
{
    size_t least = begin, greatest = begin;

    for (size_t i = begin; i < end; i++) {
        if (!isfinite(power->watts[i])) {
            add_point(to, p, power, i);
            return;
        }
        if (power->watts[i] < power->watts[least])
            least = i;
        if (power->watts[i] > power->watts[greatest])
            greatest = i;
    }
    add_point(to, p, power, least < greatest ? least : greatest);
    if (least != greatest)
        add_point(to, p, power, least < greatest ? greatest : least);
}

static void fill_points(struct points *to, const struct joule_page *p,
                        const struct joule_page_power *power, size_t most)
{
    size_t stretches = most / 2;

    to->count = 0;
    if (power->count <= most)
        for (size_t i = 0; i < power->count; i++)
            add_point(to, p, power, i);
    else
        for (size_t i = 0; i < stretches; i++)
            add_stretch(to, p, power, power->count * i / stretches,
                        power->count * (i + 1) / stretches);
}

static int put_powers(struct joule_json *j, const struct joule_page *p,
                      struct joule_error *err)
{
    size_t most = p->powers > 0 ? POINTS_ALL / p->powers : 0;
    struct points points;
    char *text;
    int rc = 0;

    if (most > POINTS_MAX)
        most = POINTS_MAX;
    if (most < POINTS_MIN)
        most = POINTS_MIN;
    points.s = calloc(most, sizeof(*points.s));
    points.watts = calloc(most, sizeof(*points.watts));
    text = calloc(1, base64_size(most));
    joule_json_array(j, "powers");
    if (!points.s || !points.watts || !text)
        rc = joule_error_set(err, ENOMEM, "no memory for the power");
    for (size_t i = 0; rc == 0 && i < p->powers; i++) {
        fill_points(&points, p, &p->power[i], most);
        joule_json_object(j, NULL);
        joule_json_i64(j, "node", p->power[i].node);
        put_base64(text, points.s, points.count);
        joule_json_string(j, "s", text);
        put_base64(text, points.watts, points.count);
        joule_json_string(j, "watts", text);
        joule_json_close(j);
    }
    joule_json_close(j);
    free(points.s);
    free(points.watts);
    free(text);
    return rc;
}

/* ---- the document ---- */

static void put_trees(struct joule_json *j, const struct joule_page *p)
{
    joule_json_array(j, "metrics");
    for (size_t i = 0; i < p->metrics; i++) {
        joule_json_object(j, NULL);
        joule_json_string(j, "id", p->metric[i].id);
        joule_json_string(j, "name", p->metric[i].name);
        joule_json_string(j, "unit", p->metric[i].unit);
        joule_json_string(j, "about", p->metric[i].about);
        joule_json_i64(j, "parent", p->metric[i].parent);
        joule_json_bool(j, "is_sum", p->metric[i].is_sum);
        joule_json_close(j);
    }
    joule_json_close(j);
    joule_json_array(j, "paths");
    for (size_t i = 0; i < p->paths; i++) {
        joule_json_object(j, NULL);
        joule_json_string(j, "name", p->path[i].name);
        joule_json_i64(j, "parent", p->path[i].parent);
        joule_json_close(j);
    }
    joule_json_close(j);
    joule_json_array(j, "nodes");
    for (size_t i = 0; i < p->nodes; i++)
        joule_json_string(j, NULL, p->node[i]);
    joule_json_close(j);
    joule_json_array(j, "processes");
    for (size_t i = 0; i < p->processes; i++) {
        joule_json_object(j, NULL);
        joule_json_string(j, "name", p->process[i].name);
        joule_json_i64(j, "node", p->process[i].node);
        joule_json_u64(j, "rank", p->process[i].rank);
        joule_json_close(j);
    }
    joule_json_close(j);
}

static int put_data(FILE *out, const struct joule_page *p,
                    struct joule_error *err)
{
    struct joule_json j;
    char seconds[64];

    joule_json_begin(&j, out);
    j.in_html = true;
    joule_json_string(&j, "title", p->title);
    joule_json_string(&j, "subtitle", p->subtitle);
    snprintf(seconds, sizeof(seconds), "%.9g", p->end_s - p->begin_s);
    joule_json_number(&j, "seconds", seconds);
    joule_json_u64(&j, "selected_metric", p->selected_metric);
    put_trees(&j, p);
    joule_json_string(&j, "no_power", p->no_power);
    if (put_values(&j, p, err) < 0 || put_powers(&j, p, err) < 0)
        return -1;
    joule_json_end(&j);
    return 0;
}

int joule_waits_page_write(FILE *out, const struct joule_page *page,
                           struct joule_error *err)
{
    if (joule_page_check(page, err) < 0)
        return -1;
    for (size_t i = 0; page_head[i]; i++)
        fputs(page_head[i], out);
    if (put_data(out, page, err) < 0)
        return -1;
    for (size_t i = 0; page_tail[i]; i++)
        fputs(page_tail[i], out);
    if (fflush(out) != 0 || ferror(out))
        return joule_error_set(err, errno ? errno : EIO,
                               "cannot write the page: %m");
    return 0;
}
