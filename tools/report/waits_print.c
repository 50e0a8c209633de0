/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/joule/json.h"
#include "tools/joule/text.h"
#include "tools/report/waits.h"

#define MOST_PROCESSES 3 /* that a line of text names */

/* Texts of call paths, each made once. */
struct texts {
    const struct joule_definitions *d;
    char **path; /* of each, or NULL */
};

static int make_texts(struct texts *t, const struct joule_definitions *d)
{
    t->d = d;
    t->path = calloc(d->paths.count + 1, sizeof(*t->path));
    if (!t->path)
        return -1;
    for (size_t i = 0; i < d->paths.count; i++) {
        t->path[i] = joule_path_text(d, (uint32_t)i);
        if (!t->path[i])
            return -1;
    }
    return 0;
}

static void free_texts(struct texts *t)
{
    for (size_t i = 0; t->path && i < t->d->paths.count; i++)
        free(t->path[i]);
    free(t->path);
}

static const char *path_text(const struct texts *t, uint32_t path)
{
    return path == JOULE_NO_NUMBER ? "" : t->path[path];
}

/* ---- order and sums ---- */

/* The longest first; the rest so that the order is always the same. */
static int compare(const void *pa, const void *pb, void *arg)
{
    const struct texts *texts = arg;
    const struct joule_total *a = pa, *b = pb;
    int text;

    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    if (a->pattern != b->pattern)
        return a->pattern < b->pattern ? -1 : 1;
    text = strcmp(path_text(texts, a->path), path_text(texts, b->path));
    if (text != 0)
        return text;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->communicator > b->communicator) -
           (a->communicator < b->communicator);
}

/* A group, in order: indices into it. */
static size_t *sort_group(const struct joule_totals *g, struct texts *texts)
{
    size_t *order = calloc(g->count + 1, sizeof(*order));
    struct item {
        struct joule_total total;
        size_t index;
    } *item = calloc(g->count + 1, sizeof(*item));

    if (order && item) {
        for (size_t i = 0; i < g->count; i++)
            item[i] = (struct item){g->at[i], i};
        qsort_r(item, g->count, sizeof(*item), compare, texts);
        for (size_t i = 0; i < g->count; i++)
            order[i] = item[i].index;
    } else {
        free(order);
        order = NULL;
    }
    free(item);
    return order;
}

static double esp_j(const struct joule_waits *w, const struct joule_totals *t,
                    size_t i, enum joule_wait_kind kind)
{
    return w->envelope ? (double)joule_power_saving_pj(
                             w->envelope, t->use + i * t->pieces, kind) /
                             1e12
                       : 0;
}

/* Of the energy of the wait in state 1. */
static double energy_j(const struct joule_waits *w, uint64_t ns)
{
    return (double)ns * (double)w->envelope->states.state[0].active_mw / 1e12;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

struct sums {
    double mpi_s, run_s;
    uint64_t calls, processes; /* that have called MPI */
};

static struct sums sum_processes(const struct joule_waits *w)
{
    struct sums s = {0};

    for (uint32_t i = 0; i < w->d->processes; i++) {
        const struct joule_trace_process_facts *p = &w->facts->process[i];

        s.mpi_s += seconds(p->mpi_ns);
        s.run_s += seconds(p->run_ns);
        s.calls += p->mpi_calls;
        s.processes += p->mpi_calls > 0;
    }
    return s;
}

/* ---- text ---- */

static void print_saving(const struct joule_waits *w,
                         const struct joule_totals *t, size_t i)
{
    for (int kind = 0; kind < JOULE_WAIT_KINDS; kind++) {
        double j = esp_j(w, t, i, (enum joule_wait_kind)kind);

        printf("  %12.6g J %5.1f %%", j, percent(j, energy_j(w, t->at[i].ns)));
    }
}

/* Joules that were used while processes waited. */
static void print_used(const struct joule_waits *w, const struct joule_total *t)
{
    if (w->profile)
        printf("  %11.4g +- %8.2g J", t->uj / 1e6, t->uncertain_uj / 1e6);
}

static void print_pattern(const struct joule_waits *w, const struct sums *sums,
                          const struct joule_totals *t, size_t i,
                          const char *name)
{
    double s = seconds(t->at[i].ns);

    printf("%-19s %12" PRIu64 " %16.6f s %7.2f %% %7.2f %%", name,
           t->at[i].count, s, percent(s, sums->mpi_s), percent(s, sums->run_s));
    if (t->at[i].pattern >= JOULE_WAIT_COMPLETIONS &&
        t->at[i].pattern != JOULE_NO_NUMBER) {
        if (w->envelope || w->profile)
            fputs("  no wait", stdout);
    } else {
        print_used(w, &t->at[i]);
        if (w->envelope)
            print_saving(w, t, i);
    }
    putchar('\n');
}

static int print_patterns(const struct joule_waits *w, const struct sums *sums)
{
    struct joule_totals t, all;
    int rc;

    joule_totals_init(&t, w->all->pieces);
    joule_totals_init(&all, w->all->pieces);
    rc = joule_totals_group(&t, w->all, JOULE_BY_PATTERN, true);
    if (rc == 0)
        rc = joule_totals_group(&all, w->all, 0, false);
    printf(
        "%-19s %12s %18s %9s %9s%s%s\n", "pattern", "count", "time", "MPI time",
        "run time", w->profile ? "                   energy" : "",
        w->envelope ? "                     ESP                  ESP_BW" : "");
    for (uint32_t pattern = 0; rc == 0 && pattern < JOULE_WAIT_PATTERNS;
         pattern++) {
        if (pattern == JOULE_WAIT_COMPLETIONS && all.count > 0)
            print_pattern(w, sums, &all, 0, "all waits");
        for (size_t i = 0; i < t.count; i++)
            if (t.at[i].pattern == pattern)
                print_pattern(
                    w, sums, &t, i,
                    joule_wait_pattern_name((enum joule_wait_pattern)pattern));
    }
    joule_totals_free(&t);
    joule_totals_free(&all);
    return rc;
}

void joule_waits_put_process(const struct joule_waits *w, uint32_t process)
{
    const struct joule_mpi_process *p = &w->d->process[process];

    if (p->rank != JOULE_NO_NUMBER)
        printf("rank %" PRIu32, p->rank);
    else
        joule_text_put(stdout, p->name);
}

/* By group, and within one the process that waits longest first. */
static int compare_parts(const void *pa, const void *pb)
{
    const struct joule_total *a = pa, *b = pb;

    if (a->pattern != b->pattern)
        return a->pattern < b->pattern ? -1 : 1;
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    if (a->communicator != b->communicator)
        return a->communicator < b->communicator ? -1 : 1;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return (a->process > b->process) - (a->process < b->process);
}

/* The processes that wait most in a group; [parts] are in the order of
 * compare_parts. */
static void print_most(const struct joule_waits *w,
                       const struct joule_totals *parts,
                       const struct joule_total *whole)
{
    struct joule_total first = *whole;
    size_t from = 0, to = parts->count;

    first.ns = UINT64_MAX;
    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare_parts(&parts->at[middle], &first) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    for (size_t k = 0; k < MOST_PROCESSES && from + k < parts->count; k++) {
        const struct joule_total *t = &parts->at[from + k];

        if (t->pattern != whole->pattern || t->path != whole->path ||
            t->communicator != whole->communicator)
            break;
        fputs(k == 0 ? "  " : ", ", stdout);
        joule_waits_put_process(w, t->process);
        printf(" %.0f %%", percent((double)t->ns, (double)whole->ns));
    }
}

static void print_line(const struct joule_waits *w, struct texts *texts,
                       const struct joule_totals *g,
                       const struct joule_totals *parts, size_t i)
{
    const struct joule_total *t = &g->at[i];

    printf("%16.6f s %12" PRIu64 "  ", seconds(t->ns), t->count);
    if (t->pattern != JOULE_NO_NUMBER)
        printf("%-15s  ",
               joule_wait_pattern_name((enum joule_wait_pattern)t->pattern));
    joule_text_put(stdout, path_text(texts, t->path));
    if (t->communicator != JOULE_NO_NUMBER)
        joule_text_put(stdout, w->d->comm[t->communicator].name);
    if (t->process != JOULE_NO_NUMBER) {
        joule_waits_put_process(w, t->process);
        if (*w->d->process[t->process].node) {
            fputs(" on ", stdout);
            joule_text_put(stdout, w->d->process[t->process].node);
        }
    } else {
        print_most(w, parts, t);
    }
    print_used(w, t);
    if (w->envelope)
        print_saving(w, g, i);
    putchar('\n');
}

static int print_longest(const struct joule_waits *w, struct texts *texts)
{
    unsigned by = w->by ? w->by : JOULE_BY_PATTERN | JOULE_BY_PATH;
    struct joule_totals g, parts;
    size_t *order = NULL, most;
    int rc;

    joule_totals_init(&g, w->all->pieces);
    joule_totals_init(&parts, w->all->pieces);
    rc = joule_totals_group(&g, w->all, by, false);
    if (rc == 0)
        rc = joule_totals_group(&parts, w->all, by | JOULE_BY_PROCESS, false);
    if (rc == 0 && parts.count > 0)
        qsort(parts.at, parts.count, sizeof(*parts.at), compare_parts);
    if (rc == 0 && !(order = sort_group(&g, texts)))
        rc = -1;
    most = g.count < w->top ? g.count : w->top;
    if (rc == 0 && most > 0) {
        printf("\nThe longest waits (%zu of %zu):\n", most, g.count);
        for (size_t i = 0; i < most; i++)
            print_line(w, texts, &g, &parts, order[i]);
    }
    free(order);
    joule_totals_free(&g);
    joule_totals_free(&parts);
    return rc;
}

/* How many waits, and how long ones, are best in each state. */
static int find_chosen(
    const struct joule_waits *w,
    struct joule_power_use ret[JOULE_WAIT_KINDS][JOULE_POWER_STATES_MAX])
{
    struct joule_totals all;
    int rc;

    memset(ret, 0, sizeof(**ret) * JOULE_WAIT_KINDS * JOULE_POWER_STATES_MAX);
    joule_totals_init(&all, w->all->pieces);
    rc = joule_totals_group(&all, w->all, 0, false);
    for (size_t i = 0; rc == 0 && all.count > 0 && i < all.pieces; i++)
        for (int kind = 0; kind < JOULE_WAIT_KINDS; kind++) {
            struct joule_power_use *to =
                &ret[kind][w->envelope->piece[i].state[kind]];

            to->count += all.use[i].count;
            to->ns += all.use[i].ns;
        }
    joule_totals_free(&all);
    return rc;
}

static int print_chosen(const struct joule_waits *w)
{
    struct joule_power_use chosen[JOULE_WAIT_KINDS][JOULE_POWER_STATES_MAX];

    if (!w->envelope)
        return 0;
    if (find_chosen(w, chosen) < 0)
        return -1;
    printf("\n%-11s %14s %18s %14s %18s\n", "power state", "ESP: waits", "time",
           "ESP_BW: waits", "time");
    for (size_t p = 0; p < w->envelope->states.count; p++)
        printf("%-11zu %14" PRIu64 " %16.6f s %14" PRIu64 " %16.6f s\n", p + 1,
               chosen[0][p].count, (double)chosen[0][p].ns / 1e9,
               chosen[1][p].count, (double)chosen[1][p].ns / 1e9);
    return 0;
}

static const struct {
    const char *id, *sentence;
    size_t offset; /* in struct joule_trace_facts */
} remarks[] = {
#define REMARK(field, sentence)                                                \
    {                                                                          \
#field, sentence, offsetof(struct joule_trace_facts, field)            \
    }
#define COUNT(field, sentence)                                                 \
    {                                                                          \
#field, sentence, offsetof(struct joule_trace_facts, counts.field)     \
    }
    COUNT(clock_violations,
          "times that cannot be: what was waited for came after the wait"),
    COUNT(clock_violation_ns, "ns: the longest of these"),
    COUNT(unmatched_sends, "sends without a receive"),
    COUNT(unmatched_receives, "receives without a send"),
    COUNT(open_requests, "requests that were never completed"),
    COUNT(incomplete_collectives,
          "collective operations without some of their processes"),
    COUNT(inconsistent_collectives,
          "collective operations whose processes do not agree"),
    COUNT(passed_over, "requests that stayed open too long to keep the order"),
    COUNT(without_post, "completions of requests that were never begun"),
    COUNT(cancelled, "requests that were cancelled"),
    REMARK(unknown_references, "references to what is not defined"),
    REMARK(times_back, "times before the one before"),
    REMARK(unbalanced, "regions that were entered or left alone"),
    REMARK(outside_of_calls, "messages outside of MPI calls"),
    REMARK(lost, "events beyond all bounds"),
    REMARK(missing, "locations without events"),
    REMARK(damaged, "locations that end in damage"),
#undef REMARK
#undef COUNT
};

static uint64_t remark_of(const struct joule_waits *w, size_t i)
{
    return *(const uint64_t *)((const char *)w->facts + remarks[i].offset);
}

static void print_remarks(const struct joule_waits *w)
{
    bool any = false;

    for (uint32_t i = 0; i < w->d->regions; i++) {
        if (w->facts->not_analysed[i] == 0)
            continue;
        fputs(any ? ", " : "\nNot analysed: ", stdout);
        joule_text_put(stdout, w->d->region[i].name);
        printf(" (%" PRIu64 ")", w->facts->not_analysed[i]);
        any = true;
    }
    if (any)
        putchar('\n');
    any = false;
    for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++) {
        if (remark_of(w, i) == 0)
            continue;
        printf("%s%" PRIu64 " %s\n", any ? "" : "\n", remark_of(w, i),
               remarks[i].sentence);
        any = true;
    }
}

/* What the joules come from. */
static void print_power(const struct joule_waits *w)
{
    if (!w->profile && *w->no_profile->text) {
        fputs("\nNo joules: ", stdout);
        joule_text_put(stdout, w->no_profile->text);
        putchar('\n');
    }
    for (size_t i = 0; w->profile && i < joule_wait_profile_nodes(w->profile);
         i++) {
        struct joule_wait_profile_node n =
            joule_wait_profile_node(w->profile, i);

        fputs(i == 0 ? "\n" : "", stdout);
        joule_text_put(stdout, n.name);
        if (!n.power.is_known)
            puts(": its power is not known");
        else
            printf(": a process that waits uses %.4g +- %.2g W (%u processes, "
                   "%zu rows; %s)\n",
                   n.power.watts, n.power.uncertain, n.processes, n.rows,
                   n.power.is_fitted
                       ? "by how the power changes with who waits"
                       : "the mean: how the power changes with who waits does "
                         "not show");
    }
}

int joule_waits_print_text(const struct joule_waits *w)
{
    struct texts texts = {0};
    struct sums sums = sum_processes(w);
    int rc = make_texts(&texts, w->d);

    if (rc == 0) {
        joule_text_put(stdout, w->trace);
        printf(": %" PRIu64 " processes, %" PRIu64 " MPI calls in %.6f s of "
               "%.6f s (%.2f %%)\n\n",
               sums.processes, sums.calls, sums.mpi_s, sums.run_s,
               percent(sums.mpi_s, sums.run_s));
        rc = print_patterns(w, &sums);
    }
    if (rc == 0)
        rc = print_longest(w, &texts);
    if (rc == 0)
        rc = print_chosen(w);
    if (rc == 0 && w->slack)
        rc = joule_waits_print_slack(w);
    if (rc == 0) {
        print_power(w);
        print_remarks(w);
    }
    free_texts(&texts);
    return rc;
}

/* ---- lines for programs ---- */

static struct joule_waits_line make_line(const struct joule_waits *w,
                                         const struct texts *texts,
                                         const struct joule_totals *g, size_t i)
{
    const struct joule_total *t = &g->at[i];
    const struct joule_mpi_process *p =
        t->process == JOULE_NO_NUMBER ? NULL : &w->d->process[t->process];
    bool is_wait =
        t->pattern < JOULE_WAIT_COMPLETIONS || t->pattern == JOULE_NO_NUMBER;
    struct joule_waits_line line = {
        .pattern =
            t->pattern == JOULE_NO_NUMBER
                ? NULL
                : joule_wait_pattern_id((enum joule_wait_pattern)t->pattern),
        .path = t->path == JOULE_NO_NUMBER ? NULL : path_text(texts, t->path),
        .process = p ? p->name : NULL,
        .node = p ? p->node : NULL,
        .has_rank = p && p->rank != JOULE_NO_NUMBER,
        .rank = p ? p->rank : 0,
        .communicator = t->communicator == JOULE_NO_NUMBER
                            ? NULL
                            : w->d->comm[t->communicator].name,
        .count = t->count,
        .ns = t->ns,
        .longest_ns = t->longest_ns,
        .has_saving = is_wait && w->envelope,
        .has_use = is_wait && w->profile,
        .used_j = t->uj / 1e6,
        .used_uncertain_j = t->uncertain_uj / 1e6,
    };

    if (line.has_saving) {
        line.state1_j = energy_j(w, t->ns);
        line.esp_j = esp_j(w, g, i, JOULE_WAIT_IDLE);
        line.esp_bw_j = esp_j(w, g, i, JOULE_WAIT_BUSY);
    }
    return line;
}

/* By itself a group of several patterns has waits alone. */
static int each_line(const struct joule_waits *w, struct texts *texts,
                     unsigned by,
                     int (*put)(void *arg, const struct joule_waits_line *line),
                     void *arg)
{
    struct joule_totals g;
    size_t *order = NULL;
    int rc;

    joule_totals_init(&g, w->all->pieces);
    rc = joule_totals_group(&g, w->all, by, by & JOULE_BY_PATTERN);
    if (rc == 0 && !(order = sort_group(&g, texts)))
        rc = -1;
    for (size_t i = 0; rc == 0 && i < g.count; i++) {
        const struct joule_waits_line line = make_line(w, texts, &g, order[i]);

        rc = put(arg, &line);
    }
    free(order);
    joule_totals_free(&g);
    return rc;
}

int joule_waits_lines(const struct joule_waits *w, unsigned by,
                      int (*put)(void *arg,
                                 const struct joule_waits_line *line),
                      void *arg)
{
    struct texts texts = {0};
    int rc = make_texts(&texts, w->d);

    if (rc == 0)
        rc = each_line(w, &texts, by, put, arg);
    free_texts(&texts);
    return rc;
}

/* ---- CSV ---- */

/* A cell, as joule regions writes it: what is not printable is '?', and no
 * spreadsheet takes it for a formula. */
void joule_waits_put_cell(const char *text)
{
    bool quoted = strpbrk(text, ",\"") != NULL;

    if (quoted)
        putchar('"');
    if (*text && strchr("=+-@", *text))
        putchar('\'');
    while (*text) {
        size_t length = joule_text_char(text);

        if (*text == '"')
            putchar('"');
        if (length == 0)
            putchar('?');
        else
            fwrite(text, 1, length, stdout);
        text += length > 0 ? length : 1;
    }
    if (quoted)
        putchar('"');
}

void joule_waits_print_each(const struct joule_definitions *d,
                            const struct joule_wait *wait)
{
    const struct joule_mpi_process *p = &d->process[wait->process];
    char *path = joule_path_text(d, wait->path);

    flockfile(stdout);
    printf("%s,", joule_wait_pattern_id(wait->pattern));
    if (p->rank != JOULE_NO_NUMBER)
        printf("%" PRIu32, p->rank);
    putchar(',');
    joule_waits_put_cell(p->name);
    printf(",%" PRIu64 ",%" PRIu64 ",", wait->begin_ns, wait->wait_ns);
    joule_waits_put_cell(path ? path : "");
    putchar('\n');
    funlockfile(stdout);
    free(path);
}

static void put_optional(const char *text)
{
    if (text)
        joule_waits_put_cell(text);
    putchar(',');
}

static int put_csv_line(void *arg, const struct joule_waits_line *l)
{
    (void)arg;
    put_optional(l->pattern);
    put_optional(l->path);
    put_optional(l->process);
    if (l->has_rank)
        printf("%" PRIu32, l->rank);
    putchar(',');
    put_optional(l->node);
    put_optional(l->communicator);
    printf("%" PRIu64 ",%" PRIu64 ".%09" PRIu64 ",%" PRIu64 ".%09" PRIu64,
           l->count, l->ns / 1000000000, l->ns % 1000000000,
           l->longest_ns / 1000000000, l->longest_ns % 1000000000);
    if (l->has_saving)
        printf(",%.6f,%.6f,%.6f", l->state1_j, l->esp_j, l->esp_bw_j);
    else
        fputs(",,,", stdout);
    if (l->has_use)
        printf(",%.6f,%.6f\n", l->used_j, l->used_uncertain_j);
    else
        puts(",,");
    return 0;
}

int joule_waits_print_csv(const struct joule_waits *w)
{
    puts("pattern,path,process,rank,node,communicator,count,time_s,"
         "longest_s,state1_J,esp_J,esp_bw_J,used_J,used_uncertain_J");
    return joule_waits_lines(w, w->by ? w->by : JOULE_BY_ALL, put_csv_line,
                             NULL);
}

/* ---- JSON ---- */

static void put_joules(struct joule_json *j, const char *key, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%.6f", value);
    for (char *c = text; *c; c++)
        if (*c == ',')
            *c = '.';
    joule_json_number(j, key, text);
}

static int put_json_line(void *arg, const struct joule_waits_line *l)
{
    struct joule_json *j = arg;

    joule_json_object(j, NULL);
    if (l->pattern)
        joule_json_string(j, "pattern", l->pattern);
    if (l->path)
        joule_json_string(j, "path", l->path);
    if (l->process) {
        joule_json_string(j, "process", l->process);
        joule_json_u64_if(j, "rank", l->has_rank, l->rank);
        joule_json_string(j, "node", l->node);
    }
    if (l->communicator)
        joule_json_string(j, "communicator", l->communicator);
    joule_json_u64(j, "count", l->count);
    joule_json_u64(j, "time_ns", l->ns);
    joule_json_u64(j, "longest_ns", l->longest_ns);
    if (l->has_saving) {
        put_joules(j, "state1_j", l->state1_j);
        put_joules(j, "esp_j", l->esp_j);
        put_joules(j, "esp_bw_j", l->esp_bw_j);
    }
    if (l->has_use) {
        put_joules(j, "used_j", l->used_j);
        put_joules(j, "used_uncertain_j", l->used_uncertain_j);
    }
    joule_json_close(j);
    return 0;
}

static int print_json_group(struct joule_json *j, const struct joule_waits *w,
                            struct texts *texts, const char *key, unsigned by)
{
    int rc;

    joule_json_array(j, key);
    rc = each_line(w, texts, by, put_json_line, j);
    joule_json_close(j);
    return rc;
}

static int print_json_chosen(struct joule_json *j, const struct joule_waits *w)
{
    static const char *const names[] = {"esp", "esp_bw"};
    struct joule_power_use chosen[JOULE_WAIT_KINDS][JOULE_POWER_STATES_MAX];

    if (!w->envelope)
        return 0;
    if (find_chosen(w, chosen) < 0)
        return -1;
    joule_json_array(j, "power_states");
    for (size_t p = 0; p < w->envelope->states.count; p++) {
        joule_json_object(j, NULL);
        joule_json_u64(j, "state", p + 1);
        for (int kind = 0; kind < JOULE_WAIT_KINDS; kind++) {
            joule_json_object(j, names[kind]);
            joule_json_u64(j, "count", chosen[kind][p].count);
            joule_json_u64(j, "time_ns", (uint64_t)chosen[kind][p].ns);
            joule_json_close(j);
        }
        joule_json_close(j);
    }
    joule_json_close(j);
    return 0;
}

static void print_json_power(struct joule_json *j, const struct joule_waits *w)
{
    joule_json_array(j, "power");
    for (size_t i = 0; w->profile && i < joule_wait_profile_nodes(w->profile);
         i++) {
        struct joule_wait_profile_node n =
            joule_wait_profile_node(w->profile, i);

        joule_json_object(j, NULL);
        joule_json_string(j, "node", n.name);
        joule_json_u64(j, "processes", n.processes);
        joule_json_u64(j, "rows", n.rows);
        joule_json_bool(j, "is_known", n.power.is_known);
        joule_json_bool(j, "is_fitted", n.power.is_fitted);
        put_joules(j, "waiting_w", n.power.watts);
        put_joules(j, "uncertain_w", n.power.uncertain);
        joule_json_close(j);
    }
    joule_json_close(j);
}

static void print_json_facts(struct joule_json *j, const struct joule_waits *w)
{
    const struct joule_trace_facts *f = w->facts;
    struct sums sums = sum_processes(w);

    joule_json_string(j, "trace", w->trace);
    joule_json_u64(j, "processes", sums.processes);
    joule_json_u64(j, "events", f->events);
    joule_json_u64(j, "mpi_calls", sums.calls);
    joule_json_u64(j, "messages", f->counts.messages);
    joule_json_u64(j, "collectives", f->counts.collectives);
    put_joules(j, "mpi_s", sums.mpi_s);
    put_joules(j, "run_s", sums.run_s);
    joule_json_bool(j, "is_whole", f->missing + f->damaged == 0);
    joule_json_array(j, "not_analysed");
    for (uint32_t i = 0; i < w->d->regions; i++) {
        if (f->not_analysed[i] == 0)
            continue;
        joule_json_object(j, NULL);
        joule_json_string(j, "region", w->d->region[i].name);
        joule_json_u64(j, "calls", f->not_analysed[i]);
        joule_json_close(j);
    }
    joule_json_close(j);
    print_json_power(j, w);
    joule_json_object(j, "remarks");
    for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
        joule_json_u64(j, remarks[i].id, remark_of(w, i));
    joule_json_close(j);
}

int joule_waits_print_json(const struct joule_waits *w)
{
    struct texts texts = {0};
    struct joule_json j;
    int rc = make_texts(&texts, w->d);

    if (rc == 0) {
        joule_json_begin(&j, stdout);
        print_json_facts(&j, w);
        rc = print_json_chosen(&j, w);
        if (rc == 0)
            rc = print_json_group(&j, w, &texts, "patterns", JOULE_BY_PATTERN);
        if (rc == 0)
            rc = print_json_group(&j, w, &texts, "waits",
                                  w->by ? w->by : JOULE_BY_ALL);
        if (rc == 0 && w->slack)
            rc = joule_waits_print_slack_json(&j, w);
        joule_json_end(&j);
    }
    free_texts(&texts);
    return rc;
}
