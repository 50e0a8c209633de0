/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/nodefile.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct row {
    uint64_t elapsed, epoch, power;
    double package_mw;
    uint64_t elapsed_ns; /* ours alone */
};

/* splitmix64 (Steele, Lea, Flood: OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t nodefile_power(const struct nodefile *n, uint64_t i)
{
    uint64_t state = n->seed * UINT64_C(1000003) + i;

    return 200 + next_random(&state) % 60;
}

static void put_number(hid_t group, const char *name, hid_t type,
                       uint64_t value)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t id = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    H5Awrite(id, H5T_NATIVE_UINT64, &value);
    H5Aclose(id);
    H5Sclose(space);
}

static void put_text(hid_t group, const char *name, const char *text)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t type = H5Tcopy(H5T_C_S1);
    hid_t id;

    H5Tset_size(type, strlen(text));
    id = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(id, type, text);
    H5Aclose(id);
    H5Tclose(type);
    H5Sclose(space);
}

static hid_t row_type(const struct nodefile *n)
{
    size_t size =
        n->ours ? sizeof(struct row) : offsetof(struct row, elapsed_ns);
    hid_t type = H5Tcreate(H5T_COMPOUND, size);

    H5Tinsert(type, "ElapsedTime", offsetof(struct row, elapsed),
              H5T_STD_U64LE);
    H5Tinsert(type, "EpochTime", offsetof(struct row, epoch), H5T_STD_U64LE);
    H5Tinsert(type, "Power", offsetof(struct row, power), H5T_STD_U64LE);
    H5Tinsert(type, "package_0_mW", offsetof(struct row, package_mw),
              H5T_IEEE_F64LE);
    if (n->ours)
        H5Tinsert(type, "ElapsedTimeNs", offsetof(struct row, elapsed_ns),
                  H5T_STD_U64LE);
    return type;
}

static unsigned char *make_rows(const struct nodefile *n, size_t size)
{
    unsigned char *rows = calloc(n->rows + 1, size);

    for (uint64_t i = 0; rows && i < n->rows; i++) {
        uint64_t ns = (i + 1) * UINT64_C(1000000000) / n->rate_hz;
        struct row row = {
            .elapsed = (n->start_ns % UINT64_C(1000000000) + ns) /
                       UINT64_C(1000000000),
            .epoch = (n->start_ns + ns) / UINT64_C(1000000000),
            .power = nodefile_power(n, i),
            .package_mw = (double)nodefile_power(n, i) * 1000.0 / 3.0,
            .elapsed_ns = ns,
        };

        memcpy(rows + i * size, &row, size);
    }
    return rows;
}

/* A whole number of chunks of either layout.  libhdf5 takes notes of each chunk
 * of a write: of all at once, they would be more than the rows. */
#define SLICE 40960

static herr_t put_rows(hid_t id, hid_t type, hid_t space,
                       const unsigned char *data, hsize_t rows)
{
    size_t size = H5Tget_size(type);
    herr_t rc = 0;

    for (hsize_t at = 0; at < rows && rc >= 0; at += SLICE) {
        hsize_t count = rows - at < SLICE ? rows - at : SLICE;
        hid_t memory = H5Screate_simple(1, &count, NULL);

        rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &count,
                                 NULL);
        if (rc >= 0)
            rc = H5Dwrite(id, type, memory, space, H5P_DEFAULT,
                          data + at * size);
        H5Sclose(memory);
    }
    return rc;
}

static int put_table(hid_t group, const char *name, const struct nodefile *n)
{
    hid_t type = row_type(n);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t rows = n->rows, unlimited = H5S_UNLIMITED;
    hsize_t chunk = !n->ours ? 10 : n->rate_hz > 6 ? 4096 : 256;
    hid_t space = H5Screate_simple(1, &rows, &unlimited);
    unsigned char *data = make_rows(n, H5Tget_size(type));
    hid_t id;
    herr_t rc = -1;

    H5Pset_chunk(list, 1, &chunk);
    if (n->ours && !n->plain)
        H5Pset_shuffle(list);
    if (!n->plain)
        H5Pset_deflate(list, n->ours ? 1 : 0);
    if (n->ours && !n->plain)
        H5Pset_fletcher32(list);
    id = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (id >= 0 && data)
        rc = put_rows(id, type, space, data, rows);
    if (id >= 0 && n->ours)
        put_number(id, "Joule Period ns", H5T_STD_U64LE,
                   UINT64_C(1000000000) / n->rate_hz);
    free(data);
    if (id >= 0)
        H5Dclose(id);
    H5Sclose(space);
    H5Pclose(list);
    H5Tclose(type);
    return rc < 0 ? -1 : 0;
}

static void put_attributes(hid_t group, const struct nodefile *n)
{
    time_t start = (time_t)(n->start_ns / UINT64_C(1000000000));
    char text[32];

    put_number(group, "Node Index", H5T_STD_I32LE, n->seed);
    put_text(group, "Node Name", n->node);
    put_number(group, "Number of Tasks", H5T_STD_I32LE, n->tasks);
    put_number(group, "CPUs per Task", H5T_STD_I32LE, 1);
    ctime_r(&start, text);
    text[24] = '\0';
    put_text(group, "Start Time", text);
    if (!n->ours)
        return;
    put_number(group, "Joule Format", H5T_STD_U64LE, 1);
    put_text(group, "Joule Writer", "a test");
    put_number(group, "Joule Start Wall ns", H5T_STD_U64LE, n->start_ns);
    put_number(group, "Joule Start Boot ns", H5T_STD_U64LE, 1000);
    put_number(group, "Joule End ns", H5T_STD_U64LE, 1000);
    put_number(group, "Joule End Wall ns", H5T_STD_U64LE, n->start_ns + 1000);
    put_number(group, "Joule Run", H5T_STD_U64LE, 0);
    put_number(group, "Joule Lost Rows", H5T_STD_U64LE, 0);
}

static hid_t access_list(bool later)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_libver_bounds(list, later ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST,
                         H5F_LIBVER_V110);
    return list;
}

hid_t nodefile_create(const char *path, bool later)
{
    hid_t list = access_list(later);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);

    H5Pclose(list);
    return file;
}

hid_t nodefile_open(const char *path)
{
    hid_t list = access_list(false);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, list);

    H5Pclose(list);
    return file;
}

int nodefile_write(const char *path, const struct nodefile *n)
{
    hid_t file = nodefile_create(path, n->later);
    hid_t group, tasks;
    int rc;

    if (file < 0)
        return -1;
    group = H5Gcreate2(file, n->node, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put_attributes(group, n);
    rc = put_table(group, "Energy", n);
    if (n->tasks) {
        tasks =
            H5Gcreate2(group, "Tasks", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        for (unsigned i = 0; i < n->tasks; i++) {
            char name[16];

            snprintf(name, sizeof(name), "%u", i);
            rc |= put_table(tasks, name, n);
        }
        H5Gclose(tasks);
    }
    H5Gclose(group);
    return H5Fclose(file) < 0 ? -1 : rc;
}

size_t nodefile_damage(unsigned char *data, size_t len, uint64_t seed)
{
    static const uint64_t liked[] = {
        0, 1, 0xFF, 0xFFFF, 0xFFFFFFFF, UINT64_MAX, INT64_MAX, 0x80000000,
    };
    uint64_t state = seed;
    unsigned kind = (unsigned)(next_random(&state) % 4);
    unsigned times = 1 + (unsigned)(next_random(&state) % 8);

    if (len == 0)
        return 0;
    if (kind == 0)
        return (size_t)(next_random(&state) % len);
    for (; times > 0; times--) {
        size_t at = (size_t)(next_random(&state) % len);
        uint64_t value = liked[next_random(&state) % 8];
        size_t width = (size_t)1 << next_random(&state) % 4;

        if (kind == 1)
            data[at] ^= (unsigned char)(1u << next_random(&state) % 8);
        else if (kind == 2)
            data[at] = (unsigned char)next_random(&state);
        else
            memcpy(data + at, &value, width < len - at ? width : len - at);
    }
    return len;
}
