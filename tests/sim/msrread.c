/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * msrread REG HZ COUNT FILE... - read a register of MSR devices HZ times a
 * second, COUNT times; print the last value of each file.  Exit 1 on the
 * first read that fails, with its errno in words.
 *
 * The load under which nodesim-selftest.sh measures what nodesim costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"

#define FILES_MAX 64

int main(int argc, char **argv)
{
    uint64_t reg, hz, count, value[FILES_MAX];
    int fds[FILES_MAX], files = argc - 4;
    struct timespec next;

    if (files < 1 || files > FILES_MAX || joule_parse_hex64(argv[1], &reg) ||
        reg > UINT32_MAX || joule_parse_u64(argv[2], 1, 100000, &hz) ||
        joule_parse_u64(argv[3], 1, UINT32_MAX, &count)) {
        fprintf(stderr, "usage: msrread REG HZ COUNT FILE...\n");
        return 2;
    }
    for (int i = 0; i < files; i++) {
        fds[i] = open(argv[4 + i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            fprintf(stderr, "%s: %s\n", argv[4 + i], strerror(errno));
            return EXIT_FAILURE;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (count--) {
        for (int i = 0; i < files; i++) {
            if (pread(fds[i], &value[i], 8, (off_t)reg) != 8) {
                fprintf(stderr, "%s: %s\n", argv[4 + i], strerror(errno));
                return EXIT_FAILURE;
            }
        }
        next.tv_nsec += (long)(JOULE_NS_PER_S / (int64_t)hz);
        if (next.tv_nsec >= JOULE_NS_PER_S) {
            next.tv_nsec -= JOULE_NS_PER_S;
            next.tv_sec++;
        }
        if (count)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    for (int i = 0; i < files; i++)
        printf("%" PRIu64 "\n", value[i]);
    return EXIT_SUCCESS;
}
