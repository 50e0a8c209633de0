/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/sensors/cpuinfo.h"
#include "tests/unit/tree.h"

#define XEON                                                                   \
    "processor\t: 0\n"                                                         \
    "vendor_id\t: GenuineIntel\n"                                              \
    "cpu family\t: 6\n"                                                        \
    "model\t\t: 85\n"                                                          \
    "model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n"                 \
    "stepping\t: 7\n"                                                          \
    "flags\t\t: fpu vme de\n"

#define X86 "processor : 0\nvendor_id : GenuineIntel\n"

static int parse(const char *text, struct joule_cpuinfo *info,
                 struct joule_error *err)
{
    return joule_cpuinfo_parse(text, strlen(text), info, err);
}

static const struct {
    const char *text, *sentence;
} bad[] = {
    {"", "has no \"processor\" line"},
    {"\n\n\n", "has no \"processor\" line"},
    {"no colon here", "has no \"processor\" line"},
    {"cpu family : 6\nmodel : 85\nvendor_id : GenuineIntel\n",
     "has no \"processor\" line"},
    {"processor : 0\nvendor_id :\n", "has 0 characters"},
    {"processor : 0\nvendor_id : GenuineGenuineGenuine\n", "has 21 characters"},
    {"processor : 0\nvendor_id : GenuineIntel\nmodel : 1\n",
     "no \"cpu family\" line"},
    {"processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\n",
     "no \"model\" line"},
    {X86 "model : 1\ncpu family : six\n", "\"cpu family: six\""},
    {X86 "model : 1\ncpu family : -6\n", "\"cpu family: -6\""},
    {X86 "model : 1\ncpu family :\n", "\"cpu family: \""},
    {X86 "cpu family : 6\nmodel : 4096\n", "\"model: 4096\""},
    {X86 "cpu family : 6\nmodel : 99999999999999999999999\n", "\"model: 99999"},
    {X86 "cpu family : 6\nmodel : 1 2\n", "\"model: 1 2\""},
    /* The second block is no part of the first. */
    {"processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\n\n"
     "processor : 1\nmodel : 85\n",
     "no \"model\" line"},
};

START_TEST(bad_text)
{
    struct joule_cpuinfo info = {.model = 4711};
    struct joule_error err = {""};

    errno = 0;
    ck_assert_int_eq(parse(bad[_i].text, &info, &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_msg(strstr(err.text, bad[_i].sentence), "%s", err.text);
    ck_assert_uint_eq(info.model, 4711);
    ck_assert_int_eq(parse(bad[_i].text, &info, NULL), -1);
}
END_TEST

START_TEST(bad_bytes)
{
    static const char text[] = X86 "cpu family : 6\nmodel : 8\0"
                                   "5\n";
    struct joule_cpuinfo info;
    struct joule_error err;

    ck_assert_int_eq(joule_cpuinfo_parse(text, sizeof(text) - 1, &info, &err),
                     -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(missing_file)
{
    struct joule_cpuinfo info;
    struct joule_error err;
    struct tree t;

    tree_create(&t);
    ck_assert_int_eq(joule_cpuinfo_read(t.fd, &info, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/proc/cpuinfo"));
    tree_mkdir(&t, "proc/cpuinfo");
    ck_assert_int_eq(joule_cpuinfo_read(t.fd, &info, &err), -1);
    ck_assert_int_eq(errno, EISDIR);
    tree_destroy(&t);
}
END_TEST

START_TEST(xeon)
{
    struct joule_cpuinfo info;

    ck_assert_int_eq(parse(XEON, &info, NULL), 0);
    ck_assert_str_eq(info.vendor, "GenuineIntel");
    ck_assert_str_eq(info.name, "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz");
    ck_assert_uint_eq(info.family, 6);
    ck_assert_uint_eq(info.model, 0x55);
    ck_assert(!info.hypervisor);
}
END_TEST

START_TEST(first_block_counts)
{
    struct joule_cpuinfo info;

    ck_assert_int_eq(parse("\n" XEON "\nprocessor : 1\nvendor_id : Other\n"
                           "model : x\nflags : hypervisor\n",
                           &info, NULL),
                     0);
    ck_assert_uint_eq(info.model, 0x55);
    ck_assert(!info.hypervisor);
}
END_TEST

START_TEST(first_line_counts)
{
    struct joule_cpuinfo info;

    ck_assert_int_eq(
        parse(XEON "model : nonsense\nmodel name : other\n", &info, NULL), 0);
    ck_assert_uint_eq(info.model, 0x55);
}
END_TEST

static const struct {
    const char *flags;
    bool hypervisor;
} flags[] = {
    {"flags : hypervisor", true},
    {"flags : fpu hypervisor lahf_lm\n", true},
    {"flags\t\t:\tfpu\thypervisor\r\n", true},
    {"flags : nohypervisor hypervisors hyper visor\n", false},
    {"flags :\n", false},
    {"vmx flags : hypervisor\n", false},
    {"", false},
};

START_TEST(hypervisor)
{
    struct joule_cpuinfo info;
    char text[512] = "processor : 0\nvendor_id : AuthenticAMD\n"
                     "cpu family : 25\nmodel : 1\n";

    strcat(text, flags[_i].flags);
    ck_assert_int_eq(parse(text, &info, NULL), 0);
    ck_assert_int_eq(info.hypervisor, flags[_i].hypervisor);
    ck_assert_uint_eq(info.family, 0x19);
    ck_assert_str_eq(info.name, "");
}
END_TEST

/* The first block of each, as Linux writes it. */
static const struct {
    const char *text, *name;
} others[] = {
    {"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n", ""},
    {"processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"
     "clock\t\t: 3000.000000MHz\nrevision\t: 2.2 (pvr 004e 1202)\n\n",
     ""},
    {"processor\t: 0\ncpu\t\t: 7447A\nmodel\t\t: Power Macintosh\n"
     "machine\t\t: PowerBook5,6\n",
     ""},
    {"processor\t: 0\ncpu\t: POWER9\nmodel\t: 2\n", ""},
    {"vendor_id       : IBM/S390\n# processors    : 2\n"
     "bogomips per cpu: 3033.00\n"
     "processor 0: version = FF,  identification = 133E78,  machine = 2964\n",
     ""},
    {"processor\t: 0\ncpu family\t: PA-RISC 2.0\n"
     "cpu\t\t: PA8700 (PCX-W2)\nmodel\t\t: 9000/785/J6700\n",
     ""},
    {"processor  : 0\nvendor     : GenuineIntel\narch       : IA-64\n"
     "family     : Itanium 2\nmodel      : 1\n",
     ""},
    {"processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc\n", ""},
    {"system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\n"
     "CPU Family\t\t: Loongson-64bit\nModel Name\t\t: Loongson-3A5000\n",
     ""},
    {"processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\n"
     "mode\t\t: skas\n",
     "UML"},
    {"vendor_id\t: Tensilica\nmodel\t\t: Xtensa (variant)\n", ""},
    {"cpu\t\t\t: Alpha\ncpu model\t\t: EV67\n", ""},
    {"cpu\t\t: TI UltraSparc IIIi (Jalapeno)\nncpus probed\t: 2\n", ""},
};

START_TEST(other_architectures)
{
    struct joule_cpuinfo info;
    struct joule_error err = {""};

    ck_assert_msg(parse(others[_i].text, &info, &err) == 0, "%s", err.text);
    ck_assert_str_eq(info.vendor, "");
    ck_assert_str_eq(info.name, others[_i].name);
    ck_assert_uint_eq(info.family, 0);
    ck_assert_uint_eq(info.model, 0);
}
END_TEST

START_TEST(long_name)
{
    struct joule_cpuinfo info;
    char text[512] = "processor : 0\nmodel name : ";

    memset(text + strlen(text), 'x', 200);
    ck_assert_int_eq(parse(text, &info, NULL), 0);
    ck_assert_uint_eq(strlen(info.name), sizeof(info.name) - 1);
    ck_assert_int_eq(
        parse("processor : 0\nmodel name : a\033[1mb\xC3\xA9", &info, NULL), 0);
    ck_assert_str_eq(info.name, "a?[1mb??");
}
END_TEST

START_TEST(large_file)
{
    static char text[100000];
    struct joule_cpuinfo info;
    struct tree t;

    tree_create(&t);
    while (strlen(text) < sizeof(text) - sizeof(XEON) - 2)
        strcat(text, XEON "\n");
    tree_write(&t, "proc/cpuinfo", text);
    ck_assert_int_eq(joule_cpuinfo_read(t.fd, &info, NULL), 0);
    ck_assert_uint_eq(info.model, 0x55);
    tree_destroy(&t);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
    Suite *suite = suite_create("cpuinfo");
    TCase *tc = tcase_create("cpuinfo");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, bad_text, 0, COUNT(bad));
    tcase_add_test(tc, bad_bytes);
    tcase_add_test(tc, missing_file);
    tcase_add_test(tc, xeon);
    tcase_add_test(tc, first_block_counts);
    tcase_add_test(tc, first_line_counts);
    tcase_add_loop_test(tc, hypervisor, 0, COUNT(flags));
    tcase_add_loop_test(tc, other_architectures, 0, COUNT(others));
    tcase_add_test(tc, long_name);
    tcase_add_test(tc, large_file);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
