/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_DIR "sys/devices/system/cpu"

struct tree {
    int root_fd;
    const struct sim_machine *machine;
    struct joule_error *err;
};

/* Which CPUs a list or mask names: those like [cpu]. */
typedef bool (*select_f)(const struct sim_cpu *a, const struct sim_cpu *cpu);

static bool same_package(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    return a->online && a->package == cpu->package;
}

static bool same_die(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    return same_package(a, cpu) && a->die == cpu->die;
}

static bool same_core(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    return same_package(a, cpu) && a->core == cpu->core;
}

static bool any(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    (void)a;
    (void)cpu;
    return true;
}

static bool is_online(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    (void)cpu;
    return a->online;
}

static bool is_offline(const struct sim_cpu *a, const struct sim_cpu *cpu)
{
    (void)cpu;
    return !a->online;
}

static int make_dirs(const struct tree *t, const char *path)
{
    char part[256];

    for (const char *end = path; end; end += !!*end) {
        end = strchrnul(end, '/');
        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        if (mkdirat(t->root_fd, part, 0755) && errno != EEXIST)
            return joule_error_set(t->err, errno, "cannot create %s: %m", part);
        if (!*end)
            break;
    }
    return 0;
}

static FILE *file_open(const struct tree *t, const char *path)
{
    int fd =
        openat(t->root_fd, path,
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f) {
        joule_error_set(t->err, errno, "cannot write %s: %m", path);
        if (fd >= 0)
            close(fd);
    }
    return f;
}

static int file_close(const struct tree *t, FILE *f, const char *path)
{
    if (fclose(f))
        return joule_error_set(t->err, errno, "cannot write %s: %m", path);
    return 0;
}

__attribute__((format(printf, 3, 4))) static int
file_write(const struct tree *t, const char *path, const char *fmt, ...)
{
    FILE *f = file_open(t, path);
    va_list ap;

    if (!f)
        return -1;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    return file_close(t, f, path);
}

/* A CPU list such as "0-3,8". */
static int list_write(const struct tree *t, const char *path, select_f match,
                      const struct sim_cpu *cpu)
{
    const struct sim_machine *m = t->machine;
    FILE *f = file_open(t, path);
    const char *comma = "";
    size_t i, end;

    if (!f)
        return -1;
    for (i = 0; i < m->cpu_count; i = end) {
        unsigned first = m->cpus[i].number;

        end = i + 1;
        if (!match(&m->cpus[i], cpu))
            continue;
        while (end < m->cpu_count && match(&m->cpus[end], cpu) &&
               m->cpus[end].number == first + (end - i))
            end++;
        fprintf(f, end - i > 1 ? "%s%u-%zu" : "%s%u", comma, first,
                first + (end - i) - 1);
        comma = ",";
    }
    putc('\n', f);
    return file_close(t, f, path);
}

/* A CPU mask: groups of eight hexadecimal digits, highest CPUs first. */
static int mask_write(const struct tree *t, const char *path, select_f match,
                      const struct sim_cpu *cpu)
{
    const struct sim_machine *m = t->machine;
    unsigned words = m->cpus[m->cpu_count - 1].number / 32 + 1;
    uint32_t *mask = calloc(words, sizeof(*mask));
    FILE *f;

    if (!mask)
        return joule_error_set(t->err, ENOMEM, "out of memory");
    for (size_t i = 0; i < m->cpu_count; i++)
        if (match(&m->cpus[i], cpu))
            mask[m->cpus[i].number / 32] |= 1u << m->cpus[i].number % 32;
    f = file_open(t, path);
    for (unsigned i = words; f && i-- > 0;)
        fprintf(f, "%08x%c", mask[i], i ? ',' : '\n');
    free(mask);
    return f ? file_close(t, f, path) : -1;
}

static const struct {
    const char *name;
    select_f match;
} siblings[] = {
    {"core_cpus", same_core},        {"thread_siblings", same_core},
    {"die_cpus", same_die},          {"package_cpus", same_package},
    {"core_siblings", same_package},
};

static int topology_write(const struct tree *t, const struct sim_cpu *cpu)
{
    char dir[128], path[192];
    const struct {
        const char *name;
        unsigned value;
    } ids[] = {
        {"physical_package_id", cpu->package},
        {"die_id", cpu->die},
        {"core_id", cpu->core},
    };

    snprintf(dir, sizeof(dir), CPU_DIR "/cpu%u/topology", cpu->number);
    if (make_dirs(t, dir))
        return -1;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, ids[i].name);
        if (file_write(t, path, "%u\n", ids[i].value))
            return -1;
    }
    for (size_t i = 0; i < sizeof(siblings) / sizeof(siblings[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, siblings[i].name);
        if (mask_write(t, path, siblings[i].match, cpu))
            return -1;
        snprintf(path, sizeof(path), "%s/%s_list", dir, siblings[i].name);
        if (list_write(t, path, siblings[i].match, cpu))
            return -1;
    }
    return 0;
}

static int cpu_write(const struct tree *t, const struct sim_cpu *cpu)
{
    char path[128];

    snprintf(path, sizeof(path), CPU_DIR "/cpu%u", cpu->number);
    if (make_dirs(t, path))
        return -1;
    if (cpu->number) {
        snprintf(path, sizeof(path), CPU_DIR "/cpu%u/online", cpu->number);
        if (file_write(t, path, "%d\n", cpu->online))
            return -1;
    }
    return cpu->online ? topology_write(t, cpu) : 0;
}

static void cpuinfo_cpu(FILE *f, const struct sim_machine *m,
                        const struct sim_cpu *cpu)
{
    fprintf(f,
            "processor\t: %u\n"
            "vendor_id\t: %s\n"
            "cpu family\t: %u\n"
            "model\t\t: %u\n"
            "model name\t: %s\n"
            "stepping\t: 1\n"
            "microcode\t: 0x1\n"
            "cpu MHz\t\t: 2400.000\n"
            "cache size\t: 28160 KB\n",
            cpu->number, m->vendor_id, m->family, m->model, m->cpu_name);
    if (!m->no_physical_id)
        fprintf(f,
                "physical id\t: %u\n"
                "siblings\t: %u\n"
                "core id\t\t: %u\n"
                "cpu cores\t: %u\n"
                "apicid\t\t: %u\n"
                "initial apicid\t: %u\n",
                cpu->package, m->cores * m->threads, cpu->core, m->cores,
                cpu->number, cpu->number);
    fprintf(f,
            "fpu\t\t: yes\n"
            "fpu_exception\t: yes\n"
            "cpuid level\t: 22\n"
            "wp\t\t: yes\n"
            "flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge"
            " mca cmov pat pse36 clflush mmx fxsr sse sse2 ht syscall nx rdtscp"
            " lm constant_tsc rep_good nopl nonstop_tsc cpuid aperfmperf%s\n"
            "bugs\t\t:\n"
            "bogomips\t: 4800.00\n"
            "clflush size\t: 64\n"
            "cache_alignment\t: 64\n"
            "address sizes\t: 46 bits physical, 48 bits virtual\n"
            "power management:\n\n",
            m->hypervisor ? " hypervisor" : "");
}

static int cpuinfo_write(const struct tree *t)
{
    FILE *f = file_open(t, "proc/cpuinfo");

    if (!f)
        return -1;
    for (size_t i = 0; i < t->machine->cpu_count; i++)
        if (t->machine->cpus[i].online)
            cpuinfo_cpu(f, t->machine, &t->machine->cpus[i]);
    return file_close(t, f, "proc/cpuinfo");
}

/* Remove what is named cpu*, files first: at most cpuN/topology/file. */
static void old_remove(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        unlinkat(dir_fd, name, 0);
        return;
    }
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            old_remove(fd, entry->d_name);
    closedir(dir);
    unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static int cpus_write(const struct tree *t)
{
    const struct sim_cpu *cpus = t->machine->cpus;

    for (size_t i = 0; i < t->machine->cpu_count; i++)
        if (cpu_write(t, &cpus[i]))
            return -1;
    if (list_write(t, CPU_DIR "/online", is_online, cpus) ||
        list_write(t, CPU_DIR "/offline", is_offline, cpus))
        return -1;
    return 0;
}

int sim_tree_write(int root_fd, const struct sim_machine *machine,
                   struct joule_error *err)
{
    const struct tree t = {root_fd, machine, err};
    const struct sim_cpu *cpus = machine->cpus;

    if (make_dirs(&t, "proc"))
        return -1;
    old_remove(root_fd, CPU_DIR);
    if (make_dirs(&t, CPU_DIR) || make_dirs(&t, "dev/cpu") || cpuinfo_write(&t))
        return -1;
    if (cpus_write(&t) || list_write(&t, CPU_DIR "/possible", any, cpus) ||
        list_write(&t, CPU_DIR "/present", any, cpus))
        return -1;
    return file_write(&t, CPU_DIR "/kernel_max", "%u\n",
                      cpus[machine->cpu_count - 1].number);
}

int sim_tree_switch(int root_fd, const struct sim_machine *machine,
                    struct joule_error *err)
{
    const struct tree t = {root_fd, machine, err};
    char path[128];

    for (size_t i = 0; i < machine->cpu_count; i++) {
        if (machine->cpus[i].online)
            continue;
        snprintf(path, sizeof(path), CPU_DIR "/cpu%u/topology",
                 machine->cpus[i].number);
        old_remove(root_fd, path);
    }
    return cpus_write(&t) || cpuinfo_write(&t) ? -1 : 0;
}
