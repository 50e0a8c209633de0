/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fail.h - let the n-th calloc of the code under test fail.
 *
 * Programs that include it are linked with -Wl,--wrap=calloc.
 */
#ifndef JOULE_TESTS_FAIL_H
#define JOULE_TESTS_FAIL_H

#include <errno.h>
#include <stdlib.h>

/* The next but [fail_calloc] - 1 calls fails; 0: none does. */
static int fail_calloc;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    if (fail_calloc > 0 && --fail_calloc == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_calloc(count, size);
}

#endif
