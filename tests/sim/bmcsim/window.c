/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/window.h"

static void bucket_take(struct bmc_bucket *b, double watts, int64_t ns)
{
    b->joules += watts * (double)ns / JOULE_NS_PER_S;
    b->ns += ns;
    if (watts < b->min_w)
        b->min_w = watts;
    if (watts > b->max_w)
        b->max_w = watts;
}

static struct bmc_bucket bucket_new(int64_t number, double watts)
{
    return (struct bmc_bucket){
        .number = number, .min_w = watts, .max_w = watts};
}

static void bucket_add(struct bmc_bucket *b, int64_t number, double watts,
                       int64_t ns)
{
    if (b->number != number)
        *b = bucket_new(number, watts);
    bucket_take(b, watts, ns);
}

void bmc_window_add(struct bmc_window *window, int64_t mono_ns, double watts)
{
    if (!window->last_ns) {
        window->start_ns = window->last_ns = mono_ns;
        window->ever = bucket_new(0, watts);
    }
    /* The last power has been shown until now. */
    if (mono_ns - window->last_ns > BMC_BUCKETS * BMC_BUCKET_NS)
        window->last_ns = mono_ns - BMC_BUCKETS * BMC_BUCKET_NS;
    while (window->last_ns < mono_ns) {
        int64_t number = window->last_ns / BMC_BUCKET_NS;
        int64_t end_ns = (number + 1) * BMC_BUCKET_NS;
        int64_t ns;

        if (end_ns > mono_ns)
            end_ns = mono_ns;
        ns = end_ns - window->last_ns;
        bucket_add(&window->bucket[number % BMC_BUCKETS], number,
                   window->last_w, ns);
        bucket_take(&window->ever, window->last_w, ns);
        window->last_ns = end_ns;
    }
    bucket_add(&window->bucket[mono_ns / BMC_BUCKET_NS % BMC_BUCKETS],
               mono_ns / BMC_BUCKET_NS, watts, 0);
    bucket_take(&window->ever, watts, 0);
    window->last_w = watts;
}

struct bmc_statistics bmc_window_over(const struct bmc_window *window,
                                      int64_t span_ns)
{
    int64_t newest = window->last_ns / BMC_BUCKET_NS;
    int64_t oldest = newest - span_ns / BMC_BUCKET_NS;
    struct bmc_bucket sum = bucket_new(0, window->last_w);

    if (!span_ns) {
        sum = window->ever;
    } else {
        for (int i = 0; i < BMC_BUCKETS; i++) {
            const struct bmc_bucket *b = &window->bucket[i];

            if (b->number <= oldest || b->number > newest)
                continue;
            bucket_take(&sum, b->min_w, 0);
            bucket_take(&sum, b->max_w, 0);
            sum.joules += b->joules;
            sum.ns += b->ns;
        }
    }
    return (struct bmc_statistics){
        .min_w = sum.min_w,
        .max_w = sum.max_w,
        .mean_w = sum.ns ? sum.joules * JOULE_NS_PER_S / (double)sum.ns
                         : window->last_w,
        .span_ns = span_ns ? sum.ns : window->last_ns - window->start_ns,
    };
}
