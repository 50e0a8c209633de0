/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodefile.h - node-step files for tests and benchmarks, written by libhdf5
 * itself in the layouts that are described in doc/hdf5-format.md.
 */
#ifndef JOULE_TESTS_NODEFILE_H
#define JOULE_TESTS_NODEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hdf5.h>

struct nodefile {
    const char *node;
    uint64_t rows;
    uint64_t rate_hz;  /* rows a second */
    uint64_t start_ns; /* since 1970 */
    bool ours;         /* large packed chunks and a column of ns; otherwise as
                        * Slurm's plugin has it */
    bool plain;        /* ours, not packed */
    bool later;        /* headers as libhdf5 2.x writes them by itself */
    unsigned tasks;    /* tables below "Tasks" */
    unsigned seed;     /* of the power */
};

/* A new file for libhdf5: as version 1.10 would make it by itself, or 2.x. */
hid_t nodefile_create(const char *path, bool later);

/* One that is there, to add what 1.10 would. */
hid_t nodefile_open(const char *path);

/* Write it to [path].  0, or -1. */
int nodefile_write(const char *path, const struct nodefile *n);

/* The power in W of row i, as it is written: whole in "Power", with a
 * fraction in "package_0_mW". */
uint64_t nodefile_power(const struct nodefile *n, uint64_t i);

/* Damage [len] bytes in a way that [seed] chooses: cut off, bytes flipped,
 * bytes replaced by such that counters and addresses like.  The new length. */
size_t nodefile_damage(unsigned char *data, size_t len, uint64_t seed);

#endif
