/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_states - what the C-states of 128 CPUs, four each, cost a slurmstepd that
 * reads them once a second (JouleProfileStates=1s).
 *
 * The peer reads the same files, and does nothing with them: what the kernel asks for
 * so many calls.  The files are of /dev/shm; of sysfs they cost 0.4 us each more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sensors/cpu_states.h"
#include "tests/bench/bench.h"

#define CPUS   128
#define STATES 4
#define CPU    "sys/devices/system/cpu"

static char dir[] = "/dev/shm/joule-bench.XXXXXX";
static struct joule_cpu_states *states;
static int fds[CPUS * STATES];

static void begin(void)
{
    struct joule_error err = {""};
    char path[128];
    int root_fd;

    if (!mkdtemp(dir))
        bench_die(dir, strerror(errno));
    bench_file(dir, CPU "/online", "0-127\n");
    bench_file(dir, CPU "/possible", "0-127\n");
    for (int i = 0; i < CPUS * STATES; i++) {
        snprintf(path, sizeof(path), CPU "/cpu%d/cpuidle/state%d/time",
                 i / STATES, i % STATES);
        bench_file(dir, path, "123456789012\n");
    }
    root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < CPUS * STATES; i++) {
        snprintf(path, sizeof(path), CPU "/cpu%d/cpuidle/state%d/time",
                 i / STATES, i % STATES);
        fds[i] = openat(root_fd, path, O_RDONLY | O_CLOEXEC);
    }
    states = joule_cpu_states_open(root_fd, JOULE_CSTATES, 0, CPUS,
                                   &joule_clock_system, &err);
    if (!states)
        bench_die("the states", err.text);
    close(root_fd);
}

static void end(void)
{
    char command[64];

    joule_cpu_states_close(states);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    if (system(command) != 0)
        bench_die(dir, "cannot be removed");
}

static void ours(void)
{
    struct joule_error err = {""};

    if (joule_cpu_states_read(states, &err) < 0)
        bench_die("a reading", err.text);
}

static void peer(void)
{
    char text[32];

    for (int i = 0; i < CPUS * STATES; i++)
        if (pread(fds[i], text, sizeof(text), 0) <= 0)
            bench_die("a file", strerror(errno));
}

int main(void)
{
    const struct bench_race race = {ours, peer, 20, 51};
    struct bench_result reading;
    bool is_met;

    begin();
    bench_print_head();
    bench_run_race(&race, &reading.ours, &reading.peer);
    end();
    is_met = bench_print_row("states 128x4", "ns", reading, BENCH_RATIO, 1.25);
    printf("states 128x4 at 1 Hz,%% of a core,%.4f,%.4f,%.3f,,\n",
           reading.ours / 1e7, reading.peer / 1e7, reading.ours / reading.peer);
    return is_met ? EXIT_SUCCESS : EXIT_FAILURE;
}
