/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/pack.h"

#include <zlib.h>

size_t joule_pack_bound(size_t size)
{
    return compressBound(size);
}

static void shuffle(const unsigned char *from, size_t size, size_t row,
                    unsigned char *to)
{
    size_t count = size / row, byte, i;

    for (byte = 0; byte < row; byte++)
        for (i = 0; i < count; i++)
            *to++ = from[i * row + byte];
}

size_t joule_pack(const struct joule_pack *pack, const void *rows, size_t size,
                  size_t row, void *scratch, void *out, size_t out_size)
{
    const void *from = rows;
    uLongf length = out_size;

    if (pack->level == 0)
        return 0;
    if (pack->shuffle) {
        shuffle(rows, size, row, scratch);
        from = scratch;
    }
    if (compress2(out, &length, from, size, pack->level) != Z_OK ||
        length >= size)
        return 0;
    return length;
}
