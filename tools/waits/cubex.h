/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cubex.h - what a page shows (page.h), but the power, as a profile for CubeGUI and the
 * tools of CubeLib: CUBE 4, a tar file of anchor.xml and, of each metric that has
 * values, N.index and N.data.
 *
 *     if (joule_waits_cubex_write(file, &page, &err) < 0)
 *         ...
 *
 * Metrics are exclusive along the call tree, and a parent holds the sum of its children,
 * as CubeLib expects both.  A metric without a unit is of whole numbers.  Call paths
 * of one name are of one region.
 *
 * The format is that of CubeLib and CubeW 4.4 (2018): UINT64 and DOUBLE in the order
 * of this machine's bytes, not compressed.  The memory that it takes follows the page,
 * not the file, which has 8 bytes for each process of each metric and path with values.
 *
 * Threads: no state.
 */
#ifndef JOULE_WAITS_CUBEX_H
#define JOULE_WAITS_CUBEX_H

#include <stdio.h>

#include "tools/waits/page.h"

/* 0, or -1 with errno and a sentence; [out] may have a part of it then.  It need not
 * be one that can seek.  EINVAL: as joule_page_check, no metric, no path, a metric that
 * is no sum; EFBIG: a metric of 8 GiB; ENOMEM; or of [out]. */
int joule_waits_cubex_write(FILE *out, const struct joule_page *page,
                            struct joule_error *err);

#endif
