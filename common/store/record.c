/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/store/recordbody.h"

#define DEPTH_MAX 32

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
    const size_t head = offsetof(struct joule_record_attribute, type);
    struct joule_record_attribute copy;
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
    const size_t head = offsetof(struct joule_record_table, layout);
    const size_t fixed = offsetof(struct joule_layout, type);
    struct joule_record_table copy; /* its head alone */

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

static int take_data(struct joule_decoder *d, enum joule_record_kind kind,
                     const void *body, size_t bytes, struct joule_error *err)
{
    const struct joule_visitor *v = d->visitor;
    const char *data = (const char *)body + sizeof(struct joule_record_data);
    struct joule_record_data head;

    if (!d->in_table || bytes < sizeof(head) ||
        d->is_stored != (kind == JOULE_RECORD_CHUNK) || !v->rows || !v->chunk)
        return bad(err, "row");
    memcpy(&head, body, sizeof(head));
    if (head.bytes != bytes - sizeof(head) || head.rows == 0)
        return bad(err, "row");
    if (kind == JOULE_RECORD_CHUNK) {
        if (head.rows > d->layout.chunk_rows || head.bytes == 0)
            return bad(err, "chunk");
        return v->chunk(v->arg, head.rows, head.mask, data, head.bytes, err);
    }
    if (head.rows > bytes || head.rows * d->layout.type.size != head.bytes)
        return bad(err, "row");
    return v->rows(v->arg, data, head.rows, head.bytes, err);
}

/* Whole chunks, of which only the last may have fewer rows.  What is behind the
 * end of the file is seen when it is read. */
static bool run_is_sound(const struct joule_run *run,
                         const struct joule_layout *layout)
{
    size_t raw = (size_t)layout->chunk_rows * layout->type.size;
    size_t chunks = run->len / raw;

    return run->len > 0 && run->len <= JOULE_RUN_MAX && run->len % raw == 0 &&
           run->at <= (uint64_t)INT64_MAX - JOULE_RUN_MAX &&
           run->rows > (chunks - 1) * layout->chunk_rows &&
           run->rows <= chunks * layout->chunk_rows;
}

static int take_run(struct joule_decoder *d, const void *body, size_t bytes,
                    struct joule_error *err)
{
    const struct joule_visitor *v = d->visitor;
    struct joule_run run;

    if (!d->in_table || !d->is_stored || !v->run || bytes != sizeof(run))
        return bad(err, "run");
    memcpy(&run, body, sizeof(run));
    if (!run_is_sound(&run, &d->layout))
        return bad(err, "run");
    return v->run(v->arg, &run, err);
}

static int take_record(struct joule_decoder *d, uint32_t kind, const void *body,
                       size_t bytes, struct joule_error *err)
{
    switch (kind) {
    case JOULE_RECORD_GROUP:
        return take_group(d, body, bytes, err);
    case JOULE_RECORD_LEAVE:
        return take_leave(d, err);
    case JOULE_RECORD_ATTRIBUTE:
        return take_attribute(d, body, bytes, err);
    case JOULE_RECORD_TABLE:
        return take_table(d, body, bytes, err);
    case JOULE_RECORD_TABLE_END:
        return take_table_end(d, body, bytes, err);
    case JOULE_RECORD_ROWS:
    case JOULE_RECORD_CHUNK:
        return take_data(d, (enum joule_record_kind)kind, body, bytes, err);
    case JOULE_RECORD_NOTE:
        return take_note(d, body, bytes, err);
    case JOULE_RECORD_RUN:
        return take_run(d, body, bytes, err);
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
        struct joule_record_head head;

        if (len < sizeof(head))
            return bad(err, "record");
        memcpy(&head, at, sizeof(head));
        at += sizeof(head);
        len -= sizeof(head);
        if (joule_record_padded(head.bytes) > len)
            return bad(err, "record");
        if (take_record(d, head.kind, at, head.bytes, err) < 0)
            return -1;
        at += joule_record_padded(head.bytes);
        len -= joule_record_padded(head.bytes);
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
