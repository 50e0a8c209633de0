/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/simdir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

int sim_dir_open(const char *dir, const char *who, struct joule_error *err)
{
    struct stat root, st;
    int fd;

    if (mkdir(dir, 0755) && errno != EEXIST)
        return joule_error_set(err, errno, "cannot create %s: %m", dir);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || stat("/", &root)) {
        joule_error_set(err, errno, "cannot open %s: %m", dir);
    } else if (st.st_dev == root.st_dev && st.st_ino == root.st_ino) {
        joule_error_set(err, EINVAL,
                        "%s is the root of this machine: its files would be "
                        "replaced",
                        dir);
    } else if (flock(fd, LOCK_EX | LOCK_NB)) {
        joule_error_set(err, errno, "another %s serves %s: %m", who, dir);
    } else {
        unlinkat(fd, "ready", 0);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

int sim_signals_open(struct joule_error *err)
{
    int fd = -1;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    if (!sigprocmask(SIG_BLOCK, &set, NULL))
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? joule_error_set(err, errno, "signalfd: %m") : fd;
}

int sim_ready_tell(int dir_fd, int ready_fd, struct joule_error *err)
{
    int fd = openat(dir_fd, "ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return joule_error_set(err, errno, "cannot create ready: %m");
    close(fd);
    if (ready_fd >= 0) {
        if (write(ready_fd, "ready\n", 6) != 6)
            return joule_error_set(err, errno, "cannot write to fd %d: %m",
                                   ready_fd);
        close(ready_fd);
    }
    return 0;
}
