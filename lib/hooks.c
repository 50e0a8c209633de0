/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hooks.c - regions of programs that name them for another tool, without a change
 * of their source: libjoule_hooks.so, which is preloaded, or loaded by what the
 * program is annotated with.
 *
 * | of           | regions                                     | is loaded by             |
 * |--------------|---------------------------------------------|--------------------------|
 * | mpi          | "MPI" from MPI_Init to MPI_Finalize, and    | LD_PRELOAD               |
 * |              | MPI_Pcontrol: 1 or -1 with a name begins or |                          |
 * |              | ends it, without one "MPI_Pcontrol" goes    |                          |
 * |              | from 1 to 0                                 |                          |
 * | likwid       | markers                                     | LD_PRELOAD               |
 * | roctx        | ranges and marks                            | LD_PRELOAD               |
 * | kokkos       | profiling regions                           | KOKKOS_TOOLS_LIBS        |
 * | nvtx         | ranges and marks                            | NVTX_INJECTION64_PATH    |
 * | ompt         | omp_control_tool: start to pause or end     | LD_PRELOAD               |
 *
 * JOULE_REGIONS, a list of these, says which are wanted (default: all).  Each call
 * goes on to the function that it would have reached.  Nothing is allocated in a
 * begin or an end.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/joule.h"
#include "lib/preload.h"

#define HOOK __attribute__((visibility("default")))

/* ---- what all of them need ---- */

static const char *const hooks[] = {"mpi",    "likwid", "roctx",
                                    "kokkos", "nvtx",   "ompt"};

enum hook { MPI, LIKWID, ROCTX, KOKKOS, NVTX, OMPT };

static bool is_listed(const char *list, const char *hook)
{
    size_t length = strlen(hook);

    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, hook, length) == 0 &&
            (list[length] == ',' || list[length] == '\0'))
            return true;
    return false;
}

static bool is_wanted(enum hook hook)
{
    static atomic_uint wanted; /* a bit for each, and one more: it is known */
    unsigned bits = atomic_load_explicit(&wanted, memory_order_relaxed);

    if (!bits) {
        const char *list = secure_getenv("JOULE_REGIONS");

        bits = 1u << 31;
        for (unsigned i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
            if (!list || !*list || is_listed(list, hooks[i]) ||
                is_listed(list, "all"))
                bits |= 1u << i;
        atomic_store_explicit(&wanted, bits, memory_order_relaxed);
    }
    return bits >> hook & 1;
}

/* The function that a call of [name] would have reached; NULL: none.  It is looked
 * for once. */
static void *next(const char *name, _Atomic(void *) *known)
{
    static char none;
    void *found = atomic_load_explicit(known, memory_order_acquire);

    if (found)
        return found == &none ? NULL : found;
    found = joule_preload_find(name);
    atomic_store_explicit(known, found ? found : &none, memory_order_release);
    return found;
}

/* Set the pointer [variable] to it; what C has no word for, and dlsym(3) asks
 * for, is a function's address in a pointer to an object. */
#define NEXT(variable, name)                                                   \
    ({                                                                         \
        static _Atomic(void *) known;                                          \
                                                                               \
        *(void **)&(variable) = next(name, &known);                            \
        variable;                                                              \
    })

/* ---- MPI: both of them, C and Fortran ---- */

static atomic_bool in_mpi, in_pcontrol;

/* In a Fortran binding's MPI_Pcontrol.  Some of them call the C function, without a
 * name. */
static _Thread_local bool in_fortran;

/* Some Fortran bindings call the C function, others do not. */
static void begin_mpi(void)
{
    if (is_wanted(MPI) && !atomic_exchange(&in_mpi, true))
        joule_region_begin("MPI");
}

static void end_mpi(void)
{
    if (atomic_exchange(&in_mpi, false))
        joule_region_end("MPI");
}

static void switch_pcontrol(int level)
{
    if (level > 0 && !atomic_exchange(&in_pcontrol, true))
        joule_region_begin("MPI_Pcontrol");
    else if (level == 0 && atomic_exchange(&in_pcontrol, false))
        joule_region_end("MPI_Pcontrol");
}

static void control(int level, const void *name)
{
    char text[256];

    if (!is_wanted(MPI))
        return;
    if (!joule_preload_copy_text(name, text))
        switch_pcontrol(level);
    else if (level > 0)
        joule_region_begin(text);
    else if (level < 0)
        joule_region_end(text);
    else
        joule_mark(text);
}

#define MPI_FAILED 16 /* MPI_ERR_OTHER or the like: there is no MPI behind us */

HOOK int MPI_Init(int *argc, char ***argv);
HOOK int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
HOOK int MPI_Finalize(void);
HOOK int MPI_Pcontrol(const int level, ...);

int MPI_Init(int *argc, char ***argv)
{
    int (*f)(int *, char ***), rc = MPI_FAILED;

    if (NEXT(f, "MPI_Init") && (rc = f(argc, argv)) == 0)
        begin_mpi();
    return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*f)(int *, char ***, int, int *), rc = MPI_FAILED;

    if (NEXT(f, "MPI_Init_thread") &&
        (rc = f(argc, argv, required, provided)) == 0)
        begin_mpi();
    return rc;
}

int MPI_Finalize(void)
{
    int (*f)(void);

    end_mpi();
    return NEXT(f, "MPI_Finalize") ? f() : MPI_FAILED;
}

/* What follows the level is the tool's and the program's affair: here a name, or
 * nothing, of which a register may hold anything. */
int MPI_Pcontrol(const int level, ...)
{
    int (*f)(int, ...);
    va_list arguments;
    void *name;

    va_start(arguments, level);
    name = va_arg(arguments, void *);
    va_end(arguments);
    if (!in_fortran)
        control(level, name);
    return NEXT(f, "MPI_Pcontrol") ? f(level, name) : 0;
}

/* [ierr] is optional in the bindings of Fortran 2008. */
#define FORTRAN(suffix)                                                        \
    HOOK void mpi_init##suffix(int *ierr);                                     \
    HOOK void mpi_init_thread##suffix(int *required, int *provided,            \
                                      int *ierr);                              \
    HOOK void mpi_finalize##suffix(int *ierr);                                 \
    HOOK void mpi_pcontrol##suffix(int *level, int *error);                    \
                                                                               \
    void mpi_init##suffix(int *ierr)                                           \
    {                                                                          \
        void (*f)(int *);                                                      \
                                                                               \
        if (NEXT(f, "mpi_init" #suffix))                                       \
            f(ierr);                                                           \
        begin_mpi();                                                           \
    }                                                                          \
                                                                               \
    void mpi_init_thread##suffix(int *required, int *provided, int *ierr)      \
    {                                                                          \
        void (*f)(int *, int *, int *);                                        \
                                                                               \
        if (NEXT(f, "mpi_init_thread" #suffix))                                \
            f(required, provided, ierr);                                       \
        begin_mpi();                                                           \
    }                                                                          \
                                                                               \
    void mpi_finalize##suffix(int *ierr)                                       \
    {                                                                          \
        void (*f)(int *);                                                      \
                                                                               \
        end_mpi();                                                             \
        if (NEXT(f, "mpi_finalize" #suffix))                                   \
            f(ierr);                                                           \
    }                                                                          \
                                                                               \
    /* The one of mpi_f08 may have an error. */                                \
    void mpi_pcontrol##suffix(int *level, int *error)                          \
    {                                                                          \
        void (*f)(int *, int *);                                               \
                                                                               \
        control(*level, NULL);                                                 \
        in_fortran = true;                                                     \
        if (NEXT(f, "mpi_pcontrol" #suffix))                                   \
            f(level, error);                                                   \
        in_fortran = false;                                                    \
    }

FORTRAN(_)
FORTRAN(__)
FORTRAN(_f08_)

/* ---- LIKWID markers ---- */

HOOK int likwid_markerStartRegion(const char *name);
HOOK int likwid_markerStopRegion(const char *name);

int likwid_markerStartRegion(const char *name)
{
    int (*f)(const char *), rc = 0;

    if (NEXT(f, "likwid_markerStartRegion"))
        rc = f(name);
    if (is_wanted(LIKWID))
        joule_region_begin(name);
    return rc;
}

int likwid_markerStopRegion(const char *name)
{
    int (*f)(const char *);

    if (is_wanted(LIKWID))
        joule_region_end(name);
    return NEXT(f, "likwid_markerStopRegion") ? f(name) : 0;
}

/* ---- ranges that are ended by a number: ROCTX, NVTX ---- */

/* A range is a region of the thread that ends it, which for nearly all programs is
 * the one that has begun it; of more at a time than there is room for, names are
 * forgotten, and their ends are not counted. */
#define RANGES 256

static struct {
    _Atomic uint64_t number; /* 0: free */
    char name[256];
} ranges[RANGES];

static uint64_t start_range(const char *name, uint64_t number)
{
    static _Atomic uint64_t last;

    if (!number)
        number = atomic_fetch_add(&last, 1) + 1;
    if (name && atomic_load(&ranges[number % RANGES].number) == 0) {
        snprintf(ranges[number % RANGES].name, sizeof(ranges[0].name), "%s",
                 name);
        atomic_store(&ranges[number % RANGES].number, number);
        joule_region_begin(name);
    }
    return number;
}

static void stop_range(uint64_t number)
{
    if (number == 0 || atomic_load(&ranges[number % RANGES].number) != number)
        return;
    joule_region_end(ranges[number % RANGES].name);
    atomic_store(&ranges[number % RANGES].number, 0);
}

/* ---- ROCTX ---- */

HOOK void roctxMarkA(const char *text);
HOOK int roctxRangePushA(const char *text);
HOOK int roctxRangePop(void);
HOOK uint64_t roctxRangeStartA(const char *text);
HOOK void roctxRangeStop(uint64_t number);

static __thread int roctx_depth;

void roctxMarkA(const char *text)
{
    void (*f)(const char *);

    if (is_wanted(ROCTX))
        joule_mark(text);
    if (NEXT(f, "roctxMarkA"))
        f(text);
}

int roctxRangePushA(const char *text)
{
    int (*f)(const char *);

    if (is_wanted(ROCTX))
        joule_region_begin(text);
    roctx_depth++;
    return NEXT(f, "roctxRangePushA") ? f(text) : roctx_depth - 1;
}

int roctxRangePop(void)
{
    int (*f)(void);

    if (roctx_depth > 0) {
        roctx_depth--;
        if (is_wanted(ROCTX))
            joule_region_end(NULL);
    }
    return NEXT(f, "roctxRangePop") ? f() : roctx_depth;
}

uint64_t roctxRangeStartA(const char *text)
{
    uint64_t (*f)(const char *), number = 0;

    if (NEXT(f, "roctxRangeStartA"))
        number = f(text);
    return is_wanted(ROCTX) ? start_range(text, number) : number;
}

void roctxRangeStop(uint64_t number)
{
    void (*f)(uint64_t);

    if (is_wanted(ROCTX))
        stop_range(number);
    if (NEXT(f, "roctxRangeStop"))
        f(number);
}

/* ---- Kokkos ---- */

HOOK void kokkosp_init_library(int sequence, uint64_t version, uint32_t devices,
                               void *device);
HOOK void kokkosp_finalize_library(void);
HOOK void kokkosp_push_profile_region(const char *name);
HOOK void kokkosp_pop_profile_region(void);

void kokkosp_init_library(int sequence, uint64_t version, uint32_t devices,
                          void *device)
{
    (void)sequence;
    (void)version;
    (void)devices;
    (void)device;
}

void kokkosp_finalize_library(void)
{
}

void kokkosp_push_profile_region(const char *name)
{
    if (is_wanted(KOKKOS))
        joule_region_begin(name);
}

void kokkosp_pop_profile_region(void)
{
    if (is_wanted(KOKKOS))
        joule_region_end(NULL);
}

/* ---- NVTX, version 3: a table of functions to be filled in ---- */

/* Numbers and layouts of its interface to tools (nvtxTypes.h, 2022). */
enum {
    NVTX_CALLBACKS = 1,
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CORE2 = 5,
    NVTX_ASCII = 1,
    NVTX_REGISTERED = 3,
};

struct nvtx_callbacks {
    size_t size;
    int (*find)(int module, void (****ret_table)(void), unsigned *ret_size);
};

struct nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message; /* NVTX_REGISTERED: what register_string returned */
};

static __thread int nvtx_depth;

static const char *message_of(const struct nvtx_event *event)
{
    if (event && event->message &&
        (event->message_type == NVTX_ASCII ||
         event->message_type == NVTX_REGISTERED))
        return event->message;
    return "NVTX";
}

static void nvtx_mark_text(const char *text)
{
    joule_mark(text);
}

static void nvtx_mark(const struct nvtx_event *event)
{
    joule_mark(message_of(event));
}

static int nvtx_push_text(const char *text)
{
    joule_region_begin(text);
    return nvtx_depth++;
}

static int nvtx_push(const struct nvtx_event *event)
{
    return nvtx_push_text(message_of(event));
}

static int nvtx_pop(void)
{
    if (nvtx_depth == 0)
        return -1;
    joule_region_end(NULL);
    return --nvtx_depth;
}

static uint64_t nvtx_start_text(const char *text)
{
    return start_range(text, 0);
}

static uint64_t nvtx_start(const struct nvtx_event *event)
{
    return start_range(message_of(event), 0);
}

static void nvtx_end(uint64_t number)
{
    stop_range(number);
}

static void nvtx_domain_mark(void *domain, const struct nvtx_event *event)
{
    (void)domain;
    nvtx_mark(event);
}

static int nvtx_domain_push(void *domain, const struct nvtx_event *event)
{
    (void)domain;
    return nvtx_push(event);
}

static int nvtx_domain_pop(void *domain)
{
    (void)domain;
    return nvtx_pop();
}

static uint64_t nvtx_domain_start(void *domain, const struct nvtx_event *event)
{
    (void)domain;
    return nvtx_start(event);
}

static void nvtx_domain_end(void *domain, uint64_t number)
{
    (void)domain;
    nvtx_end(number);
}

/* Registered once for each place in the source; never freed. */
static void *nvtx_register_string(void *domain, const char *text)
{
    (void)domain;
    return text ? strdup(text) : NULL;
}

struct nvtx_function {
    int module;
    unsigned number;
    void (*function)(void);
};

#define F(module, number, function)                                            \
    {                                                                          \
        module, number, (void (*)(void))(function)                             \
    }

static const struct nvtx_function nvtx_functions[] = {
    F(NVTX_MODULE_CORE, 1, nvtx_mark),
    F(NVTX_MODULE_CORE, 2, nvtx_mark_text),
    F(NVTX_MODULE_CORE, 4, nvtx_start),
    F(NVTX_MODULE_CORE, 5, nvtx_start_text),
    F(NVTX_MODULE_CORE, 7, nvtx_end),
    F(NVTX_MODULE_CORE, 8, nvtx_push),
    F(NVTX_MODULE_CORE, 9, nvtx_push_text),
    F(NVTX_MODULE_CORE, 11, nvtx_pop),
    F(NVTX_MODULE_CORE2, 1, nvtx_domain_mark),
    F(NVTX_MODULE_CORE2, 2, nvtx_domain_start),
    F(NVTX_MODULE_CORE2, 3, nvtx_domain_end),
    F(NVTX_MODULE_CORE2, 4, nvtx_domain_push),
    F(NVTX_MODULE_CORE2, 5, nvtx_domain_pop),
    F(NVTX_MODULE_CORE2, 10, nvtx_register_string),
};

HOOK int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

/* Called once for each object of the program that has NVTX in it; 1: the table is
 * filled in. */
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    const struct nvtx_callbacks *callbacks =
        export_table ? export_table(NVTX_CALLBACKS) : NULL;

    if (!is_wanted(NVTX) || !callbacks ||
        callbacks->size < sizeof(*callbacks) || !callbacks->find)
        return 0;
    for (size_t i = 0; i < sizeof(nvtx_functions) / sizeof(nvtx_functions[0]);
         i++) {
        const struct nvtx_function *f = &nvtx_functions[i];
        void (***table)(void) = NULL;
        unsigned size = 0;

        if (callbacks->find(f->module, &table, &size) && table &&
            f->number < size && table[f->number])
            *table[f->number] = f->function;
    }
    return 1;
}

/* ---- OpenMP's interface to tools ---- */

/* Of omp-tools.h (OpenMP 5.0). */
enum {
    OMPT_CONTROL_TOOL = 11, /* the callback */
    OMP_START = 1,
    OMP_PAUSE = 2,
    OMP_END = 4,
};

typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);

struct ompt_result {
    int (*initialize)(ompt_lookup lookup, int device, void *data);
    void (*finalize)(void *data);
    uint64_t data;
};

static int omp_control(uint64_t command, uint64_t modifier, void *arg,
                       const void *code)
{
    char text[256];
    const char *name =
        joule_preload_copy_text(arg, text) ? text : "omp_control_tool";

    (void)modifier;
    (void)code;
    if (command == OMP_START)
        joule_region_begin(name);
    else if (command == OMP_PAUSE || command == OMP_END)
        joule_region_end(name);
    return 0;
}

static int initialize_omp(ompt_lookup lookup, int device, void *data)
{
    int (*set_callback)(int, void (*)(void)) =
        (int (*)(int, void (*)(void)))lookup("ompt_set_callback");

    (void)device;
    (void)data;
    if (set_callback)
        set_callback(OMPT_CONTROL_TOOL, (void (*)(void))omp_control);
    return set_callback != NULL;
}

static void finalize_omp(void *data)
{
    (void)data;
}

HOOK struct ompt_result *ompt_start_tool(unsigned version, const char *runtime);

/* Another tool that is there as well goes first. */
struct ompt_result *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct ompt_result result = {initialize_omp, finalize_omp, 0};
    struct ompt_result *(*f)(unsigned, const char *), *other = NULL;

    if (NEXT(f, "ompt_start_tool"))
        other = f(version, runtime);
    if (other)
        return other;
    return is_wanted(OMPT) ? &result : NULL;
}
