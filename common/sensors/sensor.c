/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sensor.h"

#include <errno.h>
#include <string.h>

void joule_sensor_init(struct joule_sensor *sensor,
                       const struct joule_sensor_ops *ops,
                       const struct joule_clock *clock,
                       const struct joule_domain *domains, size_t domain_count)
{
    sensor->ops = ops;
    sensor->clock = clock;
    sensor->domains = domains;
    sensor->domain_count = domain_count;
    sensor->wrap_ns = joule_domains_wrap_ns(domains, domain_count);
    sensor->state.domain_key = joule_domains_key(domains, domain_count);
}

static bool is_sound(const struct joule_sensor_state *s, int64_t now_ns)
{
    for (size_t i = 0; i < s->counters; i++)
        if (!joule_counter_check(&s->counter[i], now_ns))
            return false;
    for (size_t i = 0; i < s->integrators; i++)
        if (!joule_integrator_check(&s->integrator[i], now_ns))
            return false;
    return !s->is_fused || joule_fused_check(&s->fused, now_ns);
}

bool joule_sensor_resume(struct joule_sensor *sensor,
                         const struct joule_sensor_state *state)
{
    struct joule_sensor_state *own = &sensor->state;

    if (state->domain_key != own->domain_key ||
        state->counters != own->counters ||
        state->integrators != own->integrators ||
        state->is_fused != own->is_fused ||
        !is_sound(state, joule_clock_mono_ns(sensor->clock)))
        return false;
    own->fused = state->fused;
    memcpy(own->counter, state->counter,
           own->counters * sizeof(own->counter[0]));
    memcpy(own->integrator, state->integrator,
           own->integrators * sizeof(own->integrator[0]));
    if (sensor->ops->resumed)
        sensor->ops->resumed(sensor);
    return true;
}

void joule_sensor_destroy(struct joule_sensor *sensor)
{
    int saved = errno;

    if (!sensor)
        return;
    sensor->ops->destroy(sensor);
    errno = saved;
}
