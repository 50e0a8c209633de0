/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.h - names, each once, by number from 0 on. */
#ifndef JOULE_REPORT_NAMES_H
#define JOULE_REPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* All zeros: empty. */
struct joule_names {
    char **name; /* its own copies */
    size_t count, room;
    uint32_t *slot; /* of a name's hash: its number + 1; 0: free */
    size_t slots;
};

/* The number of a name, which is new where it is count - 1 afterwards and was not
 * before.  -1 with ENOMEM. */
int joule_names_number(struct joule_names *names, const char *name,
                       size_t *ret);
void joule_names_free(struct joule_names *names);

#endif
