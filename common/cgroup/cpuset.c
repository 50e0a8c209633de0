/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/cpuset.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

#define PROC_TEXT_MAX (1 << 20)

/* A file of a process; the caller frees the text. */
static char *load_proc(int root_fd, pid_t pid, const char *name,
                       struct joule_error *err)
{
    char path[64], *text;

    snprintf(path, sizeof(path), "proc/%lld/%s", (long long)pid, name);
    text = joule_file_load(root_fd, path, PROC_TEXT_MAX, NULL);
    if (text)
        return text;
    joule_error_set(err, errno == ENOENT ? ESRCH : errno, "cannot read /%s: %s",
                    path, strerror(errno));
    return NULL;
}

/* Whether a comma-separated list has the word "cpuset". */
static bool has_cpuset(const char *list, size_t length)
{
    while (length > 0) {
        const char *comma = memchr(list, ',', length);
        size_t n = comma ? (size_t)(comma - list) : length;

        if (n == 6 && memcmp(list, "cpuset", 6) == 0)
            return true;
        n += comma ? 1 : 0;
        list += n;
        length -= n;
    }
    return false;
}

/* "4:cpuset:/slurm/uid_0" or "0::/system.slice" (cgroups(7)). */
static char *find_group(char *text, bool v2)
{
    char *line, *rest;

    for (line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *list = strchr(line, ':'),
             *path = list ? strchr(list + 1, ':') : NULL;

        if (!path || path[1] != '/')
            continue;
        if (v2 ? strncmp(line, "0::", 3) == 0
               : has_cpuset(list + 1, (size_t)(path - list - 1)))
            return path + 1;
    }
    return NULL;
}

struct mount {
    char root[PATH_MAX], point[PATH_MAX];
};

/* Fields 4 and 5 of a line of mountinfo (proc(5)), the type and, in the last
 * one, the controllers.  Escaped characters are not looked for: no cgroup is
 * mounted there. */
static bool parse_mount(const char *line, bool v2, struct mount *m)
{
    const char *tail = strstr(line, " - ");
    const char *options;

    if (!tail ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", m->root, m->point) != 2)
        return false;
    tail += 3;
    if (v2)
        return strncmp(tail, "cgroup2 ", 8) == 0;
    options = strrchr(tail, ' ');
    return strncmp(tail, "cgroup ", 7) == 0 && options &&
           has_cpuset(options + 1, strlen(options + 1));
}

static bool find_mount(int root_fd, bool v2, struct mount *m)
{
    char *text =
        joule_file_load(root_fd, "proc/self/mountinfo", PROC_TEXT_MAX, NULL);
    char *line, *rest;
    bool found = false;

    if (!text)
        return false;
    for (line = strtok_r(text, "\n", &rest); line && !found;
         line = strtok_r(NULL, "\n", &rest))
        found = parse_mount(line, v2, m);
    free(text);
    return found && m->point[0] == '/';
}

/* The group's directory below root_fd; a mount may show a part of the
 * hierarchy only. */
static bool group_dir(const struct mount *m, const char *group,
                      char dir[2 * PATH_MAX])
{
    size_t length = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);

    if (strncmp(group, m->root, length) != 0 ||
        (group[length] != '/' && group[length] != '\0'))
        return false;
    snprintf(dir, 2 * PATH_MAX, "%s%s", m->point + 1, group + length);
    return true;
}

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
    char dir[2 * PATH_MAX];
    int rc = -1;

    errno = ENOENT;
    for (int v2 = 0; v2 <= 1 && rc < 0; v2++) {
        struct mount m;
        char *text = load_proc(root_fd, pid, "cgroup", err), *group;

        if (!text)
            return -1;
        group = find_group(text, v2);
        if (group && find_mount(root_fd, v2, &m) && group_dir(&m, group, dir))
            rc = v2 ? read_v2(root_fd, dir, strlen(m.point + 1), ret_cpus)
                    : read_v1(root_fd, dir, ret_cpus);
        else
            errno = ENOENT;
        free(text);
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
    char *text = load_proc(root_fd, pid, "status", err), *list;
    struct joule_cpus bound, set;
    int rc = -1;

    if (!text)
        return -1;
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
