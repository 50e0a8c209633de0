/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.h - what a visitor is told, as bytes between two processes.
 *
 * The sender is a visitor whose functions write records into the output of a
 * worker (pool.h).  The other side believes nothing: joule_record_decode
 * checks every length, name, type and the order of the records before it calls
 * a visitor with them.  Both sides are one program on one machine: numbers are
 * in its byte order.
 */
#ifndef JOULE_STORE_RECORD_H
#define JOULE_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/store/pool.h"
#include "common/store/visitor.h"

/* A visitor that writes to [out]. */
struct joule_visitor joule_record_sender(struct joule_out *out);

/* Where a stream of records stands. */
struct joule_decoder {
    const struct joule_visitor *visitor;
    unsigned depth;
    bool in_table, is_stored;
    struct joule_layout layout;       /* of the table */
    struct joule_attribute attribute; /* the last one */
};

void joule_decoder_start(struct joule_decoder *decoder,
                         const struct joule_visitor *visitor);

/*
 * Whole records.  0, or -1 with what the visitor said, or EBADMSG: the bytes
 * are none.  Memory at [data] may change meanwhile; what is checked is a copy,
 * but for the rows themselves.
 */
int joule_decoder_take(struct joule_decoder *decoder, const void *data,
                       size_t len, struct joule_error *err);

/* The stream ended, perhaps in the middle: leave the table and the groups that
 * are still open.  Rows that are missing from the table are not known. */
int joule_decoder_finish(struct joule_decoder *decoder,
                         struct joule_error *err);

#endif
