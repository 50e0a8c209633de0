/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule waits --paraver: the calls, messages and waits of a trace.  A task is a process;
 * its threads are those of its locations that come before the last one that calls MPI.
 *
 * Calls, messages and waits come as they are found, and are put aside until they can be
 * sorted by time.  Numbers of states, and of MPI's types and values, are those of
 * Extrae.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/list.h"
#include "tools/report/paraver.h"
#include "tools/report/waits.h"

#define TYPE_MESSAGES    50000001
#define TYPE_COLLECTIVES 50000002
#define TYPE_OTHERS      50000003
#define TYPE_WAIT        502000001 /* 1 + enum joule_wait_pattern */
#define TYPE_WAIT_NS     502000002
#define OTHER_VALUES     1000 /* and a region's number: of calls not listed */
#define ITEMS_AT_ONCE    65536

enum state {
    RUNNING = 1,
    WAITING_MESSAGE = 3,
    BLOCKING_SEND = 4,
    SYNCHRONIZATION = 5,
    TEST = 6,
    WAIT = 8,
    IMMEDIATE_SEND = 10,
    IMMEDIATE_RECEIVE = 11,
    GROUP = 13,
    OTHERS = 15,
    SEND_RECEIVE = 16,
};

static const struct {
    enum state state;
    const char *name, *color;
} states[] = {
    {RUNNING, "Running", "{0,0,255}"},
    {WAITING_MESSAGE, "Waiting a message", "{255,0,0}"},
    {BLOCKING_SEND, "Blocking Send", "{255,0,174}"},
    {SYNCHRONIZATION, "Synchronization", "{179,0,0}"},
    {TEST, "Test/Probe", "{0,255,0}"},
    {WAIT, "Wait/WaitAll", "{89,0,255}"},
    {IMMEDIATE_SEND, "Immediate Send", "{66,66,66}"},
    {IMMEDIATE_RECEIVE, "Immediate Receive", "{172,174,41}"},
    {GROUP, "Group Communication", "{255,144,26}"},
    {OTHERS, "Others", "{255,246,0}"},
    {SEND_RECEIVE, "Send Receive", "{189,168,100}"},
};

struct kind {
    const char *name; /* behind MPI_ */
    unsigned type, value;
    enum state state;
};

/* What is not listed has a value of its own. */
static const struct kind kinds[] = {
    {"Sendrecv", TYPE_MESSAGES, 41, SEND_RECEIVE},
    {"Send", TYPE_MESSAGES, 1, BLOCKING_SEND},
    {"Recv", TYPE_MESSAGES, 2, WAITING_MESSAGE},
    {"Isend", TYPE_MESSAGES, 3, IMMEDIATE_SEND},
    {"Irecv", TYPE_MESSAGES, 4, IMMEDIATE_RECEIVE},
    {"Wait", TYPE_MESSAGES, 5, WAIT},
    {"Waitall", TYPE_MESSAGES, 6, WAIT},
    {"Bcast", TYPE_COLLECTIVES, 7, GROUP},
    {"Barrier", TYPE_COLLECTIVES, 8, SYNCHRONIZATION},
    {"Reduce", TYPE_COLLECTIVES, 9, GROUP},
    {"Allreduce", TYPE_COLLECTIVES, 10, GROUP},
    {"Alltoall", TYPE_COLLECTIVES, 11, GROUP},
    {"Alltoallv", TYPE_COLLECTIVES, 12, GROUP},
    {"Gather", TYPE_COLLECTIVES, 13, GROUP},
    {"Gatherv", TYPE_COLLECTIVES, 14, GROUP},
    {"Scatter", TYPE_COLLECTIVES, 15, GROUP},
    {"Scatterv", TYPE_COLLECTIVES, 16, GROUP},
    {"Allgather", TYPE_COLLECTIVES, 17, GROUP},
    {"Allgatherv", TYPE_COLLECTIVES, 18, GROUP},
    {"Scan", TYPE_COLLECTIVES, 30, GROUP},
    {"Init", TYPE_OTHERS, 31, OTHERS},
    {"Finalize", TYPE_OTHERS, 32, OTHERS},
    {"Bsend", TYPE_MESSAGES, 33, BLOCKING_SEND},
    {"Ssend", TYPE_MESSAGES, 34, BLOCKING_SEND},
    {"Rsend", TYPE_MESSAGES, 35, BLOCKING_SEND},
    {"Issend", TYPE_MESSAGES, 37, IMMEDIATE_SEND},
    {"Test", TYPE_MESSAGES, 39, TEST},
};

/* What happens at one time is written in this order. */
enum class {
    WAIT_ENDS,
    CALL, /* begins or ends, in the order of the thread */
    WAIT_BEGINS,
    MESSAGE
};

struct item {
    uint64_t ns;
    uint32_t class;
    uint32_t process;
    uint64_t bytes; /* of a message */
    union {
        struct {
            uint64_t number; /* within the thread */
            uint64_t until_ns;
            uint32_t thread;
            uint32_t region; /* JOULE_NO_NUMBER: until then it computes */
        } call;
        struct {
            uint64_t begin_ns, end_ns;
            uint64_t pattern;
        } wait;
        struct {
            uint64_t post_ns, received_ns;
            uint32_t destination, tag;
        } message;
    };
};

struct thread {
    uint64_t items;
    uint64_t left_ns; /* its last call */
    /* While the file is written, of its call: */
    uint64_t enter_ns;
    unsigned type; /* 0: it is in none */
};

struct threads {
    struct thread *at;
    size_t count, room;
};

struct joule_waits_paraver {
    const char *path;
    const struct joule_definitions *d;
    const struct joule_trace_facts *facts;
    struct joule_scratch scratch;
    struct threads *threads; /* of each process */
    struct kind *kind;       /* of each region */
    const char **node;       /* names, each once */
    uint32_t nodes;
    uint32_t *node_of; /* of each process */
    bool is_out_of_memory;
    void (*tick)(void *arg);
};

/* ---- what is found ---- */

struct joule_waits_paraver *joule_waits_paraver_open(const char *path,
                                                     struct joule_error *err)
{
    struct joule_waits_paraver *p = calloc(1, sizeof(*p));

    if (!p) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    p->path = path;
    if (joule_waits_scratch(&p->scratch, path, sizeof(struct item), err) == 0)
        return p;
    joule_waits_paraver_close(p);
    return NULL;
}

void joule_waits_paraver_close(struct joule_waits_paraver *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; p->threads && i < p->d->processes; i++)
        free(p->threads[i].at);
    free(p->threads);
    free(p->kind);
    free(p->node);
    free(p->node_of);
    joule_scratch_free(&p->scratch);
    free(p);
}

void joule_waits_paraver_begin(struct joule_waits_paraver *p,
                               const struct joule_definitions *d)
{
    p->d = d;
    p->threads = calloc((size_t)d->processes + 1, sizeof(*p->threads));
    p->is_out_of_memory = !p->threads;
}

void joule_waits_paraver_wait(struct joule_waits_paraver *p, unsigned part,
                              const struct joule_wait *wait)
{
    struct item item = {.ns = wait->begin_ns,
                        .class = WAIT_BEGINS,
                        .process = wait->process,
                        .wait = {wait->begin_ns, wait->end_ns, wait->pattern}};

    if (wait->pattern >= JOULE_WAIT_COMPLETIONS)
        return;
    joule_scratch_add(&p->scratch, part, &item);
    item.ns = wait->end_ns;
    item.class = WAIT_ENDS;
    joule_scratch_add(&p->scratch, part, &item);
}

void joule_waits_paraver_message(struct joule_waits_paraver *p, unsigned part,
                                 const struct joule_delivery *m)
{
    const struct item item = {
        .ns = m->send_ns,
        .class = MESSAGE,
        .process = m->source,
        .bytes = m->bytes,
        .message = {m->post_ns, m->received_ns, m->destination, m->tag}};

    joule_scratch_add(&p->scratch, part, &item);
}

/* From [from_ns] on; what is before a thread's first call begins with the trace. */
static void add_call(struct joule_waits_paraver *p, unsigned part,
                     const struct joule_trace_call *c, uint64_t from_ns,
                     uint64_t until_ns, uint32_t region)
{
    struct thread *t = &p->threads[c->process].at[c->thread];
    const struct item item = {
        .ns = from_ns,
        .class = CALL,
        .process = c->process,
        .call = {t->items++, until_ns, c->thread, region}};

    joule_scratch_add(&p->scratch, part, &item);
}

void joule_waits_paraver_call(struct joule_waits_paraver *p, unsigned part,
                              const struct joule_trace_call *c)
{
    struct threads *t = p->threads ? &p->threads[c->process] : NULL;

    if (!t || joule_list_grow(&t->at, c->thread, 1, &t->room, sizeof(*t->at))) {
        p->is_out_of_memory = true;
        return;
    }
    while (t->count <= c->thread)
        t->at[t->count++] = (struct thread){0};
    add_call(p, part, c, t->at[c->thread].left_ns, c->enter_ns,
             JOULE_NO_NUMBER);
    add_call(p, part, c, c->enter_ns, c->leave_ns, c->region);
    t->at[c->thread].left_ns = c->leave_ns;
}

/* After their last calls. */
static void end_threads(struct joule_waits_paraver *p)
{
    for (uint32_t i = 0; i < p->d->processes; i++)
        for (uint32_t k = 0; k < p->threads[i].count; k++) {
            const struct joule_trace_call at_end = {.process = i, .thread = k};

            if (p->threads[i].at[k].items > 0)
                add_call(p, 0, &at_end, p->threads[i].at[k].left_ns,
                         p->facts->end_ns, JOULE_NO_NUMBER);
        }
}

static int compare_items(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;

    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->class == CALL && a->call.thread != b->call.thread)
        return a->call.thread < b->call.thread ? -1 : 1;
    if (a->class == CALL)
        return a->call.number < b->call.number ? -1 : 1;
    return memcmp(a, b, sizeof(*a));
}

/* ---- names and numbers ---- */

static int find_nodes(struct joule_waits_paraver *p)
{
    p->node = calloc((size_t)p->d->processes + 1, sizeof(*p->node));
    p->node_of = calloc((size_t)p->d->processes + 1, sizeof(*p->node_of));
    if (!p->node || !p->node_of)
        return -1;
    for (uint32_t i = 0; i < p->d->processes; i++) {
        uint32_t n = 0;

        while (n < p->nodes && strcmp(p->node[n], p->d->process[i].node) != 0)
            n++;
        if (n == p->nodes)
            p->node[p->nodes++] = p->d->process[i].node;
        p->node_of[i] = n;
    }
    return 0;
}

static struct kind kind_of(const char *name, uint32_t region)
{
    struct kind kind = {name, TYPE_OTHERS, OTHER_VALUES + region, OTHERS};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (joule_region_is_call(name, kinds[i].name))
            return kinds[i];
    if (joule_region_flags(name) & JOULE_REGION_TEST)
        kind.state = TEST;
    if (joule_region_is_call(name, "Waitany") ||
        joule_region_is_call(name, "Waitsome"))
        kind.state = WAIT;
    return kind;
}

static int find_kinds(struct joule_waits_paraver *p)
{
    p->kind = calloc((size_t)p->d->regions + 1, sizeof(*p->kind));
    if (!p->kind)
        return -1;
    for (uint32_t i = 0; i < p->d->regions; i++)
        p->kind[i] = kind_of(p->d->region[i].name, i);
    return 0;
}

static uint32_t threads_of(const struct joule_waits_paraver *p,
                           uint32_t process)
{
    return p->threads[process].count ? (uint32_t)p->threads[process].count : 1;
}

/* ---- PATH.prv ---- */

static uint64_t time_of(const struct joule_waits_paraver *p, uint64_t ns)
{
    return ns > p->facts->begin_ns ? ns - p->facts->begin_ns : 0;
}

static void put_header(FILE *file, const struct joule_waits_paraver *p)
{
    uint64_t wall_ns =
        p->d->wall_ns ? (uint64_t)p->d->wall_ns + p->facts->begin_ns : 0;

    joule_paraver_put_date(file, wall_ns);
    fprintf(file, "%" PRIu64 "_ns:%u(", time_of(p, p->facts->end_ns), p->nodes);
    for (uint32_t i = 0; i < p->nodes; i++)
        fputs(i ? ",1" : "1", file);
    fprintf(file, "):1:%u(", p->d->processes);
    for (uint32_t i = 0; i < p->d->processes; i++)
        fprintf(file, "%s%u:%u", i ? "," : "", threads_of(p, i),
                p->node_of[i] + 1);
    fputs(")\n", file);
}

static void put_state(FILE *file, const struct joule_waits_paraver *p,
                      const struct item *i, enum state state)
{
    uint64_t from = time_of(p, i->ns), to = time_of(p, i->call.until_ns);

    if (to > from)
        fprintf(file, "1:0:1:%u:%u:%" PRIu64 ":%" PRIu64 ":%d\n",
                i->process + 1, i->call.thread + 1, from, to, state);
}

static void put_event(FILE *file, const struct joule_waits_paraver *p,
                      uint32_t process, uint32_t thread, uint64_t ns,
                      unsigned type, unsigned value)
{
    fprintf(file, "2:0:1:%u:%u:%" PRIu64 ":%u:%u", process + 1, thread + 1,
            time_of(p, ns), type, value);
}

/* The event of what a thread has done ends where it goes on to compute. */
static void put_call(FILE *file, struct joule_waits_paraver *p,
                     const struct item *i)
{
    struct thread *t = &p->threads[i->process].at[i->call.thread];
    const struct kind *kind;

    if (i->call.region == JOULE_NO_NUMBER) {
        if (t->type != 0) {
            put_event(file, p, i->process, i->call.thread, i->ns, t->type, 0);
            fputc('\n', file);
        }
        t->type = 0;
        put_state(file, p, i, RUNNING);
        return;
    }
    kind = &p->kind[i->call.region];
    put_state(file, p, i, kind->state);
    put_event(file, p, i->process, i->call.thread, i->ns, kind->type,
              kind->value);
    fputc('\n', file);
    t->type = kind->type;
    t->enter_ns = i->ns;
}

/* A wait is a process's, and begins with a call of one of its threads. */
static uint32_t thread_of(const struct joule_waits_paraver *p,
                          const struct item *i)
{
    const struct threads *t = &p->threads[i->process];

    for (uint32_t k = 0; k < t->count; k++)
        if (t->at[k].enter_ns == i->wait.begin_ns)
            return k;
    return 0;
}

static void put_wait(FILE *file, const struct joule_waits_paraver *p,
                     const struct item *i)
{
    bool is_end = i->class == WAIT_ENDS;

    put_event(file, p, i->process, thread_of(p, i), i->ns, TYPE_WAIT,
              is_end ? 0 : (unsigned)i->wait.pattern + 1);
    fprintf(file, ":%d:%" PRIu64 "\n", TYPE_WAIT_NS,
            is_end ? 0 : i->wait.end_ns - i->wait.begin_ns);
}

static void put_message(FILE *file, const struct joule_waits_paraver *p,
                        const struct item *i)
{
    uint64_t send = time_of(p, i->ns), post = time_of(p, i->message.post_ns);
    uint64_t received = time_of(p, i->message.received_ns);

    fprintf(file,
            "3:0:1:%u:1:%" PRIu64 ":%" PRIu64 ":0:1:%u:1:%" PRIu64 ":%" PRIu64
            ":%" PRIu64 ":%u\n",
            i->process + 1, send, send, i->message.destination + 1,
            post < received ? post : received, received, i->bytes,
            i->message.tag);
}

static void put_prv(FILE *file, void *arg)
{
    struct joule_waits_paraver *p = arg;
    const struct item *item = p->scratch.at;

    put_header(file, p);
    for (uint64_t i = 0; i < p->scratch.count && !ferror(file); i++) {
        if (i % ITEMS_AT_ONCE == 0)
            p->tick(NULL);
        if (item[i].class == CALL)
            put_call(file, p, &item[i]);
        else if (item[i].class == MESSAGE)
            put_message(file, p, &item[i]);
        else
            put_wait(file, p, &item[i]);
    }
}

/* ---- PATH.pcf and PATH.row ---- */

static void put_calls(FILE *file, const struct joule_waits_paraver *p,
                      unsigned type, const char *name)
{
    fprintf(file, "\nEVENT_TYPE\n0    %u    %s\nVALUES\n0      End\n", type,
            name);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].type == type)
            fprintf(file, "%u      MPI_%s\n", kinds[i].value, kinds[i].name);
    for (uint32_t i = 0; i < p->d->regions; i++)
        if (p->d->region[i].flags & JOULE_REGION_MPI &&
            p->kind[i].type == type && p->kind[i].value >= OTHER_VALUES) {
            fprintf(file, "%u      ", p->kind[i].value);
            joule_paraver_put_text(file, p->d->region[i].name);
        }
}

static void put_pcf(FILE *file, void *arg)
{
    const struct joule_waits_paraver *p = arg;
    size_t n = sizeof(states) / sizeof(states[0]);

    joule_paraver_put_options(file);
    fputs("STATES\n", file);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "%d    %s\n", states[i].state, states[i].name);
    fputs("\nSTATES_COLOR\n", file);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "%d    %s\n", states[i].state, states[i].color);
    put_calls(file, p, TYPE_MESSAGES, "MPI Point-to-point");
    put_calls(file, p, TYPE_COLLECTIVES, "MPI Collective Comm");
    put_calls(file, p, TYPE_OTHERS, "MPI Other");
    fprintf(file, "\nEVENT_TYPE\n0    %d    Wait state\nVALUES\n0      End\n",
            TYPE_WAIT);
    for (int i = 0; i < JOULE_WAIT_COMPLETIONS; i++)
        fprintf(file, "%d      %s\n", i + 1,
                joule_wait_pattern_name((enum joule_wait_pattern)i));
    fprintf(file, "\nEVENT_TYPE\n0    %d    Wait state ns\n", TYPE_WAIT_NS);
}

static void put_row(FILE *file, void *arg)
{
    const struct joule_waits_paraver *p = arg;
    uint64_t threads = 0;

    fprintf(file, "LEVEL NODE SIZE %u\n", p->nodes);
    for (uint32_t i = 0; i < p->nodes; i++)
        joule_paraver_put_text(file, p->node[i]);
    fprintf(file, "\nLEVEL TASK SIZE %u\n", p->d->processes);
    for (uint32_t i = 0; i < p->d->processes; i++) {
        joule_paraver_put_text(file, p->d->process[i].name);
        threads += threads_of(p, i);
    }
    fprintf(file, "\nLEVEL THREAD SIZE %" PRIu64 "\n", threads);
    for (uint32_t i = 0; i < p->d->processes; i++)
        for (uint32_t k = 0; k < threads_of(p, i); k++) {
            if (threads_of(p, i) > 1)
                fprintf(file, "thread %u of ", k);
            joule_paraver_put_text(file, p->d->process[i].name);
        }
}

/* ---- all of it ---- */

int joule_waits_paraver_write(struct joule_waits_paraver *p,
                              const struct joule_trace_facts *facts,
                              void (*tick)(void *arg), struct joule_error *err)
{
    int rc;

    p->facts = facts;
    p->tick = tick;
    if (p->is_out_of_memory || find_nodes(p) < 0 || find_kinds(p) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    end_threads(p);
    rc = joule_scratch_sort(&p->scratch, compare_items, err);
    if (rc == 0)
        rc = joule_paraver_write(p->path, "prv", put_prv, p, err);
    if (rc == 0)
        rc = joule_paraver_write(p->path, "pcf", put_pcf, p, err);
    if (rc == 0)
        rc = joule_paraver_write(p->path, "row", put_row, p, err);
    return rc;
}
