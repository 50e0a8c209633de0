/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/sampler/child.h"

#define DETACH_MS 200

/* The process that was started goes at once; its child stays. */
static void reap(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = JOULE_NS_PER_MS};

    for (int i = 0; i < DETACH_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
}

int joule_keeper_start(const char *program,
                       const struct joule_control_config *control,
                       int64_t period_ns, const char *log,
                       struct joule_error *err)
{
    struct joule_keeper_config config;
    struct joule_child child;
    ssize_t n;

    memset(&config, 0, sizeof(config));
    config.version = JOULE_KEEPER_VERSION;
    config.size = sizeof(config);
    config.period_ns = period_ns;
    config.control = *control;
    snprintf(config.log, sizeof(config.log), "%s", log);
    joule_child_init(&child);
    if (joule_child_start(&child, program, err) < 0)
        return -1;
    n = send(child.fd, &config, sizeof(config), MSG_NOSIGNAL);
    if (n != sizeof(config)) {
        joule_error_set(err, EPIPE, "%s has ended at once", program);
        joule_child_destroy(&child);
        errno = EPIPE;
        return -1;
    }
    reap(child.pid);
    return child.fd;
}

struct keeper {
    struct joule_control control;
    void (*say)(void *arg, const char *text);
    void *arg;
    char said[JOULE_ERROR_MAX];
};

static void say_once(struct keeper *w, const char *text)
{
    if (strcmp(w->said, text) == 0)
        return;
    snprintf(w->said, sizeof(w->said), "%s", text);
    w->say(w->arg, text);
}

static void look(struct keeper *w)
{
    struct joule_control_notes notes = {.count = 0};
    struct joule_error err = {""};
    char text[128];
    int found = joule_control_recover(&w->control, &notes, &err);

    if (found > 0) {
        snprintf(text, sizeof(text),
                 "put back the CPU frequencies of %d step%s that ended without "
                 "doing so",
                 found, found == 1 ? "" : "s");
        w->say(w->arg, text);
    }
    if (found < 0)
        say_once(w, err.text);
    else if (notes.count > 0)
        say_once(w, notes.first.text);
    else
        w->said[0] = '\0';
}

/* A journal that nobody can read is not waited for. */
static bool has_work(const struct keeper *w)
{
    return w->control.store.dir_fd >= 0 && !*w->said &&
           joule_cpufreq_store_exists(&w->control.store);
}

void joule_keeper_run(int fd, int root_fd,
                      const struct joule_keeper_config *config,
                      void (*say)(void *arg, const char *text), void *arg)
{
    struct keeper w = {.say = say, .arg = arg};
    bool is_alone = false;

    joule_control_init(&w.control, root_fd, &config->control);
    do {
        /* Nothing is ever sent: what can be read is the end. */
        struct pollfd end = {.fd = is_alone ? -1 : fd, .events = POLLIN};

        look(&w);
        if (poll(&end, 1, (int)(config->period_ns / JOULE_NS_PER_MS)) > 0)
            is_alone = true;
    } while (!is_alone || has_work(&w));
    joule_control_destroy(&w.control);
}
