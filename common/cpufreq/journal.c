/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void joule_cpufreq_journal_init(struct joule_cpufreq_journal *j,
                                const char boot_id[JOULE_BOOT_ID_MAX])
{
    memset(j, 0, sizeof(*j));
    memcpy(j->boot_id, boot_id, JOULE_BOOT_ID_MAX);
}

void joule_cpufreq_journal_clear(struct joule_cpufreq_journal *j)
{
    free(j->entry);
    free(j->holder);
    j->entry = NULL;
    j->holder = NULL;
    j->entry_count = j->holder_count = 0;
}

uint64_t joule_cpufreq_holder_byte(const struct joule_cpufreq_holder *h)
{
    return (h->namespace & UINT32_MAX) << 23 | ((uint64_t)h->pid & 0x7fffff);
}

struct joule_cpufreq_entry *
joule_cpufreq_journal_entry(struct joule_cpufreq_journal *j, unsigned policy)
{
    size_t low = 0, high = j->entry_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (j->entry[middle].policy == policy)
            return &j->entry[middle];
        if (j->entry[middle].policy < policy)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Room for one more: arrays grow at powers of two. */
static void *grown(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return reallocarray(array, count ? 2 * count : 1, size);
}

struct joule_cpufreq_entry *
joule_cpufreq_journal_add_entry(struct joule_cpufreq_journal *j,
                                const struct joule_cpufreq_entry *entry)
{
    struct joule_cpufreq_entry *array =
        grown(j->entry, j->entry_count, sizeof(*array));
    size_t at = j->entry_count;

    if (!array)
        return NULL;
    j->entry = array;
    while (at > 0 && array[at - 1].policy > entry->policy)
        at--;
    memmove(array + at + 1, array + at, (j->entry_count - at) * sizeof(*array));
    array[at] = *entry;
    j->entry_count++;
    return &array[at];
}

struct joule_cpufreq_holder *
joule_cpufreq_journal_add_holder(struct joule_cpufreq_journal *j,
                                 const struct joule_cpufreq_holder *holder)
{
    struct joule_cpufreq_holder *array;
    size_t count = j->holder_count;

    if (count >= JOULE_CPUFREQ_HOLDERS_MAX) {
        errno = ENOSPC;
        return NULL;
    }
    array = grown(j->holder, count, sizeof(*array));
    if (!array)
        return NULL;
    j->holder = array;
    array[count] = *holder;
    array[count].number = count ? array[count - 1].number + 1 : 1;
    j->holder_count++;
    return &array[count];
}

void joule_cpufreq_journal_remove_entry(struct joule_cpufreq_journal *j,
                                        unsigned policy)
{
    struct joule_cpufreq_entry *e = joule_cpufreq_journal_entry(j, policy);

    if (!e)
        return;
    memmove(e, e + 1, (size_t)(j->entry + j->entry_count - e - 1) * sizeof(*e));
    j->entry_count--;
}

void joule_cpufreq_journal_remove_holder(struct joule_cpufreq_journal *j,
                                         size_t index)
{
    struct joule_cpufreq_holder *h = j->holder + index;

    memmove(h, h + 1, (j->holder_count - index - 1) * sizeof(*h));
    j->holder_count--;
}
