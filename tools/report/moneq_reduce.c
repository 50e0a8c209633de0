/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Means over the nodes of a step, of all its time, of each tag and of what is in no
 * tag, and plots of them.
 *
 * Nodes have their samples at times of their own: the means are those of the periods of
 * the node that has most of them, counted from the begin of the step on each.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tools/report/moneq.h"

#define DIR_NAME  "moneq_output"
#define FIELDS    JOULE_MONEQ_FIELDS
#define ALL_TIME  ((size_t)-1)
#define NO_TAG    ((size_t)-2)
#define FILE_NAME 128

static const char *const field_names[FIELDS] = {
    "node_card_power", "chip_core",  "dram",          "network", "sram",
    "optics",          "PCIexpress", "link_chip_core"};

/* A table of means: of all time, of no tag, or of one. */
struct table {
    const struct joule_moneq_step *step;
    size_t which;
    const struct joule_timeline_node *periods; /* those of its samples */
    char name[FILE_NAME]; /* of its files, without ".dat" */
};

struct statistics {
    double joules, seconds, least, most;
    uint64_t count;
};

/* How far a node is gone through. */
struct walk {
    struct joule_moneq_tag
        *span; /* in which a tag of the table is open, in order */
    size_t spans, next_span, next_sample;
};

/* ---- which tag ---- */

static int find_spans(const struct table *t, const struct joule_moneq_node *n,
                      struct walk *w, struct joule_error *err)
{
    if (t->which == ALL_TIME)
        return 0;
    w->span = calloc(n->tags + 1, sizeof(*w->span));
    if (!w->span)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < n->tags; i++) {
        struct joule_moneq_tag *last = w->span + w->spans - 1;

        if (t->which != NO_TAG && n->tag[i].name != t->which)
            continue;
        if (w->spans == 0 || last->end_ns < n->tag[i].begin_ns)
            w->span[w->spans++] = n->tag[i];
        else if (last->end_ns < n->tag[i].end_ns)
            last->end_ns = n->tag[i].end_ns;
    }
    return 0;
}

static bool has_time(const struct table *t, struct walk *w, uint64_t ns)
{
    if (t->which == ALL_TIME)
        return true;
    while (w->next_span < w->spans && w->span[w->next_span].end_ns < ns)
        w->next_span++;
    return (w->next_span < w->spans && w->span[w->next_span].begin_ns < ns) ==
           (t->which != NO_TAG);
}

/* ---- means ---- */

/* The node that has most samples. */
static const struct joule_timeline_node *
find_periods(const struct joule_moneq_step *s)
{
    const struct joule_timeline_node *most = s->node[0].of;

    for (size_t i = 1; i < s->nodes; i++)
        if (s->node[i].of->samples > most->samples)
            most = s->node[i].of;
    return most;
}

/* Of the node's fields their means in (from, to]; [cursor] is the first sample that
 * may lie there, and moves on. */
static void mean(const struct joule_timeline_node *n, size_t *cursor,
                 uint64_t from, uint64_t to, double ret[FIELDS])
{
    double sum[FIELDS] = {0}, time[FIELDS] = {0};

    while (*cursor < n->samples && n->ns[*cursor] <= from)
        ++*cursor;
    for (size_t i = *cursor; i < n->samples; i++) {
        uint64_t begin = i > 0 ? n->ns[i - 1] : 0;
        uint64_t end = n->ns[i] < to ? n->ns[i] : to;

        if (begin >= to)
            break;
        begin = begin < from ? from : begin;
        for (int k = 0; k < FIELDS && end > begin; k++) {
            double watts = joule_moneq_watts(n, i, k);

            if (isnan(watts))
                continue;
            sum[k] += watts * (double)(end - begin);
            time[k] += (double)(end - begin);
        }
    }
    for (int k = 0; k < FIELDS; k++)
        ret[k] = time[k] > 0 ? sum[k] / time[k] : NAN;
}

/* The means of all nodes in (from, to]; false: none has that time. */
static bool mean_of_all(const struct table *t, struct walk *walk, uint64_t from,
                        uint64_t to, double ret[FIELDS])
{
    double watts[FIELDS], sum[FIELDS] = {0};
    unsigned count[FIELDS] = {0};
    bool any = false;

    for (size_t i = 0; i < t->step->nodes; i++) {
        if (!has_time(t, &walk[i], to))
            continue;
        mean(t->step->node[i].of, &walk[i].next_sample, from, to, watts);
        for (int k = 0; k < FIELDS; k++)
            if (!isnan(watts[k])) {
                sum[k] += watts[k];
                count[k]++;
            }
    }
    for (int k = 0; k < FIELDS; k++) {
        ret[k] = count[k] ? sum[k] / count[k] : NAN;
        any |= count[k] > 0;
    }
    return any;
}

static void add(struct statistics *s, double watts, double seconds)
{
    if (isnan(watts))
        return;
    if (s->count == 0 || watts < s->least)
        s->least = watts;
    if (s->count == 0 || watts > s->most)
        s->most = watts;
    s->joules += watts * seconds;
    s->seconds += seconds;
    s->count++;
}

static void write_rows(FILE *file, const struct table *t, struct walk *walk,
                       struct statistics ret[FIELDS])
{
    const uint64_t *ns = t->periods->ns;
    double watts[FIELDS];

    memset(ret, 0, FIELDS * sizeof(*ret));
    fputs("#seconds", file);
    for (int k = 0; k < FIELDS; k++)
        fprintf(file, "%c%s", k ? '\t' : ' ', field_names[k]);
    fputc('\n', file);
    for (size_t i = 0; i < t->periods->samples; i++) {
        uint64_t from = i > 0 ? ns[i - 1] : 0;

        if (from == ns[i] || !mean_of_all(t, walk, from, ns[i], watts))
            continue;
        fprintf(file, "%.2f", (double)ns[i] / 1e9);
        for (int k = 0; k < FIELDS; k++) {
            add(&ret[k], watts[k], (double)(ns[i] - from) / 1e9);
            fprintf(file, "\t%f", watts[k]);
        }
        fputc('\n', file);
    }
}

static int write_means(FILE *file, const struct table *t,
                       struct statistics ret[FIELDS], struct joule_error *err)
{
    struct walk *walk = calloc(t->step->nodes + 1, sizeof(*walk));
    int rc = walk ? 0 : joule_error_set(err, ENOMEM, "out of memory");

    for (size_t i = 0; rc == 0 && i < t->step->nodes; i++)
        rc = find_spans(t, &t->step->node[i], &walk[i], err);
    if (rc == 0)
        write_rows(file, t, walk, ret);
    for (size_t i = 0; walk && i < t->step->nodes; i++)
        free(walk[i].span);
    free(walk);
    return rc;
}

/* ---- plots ---- */

/* In gnuplot's single quotes. */
static void put_quoted(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', file);
        fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, file);
    }
}

static void put_title(FILE *file, const struct table *t,
                      const struct statistics *card)
{
    fputs("set title '", file);
    if (t->which == ALL_TIME)
        fputs("Overall", file);
    else if (t->which == NO_TAG)
        fputs("Untagged", file);
    else
        put_quoted(file, t->step->tags.name[t->which]);
    fprintf(file,
            "' noenhanced\nset label 1 'node: mean %.1f W, least %.1f W, most "
            "%.1f W; %.1f s, %.1f J a node' at graph 0.02, graph 0.96\n",
            card->joules / card->seconds, card->least, card->most,
            card->seconds, card->joules);
}

static void put_script(FILE *file, const struct table *t,
                       const struct statistics s[FIELDS])
{
    const char *comma = "plot ";

    fprintf(file,
            "set terminal svg size 900,500\nset output '%s.svg'\n"
            "set xlabel 'Execution Time (Seconds)'\n"
            "set ylabel 'Power (Watts)'\nset yrange [0:*]\n"
            "set offsets 0, 0, graph 0.15, 0\nset key right outside\n",
            t->name);
    put_title(file, t, &s[0]);
    for (int k = 0; k < FIELDS; k++)
        if (s[k].count > 0) {
            fprintf(file,
                    "%s'%s.dat' using 1:%d with steps title '%s' noenhanced",
                    comma, t->name, k + 2, field_names[k]);
            comma = ", ";
        }
    fputc('\n', file);
}

static int run_gnuplot(int dir_fd, const char *output, FILE *script,
                       struct joule_error *err)
{
    int status;
    pid_t pid;

    /* It would follow a link. */
    if (unlinkat(dir_fd, output, 0) < 0 && errno != ENOENT)
        return joule_error_set(err, errno, "cannot replace %s: %m", output);
    pid = fork();
    if (pid == 0) {
        if (fchdir(dir_fd) == 0 && lseek(fileno(script), 0, SEEK_SET) == 0 &&
            dup2(fileno(script), 0) == 0)
            execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return joule_error_set(err, errno, "cannot start gnuplot: %m");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return joule_error_set(err, ENOENT,
                               "--plot needs gnuplot, which is not installed");
    if (status != 0)
        return joule_error_set(err, EIO, "gnuplot has failed");
    return 0;
}

static int plot_table(const struct table *t, const struct statistics s[FIELDS],
                      int dir_fd, struct joule_error *err)
{
    char output[FILE_NAME + sizeof(".svg")];
    FILE *script;
    int rc;

    if (s[0].count == 0)
        return 0;
    snprintf(output, sizeof(output), "%s.svg", t->name);
    script = tmpfile();
    if (!script)
        return joule_error_set(err, errno, "cannot make a file: %m");
    put_script(script, t, s);
    rc = fflush(script) == 0 ? run_gnuplot(dir_fd, output, script, err)
                             : joule_error_set(err, errno, "gnuplot: %m");
    fclose(script);
    return rc;
}

/* ---- files ---- */

/* A tag's name as that of a file that is no other tag's: [number] makes it so. */
static void name_file(char name[FILE_NAME], const char *tag, size_t number)
{
    bool is_plain = *tag && *tag != '.' && strlen(tag) < FILE_NAME - 32 &&
                    strcmp(tag, "original") != 0 &&
                    strcmp(tag, "untagged") != 0;
    size_t length = 0;

    for (; *tag && length < FILE_NAME - 32; tag++) {
        bool is_safe = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                              "WXYZ0123456789._+-",
                              *tag) != NULL;

        name[length++] = is_safe ? *tag : '_';
        is_plain = is_plain && is_safe;
    }
    name[length] = '\0';
    if (is_plain)
        return;
    if (name[0] == '.')
        name[0] = '_';
    snprintf(name + length, FILE_NAME - length, "_tag%zu", number);
}

static int write_table(const struct table *t, int dir_fd, bool plot,
                       struct joule_error *err)
{
    struct statistics s[FIELDS];
    char path[FILE_NAME + 8];
    FILE *file;
    int rc;

    snprintf(path, sizeof(path), "%s.dat", t->name);
    file = joule_moneq_open(dir_fd, path, err);
    if (!file)
        return -1;
    rc = write_means(file, t, s, err);
    if (joule_moneq_close(file, path, err) < 0)
        return -1;
    if (rc == 0)
        printf(DIR_NAME "/%s: %" PRIu64 " rows\n", path, s[0].count);
    return rc == 0 && plot ? plot_table(t, s, dir_fd, err) : rc;
}

/* All samples of all nodes. */
static int write_original(const struct joule_moneq_step *s, int dir_fd,
                          struct joule_error *err)
{
    static const char name[] = "original.csv";
    FILE *file = joule_moneq_open(dir_fd, name, err);

    if (!file)
        return -1;
    fputs("timestr,time_since_epoch,ticks,wtime_row,col,midplane,nodeboard",
          file);
    for (int k = 0; k < FIELDS; k++)
        fprintf(file, ",%s", field_names[k]);
    fputc('\n', file);
    for (size_t i = 0; i < s->nodes; i++)
        for (size_t k = 0; k < s->node[i].of->samples; k++)
            joule_moneq_line(file, &s->node[i], k, i);
    return joule_moneq_close(file, name, err);
}

static int write_tables(const struct joule_moneq_step *s, int dir_fd, bool plot,
                        struct joule_error *err)
{
    struct table t = {.step = s,
                      .which = ALL_TIME,
                      .periods = find_periods(s),
                      .name = "original"};

    if (write_original(s, dir_fd, err) < 0 ||
        write_table(&t, dir_fd, plot, err) < 0)
        return -1;
    if (s->tags.count == 0)
        return 0;
    strcpy(t.name, "untagged");
    t.which = NO_TAG;
    if (write_table(&t, dir_fd, plot, err) < 0)
        return -1;
    for (t.which = 0; t.which < s->tags.count; t.which++) {
        name_file(t.name, s->tags.name[t.which], t.which);
        if (write_table(&t, dir_fd, plot, err) < 0)
            return -1;
    }
    return 0;
}

int joule_moneq_reduce(const struct joule_moneq_step *step, int dir_fd,
                       bool plot, struct joule_error *err)
{
    int fd, rc;

    if (mkdirat(dir_fd, DIR_NAME, 0777) < 0 && errno != EEXIST)
        return joule_error_set(err, errno, "cannot make " DIR_NAME ": %m");
    fd = openat(dir_fd, DIR_NAME,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return joule_error_set(err, errno, DIR_NAME ": %m");
    rc = write_tables(step, fd, plot, err);
    joule_close(fd);
    return rc;
}
