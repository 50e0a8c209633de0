/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdferror.h - what libhdf5 has to say, in one sentence.
 *
 * libhdf5 prints a stack of a dozen lines unless it is told not to.  Its
 * innermost line is the reason; the rest is its way there.
 */
#ifndef JOULE_LIBHDF5_HDFERROR_H
#define JOULE_LIBHDF5_HDFERROR_H

#include "common/base/error.h"

/* No lines on stderr from this thread's calls any more; no code from outside
 * (filters that a file asks for) is loaded into this process.  Before the
 * first use of libhdf5. */
void joule_hdf_quiet(void);

/* "WHAT: REASON", errno [errnum], the stack cleared.  Always -1. */
int joule_hdf_error(struct joule_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
