/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/tracefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/waits/trace_libotf2.h"

#define DEFINITION_CHUNK (256 * 1024)

struct tracefile {
    struct tracefile_spec spec;
    OTF2_Archive *archive;
    OTF2_EvtWriter **writer;
    uint64_t locations, last_tick;
    uint32_t strings;
};

static const char *const names[TRACEFILE_REGIONS] = {
    "main",          "solve",       "MPI_Send",      "MPI_Ssend",
    "MPI_Bsend",     "MPI_Recv",    "MPI_Sendrecv",  "MPI_Isend",
    "MPI_Irecv",     "MPI_Wait",    "MPI_Waitall",   "MPI_Test",
    "MPI_Cancel",    "MPI_Barrier", "MPI_Bcast",     "MPI_Reduce",
    "MPI_Allreduce", "MPI_Scan",    "MPI_Alltoallv", "MPI_Ibarrier",
    "MPI_Put",
};

const char *tracefile_region_name(enum tracefile_region region)
{
    return names[region];
}

static void check(OTF2_ErrorCode code, const char *what)
{
    if (code == OTF2_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, OTF2_Error_GetDescription(code));
    abort();
}

#define CHECK(call) check((call), #call)

struct tracefile *tracefile_create(const char *dir,
                                   const struct tracefile_spec *spec)
{
    struct tracefile *t = calloc(1, sizeof(*t));

    if (!t)
        abort();
    t->spec = *spec;
    if (t->spec.threads == 0)
        t->spec.threads = 1;
    if (t->spec.ticks_per_s == 0)
        t->spec.ticks_per_s = 1000000000;
    t->locations = (uint64_t)t->spec.ranks * t->spec.threads;
    t->writer = calloc(t->locations, sizeof(*t->writer));
    t->archive = OTF2_Archive_Open(
        dir, "traces", OTF2_FILEMODE_WRITE,
        spec->chunk ? spec->chunk : OTF2_CHUNK_SIZE_MIN, DEFINITION_CHUNK,
        OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!t->archive || !t->writer) {
        fprintf(stderr, "cannot make the archive %s\n", dir);
        abort();
    }
    CHECK(joule_otf2_prepare(t->archive));
    CHECK(OTF2_Archive_OpenEvtFiles(t->archive));
    return t;
}

OTF2_EvtWriter *tracefile_writer(struct tracefile *t, uint64_t location)
{
    if (!t->writer[location])
        t->writer[location] = OTF2_Archive_GetEvtWriter(t->archive, location);
    if (!t->writer[location])
        abort();
    return t->writer[location];
}

void tracefile_enter(struct tracefile *t, uint64_t location, uint64_t ticks,
                     uint32_t region)
{
    CHECK(OTF2_EvtWriter_Enter(tracefile_writer(t, location), NULL, ticks,
                               region + t->spec.local_numbers));
}

void tracefile_leave(struct tracefile *t, uint64_t location, uint64_t ticks,
                     uint32_t region)
{
    CHECK(OTF2_EvtWriter_Leave(tracefile_writer(t, location), NULL, ticks,
                               region + t->spec.local_numbers));
    if (t->last_tick < ticks)
        t->last_tick = ticks;
}

/* ---- definitions ---- */

static uint32_t put_string(struct tracefile *t, OTF2_GlobalDefWriter *g,
                           const char *text)
{
    CHECK(OTF2_GlobalDefWriter_WriteString(g, t->strings, text));
    return t->strings++;
}

static OTF2_RegionRole role_of(const char *name)
{
    if (strcmp(name, "MPI_Barrier") == 0)
        return OTF2_REGION_ROLE_BARRIER;
    return strncmp(name, "MPI_", 4) == 0 ? OTF2_REGION_ROLE_POINT2POINT
                                         : OTF2_REGION_ROLE_FUNCTION;
}

static void put_regions(struct tracefile *t, OTF2_GlobalDefWriter *g)
{
    for (uint32_t i = 0; i < TRACEFILE_REGIONS; i++) {
        bool is_renamed = i == TRACEFILE_MAIN && t->spec.main_name;
        uint32_t name =
            put_string(t, g, is_renamed ? t->spec.main_name : names[i]);
        bool is_mpi = strncmp(names[i], "MPI_", 4) == 0;

        CHECK(OTF2_GlobalDefWriter_WriteRegion(
            g, i, name, name, 0, role_of(names[i]),
            is_mpi ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_COMPILER,
            OTF2_REGION_FLAG_NONE, 0, 0, 0));
    }
}

static void put_locations(struct tracefile *t, OTF2_GlobalDefWriter *g,
                          const uint64_t *events)
{
    char text[64];

    CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(
        g, 0, put_string(t, g, "cluster"), put_string(t, g, "machine"),
        OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (uint32_t i = 0; i < (t->spec.ranks + 1) / 2; i++) {
        snprintf(text, sizeof(text), "n%u", i);
        CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(
            g, i + 1, put_string(t, g, text), put_string(t, g, "node"), 0));
    }
    for (uint32_t rank = 0; rank < t->spec.ranks; rank++) {
        snprintf(text, sizeof(text), "MPI Rank %u", rank);
        CHECK(OTF2_GlobalDefWriter_WriteLocationGroup(
            g, rank, put_string(t, g, text), OTF2_LOCATION_GROUP_TYPE_PROCESS,
            rank / 2 + 1, OTF2_UNDEFINED_LOCATION_GROUP));
    }
    for (uint64_t i = 0; i < t->locations; i++) {
        snprintf(text, sizeof(text), "thread %u",
                 (unsigned)(i / t->spec.ranks));
        CHECK(OTF2_GlobalDefWriter_WriteLocation(
            g, i, put_string(t, g, text), OTF2_LOCATION_TYPE_CPU_THREAD,
            events[i], (uint32_t)(i % t->spec.ranks)));
    }
}

/* Groups: 0 the locations, 1 the world, 2 self, 3 and following the spec's. */
static void put_comms(struct tracefile *t, OTF2_GlobalDefWriter *g)
{
    uint64_t *all = calloc(t->spec.ranks, sizeof(*all));
    uint32_t none = put_string(t, g, "none");

    if (!all)
        abort();
    for (uint32_t i = 0; i < t->spec.ranks; i++)
        all[i] = i;
    CHECK(OTF2_GlobalDefWriter_WriteGroup(
        g, 0, none, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
        OTF2_GROUP_FLAG_NONE, t->spec.ranks, all));
    CHECK(OTF2_GlobalDefWriter_WriteGroup(
        g, 1, none, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
        OTF2_GROUP_FLAG_NONE, t->spec.ranks, all));
    CHECK(OTF2_GlobalDefWriter_WriteGroup(g, 2, none, OTF2_GROUP_TYPE_COMM_SELF,
                                          OTF2_PARADIGM_MPI,
                                          OTF2_GROUP_FLAG_NONE, 0, all));
    free(all);
    CHECK(OTF2_GlobalDefWriter_WriteComm(
        g, 0, put_string(t, g, "MPI_COMM_WORLD"), 1, OTF2_UNDEFINED_COMM,
        OTF2_COMM_FLAG_NONE));
    CHECK(OTF2_GlobalDefWriter_WriteComm(
        g, 1, put_string(t, g, "MPI_COMM_SELF"), 2, OTF2_UNDEFINED_COMM,
        OTF2_COMM_FLAG_NONE));
    for (size_t i = 0; i < t->spec.comms; i++) {
        const struct tracefile_comm *c = &t->spec.comm[i];

        CHECK(OTF2_GlobalDefWriter_WriteGroup(
            g, (uint32_t)i + 3, none, OTF2_GROUP_TYPE_COMM_GROUP,
            OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, c->size, c->rank));
        CHECK(OTF2_GlobalDefWriter_WriteComm(
            g, (uint32_t)i + 2, put_string(t, g, c->name), (uint32_t)i + 3, 0,
            OTF2_COMM_FLAG_NONE));
    }
}

/* Local numbers to those of the definitions. */
static void put_mapping(struct tracefile *t, OTF2_DefWriter *w,
                        OTF2_MappingType type, uint32_t count)
{
    OTF2_IdMap *map = OTF2_IdMap_Create(OTF2_ID_MAP_SPARSE, count);

    if (!map)
        abort();
    for (uint32_t i = 0; i < count; i++)
        CHECK(OTF2_IdMap_AddIdPair(map, i + t->spec.local_numbers, i));
    CHECK(OTF2_DefWriter_WriteMappingTable(w, type, map));
    OTF2_IdMap_Free(map);
}

static void put_local_definitions(struct tracefile *t)
{
    CHECK(OTF2_Archive_OpenDefFiles(t->archive));
    for (uint64_t i = 0; i < t->locations; i++) {
        OTF2_DefWriter *w = OTF2_Archive_GetDefWriter(t->archive, i);

        for (size_t k = 0; k < t->spec.offsets; k++)
            if (t->spec.offset[k].location == i)
                CHECK(OTF2_DefWriter_WriteClockOffset(
                    w, t->spec.offset[k].time, t->spec.offset[k].offset, 0));
        if (t->spec.local_numbers) {
            put_mapping(t, w, OTF2_MAPPING_REGION, TRACEFILE_REGIONS);
            put_mapping(t, w, OTF2_MAPPING_COMM, 2 + (uint32_t)t->spec.comms);
        }
        CHECK(OTF2_Archive_CloseDefWriter(t->archive, w));
    }
    CHECK(OTF2_Archive_CloseDefFiles(t->archive));
}

void tracefile_close(struct tracefile *t)
{
    uint64_t *events = calloc(t->locations, sizeof(*events));
    OTF2_GlobalDefWriter *g;

    if (!events)
        abort();
    for (uint64_t i = 0; i < t->locations; i++) {
        CHECK(OTF2_EvtWriter_GetNumberOfEvents(tracefile_writer(t, i),
                                               &events[i]));
        CHECK(OTF2_Archive_CloseEvtWriter(t->archive, t->writer[i]));
    }
    CHECK(OTF2_Archive_CloseEvtFiles(t->archive));
    put_local_definitions(t);
    g = OTF2_Archive_GetGlobalDefWriter(t->archive);
    CHECK(OTF2_GlobalDefWriter_WriteClockProperties(
        g, t->spec.ticks_per_s, 0, t->last_tick + 1, OTF2_UNDEFINED_TIMESTAMP));
    put_string(t, g, "");
    put_regions(t, g);
    put_locations(t, g, events);
    put_comms(t, g);
    CHECK(OTF2_Archive_CloseGlobalDefWriter(t->archive, g));
    CHECK(OTF2_Archive_Close(t->archive));
    free(events);
    free(t->writer);
    free(t);
}
