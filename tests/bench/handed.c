/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/handed.h"

#include <errno.h>
#include <string.h>

static int read_power(struct joule_meter *meter, struct joule_power *out,
                      struct joule_error *err)
{
    struct handed *h = (struct handed *)meter;
    bool is_given;

    (void)err;
    pthread_mutex_lock(&h->lock);
    h->waiting = true;
    pthread_cond_broadcast(&h->changed);
    while (!h->full && !h->interrupted)
        pthread_cond_wait(&h->changed, &h->lock);
    is_given = h->full;
    h->waiting = h->full = false;
    *out = h->power;
    pthread_mutex_unlock(&h->lock);
    if (is_given)
        return 0;
    errno = ECANCELED;
    return -1;
}

static int remark(struct joule_meter *meter, struct joule_error *ret)
{
    (void)meter;
    (void)ret;
    return 0;
}

static void interrupt(struct joule_meter *meter)
{
    struct handed *h = (struct handed *)meter;

    pthread_mutex_lock(&h->lock);
    h->interrupted = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void destroy(struct joule_meter *meter)
{
    struct handed *h = (struct handed *)meter;

    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
}

static const struct joule_meter_ops ops = {
    .read = read_power,
    .remark = remark,
    .interrupt = interrupt,
    .destroy = destroy,
};

void handed_init(struct handed *h)
{
    memset(h, 0, sizeof(*h));
    h->domain = (struct joule_domain){
        JOULE_DOMAIN_POWER, 0, 0, 0, {1, 0}, 64, 0, 0, true, "Node"};
    h->meter = (struct joule_meter){&ops, &h->domain, 1};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
}

void handed_give(struct handed *h, const struct joule_power *power)
{
    pthread_mutex_lock(&h->lock);
    h->power = *power;
    h->full = true;
    pthread_cond_broadcast(&h->changed);
    while (h->full || !h->waiting)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}
