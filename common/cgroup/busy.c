/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/busy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/cgroup/hierarchy.h"

/* Ten numbers and a name; 20 digits a CPU in usage_percpu. */
#define LINE_MAX_BYTES 220

struct joule_busy {
    int fd;
    bool in_ticks; /* /proc/stat */
    size_t cpus;
    uint64_t ns_a_tick;
    uint64_t *last; /* [cpus] */
    char *text;
    size_t size;
};

/* Of the whole machine: in a cgroup namespace, or a container, what looks like
 * the root is a group of it, and has no release_agent (cgroups(7)). */
static int open_root_group(int root_fd)
{
    char dir[JOULE_CGROUP_DIR_MAX], path[JOULE_CGROUP_DIR_MAX + 32];

    if (joule_cgroup_dir(root_fd, "cpuacct", "/", dir, NULL) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/release_agent", dir);
    if (faccessat(root_fd, path, F_OK, 0) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/cpuacct.usage_percpu", dir);
    return joule_file_open(root_fd, path, O_RDONLY);
}

struct joule_busy *joule_busy_create(int root_fd, size_t cpus,
                                     struct joule_error *err)
{
    struct joule_busy *b = calloc(1, sizeof(*b));
    long hertz = sysconf(_SC_CLK_TCK);

    if (!b)
        goto no_memory;
    b->fd = open_root_group(root_fd);
    if (b->fd < 0) {
        b->in_ticks = true;
        b->fd = joule_file_open(root_fd, "proc/stat", O_RDONLY);
    }
    if (b->fd < 0) {
        joule_error_set(err, errno, "cannot read the node's CPU time: %s",
                        strerror(errno));
        joule_busy_destroy(b);
        return NULL;
    }
    b->cpus = cpus;
    b->ns_a_tick = UINT64_C(1000000000) / (uint64_t)(hertz > 0 ? hertz : 100);
    b->size = (cpus + 2) * LINE_MAX_BYTES;
    b->last = calloc(cpus + 1, sizeof(*b->last));
    b->text = calloc(b->size, 1);
    if (b->last && b->text)
        return b;
no_memory:
    joule_busy_destroy(b);
    joule_error_set(err, ENOMEM, "out of memory");
    return NULL;
}

void joule_busy_destroy(struct joule_busy *b)
{
    int saved = errno;

    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    free(b->last);
    free(b->text);
    free(b);
    errno = saved;
}

static long read_from_start(int fd, char *buf, size_t size, bool one_line)
{
    size_t length = 0;
    bool over = false;

    while (!over && length < size - 1) {
        ssize_t n = pread(fd, buf + length, size - 1 - length, (off_t)length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        over = n == 0 ||
               (one_line && memchr(buf + length, '\n', (size_t)n) != NULL);
        length += (size_t)n;
    }
    buf[length] = '\0';
    return (long)length;
}

long joule_busy_text(int fd, char *buf, size_t size)
{
    return read_from_start(fd, buf, size, false);
}

long joule_busy_line(int fd, char *buf, size_t size)
{
    return read_from_start(fd, buf, size, true);
}

int joule_busy_parse(char *text, uint64_t *cpu_ns, size_t cpus)
{
    char *word, *rest;
    uint64_t value;
    size_t i = 0;

    for (word = strtok_r(text, " \n", &rest); word && i < cpus;
         word = strtok_r(NULL, " \n", &rest), i++) {
        if (joule_parse_u64(word, 0, UINT64_MAX, &value) < 0) {
            errno = EBADMSG;
            return -1;
        }
        cpu_ns[i] = value;
    }
    if (i > 0)
        return 0;
    errno = EBADMSG;
    return -1;
}

/* "cpu3 user nice system idle iowait irq softirq ..." */
static int parse_line(const struct joule_busy *b, char *line)
{
    uint64_t cpu, field[7];
    char *word, *rest;
    int i = 0;

    word = strtok_r(line, " ", &rest);
    if (joule_parse_u64(word + 3, 0, UINT32_MAX, &cpu) < 0)
        return -1;
    for (word = strtok_r(NULL, " ", &rest); word && i < 7;
         word = strtok_r(NULL, " ", &rest), i++)
        if (joule_parse_u64(word, 0, UINT64_MAX / 1000, &field[i]) < 0)
            return -1;
    if (i < 7)
        return -1;
    if (cpu < b->cpus)
        b->last[cpu] = (field[0] + field[1] + field[2] + field[5] + field[6]) *
                       b->ns_a_tick;
    return 0;
}

static int parse_stat(struct joule_busy *b)
{
    char *line, *rest;
    bool any = false;

    for (line = strtok_r(b->text, "\n", &rest);
         line && strncmp(line, "cpu", 3) == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[3] == ' ')
            continue;
        if (parse_line(b, line) < 0)
            break;
        any = true;
    }
    if (any && line && strncmp(line, "cpu", 3) != 0)
        return 0;
    errno = EBADMSG;
    return -1;
}

int joule_busy_read(struct joule_busy *b, uint64_t *cpu_ns)
{
    if (b->in_ticks
            ? joule_busy_text(b->fd, b->text, b->size) < 0 || parse_stat(b) < 0
            : joule_busy_line(b->fd, b->text, b->size) < 0 ||
                  joule_busy_parse(b->text, b->last, b->cpus) < 0)
        return -1;
    memcpy(cpu_ns, b->last, b->cpus * sizeof(*cpu_ns));
    return 0;
}
