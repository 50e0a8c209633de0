/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * burn - use CPU time in a known way, and note how much.
 *
 *     burn [--duty PERCENT] [--living N] [--short N] [--escape MS] SECONDS FILE
 *
 * Computes PERCENT (100) of the time for SECONDS, in periods of 47 ms, with:
 *
 *     --living N   N children that live as long, two of which compute
 *     --short N    N children one after the other, each of which computes 10 ms
 *     --escape MS  all of it in a grandchild that nobody waits for, in a
 *                  session of its own; its parent ends after so long
 *
 * Appends a line "start_ns end_ns cpu_ns" to FILE: CLOCK_BOOTTIME, and the CPU
 * time of the process and of the children it has waited for.  With --escape
 * these are two lines.  SIGTERM ends it early, with its line.
 *
 * Exit status: 0; 1 if something failed, 2 for a wrong call.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"

/* No multiple of a tick of 10 or 4 ms: /proc/stat counts the ticks that find a CPU
 * busy, and bursts of 5 ms would always be found, or never. */
#define PERIOD_NS      (47 * JOULE_NS_PER_MS)
#define SHORT_NS       (10 * JOULE_NS_PER_MS)
#define LIVING_COMPUTE 2
#define MOST           10000 /* children, or ms */
#define STAYS          UINT64_MAX

struct options {
    uint64_t duty, living, brief, escape_ms;
    int64_t seconds_ns;
    const char *file;
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static int fail(const char *what)
{
    fprintf(stderr, "burn: %s: %s\n", what, strerror(errno));
    return 1;
}

static int64_t used_ns(int who)
{
    struct rusage r = {0};

    getrusage(who, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * JOULE_NS_PER_S +
           (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * INT64_C(1000);
}

static void spin_until(int64_t until_ns)
{
    while (now_ns() < until_ns && !ended)
        for (volatile int i = 0; i < 1000; i++)
            ;
}

static void sleep_until(int64_t until_ns)
{
    struct timespec t = {.tv_sec = until_ns / JOULE_NS_PER_S,
                         .tv_nsec = until_ns % JOULE_NS_PER_S};

    while (!ended &&
           clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void compute(int64_t until_ns, uint64_t duty)
{
    int64_t at_ns;

    for (at_ns = now_ns(); at_ns < until_ns && !ended; at_ns += PERIOD_NS) {
        int64_t busy_ns = at_ns + PERIOD_NS * (int64_t)duty / 100;
        int64_t next_ns = at_ns + PERIOD_NS;

        spin_until(busy_ns < until_ns ? busy_ns : until_ns);
        sleep_until(next_ns < until_ns ? next_ns : until_ns);
    }
}

/* One write, so that lines of several processes do not mix. */
static int append(const char *file, int64_t start_ns)
{
    char line[96];
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int n = snprintf(line, sizeof(line),
                     "%" PRId64 " %" PRId64 " %" PRId64 "\n",
                     start_ns, now_ns(),
                     used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN));

    if (fd < 0 || write(fd, line, (size_t)n) != n)
        return fail(file);
    close(fd);
    return 0;
}

static void wait_for_all(void)
{
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}

static int start_living(const struct options *o, int64_t until_ns)
{
    for (uint64_t i = 0; i < o->living; i++) {
        pid_t child = fork();

        if (child < 0)
            return fail("fork");
        if (child > 0)
            continue;
        compute(until_ns, i < LIVING_COMPUTE ? 100 : 0);
        _exit(0);
    }
    return 0;
}

static int run_short(const struct options *o)
{
    for (uint64_t i = 0; i < o->brief && !ended; i++) {
        pid_t child = fork();

        if (child < 0)
            return fail("fork");
        if (child == 0) {
            spin_until(now_ns() + SHORT_NS);
            _exit(0);
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return 0;
}

static int work(const struct options *o, int64_t start_ns)
{
    int64_t until_ns = start_ns + o->seconds_ns;
    int status = start_living(o, until_ns);

    if (status == 0)
        status = run_short(o);
    if (status == 0)
        compute(until_ns, o->duty);
    else
        ended = 1;
    wait_for_all();
    return append(o->file, start_ns) || status;
}

/* The pipe ends when the grandchild does, whoever its parent is by then. */
static int escape(const struct options *o, int64_t start_ns)
{
    int ends[2];
    char byte;
    pid_t child;

    if (pipe(ends) < 0)
        return fail("pipe");
    child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0) {
        pid_t grandchild = fork();

        if (grandchild != 0) {
            close(ends[1]);
            sleep_until(start_ns + (int64_t)o->escape_ms * JOULE_NS_PER_MS);
            _exit(grandchild < 0);
        }
        close(ends[0]);
        setsid();
        _exit(work(o, start_ns));
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
        ;
    wait_for_all();
    return append(o->file, start_ns);
}

static int usage(void)
{
    fputs("usage: burn [--duty PERCENT] [--living N] [--short N] [--escape MS] "
          "SECONDS FILE\n", stderr);
    return 2;
}

static int parse(struct options *o, int argc, char **argv)
{
    int at;

    *o = (struct options){.duty = 100, .escape_ms = STAYS};
    for (at = 1; at < argc && argv[at][0] == '-'; at++) {
        const char *name = argv[at];
        uint64_t *value = strcmp(name, "--duty") == 0     ? &o->duty
                          : strcmp(name, "--living") == 0 ? &o->living
                          : strcmp(name, "--short") == 0  ? &o->brief
                          : strcmp(name, "--escape") == 0 ? &o->escape_ms
                                                          : NULL;

        if (!value || ++at == argc ||
            joule_parse_u64(argv[at], 0, value == &o->duty ? 100 : MOST,
                            value) < 0)
            return -1;
    }
    if (at != argc - 2 ||
        joule_parse_duration_ns(argv[at], 0, 86400 * JOULE_NS_PER_S,
                                &o->seconds_ns) < 0)
        return -1;
    o->file = argv[at + 1];
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = end};
    int64_t start_ns = now_ns();
    struct options o;

    if (parse(&o, argc, argv) < 0)
        return usage();
    sigaction(SIGTERM, &act, NULL);
    return o.escape_ms == STAYS ? work(&o, start_ns) : escape(&o, start_ns);
}
