/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/hdferror.h"

#include <hdf5.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REASON_MAX 160

void joule_hdf_quiet(void)
{
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

/* Called for each line; the first one is the innermost. */
static herr_t take_first(unsigned n, const H5E_error2_t *line, void *arg)
{
    char *reason = arg;

    if (n == 0 && line->desc)
        snprintf(reason, REASON_MAX, "%s", line->desc);
    return 0;
}

int joule_hdf_error(struct joule_error *err, int errnum, const char *fmt, ...)
{
    char what[JOULE_ERROR_MAX], reason[REASON_MAX] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, reason);
    H5Eclear2(H5E_DEFAULT);
    return joule_error_set(err, errnum, "%s%s%s", what, *reason ? ": " : "",
                           reason);
}
