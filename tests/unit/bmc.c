/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/bmc.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "/usr/bin/ipmi_sim"
#define POLL_MS 20

static void die(const char *what)
{
    fprintf(stderr, "bmc: %s: %s\n", what, strerror(errno));
    abort();
}

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

bool bmc_installed(void)
{
    return access(PROGRAM, X_OK) == 0;
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        die("port");
    close(fd);
    return ntohs(at.sin_port);
}

void bmc_create(struct bmc *bmc)
{
    memset(bmc, 0, sizeof(*bmc));
    snprintf(bmc->dir, sizeof(bmc->dir), "/tmp/joule-bmc-XXXXXX");
    if (!mkdtemp(bmc->dir))
        die(bmc->dir);
    bmc->port = free_port();
}

static FILE *create(const struct bmc *bmc, const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", bmc->dir, name);
    file = fopen(path, "we");
    if (!file)
        die(path);
    return file;
}

void bmc_file(struct bmc *bmc, const char *name, const char *text)
{
    char from[128], to[128];
    FILE *file = create(bmc, "new");

    fputs(text, file);
    fclose(file);
    snprintf(from, sizeof(from), "%s/new", bmc->dir);
    snprintf(to, sizeof(to), "%s/%s", bmc->dir, name);
    if (rename(from, to) < 0)
        die(to);
}

static void write_value(struct bmc *bmc, unsigned number, int value)
{
    char name[16], text[16];

    snprintf(name, sizeof(name), "s%u", number);
    snprintf(text, sizeof(text), "%d\n", value);
    bmc_file(bmc, name, text);
}

void bmc_watts(struct bmc *bmc, unsigned number, int watts)
{
    write_value(bmc, number, watts);
    sleep_ms(3 * POLL_MS);
}

static void write_conf(struct bmc *bmc)
{
    FILE *file = create(bmc, "lan.conf");

    fprintf(file,
            "name \"bmc\"\nset_working_mc 0x20\n  startlan 1\n"
            "    addr 127.0.0.1 %u\n    priv_limit admin\n"
            "    allowed_auths_callback none md2 md5 straight\n"
            "    allowed_auths_user none md2 md5 straight\n"
            "    allowed_auths_operator none md2 md5 straight\n"
            "    allowed_auths_admin none md2 md5 straight\n"
            "    guid a123456789abcdefa123456789abcdef\n  endlan\n"
            "  user 1 true \"\" \"anon\" user 10 none md2 md5 straight\n"
            "  user 2 true \"%s\" \"%s\" admin 10 none md2 md5 straight\n",
            bmc->port, BMC_USER, BMC_PASSWORD);
    if (bmc->module)
        fprintf(file, "loadlib %s\n", bmc->module);
    fclose(file);
}

/* IPMI 2.0, table 43-1. */
static void write_record(FILE *file, unsigned id, const struct bmc_sensor *s)
{
    size_t len = strlen(s->name);
    uint8_t r[48] = {0};

    r[0] = (uint8_t)id;
    r[2] = 0x51;
    r[3] = 1;
    r[4] = (uint8_t)(43 + len);
    r[5] = 0x20;
    r[7] = s->number;
    r[8] = s->entity ? s->entity : 7;
    r[9] = 1;
    r[10] = s->no_scan ? 0 : 0x45;
    r[12] = 0x0B;
    r[13] = 1;
    r[20] = (uint8_t)(s->format << 6);
    r[21] = s->unit;
    r[24] = s->m;
    r[29] = (uint8_t)(s->r_exp << 4);
    r[34] = 0xFF;
    r[47] = (uint8_t)(0xC0 | len);
    fprintf(file, "main_sdr_add 0x20");
    for (size_t i = 0; i < sizeof(r); i++)
        fprintf(file, " 0x%02x", r[i]);
    for (size_t i = 0; i < len; i++)
        fprintf(file, " 0x%02x", (unsigned char)s->name[i]);
    fprintf(file, "\n");
}

static void write_emu(struct bmc *bmc, const struct bmc_sensor *sensors,
                      int count)
{
    FILE *file = create(bmc, "emu");

    fprintf(file,
            "mc_setbmc 0x20\n"
            "mc_add 0x20 0x20 no-device-sdrs 0x01 0x01 0x50 0x9f 0x1291 "
            "0x0f02\nsel_enable 0x20 1000 0x0a\n"
            "main_sdr_add 0x20 0x01 0x00 0x51 0x12 0x0e 0x20 0x00 0x00 0x8f "
            "0x00 0x00 0x00 0x07 0x01 0x00 0xc3 0x42 0x4d 0x43\n");
    for (int i = 0; i < count; i++)
        write_record(file, (unsigned)i + 2, &sensors[i]);
    fprintf(file, "sensor_add 0x20 0 0 35 0x6f event-only\n");
    for (int i = 0; i < count; i++) {
        const struct bmc_sensor *s = &sensors[i];

        if (s->absent)
            continue;
        /* ipmi_sim 2.0.37 gives no reading of a sensor that is not polled. */
        if (s->raw >= 0)
            write_value(bmc, s->number, s->raw);
        fprintf(file,
                "sensor_add 0x20 0 %u 0x0b 0x01 poll %d file \"%s/s%u\" "
                "div=%u\n",
                s->number, POLL_MS, bmc->dir, s->number,
                s->raw >= 0 ? 1U : s->m);
    }
    fprintf(file, "mc_enable 0x20\n");
    fclose(file);
}

/* Get Channel Authentication Capabilities, outside a session. */
static bool answers(const struct bmc *bmc)
{
    static const uint8_t ask[] = {
        0x06, 0, 0xFF, 0x07, 0,    0,    0, 0,    0,    0,    0,   0,
        0,    9, 0x20, 0x18, 0xC8, 0x81, 0, 0x38, 0x8E, 0x04, 0xB5};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(bmc->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval wait = {.tv_usec = 20000};
    uint8_t buf[64];
    bool heard;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    heard = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
            send(fd, ask, sizeof(ask), 0) > 0 &&
            recv(fd, buf, sizeof(buf), 0) > 0;
    close(fd);
    return heard;
}

void bmc_start(struct bmc *bmc, const struct bmc_sensor *sensors, int count)
{
    write_conf(bmc);
    write_emu(bmc, sensors, count);
    bmc->pid = fork();
    if (bmc->pid < 0)
        die("fork");
    if (bmc->pid == 0) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(null, 0);
        dup2(null, 1);
        if (chdir(bmc->dir) == 0)
            execl(PROGRAM, PROGRAM, "-p", "-c", "lan.conf", "-f", "emu", "-s",
                  bmc->dir, "-n", NULL);
        _exit(127);
    }
    for (int i = 0; i < 250; i++) {
        if (answers(bmc)) {
            sleep_ms(3 * POLL_MS);
            return;
        }
        sleep_ms(10);
    }
    die("ipmi_sim does not answer");
}

void bmc_kill(struct bmc *bmc)
{
    if (bmc->pid > 0) {
        kill(bmc->pid, SIGKILL);
        waitpid(bmc->pid, NULL, 0);
    }
    bmc->pid = 0;
}

/* One level of plain files and empty directories. */
static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    char name[512];

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (unlink(name) < 0)
            remove_tree(name);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void bmc_destroy(struct bmc *bmc)
{
    bmc_kill(bmc);
    remove_tree(bmc->dir);
}
