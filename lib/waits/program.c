/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program.c - begin and end of the recording, the regions of joule.h, and the
 * functions that call MPI.
 *
 * JOULE_WAITS_DIR names the directory of the logs; without it nothing is recorded.
 * With JOULE_WAITS_CALLER=1 each call has the name of the function it came from.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/joule.h"
#include "lib/preload.h"
#include "lib/waits/calls.h"
#include "lib/waits/clock_sync.h"
#include "lib/waits/comms.h"

#define MPI_THREAD_MULTIPLE 3

/* NULL: there is none. */
#define NEXT(variable, name)                                                   \
    ({                                                                         \
        static _Atomic(void *) known;                                          \
                                                                               \
        *(void **)&(variable) = joule_waits_next(name, &known);                \
        variable;                                                              \
    })

bool joule_waits_has_callers;

static struct {
    bool is_begun, is_ended;
    struct joule_clock_sync sync;
} self;

/* ---- begin ---- */

static uint32_t number_in(const char *name)
{
    const char *text = secure_getenv(name);

    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void set_name(char to[JOULE_WAITS_NAME], const char *from)
{
    snprintf(to, JOULE_WAITS_NAME, "%s", from ? from : "");
}

/* A name of a file's part: of a node that is called otherwise, its first letters. */
static void set_node(char node[JOULE_WAITS_NAME])
{
    const char *name = secure_getenv("SLURMD_NODENAME");

    if (name)
        set_name(node, name);
    else if (gethostname(node, JOULE_WAITS_NAME - 1) < 0)
        set_name(node, "node");
    node[strcspn(node, "/")] = '\0';
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* What the clocks showed at [begin_ns]. */
static void set_times(struct joule_waits_head *head, int64_t begin_ns)
{
    int64_t since_ns = joule_recorder_now_ns() - begin_ns;

    head->begin_ns = begin_ns;
    head->wall_ns = clock_ns(CLOCK_REALTIME) - since_ns;
    head->boot_ns = clock_ns(CLOCK_BOOTTIME) - since_ns;
}

static void say(const char *what)
{
    fprintf(stderr, "joule: the waits of this process are not recorded: %s\n",
            what);
}

/* The MPI library is there from here on. */
static void begin(uint8_t number, int64_t enter_ns, bool has_threads)
{
    struct joule_waits_head head = {
        .magic = JOULE_WAITS_MAGIC,
        .version = JOULE_WAITS_VERSION,
        .head_bytes = sizeof(head),
        .record_bytes = sizeof(struct joule_waits_record),
        .job = number_in("SLURM_JOB_ID"),
        .step = number_in("SLURM_STEP_ID"),
        .pid = (uint32_t)getpid(),
    };
    struct joule_waits_call call = {
        .enter_ns = enter_ns,
        .number = number,
    };
    int rank = 0, size = 1, level = 0;

    if (self.is_begun || !secure_getenv("JOULE_WAITS_DIR"))
        return;
    self.is_begun = true;
    if (joule_mpi_find() < 0) {
        say("its MPI library is not known");
        return;
    }
    if (joule_mpi_is_spawned())
        return;
    if (joule_mpi.query_thread(&level) == 0 && level == MPI_THREAD_MULTIPLE)
        has_threads = true;
    joule_mpi.comm_rank(joule_mpi.world, &rank);
    joule_mpi.comm_size(joule_mpi.world, &size);
    head.rank = (uint32_t)rank;
    head.size = (uint32_t)size;
    set_node(head.node);
    set_name(head.program, program_invocation_short_name);
    set_name(head.library, joule_mpi.version);
    set_times(&head, enter_ns);
    head.machine = joule_clock_sync_begin(&self.sync, rank, size);
    head.clock[0] = joule_clock_sync_measure(&self.sync);
    joule_waits_has_callers = number_in("JOULE_WAITS_CALLER") > 0;
    joule_requests_begin(has_threads);
    if (joule_recorder_start(&head) < 0) {
        say(strerror(errno));
        return;
    }
    if (joule_comms_start() < 0)
        return;
    call.thread = joule_recorder_enter();
    if (call.thread) {
        joule_waits_leave(&call);
        joule_waits_other(&call);
        joule_waits_end(&call);
    }
}

JOULE_WRAPPER int MPI_Init(int *argc, char ***argv);
JOULE_WRAPPER int MPI_Init_thread(int *argc, char ***argv, int required,
                                  int *provided);
JOULE_WRAPPER int MPI_Finalize(void);
JOULE_WRAPPER int MPI_Abort(uintptr_t comm, int error);
JOULE_WRAPPER int MPI_Pcontrol(const int level, ...);

int MPI_Init(int *argc, char ***argv)
{
    int64_t enter_ns = joule_recorder_now_ns();
    int (*next)(int *, char ***), rc;

    if (!NEXT(next, "MPI_Init"))
        return joule_waits_absent("MPI_Init");
    rc = next(argc, argv);
    if (rc == 0)
        begin(JOULE_MPI_Init, enter_ns, false);
    return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int64_t enter_ns = joule_recorder_now_ns();
    int (*next)(int *, char ***, int, int *), rc;

    if (!NEXT(next, "MPI_Init_thread"))
        return joule_waits_absent("MPI_Init_thread");
    rc = next(argc, argv, required, provided);
    if (rc == 0)
        begin(JOULE_MPI_Init_thread, enter_ns,
              *provided == MPI_THREAD_MULTIPLE);
    return rc;
}

/* ---- end ---- */

/* The clocks are compared before MPI is gone.  Nothing that MPI_Finalize calls is
 * recorded. */
static bool begin_end(struct joule_waits_call *call,
                      struct joule_waits_clock *clock)
{
    bool recorded =
        joule_waits_begin(call, JOULE_MPI_Finalize, false, false, NULL);

    /* All ranks, once: the others wait for one that does not record. */
    if (self.is_begun && !self.is_ended) {
        self.is_ended = true;
        *clock = joule_clock_sync_measure(&self.sync);
    }
    return recorded;
}

static void end(struct joule_waits_call *call,
                const struct joule_waits_clock *clock)
{
    joule_waits_leave(call);
    joule_waits_other(call);
    joule_waits_end(call);
    joule_recorder_stop(JOULE_WAITS_FINALIZED, clock);
}

int MPI_Finalize(void)
{
    struct joule_waits_clock clock = {0};
    struct joule_waits_call call;
    int (*next)(void), rc;
    bool recorded;

    if (!NEXT(next, "MPI_Finalize"))
        return joule_waits_absent("MPI_Finalize");
    recorded = begin_end(&call, &clock);
    rc = next();
    if (recorded)
        end(&call, &clock);
    return rc;
}

int MPI_Abort(uintptr_t comm, int error)
{
    int (*next)(uintptr_t, int);

    if (!NEXT(next, "MPI_Abort"))
        return joule_waits_absent("MPI_Abort");
    joule_recorder_abort();
    return next(comm, error);
}

/* ---- MPI_Pcontrol ---- */

/* Whatever is behind the level: most calls have nothing there, and what lies in its
 * place may look like the name of a region on one rank and not on another, which would
 * pause one of them alone. */
static void control(int level)
{
    if (level >= 0)
        joule_recorder_pause(level == 0);
}

/* What MPI does not define is passed on: as many words as registers have, so that none
 * is taken that the program may not have put there. */
int MPI_Pcontrol(const int level, ...)
{
    int (*next)(int, ...);
    va_list arguments;
    void *word[5];

    va_start(arguments, level);
    for (int i = 0; i < 5; i++)
        word[i] = va_arg(arguments, void *);
    va_end(arguments);
    control(level);
    if (!NEXT(next, "MPI_Pcontrol"))
        return joule_waits_absent("MPI_Pcontrol");
    return next(level, word[0], word[1], word[2], word[3], word[4]);
}

/* ---- regions ---- */

static void record_region(const char *name, uint8_t kind)
{
    struct joule_waits_thread *thread = joule_recorder_enter();
    struct joule_waits_record record = {.kind = kind};

    if (!thread)
        return;
    if (joule_recorder_pauses) {
        joule_recorder_leave(thread);
        return;
    }
    if (name)
        record.name = joule_recorder_name(name, strlen(name));
    record.enter_ns = record.leave_ns = joule_recorder_now_ns();
    *joule_recorder_add(thread) = record;
    joule_recorder_added(thread);
    if (kind == JOULE_WAITS_REGION_END)
        thread->regions -= thread->regions > 0;
    else if (thread->regions < JOULE_WAITS_REGIONS)
        thread->regions++;
    joule_recorder_leave(thread);
}

/* The library's own, if the program has it. */
#define NEXT_REGION(name)                                                      \
    ({                                                                         \
        static _Atomic(void *) known;                                          \
        void *found = atomic_load_explicit(&known, memory_order_acquire);      \
                                                                               \
        if (!found) {                                                          \
            found = joule_preload_find(name);                                  \
            found = found ? found : (void *)&none;                             \
            atomic_store_explicit(&known, found, memory_order_release);        \
        }                                                                      \
        found == (void *)&none ? NULL : found;                                 \
    })

static char none;

JOULE_WRAPPER void joule_region_begin(const char *name)
{
    void (*next)(const char *);

    *(void **)&next = NEXT_REGION("joule_region_begin");
    if (next)
        next(name);
    if (name)
        record_region(name, JOULE_WAITS_REGION_BEGIN);
}

JOULE_WRAPPER void joule_region_end(const char *name)
{
    void (*next)(const char *);

    record_region(name, JOULE_WAITS_REGION_END);
    *(void **)&next = NEXT_REGION("joule_region_end");
    if (next)
        next(name);
}

/* ---- callers ---- */

uint16_t joule_waits_caller(const void *address)
{
    struct joule_caller *known;
    char text[JOULE_WAITS_TEXT];
    Dl_info info;

    known = joule_recorder_caller(address);
    if (known->address == address)
        return known->name;
    if (dladdr(address, &info) == 0)
        snprintf(text, sizeof(text), "%p", address);
    else if (info.dli_sname)
        snprintf(text, sizeof(text), "%s", info.dli_sname);
    else
        snprintf(text, sizeof(text), "%s+0x%zx", info.dli_fname,
                 (size_t)((const char *)address - (char *)info.dli_fbase));
    known->name = joule_recorder_name(text, strlen(text));
    known->address = address;
    return known->name;
}

/* ---- Fortran ---- */

/* Where its INTEGER has 8 bytes, an int is the first half: of a machine whose bytes
 * are in the order of x86. */

#define FORTRAN(suffix)                                                        \
    JOULE_WRAPPER void mpi_init##suffix(int *error);                           \
    JOULE_WRAPPER void mpi_init_thread##suffix(int *required, int *provided,   \
                                               int *error);                    \
    JOULE_WRAPPER void mpi_finalize##suffix(int *error);                       \
    JOULE_WRAPPER void mpi_abort##suffix(int *comm, int *code, int *error);    \
    JOULE_WRAPPER void mpi_pcontrol##suffix(int *level, int *error);           \
                                                                               \
    void mpi_init##suffix(int *error)                                          \
    {                                                                          \
        int64_t enter_ns = joule_recorder_now_ns();                            \
        void (*next)(int *);                                                   \
        int own[2] = {0};                                                      \
                                                                               \
        error = error ? error : own;                                           \
        if (!NEXT(next, "mpi_init" #suffix)) {                                 \
            *error = joule_waits_absent("mpi_init" #suffix);                   \
            return;                                                            \
        }                                                                      \
        next(error);                                                           \
        if (*error == 0)                                                       \
            begin(JOULE_MPI_Init, enter_ns, false);                            \
    }                                                                          \
                                                                               \
    void mpi_init_thread##suffix(int *required, int *provided, int *error)     \
    {                                                                          \
        int64_t enter_ns = joule_recorder_now_ns();                            \
        void (*next)(int *, int *, int *);                                     \
        int own[2] = {0};                                                      \
                                                                               \
        error = error ? error : own;                                           \
        if (!NEXT(next, "mpi_init_thread" #suffix)) {                          \
            *error = joule_waits_absent("mpi_init_thread" #suffix);            \
            return;                                                            \
        }                                                                      \
        next(required, provided, error);                                       \
        if (*error == 0)                                                       \
            begin(JOULE_MPI_Init_thread, enter_ns,                             \
                  *provided == MPI_THREAD_MULTIPLE);                           \
    }                                                                          \
                                                                               \
    void mpi_finalize##suffix(int *error)                                      \
    {                                                                          \
        struct joule_waits_clock clock = {0};                                  \
        struct joule_waits_call call;                                          \
        void (*next)(int *);                                                   \
        bool recorded;                                                         \
        int own[2] = {0};                                                      \
                                                                               \
        error = error ? error : own;                                           \
        if (!NEXT(next, "mpi_finalize" #suffix)) {                             \
            *error = joule_waits_absent("mpi_finalize" #suffix);               \
            return;                                                            \
        }                                                                      \
        recorded = begin_end(&call, &clock);                                   \
        next(error);                                                           \
        if (recorded)                                                          \
            end(&call, &clock);                                                \
    }                                                                          \
                                                                               \
    void mpi_abort##suffix(int *comm, int *code, int *error)                   \
    {                                                                          \
        void (*next)(int *, int *, int *);                                     \
        int own[2] = {0};                                                      \
                                                                               \
        error = error ? error : own;                                           \
        if (!NEXT(next, "mpi_abort" #suffix)) {                                \
            *error = joule_waits_absent("mpi_abort" #suffix);                  \
            return;                                                            \
        }                                                                      \
        joule_recorder_abort();                                                \
        next(comm, code, error);                                               \
    }                                                                          \
                                                                               \
    /* The one of mpi_f08 may have an error. */                                \
    void mpi_pcontrol##suffix(int *level, int *error)                          \
    {                                                                          \
        void (*next)(int *, int *);                                            \
                                                                               \
        control(*level);                                                       \
        if (NEXT(next, "mpi_pcontrol" #suffix))                                \
            next(level, error);                                                \
        else                                                                   \
            joule_waits_absent("mpi_pcontrol" #suffix);                        \
    }

FORTRAN(_)
FORTRAN(_f08_)
