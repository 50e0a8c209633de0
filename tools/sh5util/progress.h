/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * progress.h - a bar on a terminal for what takes longer than a second.
 */
#ifndef JOULE_SH5UTIL_PROGRESS_H
#define JOULE_SH5UTIL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct joule_progress {
    bool is_terminal, is_shown;
    int64_t start_ns, last_ns;
    uint64_t total;
};

/* [total] of anything; nothing is ever shown if stderr is no terminal. */
void joule_progress_start(struct joule_progress *p, uint64_t total);

/* So much is done; draws at most ten times a second. */
void joule_progress_show(struct joule_progress *p, uint64_t done);

/* Remove the bar: before a message, and at the end. */
void joule_progress_clear(struct joule_progress *p);

#endif
