/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/readlayout.h"

#include <errno.h>

#include "common/libhdf5/hdferror.h"
#include "common/libhdf5/readtype.h"

static int read_filter(hid_t list, unsigned i, struct joule_pipeline *p)
{
    unsigned values[8] = {0}, flags = 0, info = 0;
    size_t count = sizeof(values) / sizeof(values[0]);
    H5Z_filter_t number;

    number = H5Pget_filter2(list, i, &flags, &count, values, 0, NULL, &info);
    if (number < 0)
        return -1;
    return joule_filter_known((unsigned)number, values[0], &p->filter[i]);
}

static int check_filters(hid_t list, struct joule_layout *layout,
                         struct joule_error *err)
{
    int count = H5Pget_nfilters(list);

    layout->is_known = count >= 0 && count <= JOULE_FILTERS_MAX;
    for (int i = 0; i < count && layout->is_known; i++)
        layout->is_known =
            read_filter(list, (unsigned)i, &layout->pipeline) == 0;
    if (layout->is_known) {
        layout->pipeline.count = (uint32_t)count;
        return 0;
    }
    if (count >= 0 && H5Pall_filters_avail(list) > 0)
        return 0;
    H5Eclear2(H5E_DEFAULT);
    return joule_error_set(err, ENOTSUP, "its filters are not available here");
}

int joule_layout_read(hid_t list, hid_t space, hid_t type,
                      struct joule_layout *layout, struct joule_error *err)
{
    hsize_t rows = 0, chunk_rows = 0;

    if (H5Sget_simple_extent_ndims(space) != 1 ||
        H5Sget_simple_extent_dims(space, &rows, NULL) != 1)
        return joule_error_set(err, ENOTSUP, "it has not one dimension");
    layout->rows = rows;
    if (joule_rowtype_read(type, &layout->type, err) < 0)
        return -1;
    switch (H5Pget_layout(list)) {
    case H5D_CONTIGUOUS:
    case H5D_COMPACT:
        if (H5Pget_external_count(list) == 0)
            return 0;
        return joule_error_set(err, ENOTSUP, "its data is in another file");
    case H5D_CHUNKED:
        break;
    default:
        return joule_error_set(err, ENOTSUP, "its data is in other files");
    }
    if (H5Pget_chunk(list, 1, &chunk_rows) != 1 || chunk_rows == 0)
        return joule_hdf_error(err, EBADMSG, "its chunks are damaged");
    if (chunk_rows > JOULE_CHUNK_MAX / layout->type.size)
        return joule_error_set(err, ENOTSUP,
                               "a chunk of %llu rows is too large to be read",
                               (unsigned long long)chunk_rows);
    layout->chunk_rows = chunk_rows;
    return check_filters(list, layout, err);
}
