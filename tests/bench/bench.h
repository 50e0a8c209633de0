/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench.h - what benchmarks share: two things that race in turns, and rows of
 * CSV with the goal beside the figure.
 *
 * A failure of these functions ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_BENCH_H
#define JOULE_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <time.h>

noreturn void bench_die(const char *what, const char *why);

double bench_now_ns(clockid_t clock);
void bench_sleep_ms(int ms);

/* Sorts the values. */
double bench_median(double *values, size_t count);

/* Two things to time: [calls] of each in turn, [rounds] times. */
struct bench_race {
    void (*ours)(void);
    void (*peer)(void); /* may be NULL */
    int calls, rounds;
};

/* The medians of all rounds, per call, in ns; peer NAN where there is none. */
void bench_run_race(const struct bench_race *race, double *ret_ours,
                    double *ret_peer);

enum bench_goal {
    BENCH_BELOW,   /* ours < limit */
    BENCH_AT_MOST, /* ours <= limit */
    BENCH_RATIO,   /* ours <= limit x peer */
};

/* What a measurement hands to the parent. */
struct bench_result {
    double ours, peer; /* peer NAN: there is none */
};

void bench_print_head(void);

/* A row; whether the goal is met. */
bool bench_print_row(const char *name, const char *unit, struct bench_result r,
                     enum bench_goal goal, double limit);

/* Run [f] in a process of its own that dies with this one. */
struct bench_result bench_measure(void (*f)(struct bench_result *));

/* Write a file below [dir], and make what directories it needs; NULL: those alone. */
void bench_file(const char *dir, const char *path, const char *text);

/* SIGKILL to a child, and wait for it. */
void bench_stop(pid_t pid);

#endif
