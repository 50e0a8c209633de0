/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout.h - how a table lies in its file.
 */
#ifndef JOULE_STORE_LAYOUT_H
#define JOULE_STORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/store/rowtype.h"
#include "common/store/unfilter.h"

/* The largest chunk that is read, in bytes without filters. */
#define JOULE_CHUNK_MAX ((size_t)4 << 20)

struct joule_layout {
    uint64_t rows;       /* as the file says */
    uint64_t chunk_rows; /* 0: not in chunks */
    struct joule_pipeline pipeline;
    uint32_t is_known; /* chunks can be read without libhdf5's filters */
    uint32_t spare;
    struct joule_rowtype type;
};

#endif
