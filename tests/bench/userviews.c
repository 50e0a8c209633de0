/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/userviews.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/node/user_view.h"

#define USERS  64
#define ROUNDS 15

static char dir[] = "/dev/shm/joule-users.XXXXXX";

static int make_root(void)
{
    static const char *const dirs[] = {"proc", "proc/sys", "proc/sys/kernel",
                                       "proc/sys/kernel/random"};
    int fd, file;

    if (!mkdtemp(dir))
        bench_die(dir, strerror(errno));
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        mkdirat(fd, dirs[i], 0755);
    file = openat(fd, "proc/sys/kernel/random/boot_id",
                  O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || file < 0 || write(file, "1\n", 2) != 2)
        bench_die("boot_id", strerror(errno));
    close(file);
    return fd;
}

static void remove_root(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    if (system(command) != 0)
        bench_die(command, "failed");
}

void bench_userviews(struct bench_result *r)
{
    static const struct joule_userview_options options = {.period_ns =
                                                              JOULE_NS_PER_S};
    static struct joule_row rows[USERS];
    struct joule_error err = {""};
    int root_fd = make_root();
    struct joule_userview *view =
        joule_userview_create(root_fd, "n", &options, &err);
    double us[ROUNDS + 1];

    if (!view)
        bench_die("the users' files", err.text);
    for (uint32_t i = 0; i < USERS; i++)
        rows[i] = (struct joule_row){.owner = i + 1,
                                     .job = i + 1,
                                     .uid = 1000 + i,
                                     .state = JOULE_ROW_RUNNING};
    for (int round = 0; round <= ROUNDS; round++) {
        int64_t now_ns = (round + 1) * JOULE_NS_PER_S;
        double t;

        for (size_t i = 0; i < USERS; i++)
            rows[i].uj += 1000000;
        /* Nothing of it is in a cache after a pause. */
        bench_sleep_ms(200);
        t = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (joule_userview_publish(view, rows, USERS, now_ns, now_ns, &err) < 0)
            bench_die("the users' files", err.text);
        us[round] = (bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - t) / 1000;
    }
    /* The first one makes the files. */
    r->ours = bench_median(us + 1, ROUNDS) / 1e6 * 100;
    remove_root();
}
