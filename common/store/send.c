/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/send.h"

#include "common/store/record.h"

static int send_all(struct joule_reader *reader, const char *path,
                    const char *as, enum joule_walk how,
                    const struct joule_visitor *v, struct joule_error *err)
{
    if ((as && v->group(v->arg, as, err) < 0) ||
        joule_reader_walk(reader, path, how, v, err) < 0 ||
        (as && v->leave(v->arg, err) < 0))
        return -1;
    if (!joule_reader_is_cut(reader))
        return 0;
    return v->note(v->arg, "the end of the file is missing", err);
}

int joule_send_file(int fd, const char *path, const char *as,
                    enum joule_walk how, struct joule_out *out,
                    struct joule_error *err)
{
    const struct joule_visitor sender = joule_record_sender(out);
    struct joule_reader *reader;
    int rc;

    reader = joule_reader_open(fd, err);
    if (!reader)
        return -1;
    rc = send_all(reader, path, as, how, &sender, err);
    joule_reader_close(reader);
    return rc;
}
