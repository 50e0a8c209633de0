/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

#define WIDTH 40

void joule_progress_start(struct joule_progress *p, uint64_t total)
{
    memset(p, 0, sizeof(*p));
    p->is_terminal = isatty(STDERR_FILENO) == 1;
    p->start_ns = joule_clock_mono_ns(&joule_clock_system);
    p->total = total;
}

void joule_progress_show(struct joule_progress *p, uint64_t done)
{
    static const char full[] = "########################################";
    int64_t now_ns;
    int part;

    if (!p->is_terminal || p->total == 0)
        return;
    now_ns = joule_clock_mono_ns(&joule_clock_system);
    if (now_ns - p->start_ns < JOULE_NS_PER_S ||
        now_ns - p->last_ns < 100 * JOULE_NS_PER_MS)
        return;
    if (done > p->total)
        done = p->total;
    part = (int)((double)done / (double)p->total * WIDTH);
    fprintf(stderr, "\r[%-*.*s] %3d %%", WIDTH, part, full,
            (int)((double)done / (double)p->total * 100));
    p->last_ns = now_ns;
    p->is_shown = true;
}

void joule_progress_clear(struct joule_progress *p)
{
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    p->is_shown = false;
}
