/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * list.h - arrays that grow: elements, how many there are, and for how many there is
 * room.
 *
 *     struct thing *thing = NULL;
 *     size_t things = 0, room = 0;
 *
 *     if (joule_list_grow(&thing, things, 1, &room, sizeof(*thing)) == 0)
 *         thing[things++] = ...
 *     free(thing);
 */
#ifndef JOULE_BASE_LIST_H
#define JOULE_BASE_LIST_H

#include <stddef.h>
#include <stdlib.h>

#define JOULE_LIST_FIRST 16 /* elements, when there is the first */

/* Room for [more] elements of [size] bytes behind the [count] that are in the array at
 * *array, which may move.  0, or -1 with errno ENOMEM: all is as it was. */
static inline int joule_list_grow(void *array, size_t count, size_t more,
                                  size_t *room, size_t size)
{
    size_t wanted = *room ? *room : JOULE_LIST_FIRST;
    void *bigger;

    if (count + more <= *room)
        return 0;
    while (wanted < count + more)
        wanted *= 2;
    bigger = reallocarray(*(void **)array, wanted, size);
    if (!bigger)
        return -1;
    *(void **)array = bigger;
    *room = wanted;
    return 0;
}

#endif
