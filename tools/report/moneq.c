/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/moneq.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "tools/joule/text.h"
#include "lib/segment.h"

#define TICKS_PER_NS 1.6 /* as that machine's register has them */

static int no_memory(struct joule_error *err)
{
    return joule_error_set(err, ENOMEM, "out of memory");
}

FILE *joule_moneq_open(int dir_fd, const char *name, struct joule_error *err)
{
    int fd =
        openat(dir_fd, name,
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (!file) {
        joule_error_set(err, errno, "cannot write %s: %m", name);
        if (fd >= 0)
            close(fd);
    }
    return file;
}

int joule_moneq_close(FILE *file, const char *name, struct joule_error *err)
{
    bool is_bad = ferror(file) != 0;

    if (fclose(file) == 0 && !is_bad)
        return 0;
    return joule_error_set(err, errno ? errno : EIO, "cannot write %s: %m",
                           name);
}

/* ---- fields ---- */

/* The sum of the columns that begin so. */
static double sum_of(const struct joule_timeline_node *node, size_t sample,
                     const char *begin)
{
    double sum = NAN;

    for (size_t i = 0; i < node->columns; i++) {
        double watts = joule_timeline_watts(node, sample, i);

        if (strncmp(node->column[i], begin, strlen(begin)) == 0 &&
            !isnan(watts))
            sum = isnan(sum) ? watts : sum + watts;
    }
    return sum;
}

/* The first of these columns that is known. */
static double first_of(const struct joule_timeline_node *node, size_t sample,
                       const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int column = joule_timeline_column(node, names[i]);
        double watts = column < 0
                           ? NAN
                           : joule_timeline_watts(node, sample, (size_t)column);

        if (!isnan(watts))
            return watts;
    }
    return NAN;
}

/* The node card is the node, where the job has it alone, and else what is the
 * step's.  Of the domains two have their like here: the chips' cores and DRAM. */
double joule_moneq_watts(const struct joule_timeline_node *node, size_t sample,
                         int field)
{
    static const char *const card[] = {"node", "Node", "step", ""};
    static const char *const cores[] = {"Cpus"};
    static const char *const memory[] = {"Mem"};
    double watts;

    switch (field) {
    case 0:
        return first_of(node, sample, card, 4);
    case 1:
        watts = sum_of(node, sample, "package_");
        return isnan(watts) ? first_of(node, sample, cores, 1) : watts;
    case 2:
        watts = sum_of(node, sample, "dram_");
        return isnan(watts) ? first_of(node, sample, memory, 1) : watts;
    default:
        return NAN;
    }
}

/* Between wtime and the row of the machine there is no comma, as in MonEQ's own files
 * and as its reducer expects it. */
void joule_moneq_line(FILE *file, const struct joule_moneq_node *node,
                      size_t sample, size_t board)
{
    uint64_t ns = node->of->ns[sample];
    uint64_t wall_ns = node->of->start_wall_ns + ns;
    time_t seconds = (time_t)(wall_ns / JOULE_NS_PER_S);
    struct tm tm;
    char text[32] = "";

    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(file, "%s,%lld,%" PRIu64 ",%f%d,%d,%d,%zu", text,
            (long long)seconds, (uint64_t)((double)ns * TICKS_PER_NS),
            (double)ns / 1e9, 0, 0, 0, board);
    for (int i = 0; i < JOULE_MONEQ_FIELDS; i++)
        fprintf(file, ",%.4f", joule_moneq_watts(node->of, sample, i));
    fputc('\n', file);
}

/* ---- tags ---- */

/* A name may have anything; a line of a file must not. */
static void put_name(FILE *file, const char *name)
{
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, file);
}

/* Tags are the regions of one process on a node: the first rank's, as MonEQ has it. */
static const struct joule_timeline_region *
find_agent(const struct joule_timeline_node *n)
{
    const struct joule_timeline_region *agent = NULL;

    for (size_t i = 0; i < n->regions; i++) {
        const struct joule_timeline_region *r = &n->region[i];

        if (!agent || r->rank < agent->rank ||
            (r->rank == agent->rank && r->process < agent->process))
            agent = r;
    }
    return agent;
}

static int find_tags(struct joule_moneq_step *s, struct joule_moneq_node *n,
                     struct joule_error *err)
{
    const struct joule_timeline_region *agent = find_agent(n->of);

    n->tag = calloc(n->of->regions + 1, sizeof(*n->tag));
    if (!n->tag)
        return no_memory(err);
    for (size_t i = 0; agent && i < n->of->regions; i++) {
        const struct joule_timeline_region *r = &n->of->region[i];
        struct joule_moneq_tag *tag = &n->tag[n->tags];

        if (r->process != agent->process || r->is_mark)
            continue;
        *tag = (struct joule_moneq_tag){r->begin_ns, r->end_ns, 0};
        if (joule_names_number(&s->tags, n->of->name[r->name], &tag->name) < 0)
            return no_memory(err);
        n->tags++;
    }
    return 0;
}

/* ---- the files of MonEQ itself ---- */

/* A tag begins or ends. */
struct event {
    uint64_t ns;
    const struct joule_moneq_tag *tag;
    bool is_end;
};

/* At one time ends come first, but no tag's before its own begin; and the outer tag,
 * which stands before the inner ones, begins first and ends last. */
static int compare_events(const void *pa, const void *pb)
{
    const struct event *a = pa, *b = pb;
    int x = !a->is_end ? 1 : a->tag->begin_ns < a->ns ? 0 : 2;
    int y = !b->is_end ? 1 : b->tag->begin_ns < b->ns ? 0 : 2;

    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    if (x != y)
        return x - y;
    return (a->tag < b->tag) == !a->is_end ? -1 : 1;
}

static void put_event(FILE *file, const struct joule_moneq_step *s,
                      const struct event *e)
{
    fprintf(file, "---MonEQ_%s_POWER_TAG=", e->is_end ? "END" : "START");
    put_name(file, s->tags.name[e->tag->name]);
    fputc('\n', file);
}

static int write_lines(FILE *file, const struct joule_moneq_step *s, size_t at,
                       struct joule_error *err)
{
    const struct joule_moneq_node *n = &s->node[at];
    struct event *event = calloc(2 * n->tags + 1, sizeof(*event));
    size_t next = 0;

    if (!event)
        return no_memory(err);
    for (size_t i = 0; i < n->tags; i++) {
        event[2 * i] = (struct event){n->tag[i].begin_ns, &n->tag[i], false};
        event[2 * i + 1] = (struct event){n->tag[i].end_ns, &n->tag[i], true};
    }
    qsort(event, 2 * n->tags, sizeof(*event), compare_events);
    for (size_t i = 0; i < n->of->samples; i++) {
        /* A sample is of the time until then. */
        for (; next < 2 * n->tags && event[next].ns < n->of->ns[i]; next++)
            put_event(file, s, &event[next]);
        joule_moneq_line(file, n, i, at);
    }
    for (; next < 2 * n->tags; next++)
        put_event(file, s, &event[next]);
    free(event);
    return 0;
}

static int write_node(const struct joule_moneq_step *s, size_t at, int dir_fd,
                      struct joule_error *err)
{
    char name[64];
    FILE *file;
    int rc;

    snprintf(name, sizeof(name), "MonEQ-R0-C0-M0-N%zu.txt", at);
    file = joule_moneq_open(dir_fd, name, err);
    if (!file)
        return -1;
    rc = write_lines(file, s, at, err);
    if (joule_moneq_close(file, name, err) < 0)
        return -1;
    if (rc < 0)
        return -1;
    printf("%s: ", name);
    joule_text_put(stdout, s->node[at].name);
    printf(", %zu samples, %zu tags\n", s->node[at].of->samples,
           s->node[at].tags);
    return 0;
}

/* In the order in which they began, those that came again as well. */
static int write_tags(const struct joule_moneq_step *s, int dir_fd,
                      struct joule_error *err)
{
    static const char name[] = "MonEQTags.txt";
    const struct joule_moneq_node *n = s->node;
    FILE *file;

    for (size_t i = 0; i < s->nodes && n->tags == 0; i++)
        n = &s->node[i];
    if (n->tags == 0)
        return 0;
    file = joule_moneq_open(dir_fd, name, err);
    if (!file)
        return -1;
    for (size_t i = 0; i < n->tags; i++) {
        put_name(file, s->tags.name[n->tag[i].name]);
        fputc('\n', file);
    }
    return joule_moneq_close(file, name, err);
}

/* ---- the step ---- */

static bool is_step(const struct joule_nodes *nodes, size_t i, const char *step)
{
    return strcmp(joule_nodes_get(nodes, i).step, step) == 0;
}

/* The one step that has regions, or that there is. */
static const char *choose_step(const struct joule_timeline *t,
                               const struct joule_nodes *nodes,
                               struct joule_error *err)
{
    const char *step = NULL;
    bool has_regions = false;

    for (size_t i = 0; i < t->nodes; i++) {
        const char *other = joule_nodes_get(nodes, i).step;
        bool has = t->node[i].regions > 0;

        if (!t->node[i].is_read || (step && strcmp(step, other) == 0 && !has))
            continue;
        if (step && strcmp(step, other) != 0 && has == has_regions) {
            joule_error_set(err, EINVAL, "which step? There are %s and %s",
                            step, other);
            return NULL;
        }
        if (!step || has) {
            step = other;
            has_regions = has;
        }
    }
    if (!step)
        joule_error_set(err, ENOENT,
                        "there is no energy profile that can be read");
    return step;
}

static int find_nodes(struct joule_moneq_step *s,
                      const struct joule_timeline *t,
                      const struct joule_nodes *nodes, struct joule_error *err)
{
    const char *step = choose_step(t, nodes, err);

    if (!step)
        return -1;
    s->node = calloc(t->nodes + 1, sizeof(*s->node));
    if (!s->node)
        return no_memory(err);
    for (size_t i = 0; i < t->nodes; i++) {
        struct joule_moneq_node *n = &s->node[s->nodes];

        if (!t->node[i].is_read || !is_step(nodes, i, step))
            continue;
        *n = (struct joule_moneq_node){.of = &t->node[i],
                                       .name = joule_nodes_get(nodes, i).name};
        s->nodes++;
        if (find_tags(s, n, err) < 0)
            return -1;
    }
    return 0;
}

static int write_all(const struct joule_moneq_step *s, int dir_fd,
                     const struct joule_moneq_options *o,
                     struct joule_error *err)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (write_node(s, i, dir_fd, err) < 0)
            return -1;
    if (write_tags(s, dir_fd, err) < 0)
        return -1;
    return o->reduce || o->plot ? joule_moneq_reduce(s, dir_fd, o->plot, err)
                                : 0;
}

int joule_moneq_write(const struct joule_timeline *timeline,
                      const struct joule_nodes *nodes,
                      const struct joule_moneq_options *options,
                      struct joule_error *err)
{
    struct joule_moneq_step s = {0};
    int rc = find_nodes(&s, timeline, nodes, err), dir_fd = -1;

    if (rc == 0 && mkdir(options->dir, 0777) < 0 && errno != EEXIST)
        rc = joule_error_set(err, errno, "cannot make %s: %m", options->dir);
    if (rc == 0) {
        dir_fd = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = dir_fd < 0 ? joule_error_set(err, errno, "%s: %m", options->dir)
                        : write_all(&s, dir_fd, options, err);
    }
    joule_close(dir_fd);
    for (size_t i = 0; i < s.nodes; i++)
        free(s.node[i].tag);
    free(s.node);
    joule_names_free(&s.tags);
    return rc;
}
