/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule regions - the energy of the regions of a job's programs. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment.h"
#include "tools/joule/command.h"
#include "tools/joule/json.h"
#include "tools/joule/text.h"
#include "tools/report/moneq.h"
#include "tools/report/names.h"
#include "tools/report/nodes.h"
#include "tools/report/region_energy.h"
#include "tools/report/report.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/sources.h"

static const char usage[] =
    "usage: joule regions [OPTION]... JOB[.STEP]\n"
    "\n"
    "Tell the energy of the regions of a job's programs (joule.h), from its "
    "energy\n"
    "profile: srun --profile=energy, as often as JOULE_PROFILE_PERIOD=100ms "
    "says.\n"
    "\n"
    "  --by=rank        a line for each process, not one for all of a step\n"
    "  --by=node        a line for each node\n"
    "  -i FILE          a merged file of sh5util; else the job's own files, "
    "or\n"
    "                   ./job_JOB.h5\n"
    "  -p DIR           in place of ProfileHDF5Dir\n"
    "  -u USER          whose job it is\n"
    "  --csv            print comma-separated values\n"
    "  --json           print a JSON document\n"
    "  --format=moneq   write the files of MonEQ\n"
    "  --reduce         and what its reducer made of them: means of nodes, of "
    "each "
    "tag\n"
    "  --plot           and plots of these (gnuplot)\n"
    "  --output=DIR     where to ($MonEQ_PREFIX, or here)\n"
    "  --help           print this\n"
    "\n"
    "share: the step's energy divided among its processes by CPU time, and "
    "what a\n"
    "process has given to its innermost regions; all shares and what was in "
    "no\n"
    "region are the step's energy.  total: the same with regions inside.  "
    "window:\n"
    "the step's energy on its nodes while any process was in the region.\n"
    "\n"
    "Exit status: 0 well, 1 there is nothing to tell, 2 usage error, 3 a part "
    "is\n"
    "missing.\n";

#define ROWS_MAX      4000000
#define LINES_MAX     4000000
#define PROCESSES_MAX 1000000 /* of a step on a node, one after the other */

enum by {
    BY_STEP,
    BY_NODE,
    BY_RANK,
};

struct arguments {
    struct joule_nodes_request request;
    enum by by;
    bool csv, json, is_moneq;
    struct joule_moneq_options moneq;
};

/* What a worker sends of a node: this once, and a line for each region, of all
 * processes together or of one. */
struct node_facts {
    uint64_t step_uj, step_ns, no_region_uj, period_ns;
    uint64_t processes, lost, too_deep, without_begin, left_out;
};

struct line {
    struct joule_region_use use;
    uint64_t rank;
    uint64_t period_ns;
    char region[JOULE_REGION_NAME_MAX + 1];
};

struct message {
    enum { FACTS, LINE } kind;
    union {
        struct node_facts facts;
        struct line line;
    };
};

/* What is known of all nodes. */
struct entry {
    size_t node; /* the first of them */
    struct line line;
};

struct report {
    const struct arguments *a;
    struct joule_nodes *nodes;
    struct node_facts *facts; /* of each node */
    bool *is_read;
    struct entry *entry;
    size_t count, room;
    /* Of the step that is read: where its entries begin, and their regions. */
    const char *step;
    size_t first;
    struct joule_names regions;
    size_t failed;
};

/* ---- in the worker ---- */

static const char *const row_columns[] = {"Process", "Thread", "Depth",
                                          "Region",  "Kind",   "Count",
                                          "BeginNs", "EndNs",  "TimeNs"};
static const char *const process_columns[] = {
    "Process", "PID",     "Rank",         "BeginNs",    "EndNs",
    "Lost",    "TooDeep", "WithoutBegin", "WithoutName"};
static const char *const cpu_columns[] = {"Process", "CPUTimeNs", "AtNs"};
static const char *const share_columns[] = {"ElapsedTimeNs", "step_uJ"};
static const char *const node_columns[] = {"ElapsedTimeNs", "node_uJ"};

#define COLUMNS(list) (list), sizeof(list) / sizeof((list)[0])

struct tables {
    uint64_t *energy, *row, *process, *cpu;
    size_t energies, rows, processes, cpus;
};

/* Slurm's own energy series have watts alone. */
static int read_energy(hid_t group, struct tables *t, struct joule_error *err)
{
    int rc = joule_nodes_table(group, "Energy", COLUMNS(share_columns),
                               ROWS_MAX, &t->energy, &t->energies, err);

    if (rc < 0 && errno == EINVAL)
        rc = joule_nodes_table(group, "Energy", COLUMNS(node_columns), ROWS_MAX,
                               &t->energy, &t->energies, err);
    return rc;
}

/* A step whose processes record nothing has an energy all the same. */
static int read_tables(hid_t group, struct tables *t, struct joule_error *err)
{
    if (read_energy(group, t, err) < 0)
        return -1;
    if (H5Lexists(group, "Regions", H5P_DEFAULT) <= 0)
        return 0;
    return joule_nodes_table(group, "Regions", COLUMNS(row_columns), ROWS_MAX,
                             &t->row, &t->rows, err) < 0 ||
                   joule_nodes_table(group, "RegionProcesses",
                                     COLUMNS(process_columns), ROWS_MAX,
                                     &t->process, &t->processes, err) < 0 ||
                   joule_nodes_table(group, "RegionCPU", COLUMNS(cpu_columns),
                                     ROWS_MAX, &t->cpu, &t->cpus, err) < 0
               ? -1
               : 0;
}

/* One more than the highest number of a process in [rows], whose first column it
 * is. */
static size_t count_processes(const uint64_t *rows, size_t count,
                              size_t columns, size_t least)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i * columns] < PROCESSES_MAX && least <= rows[i * columns])
            least = rows[i * columns] + 1;
    return least;
}

/* One row for each number.  Of some the step could not tell the end: it was killed
 * itself. */
static int sort_processes(struct tables *t, struct joule_error *err)
{
    const struct joule_region_process *p = (void *)t->process;
    const struct joule_region_cpu *cpu = (void *)t->cpu;
    struct joule_region_process *all;
    size_t count = 0;

    count = count_processes(t->process, t->processes,
                            sizeof(*p) / sizeof(uint64_t), count);
    count = count_processes(t->row, t->rows,
                            sizeof(struct joule_region_row) / sizeof(uint64_t),
                            count);
    all = calloc(count + 1, sizeof(*all));
    if (!all)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        all[i] = (struct joule_region_process){
            .process = i, .rank = JOULE_REGION_NO_RANK, .end_ns = UINT64_MAX};
    for (size_t i = t->cpus; i-- > 0;)
        if (cpu[i].process < count)
            all[cpu[i].process].begin_ns = cpu[i].ns;
    for (size_t i = 0; i < t->processes; i++)
        if (p[i].process < count)
            all[p[i].process] = p[i];
    free(t->process);
    t->process = (uint64_t *)all;
    t->processes = count;
    return 0;
}

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

static int send_lines(const struct report *r, const struct tables *t,
                      const struct joule_region_result *result,
                      const joule_region_text *names, struct joule_out *out,
                      struct joule_error *err)
{
    bool each = r->a->by == BY_RANK;
    const struct joule_region_use *use = each ? result->use : result->region;
    size_t count = each ? result->uses : result->regions;
    const struct joule_region_process *p = (const void *)t->process;
    struct message m = {.kind = LINE};

    for (size_t i = 0; i < count; i++) {
        m.line.use = use[i];
        m.line.rank = each ? p[use[i].process].rank : 0;
        m.line.period_ns = result->period_ns;
        memcpy(m.line.region, names[use[i].region], sizeof(m.line.region));
        if (send(out, &m, err) < 0)
            return -1;
    }
    return 0;
}

static void add_process(struct node_facts *f,
                        const struct joule_region_process *p)
{
    f->processes++;
    f->lost += p->lost;
    f->too_deep += p->too_deep;
    f->without_begin += p->without_begin;
}

/* Of a step that shares its node the power is known less often than it has rows. */
static void find_period(hid_t group, struct joule_region_result *result)
{
    hid_t table = H5Dopen2(group, "Energy", H5P_DEFAULT);
    uint64_t ns;

    if (table >= 0 &&
        joule_hdf5_read_number(table, "Joule Period ns", &ns) == 0 &&
        ns > result->period_ns)
        result->period_ns = ns;
    if (table >= 0)
        H5Dclose(table);
}

static int compute(const struct report *r, struct tables *t, hid_t group,
                   struct joule_out *out, struct joule_error *err)
{
    struct joule_region_step step = {
        .energy = (const void *)t->energy,
        .row = (const void *)t->row,
        .process = (const void *)t->process,
        .cpu = (const void *)t->cpu,
        .energies = t->energies,
        .rows = t->rows,
        .processes = t->processes,
        .cpus = t->cpus,
    };
    struct joule_region_result result;
    struct message m = {.kind = FACTS};
    joule_region_text *names = NULL;
    size_t count = 0;
    int rc = 0;

    if (t->rows > 0)
        rc = joule_nodes_names(group, &names, &count, err);
    step.regions = (uint32_t)count;
    if (rc == 0 && joule_region_energy(&step, &result) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    if (rc == 0) {
        find_period(group, &result);
        m.facts = (struct node_facts){.step_uj = result.step_uj,
                                      .step_ns = result.step_ns,
                                      .no_region_uj = result.no_region_uj,
                                      .period_ns = result.period_ns,
                                      .left_out = result.left_out};
        for (size_t i = 0; i < t->processes; i++)
            add_process(&m.facts, &step.process[i]);
        rc = send(out, &m, err);
        if (rc == 0)
            rc = send_lines(r, t, &result, names, out, err);
        joule_region_result_free(&result);
    }
    free(names);
    return rc;
}

static int read_node(void *arg, size_t i, hid_t group, struct joule_out *out,
                     struct joule_error *err)
{
    struct tables t = {0};
    int rc = read_tables(group, &t, err);

    (void)i;
    if (rc == 0)
        rc = sort_processes(&t, err);
    if (rc == 0)
        rc = compute(arg, &t, group, out, err);
    free(t.energy);
    free(t.row);
    free(t.process);
    free(t.cpu);
    return rc;
}

/* ---- all nodes ---- */

static void add_line(struct line *sum, const struct line *line)
{
    struct joule_region_use *to = &sum->use;
    const struct joule_region_use *use = &line->use;

    to->count += use->count;
    to->marks += use->marks;
    to->unended += use->unended;
    to->lost += use->lost;
    to->time_ns += use->time_ns;
    to->window_uj += use->window_uj;
    to->share_uj += use->share_uj;
    to->total_uj += use->total_uj;
    if (to->window_ns < use->window_ns)
        to->window_ns = use->window_ns;
    if (sum->period_ns < line->period_ns)
        sum->period_ns = line->period_ns;
}

/* The entry of a step's region where that is there, or NULL with 0; else -1.  Nodes
 * come in order: those of a step are behind those of the one before. */
static int find_entry(struct report *r, size_t node, const struct line *line,
                      struct entry **ret)
{
    const char *step = joule_nodes_get(r->nodes, node).step;
    size_t count, number;

    *ret = NULL;
    if (r->a->by != BY_STEP)
        return 0;
    if (!r->step || strcmp(r->step, step) != 0) {
        joule_names_free(&r->regions);
        r->step = step;
        r->first = r->count;
    }
    count = r->regions.count;
    if (joule_names_number(&r->regions, line->region, &number) < 0)
        return -1;
    if (number < count)
        *ret = &r->entry[r->first + number];
    return 0;
}

static int take_line(struct report *r, size_t node, const struct line *line,
                     struct joule_error *err)
{
    struct entry *entry;

    if (find_entry(r, node, line, &entry) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (entry) {
        add_line(&entry->line, line);
        return 0;
    }
    if (r->count == LINES_MAX)
        return joule_error_set(err, EBADMSG, "it has too many regions");
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct entry *more = reallocarray(r->entry, room, sizeof(*more));

        if (!more)
            return joule_error_set(err, ENOMEM, "out of memory");
        r->entry = more;
        r->room = room;
    }
    r->entry[r->count++] = (struct entry){node, *line};
    return 0;
}

static int take_message(struct report *r, size_t node, struct message *m,
                        struct joule_error *err)
{
    if (m->kind == FACTS) {
        r->facts[node] = m->facts;
        r->is_read[node] = true;
        return 0;
    }
    m->line.region[sizeof(m->line.region) - 1] = '\0';
    return take_line(r, node, &m->line, err);
}

static int take(void *arg, size_t node, const void *data, size_t size,
                struct joule_error *err)
{
    const char *at = data, *end = at + size;
    struct message m;

    if (size % sizeof(m) != 0)
        return joule_error_set(err, EBADMSG, "what was read makes no sense");
    for (; at < end; at += sizeof(m)) {
        memcpy(&m, at, sizeof(m));
        if (take_message(arg, node, &m, err) < 0)
            return -1;
    }
    return 0;
}

static void failed(void *arg, size_t i, const char *sentence)
{
    struct report *r = arg;

    r->failed++;
    r->is_read[i] = false;
    joule_nodes_complain(r->nodes, i, "joule regions", sentence);
}

/* ---- output ---- */

/* Microjoules as joules with three decimals. */
static void print_joules(uint64_t uj)
{
    uint64_t mj = uj / 1000 + (uj % 1000 >= 500);

    printf(" %9" PRIu64 ".%03" PRIu64, mj / 1000, mj % 1000);
}

static double power_w(const struct joule_region_use *use)
{
    return use->window_ns
               ? (double)use->window_uj * 1e3 / (double)use->window_ns
               : 0;
}

static bool is_fine(const struct line *line)
{
    const struct joule_region_use *use = &line->use;

    return use->count == 0 || use->time_ns / use->count >= 2 * line->period_ns;
}

/* By step; within one by node and process if they are told apart; then what has
 * most first. */
static int compare_entries(const void *pa, const void *pb, void *arg)
{
    const struct report *r = arg;
    const struct entry *a = pa, *b = pb;
    struct joule_node x = joule_nodes_get(r->nodes, a->node);
    struct joule_node y = joule_nodes_get(r->nodes, b->node);

    if (strcmp(x.step, y.step) != 0)
        return joule_step_compare(x.step, y.step);
    if (r->a->by != BY_STEP && a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (r->a->by == BY_RANK && a->line.rank != b->line.rank)
        return a->line.rank < b->line.rank ? -1 : 1;
    if (r->a->by == BY_RANK && a->line.use.process != b->line.use.process)
        return a->line.use.process < b->line.use.process ? -1 : 1;
    if (a->line.use.share_uj != b->line.use.share_uj)
        return a->line.use.share_uj > b->line.use.share_uj ? -1 : 1;
    return strcmp(a->line.region, b->line.region);
}

static bool is_step(const struct report *r, size_t node, const char *step)
{
    return strcmp(joule_nodes_get(r->nodes, node).step, step) == 0;
}

/* All nodes of [step] that were read; their number. */
static size_t add_facts(const struct report *r, const char *step,
                        struct node_facts *sum)
{
    size_t count = 0;

    memset(sum, 0, sizeof(*sum));
    for (size_t i = 0; i < joule_nodes_count(r->nodes); i++) {
        const struct node_facts *f = &r->facts[i];

        if (!r->is_read[i] || !is_step(r, i, step))
            continue;
        count++;
        sum->step_uj += f->step_uj;
        sum->no_region_uj += f->no_region_uj;
        sum->processes += f->processes;
        sum->lost += f->lost;
        sum->too_deep += f->too_deep;
        sum->without_begin += f->without_begin;
        sum->left_out += f->left_out;
        if (sum->step_ns < f->step_ns)
            sum->step_ns = f->step_ns;
        if (sum->period_ns < f->period_ns)
            sum->period_ns = f->period_ns;
    }
    return count;
}

static void print_text_head(const struct report *r)
{
    printf("%-24s", "region");
    if (r->a->by != BY_STEP)
        printf(" %-12s", "node");
    if (r->a->by == BY_RANK)
        printf(" %6s", "rank");
    printf(" %9s %11s %13s %13s %13s %9s\n", "count", "time s", "window J",
           "share J", "total J", "power W");
}

/* [size] columns at least; more if the text is longer. */
static void print_padded(const char *text, int size)
{
    joule_text_put(stdout, text);
    printf("%*s", size > (int)strlen(text) ? size - (int)strlen(text) : 0, "");
}

static void print_text_line(const struct report *r, const struct entry *e)
{
    const struct joule_region_use *use = &e->line.use;

    print_padded(*e->line.region ? e->line.region : "(no name)", 24);
    if (r->a->by != BY_STEP) {
        putchar(' ');
        print_padded(joule_nodes_get(r->nodes, e->node).name, 12);
    }
    if (r->a->by == BY_RANK) {
        if (e->line.rank == JOULE_REGION_NO_RANK)
            printf(" %6s", "-");
        else
            printf(" %6" PRIu64, e->line.rank);
    }
    printf(" %9" PRIu64 " %11.3f", use->count + use->marks,
           (double)use->time_ns / 1e9);
    print_joules(use->window_uj);
    print_joules(use->share_uj);
    print_joules(use->total_uj);
    printf(" %9.1f", power_w(use));
    if (!is_fine(&e->line))
        fputs("  below resolution", stdout);
    if (use->unended)
        printf("  %" PRIu64 " not ended", use->unended);
    if (use->lost)
        printf("  %" PRIu64 " without times", use->lost);
    putchar('\n');
}

static void print_text_sum(const struct report *r, const char *name,
                           uint64_t uj)
{
    int columns = 24 + (r->a->by != BY_STEP ? 13 : 0) +
                  (r->a->by == BY_RANK ? 7 : 0) + 10 + 12 + 14;

    printf("%-*s", columns, name);
    print_joules(uj);
    putchar('\n');
}

static void print_text_step(const struct report *r, const char *step,
                            size_t from, size_t to)
{
    struct node_facts f;
    size_t nodes = add_facts(r, step, &f);

    fputs("Step ", stdout);
    joule_text_put(stdout, step);
    printf(": %zu node%s, %" PRIu64 " process%s with regions, %.3f J in "
           "%.1f s, a row each %.3g s\n",
           nodes, nodes == 1 ? "" : "s", f.processes,
           f.processes == 1 ? "" : "es", (double)f.step_uj / 1e6,
           (double)f.step_ns / 1e9, (double)f.period_ns / 1e9);
    print_text_head(r);
    for (size_t i = from; i < to; i++)
        print_text_line(r, &r->entry[i]);
    print_text_sum(r, "(no region)", f.no_region_uj);
    print_text_sum(r, "step", f.step_uj);
    if (f.lost)
        printf("%" PRIu64
               " records had no room: their regions are counted, and "
               "have no energy\n",
               f.lost);
    if (f.too_deep)
        printf("%" PRIu64 " regions lay too deep within others\n", f.too_deep);
    if (f.without_begin)
        printf("%" PRIu64 " ends had no begin\n", f.without_begin);
    if (f.left_out)
        printf("%" PRIu64 " rows of the profile make no sense\n", f.left_out);
}

static void print_text(const struct report *r)
{
    for (size_t i = 0, end; i < joule_nodes_count(r->nodes); i = end) {
        const char *step = joule_nodes_get(r->nodes, i).step;
        size_t from = 0, to;

        for (end = i + 1; end < joule_nodes_count(r->nodes); end++)
            if (!is_step(r, end, step))
                break;
        while (from < r->count && !is_step(r, r->entry[from].node, step))
            from++;
        for (to = from; to < r->count; to++)
            if (!is_step(r, r->entry[to].node, step))
                break;
        if (i > 0)
            putchar('\n');
        print_text_step(r, step, from, to);
    }
}

/* Of a line, or of what is in no region (entry NULL). */
static void print_csv_line(const struct report *r, size_t node,
                           const struct line *line, const char *region,
                           uint64_t share_uj)
{
    struct joule_node n = joule_nodes_get(r->nodes, node);
    char text[8192]; /* joule_cells_room */
    struct joule_cells c = {.at = text, .is_first = true};

    joule_cells_text(&c, n.step, strlen(n.step));
    joule_cells_text(&c, n.name, r->a->by == BY_STEP ? 0 : strlen(n.name));
    if (line && r->a->by == BY_RANK && line->rank != JOULE_REGION_NO_RANK)
        joule_cells_u64(&c, line->rank);
    else
        joule_cells_missing(&c);
    joule_cells_text(&c, region, strlen(region));
    fwrite(text, 1, (size_t)(c.at - text), stdout);
    if (!line) {
        printf(",,,,,,%.6f,,,,,\n", (double)share_uj / 1e6);
        return;
    }
    printf(",%" PRIu64 ",%" PRIu64 ",%.9f,%.9f,%.6f,%.6f,%.6f,%.3f,%" PRIu64
           ",%" PRIu64 ",%d\n",
           line->use.count, line->use.marks, (double)line->use.time_ns / 1e9,
           (double)line->use.window_ns / 1e9, (double)line->use.window_uj / 1e6,
           (double)line->use.share_uj / 1e6, (double)line->use.total_uj / 1e6,
           power_w(&line->use), line->use.unended, line->use.lost,
           !is_fine(line));
}

/* What is in no region has no name, no count and a share. */
static void print_csv(const struct report *r)
{
    puts("step,node,rank,region,count,marks,time_s,window_s,window_J,share_J,"
         "total_J,power_W,not_ended,without_times,below_resolution");
    for (size_t i = 0; i < r->count; i++)
        print_csv_line(r, r->entry[i].node, &r->entry[i].line,
                       r->entry[i].line.region, 0);
    for (size_t i = 0; i < joule_nodes_count(r->nodes); i++) {
        struct joule_node n = joule_nodes_get(r->nodes, i);
        struct node_facts f = r->facts[i];

        if (r->a->by == BY_STEP && i > 0 && is_step(r, i - 1, n.step))
            continue;
        if (r->a->by == BY_STEP)
            add_facts(r, n.step, &f);
        print_csv_line(r, i, NULL, "", f.no_region_uj);
    }
}

static void print_json_line(struct joule_json *j, const struct report *r,
                            const struct entry *e)
{
    const struct joule_region_use *use = &e->line.use;

    joule_json_object(j, NULL);
    joule_json_string(j, "region", e->line.region);
    if (r->a->by != BY_STEP)
        joule_json_string(j, "node", joule_nodes_get(r->nodes, e->node).name);
    if (r->a->by == BY_RANK)
        joule_json_u64_if(j, "rank", e->line.rank != JOULE_REGION_NO_RANK,
                          e->line.rank);
    joule_json_u64(j, "count", use->count);
    joule_json_u64(j, "marks", use->marks);
    joule_json_u64(j, "time_ns", use->time_ns);
    joule_json_u64(j, "window_ns", use->window_ns);
    joule_json_u64(j, "window_uj", use->window_uj);
    joule_json_u64(j, "share_uj", use->share_uj);
    joule_json_u64(j, "total_uj", use->total_uj);
    joule_json_milli(j, "power_w", (uint64_t)(power_w(use) * 1e3 + 0.5));
    joule_json_u64(j, "not_ended", use->unended);
    joule_json_u64(j, "without_times", use->lost);
    joule_json_bool(j, "below_resolution", !is_fine(&e->line));
    joule_json_close(j);
}

static void print_json_step(struct joule_json *j, const struct report *r,
                            const char *step)
{
    struct node_facts f;

    joule_json_object(j, NULL);
    joule_json_string(j, "step", step);
    joule_json_u64(j, "nodes", add_facts(r, step, &f));
    joule_json_u64(j, "processes", f.processes);
    joule_json_u64(j, "step_uj", f.step_uj);
    joule_json_u64(j, "no_region_uj", f.no_region_uj);
    joule_json_u64(j, "elapsed_ns", f.step_ns);
    joule_json_u64(j, "period_ns", f.period_ns);
    joule_json_u64(j, "records_without_room", f.lost);
    joule_json_u64(j, "too_deep", f.too_deep);
    joule_json_u64(j, "ends_without_begin", f.without_begin);
    joule_json_u64(j, "rows_left_out", f.left_out);
    joule_json_array(j, "regions");
    for (size_t i = 0; i < r->count; i++)
        if (is_step(r, r->entry[i].node, step))
            print_json_line(j, r, &r->entry[i]);
    joule_json_close(j);
    joule_json_close(j);
}

static void print_json(const struct report *r)
{
    struct joule_json j;

    joule_json_begin(&j, stdout);
    joule_json_string(&j, "job", r->a->request.job);
    joule_json_bool(&j, "is_whole", r->failed == 0);
    joule_json_array(&j, "steps");
    for (size_t i = 0; i < joule_nodes_count(r->nodes); i++)
        if (i == 0 || !is_step(r, i - 1, joule_nodes_get(r->nodes, i).step))
            print_json_step(&j, r, joule_nodes_get(r->nodes, i).step);
    joule_json_close(&j);
    joule_json_end(&j);
}

static int print(struct report *r)
{
    bool any = false;

    for (size_t i = 0; i < joule_nodes_count(r->nodes); i++)
        any |= r->is_read[i];
    if (!any) {
        fputs("joule regions: there is no energy profile that can be read\n",
              stderr);
        return 1;
    }
    qsort_r(r->entry, r->count, sizeof(*r->entry), compare_entries, r);
    if (r->a->json)
        print_json(r);
    else if (r->a->csv)
        print_csv(r);
    else
        print_text(r);
    if (r->count == 0)
        fputs("joule regions: no process has recorded a region\n", stderr);
    return r->failed ? 3 : r->count == 0 ? 1 : 0;
}

/* ---- the command ---- */

static int parse(struct arguments *a, int argc, char **argv)
{
    const char *by = "step", *format = NULL, *job[1] = {NULL};
    size_t jobs = 0;
    const struct joule_command_option table[] = {
        {.name = "by", .text = &by},
        {.name = "i", .text = &a->request.input},
        {.name = "p", .text = &a->request.dir},
        {.name = "u", .text = &a->request.user},
        {.name = "csv", .flag = &a->csv},
        {.name = "json", .flag = &a->json},
        {.name = "format", .text = &format},
        {.name = "reduce", .flag = &a->moneq.reduce},
        {.name = "plot", .flag = &a->moneq.plot},
        {.name = "output", .text = &a->moneq.dir},
        {.name = "", .text = job, .count = &jobs, .max = 1},
        {NULL},
    };
    int rc = joule_command_parse(table, usage, argc, argv);

    if (rc >= 0)
        return rc;
    a->request.job = job[0];
    if (jobs == 0 && !a->request.input)
        return joule_command_error(argv[0], "which job?");
    if (a->csv && a->json)
        return joule_command_error(argv[0], "either --csv or --json");
    if (format && strcmp(format, "moneq") != 0)
        return joule_command_error(argv[0], "--format is moneq");
    a->is_moneq = format || a->moneq.reduce || a->moneq.plot;
    if (a->is_moneq && (a->csv || a->json))
        return joule_command_error(argv[0],
                                   "--format=moneq is not --csv or --json");
    if (!a->is_moneq && a->moneq.dir)
        return joule_command_error(argv[0], "--output is of --format=moneq");
    if (!a->moneq.dir)
        a->moneq.dir = getenv("MonEQ_PREFIX");
    if (!a->moneq.dir || !*a->moneq.dir)
        a->moneq.dir = ".";
    if (strcmp(by, "rank") == 0)
        a->by = BY_RANK;
    else if (strcmp(by, "node") == 0)
        a->by = BY_NODE;
    else if (strcmp(by, "step") != 0)
        return joule_command_error(argv[0], "--by is step, node or rank");
    return -1;
}

static int run_moneq(const struct report *r, struct joule_error *err)
{
    struct joule_timeline timeline;
    int rc = joule_timeline_read(r->nodes, &timeline, "joule regions", err);

    if (rc == 0)
        rc = joule_moneq_write(&timeline, r->nodes, &r->a->moneq, err);
    if (rc == 0 && timeline.failed > 0)
        rc = 3;
    joule_timeline_free(&timeline);
    return rc;
}

static int run(struct report *r, struct joule_error *err)
{
    const struct joule_nodes_reading reading = {
        .read = read_node, .take = take, .failed = failed, .arg = r};
    size_t count;

    if (r->a->request.user && joule_sources_become(r->a->request.user, err) < 0)
        return -1;
    r->nodes = joule_nodes_find(&r->a->request, err);
    if (!r->nodes)
        return -1;
    if (r->a->is_moneq)
        return run_moneq(r, err);
    count = joule_nodes_count(r->nodes);
    r->facts = calloc(count + 1, sizeof(*r->facts));
    r->is_read = calloc(count + 1, sizeof(*r->is_read));
    if (!r->facts || !r->is_read)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (joule_nodes_read(r->nodes, &reading, err) < 0)
        return -1;
    return print(r);
}

int joule_regions_main(int argc, char **argv)
{
    struct arguments a = {0};
    struct report r = {.a = &a};
    struct joule_error err = {""};
    int status = parse(&a, argc, argv);

    if (status >= 0)
        return status;
    status = run(&r, &err);
    if (status < 0) {
        fputs("joule regions: ", stderr);
        joule_text_put(stderr, err.text);
        fputc('\n', stderr);
        status = 1;
    }
    joule_nodes_free(r.nodes);
    free(r.facts);
    free(r.is_read);
    free(r.entry);
    joule_names_free(&r.regions);
    return status;
}
