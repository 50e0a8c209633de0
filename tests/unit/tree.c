/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _FILE_OFFSET_BITS 64

#include "tests/unit/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            perror(#condition);                                                \
            abort();                                                           \
        }                                                                      \
    } while (0)

void tree_create(struct tree *t)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || strlen(tmp) > 32)
        tmp = "/tmp";
    snprintf(t->path, sizeof(t->path), "%s/joule-test-XXXXXX", tmp);
    MUST(mkdtemp(t->path));
    MUST(chmod(t->path, 0755) == 0);
    t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST(t->fd >= 0);
}

static int remove_entry(const char *path, const struct stat *st, int flag,
                        struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void tree_destroy(struct tree *t)
{
    close(t->fd);
    MUST(nftw(t->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static void make_parents(struct tree *t, const char *path)
{
    char part[256];

    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = part; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdirat(t->fd, part, 0755);
        *slash = '/';
    }
}

static int open_file(struct tree *t, const char *path, int flags)
{
    int fd;

    make_parents(t, path);
    fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    MUST(fd >= 0);
    return fd;
}

void tree_bytes(struct tree *t, const char *path, const void *p, size_t len)
{
    int fd = open_file(t, path, O_TRUNC);

    MUST(write(fd, p, len) == (ssize_t)len);
    MUST(close(fd) == 0);
}

void tree_write(struct tree *t, const char *path, const char *text)
{
    tree_bytes(t, path, text, strlen(text));
}

void tree_poke(struct tree *t, const char *path, off_t offset, const void *p,
               size_t len)
{
    int fd = open_file(t, path, 0);

    MUST(pwrite(fd, p, len, offset) == (ssize_t)len);
    MUST(close(fd) == 0);
}

void tree_truncate(struct tree *t, const char *path, off_t size)
{
    int fd = open_file(t, path, 0);

    MUST(ftruncate(fd, size) == 0);
    MUST(close(fd) == 0);
}

void tree_mkdir(struct tree *t, const char *path)
{
    make_parents(t, path);
    MUST(mkdirat(t->fd, path, 0755) == 0);
}

void tree_remove(struct tree *t, const char *path)
{
    MUST(unlinkat(t->fd, path, 0) == 0);
}

static void write_id(struct tree *t, unsigned cpu, const char *name, int id)
{
    char path[128], text[16];

    if (id < 0)
        return;
    snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/%s",
             cpu, name);
    snprintf(text, sizeof(text), "%d\n", id);
    tree_write(t, path, text);
}

void tree_cpu(struct tree *t, unsigned cpu, int package, int die, int core)
{
    write_id(t, cpu, "physical_package_id", package);
    write_id(t, cpu, "die_id", die);
    write_id(t, cpu, "core_id", core);
}

bool tree_is_mapped(const struct tree *t)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    MUST(maps);
    while (!found && fgets(line, sizeof(line), maps))
        found = strstr(line, t->path) != NULL;
    fclose(maps);
    return found;
}

void tree_process(struct tree *t, unsigned pid, uint64_t start)
{
    char path[64], text[256];

    snprintf(path, sizeof(path), "proc/%u/stat", pid);
    snprintf(text, sizeof(text),
             "%u (a) b) S 1 1 1 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 %llu 1\n",
             pid, (unsigned long long)start);
    if (start)
        tree_write(t, path, text);
    else
        tree_remove(t, path);
}

unsigned tree_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    MUST(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
