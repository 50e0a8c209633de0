/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/cpuset.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/cgroup/hierarchy.h"

#define STATUS_MAX (1 << 20)

static int read_cpus(int root_fd, const char *dir, const char *name,
                     struct joule_cpus *ret_cpus)
{
    char path[2 * PATH_MAX + 64], text[JOULE_CPUS_TEXT_MAX];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0)
        return -1;
    if (joule_cpus_parse(ret_cpus, text) < 0 || joule_cpus_is_empty(ret_cpus)) {
        errno = EBADMSG;
        return -1;
    }
    return 0;
}

static int read_v1(int root_fd, const char *dir, struct joule_cpus *ret_cpus)
{
    if (read_cpus(root_fd, dir, "cpuset.effective_cpus", ret_cpus) == 0)
        return 0;
    return read_cpus(root_fd, dir, "cpuset.cpus", ret_cpus);
}

/* Groups below the last one with the controller have no such file. */
static int read_v2(int root_fd, char *dir, size_t top,
                   struct joule_cpus *ret_cpus)
{
    while (read_cpus(root_fd, dir, "cpuset.cpus.effective", ret_cpus) < 0) {
        char *slash = strrchr(dir, '/');

        if (errno != ENOENT || !slash || (size_t)(slash - dir) < top)
            return -1;
        *slash = '\0';
    }
    return 0;
}

int joule_cgroup_cpuset(int root_fd, pid_t pid, struct joule_cpus *ret_cpus,
                        struct joule_error *err)
{
    char group[PATH_MAX], dir[JOULE_CGROUP_DIR_MAX];
    size_t top;
    int rc = -1;

    for (int v2 = 0; v2 <= 1 && rc < 0; v2++) {
        const char *controller = v2 ? NULL : "cpuset";

        rc = joule_cgroup_of(root_fd, pid, controller, group);
        if (rc < 0 && errno != ENOENT)
            return joule_error_set(err, errno,
                                   "cannot read the cgroup of process %lld: %s",
                                   (long long)pid, strerror(errno));
        if (rc == 0)
            rc = joule_cgroup_dir(root_fd, controller, group, dir, &top);
        if (rc == 0)
            rc = v2 ? read_v2(root_fd, dir, top, ret_cpus)
                    : read_v1(root_fd, dir, ret_cpus);
    }
    if (rc == 0)
        return 0;
    return joule_error_set(err, errno == EBADMSG ? EBADMSG : ENOENT,
                           "process %lld has no cpuset that can be read: %s",
                           (long long)pid, strerror(errno));
}

int joule_cgroup_cpus_of(int root_fd, pid_t pid, struct joule_cpus *ret_cpus,
                         struct joule_error *err)
{
    static const char key[] = "\nCpus_allowed_list:\t";
    char path[48], *text, *list;
    struct joule_cpus bound, set;
    int rc = -1;

    snprintf(path, sizeof(path), "proc/%lld/status", (long long)pid);
    text = joule_file_load(root_fd, path, STATUS_MAX, NULL);
    if (!text)
        return joule_error_set(err, errno == ENOENT ? ESRCH : errno,
                               "cannot read /%s: %s", path, strerror(errno));
    list = strstr(text, key);
    if (list) {
        list += sizeof(key) - 1;
        list[strcspn(list, "\n")] = '\0';
        rc = joule_cpus_parse(&bound, list);
    }
    free(text);
    if (rc < 0)
        return joule_error_set(err, EBADMSG,
                               "cannot read the CPUs that process %lld is "
                               "bound to",
                               (long long)pid);
    *ret_cpus = bound;
    if (joule_cgroup_cpuset(root_fd, pid, &set, NULL) < 0)
        return 0;
    joule_cpus_intersect(&set, &bound);
    /* The kernel keeps both the same but for a moment; nothing in common means
     * that it was not the process's cpuset that was read. */
    if (!joule_cpus_is_empty(&set))
        *ret_cpus = set;
    return 0;
}
