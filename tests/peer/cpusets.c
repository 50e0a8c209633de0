/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpusets.c - the CPUs that processes may use: by us, by libcgroup and by the
 * kernel.
 *
 *   cpusets PID...   a line each: "PID ours=0-1 libcgroup=0-1 bound=0 used=0"
 *                    ours, libcgroup: the cpuset; bound: the process's affinity
 *                    as the kernel has it; used: what a frequency is set on;
 *                    exit status 1 if one of them has none
 *   cpusets --bench  what it takes to find one's own cpuset, a row of CSV
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cgroup/cpuset.h"
#include "tests/bench/bench.h"
#include "tests/peer/cgpeer.h"

#define CALLS  20
#define ROUNDS 31

static int root_fd;

static const char *text_of(const struct joule_cpus *cpus,
                           char buf[JOULE_CPUS_TEXT_MAX])
{
    return joule_cpus_format(cpus, buf, JOULE_CPUS_TEXT_MAX) < 0 ? "?" : buf;
}

static const char *bound(pid_t pid, struct joule_cpus *ret_cpus)
{
    cpu_set_t *set = CPU_ALLOC(JOULE_CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(JOULE_CPUS_MAX);

    if (!set || sched_getaffinity(pid, size, set) < 0)
        return strerror(errno);
    for (unsigned i = 0; i < JOULE_CPUS_MAX; i++)
        if (CPU_ISSET_S(i, size, set))
            joule_cpus_add(ret_cpus, i);
    CPU_FREE(set);
    return NULL;
}

static void print(const char *name, const char *why,
                  const struct joule_cpus *cpus)
{
    char buf[JOULE_CPUS_TEXT_MAX];

    if (why)
        fprintf(stderr, "%s: %s\n", name, why);
    printf(" %s=%s", name, why ? "" : text_of(cpus, buf));
}

static int show(pid_t pid)
{
    struct joule_cpus ours = {{0}}, used = {{0}}, peer = {{0}}, kernel = {{0}};
    struct joule_error err = {""}, err_used = {""};
    const char *no_ours = NULL, *no_used = NULL;
    const char *no_peer = cgpeer_cpuset(pid, &peer);
    const char *no_kernel = bound(pid, &kernel);

    if (joule_cgroup_cpuset(root_fd, pid, &ours, &err) < 0)
        no_ours = err.text;
    if (joule_cgroup_cpus_of(root_fd, pid, &used, &err_used) < 0)
        no_used = err_used.text;
    printf("%lld", (long long)pid);
    print("ours", no_ours, &ours);
    print("libcgroup", no_peer, &peer);
    print("bound", no_kernel, &kernel);
    print("used", no_used, &used);
    putchar('\n');
    return no_ours || no_used || no_peer || no_kernel ? -1 : 0;
}

static void find_ours(void)
{
    struct joule_cpus cpus;
    struct joule_error err;

    if (joule_cgroup_cpuset(root_fd, getpid(), &cpus, &err) < 0)
        bench_die("cpuset", err.text);
}

static void find_peer(void)
{
    struct joule_cpus cpus;
    const char *why = cgpeer_cpuset(getpid(), &cpus);

    if (why)
        bench_die("libcgroup", why);
}

static void find(struct bench_result *r)
{
    static const struct bench_race race = {
        .ours = find_ours, .peer = find_peer, .calls = CALLS, .rounds = ROUNDS};

    bench_run_race(&race, &r->ours, &r->peer);
    r->ours /= 1e3;
    r->peer /= 1e3;
}

int main(int argc, char **argv)
{
    int status = 0;

    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        bench_die("/", strerror(errno));
    if (argc == 2 && strcmp(argv[1], "--bench") == 0) {
        bench_print_head();
        return bench_print_row("cpuset of a task", "us", bench_measure(find),
                               BENCH_RATIO, 1)
                   ? 0
                   : 1;
    }
    for (int i = 1; i < argc; i++) {
        char *end;
        long pid = strtol(argv[i], &end, 10);

        if (*end || pid <= 0) {
            fprintf(stderr, "cpusets: '%s' is not a process\n", argv[i]);
            return 2;
        }
        if (show((pid_t)pid) < 0)
            status = 1;
    }
    if (argc < 2) {
        fputs("usage: cpusets PID...|--bench\n", stderr);
        return 2;
    }
    return status;
}
