/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_definitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/int128.h"
#include "common/base/list.h"
#include "tools/waits/trace_libotf2.h"

/* A path up the system tree, which may be a circle. */
#define TREE_DEPTH_MAX 64

#define NS_PER_S UINT64_C(1000000000)

struct list {
    void *at;
    size_t count, room;
};

struct group {
    OTF2_GroupType type;
    bool has_world_ranks, is_mpi;
    uint32_t size;
    uint64_t *member;
};

struct tree_node {
    uint32_t name, kind, parent; /* references */
};

struct place {
    uint32_t name, parent; /* references */
};

struct region {
    uint32_t name;
};

struct comm {
    uint32_t name, group, other; /* references; JOULE_NO_NUMBER: no other */
};

struct thread {
    uint64_t ref, events;
    uint32_t group;
    bool is_cpu;
};

/* What the definitions tell, in their order, with tables of their references. */
struct collector {
    struct list string, group, node, place, region, comm, thread;
    struct joule_table string_of, group_of, node_of, place_of, region_of,
        comm_of, thread_of;
    uint64_t ticks_per_s, begin_ticks, length_ticks, wall_ns;
    uint64_t unknown;
    bool is_out_of_memory;
};

/* A new one of [size] bytes, all zeros, by its reference; NULL: no memory. */
static void *add(struct collector *c, struct list *list,
                 struct joule_table *table, uint64_t ref, size_t size)
{
    char *at;

    if (joule_list_grow(&list->at, list->count, 1, &list->room, size) < 0)
        goto no_memory;
    if (list->count >= JOULE_NO_NUMBER ||
        joule_table_put(table, ref, (uint32_t)list->count) < 0)
        goto no_memory;
    at = (char *)list->at + size * list->count++;
    memset(at, 0, size);
    return at;
no_memory:
    c->is_out_of_memory = true;
    return NULL;
}

#define RETURN(done)                                                           \
    return (done) ? OTF2_CALLBACK_SUCCESS : OTF2_CALLBACK_INTERRUPT

static OTF2_CallbackCode take_clock(void *arg, uint64_t resolution,
                                    uint64_t offset, uint64_t length,
                                    uint64_t realtime)
{
    struct collector *c = arg;

    c->ticks_per_s = resolution;
    c->begin_ticks = offset;
    c->wall_ns = realtime;
    c->length_ticks = length;
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode take_string(void *arg, OTF2_StringRef self,
                                     const char *text)
{
    struct collector *c = arg;
    char **to = add(c, &c->string, &c->string_of, self, sizeof(*to));

    if (to)
        *to = strdup(text ? text : "");
    c->is_out_of_memory |= to && !*to;
    RETURN(to && *to);
}

static OTF2_CallbackCode take_node(void *arg, OTF2_SystemTreeNodeRef self,
                                   OTF2_StringRef name, OTF2_StringRef kind,
                                   OTF2_SystemTreeNodeRef parent)
{
    struct collector *c = arg;
    struct tree_node *to = add(c, &c->node, &c->node_of, self, sizeof(*to));

    if (to)
        *to = (struct tree_node){name, kind, parent};
    RETURN(to);
}

static OTF2_CallbackCode take_place(void *arg, OTF2_LocationGroupRef self,
                                    OTF2_StringRef name,
                                    OTF2_LocationGroupType type,
                                    OTF2_SystemTreeNodeRef parent,
                                    OTF2_LocationGroupRef creator)
{
    struct collector *c = arg;
    struct place *to = add(c, &c->place, &c->place_of, self, sizeof(*to));

    (void)type;
    (void)creator;
    if (to)
        *to = (struct place){name, parent};
    RETURN(to);
}

static OTF2_CallbackCode take_location(void *arg, OTF2_LocationRef self,
                                       OTF2_StringRef name,
                                       OTF2_LocationType type, uint64_t events,
                                       OTF2_LocationGroupRef group)
{
    struct collector *c = arg;
    struct thread *to = add(c, &c->thread, &c->thread_of, self, sizeof(*to));

    (void)name;
    if (to)
        *to = (struct thread){self, events, group,
                              type == OTF2_LOCATION_TYPE_CPU_THREAD ||
                                  type == OTF2_LOCATION_TYPE_UNKNOWN};
    RETURN(to);
}

static OTF2_CallbackCode
take_region(void *arg, OTF2_RegionRef self, OTF2_StringRef name,
            OTF2_StringRef canonical, OTF2_StringRef description,
            OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag flags,
            OTF2_StringRef file, uint32_t first_line, uint32_t last_line)
{
    struct collector *c = arg;
    struct region *to = add(c, &c->region, &c->region_of, self, sizeof(*to));

    (void)canonical;
    (void)description;
    (void)role;
    (void)paradigm;
    (void)flags;
    (void)file;
    (void)first_line;
    (void)last_line;
    if (to)
        to->name = name;
    RETURN(to);
}

static OTF2_CallbackCode take_group(void *arg, OTF2_GroupRef self,
                                    OTF2_StringRef name, OTF2_GroupType type,
                                    OTF2_Paradigm paradigm,
                                    OTF2_GroupFlag flags, uint32_t size,
                                    const uint64_t *member)
{
    struct collector *c = arg;
    struct group *to;

    (void)name;
    if (type == OTF2_GROUP_TYPE_REGIONS || type == OTF2_GROUP_TYPE_METRIC)
        return OTF2_CALLBACK_SUCCESS;
    to = add(c, &c->group, &c->group_of, self, sizeof(*to));
    if (!to)
        return OTF2_CALLBACK_INTERRUPT;
    to->type = type;
    to->is_mpi = paradigm == OTF2_PARADIGM_MPI;
    to->has_world_ranks = flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS;
    to->member = calloc((size_t)size + 1, sizeof(*to->member));
    if (!to->member) {
        c->is_out_of_memory = true;
        return OTF2_CALLBACK_INTERRUPT;
    }
    to->size = size;
    if (size)
        memcpy(to->member, member, size * sizeof(*member));
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode take_comm(void *arg, OTF2_CommRef self,
                                   OTF2_StringRef name, OTF2_GroupRef group,
                                   OTF2_CommRef parent, OTF2_CommFlag flags)
{
    struct collector *c = arg;
    struct comm *to = add(c, &c->comm, &c->comm_of, self, sizeof(*to));

    (void)parent;
    (void)flags;
    if (to)
        *to = (struct comm){name, group, JOULE_NO_NUMBER};
    RETURN(to);
}

#if OTF2_VERSION_MAJOR >= 3
static OTF2_CallbackCode take_intercomm(void *arg, OTF2_CommRef self,
                                        OTF2_StringRef name, OTF2_GroupRef a,
                                        OTF2_GroupRef b, OTF2_CommRef common,
                                        OTF2_CommFlag flags)
{
    struct collector *c = arg;
    struct comm *to = add(c, &c->comm, &c->comm_of, self, sizeof(*to));

    (void)common;
    (void)flags;
    if (to)
        *to = (struct comm){name, a, b};
    RETURN(to);
}
#endif

/* ---- references resolved ---- */

static const char *string_of(struct collector *c, uint32_t ref)
{
    uint32_t i;

    if (joule_table_get(&c->string_of, ref, &i))
        return ((char **)c->string.at)[i];
    c->unknown += ref != OTF2_UNDEFINED_STRING;
    return "";
}

static bool is_machine(const char *kind)
{
    return strcasecmp(kind, "node") == 0 || strcasecmp(kind, "host") == 0;
}

/* The node that a process was on: the one that is called so, else what it was
 * directly below. */
static const char *node_of(struct collector *c, uint32_t ref)
{
    const struct tree_node *all = c->node.at, *n, *first = NULL;
    uint32_t i;

    for (int depth = 0; depth < TREE_DEPTH_MAX; depth++) {
        if (!joule_table_get(&c->node_of, ref, &i))
            break;
        n = &all[i];
        first = first ? first : n;
        if (is_machine(string_of(c, n->kind)))
            return string_of(c, n->name);
        ref = n->parent;
    }
    return first ? string_of(c, first->name) : "";
}

static int make_regions(struct collector *c, struct joule_definitions *d)
{
    const struct region *all = c->region.at;

    d->region = calloc(c->region.count + 1, sizeof(*d->region));
    if (!d->region)
        return -1;
    d->regions = (uint32_t)c->region.count;
    for (uint32_t i = 0; i < d->regions; i++) {
        d->region[i].name = string_of(c, all[i].name);
        d->region[i].flags = joule_region_flags(d->region[i].name);
    }
    return 0;
}

static int make_processes(struct collector *c, struct joule_definitions *d)
{
    const struct place *all = c->place.at;

    d->process = calloc(c->place.count + 1, sizeof(*d->process));
    if (!d->process)
        return -1;
    d->processes = (uint32_t)c->place.count;
    for (uint32_t i = 0; i < d->processes; i++)
        d->process[i] = (struct joule_mpi_process){string_of(c, all[i].name),
                                                   node_of(c, all[i].parent),
                                                   JOULE_NO_NUMBER};
    return 0;
}

static int make_locations(struct collector *c, struct joule_trace_refs *ret)
{
    const struct thread *all = c->thread.at;
    uint32_t process, last;

    ret->location = calloc(c->thread.count + 1, sizeof(*ret->location));
    if (!ret->location)
        return -1;
    for (size_t i = 0; i < c->thread.count; i++) {
        /* Of a reference that is defined twice the last one counts. */
        if (!all[i].is_cpu ||
            !joule_table_get(&c->thread_of, all[i].ref, &last) || last != i)
            continue;
        if (!joule_table_get(&c->place_of, all[i].group, &process)) {
            c->unknown++;
            continue;
        }
        ret->location[ret->locations++] =
            (struct joule_trace_location){all[i].ref, all[i].events, process};
    }
    return 0;
}

static uint32_t process_of_location(struct collector *c, uint64_t ref)
{
    const struct thread *all = c->thread.at;
    uint32_t i, process;

    if (joule_table_get(&c->thread_of, ref, &i) &&
        joule_table_get(&c->place_of, all[i].group, &process))
        return process;
    c->unknown++;
    return JOULE_NO_NUMBER;
}

/* The list of all locations that communicate, whose order is that of ranks. */
static int make_world(struct collector *c, struct joule_definitions *d)
{
    const struct group *all = c->group.at, *g = NULL;

    for (size_t i = 0; i < c->group.count; i++)
        if (all[i].type == OTF2_GROUP_TYPE_COMM_LOCATIONS && all[i].is_mpi &&
            !g)
            g = &all[i];
    d->world = calloc(g ? (size_t)g->size + 1 : 1, sizeof(*d->world));
    if (!d->world)
        return -1;
    d->world_size = g ? g->size : 0;
    for (uint32_t rank = 0; rank < d->world_size; rank++) {
        uint32_t process = process_of_location(c, g->member[rank]);

        d->world[rank] = process;
        if (process != JOULE_NO_NUMBER &&
            d->process[process].rank == JOULE_NO_NUMBER)
            d->process[process].rank = rank;
    }
    return 0;
}

static uint32_t member_of(struct collector *c,
                          const struct joule_definitions *d,
                          const struct group *g, uint32_t i)
{
    if (g->type != OTF2_GROUP_TYPE_COMM_GROUP)
        return process_of_location(c, g->member[i]);
    if (g->member[i] < d->world_size)
        return d->world[g->member[i]];
    c->unknown++;
    return JOULE_NO_NUMBER;
}

/* -1: no memory.  A group that is not there has no members. */
static int make_members(struct collector *c, const struct joule_definitions *d,
                        uint32_t ref, struct joule_mpi_comm *comm,
                        uint32_t **ret, uint32_t *ret_size)
{
    const struct group *all = c->group.at, *g = NULL;
    uint32_t i;

    if (joule_table_get(&c->group_of, ref, &i))
        g = &all[i];
    else
        c->unknown++;
    comm->is_self |= g && g->type == OTF2_GROUP_TYPE_COMM_SELF;
    comm->has_world_ranks |= g && g->has_world_ranks;
    *ret = calloc(g ? (size_t)g->size + 1 : 1, sizeof(**ret));
    if (!*ret)
        return -1;
    *ret_size = g ? g->size : 0;
    for (i = 0; i < *ret_size; i++)
        (*ret)[i] = member_of(c, d, g, i);
    return 0;
}

static int make_comms(struct collector *c, struct joule_definitions *d)
{
    const struct comm *all = c->comm.at;

    d->comm = calloc(c->comm.count + 1, sizeof(*d->comm));
    if (!d->comm)
        return -1;
    d->comms = (uint32_t)c->comm.count;
    for (uint32_t i = 0; i < d->comms; i++) {
        struct joule_mpi_comm *to = &d->comm[i];

        to->name = string_of(c, all[i].name);
        if (make_members(c, d, all[i].group, to, &to->member, &to->size) < 0 ||
            (all[i].other != JOULE_NO_NUMBER &&
             make_members(c, d, all[i].other, to, &to->other_member,
                          &to->other_size) < 0) ||
            joule_comm_sort(to) < 0)
            return -1;
    }
    return 0;
}

/* Of the trace's time 0; 0: the archive does not tell. */
static int64_t wall_of(const struct collector *c,
                       const struct joule_trace_refs *refs)
{
    double since_ns =
        (double)refs->begin_ticks / (double)refs->ticks_per_s * NS_PER_S;

    if (c->wall_ns == OTF2_UNDEFINED_TIMESTAMP || c->wall_ns > INT64_MAX ||
        since_ns > (double)c->wall_ns)
        return 0;
    return (int64_t)c->wall_ns - (int64_t)since_ns;
}

static int make_all(struct collector *c, struct joule_definitions *d,
                    struct joule_trace_refs *ret)
{
    if (make_regions(c, d) < 0 || make_processes(c, d) < 0 ||
        make_locations(c, ret) < 0 || make_world(c, d) < 0 ||
        make_comms(c, d) < 0)
        return -1;
    d->string = c->string.at;
    d->strings = c->string.count;
    memset(&c->string, 0, sizeof(c->string));
    ret->region = c->region_of;
    ret->comm = c->comm_of;
    memset(&c->region_of, 0, sizeof(c->region_of));
    memset(&c->comm_of, 0, sizeof(c->comm_of));
    ret->ticks_per_s = c->ticks_per_s ? c->ticks_per_s : NS_PER_S;
    ret->begin_ticks = c->begin_ticks;
    d->wall_ns = wall_of(c, ret);
    ret->length_ticks = c->length_ticks;
    ret->unknown = c->unknown;
    return 0;
}

/* ---- opening ---- */

static bool is_of_type(const char *path, mode_t type)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

char *joule_trace_anchor(const char *path, struct joule_error *err)
{
    static const char *const names[] = {"/eztrace_log.otf2", "/traces.otf2"};
    bool is_directory = is_of_type(path, S_IFDIR);
    char *anchor = NULL;

    for (int i = 0; i < 2; i++) {
        free(anchor);
        if (asprintf(&anchor, "%s%s", path, is_directory ? names[i] : "") < 0) {
            joule_error_set(err, ENOMEM, "out of memory");
            return NULL;
        }
        if (is_of_type(anchor, S_IFREG))
            return anchor;
    }
    joule_error_set(err, ENOENT, "there is no trace %s", anchor);
    free(anchor);
    return NULL;
}

OTF2_Reader *joule_trace_open(const char *anchor, struct joule_error *err)
{
    OTF2_Reader *reader;

    joule_otf2_silence();
    reader = OTF2_Reader_Open(anchor);
    if (!reader ||
        OTF2_Reader_SetSerialCollectiveCallbacks(reader) != OTF2_SUCCESS) {
        joule_error_set(err, EBADMSG, "%s is no OTF2 archive, or damaged",
                        anchor);
        if (reader)
            OTF2_Reader_Close(reader);
        return NULL;
    }
    return reader;
}

/* ---- reading ---- */

static int read_all(OTF2_Reader *reader, struct collector *c,
                    struct joule_error *err)
{
    OTF2_GlobalDefReader *from = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *f = OTF2_GlobalDefReaderCallbacks_New();
    OTF2_ErrorCode code = OTF2_ERROR_INVALID;
    uint64_t count;

    if (from && f) {
        OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(f, take_clock);
        OTF2_GlobalDefReaderCallbacks_SetStringCallback(f, take_string);
        OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(f, take_node);
        OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(f, take_place);
        OTF2_GlobalDefReaderCallbacks_SetLocationCallback(f, take_location);
        OTF2_GlobalDefReaderCallbacks_SetRegionCallback(f, take_region);
        OTF2_GlobalDefReaderCallbacks_SetGroupCallback(f, take_group);
        OTF2_GlobalDefReaderCallbacks_SetCommCallback(f, take_comm);
#if OTF2_VERSION_MAJOR >= 3
        OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(f, take_intercomm);
#endif
        code = OTF2_Reader_RegisterGlobalDefCallbacks(reader, from, f, c);
        if (code == OTF2_SUCCESS)
            code = OTF2_Reader_ReadAllGlobalDefinitions(reader, from, &count);
    }
    if (f)
        OTF2_GlobalDefReaderCallbacks_Delete(f);
    if (from)
        OTF2_Reader_CloseGlobalDefReader(reader, from);
    if (c->is_out_of_memory)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (code != OTF2_SUCCESS)
        return joule_error_set(err, EBADMSG,
                               "its definitions (.def) cannot be read: %s",
                               OTF2_Error_GetDescription(code));
    return 0;
}

static void free_collector(struct collector *c)
{
    for (size_t i = 0; i < c->string.count; i++)
        free(((char **)c->string.at)[i]);
    for (size_t i = 0; i < c->group.count; i++)
        free(((struct group *)c->group.at)[i].member);
    free(c->string.at);
    free(c->group.at);
    free(c->node.at);
    free(c->place.at);
    free(c->region.at);
    free(c->comm.at);
    free(c->thread.at);
    joule_table_free(&c->string_of);
    joule_table_free(&c->group_of);
    joule_table_free(&c->node_of);
    joule_table_free(&c->place_of);
    joule_table_free(&c->region_of);
    joule_table_free(&c->comm_of);
    joule_table_free(&c->thread_of);
}

/* Of a trace that slurm-joule has made. */
static void read_step(OTF2_Reader *reader, struct joule_definitions *d)
{
    char *step = NULL;

    if (OTF2_Reader_GetProperty(reader, JOULE_TRACE_STEP, &step) !=
            OTF2_SUCCESS ||
        !step)
        return;
    if (strlen(step) < sizeof(d->step) &&
        strspn(step, "0123456789.") == strlen(step))
        strcpy(d->step, step);
    free(step);
}

int joule_trace_define(OTF2_Reader *reader, struct joule_definitions *d,
                       struct joule_trace_refs *ret, struct joule_error *err)
{
    struct collector c = {0};
    int rc = read_all(reader, &c, err);

    if (rc == 0 && make_all(&c, d, ret) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        read_step(reader, d);
    if (rc < 0) {
        /* Names in [d] are those of the collector until all is made. */
        joule_definitions_free(d);
        joule_definitions_init(d);
    }
    free_collector(&c);
    return rc;
}

void joule_trace_refs_free(struct joule_trace_refs *refs)
{
    joule_table_free(&refs->region);
    joule_table_free(&refs->comm);
    free(refs->location);
    memset(refs, 0, sizeof(*refs));
}

uint64_t joule_trace_ns(const struct joule_trace_refs *refs, uint64_t ticks)
{
    joule_u128 ns;

    if (refs->ticks_per_s == NS_PER_S)
        return ticks;
    ns = (joule_u128)ticks * NS_PER_S / refs->ticks_per_s;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

void joule_trace_define_local(OTF2_Reader *reader, uint64_t ref)
{
    OTF2_DefReader *from = OTF2_Reader_GetDefReader(reader, ref);
    uint64_t count;

    if (!from)
        return;
    OTF2_Reader_ReadAllLocalDefinitions(reader, from, &count);
    OTF2_Reader_CloseDefReader(reader, from);
}
