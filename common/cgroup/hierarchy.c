/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/hierarchy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

#define PROC_TEXT_MAX (1 << 20)

/* Whether [word] is in a comma-separated list that ends at one of [ends]. */
static bool has_word(const char *list, const char *ends, const char *word)
{
    size_t length = strlen(word);

    for (;;) {
        size_t n = strcspn(list, ends);
        const char *comma = memchr(list, ',', n);
        size_t first = comma ? (size_t)(comma - list) : n;

        if (first == length && memcmp(list, word, length) == 0)
            return true;
        if (!comma)
            return false;
        list = comma + 1;
    }
}

static char *load_groups(int root_fd, pid_t pid)
{
    char path[48], *text;

    snprintf(path, sizeof(path), "proc/%lld/cgroup", (long long)pid);
    text = joule_file_load(root_fd, path, PROC_TEXT_MAX, NULL);
    if (!text && errno == ENOENT)
        errno = ESRCH;
    return text;
}

/* "4:cpuset:/slurm/uid_0" or "0::/system.slice": where the list of controllers
 * begins, and the group; NULL: it is no such line. */
static const char *group_of_line(const char *line, const char **ret_list)
{
    const char *list = strchr(line, ':');
    const char *at = list ? strchr(list + 1, ':') : NULL;

    if (!at || at[1] != '/' || strlen(at + 1) >= PATH_MAX)
        return NULL;
    *ret_list = list + 1;
    return at + 1;
}

int joule_cgroup_of(int root_fd, pid_t pid, const char *controller,
                    char group[PATH_MAX])
{
    char *text = load_groups(root_fd, pid), *line, *rest;
    int rc = -1;

    if (!text)
        return -1;
    for (line = strtok_r(text, "\n", &rest); line && rc < 0;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *list, *at = group_of_line(line, &list);

        if (at && (controller ? has_word(list, ":", controller)
                              : strncmp(line, "0::", 3) == 0)) {
            memcpy(group, at, strlen(at) + 1);
            rc = 0;
        }
    }
    free(text);
    if (rc < 0)
        errno = ENOENT;
    return rc;
}

static bool has_component(const char *group, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strchr(group, '/'); at; at = strchr(at + 1, '/'))
        if (strncmp(at + 1, name, length) == 0 &&
            (at[1 + length] == '/' || at[1 + length] == '\0'))
            return true;
    return false;
}

int joule_cgroup_named(int root_fd, pid_t pid, const char *name,
                       char group[PATH_MAX])
{
    char *text = load_groups(root_fd, pid), *line, *rest;
    size_t longest = 0;

    if (!text)
        return -1;
    for (line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *list, *at = group_of_line(line, &list);

        if (at && strncmp(line, "0::", 3) != 0 && has_component(at, name) &&
            strlen(at) > longest) {
            longest = strlen(at);
            memcpy(group, at, longest + 1);
        }
    }
    free(text);
    if (longest > 0)
        return 0;
    errno = ENOENT;
    return -1;
}

/* Fields 4 and 5 of a line of mountinfo, the type and, in the last one, the
 * controllers.  Escaped characters are not looked for: no cgroup is mounted
 * there. */
static bool parse_mount(const char *line, const char *controller,
                        char root[PATH_MAX], char point[PATH_MAX])
{
    const char *tail = strstr(line, " - "), *options;

    _Static_assert(PATH_MAX == 4096, "the widths below are one less");
    if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
        point[0] != '/')
        return false;
    tail += 3;
    if (!controller)
        return strncmp(tail, "cgroup2 ", 8) == 0;
    options = strrchr(tail, ' ');
    return strncmp(tail, "cgroup ", 7) == 0 && options &&
           has_word(options + 1, "", controller);
}

/* The first mount of the hierarchy; with [group] the first that shows it. */
static int find_mount(int root_fd, const char *controller, const char *group,
                      char dir[JOULE_CGROUP_DIR_MAX], size_t *ret_top)
{
    char root[PATH_MAX], point[PATH_MAX], *line, *rest;
    char *text =
        joule_file_load(root_fd, "proc/self/mountinfo", PROC_TEXT_MAX, NULL);
    int rc = -1;

    if (!text)
        return -1;
    for (line = strtok_r(text, "\n", &rest); line && rc < 0;
         line = strtok_r(NULL, "\n", &rest)) {
        size_t length;

        if (!parse_mount(line, controller, root, point))
            continue;
        length = strcmp(root, "/") == 0 ? 0 : strlen(root);
        if (group && (strncmp(group, root, length) != 0 ||
                      (group[length] != '/' && group[length] != '\0')))
            continue;
        snprintf(dir, JOULE_CGROUP_DIR_MAX, "%s%s", point + 1,
                 group ? group + length : "");
        if (ret_top)
            *ret_top = strlen(point + 1);
        rc = 0;
    }
    free(text);
    if (rc < 0)
        errno = ENOENT;
    return rc;
}

int joule_cgroup_dir(int root_fd, const char *controller, const char *group,
                     char dir[JOULE_CGROUP_DIR_MAX], size_t *ret_top)
{
    return find_mount(root_fd, controller, group, dir, ret_top);
}

int joule_cgroup_mount(int root_fd, const char *controller,
                       char dir[JOULE_CGROUP_DIR_MAX])
{
    return find_mount(root_fd, controller, NULL, dir, NULL);
}
