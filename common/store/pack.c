/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/pack.h"

#include <string.h>
#include <zlib.h>

#include "common/store/fletcher.h"

/* The filters by their places in a table's pipeline (table.c): the checksum is
 * the last, so what comes before it are these. */
static uint32_t movers(const struct joule_pack *pack)
{
    return pack->shuffle ? 0x3 : 0x1;
}

uint32_t joule_pack_none(const struct joule_pack *pack)
{
    if (pack->level == 0)
        return 0;
    return movers(pack) << 1 | 1;
}

size_t joule_pack_bound(size_t size)
{
    return compressBound(size) + JOULE_FLETCHER_SIZE;
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
                  size_t row, void *scratch, void *out, uint32_t *ret_mask)
{
    const void *from = rows;
    uLongf length = compressBound(size);

    if (pack->level == 0)
        return 0;
    if (pack->shuffle) {
        shuffle(rows, size, row, scratch);
        from = scratch;
    }
    *ret_mask = 0;
    if (compress2(out, &length, from, size, pack->level) != Z_OK ||
        length >= size) {
        *ret_mask = movers(pack);
        memcpy(out, rows, size);
        length = size;
    }
    joule_fletcher_put(out, length);
    return length + JOULE_FLETCHER_SIZE;
}
