/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cgroup/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define CHILDREN_MAX (1 << 20) /* bytes of a list of them */

/* Fields of proc/PID/stat (proc(5)), counted from the one behind the name. */
enum { STATE, UTIME = 11, STIME, CUTIME, CSTIME, THREADS = 17, START = 19 };

struct stat_fields {
    uint64_t own, waited, threads, start; /* times in ticks */
};

struct process {
    pid_t pid;
    int parent; /* who had it when it was found; -1: nobody */
    bool dead;
    uint64_t start;
    uint64_t own, waited; /* counted so far */
    uint64_t credit;      /* of waited: counted while those lived */
    uint64_t owed;        /* of that, what has not come to waited yet */
};

struct joule_processes {
    int root_fd;
    struct process *known; /* [0]: the one whose descendants they are */
    size_t count, room;
    int *bucket; /* of known, by pid; -1: none */
    size_t buckets;
    uint64_t ticks;
    uint64_t ns_a_tick;
};

static int read_stat(int root_fd, pid_t pid, struct stat_fields *ret)
{
    char path[48], text[1024], *at, *word, *rest;
    uint64_t field[START + 1] = {0};
    int i = 0;

    snprintf(path, sizeof(path), "proc/%lld/stat", (long long)pid);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0)
        return -1;
    /* The program's name is in brackets and may hold anything. */
    at = strrchr(text, ')');
    errno = EBADMSG;
    if (!at)
        return -1;
    for (word = strtok_r(at + 1, " ", &rest); word && i <= START;
         word = strtok_r(NULL, " ", &rest), i++)
        if (i >= UTIME && joule_parse_u64(word, 0, UINT64_MAX, &field[i]) < 0 &&
            (i <= CSTIME || i == START || i == THREADS))
            return -1;
    if (i <= START)
        return -1;
    *ret = (struct stat_fields){.own = field[UTIME] + field[STIME],
                                .waited = field[CUTIME] + field[CSTIME],
                                .threads = field[THREADS],
                                .start = field[START]};
    return 0;
}

/* Room for the double of what there is, found by pid. */
static int make_room(struct joule_processes *p)
{
    size_t room = p->room ? 2 * p->room : 16;
    struct process *known = realloc(p->known, room * sizeof(*known));
    int *bucket;

    if (!known)
        return -1;
    p->known = known;
    bucket = realloc(p->bucket, 2 * room * sizeof(*bucket));
    if (!bucket)
        return -1;
    p->bucket = bucket;
    p->room = room;
    p->buckets = 2 * room;
    return 0;
}

static size_t place_of(const struct joule_processes *p, pid_t pid)
{
    size_t b = (uint32_t)pid * UINT32_C(2654435761) % p->buckets;

    while (p->bucket[b] >= 0 && p->known[p->bucket[b]].pid != pid)
        b = (b + 1) % p->buckets;
    return b;
}

static void sort_into_buckets(struct joule_processes *p)
{
    for (size_t b = 0; b < p->buckets; b++)
        p->bucket[b] = -1;
    for (size_t i = 0; i < p->count; i++)
        p->bucket[place_of(p, p->known[i].pid)] = (int)i;
}

static int add(struct joule_processes *p, pid_t pid, int parent)
{
    size_t b;

    if (p->count >= JOULE_PROCESSES_MAX)
        return 0;
    if (p->count == p->room) {
        if (make_room(p) < 0)
            return -1;
        sort_into_buckets(p);
    }
    b = place_of(p, pid);
    if (p->bucket[b] >= 0)
        return 0;
    p->bucket[b] = (int)p->count;
    p->known[p->count++] = (struct process){.pid = pid, .parent = parent};
    return 0;
}

struct joule_processes *joule_processes_create(int root_fd, pid_t pid)
{
    struct joule_processes *p = calloc(1, sizeof(*p));
    long hertz = sysconf(_SC_CLK_TCK);

    if (!p)
        return NULL;
    p->root_fd = root_fd;
    p->ns_a_tick = UINT64_C(1000000000) / (uint64_t)(hertz > 0 ? hertz : 100);
    if (add(p, pid, -1) == 0)
        return p;
    joule_processes_destroy(p);
    errno = ENOMEM;
    return NULL;
}

void joule_processes_destroy(struct joule_processes *p)
{
    if (!p)
        return;
    free(p->known);
    free(p->bucket);
    free(p);
}

/* The children of one thread. */
static int add_children(struct joule_processes *p, int parent, const char *task)
{
    char path[300], *text, *word, *rest;
    uint64_t pid;
    int rc = 0;

    snprintf(path, sizeof(path), "proc/%lld/task/%s/children",
             (long long)p->known[parent].pid, task);
    text = joule_file_load(p->root_fd, path, CHILDREN_MAX, NULL);
    if (!text)
        return errno == ENOMEM ? -1 : 0;
    for (word = strtok_r(text, " ", &rest); word && rc == 0;
         word = strtok_r(NULL, " ", &rest))
        if (joule_parse_u64(word, 1, INT32_MAX, &pid) == 0)
            rc = add(p, (pid_t)pid, parent);
    free(text);
    return rc;
}

static int find_children(struct joule_processes *p, int i, uint64_t threads)
{
    char path[48];
    struct dirent *entry;
    DIR *dir;
    int fd, rc = 0;

    snprintf(path, sizeof(path), "%lld", (long long)p->known[i].pid);
    if (threads == 1)
        return add_children(p, i, path);
    snprintf(path, sizeof(path), "proc/%lld/task", (long long)p->known[i].pid);
    fd = joule_file_open(p->root_fd, path, O_RDONLY | O_DIRECTORY);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while (rc == 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            rc = add_children(p, i, entry->d_name);
    closedir(dir);
    return rc;
}

/* Look at process [i]: *ret_ticks is what it adds without what it waited for;
 * *ret_waited that. */
static int look_at(struct joule_processes *p, size_t i, uint64_t *ret_ticks,
                   uint64_t *ret_waited)
{
    struct process *k = &p->known[i];
    struct stat_fields now;

    *ret_ticks = 0;
    *ret_waited = 0;
    if (read_stat(p->root_fd, k->pid, &now) < 0) {
        /* What else there is passes, and its time is counted then. */
        k->dead = errno == ENOENT || errno == ESRCH;
        return 0;
    }
    if (k->start && k->start != now.start) {
        k->dead = true;
        return 0;
    }
    k->start = now.start;
    if (i > 0 && now.own > k->own)
        *ret_ticks = now.own - k->own;
    if (now.waited > k->waited)
        *ret_waited = now.waited - k->waited;
    k->own = now.own;
    k->waited = now.waited;
    return find_children(p, (int)i, now.threads);
}

/* What the dead were counted for comes again, to who waited for them. */
static void give_credit(struct joule_processes *p)
{
    for (size_t i = 0; i < p->count; i++) {
        int to = p->known[i].parent;

        if (!p->known[i].dead)
            continue;
        while (to >= 0 && p->known[to].dead)
            to = p->known[to].parent;
        if (to >= 0)
            p->known[to].credit += p->known[i].own + p->known[i].waited;
    }
}

/* A child may have died after its parent was looked at: its time comes to the
 * parent at the next look, but no later. */
static uint64_t take_credit(struct process *k, uint64_t waited)
{
    uint64_t all = k->credit + k->owed;
    uint64_t used = waited < all ? waited : all;
    uint64_t left = all - used;

    k->owed = left < k->credit ? left : k->credit;
    k->credit = 0;
    return waited - used;
}

/* The dead are forgotten, but for the first. */
static void forget_dead(struct joule_processes *p, int *moved)
{
    size_t to = 0;

    for (size_t i = 0; i < p->count; i++) {
        int parent = p->known[i].parent;

        while (parent > 0 && p->known[parent].dead)
            parent = p->known[parent].parent;
        p->known[i].parent = parent;
    }
    for (size_t i = 0; i < p->count; i++)
        moved[i] = i > 0 && p->known[i].dead ? -1 : (int)to++;
    for (size_t i = 0; i < p->count; i++) {
        struct process k = p->known[i];

        if (moved[i] < 0)
            continue;
        k.parent = k.parent >= 0 ? moved[k.parent] : -1;
        p->known[moved[i]] = k;
    }
    p->count = to;
    sort_into_buckets(p);
}

int joule_processes_read(struct joule_processes *p, uint64_t *ret_ns)
{
    uint64_t *waited = NULL, *bigger, own;
    size_t room = 0, i;
    int rc = -1, saved, *moved;

    /* The table grows while it is gone through, parents before children. */
    for (i = 0; i < p->count; i++) {
        if (i >= room) {
            room = p->room;
            bigger = realloc(waited, room * sizeof(*waited));
            if (!bigger)
                goto out;
            waited = bigger;
        }
        if (look_at(p, i, &own, &waited[i]) < 0)
            goto out;
        p->ticks += own;
    }
    give_credit(p);
    for (i = 0; i < p->count; i++)
        p->ticks += take_credit(&p->known[i], waited[i]);
    moved = calloc(p->count, sizeof(*moved));
    if (!moved)
        goto out;
    forget_dead(p, moved);
    free(moved);
    errno = ESRCH;
    if (p->count == 1 && p->known[0].dead)
        goto out;
    *ret_ns = p->ticks * p->ns_a_tick;
    rc = 0;
out:
    saved = errno;
    free(waited);
    errno = saved;
    return rc;
}
