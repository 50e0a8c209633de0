/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/dice.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/jobid.h"
#include "tools/sh5util/sources.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/jobtables.h"
#include "tools/sh5util/resolve.h"
#include "tools/sh5util/say.h"

static char dir[64];

static void setup(void)
{
    strcpy(dir, "/tmp/joule-sh5.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static void teardown(void)
{
    char command[96];

    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void check_fixed(double value)
{
    char mine[JOULE_NUMBER_MAX + 1], theirs[JOULE_NUMBER_MAX + 1];

    *joule_number_fixed(mine, value) = '\0';
    snprintf(theirs, sizeof(theirs), "%.6f", value);
    ck_assert_str_eq(mine, theirs);
}

START_TEST(fixed_is_printf)
{
    static const double values[] = {
        0,
        -0.0,
        0.5,
        0.0000005,
        0.0000015,
        0.0000025,
        1e-7,
        0.1,
        0.3,
        2.5e-6,
        123456.789,
        3999999999.999999,
        4e9,
        1e15,
        1e300,
        -1.5,
        -0.0000004,
        0.9999995,
        0.99999949999,
        1.0000005,
        4503599627.3704955,
        1e-320,
        21249.954971,
        0.0009765625,
        0.00048828125,
        0.000244140625,
        INFINITY,
        -INFINITY,
    };
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        check_fixed(values[i]);
    for (int i = 0; i < dice_rounds(300000); i++) {
        uint64_t bits;
        double value;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bits = state >> 12 | (uint64_t)(0x3E0 + state % 0x60) << 52;
        memcpy(&value, &bits, sizeof(value));
        check_fixed(value);
        /* Ties: multiples of 2^-7 millionths. */
        check_fixed((double)(state >> 40) / 128);
        check_fixed((double)(state >> 34) / 1048576);
    }
}
END_TEST

START_TEST(fixed_nan)
{
    char text[JOULE_NUMBER_MAX + 1];

    *joule_number_fixed(text, -NAN) = '\0';
    ck_assert_str_eq(text, "nan");
    *joule_number_json(text, NAN) = '\0';
    ck_assert_str_eq(text, "null");
    *joule_number_json(text, 0.1) = '\0';
    ck_assert_str_eq(text, "0.1");
    *joule_number_json(text, 1.0 / 3) = '\0';
    ck_assert(strtod(text, NULL) == 1.0 / 3);
}
END_TEST

START_TEST(whole_numbers)
{
    static const uint64_t values[] = {
        0, 9, 10, 99, 100, 101, 999, 1000, 65536, 4294967296u, UINT64_MAX};
    char mine[64], theirs[64];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        *joule_number_u64(mine, values[i]) = '\0';
        snprintf(theirs, sizeof(theirs), "%llu", (unsigned long long)values[i]);
        ck_assert_str_eq(mine, theirs);
    }
    *joule_number_i128(mine, INT64_MIN) = '\0';
    ck_assert_str_eq(mine, "-9223372036854775808");
    *joule_number_i128(mine, (__int128)UINT64_MAX * 1000) = '\0';
    ck_assert_str_eq(mine, "18446744073709551615000");
    *joule_number_i128(mine, ((__int128)10000000000000000000u) * 10) = '\0';
    ck_assert_str_eq(mine, "100000000000000000000");
    *joule_number_i128(mine, -(__int128)UINT64_MAX - 1) = '\0';
    ck_assert_str_eq(mine, "-18446744073709551616");
}
END_TEST

START_TEST(bad_jobs)
{
    static const char *const bad[] = {
        "",
        "0",
        "-1",
        "x",
        "1.",
        "1.x",
        "1_",
        "1+",
        "_1",
        "1_2_3",
        "1 ",
        " 1",
        "1,,2",
        "1,",
        "1.0x",
        "99999999999",
        "1.-2",
        "1.4294967295",
        "../1",
        "1.0.0",
        "1_99999999999999999999999999999",
        "4294967294",
    };
    struct joule_job *jobs = NULL;
    size_t count;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct joule_error err = {""};

        ck_assert_msg(joule_jobs_parse(bad[i], &jobs, &count, &err) == -1,
                      "\"%s\"", bad[i]);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert(err.text[0] != '\0');
        /* As Slurm has it, for scripts. */
        if (strspn(bad[i], "0123456789.-") < strlen(bad[i]) &&
            !strchr(bad[i], '.') && !strchr(bad[i], ','))
            ck_assert_ptr_nonnull(strstr(err.text, "Failed to parse job ID"));
    }
}
END_TEST

START_TEST(good_jobs)
{
    struct joule_job *jobs;
    size_t count;

    ck_assert_int_eq(joule_jobs_parse("7.0,7.batch,8_3,9+1.extern,7.-6,0010",
                                      &jobs, &count, NULL),
                     0);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(jobs[0].id, 7);
    ck_assert_uint_eq(jobs[0].steps, 3);
    ck_assert(joule_job_has_step(&jobs[0], "0"));
    ck_assert(joule_job_has_step(&jobs[0], "batch"));
    ck_assert(joule_job_has_step(&jobs[0], "-6"));
    ck_assert(!joule_job_has_step(&jobs[0], "1"));
    ck_assert_str_eq(jobs[1].text, "8_3");
    ck_assert_uint_eq(jobs[1].id, 0);
    ck_assert(joule_job_has_step(&jobs[1], "17"));
    ck_assert_str_eq(jobs[2].step[0], "-4");
    ck_assert_str_eq(jobs[3].text, "10");
    free(jobs);
    /* Of a federation. */
    ck_assert_int_eq(
        joule_jobs_parse("67108866,4294967293", &jobs, &count, NULL), 0);
    ck_assert_uint_eq(jobs[0].id, 67108866);
    ck_assert_uint_eq(jobs[1].id, 4294967293);
    free(jobs);
    /* All steps and one of them are all. */
    ck_assert_int_eq(joule_jobs_parse("7,7.0", &jobs, &count, NULL), 0);
    ck_assert(joule_job_has_step(&jobs[0], "5"));
    free(jobs);
}
END_TEST

START_TEST(series)
{
    ck_assert(joule_series_matches(NULL, "Anything/0"));
    ck_assert(joule_series_matches("Energy", "Energy"));
    ck_assert(joule_series_matches("energy", "Energy"));
    ck_assert(!joule_series_matches("Energy", "EnergyX"));
    ck_assert(joule_series_matches("Task", "Tasks/3"));
    ck_assert(joule_series_matches("Tasks", "Tasks/3"));
    ck_assert(joule_series_matches("Task_3", "Tasks/3"));
    ck_assert(joule_series_matches("Tasks_3", "Tasks/3"));
    ck_assert(!joule_series_matches("Task_3", "Tasks/31"));
    ck_assert(joule_series_matches("Tasks/3", "Tasks/3"));
    ck_assert(!joule_series_matches("Task_3", "Energy"));
    ck_assert_int_lt(joule_step_compare("2", "10"), 0);
    ck_assert_int_lt(joule_step_compare("10", "batch"), 0);
    ck_assert_int_lt(joule_step_compare("batch", "-4"), 0);
}
END_TEST

START_TEST(quoting)
{
    char text[256];
    struct joule_cells c;

    joule_cells_begin(&c, text, false);
    joule_cells_text(&c, "a,\"b\"", 5);
    joule_cells_missing(&c);
    joule_cells_double(&c, 1.5);
    joule_cells_end(&c);
    *c.at = '\0';
    ck_assert_str_eq(text, "\"a,\"\"b\"\"\",,1.500000\n");
    joule_cells_begin(&c, text, true);
    joule_cells_text(&c, "a\n\"\xff\xc3\xa4\\", 7);
    joule_cells_missing(&c);
    joule_cells_u64(&c, 7);
    joule_cells_end(&c);
    *c.at = '\0';
    ck_assert_str_eq(text, ",\n[\"a\\u000a\\\"?\xc3\xa4\\\\\",null,7]");
}
END_TEST

/* [text] as the only cell of a row. */
static void check_cell(const char *text, bool json, const char *want)
{
    char row[256];
    struct joule_cells c;

    joule_cells_begin(&c, row, json);
    joule_cells_text(&c, text, strlen(text));
    joule_cells_end(&c);
    *c.at = '\0';
    ck_assert_str_eq(row + (json ? 3 : 0), want);
}

/* Neither a terminal nor a spreadsheet does what a cell says. */
START_TEST(cells_are_harmless)
{
    check_cell("=1+1", false, "'=1+1\n");
    check_cell("@SUM(A1)", false, "'@SUM(A1)\n");
    check_cell("-x", false, "'-x\n");
    check_cell("-", false, "'-\n");
    check_cell("+1-2", false, "'+1-2\n");
    check_cell("-4e", false, "'-4e\n");
    check_cell("=a,b", false, "\"'=a,b\"\n");
    check_cell("-4", false, "-4\n");
    check_cell("-4.5e-3", false, "-4.5e-3\n");
    check_cell("+.5", false, "+.5\n");
    check_cell("a=b", false, "a=b\n");
    check_cell("a\033[2J\r\nb\t\x7f", false, "a?[2J??b??\n");
    /* C1, a direction override, and bytes that are no UTF-8. */
    check_cell("\xc2\x9b\xe2\x80\xae\x9b\xc3", false, "???????\n");
    check_cell("\xc3\xa4", false, "\xc3\xa4\n");
    check_cell("=\x7f\xc2\x9b\033", true, "\"=\\u007f??\\u001b\"]");
}
END_TEST

/* One line whatever is in it. */
START_TEST(sentences_are_printable)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    joule_say_to(out, "%s is %d", "a\nsh5util: all is well\033]0;x\x07\xc2\x9b",
                 7);
    fclose(out);
    ck_assert_str_eq(text, "a?sh5util: all is well?]0;x??? is 7\n");
    free(text);
}
END_TEST

START_TEST(totals_of_columns)
{
    const struct joule_column whole = {.name = "N", .size = 8};
    const struct joule_column real = {
        .name = "D", .offset = 8, .size = 8, .kind = JOULE_KIND_FLOAT};
    struct joule_total totals[] = {{.column = &whole},
                                   {.column = &real},
                                   {0},
                                   {.column = &whole, .is_elapsed = true}};
    struct {
        uint64_t n;
        double d;
    } rows[] = {{UINT64_MAX, NAN}, {1, 2.5}, {3, -1}};
    struct joule_cells c;
    char text[1024];

    joule_cells_begin(&c, text, false);
    for (size_t i = 0; i < 4; i++) {
        joule_total_add(&totals[i], (void *)rows, 2, sizeof(rows[0]));
        joule_total_add(&totals[i], (void *)(rows + 2), 1, sizeof(rows[0]));
        joule_total_put(&totals[i], &c);
    }
    joule_cells_end(&c);
    *c.at = '\0';
    ck_assert_str_eq(text, "1,18446744073709551615,18446744073709551619,"
                           "6148914691236516864.000000,"
                           "-1.000000,2.500000,1.500000,0.750000,,,,,3\n");
}
END_TEST

START_TEST(output_appears_whole)
{
    struct joule_outfile out, second;
    struct joule_error err = {""};
    struct stat st;

    ck_assert_int_eq(joule_outfile_open(&out, "x.csv", NULL), 0);
    ck_assert_int_eq(write(out.fd, "abc", 3), 3);
    ck_assert_int_eq(access("x.csv", F_OK), -1);
    ck_assert_int_eq(joule_outfile_open(&second, "x.csv", &err), -1);
    ck_assert_int_eq(errno, EBUSY);
    ck_assert_int_eq(joule_outfile_commit(&out, NULL), 0);
    ck_assert_int_eq(stat("x.csv", &st), 0);
    ck_assert_int_eq(st.st_size, 3);
    ck_assert_int_eq(access(".x.csv.tmp", F_OK), -1);
    /* What was there stays, whatever happens to the next. */
    ck_assert_int_eq(joule_outfile_open(&out, "./x.csv", NULL), 0);
    ck_assert_int_eq(write(out.fd, "z", 1), 1);
    joule_outfile_abandon(&out);
    ck_assert_int_eq(stat("x.csv", &st), 0);
    ck_assert_int_eq(st.st_size, 3);
    ck_assert_int_eq(access(".x.csv.tmp", F_OK), -1);
}
END_TEST

START_TEST(output_of_a_killed_one_is_taken_over)
{
    struct joule_outfile out;
    struct stat st;
    int fd = open(".x.csv.tmp", O_WRONLY | O_CREAT, 0666);

    ck_assert_int_eq(write(fd, "old", 3), 3);
    close(fd);
    ck_assert_int_eq(joule_outfile_open(&out, "x.csv", NULL), 0);
    ck_assert_int_eq(fstat(out.fd, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    joule_outfile_abandon(&out);
}
END_TEST

START_TEST(output_is_no_trap)
{
    struct joule_outfile out;
    struct joule_error err = {""};
    struct stat st;
    int fd = open("secret", O_WRONLY | O_CREAT, 0666);

    ck_assert_int_eq(write(fd, "s", 1), 1);
    close(fd);
    ck_assert_int_eq(symlink("secret", ".x.tmp"), 0);
    ck_assert_int_eq(joule_outfile_open(&out, "x", &err), -1);
    ck_assert_int_eq(unlink(".x.tmp"), 0);
    ck_assert_int_eq(link("secret", ".x.tmp"), 0);
    ck_assert_int_eq(joule_outfile_open(&out, "x", &err), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(stat("secret", &st), 0);
    ck_assert_int_eq(st.st_size, 1);
    ck_assert_int_eq(unlink(".x.tmp"), 0);
    ck_assert_int_eq(mkfifo(".x.tmp", 0666), 0);
    ck_assert_int_eq(joule_outfile_open(&out, "x", &err), -1);
    ck_assert_int_eq(joule_outfile_open(&out, "..", &err), -1);
    ck_assert_int_eq(joule_outfile_open(&out, "no/such/x", &err), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

static void write_text(const char *path, mode_t mode, const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void make_dirs(void)
{
    static const char *const dirs[] = {"etc",       "etc/slurm",      "run",
                                       "run/slurm", "run/slurm/conf", "mine"};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        ck_assert_int_eq(mkdir(dirs[i], 0755), 0);
}

static void check_profiledir(int root_fd, const char *conf, const char *want)
{
    struct joule_error err = {""};
    char *found = joule_profiledir(root_fd, conf, &err);

    if (!want)
        ck_assert_ptr_null(found);
    else
        ck_assert_msg(found && strcmp(found, want) == 0, "%s: %s",
                      found ? found : "none", err.text);
    free(found);
}

/* As `joule probe` looks for it. */
START_TEST(profile_directory)
{
    int root_fd = open(".", O_RDONLY | O_DIRECTORY);

    make_dirs();
    check_profiledir(root_fd, NULL, NULL);
    ck_assert(!joule_profiledir_has_slurm(root_fd, NULL));
    write_text("etc/slurm/acct_gather.conf", 0644, "ProfileHDF5Dir=/alone\n");
    check_profiledir(root_fd, NULL, "/alone");
    write_text("run/slurm/conf/slurm.conf", 0644, "ClusterName=c\n");
    write_text("run/slurm/conf/acct_gather.conf", 0644,
               "ProfileHDF5Dir=/configless\n");
    check_profiledir(root_fd, NULL, "/configless");
    ck_assert(joule_profiledir_has_slurm(root_fd, NULL));
    write_text("etc/slurm/slurm.conf", 0644, "ClusterName=c\n");
    write_text("etc/slurm/acct_gather.conf", 0644, "ProfileHDF5Dir=/etc-s\n");
    check_profiledir(root_fd, NULL, "/etc-s");
    close(root_fd);
    /* A name is looked up as the shell would: a file, or its directory. */
    root_fd = open("/", O_RDONLY | O_DIRECTORY);
    write_text("mine/slurm.conf", 0644, "ClusterName=c\n");
    write_text("mine/acct_gather.conf", 0644, "ProfileHDF5Dir=/mine\n");
    check_profiledir(root_fd, "mine/slurm.conf", "/mine");
    check_profiledir(root_fd, "mine", "/mine");
    close(root_fd);
}
END_TEST

static const char *others_of(const char *jobs_text, const char *lines)
{
    static struct joule_error sentence;
    struct joule_job *jobs;
    size_t count;
    bool has;

    ck_assert_int_eq(joule_jobs_parse(jobs_text, &jobs, &count, NULL), 0);
    has = joule_job_has_others(&jobs[0], lines, &sentence);
    free(jobs);
    return has ? sentence.text : NULL;
}

/* The number of an array is that of one of its tasks. */
START_TEST(other_tasks)
{
    const char *text;

    ck_assert_ptr_null(others_of("42", ""));
    ck_assert_ptr_null(others_of("42", "42|42\n"));
    ck_assert_ptr_null(others_of("42", "42"));
    ck_assert_ptr_null(others_of("42", "42_7|42\n"));
    ck_assert_ptr_null(others_of("43", "42_6|43\n42_7|42\n"));
    ck_assert_ptr_null(others_of("4", "42_6|43\n42_7|42\n"));
    ck_assert_ptr_null(others_of("42_6", "42_6|43\n42_7|42\n"));
    text = others_of("42", "42_6|43\n42_7|42\n");
    ck_assert_ptr_nonnull(strstr(text, "Job 42 is an array"));
    ck_assert_ptr_nonnull(strstr(text, "(42_6)"));
    text = others_of("42", "7|7\n42+0|42\n42+1|43\n42+2|44\n42+3|45\n42+4|46");
    ck_assert_ptr_nonnull(strstr(text, "a heterogeneous job"));
    ck_assert_ptr_nonnull(strstr(text, "(42+1, 42+2, 42+3, ...)"));
}
END_TEST

/* squeue knows the jobs of late, sacct the others. */
START_TEST(slurm_is_asked)
{
    struct joule_job *jobs;
    size_t count;
    char *lines, *path = strdup(getenv("PATH"));

    ck_assert_int_eq(joule_jobs_parse("42,8_1,9", &jobs, &count, NULL), 0);
    ck_assert_int_eq(setenv("PATH", dir, 1), 0);
    lines = joule_jobs_ask(jobs, count);
    ck_assert_str_eq(lines, "");
    free(lines);
    write_text("sacct", 0755, "#!/bin/sh\necho \"9_1|10 sacct $*\"\n");
    write_text("squeue", 0755, "#!/bin/sh\necho \"42|42 squeue $*\"\n");
    lines = joule_jobs_ask(jobs, count);
    ck_assert_str_eq(lines, "42|42 squeue -h -t all -o %i|%A -j 42,9\n"
                            "9_1|10 sacct -X -n -P -o JobID,JobIDRaw -j 9\n");
    free(lines);
    lines = joule_jobs_ask(jobs, 1);
    ck_assert_str_eq(lines, "42|42 squeue -h -t all -o %i|%A -j 42\n");
    free(lines);
    ck_assert_ptr_null(joule_jobs_ask(jobs + 1, 1));
    free(jobs);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    free(path);
}
END_TEST

static mode_t mode_of(const char *path)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* Whoever cannot read the input cannot read what is made of it, at no time. */
START_TEST(output_is_no_wider_than_its_input)
{
    static const struct {
        mode_t input, mask, output;
        bool other_group;
    } rows[] = {
        {0644, 022, 0644, false}, {0600, 022, 0600, false},
        {0640, 022, 0640, false}, {0640, 022, 0600, true},
        {0644, 022, 0644, true},  {0660, 0, 0660, false},
        {0666, 077, 0600, false}, {0400, 022, 0600, false},
    };
    struct joule_outfile out;
    mode_t mask = umask(022);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stat st = {.st_mode = S_IFREG | rows[i].input};

        umask(rows[i].mask);
        close(open(".x.tmp", O_WRONLY | O_CREAT, 0666)); /* left behind */
        ck_assert_int_eq(joule_outfile_open(&out, "x", NULL), 0);
        ck_assert_uint_eq(mode_of(".x.tmp"), 0600);
        st.st_gid = getegid() + rows[i].other_group;
        joule_outfile_limit(&out, &st);
        ck_assert_int_eq(joule_outfile_commit(&out, NULL), 0);
        ck_assert_msg(mode_of("x") == rows[i].output, "row %zu: %04o", i,
                      (unsigned)mode_of("x"));
    }
    umask(mask);
}
END_TEST

/* In a directory of a user's, names are not what root takes them for. */
START_TEST(input_is_no_trap)
{
    struct joule_error err = {""};
    struct stat st;
    int fd;

    close(open("job_7.h5", O_WRONLY | O_CREAT, 0600));
    fd = joule_plan_open(AT_FDCWD, "job_7.h5", "./job_7.h5", &st, NULL);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(symlink("job_7.h5", "job_8.h5"), 0);
    fd = joule_plan_open(AT_FDCWD, "job_8.h5", "./job_8.h5", &st, &err);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_ptr_nonnull(strstr(err.text, "./job_8.h5 is a link"));
    ck_assert_int_eq(mkfifo("job_9.h5", 0600), 0);
    fd = joule_plan_open(AT_FDCWD, "job_9.h5", "./job_9.h5", &st, &err);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(errno, EINVAL);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown("job_7.h5", 54321, 54321), 0);
    fd = joule_plan_open(AT_FDCWD, "job_7.h5", "./job_7.h5", &st, &err);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "belongs to user 54321"));
}
END_TEST

static void touch(const char *path)
{
    close(open(path, O_WRONLY | O_CREAT, 0644));
}

static void forget(struct joule_sources *files)
{
    joule_sources_free(files);
    *files = (struct joule_sources){.dir_fd = -1, .old_fd = -1};
}

START_TEST(names_of_files)
{
    static const char *const others[] = {
        "u/8_0_n1.h5",        "u/7_0.h5",          "u/7_x_n1.h5",
        "u/7_0_.h5",          "u/.7_0_n1.h5",      "u/7_0_n1.h5.x",
        "u/7_0_n1",           "u/77_0_n1.h5",      "u/7__n1.h5",
        "u/7_0_.x.h5",        "u/7_0_n\033[2J.h5", "u/7_0_n\n.h5",
        "u/7_0_n\xc2\x9b.h5", "u/7_0_n 1.h5",      "u/7_0_n=1.h5",
        "u/7_0_.log",         "u/8_0_n1.log",      "u/7_0_n1.log.x",
        "u/7_0_n1.h5.log",    "u/7_0_n1.logs",     "u/7_0_n\n.log",
    };
    const struct joule_job all = {.text = "7", .id = 7};
    const struct joule_job one = {
        .text = "7", .id = 7, .steps = 1, .step = {"-4"}};
    struct joule_sources files = {.old_fd = -1};
    struct joule_error err;

    ck_assert_int_eq(mkdir("u", 0700), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        touch(others[i]);
    touch("u/7_10_n2.h5");
    touch("u/7_2_n10.h5");
    touch("u/7_2_n9.h5");
    touch("u/7_batch_n1.h5");
    touch("u/7_4294967292_n1.h5");
    touch("u/7_2_n9.r1.h5");
    touch("u/7_2_a_b.h5");
    touch("u/7_2_n9.log"); /* it has become a file */
    touch("u/7_10_n.login.log");
    ck_assert_int_eq(joule_sources_find(&files, ".", "u", &all, &err), 0);
    ck_assert_uint_eq(files.count, 8);
    ck_assert_str_eq(files.source[0].node, "a_b");
    ck_assert_str_eq(files.source[1].node, "n9");
    ck_assert(!files.source[1].is_log);
    ck_assert_str_eq(files.source[2].node, "n9.r1");
    ck_assert_str_eq(files.source[3].node, "n10");
    ck_assert_str_eq(files.source[4].node, "n.login");
    ck_assert(files.source[4].is_log);
    ck_assert_str_eq(files.source[5].step, "10");
    ck_assert_str_eq(files.source[6].step, "batch");
    ck_assert_str_eq(files.source[7].step, "-4");
    forget(&files);
    ck_assert_int_eq(joule_sources_find(&files, ".", "u", &one, &err), 0);
    ck_assert_uint_eq(files.count, 1);
    forget(&files);
}
END_TEST

START_TEST(bad_directories)
{
    static const char *const users[] = {"", ".", "..", "a/b", "../u"};
    const struct joule_job all = {.text = "7", .id = 7};
    struct joule_sources files = {.old_fd = -1};
    struct joule_error err;

    ck_assert_int_eq(mkdir("u", 0700), 0);
    ck_assert_int_eq(symlink("u", "link"), 0);
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        ck_assert_int_eq(joule_sources_find(&files, ".", users[i], &all, &err),
                         -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_int_eq(mkdir(".u", 0700), 0); /* a name as any other */
    ck_assert_int_eq(joule_sources_find(&files, ".", ".u", &all, &err), 0);
    forget(&files);
    ck_assert_int_eq(joule_sources_find(&files, ".", "link", &all, &err), -1);
    ck_assert_int_eq(joule_sources_find(&files, ".", "none", &all, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_sources_find(&files, "none", "u", &all, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* Whether the fourth file is locked, which does not keep it from being read. */
static bool check_busy(struct joule_sources *files)
{
    int fd;

    files->unfinished = true;
    fd = joule_source_open(files, &files->source[3], NULL);
    ck_assert_int_ge(fd, 0);
    close(fd);
    return files->source[3].is_busy;
}

START_TEST(bad_files)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const struct joule_job all = {.text = "7", .id = 7};
    struct joule_sources files = {.old_fd = -1};
    struct joule_error err;
    int fd;

    ck_assert_int_eq(mkdir("u", 0700), 0);
    ck_assert_int_eq(mkfifo("u/7_0_n1.h5", 0600), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "u/7_0_n2.h5"), 0);
    ck_assert_int_eq(mkdir("u/7_0_n3.h5", 0700), 0);
    touch("u/7_0_n4.h5");
    fd = open("u/7_0_n4.h5", O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(joule_sources_find(&files, ".", "u", &all, &err), 0);
    ck_assert_uint_eq(files.count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(joule_source_open(&files, &files.source[i], &err), -1);
        ck_assert_int_eq(errno, i < 3 ? EPERM : EBUSY);
    }
    ck_assert(check_busy(&files));
    close(fd);
    ck_assert(!check_busy(&files));
    fd = open("u/7_0_n4.h5", O_RDWR);
    ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &whole), 0);
    ck_assert(check_busy(&files));
    close(fd);
    ck_assert(!check_busy(&files));
    forget(&files);
}
END_TEST

START_TEST(command_lines)
{
    static const struct {
        const char *line;
        int status;
    } rows[] = {
        {"sh5util", 1},
        {"sh5util -j", 1},
        {"sh5util -j x", 1},
        {"sh5util -j 1 x", 1},
        {"sh5util -j 1 -E -L", 1},
        {"sh5util -j 1 -I -s Energy", 1},
        {"sh5util -j 1 -E -l Node", 1},
        {"sh5util -j 1 -E --format xml", 1},
        {"sh5util -j 1 --readers 0", 1},
        {"sh5util -j 1,2 -o x", 1},
        {"sh5util -j 1 -o -", 1},
        {"sh5util -j 1 -i x", 1},
        {"sh5util -j 1 -N n1", 1},
        {"sh5util -j 1 -s Energy", 1},
        {"sh5util -j 1 -d Power", 1},
        {"sh5util -j 1 -l Node:Totals", 1},
        {"sh5util -j 1 --format csv", 1},
        {"sh5util -j 1 -E -S", 1},
        {"sh5util -j 1 -E --unfinished", 1},
        {"sh5util -j 1 -S -E", 1},
        {"sh5util -j 1 -E -p x", 1},
        {"sh5util -j 1 -E -d Power", 1},
        {"sh5util -j 1 -I -s Energy -d Power -l Node:Totals", 1},
        {"sh5util -j 1 -I -s Energy -d Power -S", 1},
        {"sh5util -j 1 -I -s Energy -d Power -p x", 1},
        {"sh5util -j 1 -L -S", 1},
        {"sh5util -j 1 -L -p x", 1},
        {"sh5util -j 1 -L -o x", 1},
        {"sh5util -j 1 -L -d Power", 1},
        {"sh5util -j 1 -L -l Node:Totals", 1},
        {"sh5util --no-such", 1},
        {"sh5util --help", 0},
        {"sh5util -V", 0},
        {"sh5util --usage", 0},
        {"sh5util -j 1", -1},
        {"sh5util -j 1 --unfinished", -1},
        {"sh5util --jobs=1.batch --savefiles --user=u --profiledir=/x -v", -1},
        {"sh5util -j1 --extract --level=node:timeseries --series=Task_1", -1},
        {"sh5util -j1 --item-extract -s Energy --data=Power -N n1", -1},
        {"sh5util -j1 --list --input=x", -1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *copy = strdup(rows[i].line), *rest = copy, *argv[16];
        struct joule_sh5_options o;
        int argc = 0;

        while ((argv[argc] = strsep(&rest, " ")))
            argc++;
        optind = 0;
        ck_assert_msg(joule_sh5_options_parse(argc, argv, &o) == rows[i].status,
                      "%s", rows[i].line);
        free(o.job);
        free(copy);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sh5util");
    TCase *plain = tcase_create("plain"), *files = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_add_test(plain, fixed_is_printf);
    tcase_add_test(plain, fixed_nan);
    tcase_add_test(plain, whole_numbers);
    tcase_add_test(plain, bad_jobs);
    tcase_add_test(plain, good_jobs);
    tcase_add_test(plain, series);
    tcase_add_test(plain, quoting);
    tcase_add_test(plain, cells_are_harmless);
    tcase_add_test(plain, sentences_are_printable);
    tcase_add_test(plain, totals_of_columns);
    tcase_add_test(plain, command_lines);
    tcase_set_timeout(plain, 60);
    tcase_add_checked_fixture(files, setup, teardown);
    tcase_add_test(files, output_appears_whole);
    tcase_add_test(files, output_of_a_killed_one_is_taken_over);
    tcase_add_test(files, output_is_no_trap);
    tcase_add_test(files, output_is_no_wider_than_its_input);
    tcase_add_test(files, input_is_no_trap);
    tcase_add_test(files, profile_directory);
    tcase_add_test(files, other_tasks);
    tcase_add_test(files, slurm_is_asked);
    tcase_add_test(files, names_of_files);
    tcase_add_test(files, bad_directories);
    tcase_add_test(files, bad_files);
    tcase_set_timeout(files, 60);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, files);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
