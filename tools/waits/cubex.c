/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/cubex.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tools/joule/text.h"

#define BLOCK      512
#define MEMBER_MAX ((uint64_t)1 << 33) /* bytes: 11 octal digits */

#define INDEX_MARK "CUBEX.INDEX"
#define DATA_MARK  "CUBEX.DATA"
enum { INDEX_SPARSE = 1 }; /* its rows are of the call paths that it lists */

/* ---- trees ---- */

/* The nodes of a tree in depth-first order.  CubeLib numbers the rows of exclusive
 * metrics by it: it is the number of a call path, too, so that both are the same. */
struct order {
    size_t *place; /* of each node */
    size_t *at;    /* the node of each place */
    size_t *end;   /* of each place, the one behind all that is below it */
    size_t *depth; /* of each place */
    size_t *next;  /* of each node, the place of its next child */
};

/* [parent] is that of node 0; those of the others follow, [stride] bytes apart. */
static int parent_of(const int *parent, size_t stride, size_t i)
{
    return *(const int *)((const char *)parent + i * stride);
}

static bool make_order(struct order *o, size_t count, const int *parent,
                       size_t stride)
{
    size_t root = 0;

    o->place = calloc(5 * count, sizeof(*o->place));
    if (!o->place)
        return false;
    o->at = o->place + count;
    o->end = o->at + count;
    o->depth = o->end + count;
    o->next = o->depth + count;
    /* How many there are at and below each, first. */
    for (size_t i = count; i-- > 0;) {
        int above = parent_of(parent, stride, i);

        o->next[i]++;
        if (above >= 0)
            o->next[above] += o->next[i];
    }
    for (size_t i = 0; i < count; i++) {
        int above = parent_of(parent, stride, i);
        size_t *next = above >= 0 ? &o->next[above] : &root;
        size_t place = *next;

        *next += o->next[i];
        o->place[i] = place;
        o->at[place] = i;
        o->end[place] = *next;
        o->depth[place] = above >= 0 ? o->depth[o->place[above]] + 1 : 0;
        o->next[i] = place + 1;
    }
    return true;
}

/* ---- all that is written ---- */

struct cubex {
    const struct joule_page *page;
    struct order metric, path;
    size_t *region;   /* of each path */
    size_t *by_name;  /* paths in the order of their names */
    size_t *process;  /* node by node: the order of values in a row */
    size_t *location; /* of each process, its place therein */
    size_t *first;    /* of each path's place, in [value] */
    size_t *value;    /* the page's */
    bool *has_row;    /* of each path's place, for one metric */
    double *row;
};

static void destroy(struct cubex *c)
{
    free(c->metric.place);
    free(c->path.place);
    free(c->region);
    free(c->by_name);
    free(c->process);
    free(c->location);
    free(c->first);
    free(c->value);
    free(c->has_row);
    free(c->row);
}

static int compare_names(const void *pa, const void *pb, void *arg)
{
    const struct joule_page *p = arg;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int names = strcmp(p->path[a].name, p->path[b].name);

    return names != 0 ? names : a < b ? -1 : a > b;
}

static void sort_names(struct cubex *c)
{
    const struct joule_page *p = c->page;

    for (size_t i = 0; i < p->paths; i++)
        c->by_name[i] = i;
    qsort_r(c->by_name, p->paths, sizeof(*c->by_name), compare_names,
            (void *)p);
}

static int compare_nodes(const void *pa, const void *pb, void *arg)
{
    const struct joule_page *p = arg;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int nodes = p->process[a].node - p->process[b].node;

    return nodes != 0 ? nodes : a < b ? -1 : a > b;
}

static void sort_processes(struct cubex *c)
{
    const struct joule_page *p = c->page;

    for (size_t i = 0; i < p->processes; i++)
        c->process[i] = i;
    qsort_r(c->process, p->processes, sizeof(*c->process), compare_nodes,
            (void *)p);
    for (size_t i = 0; i < p->processes; i++)
        c->location[c->process[i]] = i;
}

/* By their paths.  Counted one further, so that filling them moves each to its
 * place. */
static void sort_values(struct cubex *c)
{
    const struct joule_page *p = c->page;

    for (size_t i = 0; i < p->values; i++)
        c->first[c->path.place[p->value[i].path] + 2]++;
    for (size_t i = 2; i < p->paths + 2; i++)
        c->first[i] += c->first[i - 1];
    for (size_t i = 0; i < p->values; i++)
        c->value[c->first[c->path.place[p->value[i].path] + 1]++] = i;
}

static bool create(struct cubex *c, const struct joule_page *p)
{
    *c = (struct cubex){
        .page = p,
        .region = calloc(p->paths, sizeof(*c->region)),
        .by_name = calloc(p->paths, sizeof(*c->by_name)),
        .process = calloc(p->processes + 1, sizeof(*c->process)),
        .location = calloc(p->processes + 1, sizeof(*c->location)),
        .first = calloc(p->paths + 2, sizeof(*c->first)),
        .value = calloc(p->values + 1, sizeof(*c->value)),
        .has_row = calloc(p->paths, sizeof(*c->has_row)),
        .row = calloc(p->processes + 1, sizeof(*c->row)),
    };
    if (!c->region || !c->by_name || !c->process || !c->location || !c->first ||
        !c->value || !c->has_row || !c->row ||
        !make_order(&c->metric, p->metrics, &p->metric[0].parent,
                    sizeof(*p->metric)) ||
        !make_order(&c->path, p->paths, &p->path[0].parent, sizeof(*p->path)))
        return false;
    sort_names(c);
    sort_processes(c);
    sort_values(c);
    return true;
}

/* ---- anchor.xml ---- */

/* The length of the character at [s] that XML and people can read; 0: it is none.
 * XML has no U+FFFE and U+FFFF. */
static size_t xml_char(const char *s)
{
    if (strncmp(s, "\xEF\xBF\xBE", 3) == 0 ||
        strncmp(s, "\xEF\xBF\xBF", 3) == 0)
        return 0;
    return joule_text_char(s);
}

static void put_text(FILE *out, const char *s)
{
    while (*s) {
        size_t length = xml_char(s);

        if (length == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else if (*s == '"')
            fputs("&quot;", out);
        else
            fwrite(s, 1, length, out);
        s += length > 0 ? length : 1;
    }
}

/* CubeLib reads no <tag/>. */
static void put_element(FILE *out, const char *tag, const char *text)
{
    fprintf(out, "<%s>", tag);
    put_text(out, text);
    fprintf(out, "</%s>\n", tag);
}

static void put_attribute(FILE *out, const char *key, const char *value)
{
    if (!value)
        return;
    fprintf(out, "<attr key=\"%s\" value=\"", key);
    put_text(out, value);
    fputs("\"/>\n", out);
}

/* Elements are within each other as deep as [depth]; those below it end. */
static void close_to(FILE *out, const char *tag, size_t *open, size_t depth)
{
    for (; *open > depth; (*open)--)
        fprintf(out, "</%s>\n", tag);
}

static bool is_count(const struct joule_page_metric *m)
{
    return *m->unit == '\0';
}

static const char *unit_of(const struct joule_page_metric *m)
{
    return is_count(m) ? "occ" : strcmp(m->unit, "s") == 0 ? "sec" : m->unit;
}

/* A word that expressions of CubePL may have.  "time" alone would be taken for the
 * time of the whole program. */
static void put_unique_name(FILE *out, const char *id)
{
    fputs("<uniq_name>wait_", out);
    for (; *id; id++)
        putc(isalnum((unsigned char)*id) ? *id : '_', out);
    fputs("</uniq_name>\n", out);
}

static void put_metrics(FILE *out, const struct cubex *c)
{
    size_t open = 0;

    fputs("<metrics>\n", out);
    for (size_t place = 0; place < c->page->metrics; place++) {
        const struct joule_page_metric *m =
            &c->page->metric[c->metric.at[place]];

        close_to(out, "metric", &open, c->metric.depth[place]);
        fprintf(out, "<metric id=\"%zu\" type=\"EXCLUSIVE\">\n", place);
        open++;
        put_element(out, "disp_name", m->name);
        put_unique_name(out, m->id);
        put_element(out, "dtype", is_count(m) ? "UINT64" : "DOUBLE");
        put_element(out, "uom", unit_of(m));
        put_element(out, "url", "");
        put_element(out, "descr", m->about);
    }
    close_to(out, "metric", &open, 0);
    fputs("</metrics>\n", out);
}

static void put_region(FILE *out, size_t id, const char *name)
{
    bool is_mpi = strncasecmp(name, "mpi_", 4) == 0;

    fprintf(out, "<region id=\"%zu\" mod=\"\" begin=\"-1\" end=\"-1\">\n", id);
    put_element(out, "name", name);
    put_element(out, "mangled_name", name);
    put_element(out, "paradigm", is_mpi ? "mpi" : "user");
    put_element(out, "role", "function");
    put_element(out, "url", "");
    put_element(out, "descr", "");
    fputs("</region>\n", out);
}

static void put_program(FILE *out, struct cubex *c)
{
    const struct joule_page_path *path = c->page->path;
    size_t open = 0, regions = 0;

    fputs("<program>\n", out);
    for (size_t i = 0; i < c->page->paths; i++) {
        const char *name = path[c->by_name[i]].name;

        if (i == 0 || strcmp(name, path[c->by_name[i - 1]].name) != 0)
            put_region(out, regions++, name);
        c->region[c->by_name[i]] = regions - 1;
    }
    for (size_t place = 0; place < c->page->paths; place++) {
        close_to(out, "cnode", &open, c->path.depth[place]);
        fprintf(out, "<cnode id=\"%zu\" calleeId=\"%zu\">\n", place,
                c->region[c->path.at[place]]);
        open++;
    }
    close_to(out, "cnode", &open, 0);
    fputs("</program>\n", out);
}

static void put_process(FILE *out, const struct joule_page_process *process,
                        size_t location)
{
    fprintf(out, "<locationgroup Id=\"%zu\">\n", location);
    put_element(out, "name", process->name);
    fprintf(out, "<rank>%" PRIu32 "</rank>\n<type>process</type>\n",
            process->rank);
    fprintf(out,
            "<location Id=\"%zu\">\n<name>Master thread</name>\n"
            "<rank>0</rank>\n<type>thread</type>\n</location>\n"
            "</locationgroup>\n",
            location);
}

static void put_system(FILE *out, const struct cubex *c)
{
    const struct joule_page *p = c->page;
    size_t at = 0;

    fputs("<system>\n<systemtreenode Id=\"0\">\n<name>machine</name>\n"
          "<class>machine</class>\n",
          out);
    for (size_t i = 0; i < p->nodes; i++) {
        fprintf(out, "<systemtreenode Id=\"%zu\">\n", i + 1);
        put_element(out, "name", *p->node[i] ? p->node[i] : "unknown");
        put_element(out, "class", "node");
        for (; at < p->processes && p->process[c->process[at]].node == (int)i;
             at++)
            put_process(out, &p->process[c->process[at]], at);
        fputs("</systemtreenode>\n", out);
    }
    fputs("</systemtreenode>\n</system>\n", out);
}

/* Its bytes; NULL: out of memory.  The caller frees it. */
static char *make_anchor(struct cubex *c, size_t *ret_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_size);

    if (!out)
        return NULL;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<cube version=\"4.4\">\n",
          out);
    put_attribute(out, "Creator", "slurm-joule " PACKAGE_VERSION);
    put_attribute(out, "Trace", c->page->title);
    put_attribute(out, "Run", c->page->subtitle);
    put_attribute(out, "No energy", c->page->no_power);
    put_metrics(out, c);
    put_program(out, c);
    put_system(out, c);
    fputs("</cube>\n", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- the tar file ---- */

/* A header of ustar (POSIX.1-2001, pax).  There are no users and times in it. */
static void put_header(FILE *out, const char *name, uint64_t size)
{
    char block[BLOCK] = {0};
    unsigned sum = 0;

    snprintf(block, 100, "%s", name);
    memcpy(block + 100, "0000644", 7);
    memcpy(block + 108, "0000000", 7);
    memcpy(block + 116, "0000000", 7);
    snprintf(block + 124, 12, "%011" PRIo64, size);
    memcpy(block + 136, "00000000000", 11);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof(block); i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    fwrite(block, 1, sizeof(block), out);
}

static void put_padding(FILE *out, uint64_t size)
{
    for (; size % BLOCK != 0; size++)
        putc(0, out);
}

/* CubeLib looks for the next file a block too far behind one whose last block is full.
 * Sizes of N.index and N.data are never a multiple of a block; this one might be. */
static int put_anchor(FILE *out, struct cubex *c, struct joule_error *err)
{
    size_t size, more;
    char *text = make_anchor(c, &size);

    if (!text)
        return joule_error_set(err, ENOMEM, "no memory for anchor.xml");
    more = size % BLOCK == 0;
    put_header(out, "anchor.xml", size + more);
    fwrite(text, 1, size, out);
    if (more)
        putc('\n', out);
    put_padding(out, size + more);
    free(text);
    return 0;
}

/* ---- values ---- */

/* Whether the value is of the metric at that place, or of one below it. */
static bool is_of(const struct cubex *c, size_t metric, size_t value)
{
    size_t place = c->metric.place[c->page->value[value].metric];

    return place >= metric && place < c->metric.end[metric];
}

/* How many paths have values of a metric. */
static size_t find_rows(struct cubex *c, size_t metric)
{
    size_t rows = 0;

    for (size_t path = 0; path < c->page->paths; path++) {
        c->has_row[path] = false;
        for (size_t i = c->first[path];
             i < c->first[path + 1] && !c->has_row[path]; i++)
            c->has_row[path] = is_of(c, metric, c->value[i]);
        rows += c->has_row[path];
    }
    return rows;
}

static void put_row(FILE *out, struct cubex *c, size_t metric, size_t path)
{
    const struct joule_page *p = c->page;

    memset(c->row, 0, p->processes * sizeof(*c->row));
    for (size_t i = c->first[path]; i < c->first[path + 1]; i++)
        if (is_of(c, metric, c->value[i])) {
            const struct joule_page_value *v = &p->value[c->value[i]];

            c->row[c->location[v->process]] += v->value;
        }
    for (size_t i = 0; i < p->processes; i++) {
        uint64_t whole = (uint64_t)c->row[i];

        if (is_count(&p->metric[c->metric.at[metric]]))
            fwrite(&whole, sizeof(whole), 1, out);
        else
            fwrite(&c->row[i], sizeof(c->row[i]), 1, out);
    }
}

static void put_index(FILE *out, const struct cubex *c, size_t metric,
                      uint32_t rows)
{
    static const uint32_t endianness = 1;
    static const uint16_t version = 0;
    uint64_t size = sizeof(INDEX_MARK) - 1 + 4 + 2 + 1 + 4 + 4 * (uint64_t)rows;
    char name[32];

    snprintf(name, sizeof(name), "%zu.index", metric);
    put_header(out, name, size);
    fputs(INDEX_MARK, out);
    fwrite(&endianness, sizeof(endianness), 1, out);
    fwrite(&version, sizeof(version), 1, out);
    putc(INDEX_SPARSE, out);
    fwrite(&rows, sizeof(rows), 1, out);
    for (uint32_t path = 0; path < c->page->paths; path++)
        if (c->has_row[path])
            fwrite(&path, sizeof(path), 1, out);
    put_padding(out, size);
}

static int put_metric(FILE *out, struct cubex *c, size_t metric,
                      struct joule_error *err)
{
    size_t rows = find_rows(c, metric);
    uint64_t size = sizeof(DATA_MARK) - 1 +
                    (uint64_t)rows * c->page->processes * sizeof(double);
    char name[32];

    if (rows == 0)
        return 0;
    if (size >= MEMBER_MAX)
        return joule_error_set(err, EFBIG,
                               "%zu call paths of %zu processes are too many "
                               "for a .cubex file",
                               rows, c->page->processes);
    put_index(out, c, metric, (uint32_t)rows);
    snprintf(name, sizeof(name), "%zu.data", metric);
    put_header(out, name, size);
    fputs(DATA_MARK, out);
    for (size_t path = 0; path < c->page->paths && !ferror(out); path++)
        if (c->has_row[path])
            put_row(out, c, metric, path);
    put_padding(out, size);
    return 0;
}

static int put_all(FILE *out, struct cubex *c, struct joule_error *err)
{
    static const char end[2 * BLOCK];

    if (put_anchor(out, c, err) < 0)
        return -1;
    for (size_t i = 0; i < c->page->metrics && !ferror(out); i++)
        if (put_metric(out, c, i, err) < 0)
            return -1;
    fwrite(end, 1, sizeof(end), out);
    if (fflush(out) != 0 || ferror(out))
        return joule_error_set(err, errno ? errno : EIO,
                               "cannot write the profile: %m");
    return 0;
}

static int check(const struct joule_page *p, struct joule_error *err)
{
    if (joule_page_check(p, err) < 0)
        return -1;
    if (p->metrics == 0 || p->paths == 0)
        return joule_error_set(err, EINVAL,
                               "the profile has no metric or no call path");
    for (size_t i = 0; i < p->metrics; i++)
        if (!p->metric[i].is_sum)
            return joule_error_set(err, EINVAL, "metric %s is no sum",
                                   p->metric[i].id);
    for (size_t i = 0; i < p->values; i++)
        if (is_count(&p->metric[p->value[i].metric]) &&
            !(p->value[i].value >= 0 && p->value[i].value <= 0x1p53))
            return joule_error_set(err, EINVAL, "value %zu is no count", i);
    return 0;
}

int joule_waits_cubex_write(FILE *out, const struct joule_page *page,
                            struct joule_error *err)
{
    struct cubex c;
    int rc;

    if (check(page, err) < 0)
        return -1;
    if (create(&c, page))
        rc = put_all(out, &c, err);
    else
        rc = joule_error_set(err, ENOMEM, "no memory for %zu values",
                             page->values);
    destroy(&c);
    return rc;
}
