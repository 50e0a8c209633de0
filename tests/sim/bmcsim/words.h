/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * words.h - "key=value" words with whole numbers, after a table.
 */
#ifndef BMCSIM_WORDS_H
#define BMCSIM_WORDS_H

#include <stddef.h>

#include "common/base/error.h"

struct sim_word {
    const char *name; /* NULL ends a table */
    size_t offset;    /* of the int in the caller's struct */
    int min, max, initial;
};

/*
 * Fill every field of [ret] with its initial value, then with those of
 * [line]: decimal, negative or 0x.  -1 with EINVAL and a sentence for a word
 * that is not of the table, stands twice or is out of range; *ret is then
 * unspecified.
 */
int sim_words_parse(const struct sim_word *table, const char *line, void *ret,
                    struct joule_error *err);

#endif
