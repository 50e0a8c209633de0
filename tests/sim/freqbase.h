/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqbase.h - a directory whose files are shown as they are: numbers for its
 * names, and what is behind them.
 *
 * A number is given at the first lookup and stays.  0 is the directory itself.
 */
#ifndef SIM_FREQBASE_H
#define SIM_FREQBASE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sim_freqbase;

/* Takes dir_fd, which may be -1: then nothing is there.  NULL with errno
 * ENOMEM. */
struct sim_freqbase *sim_freqbase_create(int dir_fd);
/* NULL is a no-op. */
void sim_freqbase_destroy(struct sim_freqbase *base);

/* All return 0 or an errno value. */
int sim_freqbase_lookup(struct sim_freqbase *base, size_t parent,
                        const char *name, size_t *ret_node);
int sim_freqbase_stat(const struct sim_freqbase *base, size_t node,
                      struct stat *ret_st);
int sim_freqbase_readlink(const struct sim_freqbase *base, size_t node,
                          char *buf, size_t size);
int sim_freqbase_read(const struct sim_freqbase *base, size_t node, char *buf,
                      size_t size, off_t off, size_t *ret_len);
/* [entry] is called with each name but "." and "..". */
int sim_freqbase_list(const struct sim_freqbase *base, size_t node,
                      void (*entry)(void *arg, const char *name, mode_t type),
                      void *arg);

#endif
