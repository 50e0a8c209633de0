/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process at the other end is fakereader, by a symbolic link whose name
 * says what it does.  kill is wrapped so that a process can be one that
 * SIGKILL does not end, as one that is stuck in the kernel is.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sensors/ipmi_helper.h"
#include "tests/unit/dice.h"
#include "tests/unit/fail.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define MS       JOULE_NS_PER_MS
#define S        JOULE_NS_PER_S

static struct tree tree;
static struct {
    int64_t now_ns;
    struct joule_clock clock;
} fake; /* for the back-off */
static struct joule_error err;
static unsigned fds_before;
static bool unkillable;
static unsigned kills;
static const char *credentials_file; /* of the readers that are made */
static uint32_t count;               /* of joule_reader_found */

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

int __wrap_kill(pid_t pid, int sig)
{
    kills++;
    return unkillable ? 0 : __real_kill(pid, sig);
}

static int64_t fake_now_ns(void *arg)
{
    (void)arg;
    return fake.now_ns;
}

static void setup(void)
{
    tree_create(&tree);
    fake.now_ns = 1000 * S;
    fake.clock.mono_ns = fake.clock.wall_ns = fake_now_ns;
    memset(&err, 0, sizeof(err));
    unkillable = false;
    kills = 0;
    credentials_file = NULL;
    fds_before = tree_open_fds();
}

/* Nothing is left, whatever the test did. */
static void teardown(void)
{
    ck_assert_uint_eq(tree_open_fds(), fds_before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    tree_destroy(&tree);
}

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

/* 50 ms for the BMC, so 1050 ms to the kill. */
static struct joule_ipmi_config config_of(const char *sensors)
{
    struct joule_ipmi_config config;

    memset(&config, 0, sizeof(config));
    ck_assert_msg(joule_ipmi_sensors_parse(sensors, &config, &err) == 0, "%s",
                  err.text);
    config.period_ns = S;
    config.answer_ns = 50 * MS;
    config.connect_ns = 50 * MS;
    return config;
}

static struct joule_meter *create(const char *mode,
                                  const struct joule_ipmi_config *config)
{
    char path[128];
    struct joule_ipmi_helper_options opt = {
        .clock = &fake.clock,
        .program = path,
        .config = config,
        .credentials_file = credentials_file,
        .root_fd = tree.fd,
    };
    struct joule_meter *meter;

    snprintf(path, sizeof(path), "%s/%s", tree.path, mode);
    if (strcmp(mode, "missing") != 0 && access(path, F_OK) < 0)
        ck_assert_int_eq(symlink(FAKEREADER, path), 0);
    meter = joule_ipmi_helper_create(&opt, &err);
    ck_assert_msg(meter != NULL, "%s", err.text);
    return meter;
}

static struct joule_meter *create_plain(const char *mode)
{
    struct joule_ipmi_config config = config_of("");

    return create(mode, &config);
}

static int read_power(struct joule_meter *meter, struct joule_power *out)
{
    err.text[0] = '\0';
    errno = 0;
    return meter->ops->read(meter, out, &err);
}

static void must_read(struct joule_meter *meter, double watts)
{
    struct joule_power power[JOULE_IPMI_LABELS_MAX];
    int64_t before_ns = now_ns();

    ck_assert_msg(read_power(meter, power) == 0, "%s", err.text);
    ck_assert_int_eq(power[0].status, JOULE_POWER_OK);
    ck_assert_double_eq(power[0].watts, watts);
    ck_assert_int_ge(power[0].mono_ns, before_ns);
    ck_assert_int_le(power[0].mono_ns, now_ns());
}

static void must_fail(struct joule_meter *meter, int errnum,
                      const char *sentence)
{
    struct joule_power power[JOULE_IPMI_LABELS_MAX];
    int rc = read_power(meter, power), seen = errno;

    ck_assert_int_eq(rc, -1);
    ck_assert_msg(seen == errnum, "%s: %s", strerror(seen), err.text);
    if (sentence)
        ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    else
        ck_assert_str_eq(err.text, "");
}

START_TEST(bad_creation)
{
    struct joule_ipmi_config config = config_of("Node=1;A=2");
    struct joule_ipmi_helper_options opt = {
        .clock = &fake.clock, .program = "bin/reader", .config = &config};

    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    ck_assert_int_eq(errno, EINVAL);
    opt.program = "/bin/reader";
    config.sensor[1].label = 2;
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    config.sensor[1].label = 0; /* label 1 has none */
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    ck_assert_int_eq(errno, EINVAL);
    config = config_of("");
    config.label_count = 0;
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    config = config_of("");
    config.answer_ns = 0;
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    config = config_of("");
    config.period_ns = 0;
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    config = config_of("");
    fail_calloc = 1;
    ck_assert_ptr_null(joule_ipmi_helper_create(&opt, &err));
    ck_assert_int_eq(errno, ENOMEM);
    fail_calloc = 1;
    ck_assert_ptr_null(joule_ipmi_helper_labels_create(&config));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(labels_only)
{
    struct joule_ipmi_config config = config_of("Socket0=2;Node=DCMI;x_y-1=3");
    struct joule_meter *meter = joule_ipmi_helper_labels_create(&config);
    const struct joule_domain *d;

    ck_assert_ptr_nonnull(meter);
    d = meter->domains;
    ck_assert_uint_eq(meter->domain_count, 3);
    ck_assert_str_eq(d[0].name, "Node");
    ck_assert_str_eq(d[1].name, "Socket0");
    ck_assert_str_eq(d[2].name, "x_y-1");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(d[i].kind, JOULE_DOMAIN_POWER);
        ck_assert_uint_eq(d[i].unit.num, 1);
        ck_assert_uint_eq(d[i].unit.shift, 0);
        ck_assert_uint_eq(d[i].width_bits, 64);
        ck_assert(d[i].in_total == (i == 0));
    }
    must_fail(meter, ENOSYS, "slurmd");
    ck_assert_ptr_null(joule_reader_found(meter, &count));
    meter->ops->interrupt(meter);
    joule_meter_destroy(meter);
}
END_TEST

static const struct {
    const char *mode;
    int errnum;
    const char *sentence;
    int64_t least_ns, most_ns;
} faults[] = {
    {"missing", ENOENT, "is all of it installed?", 0, S / 2},
    {"gone", EPIPE, "ended with exit code 0", 0, S},
    {"exits", EPIPE, "ended with exit code 7", 0, S},
    {"crashes", EPIPE, "died of signal 9", 0, S},
    {"forbidden", EPIPE, "system call that it may not make", 0, S},
    {"closes", EPIPE, "closed its socket", 0, S},
    {"refuses", EACCES, "the BMC refuses the password", 0, S},
    {"refuses-again", EIO, "the BMC cannot be read", 0, S},
    {"fails", EIO, "the BMC dropped the session", 0, S},
    {"fails-mute", EIO, "the BMC cannot be read", 0, S},
    {"babbles", EPROTO, "a packet of the wrong size", 0, S},
    {"old", EPROTO, "another version of the protocol", 0, S},
    {"short", EPROTO, "an answer of the wrong size", 0, S},
    {"long", EPROTO, "a packet of the wrong size", 0, S},
    {"confuses", EPROTO, "an answer to something else", 0, S},
    {"counts-wrong", EPROTO, "another number of sensors", 0, S},
    {"one-less", EPROTO, "another number of values", 0, S},
    {"late", ETIMEDOUT, "no answer in 1.05 s", 1050 * MS, 2 * S},
    {"stops", ETIMEDOUT, "no answer in 1.05 s", 1050 * MS, 2 * S},
    {"wrong-seq", ETIMEDOUT, "no answer in 1.05 s", 1050 * MS, 2 * S},
    {"connects-late", ETIMEDOUT, "no answer in 1.05 s", 1050 * MS, 2 * S},
};

/* The sentence, the time it takes, and that the next try is not made before
 * a second has passed. */
START_TEST(fault)
{
    struct joule_meter *meter = create_plain(faults[_i].mode);
    int64_t begin_ns = now_ns(), took_ns;

    must_fail(meter, faults[_i].errnum, faults[_i].sentence);
    took_ns = now_ns() - begin_ns;
    ck_assert_int_ge(took_ns, faults[_i].least_ns);
    ck_assert_int_le(took_ns, faults[_i].most_ns);
    must_fail(meter, EAGAIN, NULL);
    fake.now_ns += S - 1;
    must_fail(meter, EAGAIN, NULL);
    fake.now_ns += 1;
    if (faults[_i].least_ns == 0) {
        must_fail(meter, faults[_i].errnum, faults[_i].sentence);
        fake.now_ns += 2 * S - 1;
        must_fail(meter, EAGAIN, NULL);
    }
    joule_meter_destroy(meter);
}
END_TEST

static const struct {
    const char *sensors;
    enum joule_power_status status;
    double watts;
} sums[] = {
    {"Node=1", JOULE_POWER_OK, 100},
    {"Node=1,2,3", JOULE_POWER_OK, 303},
    {"Node='=0.25'", JOULE_POWER_OK, 0.25},
    {"Node='=100000'", JOULE_POWER_OK, 100000},
    {"Node='=100000.1'", JOULE_POWER_ABSURD, 0},
    {"Node='=60000','=60000.0'", JOULE_POWER_ABSURD, 0},
    {"Node='=nan',1", JOULE_POWER_ABSURD, 0},
    {"Node='=inf'", JOULE_POWER_ABSURD, 0},
    {"Node='=-1'", JOULE_POWER_NEGATIVE, 0},
    {"Node='=-inf'", JOULE_POWER_NEGATIVE, 0},
    {"Node='=-1',2", JOULE_POWER_OK, 100},
    {"Node='=0'", JOULE_POWER_ZERO, 0},
    {"Node='!4'", JOULE_POWER_ZERO, 0},
    {"Node='!4','!4.'", JOULE_POWER_ZERO, 0},
    {"Node='!4',2", JOULE_POWER_OK, 101},
    {"Node=1,'!1'", JOULE_POWER_UNAVAILABLE, 0},
    {"Node='!2','!1',7", JOULE_POWER_NOT_SCANNED, 0},
    {"Node='!9','!3','!4'", JOULE_POWER_FAILED, 0},
};

START_TEST(sum)
{
    struct joule_ipmi_config config = config_of(sums[_i].sensors);
    struct joule_meter *meter = create("well", &config);
    struct joule_power power;

    ck_assert_msg(read_power(meter, &power) == 0, "%s", err.text);
    ck_assert_int_eq(power.status, sums[_i].status);
    ck_assert_double_eq(power.watts, sums[_i].watts);
    joule_meter_destroy(meter);
}
END_TEST

/* Another label than Node may well be 0 W; the time is the mean. */
START_TEST(sum_of_labels)
{
    struct joule_ipmi_config config =
        config_of("GPU='!4';Node='@1000','@3000','@2000';Dead='!5'");
    struct joule_meter *meter = create("well", &config);
    struct joule_power power[4];

    ck_assert_msg(read_power(meter, power) == 0, "%s", err.text);
    ck_assert_double_eq(power[0].watts, 101 + 102 + 103);
    ck_assert_int_eq(power[0].mono_ns, 2050);
    ck_assert_int_eq(power[1].status, JOULE_POWER_OK);
    ck_assert_double_eq(power[1].watts, 0);
    ck_assert_int_eq(power[2].status, JOULE_POWER_NEGATIVE);
    joule_meter_destroy(meter);
}
END_TEST

/* [label]'s key of the sensors that [sensors] names at [host]. */
static uint64_t key_of(const char *sensors, const char *host, int label)
{
    struct joule_ipmi_config config = config_of(sensors);
    struct joule_power power[4];
    struct joule_meter *meter;

    if (host) {
        config.driver = JOULE_IPMI_DRIVER_LAN_2_0;
        snprintf(config.host, sizeof(config.host), "%s", host);
    }
    meter = create("well", &config);
    ck_assert_msg(read_power(meter, power) == 0, "%s", err.text);
    ck_assert_uint_ne(power[label].sensor_key, 0);
    joule_meter_destroy(meter);
    return power[label].sensor_key;
}

/* It is the sensor that counts, not its label nor how it was asked for. */
START_TEST(sensor_key)
{
    uint64_t first = key_of("", NULL, 0);

    ck_assert_uint_eq(key_of("Node=Node", NULL, 0), first);
    ck_assert_uint_eq(key_of("Node=2;GPU=17", NULL, 0), first);
    ck_assert_uint_eq(key_of("Node=17;GPU=2", NULL, 1), first);
    ck_assert_uint_ne(key_of("Node=17", NULL, 0), first);
    ck_assert_uint_ne(key_of("Node=Power", NULL, 0), first);
    ck_assert_uint_ne(key_of("Node=DCMI", NULL, 0), first);
    ck_assert_uint_ne(key_of("Node=2,17", NULL, 0), first);
    ck_assert_uint_ne(key_of("", "bmc1", 0), first);
    ck_assert_uint_ne(key_of("", "bmc1", 0), key_of("", "bmc2", 0));
}
END_TEST

static const char *const unsound[] = {"Node='!10'", "Node='!-1'", "Node='@-5'",
                                      "Node='@72057594037927000'",
                                      "Node='@72057594037927936'"};

START_TEST(unsound_value)
{
    struct joule_ipmi_config config = config_of(unsound[_i]);
    struct joule_meter *meter = create("well", &config);

    must_fail(meter, EPROTO, "a value that cannot be");
    joule_meter_destroy(meter);
}
END_TEST

static const char *const good_modes[] = {"well", "wrong-seq-first", "twice",
                                         "slow"};

START_TEST(good)
{
    struct joule_meter *meter = create_plain(good_modes[_i]);

    ck_assert_ptr_null(joule_reader_found(meter, &count));
    for (int i = 0; i < 20; i++)
        must_read(meter, 100);
    ck_assert_uint_eq(joule_reader_found(meter, &count)[0].record_id, 2);
    ck_assert_uint_eq(kills, 0);
    joule_meter_destroy(meter);
    /* It ended by itself. */
    ck_assert_uint_eq(kills, 0);
}
END_TEST

START_TEST(back_off)
{
    static const int delays_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct joule_meter *meter = create_plain("missing");

    for (int i = 0; i < COUNT(delays_s); i++) {
        must_fail(meter, ENOENT, "cannot start");
        fake.now_ns += delays_s[i] * S - 1;
        must_fail(meter, EAGAIN, NULL);
        fake.now_ns += 1;
    }
    joule_meter_destroy(meter);
}
END_TEST

/* A reading that works ends it. */
START_TEST(back_off_ends)
{
    struct joule_meter *meter = create_plain("exits1");

    for (int i = 0; i < 10; i++) {
        must_read(meter, 100);
        must_fail(meter, EPIPE, "exit code 7");
        must_fail(meter, EAGAIN, NULL);
        fake.now_ns += S;
    }
    joule_meter_destroy(meter);
}
END_TEST

/* A process that is well is asked to connect again, not started again. */
START_TEST(connects_again)
{
    struct joule_meter *meter = create_plain("fails2");

    must_read(meter, 100);
    must_read(meter, 100);
    for (int i = 0; i < 3; i++) {
        must_fail(meter, EIO, "dropped the session");
        fake.now_ns += 60 * S;
    }
    ck_assert_uint_eq(kills, 0);
    joule_meter_destroy(meter);
}
END_TEST

/* Until the child has ended; it is still to be reaped. */
static void await_end(void)
{
    siginfo_t info;

    alarm(10);
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    alarm(0);
}

/* It went away after it had said that it could not read: no fault of the
 * next connection. */
START_TEST(started_again)
{
    struct joule_meter *meter = create_plain("fails-and-goes1");

    for (int i = 0; i < 3; i++) {
        must_read(meter, 100);
        must_fail(meter, EIO, "dropped the session");
        fake.now_ns += S;
        await_end();
    }
    joule_meter_destroy(meter);
}
END_TEST

/* The process has time to say goodbye to the BMC, in the thread that reads. */
START_TEST(interrupted_in_between)
{
    struct joule_meter *meter = create_plain("well");

    must_read(meter, 100);
    meter->ops->interrupt(meter);
    must_fail(meter, ECANCELED, NULL);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_uint_eq(kills, 0);
    must_fail(meter, ECANCELED, NULL);
    joule_meter_destroy(meter);
}
END_TEST

static const char *remark(struct joule_meter *meter)
{
    static struct joule_error text;

    text.text[0] = '\0';
    if (!meter->ops->remark(meter, &text))
        return "";
    return text.text;
}

START_TEST(remarks)
{
    struct joule_ipmi_config config = config_of("");
    struct joule_meter *meter;

    config.driver = JOULE_IPMI_DRIVER_LAN_2_0;
    strcpy(config.host, "bmc7");
    meter = create("exits1", &config);
    ck_assert_str_eq(remark(meter), "");
    must_read(meter, 100);
    ck_assert_str_eq(remark(meter),
                     "reads sensor Node (record 2, 0-510 W in steps of 2 W) of "
                     "bmc7, LAN_2_0");
    ck_assert_str_eq(remark(meter), "");
    must_fail(meter, EPIPE, "7");
    fake.now_ns += S;
    must_read(meter, 100); /* the same again: nothing to say */
    ck_assert_str_eq(remark(meter), "");
    joule_meter_destroy(meter);

    config = config_of("Node=DCMI;Psu='PSU 1',7,DCMI_ENHANCED");
    meter = create("well", &config);
    must_read(meter, 100);
    ck_assert_str_eq(
        remark(meter),
        "reads sensors Node=DCMI power, Psu=PSU 1 (record 2, 0-510 W in steps "
        "of 2 W), Psu=Node (record 7, 0-510 W in steps of 2 W), Psu=DCMI mean "
        "power of this machine's BMC, in-band");
    joule_meter_destroy(meter);
}
END_TEST

START_TEST(remark_of_many)
{
    struct joule_ipmi_config config;
    char sensors[2048] = "Node=1";
    struct joule_meter *meter;
    size_t len;

    for (int i = 0; i < 60; i++) {
        len = strlen(sensors);
        snprintf(sensors + len, sizeof(sensors) - len, ",A long name %d", i);
    }
    config = config_of(sensors);
    meter = create("well", &config);
    must_read(meter, 61 * 100 + 60 * 61 / 2);
    len = strlen(remark(meter));
    ck_assert_uint_gt(len, 400);
    ck_assert_uint_lt(len, JOULE_ERROR_MAX);
    joule_meter_destroy(meter);
}
END_TEST

/* What was found is told to the next process, and its remark is passed on. */
START_TEST(found_is_remembered)
{
    struct joule_meter *meter = create_plain("remembers1");

    must_read(meter, 100);
    ck_assert_msg(strstr(remark(meter), "reads sensor"), "no remark");
    ck_assert_str_eq(remark(meter), "");
    must_fail(meter, EPIPE, "exit code 0");
    fake.now_ns += S;
    must_read(meter, 100);
    ck_assert_str_eq(remark(meter), "knows Node");
    ck_assert_str_eq(remark(meter), "");
    joule_meter_destroy(meter);
}
END_TEST

static void must_see_nothing(void)
{
    struct joule_meter *meter = create_plain("looks");

    must_read(meter, 100);
    remark(meter);
    ck_assert_str_eq(remark(meter),
                     "fds=3 flags=211 env=0 cmdline=looks session=own "
                     "blocked=0 handlers=0 cwd=/");
    joule_meter_destroy(meter);
}

START_TEST(nothing_is_inherited)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigset_t mask, old_mask;
    int fds[3];

    setenv("JOULE_SECRET", "x", 1);
    for (int i = 0; i < 3; i++)
        fds[i] = open("/dev/zero", O_RDONLY); /* not O_CLOEXEC */
    ck_assert_int_eq(dup2(fds[0], 200), 200);
    sigaction(SIGPIPE, &ignore, &old);
    sigfillset(&mask);
    sigprocmask(SIG_BLOCK, &mask, &old_mask);
    must_see_nothing();
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    sigaction(SIGPIPE, &old, NULL);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    close(200);
}
END_TEST

/* A daemon may have closed 0, 1 and 2: the socket is then one of them. */
START_TEST(low_descriptors)
{
    int saved[3];

    for (int closed = 1; closed < 8; closed++) {
        for (int i = 0; i < 3; i++) {
            saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
            ck_assert_int_ge(saved[i], 100);
            if (closed & (1 << i))
                close(i);
        }
        must_see_nothing();
        for (int i = 0; i < 3; i++) {
            dup2(saved[i], i);
            close(saved[i]);
        }
    }
}
END_TEST

static const struct {
    const char *mode;
    int rounds;
} leaks[] = {{"exits", 300},   {"crashes", 300}, {"babbles", 200},
             {"refuses", 100}, {"missing", 100}, {"late", 3}};

/* 1,003 faults (a tenth if it is not to take long); descriptors and zombies are
 * counted at the end, and in between no more than one process is there. */
START_TEST(no_leak)
{
    struct joule_meter *meter = create_plain(leaks[_i].mode);
    struct joule_power power;
    unsigned fds;
    int busy = 0;

    for (int i = 0; i < dice_rounds(leaks[_i].rounds); i++) {
        ck_assert_int_eq(read_power(meter, &power), -1);
        ck_assert_int_ne(errno, EAGAIN);
        /* A busy machine takes its time to end those that were killed, and
         * this clock runs faster than it. */
        if (errno == EBUSY) {
            ck_assert_int_lt(busy++, 1000);
            usleep(10 * 1000);
            i--;
        }
        fds = tree_open_fds();
        ck_assert_uint_le(fds, fds_before + 2);
        fake.now_ns += 60 * S;
    }
    joule_meter_destroy(meter);
}
END_TEST

START_TEST(stuck_processes)
{
    struct joule_meter *meter = create_plain("closes");
    struct joule_power power;

    unkillable = true;
    for (int i = 0; i < 4; i++) {
        must_fail(meter, EPIPE, "closed its socket");
        fake.now_ns += 60 * S;
    }
    for (int i = 0; i < 3; i++) {
        must_fail(meter, EBUSY, "stuck in the kernel");
        fake.now_ns += 60 * S;
    }
    unkillable = false;
    /* Now they end, one or the other a little later. */
    for (int i = 0; i < 100 && strstr(err.text, "stuck"); i++) {
        ck_assert_int_eq(read_power(meter, &power), -1);
        fake.now_ns += 60 * S;
        usleep(10 * 1000);
    }
    ck_assert_msg(strstr(err.text, "closed its socket"), "%s", err.text);
    joule_meter_destroy(meter);
}
END_TEST

/* slurmd may reap for us; then the number may be another process's. */
START_TEST(reaped_by_the_host)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    struct joule_meter *meter = create_plain("crashes");

    sigaction(SIGCHLD, &ignore, &old);
    for (int i = 0; i < 5; i++) {
        must_fail(meter, EPIPE, "the helper process ended");
        fake.now_ns += 60 * S;
    }
    ck_assert_uint_eq(kills, 0);
    joule_meter_destroy(meter);
    meter = create_plain("stops");
    must_fail(meter, ETIMEDOUT, "no answer");
    joule_meter_destroy(meter);
    sigaction(SIGCHLD, &old, NULL);
}
END_TEST

struct call {
    pthread_t thread;
    struct joule_meter *meter;
    int rc, errnum;
    int64_t end_ns;
    struct joule_power power;
    struct joule_error err;
};

static void *call_thread(void *arg)
{
    struct call *call = arg;

    call->rc = call->meter->ops->read(call->meter, &call->power, &call->err);
    call->errnum = errno;
    call->end_ns = now_ns();
    return NULL;
}

static void call_begin(struct call *call, struct joule_meter *meter)
{
    call->meter = meter;
    call->err.text[0] = '\0';
    ck_assert_int_eq(pthread_create(&call->thread, NULL, call_thread, call), 0);
}

/* The quickest of some: the machine may have other things to do. */
START_TEST(interrupt)
{
    static const char *const modes[] = {"late", "stops", "connects-late"};
    int64_t quickest_ns = INT64_MAX;

    for (int i = 0; i < 2 * COUNT(modes); i++) {
        struct joule_ipmi_config config = config_of("");
        struct joule_meter *meter;
        struct call call;
        int64_t begin_ns;

        config.answer_ns = config.connect_ns = 30 * S;
        meter = create(modes[i % COUNT(modes)], &config);
        call_begin(&call, meter);
        usleep(50 * 1000);
        begin_ns = now_ns();
        meter->ops->interrupt(meter);
        pthread_join(call.thread, NULL);
        ck_assert_int_eq(call.rc, -1);
        ck_assert_int_eq(call.errnum, ECANCELED);
        ck_assert_str_eq(call.err.text, "");
        ck_assert_int_lt(call.end_ns - begin_ns, S);
        if (call.end_ns - begin_ns < quickest_ns)
            quickest_ns = call.end_ns - begin_ns;
        must_fail(meter, ECANCELED, NULL);
        meter->ops->interrupt(meter);
        begin_ns = now_ns();
        joule_meter_destroy(meter);
        ck_assert_int_lt(now_ns() - begin_ns, S);
    }
    ck_assert_int_lt(quickest_ns, 10 * MS);
}
END_TEST

START_TEST(side_by_side)
{
    struct joule_meter *bad = create_plain("stops"),
                       *well = create_plain("well");
    struct call call;
    unsigned readings = 0;
    int64_t begin_ns = now_ns();

    call_begin(&call, bad);
    while (now_ns() - begin_ns < S) {
        must_read(well, 100);
        readings++;
    }
    pthread_join(call.thread, NULL);
    ck_assert_int_eq(call.errnum, ETIMEDOUT);
    ck_assert_uint_gt(readings, 100);
    joule_meter_destroy(bad);
    must_read(well, 100);
    joule_meter_destroy(well);
}
END_TEST

START_TEST(lists)
{
    static struct joule_wire_reply list;
    struct joule_meter *meter = create_plain("lists");

    ck_assert_msg(joule_reader_list(meter, &list, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(list.count, 1);
    joule_meter_destroy(meter);
    meter = create_plain("lists-many");
    ck_assert_int_eq(joule_reader_list(meter, &list, &err), -1);
    ck_assert_int_eq(errno, EPROTO);
    ck_assert_uint_eq(list.count, 0);
    joule_meter_destroy(meter);
    meter = create_plain("lists-nothing");
    ck_assert_int_eq(joule_reader_list(meter, &list, &err), -1);
    ck_assert_int_eq(errno, EPROTO);
    ck_assert_ptr_nonnull(strstr(err.text, "a value that cannot be"));
    ck_assert_uint_eq(list.count, 0);
    joule_meter_destroy(meter);
}
END_TEST

/* How often the password, given as its bytes ^ 0x55, is in this process's
 * writable memory. */
static unsigned find_in_memory(const unsigned char *hidden, size_t len)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    static unsigned char page[4096 + 64];
    unsigned long begin, end;
    char rights[8], line[512];
    unsigned found = 0;

    ck_assert(maps && mem >= 0);
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 ||
            rights[1] != 'w' || end - begin > (64 << 20))
            continue;
        for (; begin < end; begin += 4096) {
            ssize_t n = pread(mem, page, sizeof(page), (off_t)begin);

            for (ssize_t i = 0; i + (ssize_t)len <= n && i < 4096; i++) {
                size_t k = 0;

                while (k < len && (page[i + (ssize_t)k] ^ 0x55) == hidden[k])
                    k++;
                found += k == len;
            }
            explicit_bzero(page, sizeof(page));
        }
    }
    close(mem);
    fclose(maps);
    return found;
}

START_TEST(password_is_wiped)
{
    static const unsigned char hidden[] = {0x27, 0x64, 0x36, 0x62, 0x30, 0x6d,
                                           0x1a, 0x21, 0x04, 0x3d, 0x66, 0x0c};
    struct joule_ipmi_config *config = malloc(sizeof(*config));
    struct joule_meter *meter;

    *config = config_of("");
    for (size_t i = 0; i < sizeof(hidden); i++)
        config->password[i] = (char)(hidden[i] ^ 0x55);
    meter = create("exits1", config);
    explicit_bzero(config, sizeof(*config));
    free(config);
    must_read(meter, 100);
    must_fail(meter, EPIPE, "7");
    /* The meter's own. */
    ck_assert_uint_eq(find_in_memory(hidden, sizeof(hidden)), 1);
    fake.now_ns += S;
    must_read(meter, 100);
    joule_meter_destroy(meter);
    ck_assert_uint_eq(find_in_memory(hidden, sizeof(hidden)), 0);
}
END_TEST

/* What is in the file is the process's: here it is opened, and looked at by
 * nobody. */
START_TEST(file_is_not_read)
{
    struct joule_ipmi_config config = config_of("");
    struct joule_meter *meter;

    config.driver = JOULE_IPMI_DRIVER_LAN_2_0;
    strcpy(config.host, "bmc");
    tree_write(&tree, "bmc", "neither name nor password");
    ck_assert_int_eq(fchmodat(tree.fd, "bmc", 0600, 0), 0);
    credentials_file = "/bmc";
    meter = create("reads-file1", &config);
    must_read(meter, 100);
    remark(meter);
    ck_assert_str_eq(remark(meter), "/bmc: neither name nor password");
    must_fail(meter, EPIPE, "7");
    ck_assert_int_eq(fchmodat(tree.fd, "bmc", 0640, 0), 0);
    fake.now_ns += S;
    must_fail(meter, EPERM, "JouleIPMICredentialsFile: /bmc may be read");
    joule_meter_destroy(meter);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ipmi helper");
    TCase *t = tcase_create("bad");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, bad_creation);
    tcase_add_loop_test(t, fault, 0, COUNT(faults));
    tcase_add_loop_test(t, unsound_value, 0, COUNT(unsound));
    tcase_add_loop_test(t, no_leak, 0, COUNT(leaks));
    tcase_add_test(t, stuck_processes);
    tcase_add_test(t, reaped_by_the_host);
    tcase_add_test(t, back_off);
    tcase_add_test(t, back_off_ends);
    suite_add_tcase(s, t);

    t = tcase_create("good");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, labels_only);
    tcase_add_loop_test(t, good, 0, COUNT(good_modes));
    tcase_add_loop_test(t, sum, 0, COUNT(sums));
    tcase_add_test(t, sum_of_labels);
    tcase_add_test(t, sensor_key);
    tcase_add_test(t, connects_again);
    tcase_add_test(t, started_again);
    tcase_add_test(t, interrupted_in_between);
    tcase_add_test(t, remarks);
    tcase_add_test(t, remark_of_many);
    tcase_add_test(t, found_is_remembered);
    tcase_add_test(t, nothing_is_inherited);
    tcase_add_test(t, low_descriptors);
    tcase_add_test(t, interrupt);
    tcase_add_test(t, side_by_side);
    tcase_add_test(t, lists);
    tcase_add_test(t, password_is_wiped);
    tcase_add_test(t, file_is_not_read);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
