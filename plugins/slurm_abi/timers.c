/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/timers.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"

#define FIRST_NS  (10 * JOULE_NS_PER_MS)
#define PERIOD_NS (100 * JOULE_NS_PER_MS)

enum { ENERGY, TASK, FILESYSTEM, NETWORK, COUNT };

struct joule_timers {
    struct {
        int period_s;
        time_t last;
        pthread_cond_t signal;
        pthread_mutex_t mutex; /* not ours to take: Slurm waits with it */
    } timer[COUNT];
};

struct joule_timers *joule_timers_find(void)
{
    void *timers = dlsym(RTLD_DEFAULT, "acct_gather_profile_timer"), *symbol;
    Dl_info info;

    /* All that can be seen of its layout. */
    if (!timers || !dladdr1(timers, &info, &symbol, RTLD_DL_SYMENT) ||
        !symbol ||
        ((const ElfW(Sym) *)symbol)->st_size != sizeof(struct joule_timers))
        return NULL;
    return timers;
}

int joule_timers_energy_s(const struct joule_timers *timers)
{
    return timers ? timers->timer[ENERGY].period_s : 0;
}

/* Slurm passes over a timer without a period. */
void joule_timers_stop_energy(struct joule_timers *timers)
{
    if (timers)
        __atomic_store_n(&timers->timer[ENERGY].period_s, 0, __ATOMIC_RELAXED);
}

static void signal_all(void *arg)
{
    struct joule_timers *timers = arg;

    for (int i = 0; i < COUNT; i++)
        pthread_cond_signal(&timers->timer[i].signal);
}

struct joule_ticker *joule_timers_wake(struct joule_timers *timers,
                                       struct joule_error *err)
{
    return joule_ticker_create(FIRST_NS, PERIOD_NS, signal_all, timers, err);
}
