/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *joule_level_name(enum joule_level level)
{
    static const char *const names[JOULE_LEVELS] = {
        [JOULE_NOTE] = "note",
        [JOULE_WARNING] = "warning",
        [JOULE_FAULT] = "error",
    };

    return names[level];
}

void joule_finding_add(struct joule_findings *list, enum joule_level level,
                       const char *id, const struct joule_conf_place *place,
                       const char *advice, const char *fmt, ...)
{
    char text[JOULE_ERROR_MAX];
    struct joule_finding *f;
    va_list ap;

    list->total[level]++;
    if (list->count == JOULE_FINDINGS_MAX)
        return;
    f = &list->list[list->count++];
    memset(f, 0, sizeof(*f));
    f->level = level;
    f->id = id;
    if (place)
        f->place = *place;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    joule_error_set(&f->text, 0, "%s", text);
    if (advice)
        joule_error_set(&f->advice, 0, "%s", advice);
}
