/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/source/source.h"

#include <errno.h>

void joule_source_destroy(struct joule_source *source)
{
    int saved = errno;

    if (!source)
        return;
    source->ops->destroy(source);
    errno = saved;
}

void joule_source_end(struct joule_source *source, struct joule_power *out)
{
    struct joule_error err;

    (void)source->ops->read_power(source, out, &err);
}
