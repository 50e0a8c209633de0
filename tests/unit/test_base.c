/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/conffile.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/option.h"
#include "common/base/parse.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/sensor.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* error */

START_TEST(error_without_struct)
{
    errno = 0;
    ck_assert_int_eq(joule_error_set(NULL, ENOENT, "%s", "x"), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(error_control_characters)
{
    struct joule_error err;

    joule_error_set(&err, EINVAL, "%s", "a\nb\033[1m\x7F\xC3\xA9");
    ck_assert_str_eq(err.text, "a?b?[1m?\xC3\xA9");
}
END_TEST

START_TEST(error_too_long)
{
    struct joule_error err;
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    joule_error_set(&err, EINVAL, "%s", text);
    ck_assert_uint_eq(strlen(err.text), JOULE_ERROR_MAX - 1);
    ck_assert_str_eq(err.text + JOULE_ERROR_MAX - 5, "x...");
    text[JOULE_ERROR_MAX - 1] = '\0';
    joule_error_set(&err, EINVAL, "%s", text);
    ck_assert_str_eq(err.text, text);
    /* No half characters before the dots. */
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = i % 2 ? '\xA9' : '\xC3';
    joule_error_set(&err, EINVAL, "%s", text);
    ck_assert_uint_eq(strlen(err.text) % 2, 1);
    joule_error_set(&err, EINVAL, "x%s", text);
    ck_assert_uint_eq(strlen(err.text) % 2, 0);
}
END_TEST

START_TEST(error_quotes_itself)
{
    struct joule_error err;

    joule_error_set(&err, EINVAL, "inner");
    errno = 0;
    joule_error_set(&err, ENOENT, "outer: %s: %m", err.text);
    ck_assert_str_eq(err.text, "outer: inner: No such file or directory");
}
END_TEST

/* clock */

START_TEST(clock_goes_on)
{
    int64_t a = joule_clock_mono_ns(&joule_clock_system);
    int64_t b = joule_clock_mono_ns(&joule_clock_system);

    ck_assert_int_ge(a, 0);
    ck_assert_int_ge(b, a);
    /* 2020-01-01 */
    ck_assert_int_gt(joule_clock_wall_ns(&joule_clock_system),
                     INT64_C(1577836800) * JOULE_NS_PER_S);
}
END_TEST

/* file */

static struct tree tree;

static void setup(void)
{
    tree_create(&tree);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static void read_must_fail(const char *path, size_t size, int errnum)
{
    char *buf = malloc(size ? size : 1);
    unsigned fds = tree_open_fds();

    errno = 0;
    ck_assert_int_eq(joule_file_read(tree.fd, path, buf, size), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_uint_eq(tree_open_fds(), fds);
    free(buf);
}

START_TEST(file_bad)
{
    errno = 0;
    ck_assert_int_eq(joule_file_open(tree.fd, "/etc/passwd", O_RDONLY), -1);
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_int_eq(joule_file_open(tree.fd, "new", O_WRONLY | O_CREAT), -1);
    ck_assert_int_eq(errno, EINVAL);
    read_must_fail("/etc/passwd", 10, EINVAL);
    read_must_fail("none", 10, ENOENT);
    read_must_fail("", 10, ENOENT);
    tree_mkdir(&tree, "dir");
    read_must_fail("dir", 10, EISDIR);
    tree_bytes(&tree, "nul", "a\0b\n", 4);
    read_must_fail("nul", 10, EINVAL);
    tree_write(&tree, "text", "12345678\n");
    read_must_fail("text", 0, EFBIG);
    read_must_fail("text", 1, EFBIG);
    read_must_fail("text", 8, EFBIG);
    tree_write(&tree, "lines", "1234567\n\n");
    read_must_fail("lines", 8, EFBIG);
    ck_assert_int_eq(joule_file_read(-1, "text", NULL, 0), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(file_good)
{
    char buf[16];
    int fd;

    tree_write(&tree, "dir/text", "12345678\n");
    ck_assert_int_eq(joule_file_read(tree.fd, "dir/text", buf, 9), 8);
    ck_assert_str_eq(buf, "12345678");
    ck_assert_int_eq(joule_file_read(tree.fd, "dir/text", buf, 16), 8);
    tree_write(&tree, "two", "1\n\n");
    ck_assert_int_eq(joule_file_read(tree.fd, "two", buf, 16), 2);
    ck_assert_str_eq(buf, "1\n");
    tree_write(&tree, "empty", "");
    ck_assert_int_eq(joule_file_read(tree.fd, "empty", buf, 1), 0);
    ck_assert_str_eq(buf, "");
    fd = joule_file_open(tree.fd, "two", O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
}
END_TEST

START_TEST(file_load)
{
    static char big[70001];
    unsigned fds = tree_open_fds();
    size_t len = 4711;
    char *text;
    int proc;

    ck_assert_ptr_null(joule_file_load(tree.fd, "none", 10, &len));
    ck_assert_int_eq(errno, ENOENT);
    memset(big, 'x', sizeof(big) - 1);
    tree_write(&tree, "big", big);
    ck_assert_ptr_null(joule_file_load(tree.fd, "big", 69999, &len));
    ck_assert_int_eq(errno, EFBIG);
    ck_assert_ptr_null(joule_file_load(tree.fd, "big", 0, &len));
    ck_assert_int_eq(errno, EFBIG);
    tree_bytes(&tree, "nul", "", 1);
    ck_assert_ptr_null(joule_file_load(tree.fd, "nul", 10, &len));
    ck_assert_int_eq(errno, EINVAL);
    tree_mkdir(&tree, "dir");
    ck_assert_ptr_null(joule_file_load(tree.fd, "dir", 10, &len));
    ck_assert_int_eq(errno, EISDIR);
    ck_assert_uint_eq(len, 4711);

    text = joule_file_load(tree.fd, "big", 70000, &len);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(len, 70000);
    ck_assert_str_eq(text, big);
    free(text);
    text = joule_file_load(tree.fd, "big", SIZE_MAX, NULL);
    ck_assert_ptr_nonnull(text);
    free(text);
    tree_write(&tree, "empty", "\n");
    text = joule_file_load(tree.fd, "empty", 1, &len);
    ck_assert_uint_eq(len, 0);
    ck_assert_str_eq(text, "");
    free(text);
    /* A file whose size is said to be 0. */
    proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    text = joule_file_load(proc, "self/maps", 1 << 24, &len);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(len, 0);
    free(text);
    close(proc);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

/* parse */

static const struct {
    const char *text;
    uint64_t min, max;
    int errnum; /* 0: good */
    uint64_t value;
} u64s[] = {
    {"", 0, 9, EINVAL, 0},
    {" 1", 0, 9, EINVAL, 0},
    {"1 ", 0, 9, EINVAL, 0},
    {"+1", 0, 9, EINVAL, 0},
    {"-1", 0, 9, EINVAL, 0},
    {"-18446744073709551615", 0, 9, EINVAL, 0},
    {"0x1", 0, 9, EINVAL, 0},
    {"1a", 0, 99, EINVAL, 0},
    {"1.0", 0, 9, EINVAL, 0},
    {"1e3", 0, 9999, EINVAL, 0},
    {"\xD9\xA1", 0, 9, EINVAL, 0},
    {"18446744073709551616", 0, UINT64_MAX, ERANGE, 0},
    {"99999999999999999999999999", 0, UINT64_MAX, ERANGE, 0},
    {"99999999999999999999999999x", 0, UINT64_MAX, EINVAL, 0},
    {"10", 0, 9, ERANGE, 0},
    {"0", 1, 9, ERANGE, 0},
    {"1", 2, 1, ERANGE, 0},
    {"18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
    {"0", 0, 0, 0, 0},
    {"010", 0, 99, 0, 10},
    {"00000000000000000000000000000000000000000000007", 7, 7, 0, 7},
};

START_TEST(parse_u64)
{
    uint64_t value = 4711;
    int rc;

    errno = 0;
    rc = joule_parse_u64(u64s[_i].text, u64s[_i].min, u64s[_i].max, &value);
    ck_assert_int_eq(rc, u64s[_i].errnum ? -1 : 0);
    ck_assert_int_eq(errno, u64s[_i].errnum);
    ck_assert_uint_eq(value, u64s[_i].errnum ? 4711 : u64s[_i].value);
}
END_TEST

static const struct {
    const char *text;
    int errnum;
    uint64_t value;
} hexes[] = {
    {"", EINVAL, 0},
    {"0x", EINVAL, 0},
    {"x1", EINVAL, 0},
    {"ff", EINVAL, 0},
    {"0xg", EINVAL, 0},
    {"0x-1", EINVAL, 0},
    {"0x0x1", EINVAL, 0},
    {"0x1 ", EINVAL, 0},
    {"0x10000000000000000", ERANGE, 0},
    {"18446744073709551616", ERANGE, 0},
    {"0xFFFFFFFFFFFFFFFF", 0, UINT64_MAX},
    {"0XdeadBEEF", 0, 0xDEADBEEF},
    {"0", 0, 0},
    {"010", 0, 10},
};

START_TEST(parse_hex64)
{
    uint64_t value = 4711;
    int rc;

    errno = 0;
    rc = joule_parse_hex64(hexes[_i].text, &value);
    ck_assert_int_eq(rc, hexes[_i].errnum ? -1 : 0);
    ck_assert_int_eq(errno, hexes[_i].errnum);
    ck_assert_uint_eq(value, hexes[_i].errnum ? 4711 : hexes[_i].value);
}
END_TEST

START_TEST(parse_bool)
{
    static const char *const bad[] = {"",   "y",   "2",    "yes ",  " no",
                                      "01", "tru", "yess", "YES NO"};
    static const char *const yes[] = {"yes", "YES", "True", "oN", "1"};
    static const char *const no[] = {"no", "No", "FALSE", "off", "0"};
    bool value = true;

    for (int i = 0; i < COUNT(bad); i++) {
        errno = 0;
        ck_assert_int_eq(joule_parse_bool(bad[i], &value), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert(value);
    }
    for (int i = 0; i < COUNT(yes); i++) {
        value = false;
        ck_assert_int_eq(joule_parse_bool(yes[i], &value), 0);
        ck_assert(value);
        ck_assert_int_eq(joule_parse_bool(no[i], &value), 0);
        ck_assert(!value);
    }
}
END_TEST

static const struct {
    const char *text;
    int errnum;
    int64_t ns;
} durations[] = {
    {"", EINVAL, 0},
    {"s", EINVAL, 0},
    {".5", EINVAL, 0},
    {"5.", EINVAL, 0},
    {"5.s", EINVAL, 0},
    {"1.2.3", EINVAL, 0},
    {"1 s", EINVAL, 0},
    {" 1s", EINVAL, 0},
    {"1s ", EINVAL, 0},
    {"1S", EINVAL, 0},
    {"1sec", EINVAL, 0},
    {"1d", EINVAL, 0},
    {"-1s", EINVAL, 0},
    {"+1s", EINVAL, 0},
    {"1e3", EINVAL, 0},
    {"0x1s", EINVAL, 0},
    {"1m30s", EINVAL, 0},
    {"0.5ns", EINVAL, 0},
    {"0.0000000001s", EINVAL, 0},
    {"0.3333333333333333h", EINVAL, 0},
    {"0.00000000000001h", EINVAL, 0},
    {"99999999999999999999.5ns", EINVAL, 0},
    {"9223372036854775808ns", ERANGE, 0},
    {"9223372036.854775808s", ERANGE, 0},
    {"18446744073709551616ns", ERANGE, 0},
    {"18446744073709551615h", ERANGE, 0},
    {"99999999999999999999999", ERANGE, 0},
    {"9223372036854775807ns", 0, INT64_MAX},
    {"9223372036.854775807", 0, INT64_MAX},
    {"0", 0, 0},
    {"0.5", 0, 500000000},
    {"500ms", 0, 500000000},
    {"0.500", 0, 500000000},
    {"1.0000000000000000000000000ns", 0, 1},
    {"1.5us", 0, 1500},
    {"0.000001ms", 0, 1},
    {"2m", 0, INT64_C(120000000000)},
    {"1.5h", 0, INT64_C(5400000000000)},
    {"0.0001220703125h", 0, INT64_C(439453125)},
    {"007s", 0, INT64_C(7000000000)},
};

START_TEST(parse_duration)
{
    int64_t ns = 4711;
    int rc;

    errno = 0;
    rc = joule_parse_duration_ns(durations[_i].text, 0, INT64_MAX, &ns);
    ck_assert_int_eq(rc, durations[_i].errnum ? -1 : 0);
    ck_assert_int_eq(errno, durations[_i].errnum);
    ck_assert_int_eq(ns, durations[_i].errnum ? 4711 : durations[_i].ns);
}
END_TEST

START_TEST(parse_duration_range)
{
    int64_t ns = 4711;

    ck_assert_int_eq(joule_parse_duration_ns("9ms", 10 * JOULE_NS_PER_MS,
                                             JOULE_NS_PER_S, &ns),
                     -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(joule_parse_duration_ns("1.000000001",
                                             10 * JOULE_NS_PER_MS,
                                             JOULE_NS_PER_S, &ns),
                     -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(ns, 4711);
    ck_assert_int_eq(
        joule_parse_duration_ns("1", 10 * JOULE_NS_PER_MS, JOULE_NS_PER_S, &ns),
        0);
}
END_TEST

START_TEST(format_duration)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {1, "1ns"},
        {1500, "1500ns"},
        {2000, "2us"},
        {10 * JOULE_NS_PER_MS, "10ms"},
        {JOULE_NS_PER_S, "1s"},
        {60 * JOULE_NS_PER_S, "60s"},
        {1500 * JOULE_NS_PER_MS, "1500ms"},
        {INT64_MAX, "9223372036854775807ns"},
    };
    char buf[32];
    int64_t ns;

    for (int i = 0; i < COUNT(rows); i++) {
        joule_format_duration(rows[i].ns, buf, sizeof(buf));
        ck_assert_str_eq(buf, rows[i].text);
        ck_assert_int_eq(joule_parse_duration_ns(buf, 0, INT64_MAX, &ns), 0);
        ck_assert_int_eq(ns, rows[i].ns);
    }
    joule_format_duration(INT64_MAX, buf, 4);
    ck_assert_str_eq(buf, "922");
}
END_TEST

static const struct {
    const char *text;
    int errnum;
    const char *cpus;
} lists[] = {
    {",", EINVAL, ""},
    {"0,", EINVAL, ""},
    {",0", EINVAL, ""},
    {"0,,1", EINVAL, ""},
    {"a", EINVAL, ""},
    {"0-", EINVAL, ""},
    {"-1", EINVAL, ""},
    {"3-1", EINVAL, ""},
    {"0-1-2", EINVAL, ""},
    {"0 ", EINVAL, ""},
    {"0\n", EINVAL, ""},
    {"0-3:", EINVAL, ""},
    {"0-3:0", EINVAL, ""},
    {"0-3:1/", EINVAL, ""},
    {"0-3:0/2", EINVAL, ""},
    {"0-3:3/2", EINVAL, ""},
    {"0-3:1/0", EINVAL, ""},
    {"0:2", EINVAL, ""},
    {"all", EINVAL, ""},
    {"0-N", EINVAL, ""},
    {"65536", ERANGE, ""},
    {"0-65536", ERANGE, ""},
    {"18446744073709551616", ERANGE, ""},
    {"", 0, ""},
    {"0", 0, "0 "},
    {"0-3,8,10-14:2", 0, "0 1 2 3 8 10 12 14 "},
    {"0-9:2/5", 0, "0 1 5 6 "},
    {"0-3:7/7", 0, "0 1 2 3 "},
    {"8,3,3,2-4", 0, "2 3 4 8 "},
    {"5-5", 0, "5 "},
    {"65535", 0, "65535 "},
    {"0-65535:65535", 0, "0 65535 "},
};

START_TEST(parse_cpulist)
{
    unsigned *cpus = (unsigned *)&tree;
    size_t count = 4711;
    char text[256] = "";
    int rc;

    errno = 0;
    rc = joule_parse_cpulist(lists[_i].text, &cpus, &count);
    ck_assert_int_eq(rc, lists[_i].errnum ? -1 : 0);
    ck_assert_int_eq(errno, lists[_i].errnum);
    if (rc < 0) {
        ck_assert_uint_eq(count, 4711);
        ck_assert_ptr_eq(cpus, &tree);
        return;
    }
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ",
                 cpus[i]);
    ck_assert_str_eq(text, lists[_i].cpus);
    ck_assert_int_eq(cpus == NULL, count == 0);
    free(cpus);
}
END_TEST

START_TEST(parse_cpulist_all)
{
    unsigned *cpus;
    size_t count;

    ck_assert_int_eq(joule_parse_cpulist("0-65535", &cpus, &count), 0);
    ck_assert_uint_eq(count, 65536);
    ck_assert_uint_eq(cpus[65535], 65535);
    free(cpus);
}
END_TEST

static const struct joule_word words[] = {
    {"red", 1}, {"green", 2}, {"blue", 4}, {"cyan", 6}, {NULL, 0}};

START_TEST(parse_words)
{
    static const char *const bad[] = {
        "",          ",",      "red,",  ",red",       "red,,blue",
        "red, blue", "re",     "reds",  "red,red",    "Red,rED",
        "red blue",  "yellow", "red\n", "red,yellow", "cyan,cyan"};
    unsigned bits = 4711;

    for (int i = 0; i < COUNT(bad); i++) {
        errno = 0;
        ck_assert_int_eq(joule_parse_words(bad[i], words, &bits), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_uint_eq(bits, 4711);
    }
    ck_assert_int_eq(joule_parse_words("bLUE", words, &bits), 0);
    ck_assert_uint_eq(bits, 4);
    ck_assert_int_eq(joule_parse_words("cyan,red,blue", words, &bits), 0);
    ck_assert_uint_eq(bits, 7);
}
END_TEST

/* option */

struct settings {
    bool flag;
    uint64_t number;
    int64_t period;
    unsigned colours;
    uint64_t pin;
    unsigned mood;
    uint64_t address;
    char name[6];
    char word[6];
    int64_t interval;
    bool interval_given;
    unsigned guard;
};

static int no_thirteen(const void *field, struct joule_error *reason)
{
    (void)reason;
    if (*(const uint64_t *)field != 13)
        return 0;
    errno = ENOSYS;
    return -1;
}

static int no_x(const void *field, struct joule_error *reason)
{
    if (!strchr(field, 'x'))
        return 0;
    return joule_error_set(reason, EINVAL, "\"%s\" has an x",
                           (const char *)field);
}

static const struct joule_word moods[] = {
    {"calm", 0}, {"0", 0}, {"angry", 7}, {"1", 7}, {NULL, 0}};

static const struct joule_option table[] = {
    {.key = "Flag",
     .type = JOULE_OPTION_BOOL,
     .offset = offsetof(struct settings, flag),
     .default_text = "yes"},
    {.key = "Number",
     .type = JOULE_OPTION_U64,
     .offset = offsetof(struct settings, number),
     .default_text = "5",
     .min = 1,
     .max = INT64_MAX,
     .check = no_thirteen},
    {.key = "Period",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct settings, period),
     .default_text = "1s",
     .min = 10 * JOULE_NS_PER_MS,
     .max = 60 * JOULE_NS_PER_S},
    {.key = "Colours",
     .type = JOULE_OPTION_WORDS,
     .offset = offsetof(struct settings, colours),
     .default_text = "red",
     .words = words},
    {.key = "Pin",
     .type = JOULE_OPTION_U64,
     .offset = offsetof(struct settings, pin),
     .default_text = "1111",
     .min = 0,
     .max = 9999,
     .range = "four digits",
     .secret = true},
    {.key = "Mood",
     .type = JOULE_OPTION_WORD,
     .offset = offsetof(struct settings, mood),
     .default_text = "calm",
     .words = moods},
    {.key = "Address",
     .type = JOULE_OPTION_HEX,
     .offset = offsetof(struct settings, address),
     .default_text = "0xca2",
     .min = 16,
     .max = 0xFFFF},
    {.key = "Name",
     .type = JOULE_OPTION_TEXT,
     .offset = offsetof(struct settings, name),
     .default_text = "",
     .max = 5,
     .check = no_x},
    {.key = "Word",
     .type = JOULE_OPTION_TEXT,
     .offset = offsetof(struct settings, word),
     .default_text = "",
     .max = 5,
     .check = no_x,
     .secret = true},
    {.key = "Interval",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct settings, interval),
     .default_text = "1s",
     .min = 1,
     .max = 60 * JOULE_NS_PER_S,
     .given = offsetof(struct settings, interval_given)},
    {.key = "OldInterval",
     .type = JOULE_OPTION_DURATION,
     .offset = offsetof(struct settings, interval),
     .default_text = "1s",
     .min = 1,
     .max = 60 * JOULE_NS_PER_S,
     .given = offsetof(struct settings, interval_given),
     .yields = true},
    {.key = "Old", .type = JOULE_OPTION_IGNORED},
    {0},
};

static const struct {
    const char *key, *text;
    int errnum;
    const char *sentence;
} bad_settings[] = {
    {"Flag", "maybe", EINVAL,
     "Flag=maybe is not a yes or no: allowed are yes or no"},
    {"Flag", "", EINVAL, "Flag= is not a yes or no: allowed are yes or no"},
    {"Number", "x\ny", EINVAL,
     "Number=x?y is not a whole number: allowed are 1 to 9223372036854775807"},
    {"Number", "0", ERANGE,
     "Number=0 is not in range: allowed are 1 to 9223372036854775807"},
    {"Number", "13", EINVAL,
     "Number=13 is not an allowed choice: allowed are 1 to "
     "9223372036854775807"},
    {"Period", "9ms", ERANGE,
     "Period=9ms is not in range: allowed are 10ms to 60s"},
    {"Period", "1 s", EINVAL,
     "Period=1 s is not a duration: allowed are 10ms to 60s"},
    {"Colours", "pink", EINVAL,
     "Colours=pink is not a list of known words: allowed are any of, separated "
     "by commas: red, green, blue, cyan"},
    {"Pin", "12345", ERANGE,
     "Pin=*** is not in range: allowed are four digits"},
    {"Pin", "geheim", EINVAL,
     "Pin=*** is not a whole number: allowed are four digits"},
    {"Mood", "calm,angry", EINVAL,
     "Mood=calm,angry is not a known word: allowed are one of: calm, 0, angry, "
     "1"},
    {"Mood", "", EINVAL,
     "Mood= is not a known word: allowed are one of: calm, 0, angry, 1"},
    {"Mood", "2", EINVAL,
     "Mood=2 is not a known word: allowed are one of: calm, 0, angry, 1"},
    {"Address", "ca2", EINVAL,
     "Address=ca2 is not a whole number: allowed are 0x10 to 0xffff"},
    {"Address", "15", ERANGE,
     "Address=15 is not in range: allowed are 0x10 to 0xffff"},
    {"Address", "0x10000", ERANGE,
     "Address=0x10000 is not in range: allowed are 0x10 to 0xffff"},
    {"Name", "abcdef", ERANGE,
     "Name=abcdef is not in range: allowed are at most 5 bytes"},
    {"Name", "a\tb", EINVAL,
     "Name=a?b is not a text without control characters: allowed are at most 5 "
     "bytes"},
    {"Name", "a\x7F", EINVAL,
     "Name=a? is not a text without control characters: allowed are at most 5 "
     "bytes"},
    {"Name", "axe", EINVAL, "Name=axe: \"axe\" has an x"},
    {"Word", "axe", EINVAL,
     "Word=*** is not an allowed choice: allowed are at most 5 bytes"},
    {"Interval", "61", ERANGE,
     "Interval=61 is not in range: allowed are 1ns to 60s"},
    {"OldInterval", "x", EINVAL,
     "OldInterval=x is not a duration: allowed are 1ns to 60s"},
};

START_TEST(option_bad)
{
    struct settings before, after;
    struct joule_error err;
    const struct joule_option *row;

    memset(&before, 0, sizeof(before));
    joule_option_defaults(table, &before);
    after = before;
    row = joule_option_find(table, bad_settings[_i].key);
    errno = 0;
    ck_assert_int_eq(joule_option_set(row, &after, bad_settings[_i].text, &err),
                     -1);
    ck_assert_int_eq(errno, bad_settings[_i].errnum);
    ck_assert_str_eq(err.text, bad_settings[_i].sentence);
    ck_assert_mem_eq(&before, &after, sizeof(before));
    ck_assert_int_eq(joule_option_set(row, &after, bad_settings[_i].text, NULL),
                     -1);
}
END_TEST

START_TEST(option_bad_default)
{
    static const struct joule_option bug[] = {
        {.key = "Flag", .type = JOULE_OPTION_BOOL, .default_text = "maybe"},
        {0},
    };
    struct settings s;

    joule_option_defaults(bug, &s);
}
END_TEST

START_TEST(option_good)
{
    struct settings s;
    char buf[64];

    memset(&s, 0, sizeof(s));
    s.guard = 4711;
    joule_option_defaults(table, &s);
    ck_assert(s.flag);
    ck_assert_uint_eq(s.number, 5);
    ck_assert_int_eq(s.period, JOULE_NS_PER_S);
    ck_assert_uint_eq(s.colours, 1);
    ck_assert_uint_eq(s.pin, 1111);
    ck_assert_uint_eq(s.guard, 4711);

    ck_assert_ptr_null(joule_option_find(table, "None"));
    ck_assert_ptr_null(joule_option_find(table, ""));
    ck_assert_ptr_eq(joule_option_find(table, "pERIOD"), &table[2]);

    ck_assert_int_eq(joule_option_set(&table[0], &s, "off", NULL), 0);
    ck_assert_int_eq(joule_option_set(&table[1], &s, "14", NULL), 0);
    ck_assert_int_eq(joule_option_set(&table[2], &s, "0.01", NULL), 0);
    ck_assert_int_eq(joule_option_set(&table[3], &s, "blue,green", NULL), 0);
    joule_option_format(&table[0], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "no");
    joule_option_format(&table[1], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "14");
    joule_option_format(&table[2], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "10ms");
    joule_option_format(&table[3], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "green,blue");
    joule_option_format(&table[3], &s, buf, 4);
    ck_assert_str_eq(buf, "gre");
    joule_option_format(&table[4], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "***");
    joule_option_format(&table[4], &s, NULL, 0);
    joule_option_range(&table[3], NULL, 0);
    joule_option_range(&table[3], buf, 8);
    ck_assert_str_eq(buf, "any of,");
}
END_TEST

START_TEST(option_more_types)
{
    struct settings s, zero;
    char buf[64];

    memset(&s, 0xFF, sizeof(s));
    joule_option_defaults(table, &s);
    ck_assert_uint_eq(s.mood, 0);
    ck_assert_uint_eq(s.address, 0xCA2);
    memset(&zero, 0, sizeof(zero));
    ck_assert_mem_eq(s.name, zero.name, sizeof(s.name));

    ck_assert_int_eq(joule_option_set(&table[5], &s, "ANGRY", NULL), 0);
    joule_option_format(&table[5], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "angry");
    ck_assert_int_eq(joule_option_set(&table[5], &s, "0", NULL), 0);
    joule_option_format(&table[5], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "calm");
    ck_assert_int_eq(joule_option_set(&table[6], &s, "255", NULL), 0);
    joule_option_format(&table[6], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "0xff");

    /* What was there before leaves nothing behind. */
    ck_assert_int_eq(joule_option_set(&table[7], &s, "abcde", NULL), 0);
    ck_assert_str_eq(s.name, "abcde");
    ck_assert_int_eq(joule_option_set(&table[7], &s, "\xC2\xB5", NULL), 0);
    ck_assert_mem_eq(s.name, "\xC2\xB5\0\0\0", 6);
    joule_option_format(&table[7], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "\xC2\xB5");

    joule_option_format(&table[8], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "");
    ck_assert_int_eq(joule_option_set(&table[8], &s, "geh", NULL), 0);
    joule_option_format(&table[8], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "***");
    ck_assert_str_eq(s.word, "geh");

    ck_assert_int_eq(joule_option_set(&table[11], &s, "a\nthing", NULL), 0);
    joule_option_format(&table[11], &s, buf, sizeof(buf));
    ck_assert_str_eq(buf, "");
    joule_option_range(&table[11], buf, sizeof(buf));
    ck_assert_str_eq(buf, "anything");
}
END_TEST

/* Two keys of one field: the order in the file does not matter. */
START_TEST(option_that_yields)
{
    struct settings s;

    memset(&s, 0, sizeof(s));
    for (int turn = 0; turn < 2; turn++) {
        joule_option_defaults(table, &s);
        ck_assert(!s.interval_given);
        ck_assert_int_eq(joule_option_set(&table[10], &s, "5", NULL), 0);
        ck_assert(!s.interval_given);
        ck_assert_int_eq(s.interval, 5 * JOULE_NS_PER_S);
        ck_assert_int_eq(joule_option_set(&table[9], &s, "0", NULL), -1);
        ck_assert(!s.interval_given);
        ck_assert_int_eq(joule_option_set(&table[9], &s, "2", NULL), 0);
        ck_assert(s.interval_given);
        ck_assert_int_eq(joule_option_set(&table[10], &s, "6", NULL), 0);
        ck_assert_int_eq(s.interval, 2 * JOULE_NS_PER_S);
        ck_assert_int_eq(joule_option_set(&table[9], &s, "3", NULL), 0);
        ck_assert_int_eq(s.interval, 3 * JOULE_NS_PER_S);
    }
}
END_TEST

START_TEST(option_of_the_sampler)
{
    static const char *const bad_totals[] = {
        "dram", "psys,dram", "package,psys", "package,dram,psys", "pp0", ""};
    const struct joule_option *row;
    struct joule_energy_config config;
    struct joule_error err;

    joule_option_defaults(joule_energy_config_options, &config);
    ck_assert_int_eq(config.sample_period_ns, JOULE_NS_PER_S);
    row = joule_option_find(joule_energy_config_options, "JouleRAPLDomains");
    for (int i = 0; i < COUNT(bad_totals); i++) {
        ck_assert_int_eq(joule_option_set(row, &config, bad_totals[i], &err),
                         -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_msg(strstr(err.text, "package,dram or package or psys"), "%s",
                      err.text);
    }
    ck_assert_uint_eq(config.rapl_total_kinds,
                      JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE) |
                          JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM));
}
END_TEST

/* conffile */

/* What the walk reports, as "line:key=value|"; stray text has the key "-". */
static int note(const char *key, const char *value, unsigned line, void *arg)
{
    char *text = arg;

    snprintf(text + strlen(text), 256 - strlen(text), "%u:%s=%s|", line,
             key ? key : "-", value);
    return 0;
}

static const struct {
    const char *text, *pairs;
} confs[] = {
    {"", ""},
    {"\n\n  \n", ""},
    {"# A=1\n", ""},
    {"word", "1:-=word|"},
    {"=1\n==\n = \n", "1:-==1|2:-===|3:-==|"},
    {"A\n=1\n", "1:-=A|2:-==1|"},
    {"A!=1 B=2\n", "1:-=A!=1 B=2|"},
    {"A 1\nB: 2\n", "1:-=A 1|2:-=B: 2|"},
    {"export A=1\n", "1:-=export A=1|"},
    {"[a]\n; b\n// c\n", "1:-=[a]|2:-=; b|3:-=// c|"},
    {"\xef\xbb\xbf"
     "A=1\n",
     "1:-=\xef\xbb\xbf"
     "A=1|"},
    {"include\ninclude  \n", "1:-=include|2:-=include|"},
    {"\\", ""},
    {"A=1\\", "1:A=1|"},
    {"A=", "1:-=A=|"},
    {"A= \r\nB=2", "1:-=A=|2:B=2|"},
    {"A= B=2", "1:A=B=2|"},
    {"A=1", "1:A=1|"},
    {"A=1 s\n", "1:A=1|1:-=s|"},
    {"A=1 B=2\tC=3\r\nD=4\n", "1:A=1|1:-=B=2\tC=3|2:D=4|"},
    {"nodename=n B=2\tC=3\r\nD=4\n", "1:nodename=n|1:B=2|1:C=3|2:D=4|"},
    {"PartitionName=p B=2 x C=3\n", "1:PartitionName=p|1:B=2|1:-=x C=3|"},
    {"A=1 NodeName=n\n", "1:A=1|1:-=NodeName=n|"},
    {"A = 1\n", "1:A=1|"},
    {"\tA\t=\t1\t\n", "1:A=1|"},
    {"A+=1\nB -= 2\nC+ =3\n", "1:A=1|2:B=2|3:-=C+ =3|"},
    {"junk A=1 junk B=2\n", "1:-=junk A=1 junk B=2|"},
    {"A=1#B=2\nC=3\n", "1:A=1|2:C=3|"},
    {"A=1\\#2\n", "1:A=1#2|"},
    {"A=1\\\\#2\n", "1:A=1\\|"},
    {"NodeName=\"1 2\" B=3\n", "1:NodeName=1 2|1:B=3|"},
    {"A=\"\"\n", "1:A=|"},
    {"A=\"1 2\nB=3\n", "1:A=\"1|1:-=2|2:B=3|"},
    {"A='1 2'\n", "1:A='1|1:-=2'|"},
    {"A=\"1\"2\n", "1:A=\"1\"2|"},
    {"A=\"1 # 2\"\n", "1:A=\"1|"},
    {"A=\"1\\\n2\"\n", "1:A=12|"},
    {"NodeName=1\\\n2 B=3 \\\n C=4\nD=5\n", "1:NodeName=12|2:B=3|3:C=4|4:D=5|"},
    {"A=1 \\  \nB=2\n", "1:A=1|2:-=B=2|"},
    {"A=1 \\ # no\n\nB=2\n", "1:A=1|3:B=2|"},
    {"# no \\\nB=2\n", "2:B=2|"},
    {"DownNodes=1 \\\n\\\n\\\nB=2\nC=3\n", "1:DownNodes=1|4:B=2|5:C=3|"},
    {"A=1\\\r\n2\n", "1:A=12|"},
    {"A=1\\\\\nB=2\n", "1:A=1\\|2:B=2|"},
    {"A=b=c\n", "1:A=b=c|"},
    {"A==1\n", "1:A==1|"},
    {"Include /etc/x.conf\nA=1", "1:Include=/etc/x.conf|2:A=1|"},
    {"INCLUDE  a.conf  \n", "1:Include=a.conf|"},
    {"Include a b\n", "1:Include=a|1:-=b|"},
    {"Include \"a b\"", "1:Include=\"a|1:-=b\"|"},
    {"  Include a\n", "1:-=Include a|"},
    {"A=1 include x", "1:A=1|1:-=include x|"},
    {"included x", "1:-=included x|"},
    {"include=x", "1:-=include=x|"},
    {"\xff\xfeJ\n", "1:-=\xff\xfeJ|"},
    {"Node_Name.x=1", "1:Node_Name.x=1|"},
};

START_TEST(conffile_walk)
{
    char *exact = malloc(strlen(confs[_i].text) + 1);
    char text[256] = "";

    /* The text of exactly that size, so that ASan sees one byte too many. */
    memcpy(exact, confs[_i].text, strlen(confs[_i].text));
    exact = realloc(exact, strlen(confs[_i].text) + !*confs[_i].text);
    ck_assert_int_eq(
        joule_conffile_walk(exact, strlen(confs[_i].text), note, text), 0);
    ck_assert_str_eq(text, confs[_i].pairs);
    free(exact);
}
END_TEST

static int stop_at_two(const char *key, const char *value, unsigned line,
                       void *arg)
{
    (void)key;
    (void)value;
    (*(unsigned *)arg)++;
    return line == 2 ? 7 : 0;
}

START_TEST(conffile_stop)
{
    static const char text[] = "A=1\nB=2\nC=3\n";
    unsigned calls = 0;

    ck_assert_int_eq(
        joule_conffile_walk(text, strlen(text), stop_at_two, &calls), 7);
    ck_assert_uint_eq(calls, 2);
}
END_TEST

START_TEST(conffile_nul)
{
    char text[256] = "";

    ck_assert_int_eq(joule_conffile_walk("A=1\0B=2\n", 8, note, text), 0);
    ck_assert_str_eq(text, "1:A=1|");
}
END_TEST

START_TEST(conffile_line)
{
    static const char text[] =
        "A=1\nNodeName=2 a=3\nB=4\nNodeName=4 \\\n  B=5\n# a=6\n";

    ck_assert_uint_eq(joule_conffile_line(text, strlen(text), "none"), 0);
    ck_assert_uint_eq(joule_conffile_line("", 0, "a"), 0);
    ck_assert_uint_eq(joule_conffile_line(text, strlen(text), "A"), 2);
    ck_assert_uint_eq(joule_conffile_line(text, strlen(text), "b"), 5);
    ck_assert_uint_eq(joule_conffile_line(text, strlen(text), "nodename"), 4);
}
END_TEST

static void add_case(Suite *suite, const char *name, TCase **ret_case)
{
    *ret_case = tcase_create(name);
    suite_add_tcase(suite, *ret_case);
}

int main(void)
{
    Suite *suite = suite_create("base");
    SRunner *runner;
    TCase *tc;
    int failed;

    add_case(suite, "error", &tc);
    tcase_add_test(tc, error_without_struct);
    tcase_add_test(tc, error_control_characters);
    tcase_add_test(tc, error_too_long);
    tcase_add_test(tc, error_quotes_itself);
    add_case(suite, "clock", &tc);
    tcase_add_test(tc, clock_goes_on);
    add_case(suite, "file", &tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, file_bad);
    tcase_add_test(tc, file_good);
    tcase_add_test(tc, file_load);
    add_case(suite, "parse", &tc);
    tcase_add_loop_test(tc, parse_u64, 0, COUNT(u64s));
    tcase_add_loop_test(tc, parse_hex64, 0, COUNT(hexes));
    tcase_add_test(tc, parse_bool);
    tcase_add_loop_test(tc, parse_duration, 0, COUNT(durations));
    tcase_add_test(tc, parse_duration_range);
    tcase_add_test(tc, format_duration);
    tcase_add_loop_test(tc, parse_cpulist, 0, COUNT(lists));
    tcase_add_test(tc, parse_cpulist_all);
    tcase_add_test(tc, parse_words);
    add_case(suite, "option", &tc);
    tcase_add_loop_test(tc, option_bad, 0, COUNT(bad_settings));
    /* abort() is only seen from outside the test's process. */
    if (!getenv("CK_FORK") || strcmp(getenv("CK_FORK"), "no") != 0)
        tcase_add_test_raise_signal(tc, option_bad_default, 6);
    tcase_add_test(tc, option_good);
    tcase_add_test(tc, option_more_types);
    tcase_add_test(tc, option_that_yields);
    tcase_add_test(tc, option_of_the_sampler);
    add_case(suite, "conffile", &tc);
    tcase_add_loop_test(tc, conffile_walk, 0, COUNT(confs));
    tcase_add_test(tc, conffile_stop);
    tcase_add_test(tc, conffile_nul);
    tcase_add_test(tc, conffile_line);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
