/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * powerbmc.c - the BMC as a module of OpenIPMI's ipmi_sim (2.0.33
 * to 2.0.37):
 *
 *     loadlib "powerbmc.so" "DIR"
 *
 * DIR/powerbmc.conf is read at the start (bmc.h); commands come over
 * DIR/control; DIR/ready appears when the BMC answers.
 *
 * Handlers are called by ipmi_sim's one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <OpenIPMI/serv.h>
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/ipmi_auth.h>

#include "tests/sim/bmcsim/bmc.h"
#include "tests/sim/talk.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    NETFN_GROUP = 0x2C,
    CMD_GET_SENSOR_READING = 0x2D,
    GROUP_DCMI = 0xDC,
    PRIVILEGE_USER = 2,
    MEDIUM_LAN = 4,
    LATE_MAX = 256, /* answers that wait; more are lost */
    ANSWER_SIZE = 256,
};

/* ipmi_sim exports its table of handlers; its headers do not name it. */
extern cmd_handler_f sensor_event_netfn_handlers[256];

struct module {
    sys_data_t *sys;
    struct bmc *bmc;
    struct sim_talk *talk;
    cmd_handler_f stock_reading; /* for sensors that are not ours */
    ipmi_timer_t *timer;
    channel_t *lan;
    int dir_fd;
    unsigned late;
    bool mute; /* the feed has failed and that has been said */
};

/* ipmi_sim gives its hooks no argument of ours and hands nothing from init to
 * post_init. */
static struct module module;

/* Answers. */

static void on_reading(lmc_data_t *mc, msg_t *msg, unsigned char *answer,
                       unsigned int *len, void *arg)
{
    if (!msg->len || !bmc_sensor_answer(module.bmc, msg->data[0], answer, len))
        module.stock_reading(mc, msg, answer, len, arg);
}

static void on_dcmi(lmc_data_t *mc, msg_t *msg, unsigned char *answer,
                    unsigned int *len, void *arg)
{
    (void)mc;
    (void)arg;
    bmc_dcmi_answer(module.bmc, msg->cmd, msg->data, msg->len, answer, len);
}

/*
 * Who has a message in the end.  Up to 2.0.33 the hooks that answer it, or
 * drop it, have to free it.  Later it is on its caller's stack, as is the
 * address that it came from: what is answered later is a copy, whose address
 * is that of its session.
 */
#if __has_include(<OpenIPMI/sysinfo.h>)
static msg_t *message_keep(msg_t *msg)
{
    msg_t *copy = module.sys->alloc(module.sys, sizeof(*copy));

    if (copy) {
        *copy = *msg;
        copy->src_addr = NULL;
        copy->src_len = 0;
        copy->data = NULL;
        copy->len = 0;
    }
    return copy;
}

static void message_drop(msg_t *msg)
{
    (void)msg;
}
#else
static msg_t *message_keep(msg_t *msg)
{
    return msg;
}

static void message_drop(msg_t *msg)
{
    module.sys->free(module.sys, msg);
}
#endif

/* An answer that is sent later; ipmi_sim drops it if its session is gone. */
struct late {
    channel_t *channel;
    msg_t *msg;
    rsp_msg_t rsp;
    uint8_t data[ANSWER_SIZE];
    ipmi_timer_t *timer;
};

static void late_send(void *arg)
{
    struct late *late = arg;

    late->channel->return_rsp(late->channel, late->msg, &late->rsp);
    module.sys->free(module.sys, late->msg);
    module.sys->free_timer(late->timer);
    module.late--;
    free(late);
}

static int late_add(channel_t *channel, msg_t *msg, const rsp_msg_t *rsp,
                    int ms)
{
    struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    struct late *late;

    if (module.late == LATE_MAX || rsp->data_len > ANSWER_SIZE)
        return -1;
    late = calloc(1, sizeof(*late));
    if (!late)
        return -1;
    late->channel = channel;
    late->msg = message_keep(msg);
    late->rsp = *rsp;
    memcpy(late->data, rsp->data, rsp->data_len);
    late->rsp.data = late->data;
    if (!late->msg ||
        module.sys->alloc_timer(module.sys, late_send, late, &late->timer)) {
        if (late->msg != msg)
            module.sys->free(module.sys, late->msg);
        free(late);
        return -1;
    }
    module.late++;
    module.sys->start_timer(late->timer, &wait);
    return 0;
}

/* Hooks of the channels. */

/* In-session requests over LAN, also those that the LAN code answers itself
 * (Close Session). */
static int on_lan_request(channel_t *channel, msg_t *msg)
{
    (void)channel;
    bmc_count(module.bmc, msg->netfn, msg->cmd);
    return 0;
}

/* 1: the answer is in our hands. */
static int on_answer(channel_t *channel, msg_t *msg, rsp_msg_t *rsp)
{
    int ms;

    /* Of QEMU's (a serial line, for ipmi_sim) there is no other hook. */
    if (channel->medium_type != MEDIUM_LAN)
        bmc_count(module.bmc, msg->netfn, msg->cmd);
    switch (bmc_answer_fate(module.bmc, msg->netfn, msg->cmd, &ms)) {
    case BMC_BLOCK:
        usleep((useconds_t)ms * 1000);
        return 0;
    case BMC_DELAY:
        if (!late_add(channel, msg, rsp, ms))
            return 1;
        /* fall through */
    case BMC_DROP:
        message_drop(msg);
        return 1;
    default:
        return 0;
    }
}

/* DCMI is for users (DCMI 1.5, table 6-1); ipmi_sim wants administrators for
 * every group extension. */
static int on_permission(unsigned char privilege, unsigned char netfn,
                         unsigned char cmd)
{
    (void)cmd;
    return netfn == NETFN_GROUP && privilege >= PRIVILEGE_USER
               ? IPMI_PRIV_PERMITTED
               : IPMI_PRIV_INVALID; /* let ipmi_sim decide */
}

static unsigned open_sessions(void *arg)
{
    (void)arg;
    return module.lan ? module.lan->active_sessions : 0;
}

/* Events. */

static void timer_start(void)
{
    int64_t now_ns = joule_clock_mono_ns(module.bmc->clock);
    int64_t ns = bmc_value_next_ns(&module.bmc->value, now_ns) - now_ns;
    struct timeval wait = {.tv_sec = ns / JOULE_NS_PER_S,
                           .tv_usec = ns % JOULE_NS_PER_S / 1000 + 1};

    module.sys->start_timer(module.timer, &wait);
}

static void on_timer(void *arg)
{
    struct joule_error err = {""};
    bool failed = bmc_sample(module.bmc, &err) < 0;

    (void)arg;
    if (failed && !module.mute)
        fprintf(stderr, "powerbmc: %s\n", err.text);
    module.mute = failed;
    timer_start();
}

static void on_talk(int fd, void *arg)
{
    (void)fd;
    (void)arg;
    sim_talk_serve(module.talk);
}

/* What ipmi_sim calls. */

EXPORT int ipmi_sim_module_print_version(sys_data_t *sys, char *options);
EXPORT int ipmi_sim_module_init(sys_data_t *sys, const char *options);
EXPORT void ipmi_sim_module_post_init(sys_data_t *sys);

int ipmi_sim_module_print_version(sys_data_t *sys, char *options)
{
    (void)sys;
    (void)options;
    puts("powerbmc of slurm-joule");
    return 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options)
{
    struct joule_error err = {""};
    int rc = EINVAL;

    module.sys = sys;
    module.dir_fd =
        open(options ? options : "", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (module.dir_fd < 0) {
        fprintf(stderr, "powerbmc: cannot open \"%s\": %m\n",
                options ? options : "");
        return EINVAL;
    }
    module.bmc = bmc_create(module.dir_fd, &joule_clock_system, &err);
    if (module.bmc)
        module.talk = sim_talk_create(module.dir_fd, BMC_CONTROL_NAME,
                                      bmc_command, module.bmc, &err);
    if (module.talk) {
        module.stock_reading =
            sensor_event_netfn_handlers[CMD_GET_SENSOR_READING];
        /* What registers it has other arguments in each version. */
        sensor_event_netfn_handlers[CMD_GET_SENSOR_READING] = on_reading;
        ipmi_emu_register_group_extension_handler(GROUP_DCMI, on_dcmi, NULL);
        rc = 0;
    } else {
        fprintf(stderr, "powerbmc: %s\n", err.text);
    }
    return rc;
}

static int hooks_set(sys_data_t *sys)
{
    ipmi_io_t *io;

    /* The channels of the MC that the configuration named last. */
    for (int i = 0; sys->chan_set && i < IPMI_MAX_CHANNELS; i++) {
        channel_t *channel = sys->chan_set[i];

        if (!channel || !channel->return_rsp)
            continue;
        if (channel->medium_type == MEDIUM_LAN) {
            module.lan = channel;
            channel->oem.oem_handle_msg = on_lan_request;
            channel->oem.oem_check_permitted = on_permission;
        }
        channel->oem.oem_handle_rsp = on_answer;
    }
    module.bmc->sessions = open_sessions;
    return sys->add_io_hnd(sys, sim_talk_fd(module.talk), on_talk, NULL, &io) ||
           sys->alloc_timer(sys, on_timer, NULL, &module.timer);
}

void ipmi_sim_module_post_init(sys_data_t *sys)
{
    int fd;

    if (hooks_set(sys)) {
        fprintf(stderr, "powerbmc: cannot watch timers and sockets\n");
        exit(EXIT_FAILURE);
    }
    on_timer(NULL);
    fd = openat(module.dir_fd, "ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        fprintf(stderr, "powerbmc: cannot create ready: %m\n");
        exit(EXIT_FAILURE);
    }
    close(fd);
}
