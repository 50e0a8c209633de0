/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(2);
}

double bench_now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void bench_sleep_ms(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000,
                               .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double time_calls(void (*f)(void), int calls)
{
    double start = bench_now_ns(CLOCK_MONOTONIC_RAW);

    for (int i = 0; i < calls; i++)
        f();
    return (bench_now_ns(CLOCK_MONOTONIC_RAW) - start) / calls;
}

void bench_run_race(const struct bench_race *race, double *ret_ours,
                    double *ret_peer)
{
    double *ours = calloc((size_t)race->rounds, sizeof(*ours));
    double *peer = calloc((size_t)race->rounds, sizeof(*peer));

    if (!ours || !peer)
        bench_die("race", strerror(ENOMEM));
    time_calls(race->ours, race->calls);
    if (race->peer)
        time_calls(race->peer, race->calls);
    for (int i = 0; i < race->rounds; i++) {
        /* Who goes first changes from round to round. */
        if (i % 2 && race->peer)
            peer[i] = time_calls(race->peer, race->calls);
        ours[i] = time_calls(race->ours, race->calls);
        if (i % 2 == 0 && race->peer)
            peer[i] = time_calls(race->peer, race->calls);
    }
    *ret_ours = bench_median(ours, (size_t)race->rounds);
    *ret_peer =
        race->peer ? bench_median(peer, (size_t)race->rounds) : (double)NAN;
    free(ours);
    free(peer);
}

void bench_print_head(void)
{
    printf("name,unit,ours,peer,ratio,goal,verdict\n");
    fflush(stdout);
}

bool bench_print_row(const char *name, const char *unit, struct bench_result r,
                     enum bench_goal goal, double limit)
{
    bool pass = goal == BENCH_BELOW     ? r.ours < limit
                : goal == BENCH_AT_MOST ? r.ours <= limit
                                        : r.ours <= limit * r.peer;

    printf("%s,%s,%.5g,", name, unit, r.ours);
    if (isnan(r.peer))
        printf(",,");
    else
        printf("%.5g,%.3f,", r.peer, r.ours / r.peer);
    printf("%s%g%s,%s\n", goal == BENCH_BELOW ? "<" : "<=", limit,
           goal == BENCH_RATIO ? "x" : "", pass ? "pass" : "miss");
    fflush(stdout);
    return pass;
}

struct bench_result bench_measure(void (*f)(struct bench_result *))
{
    struct bench_result r = {.ours = (double)NAN, .peer = (double)NAN};
    int fds[2], status;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        bench_die("pipe", strerror(errno));
    pid = fork();
    if (pid < 0)
        bench_die("fork", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        f(&r);
        _exit(write(fds[1], &r, sizeof(r)) == sizeof(r) ? 0 : 2);
    }
    close(fds[1]);
    if (read(fds[0], &r, sizeof(r)) != sizeof(r) ||
        waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("a measurement", "failed");
    close(fds[0]);
    return r;
}

void bench_file(const char *dir, const char *path, const char *text)
{
    char whole[256];
    int fd;

    snprintf(whole, sizeof(whole), "%s/%s", dir, path);
    for (char *slash = whole + strlen(dir) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    if (!text)
        return;
    fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        bench_die(whole, strerror(errno));
    close(fd);
}

void bench_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
