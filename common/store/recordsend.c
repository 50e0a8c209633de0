/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/record.h"

#include <string.h>

#include "common/store/recordbody.h"

/* Room for a record with [bytes] of body. */
static void *begin(struct joule_out *out, enum joule_record_kind kind,
                   size_t bytes, struct joule_error *err)
{
    struct joule_record_head *head =
        joule_out_room(out, sizeof(*head) + joule_record_padded(bytes), err);

    if (!head)
        return NULL;
    head->kind = kind;
    head->bytes = (uint32_t)bytes;
    return head + 1;
}

static int end(struct joule_out *out, size_t bytes)
{
    joule_out_commit(out, sizeof(struct joule_record_head) +
                              joule_record_padded(bytes));
    return 0;
}

static int send_text(struct joule_out *out, enum joule_record_kind kind,
                     const char *text, struct joule_error *err)
{
    size_t bytes = strlen(text) + 1;
    char *body = begin(out, kind, bytes, err);

    if (!body)
        return -1;
    memcpy(body, text, bytes);
    return end(out, bytes);
}

static int send_group(void *arg, const char *name, struct joule_error *err)
{
    return send_text(arg, JOULE_RECORD_GROUP, name, err);
}

static int send_leave(void *arg, struct joule_error *err)
{
    return begin(arg, JOULE_RECORD_LEAVE, 0, err) ? end(arg, 0) : -1;
}

static int send_note(void *arg, const char *sentence, struct joule_error *err)
{
    return send_text(arg, JOULE_RECORD_NOTE, sentence, err);
}

static int send_attribute(void *arg, const struct joule_attribute *a,
                          struct joule_error *err)
{
    size_t type = joule_rowtype_bytes(&a->type);
    size_t head = offsetof(struct joule_record_attribute, type);
    size_t bytes = head + type + a->bytes;
    struct joule_record_attribute *body =
        begin(arg, JOULE_RECORD_ATTRIBUTE, bytes, err);

    if (!body)
        return -1;
    memcpy(body->name, a->name, sizeof(body->name));
    body->elements = a->elements;
    body->bytes = a->bytes;
    memcpy(&body->type, &a->type, type);
    memcpy((char *)body + head + type, a->data, a->bytes);
    return end(arg, bytes);
}

static size_t layout_bytes(const struct joule_layout *layout)
{
    return offsetof(struct joule_layout, type) +
           joule_rowtype_bytes(&layout->type);
}

static int send_table(void *arg, const char *name,
                      const struct joule_layout *layout, bool stored,
                      struct joule_error *err)
{
    size_t bytes =
        offsetof(struct joule_record_table, layout) + layout_bytes(layout);
    struct joule_record_table *body =
        begin(arg, JOULE_RECORD_TABLE, bytes, err);

    if (!body)
        return -1;
    memset(body->name, 0, sizeof(body->name));
    memcpy(body->name, name, strlen(name));
    body->is_stored = stored;
    memcpy(&body->layout, layout, layout_bytes(layout));
    return end(arg, bytes);
}

static int send_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    uint64_t *body = begin(arg, JOULE_RECORD_TABLE_END, sizeof(lost), err);

    if (!body)
        return -1;
    *body = lost;
    return end(arg, sizeof(lost));
}

/* Rows are read to where they are sent from. */
static void *send_room(void *arg, size_t size, struct joule_error *err)
{
    struct joule_record_data *body =
        begin(arg, JOULE_RECORD_ROWS, sizeof(*body) + size, err);

    return body ? body + 1 : NULL;
}

static int send_data(struct joule_out *out, enum joule_record_kind kind,
                     uint64_t rows, uint32_t mask, const void *data, size_t len)
{
    /* The same room as before. */
    struct joule_record_data *body =
        begin(out, kind, sizeof(*body) + len, NULL);

    if (!body)
        return -1;
    if (data != body + 1)
        memmove(body + 1, data, len);
    body->rows = rows;
    body->mask = mask;
    body->bytes = (uint32_t)len;
    return end(out, sizeof(*body) + len);
}

static int send_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                     struct joule_error *err)
{
    (void)err;
    return send_data(arg, JOULE_RECORD_ROWS, count, 0, rows, bytes);
}

static int send_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                      size_t len, struct joule_error *err)
{
    (void)err;
    return send_data(arg, JOULE_RECORD_CHUNK, rows, mask, data, len);
}

static int send_run(void *arg, const struct joule_run *run,
                    struct joule_error *err)
{
    struct joule_run *body = begin(arg, JOULE_RECORD_RUN, sizeof(*body), err);

    if (!body)
        return -1;
    *body = *run;
    return end(arg, sizeof(*body));
}

struct joule_visitor joule_record_sender(struct joule_out *out)
{
    return (struct joule_visitor){
        .group = send_group,
        .leave = send_leave,
        .attribute = send_attribute,
        .table = send_table,
        .table_end = send_table_end,
        .note = send_note,
        .room = send_room,
        .rows = send_rows,
        .chunk = send_chunk,
        .run = send_run,
        .arg = out,
    };
}
