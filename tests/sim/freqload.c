/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqload - work that takes longer at a lower simulated frequency.
 *
 *   freqload [--ref-khz KHZ] [--root DIR] WORK MEMORY
 *
 * Does WORK seconds of work as measured at the reference frequency (2400000),
 * of which the fraction MEMORY (0 to 1) waits for memory and takes as long at
 * any other:
 *
 *   time at f = WORK x ((1 - MEMORY) x f_ref / f + MEMORY)
 *
 * The CPU is busy all the time.  f is what scaling_cur_freq of the CPU it is
 * on says (below DIR, /sys/devices/system/cpu), asked every 2 ms; time is CPU
 * time, so that a machine with other things to do changes nothing.
 *
 * With a floor of P watts and B watts of a busy CPU at f_ref, the energy is
 * WORK x ((1 - M) / r + M) x (P + B r^3) with r = f / f_ref: of a load that
 * is all CPU it is least at r = (P / 2B)^(1/3), of one that is all memory at
 * the lowest frequency.
 *
 * Prints the CPU seconds that it took and the mean frequency in kHz.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tests/sim/number.h"

#define ASK_NS 2000000

static int64_t cpu_time_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* 0, or -1 with errno. */
static int khz_read(const char *root, uint64_t *ret_khz)
{
    char path[4096], buf[32];
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "%s/cpu%d/cpufreq/scaling_cur_freq", root,
             sched_getcpu());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    len = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (len <= 0)
        return -1;
    buf[len] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    return joule_parse_u64(buf, 1, UINT32_MAX, ret_khz);
}

/* Work until it is done: 0, or -1 with errno. */
static int work(const char *root, double todo_ns, double memory, double ref_khz,
                double *ret_khz)
{
    int64_t before = cpu_time_ns();
    double cycles = 0, time_ns = 0;
    uint64_t khz;

    if (khz_read(root, &khz))
        return -1;
    while (todo_ns > 0) {
        double speed = 1 / ((1 - memory) * ref_khz / (double)khz + memory);
        int64_t now = before;

        while (now - before < ASK_NS &&
               (double)(now - before) * speed < todo_ns)
            now = cpu_time_ns();
        if (khz_read(root, &khz))
            return -1;
        now = cpu_time_ns();
        todo_ns -= (double)(now - before) * speed;
        cycles += (double)(now - before) * (double)khz;
        time_ns += (double)(now - before);
        before = now;
    }
    *ret_khz = time_ns > 0 ? cycles / time_ns : (double)khz;
    return 0;
}

int main(int argc, char **argv)
{
    const char *root = "/sys/devices/system/cpu";
    int64_t work_ns, memory_ppm;
    uint64_t ref_khz = 2400000;
    int64_t begin = cpu_time_ns();
    double khz;

    while (argc > 2 && !strncmp(argv[1], "--", 2)) {
        if (!strcmp(argv[1], "--root"))
            root = argv[2];
        else if (strcmp(argv[1], "--ref-khz") ||
                 joule_parse_u64(argv[2], 1, 100000000, &ref_khz))
            break;
        argc -= 2;
        argv += 2;
    }
    if (argc != 3 || sim_parse_ns(argv[1], &work_ns) ||
        sim_parse_ppm(argv[2], &memory_ppm)) {
        fprintf(stderr, "usage: freqload [--ref-khz KHZ] [--root DIR] "
                        "SECONDS FRACTION\n");
        return 2;
    }
    if (work(root, (double)work_ns, (double)memory_ppm / 1e6, (double)ref_khz,
             &khz)) {
        fprintf(stderr, "freqload: cannot read scaling_cur_freq: %s\n",
                strerror(errno));
        return EXIT_FAILURE;
    }
    printf("%.6f %.0f\n", (double)(cpu_time_ns() - begin) / 1e9, khz);
    return EXIT_SUCCESS;
}
