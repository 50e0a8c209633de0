/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series.h - what an energy series at 100 Hz costs slurmstepd, beside a thread
 * that wakes up as often and does nothing.
 */
#ifndef JOULE_BENCH_SERIES_H
#define JOULE_BENCH_SERIES_H

#include <stdbool.h>

/* Prints its rows; false: a goal is missed.  Files are made in [directory]. */
bool bench_series(const char *directory);

#endif
