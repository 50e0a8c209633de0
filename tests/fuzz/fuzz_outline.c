/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a profile file, read without libhdf5: in this process, which
 * must not crash.  What has an outline can be walked to its end: as many groups
 * are left as are entered, names are names, and all is within bounds.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/store/outlinewalk.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    int depth;
    uint64_t rows; /* of the table: handed on */
    uint64_t all;  /* it is said to have */
    uint32_t size; /* of a row */
};

static int on_group(void *arg, const char *name, struct joule_error *err)
{
    struct seen *seen = arg;

    (void)err;
    FUZZ_MUST(joule_store_is_name(name));
    seen->depth++;
    return 0;
}

static int on_leave(void *arg, struct joule_error *err)
{
    struct seen *seen = arg;

    (void)err;
    FUZZ_MUST(--seen->depth >= 0);
    return 0;
}

static int on_attribute(void *arg, const struct joule_attribute *a,
                        struct joule_error *err)
{
    (void)arg;
    (void)err;
    FUZZ_MUST(joule_store_is_name(a->name));
    FUZZ_MUST(a->bytes <= JOULE_ATTRIBUTE_MAX);
    FUZZ_MUST(a->bytes == (a->elements ? a->elements : 1) * a->type.size);
    FUZZ_MUST(joule_rowtype_check(&a->type, joule_rowtype_bytes(&a->type)) ==
              0);
    return 0;
}

static int on_table(void *arg, const char *name,
                    const struct joule_layout *layout, bool stored,
                    struct joule_error *err)
{
    struct seen *seen = arg;

    (void)stored;
    (void)err;
    FUZZ_MUST(joule_store_is_name(name));
    FUZZ_MUST(layout->chunk_rows > 0 && layout->is_known);
    seen->rows = 0;
    seen->all = layout->rows;
    seen->size = layout->type.size;
    return 0;
}

static int on_end(void *arg, uint64_t lost, struct joule_error *err)
{
    struct seen *seen = arg;

    (void)err;
    FUZZ_MUST(seen->rows + lost == seen->all);
    return 0;
}

static int on_note(void *arg, const char *sentence, struct joule_error *err)
{
    (void)arg;
    (void)sentence;
    (void)err;
    return 0;
}

static void *on_room(void *arg, size_t size, struct joule_error *err)
{
    static unsigned char room[JOULE_CHUNK_MAX + JOULE_CHUNK_MAX / 8];

    (void)arg;
    (void)err;
    FUZZ_MUST(size <= sizeof(room));
    return room;
}

static int on_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                   struct joule_error *err)
{
    struct seen *seen = arg;
    volatile unsigned char last;

    (void)err;
    FUZZ_MUST(count > 0 && bytes == count * seen->size);
    last = ((const unsigned char *)rows)[bytes - 1];
    (void)last;
    seen->rows += count;
    return 0;
}

static int on_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                    size_t len, struct joule_error *err)
{
    struct seen *seen = arg;
    volatile unsigned char last;

    (void)mask;
    (void)err;
    FUZZ_MUST(rows > 0 && len > 0);
    last = ((const unsigned char *)data)[len - 1];
    (void)last;
    seen->rows += rows;
    return 0;
}

static void walk(const struct joule_outline *outline,
                 struct joule_windows *windows)
{
    struct seen seen = {0};
    const struct joule_visitor v = {
        .group = on_group,
        .leave = on_leave,
        .attribute = on_attribute,
        .table = on_table,
        .table_end = on_end,
        .note = on_note,
        .room = on_room,
        .rows = on_rows,
        .chunk = on_chunk,
        .arg = &seen,
    };
    struct joule_error err = {""};

    FUZZ_MUST(joule_outline_walk(outline, windows, "/", JOULE_WALK_TABLES, &v,
                                 &err) == 0);
    FUZZ_MUST(seen.depth == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct joule_windows *windows;
    struct joule_outline *outline;

    if (fd < 0)
        fd = memfd_create("outline", MFD_CLOEXEC);
    FUZZ_MUST(fd >= 0 && ftruncate(fd, 0) == 0);
    if (size == 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    windows = joule_windows_create(fd, size);
    FUZZ_MUST(windows != NULL);
    outline = joule_outline_read(windows);
    FUZZ_MUST(outline || errno == ENOTSUP || errno == ENOMEM);
    if (outline)
        walk(outline, windows);
    joule_outline_destroy(outline);
    joule_windows_destroy(windows);
    return 0;
}
