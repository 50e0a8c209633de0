/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reply.h - the bytes of an answer.  All of one are put together before the first
 * is sent: clients of pmlib expect each integer, and each name, of one recv.
 *
 *     joule_pm_put_int(&reply, n);
 *     joule_pm_put_text(&reply, name);
 *     if (joule_pm_reply_send(&reply, fd) < 0)
 *         ...
 *
 * After a failed allocation nothing more is put, and nothing sent.
 */
#ifndef JOULE_PMSERVER_REPLY_H
#define JOULE_PMSERVER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct joule_pm_reply {
    unsigned char *data;
    size_t len, room, sent;
    bool failed;
};

void joule_pm_put(struct joule_pm_reply *reply, const void *from, size_t size);
void joule_pm_put_int(struct joule_pm_reply *reply, int32_t value);
void joule_pm_put_float(struct joule_pm_reply *reply, float value);
void joule_pm_put_text(struct joule_pm_reply *reply, const char *text);

/* Room for [size] bytes, which the caller fills; NULL: it has failed.  Good until
 * the next call. */
void *joule_pm_put_room(struct joule_pm_reply *reply, size_t size);

/* There is nothing to send, nor to fail. */
static inline bool joule_pm_reply_is_empty(const struct joule_pm_reply *reply)
{
    return reply->len == 0 && !reply->failed;
}

/* Send what can be sent now.  The number of bytes; -1 with errno, ENOMEM if an
 * allocation has failed. */
int64_t joule_pm_reply_send(struct joule_pm_reply *reply, int fd);

/* Free what it has. */
void joule_pm_reply_clear(struct joule_pm_reply *reply);

#endif
