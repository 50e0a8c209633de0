/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands in a file for a type: compared with what libhdf5 makes of it. */
#include <check.h>
#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/typeencode.h"

static hid_t make_element(const struct joule_column *column)
{
    hid_t type;

    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
    case JOULE_KIND_SIGNED:
        type = H5Tcopy(column->kind == JOULE_KIND_SIGNED ? H5T_STD_I8LE
                                                         : H5T_STD_U8LE);
        H5Tset_size(type, column->size);
        H5Tset_precision(type, column->size * 8);
        break;
    case JOULE_KIND_FLOAT:
        type = H5Tcopy(column->size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
        break;
    case JOULE_KIND_STRING:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, column->size);
        H5Tset_strpad(type, (H5T_str_t)column->pad);
        H5Tset_cset(type, (H5T_cset_t)column->cset);
        return type;
    default:
        type = H5Tcreate(H5T_OPAQUE, column->size);
        H5Tset_tag(type, "bytes");
        return type;
    }
    if (column->big_endian)
        H5Tset_order(type, H5T_ORDER_BE);
    return type;
}

static hid_t make_column(const struct joule_column *column)
{
    hsize_t length = column->count;
    hid_t element = make_element(column), array;

    if (length == 1)
        return element;
    array = H5Tarray_create2(element, 1, &length);
    H5Tclose(element);
    return array;
}

/* Negative: libhdf5 refuses. */
static hid_t make_type(const struct joule_rowtype *type)
{
    hid_t compound;

    if (!type->is_compound)
        return make_column(&type->column[0]);
    compound = H5Tcreate(H5T_COMPOUND, type->size);
    for (uint32_t i = 0; i < type->count; i++) {
        const struct joule_column *column = &type->column[i];
        hid_t member = make_column(column);
        herr_t rc = H5Tinsert(compound, column->name, column->offset, member);

        H5Tclose(member);
        if (rc < 0) {
            H5Tclose(compound);
            return -1;
        }
    }
    return compound;
}

/* As libhdf5 has it, without the two bytes in front: the kind of message, and a
 * version. */
static size_t encode_slowly(hid_t id, unsigned char *ret, size_t room)
{
    unsigned char *bytes;
    size_t size = 0;

    ck_assert_int_ge(H5Tencode(id, NULL, &size), 0);
    ck_assert_uint_gt(size, 2);
    ck_assert_uint_le(size - 2, room);
    bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_ge(H5Tencode(id, bytes, &size), 0);
    ck_assert_uint_eq(bytes[0], 3);
    memcpy(ret, bytes + 2, size - 2);
    free(bytes);
    return size - 2;
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static void draw_column(uint64_t *state, struct joule_column *column)
{
    memset(column, 0, sizeof(*column));
    column->kind = (uint8_t)draw(state, JOULE_KIND_OPAQUE + 1);
    column->count = draw(state, 4) ? 1 : 2 + draw(state, 40);
    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
    case JOULE_KIND_SIGNED:
        column->size = 1u << draw(state, 4);
        column->big_endian = draw(state, 2) == 1;
        break;
    case JOULE_KIND_FLOAT:
        column->size = draw(state, 2) ? 8 : 4;
        column->big_endian = draw(state, 2) == 1;
        break;
    case JOULE_KIND_STRING:
        column->size = 1 + draw(state, 40);
        column->pad = (uint8_t)draw(state, 3);
        column->cset = (uint8_t)draw(state, 2);
        break;
    default:
        column->size = 1 + draw(state, 40);
        break;
    }
}

/* Up to [most] columns one behind the other, with gaps; now and then the last
 * one lies on another, or has the first one's name. */
static void draw_type(uint64_t *state, uint32_t most, bool with_arrays,
                      struct joule_rowtype *type)
{
    uint32_t at = 0;

    memset(type, 0, sizeof(*type));
    type->is_compound = draw(state, 8) > 0;
    type->count = type->is_compound ? 1 + draw(state, most) : 1;
    for (uint32_t i = 0; i < type->count; i++) {
        struct joule_column *column = &type->column[i];

        draw_column(state, column);
        if (!with_arrays)
            column->count = 1;
        if (!type->is_compound) {
            at = column->size * column->count;
            break;
        }
        column->offset = at += draw(state, 3) ? 0 : draw(state, 9);
        at += column->size * column->count;
        snprintf(column->name, sizeof(column->name), "c%u.%.*s", i,
                 (int)draw(state, 20), "a name of some length");
    }
    type->size = at + (type->is_compound ? draw(state, 5) : 0);
    if (type->count > 1 && draw(state, 10) == 0)
        type->column[type->count - 1].offset -= 1;
    if (type->count > 1 && draw(state, 10) == 0)
        strcpy(type->column[type->count - 1].name, type->column[0].name);
}

/* The same bytes, or both refuse.  Returns whether libhdf5 takes it. */
static bool compare(const struct joule_rowtype *type)
{
    static unsigned char theirs[JOULE_COLUMNS_MAX * 256];
    hid_t id = make_type(type);
    size_t size = 0, wanted;
    unsigned char *ours = joule_rowtype_encode(type, &size);

    if (id < 0) {
        ck_assert_ptr_null(ours);
        ck_assert_int_eq(errno, EINVAL);
        return false;
    }
    ck_assert_ptr_nonnull(ours);
    wanted = encode_slowly(id, theirs, sizeof(theirs));
    H5Tclose(id);
    ck_assert_uint_eq(size, wanted);
    ck_assert_mem_eq(ours, theirs, size);
    free(ours);
    return true;
}

static void compare_many(uint32_t most, bool with_arrays, int times)
{
    struct joule_rowtype *type = malloc(sizeof(*type));
    uint64_t state = most;
    int taken = 0;

    ck_assert_ptr_nonnull(type);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < times; i++) {
        draw_type(&state, most, with_arrays, type);
        ck_assert_int_eq(joule_rowtype_check(type, joule_rowtype_bytes(type)),
                         0);
        taken += compare(type);
    }
    /* Some of both. */
    ck_assert_int_gt(taken, times / 2);
    ck_assert_int_lt(taken, times);
    free(type);
}

START_TEST(plain_columns)
{
    compare_many(12, false, 3000);
}
END_TEST

START_TEST(arrays)
{
    compare_many(12, true, 3000);
}
END_TEST

START_TEST(many_columns)
{
    compare_many(JOULE_COLUMNS_MAX, true, 100);
}
END_TEST

/* Names as long as they may be, in columns of which each takes most. */
START_TEST(the_largest_type)
{
    struct joule_rowtype *type = calloc(1, sizeof(*type));

    ck_assert_ptr_nonnull(type);
    type->is_compound = 1;
    type->count = JOULE_COLUMNS_MAX;
    type->size = JOULE_COLUMNS_MAX * 16;
    for (uint32_t i = 0; i < type->count; i++) {
        struct joule_column *column = &type->column[i];

        memset(column->name, 'x', sizeof(column->name) - 1);
        column->name[i % 100] = (char)('a' + i / 100);
        column->offset = 16 * i;
        column->size = 8;
        column->count = 2;
        column->kind = JOULE_KIND_FLOAT;
    }
    ck_assert_int_eq(joule_rowtype_check(type, joule_rowtype_bytes(type)), 0);
    ck_assert(compare(type));
    for (uint32_t i = 0; i < type->count; i++)
        type->column[i].count = 1;
    ck_assert(compare(type));
    free(type);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("typeencode");
    TCase *tc = tcase_create("typeencode");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, plain_columns);
    tcase_add_test(tc, arrays);
    tcase_add_test(tc, many_columns);
    tcase_add_test(tc, the_largest_type);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
