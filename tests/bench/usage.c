/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage - what the processes of a cgroup (v1, cpuacct) have used so far.
 *
 *     usage CGROUP
 *
 * Prints, of the group and those below it:
 *
 *     at NS                          CLOCK_MONOTONIC_RAW
 *     group CPU_NS                   of all there ever were in it
 *     process PID CPU_NS RSS NAME    in KiB
 *
 * The CPU time of a process is by the scheduler's clock, to the nanosecond, and
 * has that of its threads that are gone.  Processes that end meanwhile are left
 * out.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

__attribute__((format(printf, 1, 2))) static FILE *open_file(const char *format,
                                                             ...)
{
    char path[4096];
    va_list arg;
    int n;

    va_start(arg, format);
    n = vsnprintf(path, sizeof(path), format, arg);
    va_end(arg);
    return n >= 0 && n < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

/* The number after "KEY:" in an open file; -1 if there is none. */
static long long field(FILE *file, const char *key)
{
    size_t length = strlen(key);
    char line[256];

    rewind(file);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, key, length) && line[length] == ':')
            return strtoll(line + length + 1, NULL, 10);
    return -1;
}

/* Blanks in a name would shift the columns. */
static int read_name(const char *pid, char name[32])
{
    FILE *file = open_file("/proc/%s/comm", pid);

    if (!file)
        return -1;
    if (!fgets(name, 32, file))
        name[0] = 0;
    fclose(file);
    name[strcspn(name, "\n")] = 0;
    for (char *c = name; *c; c++)
        if (isspace((unsigned char)*c))
            *c = '_';
    return *name ? 0 : -1;
}

static void print_process(const char *pid)
{
    FILE *status = open_file("/proc/%s/status", pid);
    long long rss = status ? field(status, "VmRSS") : -1;
    struct timespec t;
    clockid_t clock;
    char name[32];

    if (rss > 0 && read_name(pid, name) == 0 &&
        clock_getcpuclockid((pid_t)strtol(pid, NULL, 10), &clock) == 0 &&
        clock_gettime(clock, &t) == 0)
        printf("process %s %lld %lld %s\n", pid,
               t.tv_sec * 1000000000LL + t.tv_nsec, rss, name);
    if (status)
        fclose(status);
}

static void print_processes(const char *group)
{
    FILE *file = open_file("%s/cgroup.procs", group);
    char pid[32], path[4096];
    const struct dirent *entry;
    DIR *dir = opendir(group);

    /* A group of the step may go at any time. */
    while (file && fgets(pid, sizeof(pid), file)) {
        pid[strcspn(pid, "\n")] = 0;
        print_process(pid);
    }
    if (file)
        fclose(file);
    while (dir && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(path, sizeof(path), "%s/%s", group, entry->d_name) <
                (int)sizeof(path))
            print_processes(path);
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    unsigned long long ns;
    FILE *file;

    if (argc != 2)
        bench_die("usage", "usage CGROUP");
    file = open_file("%s/cpuacct.usage", argv[1]);
    if (!file || fscanf(file, "%llu", &ns) != 1)
        bench_die(argv[1], "is not a group of cpuacct");
    fclose(file);
    printf("at %.0f\ngroup %llu\n", bench_now_ns(CLOCK_MONOTONIC_RAW), ns);
    print_processes(argv[1]);
    return 0;
}
