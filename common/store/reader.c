/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/store/filedriver.h"
#include "common/store/hdferror.h"
#include "common/store/readattr.h"

#define DEPTH_MAX      16
#define OBJECTS_MAX    1000000
#define ATTRIBUTES_MAX 1024

/* Chunks from this size on are handed on as they are, smaller ones if they
 * are compressed. */
#define STORED_MIN ((size_t)16 << 10)
#define STORED_MAX ((size_t)2112 << 10)

struct joule_reader {
    struct joule_filedriver driver;
    struct joule_rows_file rows_file;
    hid_t file, driver_id;
};

/* Where the objects lie that were visited: open addressing, grown by twos. */
struct seen {
    haddr_t *address; /* 0: free */
    size_t room, count;
};

struct walk {
    struct joule_reader *reader;
    enum joule_walk how;
    const struct joule_visitor *visitor;
    struct joule_error *err;
    struct seen seen;
    unsigned depth;
    struct joule_attribute attribute; /* large */
};

static int open_file(struct joule_reader *r, struct joule_error *err)
{
    hid_t list = joule_filedriver_list(&r->driver, &r->driver_id);

    if (list < 0)
        return joule_hdf_error(err, ENOMEM, "cannot set up the reading");
    /* With SWMR_READ, libhdf5 would read what is damaged a hundred times, and
     * sleep in between for a writer to mend it. */
    if (H5Pset_metadata_read_attempts(list, 1) < 0) {
        H5Pclose(list);
        H5FDunregister(r->driver_id);
        return joule_hdf_error(err, ENOMEM, "cannot set up the reading");
    }
    r->file = H5Fopen("file", H5F_ACC_RDONLY, list);
    if (r->file < 0) {
        /* Marked as open by a writer that is gone, perhaps. */
        H5Eclear2(H5E_DEFAULT);
        r->file = H5Fopen("file", H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, list);
    }
    if (r->file < 0) {
        H5Eclear2(H5E_DEFAULT);
        r->driver.is_cut = true;
        r->file = H5Fopen("file", H5F_ACC_RDONLY, list);
    }
    H5Pclose(list);
    if (r->file >= 0)
        return 0;
    joule_hdf_error(err, EBADMSG, "it is no HDF5 file or is damaged");
    H5FDunregister(r->driver_id);
    return -1;
}

/* Bytes of somebody else's may stand in front of the file: then addresses count
 * from where it begins. */
static bool begins_later(struct joule_windows *windows)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    const unsigned char *at =
        joule_windows_look(windows, 0, sizeof(signature) - 1);

    return !at || memcmp(at, signature, sizeof(signature) - 1) != 0;
}

struct joule_reader *joule_reader_open(int fd, struct joule_error *err)
{
    struct joule_reader *r;
    struct stat st;

    if (fstat(fd, &st) < 0) {
        joule_error_set(err, errno, "it cannot be examined: %m");
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        joule_error_set(err, EINVAL, "it is no regular file");
        return NULL;
    }
    if (st.st_size == 0) {
        joule_error_set(err, ENODATA, "it is empty");
        return NULL;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->driver.windows = joule_windows_create(fd, (uint64_t)st.st_size);
    r->rows_file.windows = r->driver.windows;
    if (!r->driver.windows)
        joule_error_set(err, ENOMEM, "out of memory");
    if (!r->driver.windows || open_file(r, err) < 0) {
        int saved = errno;

        joule_windows_destroy(r->driver.windows);
        free(r);
        errno = saved;
        return NULL;
    }
    r->rows_file.is_moved = begins_later(r->driver.windows);
    return r;
}

void joule_reader_close(struct joule_reader *r)
{
    if (!r)
        return;
    H5Fclose(r->file);
    H5FDunregister(r->driver_id);
    H5Eclear2(H5E_DEFAULT);
    joule_windows_destroy(r->driver.windows);
    free(r);
}

bool joule_reader_is_cut(const struct joule_reader *r)
{
    return r->driver.is_cut;
}

/* 1: it is new and noted; 0: it was there; -1: no memory, or too many. */
static int see(struct seen *seen, haddr_t address)
{
    size_t at;

    if (seen->count >= OBJECTS_MAX)
        return -1;
    if (seen->count * 2 >= seen->room) {
        struct seen more = {.room = seen->room ? seen->room * 2 : 64};

        more.address = calloc(more.room, sizeof(*more.address));
        if (!more.address)
            return -1;
        for (size_t i = 0; i < seen->room; i++)
            if (seen->address[i])
                see(&more, seen->address[i]);
        free(seen->address);
        *seen = more;
    }
    for (at = (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 20);; at++) {
        haddr_t *slot = &seen->address[at & (seen->room - 1)];

        if (*slot == address)
            return 0;
        if (*slot == 0) {
            *slot = address;
            seen->count++;
            return 1;
        }
    }
}

static int note(struct walk *w, const char *name, const char *reason)
{
    struct joule_error text;

    joule_error_set(&text, 0, "%.100s: %.300s", name, reason);
    return w->visitor->note(w->visitor->arg, text.text, w->err);
}

/* What another reader, and a path, can do with. */
static bool is_name(const char *name)
{
    return *name != '\0' && strcmp(name, ".") != 0 &&
           strlen(name) < JOULE_STORE_NAME_MAX && !strchr(name, '/');
}

static herr_t visit_attribute(hid_t object, const char *name,
                              const H5A_info_t *info, void *arg)
{
    struct walk *w = arg;
    struct joule_attribute *a = &w->attribute;

    (void)info;
    if (!is_name(name))
        return note(w, name, "an attribute with such a name is left out");
    strcpy(a->name, name);
    if (joule_readattr(object, name, a) < 0)
        return note(w, name, "the attribute cannot be read");
    return w->visitor->attribute(w->visitor->arg, a, w->err);
}

static int visit_attributes(struct walk *w, hid_t object)
{
    struct joule_error *err = w->err;
    int rc;

    if (err)
        err->text[0] = '\0';
    rc = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_attribute,
                     w);
    if (rc >= 0)
        return 0;
    if (err && err->text[0])
        return -1;
    H5Eclear2(H5E_DEFAULT);
    return note(w, "attributes", "they cannot be read");
}

static int send_rows(struct walk *w, struct joule_rows *rows)
{
    const struct joule_visitor *v = w->visitor;
    const struct joule_layout *layout = joule_rows_layout(rows);
    size_t batch = (size_t)joule_batch_rows(layout);

    for (;;) {
        const void *from;
        size_t count;
        void *room = v->room(v->arg, batch * layout->type.size, w->err);

        if (!room)
            return -1;
        count = joule_rows_read(rows, room, batch, &from);
        if (count == 0)
            return 0;
        if (v->rows(v->arg, from, count, count * layout->type.size, w->err) < 0)
            return -1;
    }
}

static int send_chunks(struct walk *w, struct joule_rows *rows)
{
    const struct joule_visitor *v = w->visitor;
    const struct joule_layout *layout = joule_rows_layout(rows);
    size_t most =
        joule_unfilter_bound((size_t)layout->chunk_rows * layout->type.size);

    for (;;) {
        struct joule_run run;
        uint64_t first = 0, left;
        uint32_t mask = 0;
        size_t len;
        void *room;

        if (v->run && joule_rows_skip_plain(rows, &run)) {
            if (v->run(v->arg, &run, w->err) < 0)
                return -1;
            continue;
        }
        room = v->room(v->arg, most, w->err);
        if (!room)
            return -1;
        len = joule_rows_read_stored(rows, room, most, &first, &mask);
        if (len == 0)
            return 0;
        left = layout->rows - first;
        if (left > layout->chunk_rows)
            left = layout->chunk_rows;
        if (v->chunk(v->arg, left, mask, room, len, w->err) < 0)
            return -1;
    }
}

static bool is_compressed(const struct joule_pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->filter[i].kind == JOULE_FILTER_DEFLATE && p->filter[i].level > 0)
            return true;
    return false;
}

/* Whether the chunks are worth being left as they are. */
static bool is_sent_stored(const struct joule_layout *layout)
{
    size_t raw = (size_t)layout->chunk_rows * layout->type.size;

    return layout->is_known && layout->chunk_rows > 0 &&
           (raw >= STORED_MIN || is_compressed(&layout->pipeline)) &&
           joule_unfilter_bound(raw) <= STORED_MAX;
}

static int visit_table(struct walk *w, hid_t group, const char *name)
{
    const struct joule_visitor *v = w->visitor;
    struct joule_error why;
    struct joule_rows *rows =
        joule_rows_open(group, name, &w->reader->rows_file, &why);
    bool stored;
    int rc;

    if (!rows)
        return note(w, name, why.text);
    stored =
        w->how == JOULE_WALK_TABLES && is_sent_stored(joule_rows_layout(rows));
    rc = v->table(v->arg, name, joule_rows_layout(rows), stored, w->err);
    if (rc == 0)
        rc = visit_attributes(w, joule_rows_dataset(rows));
    if (rc == 0 && w->how == JOULE_WALK_TABLES)
        rc = stored ? send_chunks(w, rows) : send_rows(w, rows);
    if (rc == 0)
        rc = v->table_end(v->arg, joule_rows_lost(rows), w->err);
    joule_rows_close(rows);
    return rc;
}

static int visit_members(struct walk *w, hid_t group);

static int visit_group(struct walk *w, hid_t parent, const char *name)
{
    const struct joule_visitor *v = w->visitor;
    hid_t group;
    int rc;

    if (w->depth >= DEPTH_MAX)
        return note(w, name, "too many groups lie within each other");
    group = H5Gopen2(parent, name, H5P_DEFAULT);
    if (group < 0) {
        H5Eclear2(H5E_DEFAULT);
        return note(w, name, "the group cannot be opened");
    }
    w->depth++;
    rc = v->group(v->arg, name, w->err);
    if (rc == 0)
        rc = visit_members(w, group);
    if (rc == 0)
        rc = v->leave(v->arg, w->err);
    w->depth--;
    H5Gclose(group);
    return rc;
}

static int visit_object(struct walk *w, hid_t group, const char *name)
{
    H5O_info_t info;

#if H5_VERSION_GE(1, 10, 3)
    if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) <
        0) {
#else
    if (H5Oget_info_by_name(group, name, &info, H5P_DEFAULT) < 0) {
#endif
        H5Eclear2(H5E_DEFAULT);
        return note(w, name, "it cannot be opened");
    }
    switch (see(&w->seen, info.addr)) {
    case 0:
        return note(w, name, "it is there twice");
    case -1:
        return joule_error_set(w->err, E2BIG, "too many objects");
    default:
        break;
    }
    if (info.type == H5O_TYPE_GROUP)
        return visit_group(w, group, name);
    if (info.type == H5O_TYPE_DATASET)
        return visit_table(w, group, name);
    return note(w, name, "it is neither a group nor a table");
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info,
                         void *arg)
{
    struct walk *w = arg;

    if (info->type != H5L_TYPE_HARD)
        return note(w, name, "a link to another place is not followed");
    if (!is_name(name))
        return note(w, name, "an object with such a name is left out");
    return visit_object(w, group, name);
}

/* The attributes of a group and what is in it. */
static int visit_members(struct walk *w, hid_t group)
{
    struct joule_error *err = w->err;
    hsize_t index = 0;

    if (visit_attributes(w, group) < 0)
        return -1;
    err->text[0] = '\0';
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &index, visit_link, w) >=
        0)
        return 0;
    if (err->text[0])
        return -1;
    H5Eclear2(H5E_DEFAULT);
    return note(w, "a group", "what is in it cannot be listed");
}

int joule_reader_walk(struct joule_reader *r, const char *path,
                      enum joule_walk how, const struct joule_visitor *visitor,
                      struct joule_error *err)
{
    struct joule_error own;
    struct walk *w = calloc(1, sizeof(*w));
    hid_t group;
    int rc, saved;

    if (!w)
        return joule_error_set(err, ENOMEM, "out of memory");
    w->reader = r;
    w->how = how;
    w->visitor = visitor;
    w->err = err ? err : &own;
    group = H5Gopen2(r->file, path, H5P_DEFAULT);
    if (group < 0) {
        free(w);
        return joule_hdf_error(err, ENOENT, "there is no group %s", path);
    }
    rc = visit_members(w, group);
    saved = errno;
    H5Gclose(group);
    free(w->seen.address);
    free(w);
    errno = saved;
    return rc;
}

struct joule_rows *joule_reader_table(struct joule_reader *r, const char *path,
                                      struct joule_error *err)
{
    return joule_rows_open(r->file, path, &r->rows_file, err);
}
