/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FIRST 256
#define KEEP  4096 /* bytes; more are freed when they are sent */

void *joule_pm_put_room(struct joule_pm_reply *reply, size_t size)
{
    size_t room = reply->room ? reply->room : FIRST;
    unsigned char *more;

    while (room < reply->len + size)
        room *= 2;
    if (!reply->failed && room > reply->room) {
        more = realloc(reply->data, room);
        if (!more)
            reply->failed = true;
        else {
            reply->data = more;
            reply->room = room;
        }
    }
    if (reply->failed)
        return NULL;
    reply->len += size;
    return reply->data + reply->len - size;
}

void joule_pm_put(struct joule_pm_reply *reply, const void *from, size_t size)
{
    void *to = joule_pm_put_room(reply, size);

    if (to && size > 0)
        memcpy(to, from, size);
}

void joule_pm_put_int(struct joule_pm_reply *reply, int32_t value)
{
    joule_pm_put(reply, &value, sizeof(value));
}

void joule_pm_put_float(struct joule_pm_reply *reply, float value)
{
    joule_pm_put(reply, &value, sizeof(value));
}

void joule_pm_put_text(struct joule_pm_reply *reply, const char *text)
{
    size_t length = strlen(text);

    joule_pm_put_int(reply, (int32_t)length);
    joule_pm_put(reply, text, length);
}

int64_t joule_pm_reply_send(struct joule_pm_reply *reply, int fd)
{
    ssize_t n;

    if (reply->failed) {
        errno = ENOMEM;
        return -1;
    }
    do
        n = send(fd, reply->data + reply->sent, reply->len - reply->sent,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    reply->sent += (size_t)n;
    if (reply->sent < reply->len)
        return n;
    if (reply->room > KEEP)
        joule_pm_reply_clear(reply);
    reply->len = reply->sent = 0;
    return n;
}

void joule_pm_reply_clear(struct joule_pm_reply *reply)
{
    free(reply->data);
    *reply = (struct joule_pm_reply){0};
}
