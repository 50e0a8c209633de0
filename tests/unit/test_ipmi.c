/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader process as slurmd has it, against a BMC that misbehaves.
 */
#include "common/sensors/ipmi.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/base/clock.h"
#include "tests/unit/asker.h"
#include "tests/unit/bmc.h"
#include "tests/unit/relay.h"

#define READER   JOULE_BUILD_DIR "/joule-ipmi-reader"
#define BREAKOUT JOULE_BUILD_DIR "/tests/unit/shim_breakout.so"
#define SHIM     JOULE_BUILD_DIR "/tests/unit/shim_clock.so"

#define SKIP_CODE 77

/* Beside what the configuration allows: starting a process, a loaded machine.
 */
#define SLACK_S 0.6

/* No timeout is as short. */
#define AT_ONCE_S 0.5

static struct bmc bmc;
static struct asker a;
static struct relay *relay;

/* Record ids are 2, 3, ... */
static const struct bmc_sensor usual[] = {
    {.name = "Temp", .number = 9, .m = 1, .unit = BMC_DEGREES_C, .raw = 40},
    {.name = "Node", .number = 1, .m = 2, .unit = BMC_WATTS, .raw = -1},
    {.name = "PSU1 PIN", .number = 5, .m = 4, .unit = BMC_WATTS, .raw = 60},
};

#define COUNT(x) ((int)(sizeof(x) / sizeof((x)[0])))

static double now_s(void)
{
    return (double)joule_clock_mono_ns(&joule_clock_system) / 1e9;
}

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static void setup(void)
{
    bmc_create(&bmc);
    asker_start(&a, READER, NULL);
    asker_config(&a.config, bmc.port);
    relay = NULL;
}

static void teardown(void)
{
    int status = asker_stop(&a);

    if (relay)
        relay_destroy(relay);
    bmc_destroy(&bmc);
    ck_assert_msg(status == 0, "the reader ended with %x", (unsigned)status);
}

static void start_usual(void)
{
    bmc_start(&bmc, usual, COUNT(usual));
    bmc_watts(&bmc, 1, 300);
}

static void through_relay(void)
{
    relay = relay_create(bmc.port);
    snprintf(a.config.host, sizeof(a.config.host), "127.0.0.1:%u", relay->port);
}

static void want_name(const char *name)
{
    struct joule_ipmi_sensor *s =
        asker_sensor(&a.config, JOULE_IPMI_SENSOR_NAME);

    snprintf(s->name, sizeof(s->name), "%s", name);
}

static void want_record(uint16_t id)
{
    asker_sensor(&a.config, JOULE_IPMI_SENSOR_RECORD)->record_id = id;
}

/* OPEN must fail, with all of these words in its sentence. */
static void open_fails(int errnum, const char *word, const char *word2)
{
    int rc = asker_open(&a);
    const char *text = a.opened.head.text;

    ck_assert_msg(rc == errnum, "%d (%s), not %d: %s", rc, strerror(rc), errnum,
                  text);
    ck_assert_msg(strstr(text, word) != NULL, "no \"%s\": %s", word, text);
    ck_assert_msg(!word2 || strstr(text, word2), "no \"%s\": %s", word2, text);
    ck_assert_ptr_null(strstr(text, a.config.password));
}

static void open_works(void)
{
    int rc = asker_open(&a);

    ck_assert_msg(rc == 0, "%s: %s", strerror(rc), a.opened.head.text);
    ck_assert_uint_eq(a.opened.count, a.config.sensor_count);
}

static void expect(uint32_t i, enum joule_power_status status, double watts)
{
    const struct joule_wire_value *v = &a.values.value[i];

    ck_assert_int_eq(v->status, status);
    ck_assert_msg(v->watts == watts, "%g W, not %g", v->watts, watts);
    ck_assert_int_le(v->begin_ns, v->end_ns);
}

static void read_works(double watts)
{
    int rc = asker_read(&a);

    ck_assert_msg(rc == 0, "%s: %s", strerror(rc), a.values.head.text);
    ck_assert_uint_eq(a.values.count, a.config.sensor_count);
    expect(0, JOULE_POWER_OK, watts);
}

static void read_fails(int errnum, double most_s)
{
    double begin_s = now_s();
    int rc = asker_read(&a);

    ck_assert_msg(rc == errnum, "%s: %s", strerror(rc), a.values.head.text);
    ck_assert_str_ne(a.values.head.text, "");
    ck_assert_double_lt(now_s() - begin_s, most_s);
}

/* Whatever a READ gives, it gives it in time. */
static int read_in_time(void)
{
    double begin_s = now_s();
    int rc = asker_read(&a);

    ck_assert_double_lt(now_s() - begin_s,
                        (double)a.config.answer_ns / 1e9 + SLACK_S);
    return rc;
}

/* ---- the process ---- */

static int run_reader(const char *argument)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        for (int fd = 0; fd <= 2; fd++)
            dup2(null, fd);
        execl(READER, READER, argument, NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(by_hand)
{
    ck_assert_int_eq(run_reader(NULL), 2);
    ck_assert_int_eq(run_reader("--what"), 2);
    ck_assert_int_eq(run_reader("--help"), 0);
    ck_assert_int_eq(run_reader("--version"), 0);
}
END_TEST

static bool proc_has(pid_t pid, const char *file, const char *line)
{
    char path[64], buf[512];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(buf, sizeof(buf), f)) {
        buf[strcspn(buf, "\n")] = '\0';
        found = found || strncmp(buf, line, strlen(line)) == 0;
    }
    fclose(f);
    return found;
}

static int count_fds(void)
{
    char path[64];
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)a.pid);
    dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static const char *ids_line(const char *key, unsigned id)
{
    static char line[64];

    snprintf(line, sizeof(line), "%s:\t%u\t%u\t%u\t%u", key, id, id, id, id);
    return line;
}

START_TEST(gives_up_what_it_does_not_need)
{
    const struct passwd *user = getpwnam("slurm-joule");

    start_usual();
    want_name("Node");
    open_works();
    ck_assert(proc_has(a.pid, "status", "NoNewPrivs:\t1"));
    ck_assert(proc_has(a.pid, "limits",
                       "Max core file size        0                    0 "));
    /* All but SIGALRM, and what cannot be blocked. */
    ck_assert(proc_has(a.pid, "status", "SigBlk:\tfffffffe") ||
              proc_has(a.pid, "status", "SigBlk:\tffffffff"));
    if (!JOULE_HAS_SANITIZER)
        ck_assert(proc_has(a.pid, "status", "Seccomp:\t2"));
    if (geteuid() != 0)
        return;
    ck_assert(proc_has(a.pid, "status", "CapBnd:\t0000000000000000"));
    ck_assert(proc_has(a.pid, "status",
                       ids_line("Uid", user ? user->pw_uid : 65534)));
    ck_assert(proc_has(a.pid, "status",
                       ids_line("Gid", user ? user->pw_gid : 65534)));
    ck_assert(proc_has(a.pid, "status", "CapPrm:\t0000000000000000"));
    ck_assert(proc_has(a.pid, "status", "CapEff:\t0000000000000000"));
    ck_assert_int_eq(count_fds(), 4); /* and the session's socket */
}
END_TEST

/* Broken into, it can start no program. */
START_TEST(makes_no_other_call)
{
    struct asker b;
    int status;

    start_usual();
    asker_start(&b, READER, BREAKOUT);
    asker_config(&b.config, bmc.port);
    asker_sensor(&b.config, JOULE_IPMI_SENSOR_DEFAULT);
    ck_assert_int_eq(asker_open(&b), -1);
    status = asker_stop(&b);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGSYS);
}
END_TEST

/* Started by a process that ends: it must not stay. */
START_TEST(ends_with_its_parent)
{
    int fds[2];
    pid_t middle, reader;

    ck_assert_int_eq(pipe(fds), 0);
    middle = fork();
    if (middle == 0) {
        struct asker b;

        asker_start(&b, READER, NULL);
        if (write(fds[1], &b.pid, sizeof(b.pid)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(fds[0], &reader, sizeof(reader)), sizeof(reader));
    sleep_ms(100);
    ck_assert_int_eq(kill(reader, 0), 0);
    kill(middle, SIGKILL);
    waitpid(middle, NULL, 0);
    sleep_ms(200);
    for (int i = 0; i < 50 && kill(reader, 0) == 0; i++)
        sleep_ms(20);
    /* Whoever has inherited it may not reap it. */
    if (kill(reader, 0) == 0)
        ck_assert(proc_has(reader, "status", "State:\tZ"));
}
END_TEST

/* ---- requests that are none ---- */

static void expect_eproto(const void *packet, size_t size)
{
    struct joule_helper_head head = {0};

    ck_assert_int_eq(asker_raw(&a, packet, size, &head, sizeof(head)),
                     sizeof(head));
    ck_assert_int_eq(head.error, EPROTO);
    ck_assert_uint_eq(head.seq, 7);
    ck_assert_str_ne(head.text, "");
}

START_TEST(malformed)
{
    static struct joule_wire_request request;
    static char big[60000];
    struct joule_helper_head *head = &request.head;

    head->version = JOULE_WIRE_VERSION;
    head->type = JOULE_WIRE_OPEN;
    head->seq = 7;
    head->size = sizeof(request);
    expect_eproto(&request, sizeof(request)); /* no sensors, no times */
    expect_eproto(&request, sizeof(request) - 1);
    expect_eproto(&request, sizeof(*head));
    head->version = 0;
    expect_eproto(&request, sizeof(request));
    head->version = JOULE_WIRE_VERSION;
    head->type = 9;
    expect_eproto(&request, sizeof(request));
    head->type = JOULE_WIRE_OPEN;
    head->size = sizeof(big);
    memcpy(big, head, sizeof(*head));
    expect_eproto(big, sizeof(big));
    ck_assert_int_eq(asker_read(&a), ENOTCONN);
    /* It still does what it should. */
    start_usual();
    want_name("Node");
    open_works();
    read_works(300.0);
}
END_TEST

START_TEST(too_short_ends_it)
{
    char reply[64];
    int status;

    ck_assert_int_eq(asker_raw(&a, "x", 1, reply, sizeof(reply)), 0);
    status = asker_stop(&a);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    asker_start(&a, READER, NULL);
}
END_TEST

/* ---- finding sensors ---- */

START_TEST(refuses_sensors)
{
    static const struct bmc_sensor twice[] = {
        {.name = "PSU", .number = 1, .m = 2, .unit = BMC_WATTS, .raw = 50},
        {.name = "PSU", .number = 2, .m = 2, .unit = BMC_WATTS, .raw = 50},
    };

    start_usual();
    want_record(2);
    open_fails(EINVAL, "Temp", "degrees C");
    a.config.sensor[0].record_id = 99;
    open_fails(ENOENT, "99", NULL);
    a.config.sensor[0].record_id = 1; /* the controller itself */
    open_fails(ENOMSG, "record 1", NULL);
    a.config.sensor_count = 0;
    want_name("Nod");
    open_fails(ENOENT, "\"Nod\"", NULL);
    strcpy(a.config.sensor[0].name, "Temp");
    open_fails(EINVAL, "Temp", "degrees C");
    a.config.sensor[0].kind = JOULE_IPMI_SENSOR_DCMI;
    open_fails(ENOTSUP, "DCMI", "D4h"); /* ipmi_sim: administrators only */
    a.config.privilege = 4;
    open_fails(ENOTSUP, "DCMI", "C1h");
    a.config.sensor[0].kind = JOULE_IPMI_SENSOR_DCMI_ENHANCED;
    open_fails(ENOTSUP, "DCMI", NULL);
    bmc_kill(&bmc);
    bmc_start(&bmc, twice, COUNT(twice));
    a.config.sensor_count = 0;
    want_name("PSU");
    open_fails(ENOTUNIQ, "records 2 and 3", NULL);
    bmc_kill(&bmc);
    bmc_start(&bmc, usual, 1); /* nothing in watts, no DCMI */
    a.config.sensor[0].kind = JOULE_IPMI_SENSOR_DEFAULT;
    open_fails(ENOENT, "no sensor in watts", NULL);
}
END_TEST

START_TEST(finds_sensors)
{
    start_usual();
    want_name("Node");
    want_name("PSU1 PIN");
    want_record(3);
    open_works();
    ck_assert_str_eq(a.opened.head.text, "");
    ck_assert_str_eq(a.opened.found[0].name, "Node");
    ck_assert_uint_eq(a.opened.found[0].record_id, 3);
    ck_assert_uint_eq(a.opened.found[0].number, 1);
    ck_assert_str_eq(a.opened.found[0].unit, "W");
    ck_assert(a.opened.found[0].step_w == 2.0);
    ck_assert(a.opened.found[0].max_w == 510.0);
    ck_assert_uint_eq(a.opened.found[1].record_id, 4);
    ck_assert_str_eq(a.opened.found[2].name, "Node");
    read_works(300.0);
    expect(1, JOULE_POWER_OK, 240.0);
    expect(2, JOULE_POWER_OK, 300.0);
}
END_TEST

START_TEST(classifies)
{
    static const struct bmc_sensor all[] = {
        {.name = "good", .number = 1, .m = 1, .unit = 6, .raw = 7},
        {.name = "full", .number = 2, .m = 1, .unit = 6, .raw = 255},
        {.name = "zero", .number = 3, .m = 1, .unit = 6, .raw = 0},
        {.name = "neg",
         .number = 4,
         .m = 1,
         .unit = 6,
         .format = 2,
         .raw = 250},
        {.name = "huge",
         .number = 5,
         .m = 255,
         .r_exp = 5,
         .unit = 6,
         .raw = 9},
        {.name = "off", .number = 6, .m = 1, .unit = 6, .raw = 9, .no_scan = 1},
        {.name = "gone", .number = 7, .m = 1, .unit = 6, .absent = 1},
    };

    bmc_start(&bmc, all, COUNT(all));
    for (uint16_t id = 2; id < 2 + COUNT(all); id++)
        want_record(id);
    open_works();
    read_works(7.0);
    expect(1, JOULE_POWER_SATURATED, 0.0);
    expect(2, JOULE_POWER_ZERO, 0.0);
    expect(3, JOULE_POWER_NEGATIVE, 0.0);
    expect(4, JOULE_POWER_ABSURD, 0.0);
    /* Never read, so that ipmi_sim 2.0.37 refuses; test_ipmi_faults has one
     * that says that it is not scanned. */
    if (a.values.value[5].status != JOULE_POWER_REFUSED)
        expect(5, JOULE_POWER_NOT_SCANNED, 0.0);
    expect(6, JOULE_POWER_REFUSED, 0.0);
    ck_assert_uint_eq(a.values.value[6].code, 0xCC);
}
END_TEST

/* ---- what it costs ---- */

START_TEST(one_message_each)
{
    unsigned before;

    start_usual();
    through_relay();
    want_name("Node");
    want_name("PSU1 PIN");
    open_works();
    before = relay->requests;
    for (int i = 0; i < 100; i++)
        read_works(300.0);
    ck_assert_uint_eq(relay->requests - before, 200);
}
END_TEST

START_TEST(small)
{
    start_usual();
    want_name("Node");
    open_works();
    for (int i = 0; i < 2000; i++)
        read_works(300.0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(asker_status_kb(&a, "VmHWM:"), 8 * 1024);
#endif
}
END_TEST

/* The BMC has room for 63 sessions. */
START_TEST(leaves_no_session)
{
    start_usual();
    want_name("Node");
    for (int i = 0; i < 100; i++) {
        open_works();
        if (i % 10 == 9) {
            struct joule_ipmi_config config = a.config;

            ck_assert_int_eq(asker_stop(&a), 0);
            asker_start(&a, READER, NULL);
            a.config = config;
        }
    }
    open_works();
    read_works(300.0);
}
END_TEST

/* ---- a BMC that does not answer ---- */

START_TEST(hangs)
{
    start_usual();
    want_name("Node");
    open_works();
    read_works(300.0);
    kill(bmc.pid, SIGSTOP);
    read_fails(ETIMEDOUT, 1.0 + SLACK_S);
    read_fails(ETIMEDOUT, 1.0 + SLACK_S);
    open_fails(ETIMEDOUT, "127.0.0.1", NULL);
    kill(bmc.pid, SIGCONT);
    open_works();
    read_works(300.0);
}
END_TEST

START_TEST(dead_and_back)
{
    start_usual();
    want_name("Node");
    open_works();
    bmc_kill(&bmc);
    read_fails(ETIMEDOUT, 1.0 + SLACK_S);
    start_usual();
    read_works(300.0); /* without an OPEN */
}
END_TEST

START_TEST(session_dropped)
{
    start_usual();
    want_name("Node");
    open_works();
    bmc_kill(&bmc);
    start_usual();
    ck_assert_int_eq(read_in_time(), 0); /* in the same request */
    expect(0, JOULE_POWER_OK, 300.0);
}
END_TEST

START_TEST(nobody_there)
{
    double begin_s = now_s();

    want_name("Node");
    open_fails(ETIMEDOUT, "127.0.0.1", NULL);
    ck_assert_double_lt(now_s() - begin_s, 1.5 + SLACK_S);
    strcpy(a.config.host, "127.0.0.1:99999");
    open_fails(EPROTO, "a configuration that cannot be", NULL);
    strcpy(a.config.host, "..");
    open_fails(EHOSTUNREACH, "\"..\" has no address", NULL);
}
END_TEST

START_TEST(wrong_credentials)
{
    double begin_s;

    start_usual();
    want_name("Node");
    strcpy(a.config.password, "not-that-one");
    begin_s = now_s();
    open_fails(EACCES, "\"admin\"", "password");
    ck_assert_double_lt(now_s() - begin_s, AT_ONCE_S);
    strcpy(a.config.username, "nobody-here");
    begin_s = now_s();
    open_fails(EACCES, "\"nobody-here\"", NULL);
    ck_assert_double_lt(now_s() - begin_s, AT_ONCE_S);
    strcpy(a.config.username, BMC_USER);
    strcpy(a.config.password, BMC_PASSWORD);
    open_works();
}
END_TEST

START_TEST(old_protocol)
{
    start_usual();
    a.config.driver = JOULE_IPMI_DRIVER_LAN;
    a.config.authentication = 2;
    a.config.workaround_flags = 0;
    want_name("Node");
    open_works();
    read_works(300.0);
    strcpy(a.config.password, "not-that-one");
    ck_assert_int_ne(asker_open(&a), 0);
    ck_assert_ptr_null(strstr(a.opened.head.text, "not-that-one"));
}
END_TEST

/* ---- a network that loses, doubles, delays, damages ---- */

START_TEST(answer_lost)
{
    start_usual();
    through_relay();
    want_name("Node");
    open_works();
    relay->lose = 1;
    read_works(300.0);
    ck_assert_uint_eq(relay->lose, 0);
    relay->lose = 1;
    open_works(); /* of the set-up */
    read_works(300.0);
}
END_TEST

/* Slower than the first retransmission: each answer comes too late for its
 * question, until the reader waits longer. */
START_TEST(slow)
{
    int failed = 0;

    start_usual();
    through_relay();
    want_name("Node");
    open_works();
    relay->delay_us = 1200000;
    a.config.answer_ns = 2 * JOULE_NS_PER_S;
    while (read_in_time() != 0) {
        ck_assert_int_lt(++failed, 5);
        relay->delay_us = 0; /* only readings are slow */
        open_works();
        relay->delay_us = 1200000;
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(read_in_time(), 0);
        expect(0, JOULE_POWER_OK, 300.0);
    }
}
END_TEST

START_TEST(doubled)
{
    double begin_s;

    start_usual();
    through_relay();
    want_name("Node");
    open_works();
    relay->copies = 1;
    for (int i = 0; i < 20; i++)
        read_works(300.0);
    /* In the set-up that makes no session; it is no reason to wait. */
    begin_s = now_s();
    ck_assert_int_ne(asker_open(&a), 0);
    ck_assert_str_ne(a.opened.head.text, "");
    ck_assert_double_lt(now_s() - begin_s, 1.5 + SLACK_S);
    relay->copies = 0;
    open_works();
}
END_TEST

START_TEST(damaged)
{
    start_usual();
    through_relay();
    want_name("Node");
    open_works();
    for (int i = 0; i < 3; i++) {
        relay->corrupt = 1;
        ck_assert_int_eq(read_in_time(), 0);
        expect(0, JOULE_POWER_OK, 300.0);
    }
    relay->corrupt = UINT_MAX;
    ck_assert_int_ne(read_in_time(), 0);
    ck_assert_int_ne(asker_open(&a), 0);
    relay->corrupt = 0;
    open_works();
    read_works(300.0);
}
END_TEST

/* ---- clocks ---- */

static void step_clock(long s)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/joule-clock-%d", (int)getpid());
    if (s == 0) {
        unlink(path);
        return;
    }
    f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%ld\n", s);
    fclose(f);
}

static void start_with_shim(void)
{
    struct joule_ipmi_config config;

    start_usual();
    config = a.config;
    asker_stop(&a);
    asker_start(&a, READER, SHIM);
    a.config = config;
    want_name("Node");
}

START_TEST(clock_forward)
{
    double begin_s;

    start_with_shim();
    open_works();
    read_works(300.0);
    step_clock(3600);
    begin_s = now_s();
    read_works(300.0); /* FreeIPMI thinks that the session is an hour old */
    ck_assert_double_lt(now_s() - begin_s, 0.5);
    read_works(300.0);
    step_clock(0); /* an hour back */
    read_works(300.0);
}
END_TEST

START_TEST(clock_back)
{
    start_with_shim();
    open_works();
    step_clock(-3600);
    read_works(300.0);
    kill(bmc.pid, SIGSTOP);
    read_fails(ETIMEDOUT, 1.0 + SLACK_S);
    kill(bmc.pid, SIGCONT);
    read_works(300.0);
    kill(bmc.pid, SIGSTOP);
    step_clock(-7200);
    read_fails(ETIMEDOUT, 1.0 + SLACK_S);
    kill(bmc.pid, SIGCONT);
    read_works(300.0);
    step_clock(0);
}
END_TEST

/* ---- sensor records that change ---- */

static void restart_with(const struct bmc_sensor *sensors, int count)
{
    bmc_kill(&bmc);
    bmc_start(&bmc, sensors, count);
}

/* Twice the watts a count: the old factor would give half of the truth. */
START_TEST(rescaled)
{
    struct bmc_sensor now[COUNT(usual)];

    start_usual();
    want_record(3);
    open_works();
    read_works(300.0);
    memcpy(now, usual, sizeof(now));
    now[1].m = 4;
    restart_with(now, COUNT(now));
    read_fails(ESTALE, 1.0 + SLACK_S);
    ck_assert_ptr_nonnull(strstr(a.values.head.text, "have changed"));
    read_fails(ESTALE, AT_ONCE_S); /* and stays so until somebody looks */
    strcpy(a.config.sensor[0].found_name, "Node");
    open_works();
    ck_assert(a.opened.found[0].step_w == 4.0);
    ck_assert_ptr_nonnull(strstr(a.opened.head.text, "steps of 4 W"));
    read_works(300.0);
    open_works();
    ck_assert_str_eq(a.opened.head.text, "");
}
END_TEST

/* Another sensor under the same record id. */
START_TEST(reordered)
{
    static const struct bmc_sensor now[] = {
        {.name = "Node", .number = 1, .m = 2, .unit = BMC_WATTS, .raw = -1},
        {.name = "PSU1 PIN", .number = 5, .m = 4, .unit = BMC_WATTS, .raw = 60},
        {.name = "Temp", .number = 9, .m = 1, .unit = BMC_DEGREES_C, .raw = 40},
    };

    start_usual();
    want_record(3);
    open_works();
    read_works(300.0);
    restart_with(now, COUNT(now));
    read_fails(ESTALE, 1.0 + SLACK_S);
    strcpy(a.config.sensor[0].found_name, "Node");
    open_works();
    ck_assert_uint_eq(a.opened.found[0].record_id, 2);
    ck_assert_ptr_nonnull(strstr(a.opened.head.text, "record 2"));
    read_works(300.0);
    /* The same in a process that knows no more than the name. */
    strcpy(a.config.sensor[0].found_name, "PSU1 PIN");
    a.config.sensor[0].record_id = 2;
    open_works();
    ck_assert_uint_eq(a.opened.found[0].record_id, 3);
    strcpy(a.config.sensor[0].found_name, "Total");
    open_fails(ENOENT, "have changed", "\"Total\"");
}
END_TEST

/* As many as make the node's power, whatever stands beside them. */
START_TEST(chooses)
{
    static const struct bmc_sensor supplies[] = {
        {.name = "CPU1 Pwr",
         .number = 2,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 3,
         .raw = 136},
        {.name = "PSU1 Pin",
         .number = 3,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 10,
         .raw = 180},
        {.name = "PSU1 Pout",
         .number = 4,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 10,
         .raw = 160},
        {.name = "PSU2 Pin",
         .number = 5,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 10,
         .raw = 142},
    };

    bmc_start(&bmc, supplies, COUNT(supplies));
    asker_sensor(&a.config, JOULE_IPMI_SENSOR_DEFAULT);
    ck_assert_msg(asker_open(&a) == 0, "%s", a.opened.head.text);
    ck_assert_uint_eq(a.opened.count, 2);
    ck_assert_uint_eq(a.opened.found[0].record_id, 3);
    ck_assert_uint_eq(a.opened.found[0].entity, 10);
    ck_assert_uint_eq(a.opened.found[1].record_id, 5);
    ck_assert_int_eq(asker_read(&a), 0);
    ck_assert_uint_eq(a.values.count, 2);
    expect(0, JOULE_POWER_OK, 180.0);
    expect(1, JOULE_POWER_OK, 142.0);
}
END_TEST

/* ---- pauses ---- */

/* With JOULE_TEST_SLOW only, and then alone (tests/system/test_pause.sh).  The
 * BMC drops sessions after 30 s. */
START_TEST(long_pause)
{
    unsigned before;

    start_usual();
    through_relay();
    want_name("Node");
    a.config.period_ns = 40 * JOULE_NS_PER_S;
    open_works();
    read_works(300.0);
    before = relay->requests;
    sleep_ms(40000);
    ck_assert_uint_eq(relay->requests - before, 2); /* at 15 and 30 s */
    read_works(300.0);
    ck_assert_uint_eq(relay->requests - before, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi");
    TCase *t = tcase_create("ipmi"), *slow_t;
    SRunner *runner;
    int failed;

    if (!bmc_installed()) {
        printf("skip - ipmi: there is no ipmi_sim (Debian: openipmi)\n");
        return SKIP_CODE;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, by_hand);
    tcase_add_test(t, gives_up_what_it_does_not_need);
    if (!JOULE_HAS_SANITIZER)
        tcase_add_test(t, makes_no_other_call);
    tcase_add_test(t, ends_with_its_parent);
    tcase_add_test(t, malformed);
    tcase_add_test(t, too_short_ends_it);
    tcase_add_test(t, refuses_sensors);
    tcase_add_test(t, finds_sensors);
    tcase_add_test(t, classifies);
    tcase_add_test(t, one_message_each);
    tcase_add_test(t, small);
    tcase_add_test(t, leaves_no_session);
    tcase_add_test(t, hangs);
    tcase_add_test(t, dead_and_back);
    tcase_add_test(t, session_dropped);
    tcase_add_test(t, nobody_there);
    tcase_add_test(t, wrong_credentials);
    tcase_add_test(t, old_protocol);
    tcase_add_test(t, answer_lost);
    tcase_add_test(t, slow);
    tcase_add_test(t, doubled);
    tcase_add_test(t, damaged);
    tcase_add_test(t, clock_forward);
    tcase_add_test(t, clock_back);
    tcase_add_test(t, rescaled);
    tcase_add_test(t, reordered);
    tcase_add_test(t, chooses);
    slow_t = tcase_create("slow");
    tcase_add_checked_fixture(slow_t, setup, teardown);
    tcase_set_timeout(slow_t, 90);
    tcase_add_test(slow_t, long_pause);
    suite_add_tcase(s, t);
    suite_add_tcase(s, slow_t);
    runner = srunner_create(s);
    srunner_run(runner, NULL, getenv("JOULE_TEST_SLOW") ? "slow" : "ipmi",
                CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
