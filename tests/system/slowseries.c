/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slowseries.c - preloaded into slurmstepd, of which a machine with too little
 * CPU time lets two threads wait at bad moments: the main thread before it ends
 * the profile, and the energy thread while it hands a sample to it, so that
 * most steps end in the middle of a sample.  With JOULE_SLOW_WAIT in the
 * environment it is the energy thread alone, after its sample and before it
 * waits for the next: what it is told meanwhile, it does not hear.  Each time
 * is a line of the file JOULE_SLOW_LOG.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_MS 900 /* of each second */
#define END_MS    1200

#define EXPORT __attribute__((visibility("default")))

/* As libslurmfull has them. */
EXPORT int acct_gather_profile_g_add_sample_data(int dataset_id, void *data,
                                                 time_t sample_time);
EXPORT void acct_gather_profile_endpoll(void);
EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

static void be_slow(long ms, const char *line)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    const char *name = getenv("JOULE_SLOW_LOG");
    int fd = name ? open(name, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    /* A log that lacks a line is what the test looks for. */
    if (fd >= 0 && write(fd, line, strlen(line)) < 0)
        ts.tv_sec = 0;
    if (fd >= 0)
        close(fd);
    nanosleep(&ts, NULL);
}

static bool is_thread(const char *wanted)
{
    char name[16] = "";

    prctl(PR_GET_NAME, name);
    return strcmp(name, wanted) == 0;
}

static bool slow_wait(void)
{
    return getenv("JOULE_SLOW_WAIT") != NULL;
}

int acct_gather_profile_g_add_sample_data(int dataset_id, void *data,
                                          time_t sample_time)
{
    int (*real)(int, void *, time_t) = (int (*)(int, void *, time_t))dlsym(
        RTLD_NEXT, "acct_gather_profile_g_add_sample_data");

    if (!slow_wait() && is_thread("acctg_energy"))
        be_slow(SAMPLE_MS, "sample\n");
    return real ? real(dataset_id, data, sample_time) : -1;
}

void acct_gather_profile_endpoll(void)
{
    static bool before; /* 24.11 and later: once more, to be sure */
    void (*real)(void) =
        (void (*)(void))dlsym(RTLD_NEXT, "acct_gather_profile_endpoll");

    if (!before && !slow_wait())
        be_slow(END_MS, "end\n");
    before = true;
    if (real)
        real();
}

/* glibc has an older one, too, of another kind of condition variable. */
static int real_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *) =
        (int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(
            RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");

    if (!real)
        real = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlsym(
            RTLD_NEXT, "pthread_cond_wait");
    return real(cond, mutex);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (slow_wait() && is_thread("acctg_energy")) {
        pthread_mutex_unlock(mutex);
        be_slow(SAMPLE_MS, "wait\n");
        pthread_mutex_lock(mutex);
    }
    return real_wait(cond, mutex);
}
