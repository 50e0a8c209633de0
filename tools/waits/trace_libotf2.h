/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_libotf2.h - how slurm-joule uses libotf2: without its messages, with buffers
 * that are written when they are full, and with its errors as sentences.
 */
#ifndef JOULE_WAITS_TRACE_LIBOTF2_H
#define JOULE_WAITS_TRACE_LIBOTF2_H

#include <otf2/otf2.h>

#include "common/base/error.h"

/* libotf2 prints no messages any more, in the whole process; what it would have said
 * from here on is noted. */
void joule_otf2_silence(void);

/* The first error that libotf2 has had since then: it does not return those of all
 * files that it writes. */
OTF2_ErrorCode joule_otf2_noted(void);

/* One process writes the archive, and full buffers go to its files. */
OTF2_ErrorCode joule_otf2_prepare(OTF2_Archive *archive);

/* 0, or -1 with a sentence: of a disk that is full (ENOSPC, EDQUOT, EFBIG), or else EIO
 * and what libotf2 says about [code]. */
int joule_otf2_check(OTF2_ErrorCode code, struct joule_error *err);

#endif
