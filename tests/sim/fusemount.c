/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "tests/sim/fusemount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

struct sim_fusemount {
    struct fuse_session *session;
    struct fuse_buf buf;
    bool mounted;
    uint64_t served;
};

void sim_fusemount_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                              FUSE_CAP_SPLICE_MOVE);
}

/* A simulator that was killed leaves a mount on which everything is
 * ENOTCONN. */
static void dead_mount_remove(const char *path)
{
    struct stat st;

    if (stat(path, &st) && errno == ENOTCONN)
        umount2(path, MNT_DETACH);
}

struct sim_fusemount *
sim_fusemount_create(const char *path, const char *options,
                     const struct fuse_lowlevel_ops *operations, void *userdata,
                     struct joule_error *err)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct sim_fusemount *m = calloc(1, sizeof(*m));
    int fd;

    if (!m || fuse_opt_add_arg(&args, "simulator") ||
        fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, options)) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto fail;
    }
    m->session =
        fuse_session_new(&args, operations, sizeof(*operations), userdata);
    if (!m->session) {
        joule_error_set(err, ENOMEM, "cannot create a FUSE session");
        goto fail;
    }
    dead_mount_remove(path);
    errno = 0;
    if (fuse_session_mount(m->session, path)) {
        joule_error_set(err, errno ? errno : EPERM,
                        "cannot mount FUSE at %s (root and /dev/fuse needed)",
                        path);
        goto fail;
    }
    m->mounted = true;
    fd = fuse_session_fd(m->session);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
        fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        joule_error_set(err, errno, "fcntl of the FUSE device: %m");
        goto fail;
    }
    fuse_opt_free_args(&args);
    return m;
fail:
    fuse_opt_free_args(&args);
    sim_fusemount_destroy(m);
    return NULL;
}

void sim_fusemount_destroy(struct sim_fusemount *m)
{
    int saved = errno;

    if (!m)
        return;
    if (m->mounted)
        fuse_session_unmount(m->session);
    if (m->session)
        fuse_session_destroy(m->session);
    free(m->buf.mem);
    free(m);
    errno = saved;
}

int sim_fusemount_fd(const struct sim_fusemount *m)
{
    return fuse_session_fd(m->session);
}

int sim_fusemount_serve(struct sim_fusemount *m)
{
    int rc = fuse_session_receive_buf(m->session, &m->buf);

    if (rc > 0) {
        fuse_session_process_buf(m->session, &m->buf);
        m->served++;
        rc = 0;
    } else if (rc == 0) {
        rc = -ENODEV;
    }
    if (rc == -EINTR || rc == -EAGAIN)
        rc = 0;
    if (!rc && fuse_session_exited(m->session))
        rc = -ENODEV;
    errno = -rc;
    return rc ? -1 : 0;
}

uint64_t sim_fusemount_served(const struct sim_fusemount *m)
{
    return m->served;
}
