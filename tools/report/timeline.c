/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cpus.h"
#include "common/base/list.h"
#include "common/profile/hdf5_read.h"
#include "lib/segment.h"

#define ROWS_MAX    4000000 /* of a table */
#define BATCH_BYTES ((size_t)128 << 10)
#define BYTES_MAX   ((size_t)2 << 30) /* of all nodes */

struct sample {
    uint64_t ns;
    float watts[JOULE_TIMELINE_COLUMNS];
};

struct state {
    uint64_t ns, cpu, is_p;
    float percent[JOULE_TIMELINE_STATES];
};

/* What a worker sends of a node, in this order: HEAD, its columns, samples, states,
 * names, regions. */
struct message {
    enum { HEAD, COLUMN, SAMPLE, STATE, NAME, REGION } kind;
    union {
        uint64_t start_wall_ns;
        char column[JOULE_TIMELINE_NAME];
        struct sample sample;
        struct state state;
        joule_region_text name;
        struct joule_timeline_region region;
    };
};

/* ---- in the worker ---- */

/* How a column of the energy table becomes watts. */
struct source {
    const struct joule_column *column;
    enum { FROM_UJ, FROM_MW, FROM_W } from;
    uint64_t before_uj;
};

struct energy {
    struct joule_hdf5_table *table;
    const struct joule_column *ns;
    struct source source[JOULE_TIMELINE_COLUMNS];
    char name[JOULE_TIMELINE_COLUMNS][JOULE_TIMELINE_NAME];
    size_t sources;
    uint64_t before_ns;
};

static int send(struct joule_out *out, const struct message *m,
                struct joule_error *err)
{
    void *room = joule_out_room(out, sizeof(*m), err);

    if (!room)
        return -1;
    memcpy(room, m, sizeof(*m));
    joule_out_commit(out, sizeof(*m));
    return 0;
}

/* "node_uJ" is "node"; false: it is no power. */
static bool is_power(const struct joule_column *c, struct source *ret,
                     char name[JOULE_TIMELINE_NAME])
{
    static const struct {
        const char *end;
        uint32_t kind;
    } ends[] = {[FROM_UJ] = {"_uJ", JOULE_KIND_UNSIGNED},
                [FROM_MW] = {"_mW", JOULE_KIND_FLOAT},
                [FROM_W] = {"Power", JOULE_KIND_UNSIGNED}};
    size_t length = strnlen(c->name, sizeof(c->name));

    for (int i = FROM_UJ; i <= FROM_W; i++) {
        size_t n = strlen(ends[i].end);

        if (c->kind != ends[i].kind || length < n ||
            length - n >= JOULE_TIMELINE_NAME ||
            memcmp(c->name + length - n, ends[i].end, n) != 0)
            continue;
        *ret = (struct source){c, (typeof(ret->from))i, 0};
        snprintf(name, JOULE_TIMELINE_NAME, "%.*s", (int)(length - n), c->name);
        return true;
    }
    return false;
}

/* Of one name the first: the energy, where there is one, is exact. */
static void find_sources(struct energy *e)
{
    const struct joule_rowtype *row = e->table->row;
    struct source source;
    char name[JOULE_TIMELINE_NAME];

    for (int from = FROM_UJ; from <= FROM_W; from++)
        for (uint32_t i = 0; i < row->count; i++) {
            size_t k = 0;

            if (!is_power(&row->column[i], &source, name) ||
                (int)source.from != from ||
                e->sources == JOULE_TIMELINE_COLUMNS)
                continue;
            while (k < e->sources && strcmp(e->name[k], name) != 0)
                k++;
            /* Watts of our own tables are there in a better column. */
            if (k < e->sources || (from == FROM_W && e->sources > 0))
                continue;
            strcpy(e->name[k], name);
            e->source[e->sources++] = source;
        }
}

static double watts(struct source *s, const unsigned char *row, uint64_t ns)
{
    uint64_t uj;

    if (s->from == FROM_MW)
        return joule_column_double(s->column, row) / 1e3;
    if (s->from == FROM_W)
        return (double)joule_column_u64(s->column, row);
    uj = joule_column_u64(s->column, row) - s->before_uj;
    s->before_uj += uj;
    /* It falls where another job comes to the node. */
    return ns == 0 || uj > INT64_MAX ? NAN : (double)uj * 1e3 / (double)ns;
}

static int send_samples(struct energy *e, struct joule_out *out,
                        struct joule_error *err)
{
    size_t room = joule_hdf5_table_batch(e->table, BATCH_BYTES), count;
    unsigned char *batch = malloc(room * e->table->row->size);
    int rc = batch ? 0 : joule_error_set(err, ENOMEM, "out of memory");

    while (rc == 0 &&
           (count = joule_hdf5_table_read(e->table, batch, room)) > 0)
        for (size_t i = 0; rc == 0 && i < count; i++) {
            const unsigned char *row = batch + i * e->table->row->size;
            struct message m = {.kind = SAMPLE};

            m.sample.ns = joule_column_u64(e->ns, row);
            if (m.sample.ns < e->before_ns)
                continue;
            for (size_t k = 0; k < e->sources; k++)
                m.sample.watts[k] = (float)watts(&e->source[k], row,
                                                 m.sample.ns - e->before_ns);
            e->before_ns = m.sample.ns;
            rc = send(out, &m, err);
        }
    free(batch);
    return rc;
}

static int send_names(hid_t group, struct joule_out *out,
                      struct joule_error *err)
{
    struct message m = {.kind = NAME};
    joule_region_text *names;
    size_t count;
    int rc;

    if (joule_nodes_names(group, &names, &count, err) < 0)
        return -1;
    rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        memcpy(m.name, names[i], sizeof(m.name));
        rc = send(out, &m, err);
    }
    free(names);
    return rc;
}

enum { PROCESS, THREAD, DEPTH, NUMBER, KIND, COUNT, BEGIN, END, ROW_COLUMNS };

static const char *const row_columns[] = {
    [PROCESS] = "Process", [THREAD] = "Thread", [DEPTH] = "Depth",
    [NUMBER] = "Region",   [KIND] = "Kind",     [COUNT] = "Count",
    [BEGIN] = "BeginNs",   [END] = "EndNs"};
static const char *const rank_columns[] = {"Process", "Rank"};

static uint64_t rank_of(const uint64_t *rank, size_t ranks, uint64_t process)
{
    for (size_t i = 0; i < ranks; i++)
        if (rank[2 * i] == process)
            return rank[2 * i + 1];
    return JOULE_REGION_NO_RANK;
}

static int send_region(const uint64_t *row, uint64_t rank,
                       struct joule_out *out, struct joule_error *err)
{
    struct message m = {.kind = REGION};

    /* What had no room has no times. */
    if (row[KIND] > JOULE_REGION_MARK || row[BEGIN] > row[END])
        return 0;
    m.region = (struct joule_timeline_region){
        .process = row[PROCESS],
        .rank = rank,
        .thread = row[THREAD],
        .depth = row[DEPTH],
        .count = row[COUNT],
        .begin_ns = row[BEGIN],
        .end_ns = row[END],
        .name = (uint32_t)row[NUMBER],
        .is_mark = row[KIND] == JOULE_REGION_MARK,
    };
    return send(out, &m, err);
}

static int send_regions(hid_t group, struct joule_out *out,
                        struct joule_error *err)
{
    uint64_t *row = NULL, *rank = NULL;
    size_t rows = 0, ranks = 0;
    int rc = -1;

    if (joule_nodes_table(group, "RegionProcesses", rank_columns, 2, ROWS_MAX,
                          &rank, &ranks, err) < 0 ||
        joule_nodes_table(group, "Regions", row_columns, ROW_COLUMNS, ROWS_MAX,
                          &row, &rows, err) < 0)
        goto out;
    rc = 0;
    for (size_t i = 0; rc == 0 && i < rows; i++) {
        const uint64_t *r = row + i * ROW_COLUMNS;

        rc = send_region(r, rank_of(rank, ranks, r[PROCESS]), out, err);
    }
out:
    free(rank);
    free(row);
    return rc;
}

static int send_head(hid_t group, const struct energy *e, struct joule_out *out,
                     struct joule_error *err)
{
    struct message m = {.kind = HEAD};
    int rc;

    joule_hdf5_read_number(group, "Joule Start Wall ns", &m.start_wall_ns);
    rc = send(out, &m, err);
    m.kind = COLUMN;
    for (size_t i = 0; rc == 0 && i < e->sources; i++) {
        memcpy(m.column, e->name[i], sizeof(m.column));
        rc = send(out, &m, err);
    }
    return rc;
}

static int read_energy(hid_t group, struct joule_out *out,
                       struct joule_error *err)
{
    struct energy e = {0};
    int rc = -1;

    e.table = joule_hdf5_table_open(group, "Energy", err);
    if (!e.table)
        return -1;
    e.ns = joule_rowtype_find(e.table->row, "ElapsedTimeNs");
    if (!e.ns || e.ns->kind != JOULE_KIND_UNSIGNED) {
        joule_error_set(err, EINVAL, "it is no profile of slurm-joule");
        goto out;
    }
    if (e.table->rows > ROWS_MAX) {
        joule_error_set(err, E2BIG, "its energy has more than %d rows",
                        ROWS_MAX);
        goto out;
    }
    find_sources(&e);
    rc = send_head(group, &e, out, err);
    if (rc == 0)
        rc = send_samples(&e, out, err);
out:
    joule_hdf5_table_close(e.table);
    return rc;
}

/* The columns of a table of states. */
struct state_columns {
    const struct joule_column *ns, *cpu, *percent[JOULE_TIMELINE_STATES];
};

static int find_state_columns(const struct joule_rowtype *row,
                              struct state_columns *ret)
{
    bool is_ours = true;

    ret->ns = joule_rowtype_find(row, "ElapsedTimeNs");
    ret->cpu = joule_rowtype_find(row, "CPU");
    is_ours = ret->ns && ret->ns->kind == JOULE_KIND_UNSIGNED && ret->cpu &&
              ret->cpu->kind == JOULE_KIND_UNSIGNED;
    for (int i = 0; i < JOULE_TIMELINE_STATES; i++) {
        char name[] = "Percent0";

        name[strlen(name) - 1] = (char)('0' + i);
        ret->percent[i] = joule_rowtype_find(row, name);
        is_ours = is_ours && ret->percent[i] &&
                  ret->percent[i]->kind == JOULE_KIND_FLOAT;
    }
    return is_ours ? 0 : -1;
}

static int send_states(struct joule_hdf5_table *table, bool is_p,
                       struct joule_out *out, struct joule_error *err)
{
    size_t room = joule_hdf5_table_batch(table, BATCH_BYTES), count;
    struct message m = {.kind = STATE};
    struct state_columns columns;
    unsigned char *batch;
    int rc = 0;

    if (find_state_columns(table->row, &columns) < 0)
        return joule_error_set(err, EINVAL,
                               "its states of CPUs are not slurm-joule's");
    batch = malloc(room * table->row->size);
    if (!batch)
        return joule_error_set(err, ENOMEM, "out of memory");
    m.state.is_p = is_p;
    while (rc == 0 && (count = joule_hdf5_table_read(table, batch, room)) > 0)
        for (size_t i = 0; rc == 0 && i < count; i++) {
            const unsigned char *row = batch + i * table->row->size;

            m.state.ns = joule_column_u64(columns.ns, row);
            m.state.cpu = joule_column_u64(columns.cpu, row);
            for (int k = 0; k < JOULE_TIMELINE_STATES; k++)
                m.state.percent[k] =
                    (float)joule_column_double(columns.percent[k], row);
            rc = send(out, &m, err);
        }
    free(batch);
    return rc;
}

static int read_states(hid_t group, const char *name, bool is_p,
                       struct joule_out *out, struct joule_error *err)
{
    struct joule_hdf5_table *table;
    int rc;

    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return 0;
    table = joule_hdf5_table_open(group, name, err);
    if (!table)
        return -1;
    rc = table->rows > ROWS_MAX
             ? joule_error_set(err, E2BIG, "its %s have more than %d rows",
                               name, ROWS_MAX)
             : send_states(table, is_p, out, err);
    joule_hdf5_table_close(table);
    return rc;
}

static int read_node(void *arg, size_t i, hid_t group, struct joule_out *out,
                     struct joule_error *err)
{
    (void)arg;
    (void)i;
    if (read_energy(group, out, err) < 0 ||
        read_states(group, "CStates", false, out, err) < 0 ||
        read_states(group, "PStates", true, out, err) < 0)
        return -1;
    if (H5Lexists(group, "Regions", H5P_DEFAULT) <= 0)
        return 0;
    return send_names(group, out, err) < 0 ? -1 : send_regions(group, out, err);
}

/* ---- in the parent, which believes nothing ---- */

static int grow(void *array, size_t count, size_t more, size_t *room,
                size_t size, struct joule_error *err)
{
    return joule_list_grow(array, count, more, room, size) == 0
               ? 0
               : joule_error_set(err, ENOMEM, "out of memory");
}

static int take_sample(struct joule_timeline_node *n, const struct sample *s,
                       struct joule_error *err)
{
    if (!n->is_read || (n->samples > 0 && s->ns < n->ns[n->samples - 1]))
        return 0;
    if (grow(&n->ns, n->samples, 1, &n->ns_room, sizeof(*n->ns), err) < 0 ||
        grow(&n->watts, n->samples * n->columns, n->columns, &n->watts_room,
             sizeof(*n->watts), err) < 0)
        return -1;
    for (size_t i = 0; i < n->columns; i++)
        n->watts[n->samples * n->columns + i] = s->watts[i];
    n->ns[n->samples++] = s->ns;
    return 0;
}

/* The series of a row's CPU. */
static struct joule_timeline_states *find_states(struct joule_timeline_node *n,
                                                 const struct state *s,
                                                 struct joule_error *err)
{
    uint32_t *number;

    if (s->cpu >= JOULE_CPUS_MAX || s->is_p > 1) {
        joule_error_set(err, EBADMSG, "it has states of CPU %" PRIu64, s->cpu);
        return NULL;
    }
    if (!n->series_of) {
        n->series_of = calloc(2 * JOULE_CPUS_MAX, sizeof(*n->series_of));
        if (!n->series_of) {
            joule_error_set(err, ENOMEM, "out of memory");
            return NULL;
        }
    }
    number = &n->series_of[2 * s->cpu + s->is_p];
    if (*number > 0)
        return &n->states[*number - 1];
    if (grow(&n->states, n->state_series, 1, &n->state_room, sizeof(*n->states),
             err) < 0)
        return NULL;
    n->states[n->state_series] =
        (struct joule_timeline_states){.cpu = s->cpu, .is_p = s->is_p != 0};
    *number = (uint32_t)++n->state_series;
    return &n->states[n->state_series - 1];
}

static int take_state(struct joule_timeline_node *n, const struct state *s,
                      struct joule_error *err)
{
    struct joule_timeline_states *to = find_states(n, s, err);

    if (!to)
        return -1;
    if (to->samples > 0 && s->ns < to->ns[to->samples - 1])
        return 0;
    if (grow(&to->ns, to->samples, 1, &to->ns_room, sizeof(*to->ns), err) < 0 ||
        grow(&to->percent, to->samples, 1, &to->percent_room,
             sizeof(*to->percent), err) < 0)
        return -1;
    memcpy(to->percent[to->samples], s->percent, sizeof(s->percent));
    to->ns[to->samples++] = s->ns;
    return 0;
}

static int take_column(struct joule_timeline_node *n, const char *name,
                       struct joule_error *err)
{
    if (n->samples > 0 || n->columns == JOULE_TIMELINE_COLUMNS)
        return joule_error_set(err, EBADMSG, "what was read makes no sense");
    memcpy(n->column[n->columns], name, JOULE_TIMELINE_NAME);
    n->column[n->columns++][JOULE_TIMELINE_NAME - 1] = '\0';
    return 0;
}

static int take_message(struct joule_timeline_node *n, const struct message *m,
                        struct joule_error *err)
{
    switch (m->kind) {
    case HEAD:
        n->is_read = true;
        n->start_wall_ns = m->start_wall_ns;
        return 0;
    case COLUMN:
        return take_column(n, m->column, err);
    case STATE:
        return take_state(n, &m->state, err);
    case NAME:
        if (grow(&n->name, n->names, 1, &n->name_room, sizeof(*n->name), err) <
            0)
            return -1;
        memcpy(n->name[n->names], m->name, sizeof(m->name));
        n->name[n->names++][sizeof(m->name) - 1] = '\0';
        return 0;
    case SAMPLE:
        return take_sample(n, &m->sample, err);
    case REGION:
        if (grow(&n->region, n->regions, 1, &n->region_room, sizeof(*n->region),
                 err) < 0)
            return -1;
        if (m->region.name < n->names && m->region.begin_ns <= m->region.end_ns)
            n->region[n->regions++] = m->region;
        return 0;
    }
    return joule_error_set(err, EBADMSG, "what was read makes no sense");
}

static int take(void *arg, size_t i, const void *data, size_t size,
                struct joule_error *err)
{
    struct joule_timeline *t = arg;
    const char *at = data, *end = at + size;
    struct message m;

    if (size % sizeof(m) != 0)
        return joule_error_set(err, EBADMSG, "what was read makes no sense");
    t->bytes += size;
    if (t->bytes > BYTES_MAX)
        return joule_error_set(err, E2BIG,
                               "there is too much: name one step, or a file of "
                               "few nodes");
    for (; at < end; at += sizeof(m)) {
        memcpy(&m, at, sizeof(m));
        if (take_message(&t->node[i], &m, err) < 0)
            return -1;
    }
    return 0;
}

static void failed(void *arg, size_t i, const char *sentence)
{
    struct joule_timeline *t = arg;

    t->failed++;
    t->node[i].is_read = false;
    joule_nodes_complain(t->of, i, t->who, sentence);
}

static int compare_states(const void *pa, const void *pb)
{
    const struct joule_timeline_states *a = pa, *b = pb;

    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    return (int)a->is_p - (int)b->is_p;
}

static int compare_regions(const void *pa, const void *pb)
{
    const struct joule_timeline_region *a = pa, *b = pb;

    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

int joule_timeline_read(struct joule_nodes *nodes, struct joule_timeline *ret,
                        const char *who, struct joule_error *err)
{
    const struct joule_nodes_reading reading = {
        .read = read_node, .take = take, .failed = failed, .arg = ret};

    *ret = (struct joule_timeline){
        .nodes = joule_nodes_count(nodes), .who = who, .of = nodes};
    ret->node = calloc(ret->nodes + 1, sizeof(*ret->node));
    if (!ret->node)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (joule_nodes_read(nodes, &reading, err) < 0)
        return -1;
    for (size_t i = 0; i < ret->nodes; i++) {
        struct joule_timeline_node *n = &ret->node[i];

        if (n->state_series > 0)
            qsort(n->states, n->state_series, sizeof(*n->states),
                  compare_states);
        if (n->regions > 0)
            qsort(n->region, n->regions, sizeof(*n->region), compare_regions);
    }
    return 0;
}

void joule_timeline_free(struct joule_timeline *t)
{
    for (size_t i = 0; t->node && i < t->nodes; i++) {
        struct joule_timeline_node *n = &t->node[i];

        for (size_t k = 0; k < n->state_series; k++) {
            free(n->states[k].ns);
            free(n->states[k].percent);
        }
        free(n->states);
        free(n->series_of);
        free(n->ns);
        free(n->watts);
        free(n->region);
        free(n->name);
    }
    free(t->node);
    t->node = NULL;
}

int joule_timeline_column(const struct joule_timeline_node *node,
                          const char *name)
{
    for (size_t i = 0; i < node->columns; i++)
        if (strcmp(node->column[i], name) == 0)
            return (int)i;
    return -1;
}
