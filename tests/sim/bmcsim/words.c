/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/words.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "common/base/parse.h"

static int number_parse(const char *text, int *ret)
{
    int sign = *text == '-' ? -1 : 1;
    uint64_t value;

    if (joule_parse_hex64(text + (sign < 0), &value) || value > INT_MAX)
        return -1;
    *ret = sign * (int)value;
    return 0;
}

static int word_parse(const struct sim_word *table, char *text, void *ret,
                      uint64_t *seen, struct joule_error *err)
{
    const struct sim_word *w = table;
    char *value = strchrnul(text, '=');
    uint64_t bit;
    int number;

    if (*value)
        *value++ = '\0';
    while (w->name && strcmp(w->name, text))
        w++;
    if (!w->name)
        return joule_error_set(err, EINVAL, "there is no \"%s\"", text);
    bit = UINT64_C(1) << (w - table);
    if (*seen & bit)
        return joule_error_set(err, EINVAL, "%s stands twice", text);
    if (number_parse(value, &number) || number < w->min || number > w->max)
        return joule_error_set(err, EINVAL, "%s=%s: allowed are %d to %d", text,
                               value, w->min, w->max);
    *seen |= bit;
    *(int *)((char *)ret + w->offset) = number;
    return 0;
}

int sim_words_parse(const struct sim_word *table, const char *line, void *ret,
                    struct joule_error *err)
{
    char copy[1024], *rest = copy, *text;
    uint64_t seen = 0;

    if (strlen(line) >= sizeof(copy))
        return joule_error_set(err, EINVAL, "the line is too long");
    strcpy(copy, line);
    for (const struct sim_word *w = table; w->name; w++)
        *(int *)((char *)ret + w->offset) = w->initial;
    while ((text = strsep(&rest, " \t\n")))
        if (*text && word_parse(table, text, ret, &seen, err))
            return -1;
    return 0;
}
