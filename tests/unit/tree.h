/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - a directory that stands in for "/" in a test.
 *
 * A failure of these functions ends the test: they are for tests only.
 * Directories on the way to a file are made.  One thread at a time.
 */
#ifndef JOULE_TESTS_TREE_H
#define JOULE_TESTS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree {
    char path[64]; /* absolute */
    int fd;        /* what the code under test gets as its root */
};

/* A new empty directory, readable by everyone, below $TMPDIR or /tmp. */
void tree_create(struct tree *t);

/* Removes all of it. */
void tree_destroy(struct tree *t);

/* (Re)write a file. */
void tree_write(struct tree *t, const char *path, const char *text);
void tree_bytes(struct tree *t, const char *path, const void *p, size_t len);

/* Write len bytes at an offset; the rest of the file stays, holes read 0. */
void tree_poke(struct tree *t, const char *path, off_t offset, const void *p,
               size_t len);

/* Set a file's length. */
void tree_truncate(struct tree *t, const char *path, off_t size);

void tree_mkdir(struct tree *t, const char *path);
void tree_remove(struct tree *t, const char *path);

/* One CPU of sys/devices/system/cpu: ids below 0 leave the file away. */
void tree_cpu(struct tree *t, unsigned cpu, int package, int die, int core);

/* A process that started at [start] in its proc; 0: there is none. */
void tree_process(struct tree *t, unsigned pid, uint64_t start);

/* Whether a file of it is mapped in this process. */
bool tree_is_mapped(const struct tree *t);

/* Open file descriptors of this process. */
unsigned tree_open_fds(void);

#endif
