/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands between a program and its MPI library: with a library that is made up
 * here.  Its handles and statuses are MPICH's, and it has no more than tests call.
 */
#include <check.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/joule.h"
#include "lib/preload.h"
#include "lib/waits/calls.h"
#include "tests/unit/tree.h"
#include "tools/waits/recorded_log.h"

#define SELF          0x44000001u
#define WORLD         0x44000000u
#define INT           0x4c000405u
#define REQUEST_NULL  0x2c000000u
#define ERR_OTHER     15
#define STATUS_IGNORE ((void *)1)
#define MOST          64

/* What the program calls: mpi_calls.c and program.c have them. */
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Pcontrol(const int level, ...);
int MPI_Barrier(uintptr_t comm);
int MPI_Comm_dup(uintptr_t comm, void *ret);
int MPI_Bcast(void *buf, int count, uintptr_t type, int root, uintptr_t comm);
int MPI_Isend(void *buf, int count, uintptr_t type, int peer, int tag,
              uintptr_t comm, void *request);
int MPI_Send_init(void *buf, int count, uintptr_t type, int peer, int tag,
                  uintptr_t comm, void *request);
int MPI_Start(void *request);
int MPI_Isendrecv(void *sendbuf, int sendcount, uintptr_t sendtype, int dest,
                  int sendtag, void *recvbuf, int recvcount, uintptr_t recvtype,
                  int source, int recvtag, uintptr_t comm, void *request);
int MPI_Barrier_init(uintptr_t comm, uintptr_t info, void *request);
int MPIX_Barrier_init(uintptr_t comm, uintptr_t info, void *request);
int MPI_Psend_init(void *buf, int partitions, int64_t count, uintptr_t type,
                   int peer, int tag, uintptr_t comm, uintptr_t info,
                   void *request);
int MPI_Pready(int partition, uintptr_t request);
int MPI_Wait(void *request, void *status);
int MPI_Waitall(int count, void *requests, void *statuses);
int MPI_Isend_c(void *buf, int64_t count, uintptr_t type, int peer, int tag,
                uintptr_t comm, void *request);
int MPI_Reduce_scatter_c(void *sendbuf, void *recvbuf, void *counts,
                         uintptr_t type, uintptr_t op, uintptr_t comm);
void mpi_barrier_(void *comm, int *error);
void mpi_bcast_(void *buf, void *count, void *type, void *root, void *comm,
                int *error);

/* ---- the library ---- */

static int fake_version(char *text, int *length)
{
    *length = sprintf(text, "MPICH Version: made up");
    return 0;
}

static int fake_none(void)
{
    return 0;
}

/* Of one process; no thread level but 0. */
static int fake_zero(uintptr_t comm, int *ret)
{
    (void)comm;
    *ret = 0;
    return 0;
}

static int fake_thread(int *level)
{
    *level = 0;
    return 0;
}

static int fake_parent(uint32_t *comm)
{
    *comm = 0x04000000;
    return 0;
}

static int fake_one(uintptr_t comm, int *ret)
{
    (void)comm;
    *ret = 1;
    return 0;
}

static int fake_type_size(uintptr_t type, int *ret)
{
    *ret = type >> 8 & 0xff;
    return 0;
}

static int fake_group(uintptr_t comm, uint32_t *group)
{
    (void)comm;
    *group = 0x48000000;
    return 0;
}

static int fake_ranks(uintptr_t from, int count, const int *ranks, uintptr_t to,
                      int *ret)
{
    (void)from;
    (void)to;
    memcpy(ret, ranks, (size_t)count * sizeof(*ret));
    return 0;
}

static int fake_pcontrol(const int level, ...)
{
    va_list arguments;
    int wrong = 0;

    if (level != 7)
        return 0;
    va_start(arguments, level);
    for (const char *c = "abcde"; *c; c++)
        wrong += va_arg(arguments, const char *)[0] != *c;
    va_end(arguments);
    return wrong;
}

static int fake_barrier(uintptr_t comm)
{
    return comm == WORLD || comm == SELF ? 0 : 5;
}

/* Communicators whose handles are those that the test wants. */
static uint32_t next_comm;

static int fake_dup(uintptr_t comm, uint32_t *ret)
{
    (void)comm;
    *ret = next_comm;
    return 0;
}

/* Its Fortran, whose INTEGERs have 4 bytes or 8. */
static bool is_wide;

static void put_integer(void *at, int value)
{
    int64_t wide = value;

    memcpy(at, is_wide ? (void *)&wide : (void *)&value, is_wide ? 8 : 4);
}

static void fake_f_rank(const void *comm, void *rank, void *error)
{
    (void)comm;
    put_integer(rank, 0);
    put_integer(error, 0);
}

static void fake_f_barrier(const int *comm, void *error)
{
    put_integer(error, fake_barrier((uint32_t)*comm));
}

/* Requests: what the next one is, and what becomes of them. */
static uint32_t next_request;
static int wait_error;

static int fake_isend(const void *buf, int count, uintptr_t type, int peer,
                      int tag, uintptr_t comm, uint32_t *request)
{
    (void)buf;
    (void)count;
    (void)type;
    (void)peer;
    (void)tag;
    (void)comm;
    *request = next_request++;
    return 0;
}

static int fake_isend_c(const void *buf, int64_t count, uintptr_t type,
                        int peer, int tag, uintptr_t comm, uint32_t *request)
{
    return count == INT64_C(1) << 29
               ? fake_isend(buf, 0, type, peer, tag, comm, request)
               : ERR_OTHER;
}

static int fake_isendrecv(const void *sendbuf, int sendcount,
                          uintptr_t sendtype, int dest, int sendtag,
                          void *recvbuf, int recvcount, uintptr_t recvtype,
                          int source, int recvtag, uintptr_t comm,
                          uint32_t *request)
{
    (void)recvbuf;
    (void)recvcount;
    (void)recvtype;
    (void)source;
    (void)recvtag;
    return fake_isend(sendbuf, sendcount, sendtype, dest, sendtag, comm,
                      request);
}

static int fake_barrier_init(uintptr_t comm, uintptr_t info, uint32_t *request)
{
    (void)comm;
    (void)info;
    *request = next_request++;
    return 0;
}

static int fake_psend_init(const void *buf, int partitions, int64_t count,
                           uintptr_t type, int peer, int tag, uintptr_t comm,
                           uintptr_t info, uint32_t *request)
{
    (void)info;
    return count == INT64_C(1) << 40
               ? fake_isend(buf, partitions, type, peer, tag, comm, request)
               : ERR_OTHER;
}

/* From here on they are persistent. */
#define PERSISTENT 1000

static int fake_wait(uint32_t *request, void *status)
{
    memset(status, 0, 20);
    if (*request < PERSISTENT)
        *request = REQUEST_NULL;
    return wait_error;
}

/* With an error, those behind the first are not done. */
static int fake_waitall(int count, uint32_t *requests, char *statuses)
{
    for (int i = 0; i < (wait_error ? 1 : count); i++)
        fake_wait(&requests[i], statuses + 20 * (size_t)i);
    return wait_error;
}

#define FAKE(name, function)                                                   \
    {                                                                          \
        name, (void (*)(void))(function)                                       \
    }
static const struct {
    const char *name;
    void (*function)(void);
} library[] = {
    FAKE("PMPI_Get_library_version", fake_version),
    FAKE("PMPI_Send", fake_none),
    FAKE("PMPI_Recv", fake_none),
    FAKE("PMPI_Allgather", fake_none),
    FAKE("PMPI_Barrier", fake_none),
    FAKE("PMPI_Query_thread", fake_thread),
    FAKE("PMPI_Comm_get_parent", fake_parent),
    FAKE("PMPI_Comm_rank", fake_zero),
    FAKE("PMPI_Comm_size", fake_one),
    FAKE("PMPI_Comm_test_inter", fake_zero),
    FAKE("PMPI_Comm_dup", fake_none),
    FAKE("PMPI_Comm_free", fake_none),
    FAKE("PMPI_Comm_group", fake_group),
    FAKE("PMPI_Group_translate_ranks", fake_ranks),
    FAKE("PMPI_Group_free", fake_none),
    FAKE("PMPI_Type_size", fake_type_size),
    FAKE("MPI_Init", fake_none),
    FAKE("MPI_Finalize", fake_none),
    FAKE("MPI_Pcontrol", fake_pcontrol),
    FAKE("MPI_Barrier", fake_barrier),
    FAKE("MPI_Comm_dup", fake_dup),
    FAKE("MPI_Isend", fake_isend),
    FAKE("MPI_Send_init", fake_isend),
    FAKE("MPI_Start", fake_none),
    FAKE("MPI_Isendrecv", fake_isendrecv),
    FAKE("MPI_Barrier_init", fake_barrier_init),
    FAKE("MPIX_Barrier_init", fake_barrier_init),
    FAKE("MPI_Psend_init", fake_psend_init),
    FAKE("MPI_Pready", fake_none),
    FAKE("MPI_Isend_c", fake_isend_c),
    FAKE("MPI_Reduce_scatter_c", fake_none),
    FAKE("MPI_Wait", fake_wait),
    FAKE("MPI_Waitall", fake_waitall),
    FAKE("mpi_barrier_", fake_f_barrier),
    FAKE("mpi_comm_rank_", fake_f_rank),
};

/* In place of lib/preload.c. */
void *joule_preload_find(const char *name)
{
    for (size_t i = 0; i < sizeof(library) / sizeof(library[0]); i++)
        if (strcmp(library[i].name, name) == 0)
            return *(void *const *)(const void *)&library[i].function;
    return NULL;
}

static const char a_name[] = "name";

bool joule_preload_copy_text(const void *at, char text[JOULE_PRELOAD_TEXT])
{
    (void)text;
    return at == a_name;
}

/* ---- programs ---- */

static struct tree tree;
static struct joule_error err;
static struct joule_recorded_logs logs;
static struct joule_waits_record record[MOST];
static size_t records;
static char said[1024]; /* on stderr */

static void setup(void)
{
    tree_create(&tree);
    setenv("JOULE_WAITS_DIR", tree.path, 1);
    setenv("JOULE_WAITS_MEMORY", "1", 1);
}

static void teardown(void)
{
    joule_recorded_close(&logs);
    tree_destroy(&tree);
}

/* Of a program, without Check: a condition that has to be. */
#define MUST(condition)                                                        \
    do                                                                         \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d\n", __LINE__);                            \
            _exit(1);                                                          \
        }                                                                      \
    while (0)

static int take(void *arg, const struct joule_waits_record *r, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_lt(records, MOST);
        record[records++] = r[i];
    }
    return 0;
}

/* Run the program, in a process of its own, between MPI_Init and MPI_Finalize, and
 * take its records. */
static void run(void (*program)(void))
{
    int out[2], status;
    ssize_t n, got = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(out), 0);
    pid = fork();
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        MUST(MPI_Init(NULL, NULL) == 0);
        program();
        MUST(MPI_Finalize() == 0);
        _exit(0);
    }
    close(out[1]);
    while ((n = read(out[0], said + got, sizeof(said) - 1 - (size_t)got)) > 0)
        got += n;
    said[got] = '\0';
    close(out[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s", said);
    ck_assert_msg(joule_recorded_open(tree.path, &logs, &err) == 0, "%s",
                  err.text);
    records = 0;
    ck_assert_int_eq(joule_recorded_read(&logs.log[0], 0, take, NULL, &err), 0);
}

/* The records between those of MPI_Init and MPI_Finalize, in order. */
#define CALLS(...)                                                             \
    must_be((const int[]){__VA_ARGS__},                                        \
            sizeof((const int[]){__VA_ARGS__}) / (2 * sizeof(int)))

static void must_be(const int(*call_and_kind), size_t count)
{
    ck_assert_uint_eq(records, count + 2);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(record[i + 1].call, call_and_kind[2 * i]);
        ck_assert_int_eq(record[i + 1].kind, call_and_kind[2 * i + 1]);
    }
}

/* ---- functions that the library does not have ---- */

static void call_absent(void)
{
    int error = 0;

    MUST(MPI_Bcast(NULL, 0, INT, 0, WORLD) == ERR_OTHER);
    mpi_bcast_(NULL, NULL, NULL, NULL, NULL, &error);
    MUST(error == ERR_OTHER);
    mpi_bcast_(NULL, NULL, NULL, NULL, NULL, NULL);
    MUST(MPI_Barrier(WORLD) == 0);
}

START_TEST(absent)
{
    run(call_absent);
    ck_assert_str_eq(said,
                     "joule: the MPI library has no MPI_Bcast: calls of it "
                     "fail\n");
    CALLS(JOULE_MPI_Barrier, JOULE_WAITS_COLLECTIVE);
}
END_TEST

/* ---- regions ---- */

static void *leave_region(void *arg)
{
    joule_region_begin("outer");
    joule_region_begin("inner");
    joule_region_end("inner");
    return arg;
}

static void *call_barrier(void *arg)
{
    MUST(MPI_Barrier(WORLD) == 0);
    return arg;
}

static void run_threads(void)
{
    void *(*const runs[])(void *) = {leave_region, call_barrier};
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        MUST(pthread_create(&thread, NULL, runs[i], NULL) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
}

/* A thread that ends in a region does not leave it to the next one, which has its id. */
START_TEST(left_region)
{
    static const int kinds[] = {
        JOULE_WAITS_REGION_BEGIN, JOULE_WAITS_REGION_BEGIN,
        JOULE_WAITS_REGION_END, JOULE_WAITS_REGION_END, JOULE_WAITS_COLLECTIVE};

    run(run_threads);
    ck_assert_uint_eq(logs.log[0].threads, 2);
    records = 0;
    ck_assert_int_eq(joule_recorded_read(&logs.log[0], 1, take, NULL, &err), 0);
    ck_assert_uint_eq(records, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(record[i].kind, kinds[i]);
}
END_TEST

/* ---- MPI_Pcontrol ---- */

static void call_pcontrol(void)
{
    MUST(MPI_Pcontrol(7, "a", "b", "c", "d", "e") == 0);
}

START_TEST(pcontrol)
{
    run(call_pcontrol);
}
END_TEST

static void call_pauses(void)
{
    MUST(MPI_Barrier(WORLD) == 0);
    MUST(MPI_Pcontrol(0, NULL) == 0);
    MUST(MPI_Barrier(WORLD) == 0);
    /* What lies in a register looks like a name. */
    MUST(MPI_Pcontrol(1, a_name) == 0);
    MUST(MPI_Barrier(WORLD) == 0);
    MUST(MPI_Pcontrol(0, a_name) == 0);
    MUST(MPI_Barrier(WORLD) == 0);
    MUST(MPI_Pcontrol(-1, NULL) == 0);
    MUST(MPI_Barrier(WORLD) == 0);
}

START_TEST(pauses)
{
    run(call_pauses);
    /* That of MPI_Finalize is not recorded, either. */
    ck_assert_uint_eq(records, 3);
    ck_assert_int_eq(record[1].call, JOULE_MPI_Barrier);
    ck_assert_int_eq(record[2].call, JOULE_MPI_Barrier);
}
END_TEST

/* ---- communicators ---- */

static void dup_comm(uintptr_t comm, uint32_t new_handle)
{
    uint32_t got;

    next_comm = new_handle;
    MUST(MPI_Comm_dup(comm, &got) == 0 && got == new_handle);
}

static void call_self(void)
{
    MUST(MPI_Barrier(SELF) == 0);
    MUST(MPI_Barrier(WORLD) == 0);
    MUST(MPI_Barrier(SELF) == 0);
}

START_TEST(comm_self)
{
    run(call_self);
    ck_assert_uint_eq(logs.log[0].comms, 2);
    ck_assert_uint_eq(record[1].comm, 1);
    ck_assert_uint_eq(record[2].comm, 0);
    ck_assert_uint_eq(record[3].comm, 1);
    ck_assert_uint_ne(logs.log[0].comm[0].id, logs.log[0].comm[1].id);
}
END_TEST

static bool is_other_order;

static void dup_two(void)
{
    dup_comm(WORLD, 100);
    dup_comm(WORLD, 200);
    for (uint32_t i = 0; i < 2; i++)
        if ((i == 0) != is_other_order)
            dup_comm(100, 101);
        else
            dup_comm(200, 201);
    dup_comm(100, 102);
}

/* Two threads copy each a communicator of the same ranks: in another process the other
 * one may be the first. */
START_TEST(comms_of_two_threads)
{
    uint64_t id[2][6];

    for (int i = 0; i < 2; i++) {
        is_other_order = i;
        run(dup_two);
        ck_assert_uint_eq(logs.log[0].comms, 6);
        for (int c = 0; c < 6; c++)
            id[i][c] = logs.log[0].comm[c].id;
        teardown();
        setup();
    }
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < a; b++)
            ck_assert_uint_ne(id[0][a], id[0][b]);
    ck_assert_uint_eq(id[0][2], id[1][2]);
    ck_assert_uint_eq(id[0][3], id[1][4]);
    ck_assert_uint_eq(id[0][4], id[1][3]);
    ck_assert_uint_eq(id[0][5], id[1][5]);
}
END_TEST

/* ---- requests ---- */

static uint32_t send(uint32_t handle, int tag)
{
    uint32_t request;

    next_request = handle;
    MUST(MPI_Isend(NULL, 1, INT, 0, tag, WORLD, &request) == 0);
    return request;
}

static void call_failed(void)
{
    uint32_t request[2] = {send(5, 1), send(6, 2)};

    wait_error = ERR_OTHER;
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == ERR_OTHER);
    MUST(request[0] == REQUEST_NULL && request[1] == 6);
    request[0] = send(5, 3);
    MUST(MPI_Wait(&request[0], STATUS_IGNORE) == ERR_OTHER);
    wait_error = 0;
    request[0] = send(5, 4);
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == 0);
}

/* What is done with an error leaves nothing that its handle's next request gets. */
START_TEST(failed_waits)
{
    run(call_failed);
    CALLS(JOULE_MPI_Isend, JOULE_WAITS_POST_SEND, JOULE_MPI_Isend,
          JOULE_WAITS_POST_SEND, JOULE_MPI_Isend, JOULE_WAITS_POST_SEND,
          JOULE_MPI_Isend, JOULE_WAITS_POST_SEND, JOULE_MPI_Waitall,
          JOULE_WAITS_SEND_DONE, JOULE_MPI_Waitall, JOULE_WAITS_SEND_DONE);
    ck_assert_int_eq(record[5].tag, 4);
    ck_assert_uint_eq(record[5].request, record[4].request);
    ck_assert_int_eq(record[6].tag, 2);
    ck_assert_uint_eq(logs.log[0].head.unknown, 0);
}
END_TEST

static void call_persistent(void)
{
    uint32_t request[2];

    next_request = PERSISTENT;
    for (int i = 0; i < 2; i++)
        MUST(MPI_Send_init(NULL, 1, INT, 0, 1, WORLD, &request[i]) == 0);
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == 0);
    MUST(MPI_Start(&request[1]) == 0);
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == 0);
    request[0] = 7; /* of which nothing is known */
    MUST(MPI_Wait(request, STATUS_IGNORE) == 0);
}

START_TEST(persistent)
{
    run(call_persistent);
    CALLS(JOULE_MPI_Send_init, JOULE_WAITS_CALL, JOULE_MPI_Send_init,
          JOULE_WAITS_CALL, JOULE_MPI_Waitall, JOULE_WAITS_CALL,
          JOULE_MPI_Start, JOULE_WAITS_POST_SEND, JOULE_MPI_Waitall,
          JOULE_WAITS_SEND_DONE, JOULE_MPI_Wait, JOULE_WAITS_CALL);
    ck_assert_uint_eq(logs.log[0].head.unknown, 1);
}
END_TEST

static void call_sendrecv(void)
{
    uint32_t request[2];

    /* Both were done at once. */
    for (int i = 0; i < 2; i++) {
        next_request = 9;
        MUST(MPI_Isendrecv(NULL, 2, INT, 0, 20 + i, NULL, 3, INT, 0, 30 + i,
                           WORLD, &request[i]) == 0);
    }
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == 0);
    MUST(MPI_Waitall(2, request, STATUS_IGNORE) == 0);
}

START_TEST(isendrecv)
{
    run(call_sendrecv);
    CALLS(JOULE_MPI_Isendrecv, JOULE_WAITS_POST_SEND, JOULE_MPI_Isendrecv,
          JOULE_WAITS_POST_RECEIVE, JOULE_MPI_Isendrecv, JOULE_WAITS_POST_SEND,
          JOULE_MPI_Isendrecv, JOULE_WAITS_POST_RECEIVE, JOULE_MPI_Waitall,
          JOULE_WAITS_SEND_DONE, JOULE_MPI_Waitall, JOULE_WAITS_RECEIVE_DONE,
          JOULE_MPI_Waitall, JOULE_WAITS_SEND_DONE, JOULE_MPI_Waitall,
          JOULE_WAITS_RECEIVE_DONE, JOULE_MPI_Waitall, JOULE_WAITS_CALL);
    ck_assert_int_eq(record[1].sent, 8);
    /* Its status, which the library leaves empty, says 0. */
    ck_assert_int_eq(record[6].tag, 30);
    ck_assert_int_eq(record[8].tag, 31);
    for (int i = 1; i <= 4; i++)
        ck_assert_uint_eq(record[i].request, record[i + 4].request);
    ck_assert_uint_eq(logs.log[0].head.unknown, 0);
}
END_TEST

static void call_persistent_collectives(void)
{
    uint32_t request[3];

    next_request = PERSISTENT;
    MUST(MPI_Barrier_init(WORLD, 0, &request[0]) == 0);
    MUST(MPIX_Barrier_init(WORLD, 0, &request[1]) == 0);
    MUST(MPI_Psend_init(NULL, 4, INT64_C(1) << 40, INT, 0, 1, WORLD, 0,
                        &request[2]) == 0);
    for (int i = 0; i < 3; i++)
        MUST(MPI_Start(&request[i]) == 0);
    MUST(MPI_Pready(0, request[2]) == 0);
    MUST(MPI_Waitall(3, request, STATUS_IGNORE) == 0);
}

START_TEST(persistent_collectives)
{
    run(call_persistent_collectives);
    CALLS(JOULE_MPI_Barrier_init, JOULE_WAITS_CALL, JOULE_MPI_Barrier_init,
          JOULE_WAITS_CALL, JOULE_MPI_Psend_init, JOULE_WAITS_CALL,
          JOULE_MPI_Start, JOULE_WAITS_POST_COLLECTIVE, JOULE_MPI_Start,
          JOULE_WAITS_POST_COLLECTIVE, JOULE_MPI_Start, JOULE_WAITS_CALL,
          JOULE_MPI_Pready, JOULE_WAITS_CALL, JOULE_MPI_Waitall,
          JOULE_WAITS_COLLECTIVE_DONE, JOULE_MPI_Waitall,
          JOULE_WAITS_COLLECTIVE_DONE);
    ck_assert_int_eq(record[9].tag, JOULE_MPI_Barrier_init);
    ck_assert_uint_eq(logs.log[0].head.unknown, 0);
}
END_TEST

static void call_large(void)
{
    int64_t counts[] = {INT64_C(1) << 40};
    uint32_t request;

    next_request = 3;
    MUST(MPI_Isend_c(NULL, INT64_C(1) << 29, INT, 0, 8, WORLD, &request) == 0);
    MUST(MPI_Wait(&request, STATUS_IGNORE) == 0);
    MUST(MPI_Reduce_scatter_c(NULL, NULL, counts, INT, 0, WORLD) == 0);
}

START_TEST(large_counts)
{
    run(call_large);
    CALLS(JOULE_MPI_Isend, JOULE_WAITS_POST_SEND, JOULE_MPI_Wait,
          JOULE_WAITS_SEND_DONE, JOULE_MPI_Reduce_scatter,
          JOULE_WAITS_COLLECTIVE);
    ck_assert_uint_eq(record[1].sent, UINT32_C(1) << 31);
    ck_assert_uint_eq(record[3].received, UINT32_MAX);
    ck_assert_uint_eq(logs.log[0].head.unknown, 0);
}
END_TEST

/* ---- Fortran ---- */

static void call_fortran(void)
{
    int64_t comm = WORLD, error = 0;

    mpi_barrier_(&comm, (int *)&error);
    MUST(error == 0);
    mpi_barrier_(&comm, NULL);
}

START_TEST(fortran)
{
    is_wide = false;
    run(call_fortran);
    CALLS(JOULE_MPI_Barrier, JOULE_WAITS_COLLECTIVE, JOULE_MPI_Barrier,
          JOULE_WAITS_COLLECTIVE);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(wide_integers)
{
    is_wide = true;
    run(call_fortran);
    is_wide = false;
    ck_assert_uint_eq(records, 2);
    ck_assert_ptr_nonnull(strstr(said, "INTEGER has 8 bytes"));
    ck_assert_ptr_eq(strchr(said, '\n'), strrchr(said, '\n'));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits calls");
    TCase *calls = tcase_create("calls");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(calls, setup, teardown);
    tcase_add_test(calls, absent);
    tcase_add_test(calls, left_region);
    tcase_add_test(calls, pcontrol);
    tcase_add_test(calls, pauses);
    tcase_add_test(calls, comm_self);
    tcase_add_test(calls, comms_of_two_threads);
    tcase_add_test(calls, failed_waits);
    tcase_add_test(calls, persistent);
    tcase_add_test(calls, isendrecv);
    tcase_add_test(calls, persistent_collectives);
    tcase_add_test(calls, large_counts);
    tcase_add_test(calls, fortran);
    tcase_add_test(calls, wide_integers);
    suite_add_tcase(suite, calls);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
