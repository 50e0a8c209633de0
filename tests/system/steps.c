/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * steps - what slurmstepd does with a ledger, without Slurm and in numbers.
 *
 *     steps [--crash PERCENT] NODE COUNT PARALLEL
 *     steps --flood SECONDS NODE
 *     steps --ask COUNT NODE
 *
 * The first runs COUNT steps, PARALLEL at a time, each a process that
 * registers, asks for a sample, computes for 2 ms, ends, asks, reads its row
 * and lets go; PERCENT of them are killed as soon as they are registered.
 * Prints "KEY=VALUE ..." of them:
 *
 *     steps, crashed    that there were
 *     refused           the ledger had no room for
 *     late              were not answered within 50 ms at the begin
 *     final             found a final row of their own
 *     unfinished        were not answered within 50 ms at the end
 *     wrong             were answered, and had no such row
 *     uj                the sum of the final rows
 *     worst_us          the longest that one waited for an answer
 *
 * --flood asks again and again without waiting; --ask waits for each of COUNT
 * answers (a second at most), 20 ms apart, and prints "answered=", "median_us="
 * and "worst_us=".
 *
 * Exit status: 0; 1 with a sentence if that could not be done, 2 for a wrong
 * call.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/base/process.h"
#include "common/node/ledger.h"

#define WAIT_NS   (50 * JOULE_NS_PER_MS)
#define WORK_NS   (2 * JOULE_NS_PER_MS)
#define FIRST_JOB 100000
#define ASKS_MAX  1000

struct results { /* shared with the processes */
    atomic_uint_least64_t crashed, refused, late, unfinished, final, wrong;
    atomic_uint_least64_t uj, worst_ns;
};

static const char *node;
static int root_fd;
static struct results *results;

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "steps: %s: %s\n", what, why);
    return 1;
}

static struct joule_ledger *open_ledger(void)
{
    struct joule_error err;
    struct joule_ledger *l = joule_ledger_open(root_fd, node, &err);

    if (!l)
        fail(node, err.text);
    return l;
}

/* Returns how long it took. */
static int64_t ask(struct joule_ledger *l, int64_t most_ns, bool *ret_answered)
{
    int64_t begin_ns = now_ns();

    *ret_answered = joule_ledger_ask(l, most_ns) == 0;
    return now_ns() - begin_ns;
}

static bool is_answered(struct joule_ledger *l)
{
    bool answered;
    uint64_t ns = (uint64_t)ask(l, WAIT_NS, &answered);
    uint64_t worst = results->worst_ns;

    while (ns > worst &&
           !atomic_compare_exchange_weak(&results->worst_ns, &worst, ns))
        ;
    return answered;
}

/* The end: answered or not, the row is let go. */
static void finish(struct joule_ledger *l, unsigned slot,
                   const struct joule_registration *r)
{
    struct joule_row row;
    int64_t mono_ns;

    joule_ledger_end(l, slot, r->owner, now_ns());
    if (!is_answered(l)) {
        results->unfinished++;
    } else if (joule_ledger_read_row(l, slot, r->owner, &row, &mono_ns) == 0 &&
               row.job == r->job && row.state == JOULE_ROW_ENDED) {
        results->final++;
        results->uj += row.uj;
    } else {
        results->wrong++;
    }
    joule_ledger_release(l, slot, r->owner);
}

/* Every process is a job of its own, with one CPU. */
static int run_step(unsigned number, bool crashes)
{
    struct joule_registration r = {.job = FIRST_JOB + number,
                                   .uid = 5000 + number % 7,
                                   .cpu_count = 1,
                                   .job_cpu_count = 1,
                                   .began_ns = now_ns()};
    uint64_t cpus[JOULE_LEDGER_WORDS_MAX] = {UINT64_C(1) << number % 2};
    struct joule_ledger *l = open_ledger();
    uint64_t start;
    int64_t until_ns;
    unsigned slot;

    if (!l || joule_process_start(root_fd, getpid(), &start) < 0)
        return 1;
    r.owner = joule_process_number(getpid(), start);
    if (joule_ledger_register(l, root_fd, &r, cpus, cpus, &slot, NULL) < 0) {
        results->refused++;
        return 0;
    }
    if (crashes) {
        results->crashed++;
        raise(SIGKILL);
    }
    results->late += !is_answered(l);
    for (until_ns = now_ns() + WORK_NS; now_ns() < until_ns;)
        ;
    finish(l, slot, &r);
    joule_ledger_destroy(l);
    return 0;
}

static int run_steps(uint64_t count, uint64_t parallel, uint64_t crash)
{
    uint64_t started = 0, living = 0;
    int status, failed = 0;

    while (started < count || living > 0) {
        if (started < count && living < parallel) {
            pid_t child = fork();

            if (child < 0)
                return fail("fork", strerror(errno));
            if (child == 0)
                _exit(run_step((unsigned)started, started % 100 < crash));
            started++;
            living++;
            continue;
        }
        if (wait(&status) < 0)
            return fail("wait", strerror(errno));
        living--;
        failed |= WIFEXITED(status) && WEXITSTATUS(status) != 0;
    }
    printf("steps=%" PRIu64 " crashed=%" PRIu64 " refused=%" PRIu64
           " late=%" PRIu64 " final=%" PRIu64 " unfinished=%" PRIu64
           " wrong=%" PRIu64 " uj=%" PRIu64 " worst_us=%" PRIu64 "\n",
           started, results->crashed, results->refused, results->late,
           results->final, results->unfinished, results->wrong, results->uj,
           results->worst_ns / 1000);
    return failed;
}

static int flood(int64_t for_ns)
{
    struct joule_ledger *l = open_ledger();
    int64_t until_ns = now_ns() + for_ns;
    uint64_t asks = 0;

    if (!l)
        return 1;
    /* 100,000 a second: to ask costs the asker as much as the asked. */
    for (; now_ns() < until_ns; asks += 100) {
        for (int i = 0; i < 100; i++)
            joule_ledger_ask(l, 0);
        nanosleep(&(struct timespec){.tv_nsec = JOULE_NS_PER_MS}, NULL);
    }
    printf("asks=%" PRIu64 "\n", asks);
    joule_ledger_destroy(l);
    return 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int ask_often(uint64_t count)
{
    struct joule_ledger *l = open_ledger();
    int64_t took_ns[ASKS_MAX];
    uint64_t answered = 0;
    bool got;

    if (!l)
        return 1;
    for (uint64_t i = 0; i < count; i++) {
        took_ns[i] = ask(l, JOULE_NS_PER_S, &got);
        answered += got;
        nanosleep(&(struct timespec){.tv_nsec = 20 * JOULE_NS_PER_MS}, NULL);
    }
    qsort(took_ns, count, sizeof(took_ns[0]), compare);
    printf("answered=%" PRIu64 " median_us=%" PRId64 " worst_us=%" PRId64 "\n",
           answered, took_ns[count / 2] / 1000, took_ns[count - 1] / 1000);
    joule_ledger_destroy(l);
    return 0;
}

static int usage(void)
{
    fputs("usage: steps [--crash PERCENT] NODE COUNT PARALLEL\n"
          "       steps --flood SECONDS NODE\n"
          "       steps --ask COUNT NODE\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t count, parallel, crash = 0;
    bool has_option = argc > 2 && argv[1][0] == '-';
    const char *option = has_option ? argv[1] : "";
    int at = has_option ? 3 : 1;
    int64_t for_ns;

    if (at >= argc)
        return usage();
    node = argv[at];
    root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    results = mmap(NULL, sizeof(*results), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (root_fd < 0 || results == MAP_FAILED)
        return fail("/", strerror(errno));
    if (argc == at + 1 && strcmp(option, "--flood") == 0 &&
        joule_parse_duration_ns(argv[2], 1, 60 * JOULE_NS_PER_S, &for_ns) == 0)
        return flood(for_ns);
    if (argc == at + 1 && strcmp(option, "--ask") == 0 &&
        joule_parse_u64(argv[2], 1, ASKS_MAX, &count) == 0)
        return ask_often(count);
    if (argc != at + 3 ||
        (has_option && (strcmp(option, "--crash") != 0 ||
                        joule_parse_u64(argv[2], 0, 100, &crash) < 0)) ||
        joule_parse_u64(argv[at + 1], 1, 1000000, &count) < 0 ||
        joule_parse_u64(argv[at + 2], 1, 2 * JOULE_LEDGER_SLOTS_MAX,
                        &parallel) < 0)
        return usage();
    return run_steps(count, parallel, crash);
}
