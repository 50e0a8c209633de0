/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/control.h"
#include "tests/sim/number.h"
#include "tests/sim/talk.h"

#define WAIT_MS 200

/* What a node without nodesim is made of. */
#define FILE_PACKAGES   2
#define FILE_DRAM_SHARE 0.15

struct bmc_feed {
    const struct joule_clock *clock;
    char *nodesim, *file;
    int fd;          /* of the nodesim, -1: not connected */
    double joules;   /* of the file, until last */
    int64_t last_ns; /* 0: no sample yet */
    double last_watts;
};

struct bmc_feed *bmc_feed_create(const char *nodesim, const char *file,
                                 const struct joule_clock *clock,
                                 struct joule_error *err)
{
    struct bmc_feed *feed;

    if (!nodesim == !file) {
        joule_error_set(err, EINVAL, "either a nodesim or a file is needed");
        return NULL;
    }
    feed = calloc(1, sizeof(*feed));
    if (feed) {
        feed->clock = clock;
        feed->fd = -1;
        feed->nodesim = nodesim ? strdup(nodesim) : NULL;
        feed->file = file ? strdup(file) : NULL;
    }
    if (!feed || (!feed->nodesim && !feed->file)) {
        bmc_feed_destroy(feed);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    return feed;
}

static void feed_close(struct bmc_feed *feed)
{
    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
}

void bmc_feed_destroy(struct bmc_feed *feed)
{
    if (!feed)
        return;
    feed_close(feed);
    free(feed->nodesim);
    free(feed->file);
    free(feed);
}

static int nodesim_ask(struct bmc_feed *feed, char *reply, size_t size,
                       struct joule_error *err)
{
    if (feed->fd < 0)
        feed->fd = sim_talk_open(feed->nodesim, SIM_CONTROL_NAME, WAIT_MS, err);
    if (feed->fd < 0)
        return -1;
    if (!sim_talk_exchange(feed->fd, "power", reply, size, err))
        return 0;
    feed_close(feed);
    return -1;
}

static int nodesim_read(struct bmc_feed *feed, struct bmc_sample *ret,
                        struct joule_error *err)
{
    char reply[256];
    bool had = feed->fd >= 0;
    int64_t mono_ns, uw;
    uint64_t nj;
    uint32_t ppm;
    unsigned packages;

    /* A connection of old may be one to a nodesim that is gone. */
    if (nodesim_ask(feed, reply, sizeof(reply), err) &&
        !(had && errno != EAGAIN &&
          !nodesim_ask(feed, reply, sizeof(reply), err)))
        return -1;
    if (sscanf(reply, "%" SCNd64 " %" SCNu64 " %" SCNd64 " %u %" SCNu32,
               &mono_ns, &nj, &uw, &packages, &ppm) != 5 ||
        !packages)
        return joule_error_set(err, EPROTO, "the nodesim at %s says \"%s\"",
                               feed->nodesim, reply);
    *ret = (struct bmc_sample){mono_ns, (double)nj / 1e9, (double)uw / 1e6,
                               packages, ppm / 1e6};
    return 0;
}

static int file_read(struct bmc_feed *feed, struct bmc_sample *ret,
                     struct joule_error *err)
{
    int64_t uw, now_ns = joule_clock_mono_ns(feed->clock);
    int fd = open(feed->file, O_RDONLY | O_CLOEXEC);
    char text[64];
    ssize_t len;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", feed->file);
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (sim_parse_uw(text, &uw))
        return joule_error_set(err, EINVAL, "%s holds \"%s\", not watts",
                               feed->file, text);
    if (feed->last_ns)
        feed->joules += feed->last_watts * (double)(now_ns - feed->last_ns) /
                        JOULE_NS_PER_S;
    feed->last_ns = now_ns;
    feed->last_watts = (double)uw / 1e6;
    *ret = (struct bmc_sample){now_ns, feed->joules, feed->last_watts,
                               FILE_PACKAGES, FILE_DRAM_SHARE};
    return 0;
}

int bmc_feed_read(struct bmc_feed *feed, struct bmc_sample *ret_sample,
                  struct joule_error *err)
{
    return feed->nodesim ? nodesim_read(feed, ret_sample, err)
                         : file_read(feed, ret_sample, err);
}
