/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reading - what it takes of a CPU to read a register of an MSR device.
 *
 *     reading FILE REGISTER
 *
 * Prints the median of readings that are some ms apart, in us of CPU time:
 * those of a simulated device take longer than those of a processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define COUNT 200

int main(int argc, char **argv)
{
    double ns[COUNT];
    uint64_t value;
    off_t at;
    int fd;

    if (argc != 3)
        bench_die("usage", "reading FILE REGISTER");
    at = (off_t)strtoul(argv[2], NULL, 0);
    fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        bench_die(argv[1], strerror(errno));
    for (int i = 0; i < COUNT; i++) {
        bench_sleep_ms(5);
        ns[i] = -bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
        if (pread(fd, &value, sizeof(value), at) != sizeof(value))
            bench_die(argv[1], strerror(errno));
        ns[i] += bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    printf("%.1f\n", bench_median(ns, COUNT) / 1e3);
    return 0;
}
