/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/requests.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "lib/waits/log.h"

#define ENTRIES_MAX (1u << 20)
#define BUCKETS     (1u << 16)
#define NONE        0 /* entries begin with 1 */
#define MESSAGES    256

struct entry {
    uintptr_t handle;
    struct joule_request request;
    uint32_t next; /* of the bucket, or of those that are free */
};

struct bucket {
    uint32_t first, last; /* the oldest and the newest */
};

/* Where an entry is; before: NONE, it is the first. */
struct place {
    struct bucket *bucket;
    uint32_t before, entry;
};

/* One table a process: a request may be completed by another thread than began it. */
static struct {
    bool has_threads; /* that call at once: MPI_THREAD_MULTIPLE */
    pthread_mutex_t lock;
    struct entry *entry;   /* [ENTRIES_MAX]; NULL: not made yet */
    struct bucket *bucket; /* [BUCKETS] */
    uint32_t entries, free, number;
    struct joule_message message[MESSAGES];
    unsigned messages;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .entries = 1};

static void lock(void)
{
    if (self.has_threads)
        pthread_mutex_lock(&self.lock);
}

static void unlock(void)
{
    if (self.has_threads)
        pthread_mutex_unlock(&self.lock);
}

void joule_requests_begin(bool has_threads)
{
    self.has_threads = has_threads;
}

static struct bucket *bucket_of(uintptr_t handle)
{
    return &self.bucket[(handle * UINT64_C(0x9e3779b97f4a7c15) >> 48) %
                        BUCKETS];
}

static bool make_table(void)
{
    size_t bytes = ENTRIES_MAX * sizeof(*self.entry);
    size_t index = BUCKETS * sizeof(*self.bucket);
    char *at;

    if (self.entry)
        return true;
    at = mmap(NULL, bytes + index, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    self.bucket = (struct bucket *)(at + bytes);
    self.entry = (struct entry *)at;
    return true;
}

static uint32_t new_entry(void)
{
    uint32_t i = self.free;

    if (i != NONE)
        self.free = self.entry[i].next;
    else if (self.entries < ENTRIES_MAX)
        i = self.entries++;
    return i;
}

bool joule_requests_add(uintptr_t handle, struct joule_request *request)
{
    struct bucket *bucket;
    uint32_t i = NONE;

    lock();
    request->number = ++self.number;
    if (make_table())
        i = new_entry();
    if (i != NONE) {
        self.entry[i] = (struct entry){handle, *request, NONE};
        bucket = bucket_of(handle);
        if (bucket->first == NONE)
            bucket->first = i;
        else
            self.entry[bucket->last].next = i;
        bucket->last = i;
    }
    unlock();
    return i != NONE;
}

/* The oldest entry of the handle that is active, or, with [any], of any. */
static bool find(uintptr_t handle, bool any, struct place *ret)
{
    uint32_t i, before = NONE;

    if (!self.entry)
        return false;
    ret->bucket = bucket_of(handle);
    for (i = ret->bucket->first; i != NONE; i = self.entry[i].next) {
        if (self.entry[i].handle == handle &&
            (any || self.entry[i].request.is_active))
            break;
        before = i;
    }
    ret->before = before;
    ret->entry = i;
    return i != NONE;
}

static void remove_entry(const struct place *at)
{
    struct entry *entry = &self.entry[at->entry];

    if (at->before == NONE)
        at->bucket->first = entry->next;
    else
        self.entry[at->before].next = entry->next;
    if (at->bucket->last == at->entry)
        at->bucket->last = at->before;
    entry->next = self.free;
    self.free = at->entry;
}

bool joule_requests_take(uintptr_t handle, struct joule_request *ret)
{
    struct place at;
    bool found;

    lock();
    found = find(handle, false, &at);
    if (found) {
        *ret = self.entry[at.entry].request;
        if (ret->is_persistent)
            self.entry[at.entry].request.is_active = false;
        else
            remove_entry(&at);
    }
    unlock();
    return found;
}

bool joule_requests_know(uintptr_t handle)
{
    struct place at;
    bool found;

    lock();
    found = find(handle, true, &at);
    unlock();
    return found;
}

bool joule_requests_start(uintptr_t handle, struct joule_request *ret)
{
    struct place at;
    bool found;

    lock();
    found = find(handle, true, &at);
    if (found) {
        self.entry[at.entry].request.is_active = true;
        self.entry[at.entry].request.number = ++self.number;
        *ret = self.entry[at.entry].request;
    }
    unlock();
    return found;
}

void joule_requests_drop(uintptr_t handle)
{
    struct place at;
    bool more = true;

    lock();
    while (more && find(handle, true, &at)) {
        more = self.entry[at.entry].request.has_more;
        remove_entry(&at);
    }
    unlock();
}

void joule_messages_add(const struct joule_message *message)
{
    lock();
    if (self.messages < MESSAGES)
        self.message[self.messages++] = *message;
    unlock();
}

struct joule_message joule_messages_take(uint32_t handle)
{
    struct joule_message found = {handle, JOULE_WAITS_NO_COMM, 0, 0};
    unsigned i = 0;

    lock();
    while (i < self.messages && self.message[i].handle != handle)
        i++;
    if (i < self.messages) {
        found = self.message[i];
        self.message[i] = self.message[--self.messages];
    }
    unlock();
    return found;
}
