/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/unfilter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/store/fletcher.h"
#include "common/store/little.h"
#include "common/store/rowtype.h"

struct joule_unfilter {
    struct joule_pipeline pipeline;
    size_t raw;
    bool has_stream;
    z_stream stream;
    unsigned char *spare[2]; /* each of joule_unfilter_bound; the second only
                                where there is a need of it */
};

int joule_filter_known(unsigned number, uint32_t value,
                       struct joule_filter *ret)
{
    switch (number) {
    case JOULE_HDF_DEFLATE:
        ret->kind = JOULE_FILTER_DEFLATE;
        ret->level = value <= 9 ? (uint8_t)value : 9;
        return 0;
    case JOULE_HDF_SHUFFLE:
        ret->kind = JOULE_FILTER_SHUFFLE;
        ret->element = value;
        return value >= 1 && value <= JOULE_ROW_MAX ? 0 : -1;
    case JOULE_HDF_FLETCHER32:
        ret->kind = JOULE_FILTER_FLETCHER32;
        return 0;
    default:
        return -1;
    }
}

size_t joule_unfilter_bound(size_t raw)
{
    /* zlib's bound for data that does not shrink, and a checksum. */
    return raw + raw / 1000 + 1024;
}

struct joule_unfilter *joule_unfilter_create(const struct joule_pipeline *p,
                                             size_t raw)
{
    struct joule_unfilter *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->pipeline = *p;
    u->raw = raw;
    return u;
}

void joule_unfilter_destroy(struct joule_unfilter *u)
{
    if (!u)
        return;
    if (u->has_stream)
        inflateEnd(&u->stream);
    free(u->spare[0]);
    free(u->spare[1]);
    free(u);
}

/*
 * Deflate at level 0, as Slurm's plugin has it: a zlib header, blocks that are
 * stored as they are, Adler-32.  Ten times faster than inflate() on 240 bytes.
 * false: it is something else, or damaged; inflate() shall decide.
 */
static bool take_stored(const unsigned char *in, size_t len, unsigned char *out,
                        size_t room, size_t *ret_len)
{
    size_t at = 2, done = 0;
    bool last = false;

    if (len < 2 + 4 || in[0] != 0x78 || (in[0] << 8 | in[1]) % 31 != 0 ||
        (in[1] & 0x20))
        return false;
    while (!last) {
        size_t n;

        if (len - at < 5 + 4 || (in[at] & ~1u) != 0)
            return false;
        last = in[at] & 1;
        n = in[at + 1] | (size_t)in[at + 2] << 8;
        if ((n ^ (in[at + 3] | (size_t)in[at + 4] << 8)) != 0xFFFF)
            return false;
        at += 5;
        if (n > len - at - 4 || n > room - done)
            return false;
        memcpy(out + done, in + at, n);
        at += n;
        done += n;
    }
    if (adler32(adler32(0, NULL, 0), out, (uInt)done) !=
        ((uLong)in[at] << 24 | (uLong)in[at + 1] << 16 |
         (uLong)in[at + 2] << 8 | in[at + 3]))
        return false;
    *ret_len = done;
    return true;
}

/* Up to [room] bytes of [out]; the length, or -1. */
static ssize_t take_deflate(struct joule_unfilter *u, const void *in,
                            size_t len, void *out, size_t room)
{
    size_t done;

    if (take_stored(in, len, out, room, &done))
        return (ssize_t)done;
    if (!u->has_stream) {
        if (inflateInit(&u->stream) != Z_OK)
            return -1;
        u->has_stream = true;
    } else if (inflateReset(&u->stream) != Z_OK) {
        return -1;
    }
    u->stream.next_in = (Bytef *)(uintptr_t)in;
    u->stream.avail_in = (uInt)len;
    u->stream.next_out = out;
    u->stream.avail_out = (uInt)room;
    if (inflate(&u->stream, Z_FINISH) != Z_STREAM_END)
        return -1;
    return (ssize_t)(room - u->stream.avail_out);
}

/* Byte i of all elements lies together; what is left over at the end was not
 * moved. */
static void take_shuffle(const unsigned char *in, size_t len, size_t element,
                         unsigned char *out)
{
    size_t count = len / element;

    if (element <= 1 || count <= 1) {
        memcpy(out, in, len);
        return;
    }
    for (size_t b = 0; b < element; b++) {
        const unsigned char *from = in + b * count;
        unsigned char *to = out + b;

        for (size_t i = 0; i < count; i++, to += element)
            *to = from[i];
    }
    memcpy(out + count * element, in + count * element, len - count * element);
}

/* Take one filter off in[len]; the length of what is in [to] (or, for a
 * checksum, still in [in]), or -1. */
static ssize_t take_filter(struct joule_unfilter *u,
                           const struct joule_filter *filter, const void *in,
                           size_t len, void *to, size_t room)
{
    switch (filter->kind) {
    case JOULE_FILTER_FLETCHER32:
        return joule_fletcher_check(in, len)
                   ? (ssize_t)(len - JOULE_FLETCHER_SIZE)
                   : -1;
    case JOULE_FILTER_SHUFFLE:
        if (len > room)
            return -1;
        take_shuffle(in, len, filter->element, to);
        return (ssize_t)len;
    default:
        return take_deflate(u, in, len, to, room);
    }
}

/* The filter that is taken off last and moves bytes: it may write to where
 * the chunk goes. */
static uint32_t last_mover(const struct joule_pipeline *p, uint32_t mask)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (!(mask >> i & 1) && p->filter[i].kind != JOULE_FILTER_FLETCHER32)
            return i;
    return p->count;
}

static unsigned char *spare(struct joule_unfilter *u, int which)
{
    if (!u->spare[which])
        u->spare[which] = malloc(joule_unfilter_bound(u->raw));
    return u->spare[which];
}

int joule_unfilter(struct joule_unfilter *u, uint32_t mask, const void *stored,
                   size_t len, void *out)
{
    uint32_t last = last_mover(&u->pipeline, mask);
    const unsigned char *in = stored;
    int which = 0;

    for (uint32_t i = u->pipeline.count; i-- > 0;) {
        const struct joule_filter *filter = &u->pipeline.filter[i];
        size_t room = i == last ? u->raw : joule_unfilter_bound(u->raw);
        unsigned char *to = NULL;
        ssize_t n;

        if (mask >> i & 1)
            continue;
        if (filter->kind != JOULE_FILTER_FLETCHER32) {
            to = i == last ? out : spare(u, which);
            which = !which; /* back and forth between the two */
            if (!to)
                return -1;
        }
        n = take_filter(u, filter, in, len, to, room);
        if (n < 0) {
            errno = EBADMSG;
            return -1;
        }
        len = (size_t)n;
        if (to)
            in = to;
    }
    if (len != u->raw) {
        errno = EBADMSG;
        return -1;
    }
    if (in != out)
        memcpy(out, in, len);
    return 0;
}

/* How many bytes filter [i] was given; SIZE_MAX: as many as another deflate
 * made. */
static size_t given(const struct joule_unfilter *u, uint32_t mask, uint32_t i)
{
    size_t size = u->raw;

    while (i-- > 0) {
        if (mask >> i & 1)
            continue;
        if (u->pipeline.filter[i].kind == JOULE_FILTER_DEFLATE)
            return SIZE_MAX;
        if (u->pipeline.filter[i].kind == JOULE_FILTER_FLETCHER32)
            size += JOULE_FLETCHER_SIZE;
    }
    return size;
}

static bool is_whole_deflate(struct joule_unfilter *u, const void *stored,
                             size_t len, size_t size)
{
    unsigned char *to = spare(u, 0);
    ssize_t n;

    if (!to)
        return false;
    n = take_deflate(u, stored, len, to, joule_unfilter_bound(u->raw));
    return n >= 0 && (size == SIZE_MAX || (size_t)n == size);
}

bool joule_unfilter_is_plain(const struct joule_unfilter *u, uint32_t mask,
                             size_t len)
{
    for (uint32_t i = 0; i < u->pipeline.count; i++)
        if (!(mask >> i & 1) &&
            u->pipeline.filter[i].kind != JOULE_FILTER_SHUFFLE)
            return false;
    return len == u->raw;
}

int joule_unfilter_check(struct joule_unfilter *u, uint32_t mask,
                         const void *stored, size_t len)
{
    bool is_sound = len == u->raw;

    for (uint32_t i = u->pipeline.count; i-- > 0;) {
        uint8_t kind = u->pipeline.filter[i].kind;

        if ((mask >> i & 1) || kind == JOULE_FILTER_SHUFFLE)
            continue;
        /* What is below a checksum over its bytes need not be looked at. */
        is_sound = kind == JOULE_FILTER_FLETCHER32
                       ? joule_fletcher_check(stored, len)
                       : is_whole_deflate(u, stored, len, given(u, mask, i));
        break;
    }
    if (is_sound)
        return 0;
    errno = EBADMSG;
    return -1;
}
