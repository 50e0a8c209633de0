/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/definitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/list.h"

#define PATHS_MAX ((size_t)1 << 20)

static int add_path(struct joule_paths *p, uint32_t parent, uint32_t region)
{
    if (joule_list_grow(&p->path, p->count, 1, &p->room, sizeof(*p->path)) < 0)
        return -1;
    p->path[p->count++] = (struct joule_path){parent, region};
    return 0;
}

int joule_definitions_init(struct joule_definitions *d)
{
    memset(d, 0, sizeof(*d));
    pthread_mutex_init(&d->paths.lock, NULL);
    return add_path(&d->paths, 0, JOULE_NO_NUMBER);
}

void joule_definitions_free(struct joule_definitions *d)
{
    for (uint32_t i = 0; i < d->comms; i++) {
        free(d->comm[i].member);
        free(d->comm[i].other_member);
        free(d->comm[i].by_process);
    }
    for (size_t i = 0; i < d->strings; i++)
        free(d->string[i]);
    free(d->string);
    free(d->region);
    free(d->process);
    free(d->comm);
    free(d->world);
    joule_table_free(&d->paths.number);
    free(d->paths.path);
    pthread_mutex_destroy(&d->paths.lock);
    memset(d, 0, sizeof(*d));
}

/* ---- regions ---- */

static bool begins(const char *name, const char *with)
{
    return strncasecmp(name, with, strlen(with)) == 0;
}

/* Without what Fortran puts behind a name. */
static bool is_name(const char *name, const char *word)
{
    size_t length = strlen(word);

    if (!begins(name, word))
        return false;
    name += length;
    if (strncasecmp(name, "_f08", 4) == 0)
        name += 4;
    return name[strspn(name, "_")] == '\0';
}

bool joule_region_is_call(const char *name, const char *call)
{
    return begins(name, "MPI_") && is_name(name + 4, call);
}

static bool has_no_pattern(const char *name)
{
    static const char *const beginnings[] = {
        "Neighbor_", "Ineighbor_",  "Ibarrier",     "Ibcast",
        "Igather",   "Iscatter",    "Iallgather",   "Ialltoall",
        "Ireduce",   "Iallreduce",  "Iscan",        "Iexscan",
        "Put",       "Get_acc",     "Accumulate",   "Rput",
        "Rget",      "Raccumulate", "Fetch_and_op", "Compare_and_swap",
        "Win_",
    };

    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (begins(name, beginnings[i]))
            return true;
    return is_name(name, "Get");
}

unsigned joule_region_flags(const char *name)
{
    unsigned flags = JOULE_REGION_MPI;

    if (!begins(name, "MPI_"))
        return 0;
    name += 4;
    if (begins(name, "Test") && !begins(name, "Test_cancelled"))
        flags |= JOULE_REGION_TEST;
    if (is_name(name, "Send") || is_name(name, "Ssend"))
        flags |= JOULE_REGION_SENDS_BLOCKING;
    if (has_no_pattern(name))
        flags |= JOULE_REGION_NOT_ANALYSED;
    return flags;
}

/* ---- communicators ---- */

static int compare_ranks(const void *pa, const void *pb, void *arg)
{
    const uint32_t *member = arg;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (member[a] != member[b])
        return member[a] < member[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

int joule_comm_sort(struct joule_mpi_comm *c)
{
    c->by_process = calloc((size_t)c->size + 1, sizeof(*c->by_process));
    if (!c->by_process)
        return -1;
    for (uint32_t i = 0; i < c->size; i++)
        c->by_process[i] = i;
    qsort_r(c->by_process, c->size, sizeof(*c->by_process), compare_ranks,
            c->member);
    return 0;
}

uint32_t joule_comm_rank(const struct joule_mpi_comm *c, uint32_t process)
{
    uint32_t from = 0, to = c->size;

    if (c->is_self)
        return 0;
    if (process < c->size && c->member[process] == process)
        return process; /* most often */
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (c->member[c->by_process[middle]] < process)
            from = middle + 1;
        else
            to = middle;
    }
    if (from < c->size && c->member[c->by_process[from]] == process)
        return c->by_process[from];
    return JOULE_NO_NUMBER;
}

uint32_t joule_comm_peer(const struct joule_definitions *d,
                         const struct joule_mpi_comm *c, uint32_t process,
                         uint32_t rank)
{
    if (c->is_self)
        return rank == 0 ? process : JOULE_NO_NUMBER;
    if (c->has_world_ranks)
        return rank < d->world_size ? d->world[rank] : JOULE_NO_NUMBER;
    if (c->other_size > 0 && joule_comm_rank(c, process) != JOULE_NO_NUMBER)
        return rank < c->other_size ? c->other_member[rank] : JOULE_NO_NUMBER;
    return rank < c->size ? c->member[rank] : JOULE_NO_NUMBER;
}

/* ---- call paths ---- */

uint32_t joule_paths_child(struct joule_paths *p, uint32_t parent,
                           uint32_t region)
{
    uint32_t *number, ret;

    pthread_mutex_lock(&p->lock);
    number = joule_table_at(&p->number, (uint64_t)parent << 32 | region);
    if (!number) {
        ret = JOULE_NO_NUMBER;
    } else if (*number == 0 && p->count == PATHS_MAX) {
        ret = parent;
        *number = parent;
    } else if (*number == 0 && add_path(p, parent, region) < 0) {
        ret = JOULE_NO_NUMBER;
    } else {
        if (*number == 0)
            *number = (uint32_t)p->count - 1;
        ret = *number;
    }
    pthread_mutex_unlock(&p->lock);
    return ret;
}

static void put_path(FILE *out, const struct joule_definitions *d,
                     uint32_t path)
{
    const struct joule_path *p = &d->paths.path[path];

    if (path == 0)
        return;
    put_path(out, d, p->parent);
    if (p->parent != 0)
        fputc('/', out);
    fputs(d->region[p->region].name, out);
}

char *joule_path_text(const struct joule_definitions *d, uint32_t path)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    put_path(out, d, path);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
