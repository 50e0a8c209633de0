/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/cpufreq.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

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

/* Steps that have ended hold nothing: what they had is being put back. */
static int load_journal(struct joule_freq_view *v, int root_fd)
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

int joule_freq_view_collect(struct joule_freq_view *v, int root_fd,
                            struct joule_error *err)
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
        struct joule_freq_row *row = &v->row[v->row_count++];
        const struct joule_entry *e = joule_journal_find(&v->journal, id);

        if (joule_cpufreq_read(root_fd, id, &row->policy, &row->error) < 0)
            memset(&row->policy, 0, sizeof(row->policy));
        else
            row->policy.cur_khz = joule_cpufreq_current_khz(root_fd, id);
        row->policy.id = id;
        row->is_recorded = e != NULL;
        if (e)
            row->entry = *e;
    }
    return 0;
}

void joule_freq_view_clear(struct joule_freq_view *v)
{
    free(v->row);
    v->row = NULL;
    joule_journal_clear(&v->journal);
}

size_t joule_freq_view_loose(const struct joule_freq_view *v)
{
    size_t loose = 0;

    for (size_t i = 0; i < v->row_count; i++)
        if (v->row[i].is_recorded &&
            !joule_journal_is_held(&v->journal, v->row[i].policy.id))
            loose++;
    return loose;
}

static int show(int root_fd, bool json)
{
    struct joule_freq_view v;
    struct joule_error err;
    int status;

    if (joule_freq_view_collect(&v, root_fd, &err) < 0) {
        fprintf(stderr, "joule cpufreq: %s\n", err.text);
        joule_freq_view_clear(&v);
        return 2;
    }
    (json ? joule_freq_print_json : joule_freq_print_text)(stdout, &v);
    /* Who may not look at the journal is told, but has nothing to mend. */
    status = (v.journal_errnum != 0 && v.journal_errnum != EACCES) ||
             joule_freq_view_loose(&v) > 0;
    joule_freq_view_clear(&v);
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

static int usage_error(const char *text)
{
    fprintf(stderr, "joule cpufreq: %s\nTry 'joule cpufreq --help'.\n", text);
    return 2;
}

enum { OPT_RESTORE = 256, OPT_DISCARD, OPT_ROOT, OPT_JSON };

static const struct option long_options[] = {
    {"restore", no_argument, NULL, OPT_RESTORE},
    {"discard", no_argument, NULL, OPT_DISCARD},
    {"root", required_argument, NULL, OPT_ROOT},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* -1: go on; otherwise the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        switch (c) {
        case OPT_RESTORE:
            a->restore = true;
            break;
        case OPT_DISCARD:
            a->discard = true;
            break;
        case OPT_ROOT:
            a->root = optarg;
            break;
        case OPT_JSON:
            a->json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs("Try 'joule cpufreq --help'.\n", stderr);
            return 2;
        }
    }
    if (optind < argc)
        return usage_error("there are no arguments beside the options");
    if (a->restore + a->discard + a->json > 1)
        return usage_error("--restore, --discard and --json exclude each "
                           "other");
    return -1;
}

int joule_cpufreq_main(int argc, char **argv)
{
    struct arguments a = {.root = "/"};
    int root_fd, status = parse_arguments(argc, argv, &a);

    if (status >= 0)
        return status;
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
