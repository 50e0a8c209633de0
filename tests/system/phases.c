/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phases - a program with regions, and when exactly they were.
 *
 *     phases FILE NAME SECONDS PAUSE COUNT [spin]
 *
 * COUNT regions of SECONDS each, PAUSE seconds apart: NAME0, NAME1 ..., or all of
 * one name if NAME ends in "=", which is cut off.  Appends a line "NAME begin_ns
 * end_ns" (CLOCK_BOOTTIME, the wattmeter's clock) for each to FILE, in which "%n"
 * is replaced by $SLURMD_NODENAME and "%r" by $SLURM_PROCID.  With "spin" it is
 * busy in its regions, else asleep.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/joule.h"

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void pass(int64_t until_ns, int is_spin)
{
    struct timespec t = {.tv_sec = until_ns / 1000000000,
                         .tv_nsec = until_ns % 1000000000};

    if (is_spin)
        while (now_ns() < until_ns)
            continue;
    else
        clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL);
}

static FILE *open_file(const char *pattern)
{
    char name[512] = "", *at = name;

    for (; *pattern && at < name + 400; pattern++) {
        const char *value = NULL;

        if (strncmp(pattern, "%n", 2) == 0)
            value = getenv("SLURMD_NODENAME");
        else if (strncmp(pattern, "%r", 2) == 0)
            value = getenv("SLURM_PROCID");
        if (value) {
            at += snprintf(at, 100, "%s", value);
            pattern++;
        } else {
            *at++ = *pattern;
            *at = '\0';
        }
    }
    return fopen(name, "a");
}

int main(int argc, char **argv)
{
    int64_t length_ns, pause_ns, begin_ns, end_ns, at_ns;
    int count, is_spin = argc > 6, is_one;
    size_t length;
    FILE *file;
    char name[64];

    if (argc < 6 || !(file = open_file(argv[1])))
        return 2;
    length = strlen(argv[2]);
    is_one = length > 0 && argv[2][length - 1] == '=';
    length_ns = (int64_t)(atof(argv[3]) * 1e9);
    pause_ns = (int64_t)(atof(argv[4]) * 1e9);
    count = atoi(argv[5]);
    fprintf(stderr, "%s\n", joule_status());
    at_ns = now_ns() + pause_ns;
    for (int i = 0; i < count; i++) {
        if (is_one)
            snprintf(name, sizeof(name), "%.*s", (int)length - 1, argv[2]);
        else
            snprintf(name, sizeof(name), "%.40s%d", argv[2], i);
        pass(at_ns, 0);
        begin_ns = now_ns();
        joule_region_begin(name);
        pass(begin_ns + length_ns, is_spin);
        joule_region_end(name);
        end_ns = now_ns();
        fprintf(file, "%s %" PRId64 " %" PRId64 "\n", name, begin_ns, end_ns);
        at_ns = end_ns + pause_ns;
    }
    pass(at_ns, 0);
    return fclose(file) != 0;
}
