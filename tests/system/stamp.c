/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stamp - run a task and note when exactly it ran.
 *
 *     stamp [--spin SECONDS[:DUTY] | --sleep SECONDS] FILE [-- COMMAND...]
 *
 * Appends one line "start_ns end_ns" (CLOCK_BOOTTIME, the wattmeter's clock)
 * to FILE: from just before COMMAND was started to just after it ended.
 * Several tasks may append to one FILE; a FILE that ends in "%n" is one for
 * each node: that is replaced by $SLURMD_NODENAME.  Without a COMMAND the task is to use
 * one CPU (--spin; with a DUTY of 0 to 1 that part of each tenth of a second)
 * or none (--sleep) for the given time.
 *
 * Exit status: the command's, 128 + signal if one killed it; 2 for a wrong
 * call, 3 if FILE cannot be written, 127 if COMMAND cannot be run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define MAX_SECONDS 86400.0
#define CYCLE_NS    (NS_PER_S / 10)

enum load { NONE, SPIN, SLEEP };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* The number before [ends] or the end of the text. */
static int parse_number(const char *text, const char *ends, double max,
                        double *ret, const char **ret_rest)
{
    char *end;

    errno = 0;
    *ret = strtod(text, &end);
    *ret_rest = end;
    return errno || end == text || (*end && !strchr(ends, *end)) ||
                   !isfinite(*ret) || *ret < 0 || *ret > max
               ? -1
               : 0;
}

/* "SECONDS" or "SECONDS:DUTY". */
static int parse_load(const char *text, int64_t *ret_ns, double *ret_duty)
{
    const char *rest;
    double seconds;

    if (parse_number(text, ":", MAX_SECONDS, &seconds, &rest) < 0)
        return -1;
    *ret_duty = 1;
    if (*rest && parse_number(rest + 1, "", 1, ret_duty, &rest) < 0)
        return -1;
    *ret_ns = (int64_t)(seconds * (double)NS_PER_S);
    return 0;
}

/* Both go by an absolute end, so that an interruption does not prolong them. */
static void spin_until(int64_t end_ns)
{
    while (now_ns() < end_ns)
        for (volatile int i = 0; i < 1000; i++)
            ;
}

static void sleep_until(int64_t end_ns)
{
    struct timespec t = { .tv_sec = end_ns / NS_PER_S,
                          .tv_nsec = end_ns % NS_PER_S };

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* Returns the exit status to pass on. */
static int run_command(char **argv)
{
    pid_t child;
    int status;

    child = fork();
    if (child < 0) {
        perror("stamp: fork");
        return 127;
    }
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        execvp(argv[0], argv);
        fprintf(stderr, "stamp: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* One write, so that lines of several tasks do not mix. */
static int append(int fd, int64_t start_ns, int64_t end_ns)
{
    char line[64];
    int n;

    n = snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", start_ns,
                 end_ns);
    return write(fd, line, (size_t)n) == n ? 0 : -1;
}

/* Replace a final "%n" by the node's name; 0, or -1 if that is too long. */
static int name_file(const char *file, char *buf, size_t size)
{
    const char *node = getenv("SLURMD_NODENAME");
    size_t length = strlen(file);
    int n;

    if (!node || length < 2 || strcmp(file + length - 2, "%n") != 0)
        n = snprintf(buf, size, "%s", file);
    else
        n = snprintf(buf, size, "%.*s%s", (int)length - 2, file, node);
    return n >= 0 && (size_t)n < size ? 0 : -1;
}

/* [duty] of each cycle. */
static void cycle_until(int64_t start_ns, int64_t end_ns, double duty)
{
    int64_t busy_ns = (int64_t)(duty * (double)CYCLE_NS), at_ns;

    for (at_ns = start_ns; at_ns < end_ns; at_ns += CYCLE_NS) {
        int64_t left_ns = end_ns - at_ns;

        spin_until(at_ns + (busy_ns < left_ns ? busy_ns : left_ns));
        if (duty < 1)
            sleep_until(at_ns + (CYCLE_NS < left_ns ? CYCLE_NS : left_ns));
    }
}

static int usage(void)
{
    fputs("usage: stamp [--spin SECONDS[:DUTY] | --sleep SECONDS] FILE "
          "[-- COMMAND...]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    enum load load = NONE;
    int64_t load_ns = 0, start_ns = now_ns(), end_ns;
    double duty = 1;
    char file[4096];
    char **command = NULL;
    int fd, status = 0, at = 1;

    if (argc > 2 && (!strcmp(argv[1], "--spin") || !strcmp(argv[1], "--sleep"))) {
        load = strcmp(argv[1], "--spin") ? SLEEP : SPIN;
        if (parse_load(argv[2], &load_ns, &duty) < 0 ||
            (load == SLEEP && strchr(argv[2], ':'))) {
            fprintf(stderr,
                    "stamp: '%s' is not a time of 0 to 86400 s%s\n", argv[2],
                    load == SPIN ? ", or that with a duty of 0 to 1" : "");
            return 2;
        }
        at = 3;
    }
    if (at >= argc || argv[at][0] == '-')
        return usage();
    if (name_file(argv[at++], file, sizeof(file)) < 0)
        return usage();
    if (at < argc) {
        if (strcmp(argv[at], "--") || at + 1 >= argc)
            return usage();
        command = &argv[at + 1];
    }
    if ((load == NONE) == (command == NULL))
        return usage();

    fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        fprintf(stderr, "stamp: %s: %s\n", file, strerror(errno));
        return 3;
    }
    /* A job step is ended by a signal to the whole group: outlive it for the
     * time it takes to write the line. */
    if (command) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
    }
    if (load == SPIN)
        cycle_until(start_ns, start_ns + load_ns, duty);
    else if (load == SLEEP)
        sleep_until(start_ns + load_ns);
    else
        status = run_command(command);
    end_ns = now_ns();
    if (append(fd, start_ns, end_ns) < 0) {
        fprintf(stderr, "stamp: %s: %s\n", file, strerror(errno));
        return 3;
    }
    return status;
}
