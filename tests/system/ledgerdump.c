/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledgerdump - everything that is in a node's ledger, for tests.
 *
 *     ledgerdump [--fresh] [--root DIR] NODE
 *
 * Reads DIR/run/slurm-joule/NODE/ledger (DIR: /), with --fresh after a sample
 * of this moment.  Prints lines of NAME KEY=VALUE ..., of one publication:
 *
 *     ledger   the file: size, slots, words of a bitmap of CPUs
 *     totals   struct joule_ledger_totals; rows_uj, the sum of the rows;
 *              identity=yes or no
 *     part     one for each part of the node
 *     row      one for each row
 *     claim    one for each slot in which a step is registered, at this moment
 *
 * Times are CLOCK_BOOTTIME, as those of the wattmeter.  Exit status: 1 with a
 * sentence if it cannot be read, 2 for a wrong call, 3 if the energy of rows
 * and rest is not what was charged.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/node/ledger.h"

#define FRESH_NS (5 * JOULE_NS_PER_S)

static struct joule_row rows[JOULE_LEDGER_SLOTS_MAX];

static const char *const kinds[] = {"numbered", "extern", "other"};
static const char *const states[] = {"none", "running", "ended"};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "ledgerdump: %s: %s\n", what, why);
    return 1;
}

static void print_ledger(struct joule_ledger *ledger, int root_fd,
                         const char *node)
{
    struct stat st = {0};
    char path[256];

    snprintf(path, sizeof(path), "run/slurm-joule/%s/ledger", node);
    fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW);
    printf("ledger bytes=%jd slots=%zu words=%zu\n", (intmax_t)st.st_size,
           joule_ledger_slots(ledger), joule_ledger_words(ledger));
}

/* Whether it adds up, here and not as the writer says. */
static bool print_totals(const struct joule_ledger_totals *t, size_t slots)
{
    uint64_t rows_uj = 0;
    bool holds;

    for (size_t i = 0; i < slots; i++)
        rows_uj += rows[i].uj;
    holds = rows_uj + t->gone_uj == t->jobs_uj &&
            t->jobs_uj + t->unallocated_uj + t->system_uj ==
                t->charged_uj + t->multiple_uj;
    printf("totals mono_ns=%" PRId64 " begun_ns=%" PRId64 " charged_uj=%" PRIu64
           " node_uj=%" PRIu64 " node_since_ns=%" PRId64 " jobs_uj=%" PRIu64
           " unallocated_uj=%" PRIu64 " system_uj=%" PRIu64
           " multiple_uj=%" PRIu64 " gone_uj=%" PRIu64 " rows_uj=%" PRIu64,
           t->mono_ns, t->begun_ns, t->charged_uj, t->node_uj, t->node_since_ns,
           t->jobs_uj, t->unallocated_uj, t->system_uj, t->multiple_uj,
           t->gone_uj, rows_uj);
    printf(" intervals=%" PRIu64 " node_mw=%" PRIu64 " faults=%" PRIu64
           " backwards=%" PRIu64 " unknown=%" PRIu64 " refused=%" PRIu64
           " surplus=%" PRIu64 " foreign=%" PRIu64 " stray_ns=%" PRIu64
           " part_key=%" PRIu64 " parts=%" PRIu64 " identity=%s\n",
           t->intervals, t->node_mw, t->faults, t->backwards, t->unknown,
           t->refused, t->surplus, t->foreign, t->stray_ns, t->part_key,
           t->part_count, holds ? "yes" : "no");
    return holds;
}

static void print_part(size_t i, const struct joule_ledger_part *p)
{
    printf("part number=%zu uj=%" PRIu64 " busy_ns=%" PRIu64
           " busy_known=%" PRIu64 " debt_ns=%" PRIu64 " idle_power_uw=%" PRIu64
           " minutes=%" PRIu64 "\n",
           i, p->uj, p->busy_ns, p->busy_known, p->debt_ns,
           p->idle_power.idle_power_uw, p->idle_power.minutes);
}

static void print_row(size_t slot, const struct joule_row *r)
{
    char cpu_ns[24] = "unknown";

    if (r->cpu_ns != JOULE_CPU_UNKNOWN)
        snprintf(cpu_ns, sizeof(cpu_ns), "%" PRIu64, r->cpu_ns);
    printf("row slot=%zu pid=%d job=%u step=%u uid=%u kind=%s state=%s"
           " cpus=%u job_cpus=%u began_ns=%" PRId64 " ended_ns=%" PRId64
           " uj=%" PRIu64 " job_uj=%" PRIu64 " mw=%u job_mw=%u cpu_ns=%s"
           " backwards=%u unknown=%u\n",
           slot, (int)joule_process_pid(r->owner), r->job, r->step, r->uid,
           r->kind <= JOULE_STEP_OTHER ? kinds[r->kind] : "wrong",
           r->state <= JOULE_ROW_ENDED ? states[r->state] : "wrong",
           r->cpu_count, r->job_cpu_count, r->began_ns, r->ended_ns, r->uj,
           r->job_uj, r->mw, r->job_mw, cpu_ns, r->backwards, r->unknown);
}

static void print_cpus(const char *name, const uint64_t *cpus, size_t words)
{
    const char *comma = "";

    printf(" %s=", name);
    for (size_t cpu = 0; cpu < words * 64; cpu++) {
        if (!(cpus[cpu / 64] >> cpu % 64 & 1))
            continue;
        printf("%s%zu", comma, cpu);
        comma = ",";
    }
}

static void print_claim(size_t slot, const struct joule_registration *r,
                        const uint64_t *job_cpus, const uint64_t *step_cpus,
                        size_t words)
{
    printf("claim slot=%zu pid=%d job=%u step=%u uid=%u kind=%s cpus=%u"
           " job_cpus=%u began_ns=%" PRId64 " ended_ns=%" PRId64,
           slot, (int)joule_process_pid(r->owner), r->job, r->step, r->uid,
           kinds[r->kind], r->cpu_count, r->job_cpu_count, r->began_ns,
           r->ended_ns);
    print_cpus("list", job_cpus, words);
    print_cpus("step_list", step_cpus, words);
    /* The path may hold anything but a NUL. */
    fputs(" path=", stdout);
    for (const char *c = r->path; *c; c++)
        putchar(*c > ' ' && *c < 0x7f ? *c : '?');
    putchar('\n');
}

static void print_claims(struct joule_ledger *ledger)
{
    uint64_t job_cpus[JOULE_LEDGER_WORDS_MAX];
    uint64_t step_cpus[JOULE_LEDGER_WORDS_MAX];
    struct joule_registration r;

    for (size_t i = 0; i < joule_ledger_slots(ledger); i++) {
        if (joule_ledger_registered(ledger, (unsigned)i, &r, job_cpus,
                                    step_cpus) == 0)
            print_claim(i, &r, job_cpus, step_cpus, joule_ledger_words(ledger));
        else if (errno == EBADMSG)
            printf("claim slot=%zu makes=nonsense\n", i);
    }
}

static int dump(struct joule_ledger *ledger, int root_fd, const char *node)
{
    struct joule_ledger_totals totals = {0};
    size_t count = JOULE_LEDGER_SLOTS_MAX;
    bool holds;

    if (joule_ledger_read(ledger, &totals, rows, &count) < 0)
        return fail("reading", strerror(errno));
    print_ledger(ledger, root_fd, node);
    holds = print_totals(&totals, count);
    for (size_t i = 0; i < totals.part_count; i++)
        print_part(i, &totals.part[i]);
    for (size_t i = 0; i < count; i++)
        if (rows[i].owner)
            print_row(i, &rows[i]);
    print_claims(ledger);
    return holds ? 0 : 3;
}

static int usage(void)
{
    fputs("usage: ledgerdump [--fresh] [--root DIR] NODE\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *root = "/";
    struct joule_ledger *ledger;
    struct joule_error err;
    bool fresh = false;
    int root_fd, at, status;

    for (at = 1; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--fresh") == 0)
            fresh = true;
        else if (strcmp(argv[at], "--root") == 0 && at + 1 < argc)
            root = argv[++at];
        else
            return usage();
    }
    if (at != argc - 1)
        return usage();
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return fail(root, strerror(errno));
    ledger = joule_ledger_open(root_fd, argv[at], &err);
    if (!ledger)
        return fail(argv[at], err.text);
    if (fresh && joule_ledger_ask(ledger, FRESH_NS) < 0)
        status = fail("a fresh sample", strerror(errno));
    else
        status = dump(ledger, root_fd, argv[at]);
    joule_ledger_destroy(ledger);
    close(root_fd);
    if (fflush(stdout) != 0 || ferror(stdout))
        return fail("writing", strerror(errno));
    return status;
}
