/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/sh5util/cells.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/say.h"

int joule_text_input(int dir_fd, const char *name, const char *path,
                     struct stat *ret_st, struct joule_error *err)
{
    int fd = openat(dir_fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int saved;

    if (fd < 0 && errno == ELOOP)
        return joule_error_set(err, ELOOP, "%s is a link: name the file itself",
                               path);
    if (fd < 0)
        return joule_error_set(err, errno, "Failed to open %s: %m", path);
    if (fstat(fd, ret_st) < 0)
        joule_error_set(err, errno, "cannot examine %s: %m", path);
    else if (!S_ISREG(ret_st->st_mode))
        joule_error_set(err, EINVAL, "%s is no regular file", path);
    else if (geteuid() == 0 && ret_st->st_uid != 0)
        joule_error_set(err, EPERM,
                        "%s belongs to user %u, whom -u must name if root is "
                        "to read it",
                        path, (unsigned)ret_st->st_uid);
    else
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int joule_text_write(struct joule_text *text, const char *data, size_t len,
                     struct joule_error *err)
{
    while (len > 0) {
        ssize_t n = write(text->out.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return joule_error_set(err, errno, "cannot write %s: %m",
                                   text->out.dir_fd < 0 ? "the output"
                                                        : text->out.name);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int joule_text_rows(struct joule_text *text, const char *data, size_t len,
                    struct joule_error *err)
{
    if (text->json && !text->has_rows && len > 0) {
        data++;
        len--;
    }
    text->has_rows = true;
    return joule_text_write(text, data, len, err);
}

int joule_text_head(struct joule_text *text, const char *job,
                    const char *const *columns, size_t count,
                    struct joule_error *err)
{
    struct joule_cells cells;
    size_t room = 64 + strlen(job);
    char *head, *at;
    int rc;

    for (size_t i = 0; i < count; i++)
        room += joule_cells_room(1, strlen(columns[i]));
    head = malloc(room);
    if (!head)
        return joule_error_set(err, ENOMEM, "out of memory");
    at = head;
    if (text->json)
        at += sprintf(at, "{\"job\": \"%s\",\n\"columns\": ", job);
    joule_cells_begin(&cells, at, text->json);
    if (text->json)
        cells.at = at + 1, *at = '[';
    for (size_t i = 0; i < count; i++)
        joule_cells_text(&cells, columns[i], strlen(columns[i]));
    joule_cells_end(&cells);
    if (text->json)
        cells.at += sprintf(cells.at, ",\n\"rows\": [");
    rc = joule_text_write(text, head, (size_t)(cells.at - head), err);
    free(head);
    return rc;
}

int joule_text_tail(struct joule_text *text, struct joule_error *err)
{
    return text->json ? joule_text_write(text, "\n]}\n", 4, err) : 0;
}

int joule_text_open(const struct joule_text *text, struct joule_error *err)
{
    int fd = fcntl(text->fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        joule_error_set(err, errno, "cannot use the job file: %m");
    return fd;
}

void joule_text_failed(struct joule_text *text, const char *input,
                       const char *sentence)
{
    text->failed++;
    joule_say("%s: %s", input, sentence);
}
