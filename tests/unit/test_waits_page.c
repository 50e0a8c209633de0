/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of `joule waits` as a file, and its profile for CubeGUI; the page is in a
 * browser in tests/system/test_waits_page.sh. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fail.h"
#include "tests/unit/samplepage.h"
#include "tests/unit/tree.h"
#include "tools/waits/cubex.h"

#define PYTHON "/usr/bin/python3"

static struct sample_page *sample;
static struct joule_error err;
static char *text;
static size_t size;

static void setup(void)
{
    sample = sample_page_create("small");
}

static void teardown(void)
{
    sample_page_destroy(sample);
    free(text);
    text = NULL;
}

static void use(const char *name)
{
    sample_page_destroy(sample);
    sample = sample_page_create(name);
    ck_assert_ptr_nonnull(sample);
}

typedef int writer(FILE *out, const struct joule_page *page,
                   struct joule_error *err);

static int write_as(writer *write)
{
    FILE *out;
    int rc, saved;

    free(text);
    out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    rc = write(out, &sample->page, &err);
    saved = errno;
    fclose(out);
    errno = saved;
    return rc;
}

static int write_page(void)
{
    return write_as(joule_waits_page_write);
}

static int write_cubex(void)
{
    return write_as(joule_waits_cubex_write);
}

/* Refused, with [word] in the sentence. */
static void refused(int errnum, const char *word)
{
    ck_assert_int_eq(write_page(), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, word), "%s", err.text);
}

static void written(void)
{
    ck_assert_msg(write_page() == 0, "%s", err.text);
}

/* What another program finds in it; not where there is no Python. */
static void whole_by(const char *program)
{
    char command[512];
    struct tree tree;
    double sum = 0;
    FILE *file;

    for (size_t i = 0; i < sample->page.values; i++)
        sum += sample->page.value[i].value;
    if (access(PYTHON, X_OK) != 0) {
        printf("# no " PYTHON ": the file was not checked by it\n");
        return;
    }
    tree_create(&tree);
    snprintf(command, sizeof(command), "%s/file", tree.path);
    file = fopen(command, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof(command),
             PYTHON " " JOULE_SOURCE_DIR "/tests/unit/%s %s/file %.17g",
             program, tree.path, sum);
    ck_assert_msg(system(command) == 0, "%s", command);
    tree_destroy(&tree);
}

static void whole(void)
{
    whole_by("checkpage.py");
}

/* ---- what is refused ---- */

START_TEST(parents)
{
    sample->metric[1].parent = 1;
    refused(EINVAL, "the parent of metric mpi");
    sample->metric[1].parent = -2;
    refused(EINVAL, "the parent of metric mpi");
    sample->metric[1].parent = 0;
    sample->path[3].parent = 4;
    refused(EINVAL, "the parent of call path 3");
    sample->path[3].parent = 0;
    written();
}
END_TEST

START_TEST(kinds)
{
    sample->metric[1].unit = "J";
    refused(EINVAL, "metric mpi is of another kind than its parent time");
    sample->metric[1].unit = "s";
    sample->metric[1].is_sum = false;
    refused(EINVAL, "metric mpi");
}
END_TEST

START_TEST(indices)
{
    struct joule_page_value good = sample->value[5];

    sample->page.selected_metric = 9;
    refused(EINVAL, "no metric 9");
    sample->page.selected_metric = 0;
    sample->process[2].node = 2;
    refused(EINVAL, "process 2");
    sample->process[2].node = -1;
    refused(EINVAL, "process 2");
    sample->process[2].node = 1;
    sample->power[1].node = 2;
    refused(EINVAL, "power 1");
    sample->power[1].node = 1;
    sample->value[5].metric = 9;
    refused(EINVAL, "value 5");
    sample->value[5] = good;
    sample->value[5].path = 8;
    refused(EINVAL, "value 5");
    sample->value[5] = good;
    sample->value[5].process = UINT32_MAX;
    refused(EINVAL, "value 5");
    sample->value[5] = good;
    written();
}
END_TEST

START_TEST(numbers)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e39};

    for (size_t i = 0; i < 4; i++) {
        sample->value[3].value = bad[i];
        refused(EINVAL, "value 3 is no number");
    }
    sample->value[3].value = 1;
    sample->page.end_s = sample->page.begin_s - 1;
    refused(EINVAL, "duration");
    sample->page.end_s = NAN;
    refused(EINVAL, "duration");
}
END_TEST

START_TEST(full_disk)
{
    FILE *out = fopen("/dev/full", "we");

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(joule_waits_page_write(out, &sample->page, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    fclose(out);
}
END_TEST

START_TEST(no_memory)
{
    int n;

    for (n = 1; n < 100; n++) {
        fail_calloc = n;
        if (write_page() == 0)
            break;
        ck_assert_int_eq(errno, ENOMEM);
    }
    ck_assert_int_eq(n, 8);
    fail_calloc = 0;
}
END_TEST

/* ---- what is written ---- */

START_TEST(samples)
{
    static const char *const names[] = {"small", "hostile", "empty", "calm",
                                        "one"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        use(names[i]);
        written();
        whole();
    }
}
END_TEST

/* Two values of one place, in any order; the greatest where there is no sum. */
START_TEST(several_values)
{
    static const struct joule_page_value value[] = {
        {8, 7, 3, 2}, {0, 0, 2, 1}, {8, 7, 3, 5}, {0, 0, 0, 4}, {0, 0, 2, 2},
    };
    double sum;

    memcpy(sample->value, value, sizeof(value));
    sample->page.values = 5;
    written();
    /* 4, 0, 3 and 5 as floats. */
    ck_assert_ptr_nonnull(strstr(text, "\"0 0 0 AACAQAAAAAAAAEBA\""));
    ck_assert_ptr_nonnull(strstr(text, "\"8 7 3 AACgQA==\""));
    sum = sample->value[0].value;
    sample->value[0].value = 0;
    whole();
    sample->value[0].value = sum;
}
END_TEST

/* A few of many processes take little room. */
START_TEST(sparse)
{
    use("large");
    sample->page.powers = 0;
    sample->page.values = 0;
    written();
    whole();
    for (size_t i = 0; i < 4096; i += 512)
        sample->value[sample->page.values++] =
            (struct joule_page_value){7, 99, (uint32_t)i, 1};
    {
        size_t before = size;

        written();
        whole();
        ck_assert_uint_lt(size, before + 500);
    }
}
END_TEST

/* ---- profiles for CubeGUI ---- */

/* All metrics are sums there. */
static void use_cubex(const char *name)
{
    use(name);
    if (sample->page.metrics > 8)
        sample->metric[8].is_sum = true;
}

static void cubex_refused(int errnum, const char *word)
{
    ck_assert_int_eq(write_cubex(), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, word), "%s", err.text);
}

static void cubex_written(void)
{
    ck_assert_msg(write_cubex() == 0, "%s", err.text);
    whole_by("checkcubex.py");
}

START_TEST(cubex_bad)
{
    FILE *out = fopen("/dev/full", "we");

    cubex_refused(EINVAL, "metric longest is no sum");
    use_cubex("empty");
    cubex_refused(EINVAL, "no metric or no call path");
    use_cubex("small");
    sample->value[0].path = 8;
    cubex_refused(EINVAL, "value 0 is of no metric, path or process");
    sample->value[0].path = 0;
    for (size_t i = 0; i < 5; i++)
        sample->metric[i].unit = "";
    sample->value[0].value = -1;
    cubex_refused(EINVAL, "value 0 is no count");
    use_cubex("small");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(joule_waits_cubex_write(out, &sample->page, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    fclose(out);
}
END_TEST

START_TEST(cubex_no_memory)
{
    int n;

    use_cubex("small");
    for (n = 1; n < 100; n++) {
        fail_calloc = n;
        if (write_cubex() == 0)
            break;
        ck_assert_int_eq(errno, ENOMEM);
    }
    ck_assert_int_eq(n, 11);
    fail_calloc = 0;
}
END_TEST

START_TEST(cubex_samples)
{
    static const char *const names[] = {"small", "hostile", "calm", "one"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        use_cubex(names[i]);
        cubex_written();
    }
}
END_TEST

/* anchor.xml of each size about that of a block. */
START_TEST(cubex_blocks)
{
    char title[1100];

    use_cubex("one");
    sample->page.title = title;
    for (size_t i = 0; i < 513; i++) {
        memset(title, 'x', i);
        title[i] = '\0';
        ck_assert_int_eq(write_cubex(), 0);
        if (strtoul(text + 124, NULL, 8) % 512 <= 2)
            whole_by("checkcubex.py");
        ck_assert_uint_ne(strtoul(text + 124, NULL, 8) % 512, 0);
    }
}
END_TEST

/* Counts, processes whose nodes alternate, children that stand apart from their
 * parent, and several values of one place. */
START_TEST(cubex_orders)
{
    use_cubex("small");
    for (size_t i = 0; i < 5; i++)
        sample->metric[i].unit = "";
    for (size_t i = 0; i < sample->page.values; i++)
        if (sample->value[i].metric < 5)
            sample->value[i].value = (double)(3 + i % 7);
    for (int i = 0; i < 4; i++)
        sample->process[i].node = i % 2;
    sample->path[7].parent = 1;
    sample->path[6].parent = -1;
    sample->value[1] = sample->value[0];
    cubex_written();
}
END_TEST

/* 4,096 processes. */
START_TEST(cubex_large)
{
    use_cubex("large");
    ck_assert_msg(write_cubex() == 0, "%s", err.text);
    printf("# large profile: %zu bytes\n", size);
    ck_assert_uint_lt(size, 30000000);
    whole_by("checkcubex.py");
}
END_TEST

START_TEST(large)
{
    use("large");
    written();
    printf("# large: %zu bytes\n", size);
    ck_assert_uint_lt(size, 20000000);
    whole();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits_page");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    /* Python looks at each value of 4,096 processes. */
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, parents);
    tcase_add_test(tcase, kinds);
    tcase_add_test(tcase, indices);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, full_disk);
    tcase_add_test(tcase, no_memory);
    tcase_add_test(tcase, samples);
    tcase_add_test(tcase, several_values);
    tcase_add_test(tcase, sparse);
    tcase_add_test(tcase, large);
    tcase_add_test(tcase, cubex_bad);
    tcase_add_test(tcase, cubex_no_memory);
    tcase_add_test(tcase, cubex_samples);
    tcase_add_test(tcase, cubex_blocks);
    tcase_add_test(tcase, cubex_orders);
    tcase_add_test(tcase, cubex_large);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
