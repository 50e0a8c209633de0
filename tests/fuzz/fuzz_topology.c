/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first line of the input is the list of online CPUs.  Each further line
 * is a CPU, from 0 on: its package, die and core id, separated by ';'.  An
 * empty field is a file that is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "common/sensors/topology.h"
#include "tests/fuzz/fuzz.h"

#define CPU_DIR  "sys/devices/system/cpu"
#define CPUS_MAX 4

static const char *const names[] = {"physical_package_id", "die_id", "core_id"};

/* One tree for all runs of the process, removed at its end. */
static char root_path[64];
static int root_fd = -1;

static void cpu_path(char *path, size_t size, unsigned cpu, const char *name)
{
    snprintf(path, size, CPU_DIR "/cpu%u/topology/%s", cpu, name);
}

static void remove_dir(const char *path)
{
    unlinkat(root_fd, path, AT_REMOVEDIR);
}

static void remove_tree(void)
{
    char path[128];

    unlinkat(root_fd, CPU_DIR "/online", 0);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        for (size_t i = 0; i < 3; i++) {
            cpu_path(path, sizeof(path), cpu, names[i]);
            unlinkat(root_fd, path, 0);
        }
        cpu_path(path, sizeof(path), cpu, "");
        remove_dir(path);
        snprintf(path, sizeof(path), CPU_DIR "/cpu%u", cpu);
        remove_dir(path);
    }
    remove_dir(CPU_DIR);
    remove_dir("sys/devices/system");
    remove_dir("sys/devices");
    remove_dir("sys");
    close(root_fd);
    rmdir(root_path);
}

static void make_tree(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[128];

    if (!tmp || strlen(tmp) > 32)
        tmp = "/tmp";
    snprintf(root_path, sizeof(root_path), "%s/joule-fuzz-XXXXXX", tmp);
    FUZZ_MUST(mkdtemp(root_path));
    root_fd = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_MUST(root_fd >= 0);
    mkdirat(root_fd, "sys", 0700);
    mkdirat(root_fd, "sys/devices", 0700);
    mkdirat(root_fd, "sys/devices/system", 0700);
    mkdirat(root_fd, CPU_DIR, 0700);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        snprintf(path, sizeof(path), CPU_DIR "/cpu%u", cpu);
        mkdirat(root_fd, path, 0700);
        cpu_path(path, sizeof(path), cpu, "");
        FUZZ_MUST(mkdirat(root_fd, path, 0700) == 0);
    }
    atexit(remove_tree);
}

static void put(const char *path, const uint8_t *p, size_t len)
{
    int fd =
        openat(root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    FUZZ_MUST(fd >= 0);
    FUZZ_MUST(write(fd, p, len) == (ssize_t)len);
    close(fd);
}

/* The length of the input up to the separator; *rest is what follows it. */
static size_t take(const uint8_t *p, size_t len, char separator,
                   const uint8_t **rest, size_t *rest_len)
{
    const uint8_t *end = len ? memchr(p, separator, len) : NULL;
    size_t n = end ? (size_t)(end - p) : len;

    *rest = p + n + (end ? 1 : 0);
    *rest_len = len - n - (end ? 1 : 0);
    return n;
}

static void build(const uint8_t *data, size_t size)
{
    const uint8_t *line, *field;
    size_t n, len;
    char path[128];

    n = take(data, size, '\n', &line, &size);
    put(CPU_DIR "/online", data, n);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        data = line;
        n = take(data, size, '\n', &line, &size);
        for (size_t i = 0; i < 3; i++) {
            size_t field_len = take(data, n, ';', &field, &len);

            cpu_path(path, sizeof(path), cpu, names[i]);
            if (field_len == 0)
                unlinkat(root_fd, path, 0);
            else
                put(path, data, field_len);
            data = field;
            n = len;
        }
    }
}

static size_t check_scope(const struct joule_topology *t,
                          enum joule_topology_scope scope)
{
    struct joule_topology_cpu *cpus;
    size_t n = 0;

    cpus = joule_topology_first_cpus(t, scope, &n);
    FUZZ_MUST(cpus && n >= 1 && n <= t->cpu_count);
    free(cpus);
    return n;
}

static void check_cpulist(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    unsigned *cpus;
    size_t count;

    FUZZ_MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    if (joule_parse_cpulist(text, &cpus, &count) == 0) {
        for (size_t i = 0; i < count; i++)
            FUZZ_MUST(cpus[i] <= JOULE_CPU_MAX &&
                      (i == 0 || cpus[i - 1] < cpus[i]));
        free(cpus);
    } else {
        FUZZ_MUST(errno == EINVAL || errno == ERANGE);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_topology t = {0};
    struct joule_error err = {""};
    const uint8_t *rest;
    size_t rest_len;

    check_cpulist(data, take(data, size, '\n', &rest, &rest_len));
    if (root_fd < 0)
        make_tree();
    build(data, size);
    if (joule_topology_read(root_fd, &t, &err) < 0) {
        FUZZ_MUST(errno == EINVAL && !t.cpus);
        fuzz_check_sentence(&err);
        return 0;
    }
    FUZZ_MUST(t.cpu_count >= 1 && t.cpu_count <= CPUS_MAX);
    FUZZ_MUST(check_scope(&t, JOULE_TOPOLOGY_PACKAGE) == t.packages);
    FUZZ_MUST(check_scope(&t, JOULE_TOPOLOGY_DIE) == t.dies);
    FUZZ_MUST(check_scope(&t, JOULE_TOPOLOGY_CORE) >= t.dies);
    FUZZ_MUST(t.packages <= t.dies);
    joule_topology_free(&t);
    return 0;
}
