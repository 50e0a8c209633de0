/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pmlib's client (lib/pmlib.c) and `joule pmserver`, the real program: a step that uses 100 W, and CPUs of which the first is idle half of the
 * time; and clients that break the protocol.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/pmlib.h"
#include "tests/unit/userrows.h"

#define SERVER    JOULE_BUILD_DIR "/joule-pmserver"
#define CPU       "sys/devices/system/cpu"
#define PERIOD_NS (50 * MS)
#define WATTS     100
#define NOBODY    65534

static char run_dir[96];
static pid_t server_pid;
static server_t server;
static line_t all;
static counter_t counter;
static pthread_t writer;
static atomic_bool done, write_failed;

/* ---- the node ---- */

/* In place, as the server reads it all the time. */
static void set_idle(int us)
{
    char text[32];

    snprintf(text, sizeof(text), "%09d\n", us);
    tree_poke(&tree, CPU "/cpu0/cpuidle/state1/time", 0, text, strlen(text));
}

static void put_figures(void)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);

    rows[2].uj = rows[2].job_uj = (uint64_t)(now_ns / 1000 * WATTS);
    if (joule_userview_publish(view, rows, JOULE_LEDGER_SLOTS_MAX, now_ns,
                               WALL + now_ns, &err) < 0)
        write_failed = true;
}

/* As slurmd, until the test is over.  Check's assertions are the main thread's:
 * each writes a message, also where it holds. */
static void *write_figures(void *arg)
{
    (void)arg;
    while (!done) {
        put_figures();
        usleep(PERIOD_NS / 2000);
    }
    return NULL;
}

static void make_node(void)
{
    const struct joule_userview_options options = {
        .period_ns = PERIOD_NS,
        .sample_period_ns = PERIOD_NS,
        .attribution = JOULE_ATTRIBUTION_ALLOC,
    };
    char boot_id[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    ck_assert_int_gt(read(fd, boot_id, sizeof(boot_id) - 1), 0);
    close(fd);
    joule_userview_destroy(view);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", boot_id);
    view = joule_userview_create(tree.fd, "n1", &options, &err);
    ck_assert_msg(view, "%s", err.text);
    put_row(2, geteuid(), 7, 0);
    tree_write(&tree, CPU "/possible", "0-33\n");
    tree_write(&tree, CPU "/online", "0,33\n");
    tree_write(&tree, CPU "/cpu0/cpuidle/state0/name", "POLL\n");
    tree_write(&tree, CPU "/cpu0/cpuidle/state0/time", "0\n");
    tree_write(&tree, CPU "/cpu33/cpuidle/state0/time", "0\n");
    set_idle(0);
    snprintf(run_dir, sizeof(run_dir), "%s/run/slurm-joule", tree.path);
    setenv("JOULE_RUN_DIR", run_dir, 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_STEP_ID", "2", 1);
}

/* ---- the server ---- */

/* Start it; what it prints comes from *ret_fd. */
static pid_t start_server(const char *const *arguments, int *ret_fd)
{
    const char *argv[16] = {SERVER, "pmserver", "--root", tree.path};
    int out[2];
    pid_t pid;

    for (int i = 0; arguments[i]; i++)
        argv[4 + i] = arguments[i];
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        execv(SERVER, (char **)(uintptr_t)argv);
        _exit(125);
    }
    close(out[1]);
    *ret_fd = out[0];
    return pid;
}

static int status_of(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run_server(const char *const *arguments, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;
    int fd;
    pid_t pid = start_server(arguments, &fd);

    while ((n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(fd);
    return status_of(pid);
}

static void begin_server(void)
{
    static const char *const arguments[] = {"--port=0", NULL};
    char line[64] = "";
    int fd;

    server_pid = start_server(arguments, &fd);
    for (size_t len = 0; len < sizeof(line) - 1 && !strchr(line, '\n'); len++)
        ck_assert_int_eq(read(fd, line + len, 1), 1);
    close(fd);
    line[strcspn(line, "\n")] = '\0';
    ck_assert_int_eq(strncmp(line, "JOULE_PMSERVER=127.0.0.1:", 25), 0);
    setenv("JOULE_PMSERVER", line + 15, 1);
    ck_assert_int_eq(pm_set_server(NULL, 0, &server), 0);
}

static void setup(void)
{
    begin_view();
    make_node();
    done = write_failed = false;
    put_figures();
    ck_assert_int_eq(pthread_create(&writer, NULL, write_figures, NULL), 0);
    begin_server();
    LINE_SET_ALL(&all);
    counter = (counter_t){.sock = -1};
}

static void teardown(void)
{
    pm_finalize_counter(&counter);
    kill(server_pid, SIGTERM);
    ck_assert_int_eq(status_of(server_pid), 0);
    done = true;
    pthread_join(writer, NULL);
    ck_assert_msg(!write_failed, "%s", err.text);
    end_view();
}

/* ---- raw connections ---- */

static int connect_raw(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 8};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void send_int(int fd, int32_t value)
{
    ck_assert_int_eq(send(fd, &value, sizeof(value), MSG_NOSIGNAL),
                     sizeof(value));
}

static void send_text(int fd, const char *text)
{
    send_int(fd, (int32_t)strlen(text));
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
                     (ssize_t)strlen(text));
}

static void get(int fd, void *to, size_t size)
{
    ck_assert_int_eq(recv(fd, to, size, MSG_WAITALL), (ssize_t)size);
}

static int32_t get_int(int fd)
{
    int32_t value;

    get(fd, &value, sizeof(value));
    return value;
}

static const char *get_text(int fd)
{
    static char text[128];
    int32_t length = get_int(fd);

    ck_assert(length > 0 && length < (int)sizeof(text));
    get(fd, text, (size_t)length);
    text[length] = '\0';
    return text;
}

static void must_be_closed(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);

    ck_assert(n == 0 || (n < 0 && errno == ECONNRESET));
    close(fd);
}

/* ---- client and server ---- */

START_TEST(devices)
{
    static const char *const expected[] = {"step", "CSTATES0", "CSTATES1"};
    static const int lines[] = {1, 128, 8}, hz[] = {20, 10, 10};
    char **list, unknown[] = "LMG450-1", no_name[] = "";
    device_t device = {.n_lines = 77};
    int count;

    ck_assert_int_eq(pm_get_devices(server, &list, &count), 0);
    ck_assert_int_eq(count, 3);
    for (int i = 0; i < count; i++) {
        ck_assert_str_eq(list[i], expected[i]);
        ck_assert_int_eq(pm_get_device_info(server, list[i], &device), 0);
        ck_assert_str_eq(device.name, list[i]);
        ck_assert_int_eq(device.max_frecuency, hz[i]);
        ck_assert_int_eq(device.n_lines, lines[i]);
        free(device.name);
        free(list[i]);
    }
    free(list);
    ck_assert_int_eq(pm_get_device_info(server, unknown, &device), -1);
    ck_assert_int_eq(errno, EREMOTEIO);
    ck_assert_int_eq(pm_get_device_info(server, no_name, &device), -1);
    ck_assert_int_eq(device.n_lines, 8);
}
END_TEST

static void create(char *name, line_t lines, int aggregate, int hz)
{
    ck_assert_msg(
        pm_create_counter(name, lines, aggregate, hz, server, &counter) == 0,
        "%s", strerror(errno));
}

/* The mean of a set's samples of a line. */
static double mean(int set, int line)
{
    const pm_measures *e = &counter.measures->energy;
    int samples = e->watts_sets[e->watts_sets_size - 1];
    double sum = 0;

    ck_assert_int_gt(e->watts_sets_size - 1, set);
    ck_assert_int_ge(e->watts_sets[set + 1] - e->watts_sets[set], 2);
    for (int i = e->watts_sets[set]; i < e->watts_sets[set + 1]; i++)
        sum += e->watts[line * samples + i];
    return sum / (e->watts_sets[set + 1] - e->watts_sets[set]);
}

static void measure(int operation(counter_t *), int ms)
{
    ck_assert_msg(operation(&counter) == 0, "%s", strerror(errno));
    usleep((useconds_t)ms * 1000);
    ck_assert_int_eq(pm_stop_counter(&counter), 0);
}

START_TEST(sets)
{
    char step[] = "step";
    int n;

    create(step, all, 1, 0);
    ck_assert_int_eq(counter.num_lines, 1);
    ck_assert_int_eq(counter.interval, 20);
    ck_assert_int_eq(pm_stop_counter(&counter), -1);
    ck_assert_int_eq(pm_get_counter_data(&counter), -1);
    ck_assert_int_eq(errno, EREMOTEIO);
    measure(pm_start_counter, 300);
    ck_assert_int_eq(pm_get_counter_data(&counter), 1);
    ck_assert_double_eq_tol(mean(0, 0), WATTS, 5);
    measure(pm_continue_counter, 1);
    measure(pm_continue_counter, 200);
    ck_assert_int_eq(pm_get_counter_num_sets(counter, &n), 0);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(pm_get_counter_data(&counter), 1);
    ck_assert_int_eq(pm_get_counter_num_sets(counter, &n), 0);
    ck_assert_int_eq(n, 3);
    ck_assert_double_eq_tol(mean(1, 0), WATTS, 5);
    ck_assert_double_eq_tol(mean(2, 0), WATTS, 5);
    /* An open set: its data later, and no other one. */
    ck_assert_int_eq(pm_start_counter(&counter), 0);
    ck_assert_int_eq(pm_start_counter(&counter), -1);
    ck_assert_int_eq(pm_get_counter_data(&counter), -1);
    ck_assert_int_eq(pm_stop_counter(&counter), 0);
    ck_assert_int_eq(pm_get_counter_data(&counter), 1);
    ck_assert_int_eq(pm_get_counter_num_sets(counter, &n), 0);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(pm_finalize_counter(&counter), 0);
    ck_assert_ptr_null(counter.measures);
    ck_assert_int_eq(pm_finalize_counter(&counter), -1);
    ck_assert_int_eq(pm_start_counter(&counter), -1);
    ck_assert_int_eq(pm_get_counter_data(&counter), -1);
}
END_TEST

START_TEST(states)
{
    char name[] = "CSTATES0";
    line_t lines;

    pm_set_lines("0-3,127", &lines);
    create(name, lines, 0, 5);
    ck_assert_int_eq(pm_start_counter(&counter), 0);
    for (int i = 1; i <= 20; i++) {
        usleep(50000);
        set_idle(i * 25000);
    }
    ck_assert_int_eq(pm_stop_counter(&counter), 0);
    ck_assert_int_eq(pm_get_counter_data(&counter), 1);
    ck_assert_int_eq(counter.measures->energy.lines_len, 5);
    ck_assert_double_eq_tol(mean(0, 0), 50, 15);
    ck_assert_double_eq_tol(mean(0, 1), 50, 15);
    ck_assert_double_eq_tol(mean(0, 0) + mean(0, 1), 100, 0.01);
    ck_assert_double_eq(mean(0, 2), 0);
    ck_assert_double_eq(mean(0, 4), 0);
}
END_TEST

START_TEST(refused)
{
    char step[] = "step", unknown[] = "unknown";
    line_t fifth;

    ck_assert_int_eq(pm_create_counter(unknown, all, 1, 0, server, &counter),
                     -1);
    ck_assert_int_eq(errno, EREMOTEIO);
    ck_assert_int_eq(pm_create_counter(step, all, 1, 21, server, &counter), -1);
    ck_assert_int_eq(pm_create_counter(step, all, 1, -1, server, &counter), -1);
    pm_set_lines("5", &fifth);
    ck_assert_int_eq(pm_create_counter(step, fifth, 1, 0, server, &counter),
                     -1);
    ck_assert_int_eq(counter.sock, -1);
}
END_TEST

/* ---- what has no function in the client ---- */

START_TEST(whole_status)
{
    char step[] = "step", host[128];
    int fd = connect_raw();

    create(step, all, 0, 10);
    send_int(fd, 8);
    ck_assert_int_eq(get_int(fd), 3);
    for (int i = 0; i < 3; i++) {
        int lines, counters;
        float volts;

        snprintf(host, sizeof(host), "%s", get_text(fd));
        ck_assert_str_eq(host, i == 0   ? "step"
                               : i == 1 ? "CSTATES0"
                                        : "CSTATES1");
        ck_assert_int_eq(get_int(fd), i == 0 ? 20 : 10);
        lines = get_int(fd);
        ck_assert_int_eq(get_int(fd), 0);
        get_text(fd);
        for (int k = 0; k < lines; k++) {
            ck_assert_int_eq(get_int(fd), k);
            if (i == 2 && k == 4)
                ck_assert_str_eq(get_text(fd), "cpu33 C0");
            else
                get_text(fd);
            get(fd, &volts, sizeof(volts));
            get_text(fd);
        }
        counters = get_int(fd);
        ck_assert_int_eq(counters, i == 0);
        if (counters == 0)
            continue;
        get_int(fd);
        ck_assert_int_eq(strncmp(get_text(fd), "127.0.0.1:", 10), 0);
        ck_assert_int_eq(get_int(fd), 1);
        ck_assert_int_eq(get_int(fd), 0);
    }
    close(fd);
}
END_TEST

START_TEST(stream)
{
    int fd = connect_raw();
    double watts;

    send_int(fd, 9);
    send_text(fd, "step");
    send_int(fd, 10);
    ck_assert_int_eq(get_int(fd), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(get_int(fd), 1);
        get(fd, &watts, sizeof(watts));
        ck_assert_double_eq_tol(watts, WATTS, 5);
        if (i == 1)
            send_int(fd, 1);
    }
    send_int(fd, 0);
    while (recv(fd, &watts, sizeof(watts), 0) > 0)
        continue;
    must_be_closed(fd);
    fd = connect_raw();
    send_int(fd, 9);
    send_text(fd, "unknown");
    send_int(fd, 0);
    ck_assert_int_eq(get_int(fd), -1);
    must_be_closed(fd);
    fd = connect_raw();
    send_int(fd, 9);
    send_text(fd, "step");
    send_int(fd, 1000);
    ck_assert_int_eq(get_int(fd), -2);
    ck_assert_int_eq(get_int(fd), 20);
    must_be_closed(fd);
}
END_TEST

START_TEST(garbage)
{
    static const char several[] = "\6\0\0\0\4\0\0\0step\7\0\0\0\7\0\0";
    static const char much[8000] = "garbage!";
    int fd = connect_raw();

    send(fd, much, sizeof(much), MSG_NOSIGNAL);
    ck_assert_int_eq(get_int(fd), -1);
    must_be_closed(fd);
    /* Of a counter's life out of order, and nothing that is one. */
    fd = connect_raw();
    for (int operation = 1; operation <= 4; operation++) {
        send_int(fd, operation);
        ck_assert_int_eq(get_int(fd), -1);
    }
    send_int(fd, 5);
    ck_assert_int_eq(get_int(fd), -1);
    must_be_closed(fd);
    /* In pieces, and several at once. */
    fd = connect_raw();
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(send(fd, several + i, 1, 0), 1);
        usleep(1000);
    }
    ck_assert_int_eq(send(fd, several + 9, 11, 0), 11);
    ck_assert_int_eq(get_int(fd), 20);
    ck_assert_int_eq(get_int(fd), 1);
    ck_assert_str_eq(get_text(fd), "step");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(get_int(fd), 3);
        for (int k = 0; k < 3; k++)
            get_text(fd);
    }
    close(fd);
}
END_TEST

START_TEST(too_many)
{
    int fd[64], one;
    ssize_t n = 0;
    char byte;

    for (int i = 0; i < 64; i++) {
        fd[i] = connect_raw();
        send_int(fd[i], 7);
        ck_assert_int_eq(get_int(fd[i]), 3);
    }
    one = connect_raw();
    must_be_closed(one);
    for (int i = 0; i < 64; i++)
        close(fd[i]);
    /* The server sees that they are closed, soon. */
    for (int i = 0; i < 500 && n <= 0; i++) {
        usleep(10000);
        one = connect_raw();
        send(one, "\7\0\0\0", 4, MSG_NOSIGNAL);
        n = recv(one, &byte, 1, 0);
        close(one);
    }
    ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(other_user)
{
    pid_t pid;
    int status, fd;
    char byte;

    if (geteuid() != 0) {
        fprintf(stderr,
                "skip - pmlib: other_user # only root can be another\n");
        return;
    }
    pid = fork();
    if (pid == 0) {
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(2);
        fd = connect_raw();
        send(fd, "\7\0\0\0", 4, MSG_NOSIGNAL);
        _exit(recv(fd, &byte, 1, 0) > 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Clients that stall, all for 5 s at the same time. */
START_TEST(stalls)
{
    int half = connect_raw(), none = connect_raw(), deaf = connect_raw();
    int size = 4096, count;
    struct pollfd p = {.fd = deaf};
    char **list;

    send_int(half, 6);
    setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    for (int i = 0; i < 2000; i++)
        if (send(deaf, "\10\0\0\0", 4, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
    /* Others are served. */
    ck_assert_int_eq(pm_get_devices(server, &list, &count), 0);
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
    must_be_closed(half);
    must_be_closed(none);
    /* What it has sent and was not read is an error to it. */
    ck_assert_int_eq(poll(&p, 1, 3000), 1);
    close(deaf);
}
END_TEST

/* ---- the command ---- */

START_TEST(commands)
{
    static const char *const exits[] = {"--", "sh", "-c",
                                        "echo $JOULE_PMSERVER; exit 7", NULL};
    static const char *const dies[] = {"--", "sh", "-c", "kill -TERM $$", NULL};
    /* As scancel -s USR1 sends it to all. */
    static const char *const asked[] = {
        "--", "sh", "-c",
        "trap 'exit 9' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done",
        NULL};
    static const char *const missing[] = {"--", "/nonexistent", NULL};
    static const char *const nothing[] = {"--", NULL};
    static const char *const port[] = {"--port=70000", NULL};
    static const char *const list[] = {"--list", NULL};
    char text[2048];

    ck_assert_int_eq(run_server(exits, text, sizeof(text)), 7);
    ck_assert_int_eq(strncmp(text, "127.0.0.1:", 10), 0);
    ck_assert_int_ne(atoi(text + 10), server.port);
    ck_assert_int_eq(run_server(dies, text, sizeof(text)), 128 + SIGTERM);
    ck_assert_int_eq(run_server(asked, text, sizeof(text)), 9);
    ck_assert_int_eq(run_server(missing, text, sizeof(text)), 127);
    ck_assert_int_eq(run_server(nothing, text, sizeof(text)), 2);
    ck_assert_int_eq(run_server(port, text, sizeof(text)), 2);
    ck_assert_int_eq(run_server(list, text, sizeof(text)), 0);
    ck_assert_ptr_nonnull(strstr(text, "step         1 line "));
    ck_assert_ptr_nonnull(strstr(text, "PSTATES    not there: "));
    ck_assert_ptr_nonnull(strstr(text, "node       not there: "));
}
END_TEST

START_TEST(taken_port)
{
    char option[32], text[256];
    const char *const arguments[] = {option, NULL};

    snprintf(option, sizeof(option), "--port=%d", server.port);
    ck_assert_int_eq(run_server(arguments, text, sizeof(text)), 1);
}
END_TEST

/* Outside of a step: the others are there, and START is refused. */
START_TEST(server_is_gone)
{
    char step[] = "step";

    create(step, all, 1, 0);
    ck_assert_int_eq(pm_start_counter(&counter), 0);
    kill(server_pid, SIGKILL);
    waitpid(server_pid, NULL, 0);
    ck_assert_int_eq(pm_stop_counter(&counter), -1);
    ck_assert_int_eq(pm_get_counter_data(&counter), -1);
    ck_assert_int_eq(pm_finalize_counter(&counter), -1);
    ck_assert_int_eq(pm_create_counter(step, all, 1, 0, server, &counter), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    begin_server();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pmlib");
    TCase *tc = tcase_create("pmlib");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, devices);
    tcase_add_test(tc, sets);
    tcase_add_test(tc, states);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, whole_status);
    tcase_add_test(tc, stream);
    tcase_add_test(tc, garbage);
    tcase_add_test(tc, too_many);
    tcase_add_test(tc, other_user);
    tcase_add_test(tc, stalls);
    tcase_add_test(tc, commands);
    tcase_add_test(tc, taken_port);
    tcase_add_test(tc, server_is_gone);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
