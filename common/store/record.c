/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define DEPTH_MAX 32

enum kind {
    GROUP = 1,
    LEAVE,
    ATTRIBUTE,
    TABLE,
    TABLE_END,
    ROWS,
    CHUNK,
    NOTE,
};

/* In front of each record; the next one begins at a multiple of 8. */
struct head {
    uint32_t kind;
    uint32_t bytes; /* of the body */
};

struct table_body {
    char name[JOULE_STORE_NAME_MAX];
    uint64_t is_stored;
    struct joule_layout layout; /* the columns that are there */
};

struct attribute_body {
    char name[JOULE_STORE_NAME_MAX];
    uint32_t elements, bytes;
    struct joule_rowtype type; /* the columns that are there; then the data */
};

struct data_body {
    uint64_t rows;
    uint32_t mask, bytes;
};

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Room for a record with [bytes] of body. */
static void *begin(struct joule_out *out, enum kind kind, size_t bytes,
                   struct joule_error *err)
{
    struct head *head = joule_out_room(out, sizeof(*head) + padded(bytes), err);

    if (!head)
        return NULL;
    head->kind = kind;
    head->bytes = (uint32_t)bytes;
    return head + 1;
}

static int end(struct joule_out *out, size_t bytes)
{
    joule_out_commit(out, sizeof(struct head) + padded(bytes));
    return 0;
}

static int send_text(struct joule_out *out, enum kind kind, const char *text,
                     struct joule_error *err)
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
    return send_text(arg, GROUP, name, err);
}

static int send_leave(void *arg, struct joule_error *err)
{
    return begin(arg, LEAVE, 0, err) ? end(arg, 0) : -1;
}

static int send_note(void *arg, const char *sentence, struct joule_error *err)
{
    return send_text(arg, NOTE, sentence, err);
}

static int send_attribute(void *arg, const struct joule_attribute *a,
                          struct joule_error *err)
{
    size_t type = joule_rowtype_bytes(&a->type);
    size_t head = offsetof(struct attribute_body, type);
    size_t bytes = head + type + a->bytes;
    struct attribute_body *body = begin(arg, ATTRIBUTE, bytes, err);

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
    size_t bytes = offsetof(struct table_body, layout) + layout_bytes(layout);
    struct table_body *body = begin(arg, TABLE, bytes, err);

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
    uint64_t *body = begin(arg, TABLE_END, sizeof(lost), err);

    if (!body)
        return -1;
    *body = lost;
    return end(arg, sizeof(lost));
}

/* Rows are read to where they are sent from. */
static void *send_room(void *arg, size_t size, struct joule_error *err)
{
    struct data_body *body = begin(arg, ROWS, sizeof(*body) + size, err);

    return body ? body + 1 : NULL;
}

static int send_data(struct joule_out *out, enum kind kind, uint64_t rows,
                     uint32_t mask, const void *data, size_t len)
{
    /* The same room as before. */
    struct data_body *body = begin(out, kind, sizeof(*body) + len, NULL);

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
    return send_data(arg, ROWS, count, 0, rows, bytes);
}

static int send_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                      size_t len, struct joule_error *err)
{
    (void)err;
    return send_data(arg, CHUNK, rows, mask, data, len);
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
        .arg = out,
    };
}

static int bad(struct joule_error *err, const char *what)
{
    return joule_error_set(err, EBADMSG, "its reader sent a wrong %s", what);
}

static bool is_name(const char *name, size_t room)
{
    size_t len = strnlen(name, room);

    return len > 0 && len < room && len < JOULE_STORE_NAME_MAX &&
           !memchr(name, '/', len) && strcmp(name, ".") != 0;
}

static int take_group(struct joule_decoder *d, const void *body, size_t bytes,
                      struct joule_error *err)
{
    char name[JOULE_STORE_NAME_MAX] = "";

    if (bytes > sizeof(name) || d->in_table || d->depth >= DEPTH_MAX)
        return bad(err, "group");
    memcpy(name, body, bytes);
    if (!is_name(name, sizeof(name)))
        return bad(err, "group name");
    d->depth++;
    return d->visitor->group(d->visitor->arg, name, err);
}

static int take_leave(struct joule_decoder *d, struct joule_error *err)
{
    if (d->in_table || d->depth == 0)
        return bad(err, "end of a group");
    d->depth--;
    return d->visitor->leave(d->visitor->arg, err);
}

static int take_note(struct joule_decoder *d, const void *body, size_t bytes,
                     struct joule_error *err)
{
    struct joule_error text = {""};

    if (bytes > sizeof(text.text))
        return bad(err, "note");
    memcpy(text.text, body, bytes);
    text.text[sizeof(text.text) - 1] = '\0';
    if (text.text[0] == '\0')
        return bad(err, "note");
    joule_error_set(&text, 0, "%s", text.text); /* no control characters */
    return d->visitor->note(d->visitor->arg, text.text, err);
}

static int take_attribute(struct joule_decoder *d, const void *body,
                          size_t bytes, struct joule_error *err)
{
    struct joule_attribute *a = &d->attribute;
    const size_t head = offsetof(struct attribute_body, type);
    struct attribute_body copy;
    size_t type;

    if (bytes < head + offsetof(struct joule_rowtype, column))
        return bad(err, "attribute");
    memcpy(&copy, body, head);
    type = bytes - head;
    if (copy.bytes > JOULE_ATTRIBUTE_MAX || copy.bytes > type)
        return bad(err, "attribute");
    type -= copy.bytes;
    if (type > sizeof(a->type))
        return bad(err, "attribute");
    memcpy(&a->type, (const char *)body + head, type);
    if (!is_name(copy.name, sizeof(copy.name)) ||
        joule_rowtype_check(&a->type, type) < 0 ||
        (uint64_t)a->type.size * (copy.elements ? copy.elements : 1) !=
            copy.bytes)
        return bad(err, "attribute");
    memcpy(a->name, copy.name, sizeof(a->name));
    a->elements = copy.elements;
    a->bytes = copy.bytes;
    memcpy(a->data, (const char *)body + head + type, copy.bytes);
    return d->visitor->attribute(d->visitor->arg, a, err);
}

static bool layout_is_sound(const struct joule_layout *layout)
{
    const struct joule_pipeline *p = &layout->pipeline;

    if (layout->is_known > 1 || p->count > JOULE_FILTERS_MAX ||
        layout->chunk_rows > JOULE_CHUNK_MAX / layout->type.size)
        return false;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->filter[i].kind > JOULE_FILTER_FLETCHER32 ||
            p->filter[i].level > 9 || p->filter[i].element > JOULE_ROW_MAX)
            return false;
    return true;
}

static int take_table(struct joule_decoder *d, const void *body, size_t bytes,
                      struct joule_error *err)
{
    struct joule_layout *layout = &d->layout;
    const size_t head = offsetof(struct table_body, layout);
    const size_t fixed = offsetof(struct joule_layout, type);
    struct table_body copy; /* its head alone */

    if (d->in_table || bytes < head + fixed || bytes > sizeof(copy))
        return bad(err, "table");
    memcpy(&copy, body, head);
    memcpy(layout, (const char *)body + head, bytes - head);
    if (!is_name(copy.name, sizeof(copy.name)) || copy.is_stored > 1 ||
        joule_rowtype_check(&layout->type, bytes - head - fixed) < 0 ||
        !layout_is_sound(layout) ||
        (copy.is_stored && (!layout->is_known || layout->chunk_rows == 0)))
        return bad(err, "table");
    d->in_table = true;
    d->is_stored = copy.is_stored == 1;
    return d->visitor->table(d->visitor->arg, copy.name, layout, d->is_stored,
                             err);
}

static int take_table_end(struct joule_decoder *d, const void *body,
                          size_t bytes, struct joule_error *err)
{
    uint64_t lost;

    if (!d->in_table || bytes != sizeof(lost))
        return bad(err, "end of a table");
    memcpy(&lost, body, sizeof(lost));
    d->in_table = false;
    return d->visitor->table_end(d->visitor->arg, lost, err);
}

static int take_data(struct joule_decoder *d, enum kind kind, const void *body,
                     size_t bytes, struct joule_error *err)
{
    const struct joule_visitor *v = d->visitor;
    const char *data = (const char *)body + sizeof(struct data_body);
    struct data_body head;

    if (!d->in_table || bytes < sizeof(head) ||
        d->is_stored != (kind == CHUNK) || !v->rows || !v->chunk)
        return bad(err, "row");
    memcpy(&head, body, sizeof(head));
    if (head.bytes != bytes - sizeof(head) || head.rows == 0)
        return bad(err, "row");
    if (kind == CHUNK) {
        if (head.rows > d->layout.chunk_rows || head.bytes == 0)
            return bad(err, "chunk");
        return v->chunk(v->arg, head.rows, head.mask, data, head.bytes, err);
    }
    if (head.rows > bytes || head.rows * d->layout.type.size != head.bytes)
        return bad(err, "row");
    return v->rows(v->arg, data, head.rows, head.bytes, err);
}

static int take_record(struct joule_decoder *d, uint32_t kind, const void *body,
                       size_t bytes, struct joule_error *err)
{
    switch (kind) {
    case GROUP:
        return take_group(d, body, bytes, err);
    case LEAVE:
        return take_leave(d, err);
    case ATTRIBUTE:
        return take_attribute(d, body, bytes, err);
    case TABLE:
        return take_table(d, body, bytes, err);
    case TABLE_END:
        return take_table_end(d, body, bytes, err);
    case ROWS:
    case CHUNK:
        return take_data(d, (enum kind)kind, body, bytes, err);
    case NOTE:
        return take_note(d, body, bytes, err);
    default:
        return bad(err, "record");
    }
}

void joule_decoder_start(struct joule_decoder *d,
                         const struct joule_visitor *visitor)
{
    /* The rest of it is large, and filled before it is read. */
    memset(d, 0, offsetof(struct joule_decoder, layout));
    d->visitor = visitor;
}

int joule_decoder_take(struct joule_decoder *d, const void *data, size_t len,
                       struct joule_error *err)
{
    const char *at = data;

    while (len > 0) {
        struct head head;

        if (len < sizeof(head))
            return bad(err, "record");
        memcpy(&head, at, sizeof(head));
        at += sizeof(head);
        len -= sizeof(head);
        if (padded(head.bytes) > len)
            return bad(err, "record");
        if (take_record(d, head.kind, at, head.bytes, err) < 0)
            return -1;
        at += padded(head.bytes);
        len -= padded(head.bytes);
    }
    return 0;
}

int joule_decoder_finish(struct joule_decoder *d, struct joule_error *err)
{
    if (d->in_table) {
        d->in_table = false;
        if (d->visitor->table_end(d->visitor->arg, 0, err) < 0)
            return -1;
    }
    while (d->depth > 0) {
        d->depth--;
        if (d->visitor->leave(d->visitor->arg, err) < 0)
            return -1;
    }
    return 0;
}
