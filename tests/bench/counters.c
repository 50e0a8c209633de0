/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters - the energy counters of a simulated node as plain files, which cost
 * next to nothing to read.
 *
 *     counters FROM TO
 *
 * FROM is the directory of the simulator's MSR devices (0/msr, 1/msr, ...) and
 * TO an empty one, to which unit, package and DRAM of Intel's are copied every
 * few ms until it is killed.  TO/ready is made when all are there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define CPUS_MAX  1024
#define PERIOD_MS 5

static const off_t registers[] = {0x606, 0x611, 0x619};

static struct {
    int from, to;
} cpus[CPUS_MAX];

static int open_msr(const char *dir, int cpu, int flags)
{
    char path[4096];

    if (flags & O_CREAT) {
        snprintf(path, sizeof(path), "%s/%d", dir, cpu);
        if (mkdir(path, 0755) < 0)
            bench_die(path, strerror(errno));
    }
    snprintf(path, sizeof(path), "%s/%d/msr", dir, cpu);
    return open(path, flags | O_CLOEXEC, 0600);
}

/* One that the machine has not reads as an error, and is left as it is. */
static void copy(int from, int to)
{
    uint64_t value;

    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
        if (pread(from, &value, sizeof(value), registers[i]) == sizeof(value) &&
            pwrite(to, &value, sizeof(value), registers[i]) < 0)
            bench_die("a copy", strerror(errno));
}

int main(int argc, char **argv)
{
    char ready[4096];
    int count = 0, fd;

    if (argc != 3)
        bench_die("usage", "counters FROM TO");
    for (; count < CPUS_MAX; count++) {
        cpus[count].from = open_msr(argv[1], count, O_RDONLY);
        if (cpus[count].from < 0)
            break;
        cpus[count].to = open_msr(argv[2], count, O_RDWR | O_CREAT);
        if (cpus[count].to < 0)
            bench_die(argv[2], strerror(errno));
        copy(cpus[count].from, cpus[count].to);
    }
    if (count == 0)
        bench_die(argv[1], "has no MSR devices");
    snprintf(ready, sizeof(ready), "%s/ready", argv[2]);
    fd = open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die(ready, strerror(errno));
    close(fd);
    for (;;) {
        bench_sleep_ms(PERIOD_MS);
        for (int i = 0; i < count; i++)
            copy(cpus[i].from, cpus[i].to);
    }
}
