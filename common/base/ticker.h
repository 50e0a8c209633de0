/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ticker.h - a thread that does one thing again and again.
 *
 * All signals are blocked in it.  It does not live on in a forked child.
 */
#ifndef JOULE_BASE_TICKER_H
#define JOULE_BASE_TICKER_H

#include <stdint.h>

#include "common/base/error.h"

struct joule_ticker;

/*
 * Call tick(arg) after first_ns, and then each period_ns counted from the end
 * of the call before (CLOCK_MONOTONIC).  NULL with errno and a sentence.
 */
struct joule_ticker *joule_ticker_create(int64_t first_ns, int64_t period_ns,
                                         void (*tick)(void *arg), void *arg,
                                         struct joule_error *err);

/* Waits for a call that is under way.  NULL is a no-op. */
void joule_ticker_destroy(struct joule_ticker *t);

#endif
