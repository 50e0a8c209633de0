/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ranks - the tasks of a step that is a load for a benchmark.
 *
 *     srun -n2 ranks compute|exchange SECONDS DIR
 *
 * compute: each rank computes.  exchange: two ranks compute and wait for each
 * other in turns, as those of an MPI program do that blocks in its calls: in
 * each round one of them has three times as much to do as the other one.
 *
 * Rank R makes DIR/began.R when it begins, and at its end DIR/ended.R with a
 * line "from_ns to_ns cpu_ns rounds instructions": CLOCK_MONOTONIC_RAW, CPU
 * time in between, rounds of the same work, and instructions in user mode, "-"
 * where the machine does not count them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define RANKS     2
#define PATIENCE  60    /* s, for the other rank */
#define UNIT      50000 /* turns of the loop: some 100 us */
#define LONG_PART 3     /* units of the one that the other one waits for */

/* What the two share: which round each has come to, and which is the last. */
struct mailbox {
    atomic_uint round[RANKS], last;
};

static volatile uint64_t sink;

static void compute(unsigned units)
{
    uint64_t x = 88172645463325252u;

    for (unsigned i = 0; i < units * UNIT; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    sink = x;
}

static double seconds_now(void)
{
    return bench_now_ns(CLOCK_MONOTONIC_RAW) / 1e9;
}

static int open_in(const char *dir, const char *name, long rank, int flags)
{
    char path[4096];
    int fd;

    if (snprintf(path, sizeof(path), rank < 0 ? "%s/%s" : "%s/%s.%ld", dir,
                 name, rank) >= (int)sizeof(path))
        bench_die(dir, "is too long");
    fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        bench_die(path, strerror(errno));
    return fd;
}

static struct mailbox *open_mailbox(const char *dir)
{
    int fd = open_in(dir, "mailbox", -1, O_RDWR);
    struct mailbox *box;

    /* Whoever comes second changes nothing by it. */
    if (ftruncate(fd, sizeof(*box)) < 0)
        bench_die("mailbox", strerror(errno));
    box = mmap(NULL, sizeof(*box), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (box == MAP_FAILED)
        bench_die("mailbox", strerror(errno));
    close(fd);
    return box;
}

/* Tell the other rank that [round] is done, and wait until its is, too. */
static void meet(struct mailbox *box, long rank, unsigned round)
{
    const struct timespec second = {.tv_sec = 1};
    atomic_uint *other = &box->round[1 - rank];
    double give_up = seconds_now() + PATIENCE;
    unsigned seen;

    atomic_store(&box->round[rank], round);
    syscall(SYS_futex, &box->round[rank], FUTEX_WAKE, 1, NULL, NULL, 0);
    while ((seen = atomic_load(other)) < round) {
        syscall(SYS_futex, other, FUTEX_WAIT, seen, &second, NULL, 0);
        if (seconds_now() > give_up)
            bench_die("the other rank", "does not come");
    }
}

static unsigned run_compute(double end)
{
    unsigned round = 0;

    for (; seconds_now() < end; round++)
        compute(1);
    return round;
}

/* Rank 0 says which round is the last, before it tells that it has done it. */
static unsigned run_exchange(struct mailbox *box, long rank, double end)
{
    unsigned round = 0;

    do {
        round++;
        compute((round + (unsigned)rank) % 2 ? LONG_PART : 1);
        if (rank == 0 && seconds_now() >= end)
            atomic_store(&box->last, round);
        meet(box, rank, round);
    } while (atomic_load(&box->last) != round);
    return round;
}

/* -1 where instructions are not counted. */
static int open_counter(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};

    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
                        PERF_FLAG_FD_CLOEXEC);
}

static void report(const char *dir, long rank, double from, unsigned rounds,
                   double cpu_ns, int counter)
{
    int fd = open_in(dir, "ended", rank, O_WRONLY | O_TRUNC);
    uint64_t instructions;
    char counted[32] = "-", line[160];
    int n;

    if (counter >= 0 && read(counter, &instructions, sizeof(instructions)) ==
                            sizeof(instructions))
        snprintf(counted, sizeof(counted), "%llu",
                 (unsigned long long)instructions);
    n = snprintf(line, sizeof(line), "%.0f %.0f %.0f %u %s\n", from * 1e9,
                 seconds_now() * 1e9, cpu_ns, rounds, counted);
    if (write(fd, line, (size_t)n) != n)
        bench_die("ended", strerror(errno));
    close(fd);
}

static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *rest;
    long n = text ? strtol(text, &rest, 10) : -1;

    if (n < 0 || *rest)
        bench_die(name, "is not there: srun starts this program");
    return n;
}

int main(int argc, char **argv)
{
    double begin, seconds, cpu_ns;
    struct mailbox *box = NULL;
    unsigned rounds;
    long rank;
    int counter;
    char *rest;

    if (argc != 4 ||
        (strcmp(argv[1], "compute") && strcmp(argv[1], "exchange")))
        bench_die("usage", "ranks compute|exchange SECONDS DIR");
    seconds = strtod(argv[2], &rest);
    if (rest == argv[2] || *rest || !isfinite(seconds) || seconds <= 0)
        bench_die(argv[2], "is not a time in seconds");
    rank = number_of("SLURM_PROCID");
    if (!strcmp(argv[1], "exchange")) {
        if (number_of("SLURM_NTASKS") != RANKS || rank >= RANKS)
            bench_die("exchange", "takes two tasks");
        box = open_mailbox(argv[3]);
    }
    counter = open_counter();
    close(open_in(argv[3], "began", rank, O_WRONLY));
    begin = seconds_now();
    cpu_ns = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    rounds = box ? run_exchange(box, rank, begin + seconds)
                 : run_compute(begin + seconds);
    cpu_ns = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    report(argv[3], rank, begin, rounds, cpu_ns, counter);
    return 0;
}
