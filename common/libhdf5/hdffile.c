/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/hdffile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/libhdf5/filedriver.h"
#include "common/libhdf5/hdferror.h"
#include "common/libhdf5/hdftable.h"
#include "common/libhdf5/readattr.h"
#include "common/store/tablesend.h"

/* Of no file.  libhdf5 2.x asks where a name that is not absolute belongs, and
 * aborts where that cannot be said. */
#define NAME "/joule"

#define DEPTH_MAX   16
#define OBJECTS_MAX 1000000

struct joule_libhdf5_file {
    struct joule_filedriver driver;
    bool is_moved; /* addresses in it do not count from its beginning */
    hid_t file, driver_id;
};

/* Where the objects lie that were visited: open addressing, grown by twos. */
struct seen {
    haddr_t *address; /* 0: free */
    size_t room, count;
};

struct walk {
    struct joule_libhdf5_file *file;
    enum joule_walk how;
    const struct joule_visitor *visitor;
    struct joule_error *err;
    struct seen seen;
    unsigned depth;
    hid_t dataset;                    /* of the table that is being sent */
    struct joule_attribute attribute; /* large */
};

static int open_file(struct joule_libhdf5_file *r, struct joule_error *err)
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
    r->file = H5Fopen(NAME, H5F_ACC_RDONLY, list);
    if (r->file < 0) {
        /* Marked as open by a writer that is gone, perhaps. */
        H5Eclear2(H5E_DEFAULT);
        r->file = H5Fopen(NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, list);
    }
    if (r->file < 0) {
        H5Eclear2(H5E_DEFAULT);
        r->driver.is_cut = true;
        r->file = H5Fopen(NAME, H5F_ACC_RDONLY, list);
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

static struct joule_libhdf5_file *file_open(struct joule_windows *windows,
                                            struct joule_error *err)
{
    struct joule_libhdf5_file *r = calloc(1, sizeof(*r));

    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->driver.windows = windows;
    if (open_file(r, err) < 0) {
        int saved = errno;

        free(r);
        errno = saved;
        return NULL;
    }
    r->is_moved = begins_later(windows);
    return r;
}

static void file_close(struct joule_libhdf5_file *r)
{
    H5Fclose(r->file);
    H5FDunregister(r->driver_id);
    H5Eclear2(H5E_DEFAULT);
    free(r);
}

static bool file_is_cut(const struct joule_libhdf5_file *r)
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

static herr_t visit_attribute(hid_t object, const char *name,
                              const H5A_info_t *info, void *arg)
{
    struct walk *w = arg;
    struct joule_attribute *a = &w->attribute;

    (void)info;
    if (!joule_store_is_name(name))
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

static int table_attributes(void *arg, struct joule_error *err)
{
    struct walk *w = arg;

    (void)err;
    return visit_attributes(w, w->dataset);
}

static int visit_table(struct walk *w, hid_t group, const char *name)
{
    struct joule_error why;
    struct joule_rows *rows =
        joule_hdftable_open(group, name, w->file->driver.windows,
                            !w->file->is_moved, &w->dataset, &why);
    int rc;

    if (!rows)
        return note(w, name, why.text);
    rc = joule_table_send(rows, name, w->how, w->visitor, table_attributes, w,
                          w->err);
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
    if (!joule_store_is_name(name))
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

static int file_walk(struct joule_libhdf5_file *r, const char *path,
                     enum joule_walk how, const struct joule_visitor *visitor,
                     struct joule_error *err)
{
    struct joule_error own;
    struct walk *w;
    hid_t group;
    int rc, saved;

    w = calloc(1, sizeof(*w));
    if (!w)
        return joule_error_set(err, ENOMEM, "out of memory");
    w->file = r;
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

static struct joule_rows *file_table(struct joule_libhdf5_file *r,
                                     const char *path, struct joule_error *err)
{
    return joule_hdftable_open(r->file, path, r->driver.windows, !r->is_moved,
                               NULL, err);
}

const struct joule_libhdf5 joule_libhdf5 = {
    .version = JOULE_LIBHDF5_VERSION,
    .prepare = joule_hdf_quiet,
    .open = file_open,
    .close = file_close,
    .is_cut = file_is_cut,
    .walk = file_walk,
    .table = file_table,
};
