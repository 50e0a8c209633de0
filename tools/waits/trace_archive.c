/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_archive.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "tools/waits/recorded_log.h"

#ifdef HAVE_OTF2

#include <otf2/otf2.h>

#include "lib/waits/mpi_calls.h"
#include "tools/waits/trace_definitions.h"
#include "tools/waits/trace_libotf2.h"

#define EVENT_CHUNK      (1024 * 1024)
#define DEFINITION_CHUNK (4 * 1024 * 1024)

/* So many ranks may be missing, or as many as have left a log: what there is of them is
 * files. */
#define MISSING_MAX 4096
/* Ranks, and their further threads: each has two files. */
#define LOCATIONS_MAX (1u << 18)
#define TIME_MAX_NS   (INT64_C(1) << 60) /* that of recorded_log.c */

enum joule_mpi_call {
    JOULE_WAITS_ALL_CALLS(JOULE_WAITS_NUMBER) JOULE_MPI_COUNT
};

#define NAME(name, what) "MPI_" #name,
static const char *const call_names[] = {JOULE_WAITS_ALL_CALLS(NAME)};

/* What a collective call is for OTF2; those that are not in the list are calls alone.
 */
static const struct operation {
    const char *name;
    OTF2_CollectiveOp op;
    OTF2_RegionRole role;
} operations[] = {
    {"Barrier", OTF2_COLLECTIVE_OP_BARRIER, OTF2_REGION_ROLE_BARRIER},
    {"Bcast", OTF2_COLLECTIVE_OP_BCAST, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"Gather", OTF2_COLLECTIVE_OP_GATHER, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"Gatherv", OTF2_COLLECTIVE_OP_GATHERV, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"Scatter", OTF2_COLLECTIVE_OP_SCATTER, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"Scatterv", OTF2_COLLECTIVE_OP_SCATTERV, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"Allgather", OTF2_COLLECTIVE_OP_ALLGATHER, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Allgatherv", OTF2_COLLECTIVE_OP_ALLGATHERV,
     OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Alltoall", OTF2_COLLECTIVE_OP_ALLTOALL, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Alltoallw", OTF2_COLLECTIVE_OP_ALLTOALLW, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Reduce", OTF2_COLLECTIVE_OP_REDUCE, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Reduce_scatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER,
     OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Reduce_scatter_block", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK,
     OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"Scan", OTF2_COLLECTIVE_OP_SCAN, OTF2_REGION_ROLE_COLL_OTHER},
    {"Exscan", OTF2_COLLECTIVE_OP_EXSCAN, OTF2_REGION_ROLE_COLL_OTHER},
};

/* Of a communicator: its processes, by their ranks in it. */
struct group {
    uint64_t id;
    uint32_t size, known;
    uint32_t claims;  /* of logs, to have a rank in it */
    uint64_t *member; /* ranks in MPI_COMM_WORLD, or UNKNOWN; NULL: left out */
};

#define UNKNOWN UINT64_MAX

/* What a process calls by numbers of its own, in the archive's. */
struct translation {
    uint32_t *comm, *name;
};

struct archive {
    const struct joule_recorded_logs *logs;
    struct joule_archive_facts *facts;
    struct joule_error *err;
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *global;
    uint32_t strings;
    struct group *group;
    uint32_t groups;
    const char **name; /* of regions and callers, each once, sorted */
    uint32_t names;
    uint64_t *location; /* of each log: that of its second thread */
    uint32_t *missing;  /* the ranks that have left no log */
    uint32_t missings;
    void (*tick)(void);
    int64_t begin_ns, end_ns; /* on the clock of rank 0 */
};

static int check(struct archive *a, OTF2_ErrorCode code)
{
    return joule_otf2_check(code, a->err);
}

static int no_memory(struct archive *a)
{
    return joule_error_set(a->err, ENOMEM, "out of memory");
}

static void go_on(const struct archive *a)
{
    if (a->tick)
        a->tick();
}

/* ---- clocks ---- */

/* The rank whose clocks are those of the machine: the first of it that has played
 * ping-pong; NULL: it is the machine of rank 0. */
static const struct joule_waits_head *
find_leader(const struct joule_recorded_logs *logs,
            const struct joule_waits_head *head)
{
    for (size_t i = 0; i < logs->logs; i++)
        if (logs->log[i].head.machine == head->machine &&
            logs->log[i].head.clock[0].round_trip_ns > 0)
            return &logs->log[i].head;
    return NULL;
}

static int64_t bounded(double ns)
{
    if (ns >= (double)TIME_MAX_NS)
        return TIME_MAX_NS;
    return ns > (double)-TIME_MAX_NS ? (int64_t)ns : -TIME_MAX_NS;
}

/* A line through both offsets; with one of them, a constant. */
static int64_t to_rank_0(const struct joule_waits_head *leader, int64_t ns)
{
    const struct joule_waits_clock *c;
    double slope;

    if (ns > TIME_MAX_NS)
        ns = TIME_MAX_NS;
    if (ns < -TIME_MAX_NS)
        ns = -TIME_MAX_NS;
    if (!leader)
        return ns;
    c = leader->clock;
    if (c[1].round_trip_ns == 0 || c[1].at_ns <= c[0].at_ns)
        return ns + c[0].offset_ns;
    slope = (double)(c[1].offset_ns - c[0].offset_ns) /
            (double)(c[1].at_ns - c[0].at_ns);
    return ns + c[0].offset_ns + bounded(slope * (double)(ns - c[0].at_ns));
}

static void find_times(struct archive *a)
{
    a->begin_ns = INT64_MAX;
    a->end_ns = INT64_MIN;
    for (size_t i = 0; i < a->logs->logs; i++) {
        const struct joule_recorded_log *l = &a->logs->log[i];
        const struct joule_waits_head *leader = find_leader(a->logs, &l->head);
        int64_t begin_ns = to_rank_0(leader, l->head.begin_ns);
        int64_t end_ns = to_rank_0(leader, l->end_ns);

        if (!leader && l->head.machine != a->logs->log[0].head.machine)
            a->facts->not_compared++;
        if (begin_ns < a->begin_ns)
            a->begin_ns = begin_ns;
        if (end_ns > a->end_ns)
            a->end_ns = end_ns;
        for (int k = 0; leader && k < 2; k++)
            if (leader->clock[k].round_trip_ns / 2 > a->facts->clock_ns)
                a->facts->clock_ns = leader->clock[k].round_trip_ns / 2;
    }
}

/* ---- what is told of all processes ---- */

static struct group *find_group(struct archive *a, uint64_t id)
{
    uint32_t low = 0, high = a->groups;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (a->group[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->groups && a->group[low].id == id ? &a->group[low] : NULL;
}

static int compare_groups(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size;
}

static bool makes_sense(const struct joule_recorded_logs *logs,
                        const struct joule_waits_comm *c)
{
    return c->size > 0 && (uint32_t)c->size <= logs->size && c->rank >= 0 &&
           c->rank < c->size;
}

/* Each communicator once, sorted by its id. */
static int list_groups(struct archive *a)
{
    size_t all = 0, n = 0;

    for (size_t i = 0; i < a->logs->logs; i++)
        all += a->logs->log[i].comms;
    if (all >= UINT32_MAX)
        return no_memory(a);
    a->group = calloc(all + 1, sizeof(*a->group));
    if (!a->group)
        return no_memory(a);
    for (size_t i = 0; i < a->logs->logs; i++)
        for (size_t k = 0; k < a->logs->log[i].comms; k++) {
            const struct joule_waits_comm *c = &a->logs->log[i].comm[k];

            if (makes_sense(a->logs, c))
                a->group[n++] =
                    (struct group){.id = c->id, .size = (uint32_t)c->size};
        }
    qsort(a->group, n, sizeof(*a->group), compare_groups);
    for (size_t i = 0; i < n; i++) {
        if (a->groups == 0 || a->group[a->groups - 1].id != a->group[i].id)
            a->group[a->groups++] = a->group[i];
        a->group[a->groups - 1].claims++;
    }
    return 0;
}

static bool is_world(const struct archive *a, const struct group *g)
{
    const struct joule_recorded_log *first = &a->logs->log[0];

    return g->size == a->logs->size && first->comms > 0 &&
           g->id == first->comm[0].id;
}

static int list_missing(struct archive *a)
{
    size_t i = 0;

    a->missings = a->logs->size - (uint32_t)a->logs->logs;
    a->missing = malloc(((size_t)a->missings + 1) * sizeof(*a->missing));
    if (!a->missing)
        return no_memory(a);
    a->missings = 0;
    for (uint32_t r = 0; r < a->logs->size; r++)
        if (i < a->logs->logs && a->logs->log[i].head.rank == r)
            i++;
        else
            a->missing[a->missings++] = r;
    return 0;
}

/* Ranks that may be in a communicator without their log telling so. */
struct doubtful {
    uint32_t *rank, count;
    uint32_t *seen_in; /* of each rank: the last group it was seen in, and 1 */
};

static int list_doubtful(const struct archive *a, struct doubtful *ret)
{
    ret->rank = malloc(a->logs->size * sizeof(*ret->rank));
    ret->seen_in = calloc(a->logs->size, sizeof(*ret->seen_in));
    if (!ret->rank || !ret->seen_in)
        return -1;
    memcpy(ret->rank, a->missing, a->missings * sizeof(*ret->rank));
    ret->count = a->missings;
    for (size_t i = 0; i < a->logs->logs; i++)
        if (a->logs->log[i].head.state == JOULE_WAITS_RUNS ||
            a->logs->log[i].head.error || a->logs->log[i].is_damaged)
            ret->rank[ret->count++] = a->logs->log[i].head.rank;
    return 0;
}

/* The one that must be in the group beside those that are; UNKNOWN: there is none, or
 * several. */
static uint64_t find_last(struct doubtful *d, const struct group *g,
                          uint32_t number)
{
    uint64_t found = UNKNOWN;

    for (uint32_t r = 0; r < g->size; r++)
        if (g->member[r] != UNKNOWN)
            d->seen_in[g->member[r]] = number + 1;
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->seen_in[d->rank[i]] == number + 1)
            continue;
        if (found != UNKNOWN)
            return UNKNOWN;
        found = d->rank[i];
    }
    return found;
}

/* In MPI_COMM_WORLD all have their own ranks.  Elsewhere a place is known where one is
 * free and one rank can be there. */
static void place_missing(const struct archive *a, struct group *g,
                          struct doubtful *d)
{
    uint32_t at = 0;

    if (is_world(a, g)) {
        for (uint32_t r = 0; r < g->size; r++)
            g->member[r] = r;
        g->known = g->size;
    }
    if (g->known + 1 != g->size)
        return;
    while (g->member[at] != UNKNOWN)
        at++;
    g->member[at] = find_last(d, g, (uint32_t)(g - a->group));
    g->known += g->member[at] != UNKNOWN;
}

/* A group that lacks more than one cannot be known. */
static int make_room(struct archive *a, struct group *g)
{
    if (g->claims + 1 < g->size && !is_world(a, g))
        return 0;
    g->member = malloc(g->size * sizeof(*g->member));
    if (!g->member)
        return no_memory(a);
    for (uint32_t r = 0; r < g->size; r++)
        g->member[r] = UNKNOWN;
    return 0;
}

static void claim(struct archive *a, const struct joule_recorded_log *l,
                  const struct joule_waits_comm *c)
{
    struct group *g = find_group(a, c->id);

    if (!g || !g->member || !makes_sense(a->logs, c) ||
        (uint32_t)c->size != g->size || g->member[c->rank] != UNKNOWN)
        return;
    g->member[c->rank] = l->head.rank;
    g->known++;
}

/* Who is in it.  One of which a process is not known is left out. */
static int fill_groups(struct archive *a)
{
    struct doubtful d = {0};
    int rc = list_doubtful(a, &d) < 0 ? no_memory(a) : 0;

    for (uint32_t g = 0; rc == 0 && g < a->groups; g++)
        rc = make_room(a, &a->group[g]);
    for (size_t i = 0; rc == 0 && i < a->logs->logs; i++)
        for (size_t k = 0; k < a->logs->log[i].comms; k++)
            claim(a, &a->logs->log[i], &a->logs->log[i].comm[k]);
    for (uint32_t g = 0; rc == 0 && g < a->groups; g++) {
        if (a->group[g].member)
            place_missing(a, &a->group[g], &d);
        a->facts->unplaced += a->group[g].known < a->group[g].size;
    }
    free(d.rank);
    free(d.seen_in);
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t find_name(const struct archive *a, const char *text)
{
    const char **at =
        bsearch(&text, a->name, a->names, sizeof(*a->name), compare_names);

    return (uint32_t)(at - a->name);
}

static int list_names(struct archive *a)
{
    size_t all = 0, n = 0;

    for (size_t i = 0; i < a->logs->logs; i++)
        all += a->logs->log[i].names;
    if (all >= UINT32_MAX / 2)
        return no_memory(a);
    a->name = calloc(all + 1, sizeof(*a->name));
    if (!a->name)
        return no_memory(a);
    for (size_t i = 0; i < a->logs->logs; i++)
        for (size_t k = 0; k < a->logs->log[i].names; k++)
            a->name[n++] = a->logs->log[i].name[k].text;
    qsort(a->name, n, sizeof(*a->name), compare_names);
    for (size_t i = 0; i < n; i++)
        if (a->names == 0 || strcmp(a->name[a->names - 1], a->name[i]) != 0)
            a->name[a->names++] = a->name[i];
    return 0;
}

static uint32_t threads_of(const struct archive *a, size_t log)
{
    return a->logs->log[log].threads ? a->logs->log[log].threads : 1;
}

/* A rank's first thread has the rank's number; others come behind all ranks. */
static int list_locations(struct archive *a)
{
    uint64_t all = a->logs->size;

    a->location = calloc(a->logs->logs, sizeof(*a->location));
    if (!a->location)
        return no_memory(a);
    for (size_t i = 0; i < a->logs->logs; i++) {
        a->location[i] = all;
        all += threads_of(a, i) - 1;
    }
    if (a->missings > MISSING_MAX && a->missings > a->logs->logs)
        return joule_error_set(a->err, EINVAL,
                               "%u of %u ranks have left no log that can be "
                               "read: do all nodes see the directory?",
                               a->missings, a->logs->size);
    if (all > LOCATIONS_MAX)
        return joule_error_set(a->err, EINVAL,
                               "the logs are of %llu threads, more than %u",
                               (unsigned long long)all, LOCATIONS_MAX);
    return 0;
}

static uint64_t location_of(const struct archive *a, size_t log,
                            uint32_t thread)
{
    return thread > 0 ? a->location[log] + thread - 1
                      : a->logs->log[log].head.rank;
}

/* ---- definitions ---- */

/* -1: it cannot be written. */
static int64_t put_string(struct archive *a, const char *text)
{
    if (check(a, OTF2_GlobalDefWriter_WriteString(a->global, a->strings,
                                                  text)) < 0)
        return -1;
    return a->strings++;
}

/* "Ibcast" and "Bcast_init" are the operation of "Bcast". */
static const struct operation *find_operation(uint8_t call)
{
    const char *name = call_names[call] + strlen("MPI_");

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        const char *known = operations[i].name;
        size_t length = strlen(known);

        if (strcmp(name, known) == 0 ||
            (strncmp(name, known, length) == 0 &&
             strcmp(name + length, "_init") == 0) ||
            (name[0] == 'I' && (name[1] & ~0x20) == known[0] &&
             strcmp(name + 2, known + 1) == 0))
            return &operations[i];
    }
    return NULL;
}

static OTF2_RegionRole role_of(uint8_t call)
{
    const struct operation *o = find_operation(call);

    if (o)
        return o->role;
    return call <= JOULE_MPI_Request_free ? OTF2_REGION_ROLE_POINT2POINT
                                          : OTF2_REGION_ROLE_FUNCTION;
}

static int put_region(struct archive *a, uint32_t number, const char *name,
                      OTF2_RegionRole role, OTF2_Paradigm paradigm)
{
    int64_t string = put_string(a, name);

    if (string < 0)
        return -1;
    return check(a, OTF2_GlobalDefWriter_WriteRegion(
                        a->global, number, (OTF2_StringRef)string,
                        (OTF2_StringRef)string, 0, role, paradigm,
                        OTF2_REGION_FLAG_NONE, 0, 0, 0));
}

/* The calls of MPI, then the names. */
static int put_regions(struct archive *a)
{
    for (uint32_t i = 0; i < JOULE_MPI_COUNT; i++)
        if (put_region(a, i, call_names[i], role_of((uint8_t)i),
                       OTF2_PARADIGM_MPI) < 0)
            return -1;
    for (uint32_t i = 0; i < a->names; i++)
        if (put_region(a, JOULE_MPI_COUNT + i, a->name[i],
                       OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER) < 0)
            return -1;
    return 0;
}

/* The node of a log, by the first log that has it; 0 is above all nodes. */
static uint32_t node_of(const struct archive *a, size_t log)
{
    size_t i = 0;

    while (strcmp(a->logs->log[i].head.node, a->logs->log[log].head.node) != 0)
        i++;
    return (uint32_t)i + 1;
}

static int put_system(struct archive *a)
{
    int64_t machine = put_string(a, "machine"), node = put_string(a, "node");
    int64_t name = put_string(a, a->logs->log[0].head.program);

    if (machine < 0 || node < 0 || name < 0 ||
        check(a,
              OTF2_GlobalDefWriter_WriteSystemTreeNode(
                  a->global, 0, (OTF2_StringRef)name, (OTF2_StringRef)machine,
                  OTF2_UNDEFINED_SYSTEM_TREE_NODE)) < 0)
        return -1;
    for (size_t i = 0; i < a->logs->logs; i++) {
        if (node_of(a, i) != i + 1)
            continue;
        name = put_string(a, a->logs->log[i].head.node);
        if (name < 0 ||
            check(a, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                         a->global, (uint32_t)i + 1, (OTF2_StringRef)name,
                         (OTF2_StringRef)node, 0)) < 0)
            return -1;
    }
    return 0;
}

static int put_rank(struct archive *a, uint32_t rank, uint32_t node)
{
    char text[32];
    int64_t name;

    snprintf(text, sizeof(text), "rank %u", rank);
    name = put_string(a, text);
    if (name < 0)
        return -1;
    return check(a, OTF2_GlobalDefWriter_WriteLocationGroup(
                        a->global, rank, (OTF2_StringRef)name,
                        OTF2_LOCATION_GROUP_TYPE_PROCESS, node,
                        OTF2_UNDEFINED_LOCATION_GROUP));
}

static int put_location(struct archive *a, uint64_t location, uint32_t rank,
                        uint32_t thread, uint64_t events)
{
    char text[32];
    int64_t name;

    snprintf(text, sizeof(text), "thread %u", thread);
    name = put_string(a, text);
    if (name < 0)
        return -1;
    return check(a, OTF2_GlobalDefWriter_WriteLocation(
                        a->global, location, (OTF2_StringRef)name,
                        OTF2_LOCATION_TYPE_CPU_THREAD, events, rank));
}

static int put_process(struct archive *a, size_t log, const uint64_t *events)
{
    uint32_t rank = a->logs->log[log].head.rank;

    if (put_rank(a, rank, node_of(a, log)) < 0)
        return -1;
    for (uint32_t t = 0; t < threads_of(a, log); t++)
        if (put_location(a, location_of(a, log, t), rank, t, events[t]) < 0)
            return -1;
    return 0;
}

/* Ranks without a log have no events. */
static int put_missing(struct archive *a)
{
    for (uint32_t i = 0; i < a->missings; i++) {
        uint32_t rank = a->missing[i];

        if (put_rank(a, rank, 0) < 0 || put_location(a, rank, rank, 0, 0) < 0)
            return -1;
    }
    return 0;
}

static int put_no_events(struct archive *a, uint64_t location)
{
    OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(a->archive, location);

    go_on(a);
    return check(a, w ? OTF2_Archive_CloseEvtWriter(a->archive, w)
                      : OTF2_ERROR_INVALID);
}

static int put_no_definitions(struct archive *a, uint64_t location)
{
    OTF2_DefWriter *w = OTF2_Archive_GetDefWriter(a->archive, location);

    go_on(a);
    return check(a, w ? OTF2_Archive_CloseDefWriter(a->archive, w)
                      : OTF2_ERROR_INVALID);
}

/* The processes that call MPI; then those of each communicator, by their places in
 * that list. */
static int put_groups(struct archive *a)
{
    int64_t none = put_string(a, ""), world;
    uint64_t *location = calloc(a->logs->size, sizeof(*location));
    int rc = location && none >= 0 ? 0 : -1;

    for (uint32_t r = 0; location && r < a->logs->size; r++)
        location[r] = r;
    if (rc == 0)
        rc = check(a, OTF2_GlobalDefWriter_WriteGroup(
                          a->global, 0, (OTF2_StringRef)none,
                          OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                          OTF2_GROUP_FLAG_NONE, a->logs->size, location));
    free(location);
    for (uint32_t g = 0; rc == 0 && g < a->groups; g++) {
        const struct group *group = &a->group[g];

        if (group->known < group->size)
            continue;
        world = is_world(a, group) ? put_string(a, "MPI_COMM_WORLD") : none;
        if (world < 0 ||
            check(a, OTF2_GlobalDefWriter_WriteGroup(
                         a->global, g + 1, (OTF2_StringRef)none,
                         OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                         OTF2_GROUP_FLAG_NONE, group->size, group->member)) <
                0 ||
            check(a, OTF2_GlobalDefWriter_WriteComm(
                         a->global, g, (OTF2_StringRef)world, g + 1,
                         OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE)) < 0)
            rc = -1;
    }
    return rc;
}

/* ---- events ---- */

/* A thread whose events are written. */
struct events {
    struct archive *a;
    const struct joule_recorded_log *log;
    const struct joule_waits_head *leader;
    const struct translation *names;
    OTF2_EvtWriter *writer;
    struct joule_waits_record open; /* the call whose records come */
    bool is_open;
    int64_t last_ns; /* nothing is earlier from here on */
    uint32_t region[JOULE_WAITS_REGIONS], depth; /* that are open */
};

/* On the clock of rank 0, and never back. */
static OTF2_TimeStamp stamp(struct events *e, int64_t ns)
{
    ns = to_rank_0(e->leader, ns) - e->a->begin_ns;
    if (ns > e->last_ns)
        e->last_ns = ns;
    return (OTF2_TimeStamp)e->last_ns;
}

static uint32_t comm_of(const struct events *e,
                        const struct joule_waits_record *r)
{
    return r->comm < e->log->comms ? e->names->comm[r->comm] : UINT32_MAX;
}

static uint32_t name_of(const struct events *e, uint16_t name)
{
    return name > 0 && name <= e->log->names ? e->names->name[name - 1]
                                             : UINT32_MAX;
}

static OTF2_ErrorCode enter(struct events *e, int64_t ns, uint32_t region)
{
    return OTF2_EvtWriter_Enter(e->writer, NULL, stamp(e, ns), region);
}

static OTF2_ErrorCode leave(struct events *e, int64_t ns, uint32_t region)
{
    return OTF2_EvtWriter_Leave(e->writer, NULL, stamp(e, ns), region);
}

static OTF2_ErrorCode begin_call(struct events *e,
                                 const struct joule_waits_record *r)
{
    uint32_t caller = name_of(e, r->name);
    OTF2_ErrorCode code = OTF2_SUCCESS;

    e->open = *r;
    e->is_open = true;
    e->a->facts->calls++;
    if (caller != UINT32_MAX)
        code = enter(e, r->enter_ns, JOULE_MPI_COUNT + caller);
    return code == OTF2_SUCCESS ? enter(e, r->enter_ns, r->call) : code;
}

static OTF2_ErrorCode end_call(struct events *e)
{
    uint32_t caller = name_of(e, e->open.name);
    OTF2_ErrorCode code = OTF2_SUCCESS;

    if (!e->is_open)
        return code;
    e->is_open = false;
    code = leave(e, e->open.leave_ns, e->open.call);
    if (code == OTF2_SUCCESS && caller != UINT32_MAX)
        code = leave(e, e->open.leave_ns, JOULE_MPI_COUNT + caller);
    return code;
}

static OTF2_ErrorCode put_message(struct events *e,
                                  const struct joule_waits_record *r)
{
    OTF2_EvtWriter *w = e->writer;
    uint32_t comm = comm_of(e, r), peer = (uint32_t)r->peer,
             tag = (uint32_t)r->tag;

    switch (r->kind) {
    case JOULE_WAITS_SEND:
        return OTF2_EvtWriter_MpiSend(w, NULL, stamp(e, r->enter_ns), peer,
                                      comm, tag, r->sent);
    case JOULE_WAITS_POST_SEND:
        return OTF2_EvtWriter_MpiIsend(w, NULL, stamp(e, r->enter_ns), peer,
                                       comm, tag, r->sent, r->request);
    case JOULE_WAITS_RECEIVE:
        return OTF2_EvtWriter_MpiRecv(w, NULL, stamp(e, r->leave_ns), peer,
                                      comm, tag, r->received);
    default:
        return OTF2_EvtWriter_MpiIrecv(w, NULL, stamp(e, r->leave_ns), peer,
                                       comm, tag, r->received, r->request);
    }
}

static OTF2_ErrorCode put_collective(struct events *e,
                                     const struct joule_waits_record *r)
{
    uint8_t call =
        r->kind == JOULE_WAITS_COLLECTIVE_DONE ? (uint8_t)r->tag : r->call;
    const struct operation *o =
        call < JOULE_MPI_COUNT ? find_operation(call) : NULL;
    uint32_t root = r->peer == JOULE_WAITS_NO_ROOT ? OTF2_UNDEFINED_UINT32
                                                   : (uint32_t)r->peer;
    OTF2_ErrorCode code;

    if (!o)
        return OTF2_SUCCESS;
    if (r->kind == JOULE_WAITS_COLLECTIVE_DONE)
        return OTF2_EvtWriter_NonBlockingCollectiveComplete(
            e->writer, NULL, stamp(e, r->leave_ns), o->op, comm_of(e, r), root,
            r->sent, r->received, r->request);
    code = OTF2_EvtWriter_MpiCollectiveBegin(e->writer, NULL,
                                             stamp(e, r->enter_ns));
    if (code != OTF2_SUCCESS)
        return code;
    return OTF2_EvtWriter_MpiCollectiveEnd(
        e->writer, NULL, stamp(e, r->leave_ns), o->op, comm_of(e, r), root,
        r->sent, r->received);
}

/* What a call has done beside taking time. */
static OTF2_ErrorCode put_effect(struct events *e,
                                 const struct joule_waits_record *r)
{
    OTF2_EvtWriter *w = e->writer;

    switch (r->kind) {
    case JOULE_WAITS_SEND_DONE:
        return OTF2_EvtWriter_MpiIsendComplete(w, NULL, stamp(e, r->leave_ns),
                                               r->request);
    case JOULE_WAITS_POST_RECEIVE:
        return OTF2_EvtWriter_MpiIrecvRequest(w, NULL, stamp(e, r->enter_ns),
                                              r->request);
    case JOULE_WAITS_POST_COLLECTIVE:
        return OTF2_EvtWriter_NonBlockingCollectiveRequest(
            w, NULL, stamp(e, r->enter_ns), r->request);
    case JOULE_WAITS_CANCELLED:
        return OTF2_EvtWriter_MpiRequestCancelled(
            w, NULL, stamp(e, r->leave_ns), r->request);
    case JOULE_WAITS_SEND:
    case JOULE_WAITS_POST_SEND:
    case JOULE_WAITS_RECEIVE:
    case JOULE_WAITS_RECEIVE_DONE:
        return comm_of(e, r) != UINT32_MAX ? put_message(e, r) : OTF2_SUCCESS;
    case JOULE_WAITS_COLLECTIVE:
    case JOULE_WAITS_COLLECTIVE_DONE:
        return comm_of(e, r) != UINT32_MAX ? put_collective(e, r)
                                           : OTF2_SUCCESS;
    default:
        return OTF2_SUCCESS;
    }
}

/* Regions of OTF2 lie within each other: what was begun within the one that ends is
 * ended with it, and begins again. */
static OTF2_ErrorCode end_region(struct events *e,
                                 const struct joule_waits_record *r)
{
    uint32_t name = name_of(e, r->name), at = e->depth;
    OTF2_ErrorCode code = OTF2_SUCCESS;

    if (r->name == 0 && at > 0)
        at--;
    else
        while (at > 0 && e->region[--at] != name)
            if (at == 0)
                return code; /* it never began */
    if (e->depth == 0)
        return code;
    for (uint32_t i = e->depth; i-- > at && code == OTF2_SUCCESS;)
        code = leave(e, r->leave_ns, JOULE_MPI_COUNT + e->region[i]);
    e->depth--;
    for (uint32_t i = at; i < e->depth && code == OTF2_SUCCESS; i++) {
        e->region[i] = e->region[i + 1];
        code = enter(e, r->leave_ns, JOULE_MPI_COUNT + e->region[i]);
    }
    return code;
}

static OTF2_ErrorCode begin_region(struct events *e,
                                   const struct joule_waits_record *r)
{
    uint32_t name = name_of(e, r->name);

    if (name == UINT32_MAX || e->depth == JOULE_WAITS_REGIONS)
        return OTF2_SUCCESS;
    e->region[e->depth++] = name;
    return enter(e, r->enter_ns, JOULE_MPI_COUNT + name);
}

static bool is_same_call(const struct joule_waits_record *a,
                         const struct joule_waits_record *b)
{
    return a->call == b->call && a->enter_ns == b->enter_ns &&
           a->leave_ns == b->leave_ns;
}

static OTF2_ErrorCode put_record(struct events *e,
                                 const struct joule_waits_record *r)
{
    OTF2_ErrorCode code = OTF2_SUCCESS;
    bool is_region = r->kind == JOULE_WAITS_REGION_BEGIN ||
                     r->kind == JOULE_WAITS_REGION_END;

    if (r->call >= JOULE_MPI_COUNT || r->kind > JOULE_WAITS_REGION_END)
        return code;
    if (is_region || !e->is_open || !is_same_call(&e->open, r))
        code = end_call(e);
    if (code != OTF2_SUCCESS)
        return code;
    if (r->kind == JOULE_WAITS_REGION_BEGIN)
        return begin_region(e, r);
    if (r->kind == JOULE_WAITS_REGION_END)
        return end_region(e, r);
    if (!e->is_open)
        code = begin_call(e, r);
    return code == OTF2_SUCCESS ? put_effect(e, r) : code;
}

static int put_records(void *arg, const struct joule_waits_record *records,
                       size_t count)
{
    struct events *e = arg;

    go_on(e->a);
    for (size_t i = 0; i < count; i++)
        if (check(e->a, put_record(e, &records[i])) < 0)
            return -1;
    return 0;
}

static int put_end(struct events *e)
{
    OTF2_ErrorCode code = end_call(e);

    while (e->depth > 0 && code == OTF2_SUCCESS)
        code =
            leave(e, e->log->end_ns, JOULE_MPI_COUNT + e->region[--e->depth]);
    return check(e->a, code);
}

static int put_thread(struct archive *a, size_t log, uint32_t thread,
                      const struct translation *names, uint64_t *ret_events)
{
    struct events e = {
        .a = a,
        .log = &a->logs->log[log],
        .leader = find_leader(a->logs, &a->logs->log[log].head),
        .names = names,
        .writer =
            OTF2_Archive_GetEvtWriter(a->archive, location_of(a, log, thread)),
    };

    if (!e.writer)
        return check(a, OTF2_ERROR_INVALID);
    if (joule_recorded_read(e.log, thread, put_records, &e, a->err) < 0 ||
        put_end(&e) < 0 ||
        check(a, OTF2_EvtWriter_GetNumberOfEvents(e.writer, ret_events)) < 0)
        return -1;
    return check(a, OTF2_Archive_CloseEvtWriter(a->archive, e.writer));
}

static int translate(struct archive *a, const struct joule_recorded_log *l,
                     struct translation *ret)
{
    ret->comm = calloc(l->comms + 1, sizeof(*ret->comm));
    ret->name = calloc(l->names + 1, sizeof(*ret->name));
    if (!ret->comm || !ret->name)
        return no_memory(a);
    for (size_t i = 0; i < l->comms; i++) {
        const struct group *g = find_group(a, l->comm[i].id);

        ret->comm[i] = g && g->known == g->size && l->comm[i].comm == i
                           ? (uint32_t)(g - a->group)
                           : UINT32_MAX;
    }
    for (size_t i = 0; i < l->names; i++)
        ret->name[i] = find_name(a, l->name[i].text);
    return 0;
}

static int put_log(struct archive *a, size_t log, uint64_t *events)
{
    struct translation names = {0};
    int rc = translate(a, &a->logs->log[log], &names);

    for (uint32_t t = 0; rc == 0 && t < threads_of(a, log); t++)
        rc = put_thread(a, log, t, &names, &events[t]);
    free(names.comm);
    free(names.name);
    return rc;
}

/* ---- the archive ---- */

static void add_facts(struct joule_archive_facts *f,
                      const struct joule_waits_head *h)
{
    f->killed += h->state != JOULE_WAITS_FINALIZED;
    f->lost += h->lost;
    f->not_done += h->not_done;
    f->unknown += h->unknown;
    if (f->error == 0)
        f->error = h->error;
}

static int put_clock(struct archive *a)
{
    const struct joule_waits_head *h = &a->logs->log[0].head;
    const struct joule_waits_head *leader = find_leader(a->logs, h);
    int64_t wall_ns = h->wall_ns + a->begin_ns - to_rank_0(leader, h->begin_ns);

    return check(a, OTF2_GlobalDefWriter_WriteClockProperties(
                        a->global, 1000000000, 0,
                        (uint64_t)(a->end_ns - a->begin_ns) + 1,
                        (uint64_t)wall_ns));
}

static int put_all(struct archive *a)
{
    uint64_t *events;
    size_t all = 0, at = 0;
    int rc = 0;

    for (size_t i = 0; i < a->logs->logs; i++)
        all += threads_of(a, i);
    events = calloc(all, sizeof(*events));
    if (!events)
        return no_memory(a);
    rc = check(a, OTF2_Archive_OpenEvtFiles(a->archive));
    for (size_t i = 0; rc == 0 && i < a->logs->logs; i++) {
        rc = put_log(a, i, events + at);
        at += threads_of(a, i);
        add_facts(a->facts, &a->logs->log[i].head);
        a->facts->damaged += a->logs->log[i].is_damaged;
    }
    for (uint32_t i = 0; rc == 0 && i < a->missings; i++)
        rc = put_no_events(a, a->missing[i]);
    if (rc == 0)
        rc = check(a, OTF2_Archive_CloseEvtFiles(a->archive));
    a->global = OTF2_Archive_GetGlobalDefWriter(a->archive);
    if (rc == 0 && (!a->global || put_clock(a) < 0 || put_string(a, "") < 0 ||
                    put_regions(a) < 0 || put_system(a) < 0))
        rc = -1;
    at = 0;
    for (size_t i = 0; rc == 0 && i < a->logs->logs; i++) {
        rc = put_process(a, i, events + at);
        at += threads_of(a, i);
    }
    if (rc == 0)
        rc = put_missing(a);
    if (rc == 0)
        rc = put_groups(a);
    free(events);
    return rc;
}

static int put_definition_files(struct archive *a)
{
    int rc = check(a, OTF2_Archive_OpenDefFiles(a->archive));

    for (size_t i = 0; rc == 0 && i < a->logs->logs; i++)
        for (uint32_t t = 0; rc == 0 && t < threads_of(a, i); t++)
            rc = put_no_definitions(a, location_of(a, i, t));
    for (uint32_t i = 0; rc == 0 && i < a->missings; i++)
        rc = put_no_definitions(a, a->missing[i]);
    return rc == 0 ? check(a, OTF2_Archive_CloseDefFiles(a->archive)) : rc;
}

static int put_step(struct archive *a)
{
    const struct joule_waits_head *h = &a->logs->log[0].head;
    char step[32];

    snprintf(step, sizeof(step), "%u.%u", h->job, h->step);
    return check(
        a, OTF2_Archive_SetProperty(a->archive, JOULE_TRACE_STEP, step, true));
}

static int write_archive(struct archive *a, const char *path)
{
    int rc;

    a->archive = OTF2_Archive_Open(path, "traces", OTF2_FILEMODE_WRITE,
                                   EVENT_CHUNK, DEFINITION_CHUNK,
                                   OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!a->archive)
        return joule_error_set(a->err, EIO, "cannot make an archive in %s",
                               path);
    rc = check(a, joule_otf2_prepare(a->archive));
    if (rc == 0)
        rc = put_all(a);
    if (rc == 0)
        rc = put_definition_files(a);
    if (rc == 0)
        rc = check(a, OTF2_Archive_SetCreator(a->archive, "slurm-joule"));
    if (rc == 0 && a->logs->log[0].head.job > 0)
        rc = put_step(a);
    if (OTF2_Archive_Close(a->archive) != OTF2_SUCCESS && rc == 0)
        rc = check(a, OTF2_ERROR_FILE_INTERACTION);
    if (rc == 0)
        rc = check(a, joule_otf2_noted());
    return rc;
}

static int make(struct archive *a, const char *path)
{
    int rc;

    find_times(a);
    rc = list_missing(a);
    if (rc == 0)
        rc = list_locations(a);
    if (rc == 0)
        rc = list_groups(a);
    if (rc == 0)
        rc = fill_groups(a);
    if (rc == 0)
        rc = list_names(a);
    if (rc == 0)
        rc = write_archive(a, path);
    for (uint32_t g = 0; g < a->groups; g++)
        free(a->group[g].member);
    free(a->group);
    free(a->name);
    free(a->location);
    free(a->missing);
    return rc;
}

/* Its parts, in the order in which they are moved: who sees the last has all. */
static const char *const parts[] = {"traces", "traces.def", "traces.otf2"};

static int move_parts(const char *from, const char *to, struct joule_error *err)
{
    char old[PATH_MAX], new[PATH_MAX];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (snprintf(old, sizeof(old), "%s/%s", from, parts[i]) >=
                (int)sizeof(old) ||
            snprintf(new, sizeof(new), "%s/%s", to, parts[i]) >=
                (int)sizeof(new))
            return joule_error_set(err, ENAMETOOLONG, "%s is too long", to);
        if (rename(old, new) < 0)
            return joule_error_set(err, errno, "cannot make %s: %s", new,
                                   strerror(errno));
    }
    if (rmdir(from) < 0)
        return joule_error_set(err, errno, "cannot remove %s: %s", from,
                               strerror(errno));
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

static bool name_new(char path[PATH_MAX], const char *directory, pid_t pid)
{
    return snprintf(path, PATH_MAX, "%s/.archive-%ld", directory, (long)pid) <
           PATH_MAX;
}

void joule_archive_remove(const char *directory, pid_t pid)
{
    char path[PATH_MAX];
    int saved = errno;

    if (name_new(path, directory, pid))
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    errno = saved;
}

static int check_new(const char *directory, struct joule_error *err)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (snprintf(path, sizeof(path), "%s/%s", directory, parts[i]) >=
                (int)sizeof(path) ||
            access(path, F_OK) == 0)
            return joule_error_set(
                err, EEXIST,
                "%s is there already: move the logs of this run "
                "(*.waits) into a directory of their own",
                path);
    return 0;
}

/* In a directory of its own, which is not there yet. */
static int make_new(struct archive *a, const char *directory)
{
    char path[PATH_MAX];
    int rc;

    if (!name_new(path, directory, getpid()))
        return joule_error_set(a->err, ENAMETOOLONG, "%s is too long",
                               directory);
    if (mkdir(path, 0777) < 0)
        return joule_error_set(a->err, errno, "cannot make %s: %s", path,
                               strerror(errno));
    rc = make(a, path);
    if (rc == 0)
        rc = move_parts(path, directory, a->err);
    if (rc < 0)
        joule_archive_remove(directory, getpid());
    return rc;
}

int joule_archive_make(const char *directory, bool keep, void (*tick)(void),
                       struct joule_archive_facts *facts,
                       struct joule_error *err)
{
    struct joule_recorded_logs logs;
    struct archive a = {
        .logs = &logs, .facts = facts, .tick = tick, .err = err};
    uint32_t lacking;
    int rc;

    *facts = (struct joule_archive_facts){0};
    if (check_new(directory, err) < 0 ||
        joule_recorded_open(directory, &logs, err) < 0)
        return -1;
    lacking = logs.size - (uint32_t)logs.logs;
    facts->ranks = logs.size;
    facts->unreadable = logs.unreadable;
    facts->first_unreadable = logs.first_unreadable;
    if (lacking > logs.unreadable)
        facts->missing = lacking - (uint32_t)logs.unreadable;
    joule_otf2_silence();
    rc = make_new(&a, directory);
    for (size_t i = 0; rc == 0 && !keep && i < logs.logs; i++)
        unlink(logs.log[i].path);
    joule_recorded_close(&logs);
    return rc;
}

#else

int joule_archive_make(const char *directory, bool keep, void (*tick)(void),
                       struct joule_archive_facts *facts,
                       struct joule_error *err)
{
    (void)directory;
    (void)keep;
    (void)tick;
    *facts = (struct joule_archive_facts){0};
    return joule_error_set(err, ENOTSUP, "slurm-joule was built without OTF2");
}

void joule_archive_remove(const char *directory, pid_t pid)
{
    (void)directory;
    (void)pid;
}

#endif
