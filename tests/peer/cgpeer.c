/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/peer/cgpeer.h"

#include <libcgroup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Newer files first: those that say what the CPUs are, not what was asked. */
static const char *const files[] = {
    "cpuset.cpus.effective", /* v2 */
    "cpuset.effective_cpus", /* v1 */
    "cpuset.cpus",
};

/* One group's value.  A group that lacks the controller is no error. */
static const char *read_group(const char *path, struct joule_cpus *ret_cpus,
                              bool *ret_found)
{
    struct cgroup *group = cgroup_new_cgroup(path);
    struct cgroup_controller *cpuset;
    const char *why = NULL;
    int rc;

    if (!group)
        return "no memory";
    rc = cgroup_get_cgroup(group);
    cpuset = rc == 0 ? cgroup_get_controller(group, "cpuset") : NULL;
    for (size_t i = 0; cpuset && i < sizeof(files) / sizeof(files[0]); i++) {
        char *text = NULL;

        if (cgroup_get_value_string(cpuset, files[i], &text) != 0 || !text)
            continue;
        if (joule_cpus_parse(ret_cpus, text) < 0)
            why = "not a list of CPUs";
        *ret_found = !joule_cpus_is_empty(ret_cpus);
        free(text);
        break;
    }
    cgroup_free(&group);
    return why;
}

/* "0::/system.slice/x" in /proc/PID/cgroup. */
static char *unified_group(pid_t pid)
{
    char name[48], *line = NULL, *path = NULL;
    size_t size = 0;
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%lld/cgroup", (long long)pid);
    f = fopen(name, "re");
    while (f && !path && getline(&line, &size, f) > 0)
        if (strncmp(line, "0::/", 4) == 0)
            path = strndup(line + 3, strcspn(line + 3, "\n"));
    free(line);
    if (f)
        fclose(f);
    return path;
}

const char *cgpeer_cpuset(pid_t pid, struct joule_cpus *ret_cpus)
{
    char *path = NULL, *slash;
    const char *why = NULL;
    bool found = false;
    int rc = cgroup_init();

    if (rc == 0)
        rc = cgroup_get_current_controller_path(pid, "cpuset", &path);
    /* libcgroup 2.0 does not find the group of a process in v2. */
    if (rc != 0)
        path = unified_group(pid);
    if (!path)
        return cgroup_strerror(rc);
    for (;;) {
        why = read_group(path[0] ? path : "/", ret_cpus, &found);
        slash = strrchr(path, '/');
        if (why || found || !slash || !path[0] || strcmp(path, "/") == 0)
            break;
        *slash = '\0';
    }
    free(path);
    return why || found ? why : "no group has a cpuset";
}
