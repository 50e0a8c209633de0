/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * send.h - what a worker (pool.h) does with a profile file: read it (reader.h)
 * and send what is in it (record.h).
 */
#ifndef JOULE_STORE_SEND_H
#define JOULE_STORE_SEND_H

#include "common/base/error.h"
#include "common/store/pool.h"
#include "common/store/reader.h"

/*
 * Everything below [path] of the file open as [fd]; if [as] is not NULL, as if
 * it were in a group of that name.  That the end of the file is missing is
 * sent as a note.  -1 as joule_reader_open and joule_reader_walk say.
 */
int joule_send_file(int fd, const char *path, const char *as,
                    enum joule_walk how, struct joule_out *out,
                    struct joule_error *err);

#endif
