/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/profile/hdf5_driver.h"

/* The disk is full after so many bytes; -1: it never is. */
static long room = -1;

ssize_t __real_pwrite(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at);

ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at)
{
    if (room == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (room > 0 && (long)size > room)
        size = (size_t)room;
    if (room > 0)
        room -= (long)size;
    return __real_pwrite(fd, buf, size, at);
}

static char path[64];
static int fd;
static struct joule_error err;

static void setup(void)
{
    strcpy(path, "/tmp/joule-driver.XXXXXX");
    fd = mkstemp(path);
    joule_hdf5_prepare();
    room = -1;
}

static void teardown(void)
{
    close(fd);
    unlink(path);
}

START_TEST(what_is_no_file)
{
    const char text[] = "a letter to somebody";

    ck_assert_int_lt(joule_hdf5_open_fd(-1, &err), 0);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_lt(joule_hdf5_create_fd(-1, &err), 0);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_lt(joule_hdf5_open_fd(fd, &err), 0);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_int_eq(write(fd, text, sizeof(text)), sizeof(text));
    ck_assert_int_lt(joule_hdf5_open_fd(fd, &err), 0);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "no HDF5 file"));
    ck_assert_int_lt(joule_hdf5_create_fd(fd, &err), 0);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(joule_hdf5_close(-1, &err), 0);
}
END_TEST

/* Numbers i * i in a data set, in chunks of [chunk] or (0) in one piece. */
static hid_t put_numbers(hid_t file, const char *name, uint64_t count,
                         hsize_t chunk)
{
    hsize_t size = count, unlimited = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &size, chunk ? &unlimited : NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), set;
    uint64_t *data = calloc(count + 1, sizeof(*data));

    for (uint64_t i = 0; i < count; i++)
        data[i] = i * i;
    if (chunk)
        H5Pset_chunk(list, 1, &chunk);
    set = H5Dcreate2(file, name, H5T_STD_U64LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    free(data);
    H5Pclose(list);
    H5Sclose(space);
    return set;
}

static void check_numbers(hid_t file, const char *name, uint64_t count)
{
    uint64_t *data = calloc(count + 1, sizeof(*data));
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);

    ck_assert_int_ge(set, 0);
    ck_assert_int_ge(
        H5Dread(set, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
        0);
    for (uint64_t i = 0; i < count; i++)
        if (data[i] != i * i)
            ck_abort_msg("number %llu", (unsigned long long)i);
    H5Dclose(set);
    free(data);
}

/* Sizes around those of a block, so that reads and writes begin and end within
 * one, at its border, and pass over some. */
START_TEST(what_is_written_is_read)
{
    static const uint64_t counts[] = {0,    1,     100,   8191,   8192,
                                      8193, 16385, 30000, 1 << 18};
    const size_t sizes = sizeof(counts) / sizeof(counts[0]);
    hid_t file = joule_hdf5_create_fd(fd, &err);
    char name[32];

    ck_assert_int_ge(file, 0);
    for (size_t i = 0; i < sizes * 3; i++) {
        static const hsize_t chunks[] = {0, 1000, 8192};

        snprintf(name, sizeof(name), "set%zu", i);
        H5Dclose(put_numbers(file, name, counts[i / 3] + 1, chunks[i % 3]));
        /* What is still in blocks, too. */
        check_numbers(file, name, counts[i / 3] + 1);
    }
    ck_assert_int_eq(joule_hdf5_write_error(file), 0);
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
    file = joule_hdf5_open_fd(fd, &err);
    ck_assert_int_ge(file, 0);
    ck_assert(!joule_hdf5_is_cut(file));
    for (size_t i = sizes * 3; i-- > 0;) {
        snprintf(name, sizeof(name), "set%zu", i);
        check_numbers(file, name, counts[i / 3] + 1);
    }
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
}
END_TEST

/* The same file as libhdf5's own driver reads it, and not a byte longer than
 * its contents. */
START_TEST(libhdf5_reads_it)
{
    struct stat st;
    hid_t file = joule_hdf5_create_fd(fd, &err), set;

    for (int i = 0; i < 500; i++) {
        char name[16];

        snprintf(name, sizeof(name), "g%d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    set = put_numbers(file, "g7/numbers", 50000, 1000);
    H5Dclose(set);
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    check_numbers(file, "g7/numbers", 50000);
    H5Fclose(file);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_lt(st.st_size, 50000 * 8 + 500000);
}
END_TEST

/* No room after [_i] KiB: told, with the disk's own word for it, and nothing is
 * left open. */
START_TEST(a_full_disk_is_told)
{
    hid_t file;

    room = _i * 1024;
    file = joule_hdf5_create_fd(fd, &err);
    ck_assert_int_ge(file, 0);
    for (int i = 0; i < 20; i++) {
        char name[16];
        hid_t set;

        snprintf(name, sizeof(name), "set%d", i);
        set = put_numbers(file, name, 20000, i % 2 ? 0 : 1000);
        if (set >= 0)
            H5Dclose(set);
    }
    ck_assert_int_eq(joule_hdf5_close(file, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.text, "No space left"));
    ck_assert_int_eq((int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_FILE),
                     0);
}
END_TEST

/* What is missing is an error, and never zeros. */
START_TEST(the_end_is_missing)
{
    hid_t file = joule_hdf5_create_fd(fd, &err), set;
    uint64_t *data = calloc(100000, sizeof(*data));

    H5Dclose(put_numbers(file, "first", 1000, 0));
    H5Dclose(put_numbers(file, "last", 100000, 0));
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
    ck_assert_int_eq(ftruncate(fd, 400000), 0);
    file = joule_hdf5_open_fd(fd, &err);
    ck_assert_int_ge(file, 0);
    ck_assert(joule_hdf5_is_cut(file));
    check_numbers(file, "first", 1000);
    set = H5Dopen2(file, "last", H5P_DEFAULT);
    ck_assert_uint_eq(joule_hdf5_size(set), 400000);
    ck_assert_int_lt(
        H5Dread(set, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
        0);
    H5Dclose(set);
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
    free(data);
}
END_TEST

/* A file whose writer did not close it, which HDF5 marks. */
START_TEST(marked_as_open)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), file;
    unsigned char mark = 5;

    H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_fapl_core(list, 65536, false);
    file = H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Dclose(put_numbers(file, "numbers", 100, 0));
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    {
        ssize_t size = H5Fget_file_image(file, NULL, 0);
        void *image = malloc((size_t)size);

        H5Fget_file_image(file, image, (size_t)size);
        ck_assert_int_eq(write(fd, image, (size_t)size), size);
        free(image);
    }
    H5Fclose(file);
    H5Pclose(list);
    ck_assert_int_eq(pwrite(fd, &mark, 1, 11), 1);
    /* With that the checksum is wrong: it is refused at once, not after a
     * hundred attempts. */
    alarm(5);
    ck_assert_int_lt(joule_hdf5_open_fd(fd, &err), 0);
    alarm(0);
    ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

/* Bytes of somebody else's stand in front of some files. */
START_TEST(a_user_block)
{
    hid_t list = H5Pcreate(H5P_FILE_CREATE), file;

    H5Pset_userblock(list, 512);
    file = H5Fcreate(path, H5F_ACC_TRUNC, list, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    H5Dclose(put_numbers(file, "numbers", 3000, 100));
    H5Fclose(file);
    H5Pclose(list);
    file = joule_hdf5_open_fd(fd, &err);
    ck_assert_msg(file >= 0, "%s", err.text);
    check_numbers(file, "numbers", 3000);
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hdf5_driver");
    TCase *tc = tcase_create("driver");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_no_file);
    tcase_add_loop_test(tc, a_full_disk_is_told, 0, 40);
    tcase_add_test(tc, the_end_is_missing);
    tcase_add_test(tc, marked_as_open);
    tcase_add_test(tc, what_is_written_is_read);
    tcase_add_test(tc, libhdf5_reads_it);
    tcase_add_test(tc, a_user_block);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
