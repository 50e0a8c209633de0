/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/cpufreq/control.h"
#include "tools/joule/command.h"
#include "tools/joule/json.h"
#include "tools/joule/text.h"

#define LOCK_WAIT_NS (10 * JOULE_NS_PER_S)

static const char usage[] =
    "usage: joule cpufreq [OPTION]...\n"
    "\n"
    "Show the CPUs' frequency policies, the steps that hold them, and what\n"
    "they were before.\n"
    "\n"
    "  --restore   put all of them back, those of running steps too (root)\n"
    "  --discard   put a journal that cannot be read aside (root); what it\n"
    "              knew is lost\n"
    "  --root DIR  look at the /proc, /sys and /run of DIR\n"
    "  --json      print a JSON document\n"
    "  --help      print this\n"
    "\n"
    "Exit status: 0 well, 1 a policy is not as it should be or the journal\n"
    "cannot be read, 2 usage error.\n";

struct arguments {
    const char *root;
    bool restore, discard, json;
};

/* A policy and what the journal says of it. */
struct row {
    struct joule_cpufreq_policy policy;
    struct joule_error error;        /* why it could not be read; else empty */
    const struct joule_entry *entry; /* NULL: not on record */
};

struct view {
    struct row *row;
    size_t row_count;
    struct joule_journal journal;
    int journal_errnum; /* 0: it was read, or there is none */
    struct joule_error journal_error;
};

/* Steps that have ended hold nothing: what they had is being put back. */
static int load_journal(struct view *v, int root_fd)
{
    struct joule_journal_file store;
    struct joule_cpus loose = {{0}};
    int rc = joule_journal_file_open(&store, root_fd, false, &v->journal_error);

    if (rc == 0) {
        rc = joule_journal_file_load(&store, &v->journal, &v->journal_error);
        joule_control_drop_dead(&store, &v->journal, &loose);
        joule_journal_file_close(&store);
    } else if (errno == ENOENT) {
        return 0;
    }
    return rc < 0 ? errno : 0;
}

static int collect(struct view *v, int root_fd, struct joule_error *err)
{
    struct joule_cpus ids;
    unsigned id;

    memset(v, 0, sizeof(*v));
    if (joule_cpufreq_list(root_fd, &ids, err) < 0)
        return -1;
    v->journal_errnum = load_journal(v, root_fd);
    /* Policies that are gone are shown, too. */
    for (size_t i = 0; i < v->journal.entry_count; i++)
        joule_cpus_add(&ids, v->journal.entry[i].policy);
    v->row = calloc(joule_cpus_count(&ids) + 1, sizeof(*v->row));
    if (!v->row)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (id = joule_cpus_next(&ids, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(&ids, id + 1)) {
        struct row *row = &v->row[v->row_count++];

        if (joule_cpufreq_read(root_fd, id, &row->policy, &row->error) == 0)
            row->policy.cur_khz = joule_cpufreq_current_khz(root_fd, id);
        row->policy.id = id;
        row->entry = joule_journal_find(&v->journal, id);
    }
    return 0;
}

static void clear(struct view *v)
{
    free(v->row);
    v->row = NULL;
    joule_journal_clear(&v->journal);
}

/* Policies that nobody holds and that are not back yet. */
static size_t loose(const struct view *v)
{
    size_t count = 0;

    for (size_t i = 0; i < v->row_count; i++)
        count += v->row[i].entry &&
                 !joule_journal_is_held(&v->journal, v->row[i].policy.id);
    return count;
}

/* ---- text ---- */

#define CELL 64

static void cpus_text(const struct joule_cpus *cpus, char *buf, size_t size)
{
    if (joule_cpus_format(cpus, buf, size) < 0)
        snprintf(buf, size, "%u CPUs", joule_cpus_count(cpus));
    else if (!*buf)
        snprintf(buf, size, "-");
}

/* GHz, as exact as kHz are. */
static void ghz_text(uint32_t khz, char buf[16])
{
    int n = snprintf(buf, 16, "%u.%06u", (unsigned)(khz / 1000000),
                     (unsigned)(khz % 1000000));

    while (n > 3 && buf[n - 1] == '0' && buf[n - 2] != '.')
        buf[--n] = '\0';
    if (khz == 0)
        snprintf(buf, 16, "-");
}

static void state_text(const struct joule_cpufreq_state *s, char *buf,
                       size_t size)
{
    char min[16], max[16], speed[16];

    ghz_text(s->min_khz, min);
    ghz_text(s->max_khz, max);
    ghz_text(s->setspeed_khz, speed);
    snprintf(buf, size, "%s%s%s %s-%s%s%s", s->governor,
             s->setspeed_khz ? " " : "", s->setspeed_khz ? speed : "", min, max,
             *s->epp ? " " : "", s->epp);
}

static void holders_text(const struct view *v, unsigned id, char *buf,
                         size_t size)
{
    const struct joule_journal *j = &v->journal;
    size_t length = 0;

    *buf = '\0';
    for (size_t i = 0; i < j->holder_count; i++) {
        const struct joule_holder *h = &j->holder[i];
        char request[JOULE_REQUEST_TEXT_MAX];
        int n;

        if (h->is_watch || !joule_cpus_has(&h->policies, id))
            continue;
        joule_request_format(&h->request, request);
        n = snprintf(buf + length, size - length, "%s%u.%s (%s)",
                     length ? ", " : "", (unsigned)h->job, h->step, request);
        if (n < 0 || (size_t)n >= size - length)
            return;
        length += (size_t)n;
    }
}

static void print_row(FILE *out, const struct view *v, const struct row *row)
{
    const struct joule_cpufreq_policy *p = &row->policy;
    char cpus[CELL], low[16], high[16], cur[16], now[2 * CELL], held[1024];

    if (*row->error.text) {
        fprintf(out, "policy%u\n  not there: ", p->id);
        joule_text_put(out, row->error.text);
        fputc('\n', out);
    } else {
        cpus_text(&p->cpus, cpus, sizeof(cpus));
        ghz_text(p->hw_min_khz, low);
        ghz_text(p->hw_max_khz, high);
        ghz_text(p->cur_khz, cur);
        state_text(&p->now, now, sizeof(now));
        fprintf(out, "policy%u: CPUs %s, %s, %s to %s GHz\n", p->id, cpus,
                p->driver, low, high);
        fprintf(out, "  governors  %s\n", p->governors);
        fprintf(out, "  set        %s\n  runs at    %s GHz\n", now, cur);
    }
    holders_text(v, p->id, held, sizeof(held));
    if (*held)
        fprintf(out, "  held by    %s\n", held);
    if (row->entry) {
        state_text(&row->entry->original, now, sizeof(now));
        fprintf(out, "  original   %s\n", now);
        if (!*held)
            fputs("  nobody holds it: it is being put back\n", out);
    }
}

static void print_text(FILE *out, const struct view *v)
{
    for (size_t i = 0; i < v->row_count; i++)
        print_row(out, v, &v->row[i]);
    if (v->row_count == 0)
        fputs("This machine has no cpufreq policies: its frequencies cannot "
              "be set.\n",
              out);
    if (v->journal_errnum) {
        fputs("Journal: ", out);
        joule_text_put(out, v->journal_error.text);
        fputc('\n', out);
    }
}

/* ---- JSON ---- */

static void put_state(struct joule_json *j, const char *key,
                      const struct joule_cpufreq_state *s)
{
    joule_json_object(j, key);
    joule_json_string(j, "governor", s->governor);
    joule_json_u64(j, "min_khz", s->min_khz);
    joule_json_u64(j, "max_khz", s->max_khz);
    joule_json_u64_if(j, "setspeed_khz", s->setspeed_khz, s->setspeed_khz);
    joule_json_text(j, "energy_performance_preference", s->epp);
    joule_json_close(j);
}

static void put_holder(struct joule_json *j, const struct joule_holder *h)
{
    char request[JOULE_REQUEST_TEXT_MAX];

    joule_request_format(&h->request, request);
    joule_json_object(j, NULL);
    joule_json_u64(j, "job", h->job);
    joule_json_string(j, "step", h->step);
    joule_json_u64(j, "pid", (uint64_t)h->pid);
    joule_json_string(j, "request", h->is_watch ? NULL : request);
    joule_json_close(j);
}

static void put_row(struct joule_json *j, const struct view *v,
                    const struct row *row)
{
    const struct joule_cpufreq_policy *p = &row->policy;
    char cpus[CELL];

    joule_json_object(j, NULL);
    joule_json_u64(j, "policy", p->id);
    joule_json_text(j, "error", row->error.text);
    if (!*row->error.text) {
        cpus_text(&p->cpus, cpus, sizeof(cpus));
        joule_json_string(j, "cpus", cpus);
        joule_json_string(j, "driver", p->driver);
        joule_json_u64(j, "lowest_khz", p->hw_min_khz);
        joule_json_u64(j, "highest_khz", p->hw_max_khz);
        joule_json_string(j, "governors", p->governors);
        joule_json_u64_if(j, "current_khz", p->cur_khz, p->cur_khz);
        put_state(j, "set", &p->now);
    }
    joule_json_array(j, "held_by");
    for (size_t i = 0; i < v->journal.holder_count; i++)
        if (joule_cpus_has(&v->journal.holder[i].policies, p->id))
            put_holder(j, &v->journal.holder[i]);
    joule_json_close(j);
    if (row->entry)
        put_state(j, "original", &row->entry->original);
    else
        joule_json_null(j, "original");
    joule_json_close(j);
}

static void print_json(FILE *out, const struct view *v)
{
    struct joule_json j;

    joule_json_begin(&j, out);
    joule_json_array(&j, "policies");
    for (size_t i = 0; i < v->row_count; i++)
        put_row(&j, v, &v->row[i]);
    joule_json_close(&j);
    joule_json_u64(&j, "not_put_back", loose(v));
    joule_json_string(&j, "journal_error",
                      v->journal_errnum ? v->journal_error.text : NULL);
    joule_json_end(&j);
}

/* ---- the command ---- */

static int show(int root_fd, bool json)
{
    struct view v;
    struct joule_error err;
    int status;

    if (collect(&v, root_fd, &err) < 0) {
        fprintf(stderr, "joule cpufreq: %s\n", err.text);
        clear(&v);
        return 2;
    }
    (json ? print_json : print_text)(stdout, &v);
    /* Who may not look at the journal is told, but has nothing to mend. */
    status =
        (v.journal_errnum != 0 && v.journal_errnum != EACCES) || loose(&v) > 0;
    clear(&v);
    return status;
}

static int act(int root_fd, const struct arguments *a)
{
    static const struct joule_control_config config = {
        .rules = {.governors = JOULE_GOVERNORS_ALL},
        .lock_wait_ns = LOCK_WAIT_NS,
    };
    struct joule_control_notes notes = {.count = 0};
    struct joule_control control;
    struct joule_error err;
    int rc;

    joule_control_init(&control, root_fd, &config);
    rc = a->discard ? joule_control_discard(&control, &err)
                    : joule_control_restore(&control, &notes, &err);
    joule_control_destroy(&control);
    if (rc < 0)
        fprintf(stderr, "joule cpufreq: %s\n", err.text);
    if (notes.count > 0)
        fprintf(stderr, "joule cpufreq: %s\n", notes.first.text);
    if (rc > 0)
        fprintf(stderr,
                "joule cpufreq: %d polic%s not back; slurmd and the next step "
                "try again\n",
                rc, rc == 1 ? "y is" : "ies are");
    return rc != 0;
}

int joule_cpufreq_main(int argc, char **argv)
{
    struct arguments a = {.root = "/"};
    const struct joule_command_option options[] = {
        {"restore", .flag = &a.restore},
        {"discard", .flag = &a.discard},
        {"root", .text = &a.root},
        {"json", .flag = &a.json},
        {NULL},
    };
    int root_fd, status = joule_command_parse(options, usage, argc, argv);

    if (status >= 0)
        return status;
    if (a.restore + a.discard + a.json > 1)
        return joule_command_error(argv[0], "--restore, --discard and --json "
                                            "exclude each other");
    root_fd = open(a.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        fprintf(stderr, "joule cpufreq: cannot open %s: %s\n", a.root,
                strerror(errno));
        return 2;
    }
    status = a.restore || a.discard ? act(root_fd, &a) : show(root_fd, a.json);
    close(root_fd);
    return status;
}
