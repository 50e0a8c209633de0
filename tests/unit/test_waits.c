/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command joule waits: its options, its output, names from hostile traces, and
 * what it tells of a machine. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/profile/hdf5_copy.h"
#include "common/profile/hdf5_driver.h"
#include "tests/unit/nodefile.h"
#include "tests/unit/tracefile.h"
#include "tests/unit/tree.h"
#include "tools/waits/machine_states.h"
#include "tools/report/waits.h"

static struct tree tree;
static char trace[128], *output;

/* As of a full disk: the command alone may write files no longer than this. */
static rlim_t file_limit;

static void setup(void)
{
    tree_create(&tree);
    snprintf(trace, sizeof(trace), "%s/trace", tree.path);
    output = NULL;
    file_limit = RLIM_INFINITY;
}

static void teardown(void)
{
    free(output);
    tree_destroy(&tree);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, bytes == RLIM_INFINITY ? SIG_DFL : SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* The exit status of the command; what it prints is in [output], complaints too. */
static int run(const char *a, const char *b, const char *c)
{
    char *argv[] = {"waits", (char *)a, (char *)b, (char *)c, NULL};
    char path[128];
    int argc = 1, status, out = dup(1), err = dup(2);
    FILE *file;

    while (argv[argc])
        argc++;
    snprintf(path, sizeof(path), "%s/output", tree.path);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fflush(stdout);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    fclose(file);
    limit_files(file_limit);
    status = joule_waits_main(argc, argv);
    fflush(stdout);
    limit_files(RLIM_INFINITY);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    free(output);
    output = joule_file_load(tree.fd, "output", 1 << 20, NULL);
    ck_assert_ptr_nonnull(output);
    return status;
}

static void has(const char *text)
{
    ck_assert_msg(strstr(output, text) != NULL, "no '%s' in:\n%s", text,
                  output);
}

/* ---- regions ---- */

#define MPI JOULE_REGION_MPI

START_TEST(names_of_regions)
{
    static const struct {
        const char *name;
        unsigned flags;
    } names[] = {
        {"main", 0},
        {"PMPI_Send", 0},
        {"MPI", 0},
        {"", 0},
        {"MPI_Send", MPI | JOULE_REGION_SENDS_BLOCKING},
        {"mpi_send_", MPI | JOULE_REGION_SENDS_BLOCKING},
        {"MPI_SEND", MPI | JOULE_REGION_SENDS_BLOCKING},
        {"mpi_ssend_f08_", MPI | JOULE_REGION_SENDS_BLOCKING},
        {"MPI_Sendrecv", MPI},
        {"MPI_Send_init", MPI},
        {"MPI_Bsend", MPI},
        {"MPI_Rsend", MPI},
        {"MPI_Isend", MPI},
        {"MPI_Waitall", MPI},
        {"MPI_Test", MPI | JOULE_REGION_TEST},
        {"MPI_Testsome", MPI | JOULE_REGION_TEST},
        {"MPI_Test_cancelled", MPI},
        {"MPI_Ibarrier", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Ialltoallv", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Neighbor_allgather", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Get", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Get_count", MPI},
        {"MPI_Get_accumulate", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Win_fence", MPI | JOULE_REGION_NOT_ANALYSED},
        {"MPI_Barrier", MPI},
        {"MPI_Irecv", MPI},
        {"MPI_Iprobe", MPI},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_msg(joule_region_flags(names[i].name) == names[i].flags,
                      "%s: %u", names[i].name,
                      joule_region_flags(names[i].name));
}
END_TEST

/* ---- options ---- */

static const struct {
    const char *a, *b, *c, *sentence;
    int status;
} wrong[] = {
    {NULL, NULL, NULL, "joule waits: which trace?", 2},
    {"--csv", "--json", "x", "one of --csv, --json, --each, --html, --cubex, ",
     2},
    {"--html=a", "--cubex=b", "x",
     "--html, --cubex, --otf2, --paraver and --hdf5", 2},
    {"--by=colour", "x", NULL, "--by is pattern, path, process or communicator",
     2},
    {"--top=0", "x", NULL, "--top is a number from 1 to 1000000", 2},
    {"--threads=17", "x", NULL, "--threads is a number from 1 to 16", 2},
    {"--list-states", "x", NULL, "--list-states is of no trace", 2},
    {"--slack", "--each", "x", "--slack is of the text, --csv and --json", 2},
    {"--slack", "--by=pattern", "x", "--slack is by path or by process", 2},
    {"--paraver=", "x", NULL, "--paraver=PATH", 2},
    {"--html=", "x", NULL, "--html=FILE", 2},
    {"--otf2=", "x", NULL, "--otf2=DIRECTORY", 2},
    {"a", "b", NULL, "too many arguments", 2},
    {"--colour", "x", NULL, "--colour is no option", 2},
    {"/nowhere", NULL, NULL, "joule waits: there is no trace /nowhere", 1},
    {"--power-states=/nowhere.conf", "x", NULL,
     "power states /nowhere.conf: No such file or directory", 1},
    {"--power-states=nothing", "x", NULL, "/nothing.conf: No such file", 1},
    {"--power-states=/", "x", NULL, "power states /: Is a directory", 1},
};

START_TEST(wrong_command_lines)
{
    ck_assert_int_eq(run(wrong[_i].a, wrong[_i].b, wrong[_i].c),
                     wrong[_i].status);
    has(wrong[_i].sentence);
}
END_TEST

START_TEST(help)
{
    ck_assert_int_eq(run("--help", NULL, NULL), 0);
    has("usage: joule waits");
}
END_TEST

/* ---- output ---- */

static const char states[] =
    "state active_W idle_W transition_us transition_J\n"
    "1     10       4      0             0\n"
    "2     8        2      1             0\n";

/* A Late Sender wait of 10 s, and a barrier without any. */
static void write_trace(const char *comm_name)
{
    static const uint64_t members[] = {0, 1};
    const struct tracefile_comm comm = {comm_name, members, 2};
    const struct tracefile_spec spec = {
        .ranks = 2, .ticks_per_s = 1000, .comm = &comm, .comms = 1};
    struct tracefile *t = tracefile_create(trace, &spec);

    tracefile_enter(t, 0, 0, TRACEFILE_MAIN);
    tracefile_enter(t, 0, 10000, TRACEFILE_SEND);
    OTF2_EvtWriter_MpiSend(tracefile_writer(t, 0), NULL, 10000, 1, 2, 0, 8);
    tracefile_leave(t, 0, 10000, TRACEFILE_SEND);
    tracefile_leave(t, 0, 20000, TRACEFILE_MAIN);
    tracefile_enter(t, 1, 0, TRACEFILE_RECV);
    OTF2_EvtWriter_MpiRecv(tracefile_writer(t, 1), NULL, 10000, 0, 2, 0, 8);
    tracefile_leave(t, 1, 10000, TRACEFILE_RECV);
    tracefile_enter(t, 1, 10000, TRACEFILE_ALLTOALLV);
    OTF2_EvtWriter_MpiCollectiveEnd(tracefile_writer(t, 1), NULL, 20000,
                                    OTF2_COLLECTIVE_OP_ALLTOALLV, 2,
                                    OTF2_COLLECTIVE_ROOT_NONE, 8, 8);
    tracefile_leave(t, 1, 20000, TRACEFILE_ALLTOALLV);
    tracefile_close(t);
}

static const char *states_option(void)
{
    static char option[128];

    tree_write(&tree, "states.conf", states);
    snprintf(option, sizeof(option), "--power-states=%s/states.conf",
             tree.path);
    return option;
}

/* Idle in state 2: 100 J - 20 J and what the transition of 1 us does not save. */
START_TEST(text)
{
    write_trace("row");
    ck_assert_int_eq(run(states_option(), trace, NULL), 0);
    has(": 2 processes, 3 MPI calls in 20.000000 s of 40.000000 s (50.00 %)");
    has("Late Sender                    1        10.000000 s   50.00 %   25.00 "
        "%            80 J  80.0 %            20 J  20.0 %");
    has("The longest waits (1 of 1):");
    has("Late Sender      MPI_Recv  rank 1 100 %");
    has("2                        1        10.000000 s              1        "
        "10.000000 s");
    has("Not analysed: MPI_Alltoallv (1)");
    ck_assert_int_eq(run("--by=process", trace, NULL), 0);
    has("rank 1 on n0");
    ck_assert_int_eq(run("--slack", trace, NULL), 0);
    has("Slack: how much longer");
    has("       10.000000 s         0.000000 s  100.00 to 100.00 %  main");
    has("       10.000000 s         0.000000 s            100.00 %  rank 0 on "
        "n0");
}
END_TEST

static const char *html_option(void)
{
    static char option[300];

    snprintf(option, sizeof(option), "--html=%s/page.html", tree.path);
    return option;
}

static void has_in_page(const char *word)
{
    static char page[1 << 20];
    char path[300];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/page.html", tree.path);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    n = fread(page, 1, sizeof(page) - 1, file);
    fclose(file);
    page[n] = '\0';
    ck_assert_msg(strstr(page, word) != NULL, "no '%s' in the page", word);
}

START_TEST(csv)
{
    write_trace("row");
    ck_assert_int_eq(run("--csv", states_option(), trace), 0);
    ck_assert_str_eq(
        output,
        "pattern,path,process,rank,node,communicator,count,time_s,longest_s,"
        "state1_J,esp_J,esp_bw_J,used_J,used_uncertain_J\n"
        "late_sender,MPI_Recv,MPI Rank 1,1,n0,row,1,10.000000000,10.000000000,"
        "100.000000,80.000002,20.000008,,");
    ck_assert_int_eq(run("--csv", "--by=pattern", trace), 0);
    ck_assert_ptr_nonnull(strstr(output, "\nlate_sender,,,,,,1,10.000000000,"
                                         "10.000000000,,,,,"));
    ck_assert_int_eq(run("--csv", "--slack", trace), 0);
    ck_assert_ptr_nonnull(strstr(
        output, "of,path,process,rank,node,computed_s,slack_s,speed_least,"
                "speed_most\n"));
    has("path,main,MPI Rank 0,0,n0,10.000000000,0.000000000,1.0000,1.0000\n");
    has("all,,MPI Rank 0,0,n0,10.000000000,0.000000000,1.0000,1.0000\n");
    ck_assert_int_eq(run(html_option(), states_option(), trace), 0);
    has_in_page("Content-Security-Policy");
    has_in_page("Late Sender");
    has_in_page("MPI_Recv");
    ck_assert_int_eq(run("--html=/nowhere/x", trace, NULL), 1);
    has("cannot write /nowhere/x");
    ck_assert_int_eq(run("--each", trace, NULL), 0);
    ck_assert_ptr_nonnull(strstr(output,
                                 "pattern,rank,process,begin_ns,wait_ns,"
                                 "path\nlate_sender,1,MPI Rank 1,"));
}
END_TEST

/* ---- profiles for CubeGUI ---- */

#define PYTHON "/usr/bin/python3"

/* Waits of all kinds of numbers, below a region whose name would break out of XML:
 * three ranks that meet at two barriers, and two late senders. */
static void write_hostile_trace(void)
{
    static const uint64_t members[] = {0, 1, 2};
    const struct tracefile_comm comm = {"row", members, 3};
    const struct tracefile_spec spec = {
        .ranks = 3,
        .comm = &comm,
        .comms = 1,
        .main_name = "</name>&amp;<x a='\"'> ]]> \xff\xc3\033[31m\xef\xbf\xbf"};
    struct tracefile *t = tracefile_create(trace, &spec);
    uint64_t ms = 1000000;

    for (uint64_t rank = 0; rank < 3; rank++) {
        OTF2_EvtWriter *w = tracefile_writer(t, rank);

        tracefile_enter(t, rank, 0, TRACEFILE_MAIN);
        for (uint64_t i = 0; i < 2; i++) {
            uint64_t ns = (100 * i + 10 * rank * rank) * ms + rank;

            tracefile_enter(t, rank, ns, TRACEFILE_BARRIER);
            OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, ns);
            OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, (100 * i + 60 + rank) * ms,
                                            OTF2_COLLECTIVE_OP_BARRIER, 2,
                                            OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
            tracefile_leave(t, rank, (100 * i + 60 + rank) * ms,
                            TRACEFILE_BARRIER);
        }
        if (rank == 0) {
            tracefile_enter(t, 0, 300 * ms, TRACEFILE_SOLVE);
            for (uint32_t to = 1; to < 3; to++) {
                tracefile_enter(t, 0, 300 * ms + to, TRACEFILE_SEND);
                OTF2_EvtWriter_MpiSend(w, NULL, 300 * ms + to, to, 2, 0, 8);
                tracefile_leave(t, 0, 300 * ms + to, TRACEFILE_SEND);
            }
            tracefile_leave(t, 0, 301 * ms, TRACEFILE_SOLVE);
        } else {
            tracefile_enter(t, rank, (200 + rank) * ms, TRACEFILE_RECV);
            OTF2_EvtWriter_MpiRecv(w, NULL, 301 * ms, 0, 2, 0, 8);
            tracefile_leave(t, rank, 301 * ms, TRACEFILE_RECV);
        }
        tracefile_leave(t, rank, 400 * ms, TRACEFILE_MAIN);
    }
    tracefile_close(t);
}

/* Whether the profile is one, and has the numbers of --json. */
static void same_as_json(const char *option)
{
    char path[128], command[640];

    snprintf(path, sizeof(path), "--cubex=%s/out.cubex", tree.path);
    ck_assert_int_eq(run(path, trace, option), 0);
    ck_assert_str_eq(output, "");
    ck_assert_int_eq(run("--json", trace, option), 0);
    if (access(PYTHON, X_OK) != 0) {
        printf("# no " PYTHON ": the profile was not read\n");
        return;
    }
    snprintf(command, sizeof(command),
             PYTHON " " JOULE_SOURCE_DIR "/tests/unit/checkcubex.py "
                    "%s/out.cubex %s/output",
             tree.path, tree.path);
    ck_assert_msg(system(command) == 0, "%s", command);
}

START_TEST(cubex)
{
    write_trace("row");
    same_as_json(NULL);
    same_as_json(states_option());
}
END_TEST

START_TEST(hostile_cubex)
{
    write_hostile_trace();
    same_as_json(states_option());
    has("\"late_sender\"");
    has("\"wait_at_barrier\"");
    has("\"barrier_completion\"");
}
END_TEST

/* The option as it is in [what], with a file of the tree. */
static const char *file_option(const char *what, const char *name)
{
    static char option[300];

    snprintf(option, sizeof(option), "%s=%s/%s", what, tree.path, name);
    return option;
}

/* A file that was there is as it was while the new one is not whole, and nothing else
 * is left of that; what is no file stays what it is. */
START_TEST(outputs)
{
    static const char *const options[] = {"--cubex", "--html"};
    struct stat st;
    char *was;

    write_trace("row");
    for (int i = 0; i < 2; i++) {
        tree_write(&tree, "out", "as it was");
        file_limit = 400;
        ck_assert_int_eq(run(file_option(options[i], "out"), trace, NULL), 1);
        file_limit = RLIM_INFINITY;
        has(": File too large");
        ck_assert_ptr_null(strchr(output, '\n'));
        was = joule_file_load(tree.fd, "out", 100, NULL);
        ck_assert_str_eq(was, "as it was");
        free(was);
        ck_assert_int_eq(faccessat(tree.fd, ".out.tmp", F_OK, 0), -1);
        ck_assert_int_eq(run(file_option(options[i], "out"), trace, NULL), 0);
        ck_assert_int_eq(fstatat(tree.fd, "out", &st, 0), 0);
        ck_assert_int_gt(st.st_size, 1000);
        /* The trace itself is not written over; a name beside it is as good as any. */
        ck_assert_int_eq(
            run(file_option(options[i], "trace/traces.otf2"), trace, NULL), 1);
        has("/trace/traces.otf2 is a part of the trace");
        ck_assert_int_eq(
            run(file_option(options[i], "trace/../trace/traces/0.evt"), trace,
                NULL),
            1);
        has("is a part of the trace");
        ck_assert_int_eq(
            run(file_option(options[i], "trace/traces-page"), trace, NULL), 0);
        ck_assert_int_eq(run(file_option(options[i], "no/out"), trace, NULL),
                         1);
        has("/no/out: cannot open the directory");
        ck_assert_int_eq(run(file_option(options[i], "."), trace, NULL), 1);
        has("cannot write ");
        has("Is a directory");
    }
}
END_TEST

START_TEST(full_disk)
{
    static const char *const options[] = {"--cubex", "--html"};
    char path[128];
    struct stat st;

    write_trace("row");
    /* Never the system's own. */
    snprintf(path, sizeof(path), "%s/full", tree.path);
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run(file_option(options[i], "full"), trace, NULL), 1);
        has(": No space left on device");
        ck_assert_ptr_null(strchr(output, '\n'));
        ck_assert_int_eq(lstat(path, &st), 0);
        ck_assert(S_ISLNK(st.st_mode));
        ck_assert_int_eq(stat("/dev/full", &st), 0);
        ck_assert(S_ISCHR(st.st_mode));
    }
}
END_TEST

START_TEST(json)
{
    write_trace("row");
    ck_assert_int_eq(run("--json", states_option(), trace), 0);
    has("\"mpi_calls\": 3");
    has("\"pattern\": \"late_sender\"");
    has("\"time_ns\": 10000000000");
    has("\"esp_j\": 80.000002");
    has("\"region\": \"MPI_Alltoallv\"");
    ck_assert_int_eq(run("--json", "--slack", trace), 0);
    has("\"computed_ns\": 10000000000");
    has("\"slack_ns\": 0");
}
END_TEST

/* An option with a path of the test's directory; a few of them are kept. */
static const char *path_option(const char *option, const char *name)
{
    static char kept[4][200];
    static int next;

    next = (next + 1) % 4;
    snprintf(kept[next], sizeof(kept[0]), "%s%s/%s", option, tree.path, name);
    return kept[next];
}

/* What the JSON document of a copy has of its own. */
static void cut_from_json(char *document)
{
    static const char *const keys[] = {"\"trace\": ", "\"events\": "};

    for (int i = 0; i < 2; i++) {
        char *at = strstr(document, keys[i]);

        ck_assert_ptr_nonnull(at);
        memset(at, ' ', strcspn(at, "\n,"));
    }
    for (char *at = document; *at; at++)
        while (*at == ' ' && at[1] == ' ')
            memmove(at, at + 1, strlen(at));
}

START_TEST(otf2)
{
    char *original;

    write_trace("row");
    ck_assert_int_eq(run(path_option("--otf2=", "copy/"), trace, NULL), 0);
    ck_assert_str_eq(output, "");
    ck_assert_int_eq(run("--json", trace, NULL), 0);
    original = strdup(output);
    ck_assert_int_eq(run("--json", path_option("", "copy"), NULL), 0);
    cut_from_json(original);
    cut_from_json(output);
    ck_assert_str_eq(output, original);
    free(original);
    ck_assert_int_eq(run(path_option("--otf2=", "copy"), trace, NULL), 1);
    has("/copy is there already");
    ck_assert_int_eq(
        run(path_option("--otf2=", "second"), path_option("", "copy"), NULL),
        1);
    has("waits are marked in ");
    ck_assert_int_eq(run("--otf2=/nowhere/copy", trace, NULL), 1);
    has("joule waits: cannot write /nowhere/copy: No such file");
    file_limit = 300;
    ck_assert_int_eq(run(path_option("--otf2=", "second"), trace, NULL), 1);
    has("cannot write the archive: File too large");
    has(": File too large");
    ck_assert_int_eq(access(path_option("", "second"), F_OK), -1);
}
END_TEST

/* The file PATH.END behind its first line, which has a date. */
static void is_file(const char *name, const char *head, const char *rest)
{
    char *content = joule_file_load(tree.fd, name, 1 << 16, NULL);
    char *line = content ? strchr(content, '\n') : NULL;

    ck_assert_msg(line != NULL, "%s", name);
    *line = '\0';
    ck_assert_msg(strstr(content, head) != NULL, "%s", content);
    ck_assert_str_eq(line + 1, rest);
    free(content);
}

START_TEST(paraver)
{
    write_trace("row");
    ck_assert_int_eq(run(path_option("--paraver=", "p"), trace, NULL), 0);
    ck_assert_str_eq(output, "");
    is_file("p.prv", "):20000000000_ns:1(1):1:2(1:1,1:1)",
            "1:0:1:1:1:0:10000000000:1\n"
            "1:0:1:2:1:0:10000000000:3\n"
            "2:0:1:2:1:0:50000001:2\n"
            "2:0:1:2:1:0:502000001:1:502000002:10000000000\n"
            "2:0:1:2:1:10000000000:502000001:0:502000002:0\n"
            "2:0:1:1:1:10000000000:50000001:1\n"
            "2:0:1:1:1:10000000000:50000001:0\n"
            "1:0:1:1:1:10000000000:20000000000:1\n"
            "2:0:1:2:1:10000000000:50000001:0\n"
            "1:0:1:2:1:10000000000:20000000000:13\n"
            "2:0:1:2:1:10000000000:50000002:12\n"
            "3:0:1:1:1:10000000000:10000000000:0:1:2:1:0:10000000000:8:0\n"
            "2:0:1:2:1:20000000000:50000002:0");
    is_file("p.row", "LEVEL NODE SIZE 1",
            "n0\n\nLEVEL TASK SIZE 2\nMPI Rank 0\nMPI Rank 1\n\n"
            "LEVEL THREAD SIZE 2\nMPI Rank 0\nMPI Rank 1");
    ck_assert_int_eq(run("--paraver=/nowhere/p", trace, NULL), 1);
    has("joule waits: cannot write /nowhere/p: No such file");
    file_limit = 300;
    ck_assert_int_eq(run(path_option("--paraver=", "q"), trace, NULL), 1);
    has("a temporary file: File too large");
    file_limit = 800;
    ck_assert_int_eq(run(path_option("--paraver=", "q"), trace, NULL), 1);
    has("/q.pcf: File too large");
    ck_assert_int_eq(access(path_option("", "q.pcf"), F_OK), -1);
}
END_TEST

/* A job's file that has step 0. */
static void write_profile(const char *path)
{
    const struct nodefile file = {
        .node = "n1", .rows = 20, .rate_hz = 10, .ours = true};
    struct joule_hdf5_node node = {
        .path = "/n1", .step = "0", .name = "n1", .is_node_file = true};
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct joule_hdf5_copied copied;
    struct joule_hdf5_copy *copy;
    struct joule_error err;

    joule_hdf5_prepare();
    ck_assert_int_eq(nodefile_write(path_option("", "n1.h5"), &file), 0);
    node.fd = open(path_option("", "n1.h5"), O_RDONLY);
    copy = joule_hdf5_copy_create(fd, &err);
    ck_assert_int_eq(joule_hdf5_copy_node(copy, &node, &copied, &err), 0);
    ck_assert_int_eq(joule_hdf5_copy_finish(copy, &err), 0);
    joule_hdf5_copy_destroy(copy);
    close(node.fd);
    close(fd);
}

static void has_table(const char *path)
{
    struct row {
        char pattern[32];
        uint64_t count, ns;
        double used_j;
    } row = {.count = 0};
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/Steps/0/Waits/Patterns", H5P_DEFAULT);
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(row)),
          string = H5Tcopy(H5T_C_S1);
    hid_t space = H5Dget_space(set);

    H5Tset_size(string, sizeof(row.pattern));
    H5Tinsert(type, "Pattern", HOFFSET(struct row, pattern), string);
    H5Tinsert(type, "Count", HOFFSET(struct row, count), H5T_NATIVE_UINT64);
    H5Tinsert(type, "TimeNs", HOFFSET(struct row, ns), H5T_NATIVE_UINT64);
    H5Tinsert(type, "UsedJ", HOFFSET(struct row, used_j), H5T_NATIVE_DOUBLE);
    ck_assert_int_eq(H5Sget_simple_extent_npoints(space), 1);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &row),
                     0);
    ck_assert_str_eq(row.pattern, "late_sender");
    ck_assert_uint_eq(row.count, 1);
    ck_assert_uint_eq(row.ns, UINT64_C(10000000000));
    ck_assert(row.used_j != row.used_j);
    ck_assert_int_gt(H5Lexists(file, "/Steps/0/Nodes/n1/Energy", H5P_DEFAULT),
                     0);
    H5Sclose(space);
    H5Tclose(string);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
}

static const struct {
    const char *file, *job, *sentence;
} wrong_profiles[] = {
    {"p.h5", "--job=7", "of which step is the trace? Give --job=JOB.STEP"},
    {"p.h5", "--job=7.1", "has no such step"},
    {"none.h5", "--job=7.0", "none.h5: No such file"},
    {"text.h5", "--job=7.0", "it is no HDF5 file or is damaged"},
    {"n1.h5", "--job=7.0", "it is no job file"},
};

START_TEST(hdf5)
{
    const char *profile = path_option("", "p.h5");
    struct stat before, after;

    write_trace("row");
    write_profile(profile);
    tree_write(&tree, "text.h5", "text");
    stat(profile, &before);
    for (size_t i = 0; i < sizeof(wrong_profiles) / sizeof(wrong_profiles[0]);
         i++) {
        ck_assert_int_eq(run(path_option("--hdf5=", wrong_profiles[i].file),
                             wrong_profiles[i].job, trace),
                         1);
        has(wrong_profiles[i].sentence);
    }
    file_limit = 300;
    ck_assert_int_eq(run(path_option("--hdf5=", "p.h5"), "--job=7.0", trace),
                     1);
    has("p.h5: File too large");
    file_limit = (rlim_t)before.st_size + 100;
    ck_assert_int_eq(run(path_option("--hdf5=", "p.h5"), "--job=7.0", trace),
                     1);
    has("cannot write ");
    has(": File too large");
    file_limit = RLIM_INFINITY;
    stat(path_option("", "p.h5"), &after);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_int_eq(access(path_option("", ".p.h5.tmp"), F_OK), -1);
    /* The second time they are replaced. */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            run(path_option("--hdf5=", "p.h5"), "--job=7.0", trace), 0);
        ck_assert_str_eq(output, "");
        has_table(path_option("", "p.h5"));
    }
}
END_TEST

START_TEST(hostile_names)
{
    static const char *const ways[] = {"--by=communicator", "--csv", "--json"};

    write_trace("=A1,\"\033[31m\n\xff");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(run(ways[i], trace, NULL), 0);
        ck_assert_ptr_null(strchr(output, '\033'));
        ck_assert_ptr_null(strchr(output, '\xff'));
        if (i == 0)
            has("=A1,\"?[31m??");
        if (i == 1)
            has(",\"'=A1,\"\"?[31m??\",");
        if (i == 2)
            has("\"=A1,\\\"");
    }
}
END_TEST

START_TEST(no_waits)
{
    const struct tracefile_spec spec = {.ranks = 1};
    struct tracefile *t = tracefile_create(trace, &spec);

    tracefile_enter(t, 0, 0, TRACEFILE_MAIN);
    tracefile_leave(t, 0, 20000, TRACEFILE_MAIN);
    tracefile_close(t);
    ck_assert_int_eq(run(trace, NULL, NULL), 1);
    has("joule waits: no process has waited in MPI");
}
END_TEST

START_TEST(missing_part)
{
    write_trace("row");
    tree_remove(&tree, "trace/traces/0.evt");
    ck_assert_int_eq(run(trace, NULL, NULL), 3);
    has("joule waits: MPI Rank 0 cannot be read: ");
    has("1 receives without a send");
}
END_TEST

static const struct {
    const char *a, *b, *sentence;
} named_profiles[] = {
    {"--job=abc", NULL, "joule waits: the trace does not tell when it was"},
    {"-i", "/nowhere.h5", "joule waits: the trace does not tell when it was"},
    {"-u", "nobody", "joule waits: whose profile? the trace does not tell"},
};

START_TEST(named_profile)
{
    const char *a = named_profiles[_i].a, *b = named_profiles[_i].b;

    write_trace("row");
    ck_assert_int_eq(b ? run(a, b, trace) : run("--csv", a, trace), 3);
    has(named_profiles[_i].sentence);
}
END_TEST

/* ---- this machine's states ---- */

#define CPU0 "sys/devices/system/cpu/cpu0/"

static void print_machine(int status)
{
    char path[128];
    struct joule_error err;
    FILE *out;

    snprintf(path, sizeof(path), "%s/output", tree.path);
    out = fopen(path, "w");
    ck_assert_int_eq(joule_machine_states_print(out, tree.fd, &err), status);
    fclose(out);
    free(output);
    output = status < 0 ? strdup(err.text)
                        : joule_file_load(tree.fd, "output", 1 << 16, NULL);
}

START_TEST(machine_states)
{
    struct joule_power_states parsed;
    struct joule_error err;

    print_machine(-1);
    has("the kernel tells no frequencies of CPU 0");
    tree_write(&tree, CPU0 "cpufreq/scaling_available_frequencies",
               "800000 1900000 1300000 \n");
    tree_write(&tree, CPU0 "cpufreq/cpuinfo_transition_latency", "4000\n");
    tree_write(&tree, CPU0 "cpuidle/state0/name", "POLL\n");
    tree_write(&tree, CPU0 "cpuidle/state0/latency", "0\n");
    tree_write(&tree, CPU0 "cpuidle/state1/name", "C1\033\n");
    tree_write(&tree, CPU0 "cpuidle/state1/latency", "2\n");
    tree_write(&tree, CPU0 "cpuidle/state1/power", "1500\n");
    print_machine(0);
    has("# idle state 1: C1?, 2 us to leave it, 1500 mW\n");
    has("1           1900.000  ?         ?       0              0\n");
    has("2           1300.000  ?         ?       8000           ?\n");
    has("3            800.000  ?         ?       8000           ?");
    ck_assert_int_eq(joule_power_states_parse(&parsed, output, "f", &err), -1);
    ck_assert_msg(strstr(err.text, "fill in what is not known yet of active_W"),
                  "%s", err.text);
    /* intel_pstate has no list. */
    tree_remove(&tree, CPU0 "cpufreq/scaling_available_frequencies");
    tree_write(&tree, CPU0 "cpufreq/cpuinfo_max_freq", "3500000\n");
    tree_write(&tree, CPU0 "cpufreq/cpuinfo_min_freq", "800000\n");
    tree_write(&tree, CPU0 "cpufreq/cpuinfo_transition_latency", "4294967295");
    print_machine(0);
    has("1           3500.000  ?         ?       0              0\n");
    has("2            800.000  ?         ?       ?              ?");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits");
    TCase *tc = tcase_create("waits");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_of_regions);
    tcase_add_loop_test(tc, wrong_command_lines, 0,
                        (int)(sizeof(wrong) / sizeof(wrong[0])));
    tcase_add_test(tc, help);
    tcase_add_test(tc, text);
    tcase_add_test(tc, csv);
    tcase_add_test(tc, json);
    tcase_add_test(tc, otf2);
    tcase_add_test(tc, paraver);
    tcase_add_test(tc, hdf5);
    tcase_add_test(tc, hostile_names);
    tcase_add_test(tc, cubex);
    tcase_add_test(tc, hostile_cubex);
    tcase_add_test(tc, outputs);
    tcase_add_test(tc, full_disk);
    tcase_add_test(tc, no_waits);
    tcase_add_test(tc, missing_part);
    tcase_add_loop_test(tc, named_profile, 0,
                        sizeof(named_profiles) / sizeof(named_profiles[0]));
    tcase_add_test(tc, machine_states);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
