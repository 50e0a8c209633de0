/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_copy.h"

#include <errno.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/waits/trace_definitions.h"
#include "tools/waits/trace_libotf2.h"

#define EVENT_CHUNK      (1024 * 1024)
#define DEFINITION_CHUNK (4 * 1024 * 1024)
#define EVENTS_AT_ONCE   65536

/* The property of an archive that is such a copy. */
#define MARKED "SLURM_JOULE::WAITS"

struct copy {
    const struct joule_trace_copying *how;
    struct joule_definitions d;
    struct joule_trace_refs refs;
    OTF2_Reader *reader;
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *global;
    uint64_t *events;          /* of each location of refs */
    uint32_t strings, regions; /* above all that the archive has */
    OTF2_ErrorCode code;       /* the first that was no success */
    struct joule_trace_copied *facts;
    struct joule_error *err;
};

/* The location that is copied. */
struct place {
    struct copy *c;
    OTF2_EvtWriter *to;
    uint64_t last_ns, copied;
    struct joule_mark *next, *end; /* marks of its process */
    const struct joule_mark *mark; /* the one that it is in */
    uint64_t from_ns;              /* so much of that is written */
    bool is_open;                  /* its region is entered */
};

struct joule_mark joule_mark_of(const struct joule_wait *wait)
{
    return (struct joule_mark){wait->begin_ns, wait->end_ns, wait->process,
                               (uint16_t)wait->pattern, 0};
}

int joule_mark_compare(const void *pa, const void *pb)
{
    const struct joule_mark *a = pa, *b = pb;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return (int)a->pattern - (int)b->pattern;
}

static int check(struct copy *c, OTF2_ErrorCode code)
{
    if (c->code != OTF2_SUCCESS)
        return -1; /* it was said */
    c->code = code;
    return joule_otf2_check(code, c->err);
}

static OTF2_CallbackCode done(struct copy *c, OTF2_ErrorCode code)
{
    return check(c, code) < 0 ? OTF2_CALLBACK_INTERRUPT : OTF2_CALLBACK_SUCCESS;
}

/* ---- events ---- */

/* Write what there is of the mark up to [ns].  Its region lies within all others: it
 * is left before another one begins or ends, and entered again behind that. */
static void go_on(struct place *p, uint64_t ns, bool is_region)
{
    struct copy *c = p->c;
    uint32_t region;

    if (!p->mark)
        return;
    region = c->regions + p->mark->pattern;
    if (!p->is_open && ns > p->from_ns) {
        check(c, OTF2_EvtWriter_Enter(p->to, NULL, p->from_ns, region));
        p->is_open = true;
    }
    if (p->is_open && (is_region || ns >= p->mark->end_ns)) {
        p->from_ns = ns < p->mark->end_ns ? ns : p->mark->end_ns;
        check(c, OTF2_EvtWriter_Leave(p->to, NULL, p->from_ns, region));
        p->is_open = false;
    }
    if (ns >= p->mark->end_ns)
        p->mark = NULL;
}

/* The time of an event, as the reader has it (trace_reader.c). */
static uint64_t come_to(struct place *p, OTF2_TimeStamp ticks, bool is_region)
{
    uint64_t ns = joule_trace_ns(&p->c->refs, ticks);

    if (ns < p->last_ns)
        ns = p->last_ns;
    p->last_ns = ns;
    p->copied++;
    go_on(p, ns, is_region);
    return ns;
}

/* A call, or what is one, is entered: the wait that begins there is its. */
static void find_mark(struct place *p, uint64_t ns)
{
    struct joule_mark *m;

    while (p->next < p->end && p->next->begin_ns < ns)
        p->next++;
    for (m = p->next; m < p->end && m->begin_ns == ns; m++)
        if (!m->is_done)
            break;
    if (p->mark || m == p->end || m->begin_ns != ns)
        return;
    m->is_done = 1;
    p->mark = m;
    p->from_ns = ns;
}

static OTF2_CallbackCode copy_Enter(OTF2_LocationRef ref, OTF2_TimeStamp ticks,
                                    uint64_t position, void *arg,
                                    OTF2_AttributeList *attributes,
                                    OTF2_RegionRef region)
{
    struct place *p = arg;
    uint64_t ns = come_to(p, ticks, true);
    uint32_t number;

    (void)ref;
    (void)position;
    if (joule_table_get(&p->c->refs.region, region, &number) &&
        p->c->d.region[number].flags & JOULE_REGION_MPI)
        find_mark(p, ns);
    return done(p->c, OTF2_EvtWriter_Enter(p->to, attributes, ns, region));
}

static OTF2_CallbackCode copy_Leave(OTF2_LocationRef ref, OTF2_TimeStamp ticks,
                                    uint64_t position, void *arg,
                                    OTF2_AttributeList *attributes,
                                    OTF2_RegionRef region)
{
    struct place *p = arg;
    uint64_t ns = come_to(p, ticks, true);

    (void)ref;
    (void)position;
    return done(p->c, OTF2_EvtWriter_Leave(p->to, attributes, ns, region));
}

/* Of some traces collective operations are in no call. */
static OTF2_CallbackCode copy_MpiCollectiveBegin(OTF2_LocationRef ref,
                                                 OTF2_TimeStamp ticks,
                                                 uint64_t position, void *arg,
                                                 OTF2_AttributeList *attributes)
{
    struct place *p = arg;
    uint64_t ns = come_to(p, ticks, false);

    (void)ref;
    (void)position;
    find_mark(p, ns);
    return done(p->c, OTF2_EvtWriter_MpiCollectiveBegin(p->to, attributes, ns));
}

#define EXPAND(...) __VA_ARGS__

/* An event that stays what it is. */
#define EVENT(name, parameters, arguments)                                     \
    static OTF2_CallbackCode copy_##name(                                      \
        OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,         \
        void *arg, OTF2_AttributeList *attributes EXPAND parameters)           \
    {                                                                          \
        struct place *p = arg;                                                 \
        uint64_t ns = come_to(p, ticks, false);                                \
                                                                               \
        (void)ref;                                                             \
        (void)position;                                                        \
        return done(p->c, OTF2_EvtWriter_##name(p->to, attributes,             \
                                                ns EXPAND arguments));         \
    }

#define MESSAGE , uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes
#define REQUEST , uint64_t request
#define COLLECTIVE                                                             \
    , OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent,   \
        uint64_t received

EVENT(MpiSend, (MESSAGE), (, peer, comm, tag, bytes))
EVENT(MpiIsend, (MESSAGE REQUEST), (, peer, comm, tag, bytes, request))
EVENT(MpiIsendComplete, (REQUEST), (, request))
EVENT(MpiIrecvRequest, (REQUEST), (, request))
EVENT(MpiRecv, (MESSAGE), (, peer, comm, tag, bytes))
EVENT(MpiIrecv, (MESSAGE REQUEST), (, peer, comm, tag, bytes, request))
EVENT(MpiRequestTest, (REQUEST), (, request))
EVENT(MpiRequestCancelled, (REQUEST), (, request))
EVENT(MpiCollectiveEnd, (COLLECTIVE), (, op, comm, root, sent, received))
EVENT(NonBlockingCollectiveRequest, (REQUEST), (, request))
EVENT(NonBlockingCollectiveComplete, (COLLECTIVE REQUEST),
      (, op, comm, root, sent, received, request))

static OTF2_EvtReaderCallbacks *make_callbacks(void)
{
    OTF2_EvtReaderCallbacks *f = OTF2_EvtReaderCallbacks_New();

    if (!f)
        return NULL;
#define SET(name) OTF2_EvtReaderCallbacks_Set##name##Callback(f, copy_##name)
    SET(Enter);
    SET(Leave);
    SET(MpiSend);
    SET(MpiIsend);
    SET(MpiIsendComplete);
    SET(MpiIrecvRequest);
    SET(MpiRecv);
    SET(MpiIrecv);
    SET(MpiRequestTest);
    SET(MpiRequestCancelled);
    SET(MpiCollectiveBegin);
    SET(MpiCollectiveEnd);
    SET(NonBlockingCollectiveRequest);
    SET(NonBlockingCollectiveComplete);
#undef SET
    return f;
}

/* libotf2 must not be asked again once it had less than was asked for. */
static int copy_events(struct copy *c, OTF2_EvtReader *from, struct place *p)
{
    uint64_t count = EVENTS_AT_ONCE, all = 0;

    while (count == EVENTS_AT_ONCE && c->code == OTF2_SUCCESS) {
        count = 0;
        OTF2_Reader_ReadLocalEvents(c->reader, from, EVENTS_AT_ONCE, &count);
        all += count;
        if (c->how->tick)
            c->how->tick(c->how->arg);
    }
    if (p->mark)
        go_on(p, p->mark->end_ns, true);
    c->facts->events += p->copied;
    c->facts->left_out += all - p->copied;
    return check(c, OTF2_SUCCESS);
}

static uint64_t first_mark(const struct joule_trace_copying *how,
                           uint32_t process)
{
    uint64_t from = 0, to = how->marks;

    while (from < to) {
        uint64_t middle = from + (to - from) / 2;

        if (how->mark[middle].process < process)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* A location whose events are missing has none in the copy. */
static int copy_location(struct copy *c, size_t i,
                         const OTF2_EvtReaderCallbacks *callbacks)
{
    const struct joule_trace_location *l = &c->refs.location[i];
    OTF2_EvtReader *from = OTF2_Reader_GetEvtReader(c->reader, l->ref);
    struct place p = {
        .c = c,
        .to = OTF2_Archive_GetEvtWriter(c->archive, l->ref),
        .next = c->how->mark + first_mark(c->how, l->process),
        .end = c->how->mark + first_mark(c->how, l->process + 1),
    };
    int rc = p.to ? 0 : check(c, OTF2_ERROR_MEM_ALLOC_FAILED);

    if (rc == 0 && from &&
        OTF2_Reader_RegisterEvtCallbacks(c->reader, from, callbacks, &p) ==
            OTF2_SUCCESS)
        rc = copy_events(c, from, &p);
    if (from)
        OTF2_Reader_CloseEvtReader(c->reader, from);
    if (rc == 0)
        rc = check(c, OTF2_EvtWriter_GetNumberOfEvents(p.to, &c->events[i]));
    if (rc == 0)
        rc = check(c, OTF2_Archive_CloseEvtWriter(c->archive, p.to));
    return rc;
}

static int copy_locations(struct copy *c)
{
    OTF2_EvtReaderCallbacks *callbacks = make_callbacks();
    int rc = callbacks && c->events
                 ? check(c, OTF2_Archive_OpenEvtFiles(c->archive))
                 : joule_error_set(c->err, ENOMEM, "out of memory");

    for (size_t i = 0; i < c->refs.locations; i++)
        OTF2_Reader_SelectLocation(c->reader, c->refs.location[i].ref);
    if (OTF2_Reader_OpenDefFiles(c->reader) == OTF2_SUCCESS) {
        for (size_t i = 0; i < c->refs.locations; i++)
            joule_trace_define_local(c->reader, c->refs.location[i].ref);
        OTF2_Reader_CloseDefFiles(c->reader);
    }
    OTF2_Reader_OpenEvtFiles(c->reader);
    for (size_t i = 0; rc == 0 && i < c->refs.locations; i++)
        rc = copy_location(c, i, callbacks);
    OTF2_Reader_CloseEvtFiles(c->reader);
    if (callbacks)
        OTF2_EvtReaderCallbacks_Delete(callbacks);
    return rc == 0 ? check(c, OTF2_Archive_CloseEvtFiles(c->archive)) : rc;
}

static int put_no_local_definitions(struct copy *c)
{
    int rc = check(c, OTF2_Archive_OpenDefFiles(c->archive));

    for (size_t i = 0; rc == 0 && i < c->refs.locations; i++) {
        OTF2_DefWriter *w =
            OTF2_Archive_GetDefWriter(c->archive, c->refs.location[i].ref);

        rc = check(c, w ? OTF2_Archive_CloseDefWriter(c->archive, w)
                        : OTF2_ERROR_MEM_ALLOC_FAILED);
    }
    return rc == 0 ? check(c, OTF2_Archive_CloseDefFiles(c->archive)) : rc;
}

/* ---- definitions ---- */

/* What is defined has the number that it had. */
#define DEFINITION(name, type, parameters, arguments)                          \
    static OTF2_CallbackCode define_##name(void *arg,                          \
                                           type self EXPAND parameters)        \
    {                                                                          \
        struct copy *c = arg;                                                  \
                                                                               \
        return done(c, OTF2_GlobalDefWriter_Write##name(                       \
                           c->global, self EXPAND arguments));                 \
    }

DEFINITION(Attribute, OTF2_AttributeRef,
           (, OTF2_StringRef name, OTF2_StringRef about, OTF2_Type type),
           (, name, about, type))
DEFINITION(SystemTreeNode, OTF2_SystemTreeNodeRef,
           (, OTF2_StringRef name, OTF2_StringRef kind,
            OTF2_SystemTreeNodeRef parent),
           (, name, kind, parent))
DEFINITION(Group, OTF2_GroupRef,
           (, OTF2_StringRef name, OTF2_GroupType type, OTF2_Paradigm paradigm,
            OTF2_GroupFlag flags, uint32_t members, const uint64_t *member),
           (, name, type, paradigm, flags, members, member))
DEFINITION(LocationGroup, OTF2_LocationGroupRef,
           (, OTF2_StringRef name, OTF2_LocationGroupType type,
            OTF2_SystemTreeNodeRef parent, OTF2_LocationGroupRef creator),
           (, name, type, parent, creator))
DEFINITION(Comm, OTF2_CommRef,
           (, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef parent,
            OTF2_CommFlag flags),
           (, name, group, parent, flags))
DEFINITION(InterComm, OTF2_CommRef,
           (, OTF2_StringRef name, OTF2_GroupRef a, OTF2_GroupRef b,
            OTF2_CommRef common, OTF2_CommFlag flags),
           (, name, a, b, common, flags))

static OTF2_CallbackCode define_String(void *arg, OTF2_StringRef self,
                                       const char *text)
{
    struct copy *c = arg;

    if (self >= c->strings)
        c->strings = self + 1;
    return done(c, OTF2_GlobalDefWriter_WriteString(c->global, self, text));
}

static OTF2_CallbackCode
define_Region(void *arg, OTF2_RegionRef self, OTF2_StringRef name,
              OTF2_StringRef canonical, OTF2_StringRef about,
              OTF2_RegionRole role, OTF2_Paradigm paradigm,
              OTF2_RegionFlag flags, OTF2_StringRef file, uint32_t from,
              uint32_t to)
{
    struct copy *c = arg;

    return done(c, OTF2_GlobalDefWriter_WriteRegion(
                       c->global, self, name, canonical, about, role, paradigm,
                       flags, file, from, to));
}

/* Only what has events in the copy. */
static OTF2_CallbackCode define_Location(void *arg, OTF2_LocationRef self,
                                         OTF2_StringRef name,
                                         OTF2_LocationType type,
                                         uint64_t events,
                                         OTF2_LocationGroupRef group)
{
    struct copy *c = arg;
    size_t i = 0;

    (void)events;
    while (i < c->refs.locations && c->refs.location[i].ref != self)
        i++;
    if (i == c->refs.locations)
        return OTF2_CALLBACK_SUCCESS;
    return done(c, OTF2_GlobalDefWriter_WriteLocation(
                       c->global, self, name, type, c->events[i], group));
}

static OTF2_GlobalDefReaderCallbacks *make_definition_callbacks(void)
{
    OTF2_GlobalDefReaderCallbacks *f = OTF2_GlobalDefReaderCallbacks_New();

    if (!f)
        return NULL;
#define SET(name)                                                              \
    OTF2_GlobalDefReaderCallbacks_Set##name##Callback(f, define_##name)
    SET(String);
    SET(Attribute);
    SET(SystemTreeNode);
    SET(LocationGroup);
    SET(Location);
    SET(Region);
    SET(Group);
    SET(Comm);
    SET(InterComm);
#undef SET
    return f;
}

static int put_clock(struct copy *c)
{
    uint64_t begin_ns = joule_trace_ns(&c->refs, c->refs.begin_ticks);
    uint64_t wall_ns = c->d.wall_ns ? (uint64_t)c->d.wall_ns + begin_ns
                                    : OTF2_UNDEFINED_TIMESTAMP;

    return check(c,
                 OTF2_GlobalDefWriter_WriteClockProperties(
                     c->global, 1000000000, begin_ns,
                     joule_trace_ns(&c->refs, c->refs.length_ticks), wall_ns));
}

/* Regions of the marks, behind those of the program. */
static int put_regions(struct copy *c)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < JOULE_WAIT_COMPLETIONS; i++) {
        char name[64];

        snprintf(name, sizeof(name), "WAIT: %s",
                 joule_wait_pattern_name((enum joule_wait_pattern)i));
        rc = check(c, OTF2_GlobalDefWriter_WriteString(c->global,
                                                       c->strings + i, name));
        if (rc == 0)
            rc = check(c,
                       OTF2_GlobalDefWriter_WriteRegion(
                           c->global, c->regions + i, c->strings + i,
                           c->strings + i, OTF2_UNDEFINED_STRING,
                           OTF2_REGION_ROLE_ARTIFICIAL, OTF2_PARADIGM_USER,
                           OTF2_REGION_FLAG_NONE, OTF2_UNDEFINED_STRING, 0, 0));
    }
    return rc;
}

static int copy_definitions(struct copy *c, const char *anchor)
{
    OTF2_Reader *reader = joule_trace_open(anchor, c->err);
    OTF2_GlobalDefReaderCallbacks *f = make_definition_callbacks();
    OTF2_GlobalDefReader *from;
    uint64_t count;
    int rc = -1;

    c->global = OTF2_Archive_GetGlobalDefWriter(c->archive);
    if (reader && c->global && f) {
        rc = put_clock(c);
        from = OTF2_Reader_GetGlobalDefReader(reader);
        OTF2_Reader_RegisterGlobalDefCallbacks(reader, from, f, c);
        if (rc == 0 && OTF2_Reader_ReadAllGlobalDefinitions(
                           reader, from, &count) != OTF2_SUCCESS)
            rc = check(c, OTF2_ERROR_INTERRUPTED_BY_CALLBACK);
        if (rc == 0)
            rc = put_regions(c);
        if (rc == 0)
            rc = check(
                c, OTF2_Archive_CloseGlobalDefWriter(c->archive, c->global));
    } else if (reader) {
        rc = joule_error_set(c->err, ENOMEM, "out of memory");
    }
    if (f)
        OTF2_GlobalDefReaderCallbacks_Delete(f);
    if (reader)
        OTF2_Reader_Close(reader);
    return rc;
}

/* ---- the archive ---- */

static int put_properties(struct copy *c)
{
    int rc = check(c, OTF2_Archive_SetCreator(c->archive, "slurm-joule"));

    if (rc == 0)
        rc = check(
            c, OTF2_Archive_SetProperty(c->archive, MARKED, "marked", true));
    if (rc == 0 && *c->d.step)
        rc = check(c, OTF2_Archive_SetProperty(c->archive, JOULE_TRACE_STEP,
                                               c->d.step, true));
    return rc;
}

static int write_archive(struct copy *c, const char *anchor)
{
    int rc;

    c->archive = OTF2_Archive_Open(
        c->how->directory, "traces", OTF2_FILEMODE_WRITE, EVENT_CHUNK,
        DEFINITION_CHUNK, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!c->archive)
        return joule_error_set(c->err, EEXIST, "cannot make the directory %s",
                               c->how->directory);
    rc = check(c, joule_otf2_prepare(c->archive));
    if (rc == 0)
        rc = copy_locations(c);
    if (rc == 0)
        rc = put_no_local_definitions(c);
    if (rc == 0)
        rc = copy_definitions(c, anchor);
    if (rc == 0)
        rc = put_properties(c);
    if (OTF2_Archive_Close(c->archive) != OTF2_SUCCESS && rc == 0)
        rc = check(c, OTF2_ERROR_FILE_INTERACTION);
    return rc;
}

/* Above those of the archive. */
static int number_regions(struct copy *c)
{
    for (size_t i = 0; i < c->refs.region.slots; i++)
        if (c->refs.region.slot[i].is_used &&
            c->refs.region.slot[i].key >= c->regions)
            c->regions = (uint32_t)c->refs.region.slot[i].key + 1;
    if (c->regions == 0 || c->regions > UINT32_MAX - JOULE_WAIT_PATTERNS)
        return joule_error_set(c->err, EBADMSG,
                               "its regions have no sound numbers");
    return 0;
}

static int copy(struct copy *c, const char *anchor)
{
    char *property = NULL;

    c->reader = joule_trace_open(anchor, c->err);
    if (!c->reader)
        return -1;
    if (OTF2_Reader_GetProperty(c->reader, MARKED, &property) == OTF2_SUCCESS) {
        free(property);
        return joule_error_set(c->err, EEXIST, "waits are marked in %s already",
                               c->how->path);
    }
    if (joule_trace_define(c->reader, &c->d, &c->refs, c->err) < 0 ||
        number_regions(c) < 0)
        return -1;
    c->events = calloc(c->refs.locations + 1, sizeof(*c->events));
    return write_archive(c, anchor);
}

int joule_trace_copy(const struct joule_trace_copying *copying,
                     struct joule_trace_copied *ret, struct joule_error *err)
{
    struct copy c = {.how = copying, .facts = ret, .err = err};
    char *anchor = joule_trace_anchor(copying->path, err);
    int rc = -1;

    memset(ret, 0, sizeof(*ret));
    if (!anchor)
        return -1;
    if (joule_definitions_init(&c.d) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    else
        rc = copy(&c, anchor);
    for (uint64_t i = 0; i < copying->marks; i++)
        ret->not_marked += !copying->mark[i].is_done;
    if (c.reader)
        OTF2_Reader_Close(c.reader);
    free(c.events);
    joule_trace_refs_free(&c.refs);
    joule_definitions_free(&c.d);
    free(anchor);
    return rc;
}
