/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule waits - where the processes of an MPI program wait, from its trace. */
#include "tools/report/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/base/file.h"
#include "common/base/parse.h"
#include "config.h"
#include "tools/joule/command.h"
#include "tools/joule/text.h"
#include "tools/sh5util/outfile.h"
#include "tools/waits/machine_states.h"
#include "tools/waits/recorded_log.h"
#include "tools/waits/trace_archive.h"
#include "tools/waits/trace_copy.h"

static const char usage[] =
    "usage: joule waits [OPTION]... TRACE\n"
    "\n"
    "Tell where the processes of an MPI program wait, and how much energy a "
    "lower\n"
    "power state would save there, from what srun --energy-waits has "
    "recorded, or\n"
    "another OTF2 trace (of Score-P or EZTrace): its directory, or the file "
    "traces.otf2\n"
    "or eztrace_log.otf2 in it.\n"
    "\n"
    "  --power-states=FILE  power states, for the saving; or the NAME of one "
    "that is\n"
    "                       installed: opteron, xeon, juropa\n"
    "  -i FILE              the job's profile, a merged file of sh5util; else "
    "the files\n"
    "                       of the job's step, if it has a profile\n"
    "  -p DIR, -u USER      in place of ProfileHDF5Dir; whose job it is\n"
    "  --job=JOB.STEP       of another trace: the step whose profile it is\n"
    "  --slack              how much longer computing could have taken "
    "without making\n"
    "                       another process wait\n"
    "  --by=WHAT            group by pattern, path, process or communicator\n"
    "  --top=N              that many lines of the longest waits (10)\n"
    "  --threads=N          read with N threads (all CPUs, at most 16)\n"
    "  --csv                print comma-separated values\n"
    "  --html=FILE          write a page for a browser\n"
    "  --cubex=FILE.cubex   write a profile for CubeGUI and the tools of "
    "CubeLib\n"
    "  --otf2=DIRECTORY     write a copy of the trace in which the waits are "
    "marked\n"
    "  --paraver=PATH       write the calls, messages and waits for Paraver: "
    "PATH.prv,\n"
    "                       PATH.pcf and PATH.row\n"
    "  --hdf5=FILE          write the waits into the job's profile, a merged "
    "file of\n"
    "                       sh5util\n"
    "  --each               print each wait, as comma-separated values, in any "
    "order\n"
    "  --json               print a JSON document\n"
    "  --make-archive       only make traces.otf2 of what a program has left "
    "in the\n"
    "                       directory TRACE, as srun does when a step is over\n"
    "  --keep-logs          leave that, too\n"
    "  --list-states        print what the kernel tells of this machine's "
    "power\n"
    "                       states, as a file to fill in\n"
    "  --help               print this\n"
    "\n"
    "ESP: the energy that waits would save if processes waited idle, in the "
    "best\n"
    "power state; ESP_BW: if they waited busily.\n"
    "\n"
    "Exit status: 0 well, 1 there is nothing to tell, 2 usage error, 3 a part "
    "is\n"
    "missing.\n";

#define STATES_BYTES_MAX 65536

/* A reader that computes so long for one step has no end: to open an archive, of
 * which libotf2 reads a hundred bytes, in a loop of 2^32 turns where these are
 * damaged; and for a round of events, or all definitions. */
#define OPEN_CPU_S  1
#define ROUND_CPU_S 60

struct arguments {
    const char *trace, *power_states, *html, *cubex, *otf2, *paraver, *hdf5;
    struct joule_nodes_request profile;
    unsigned by;
    uint64_t top, threads;
    bool csv, json, each, slack, list_states, make_archive, keep_logs;
    bool wants_profile; /* it is named, so it has to be there */
};

static int parse_number(const char *name, const char *text, uint64_t max,
                        uint64_t *ret)
{
    char sentence[96];

    if (!text || joule_parse_u64(text, 1, max, ret) == 0)
        return -1;
    snprintf(sentence, sizeof(sentence), "--%s is a number from 1 to %llu",
             name, (unsigned long long)max);
    return joule_command_error("waits", sentence);
}

static int parse_by(const char *text, unsigned *ret)
{
    static const struct joule_word words[] = {
        {"pattern", JOULE_BY_PATTERN},
        {"path", JOULE_BY_PATH},
        {"process", JOULE_BY_PROCESS},
        {"communicator", JOULE_BY_COMMUNICATOR},
        {NULL, 0},
    };

    if (!text || joule_parse_word(text, words, ret) == 0)
        return -1;
    return joule_command_error(
        "waits", "--by is pattern, path, process or communicator");
}

static int parse(struct arguments *a, int argc, char **argv)
{
    const char *by = NULL, *top = NULL, *threads = NULL, *trace[1] = {NULL};
    size_t traces = 0;
    const struct joule_command_option table[] = {
        {.name = "power-states", .text = &a->power_states},
        {.name = "i", .text = &a->profile.input},
        {.name = "p", .text = &a->profile.dir},
        {.name = "u", .text = &a->profile.user},
        {.name = "job", .text = &a->profile.job},
        {.name = "by", .text = &by},
        {.name = "top", .text = &top},
        {.name = "threads", .text = &threads},
        {.name = "csv", .flag = &a->csv},
        {.name = "json", .flag = &a->json},
        {.name = "html", .text = &a->html},
        {.name = "cubex", .text = &a->cubex},
        {.name = "otf2", .text = &a->otf2},
        {.name = "paraver", .text = &a->paraver},
        {.name = "hdf5", .text = &a->hdf5},
        {.name = "each", .flag = &a->each},
        {.name = "slack", .flag = &a->slack},
        {.name = "make-archive", .flag = &a->make_archive},
        {.name = "keep-logs", .flag = &a->keep_logs},
        {.name = "list-states", .flag = &a->list_states},
        {.name = "", .text = trace, .count = &traces, .max = 1},
        {NULL},
    };
    const struct {
        const char *const *path, *usage;
    } output[] = {
        {&a->html, "--html=FILE"},      {&a->cubex, "--cubex=FILE.cubex"},
        {&a->otf2, "--otf2=DIRECTORY"}, {&a->paraver, "--paraver=PATH"},
        {&a->hdf5, "--hdf5=FILE"},
    };
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int rc = joule_command_parse(table, usage, argc, argv);

    a->top = 10;
    a->threads = cpus < 1 ? 1 : (uint64_t)cpus;
    if (a->threads > JOULE_MATCHER_PARTS_MAX)
        a->threads = JOULE_MATCHER_PARTS_MAX;
    if (rc < 0)
        rc = parse_by(by, &a->by);
    if (rc < 0)
        rc = parse_number("top", top, 1000000, &a->top);
    if (rc < 0)
        rc = parse_number("threads", threads, JOULE_MATCHER_PARTS_MAX,
                          &a->threads);
    if (rc >= 0)
        return rc;
    a->trace = trace[0];
    if (a->csv + a->json + a->each + !!a->html + !!a->cubex + !!a->otf2 +
            !!a->paraver + !!a->hdf5 >
        1)
        return joule_command_error(
            argv[0], "one of --csv, --json, --each, --html, --cubex, --otf2, "
                     "--paraver and --hdf5");
    if (a->slack &&
        (a->each || a->html || a->cubex || a->otf2 || a->paraver || a->hdf5))
        return joule_command_error(argv[0],
                                   "--slack is of the text, --csv and --json");
    if (a->slack && a->by & ~(unsigned)(JOULE_BY_PATH | JOULE_BY_PROCESS))
        return joule_command_error(argv[0], "--slack is by path or by process");
    a->wants_profile = !a->hdf5 && (a->profile.input || a->profile.dir ||
                                    a->profile.user || a->profile.job);
    if (!a->profile.input)
        a->profile.input = a->hdf5;
    for (size_t i = 0; i < sizeof(output) / sizeof(output[0]); i++)
        if (*output[i].path && !**output[i].path)
            return joule_command_error(argv[0], output[i].usage);
    if (a->list_states && traces > 0)
        return joule_command_error(argv[0], "--list-states is of no trace");
    if (!a->list_states && traces == 0)
        return joule_command_error(argv[0], "which trace?");
    return -1;
}

static int complain(const struct joule_error *err)
{
    fputs("joule waits: ", stderr);
    joule_text_put(stderr, err->text);
    fputc('\n', stderr);
    return 1;
}

/* ---- power states ---- */

static bool is_file_name(const char *text)
{
    size_t length = strlen(text);

    return strchr(text, '/') ||
           (length > 5 && strcmp(text + length - 5, ".conf") == 0);
}

static int load_states(const char *name, struct joule_power_envelope *ret,
                       struct joule_error *err)
{
    struct joule_power_states states;
    char path[4096], *text;
    int fd, rc;

    if (snprintf(path, sizeof(path),
                 is_file_name(name) ? "%s" : JOULE_POWER_STATES_DIR "/%s.conf",
                 name) >= (int)sizeof(path))
        return joule_error_set(err, ENAMETOOLONG,
                               "the name of the power "
                               "states is too long");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    text = calloc(1, STATES_BYTES_MAX + 1);
    if (fd < 0 || !text || joule_file_fill(fd, text, STATES_BYTES_MAX) < 0)
        rc = joule_error_set(err, errno, "power states %s: %m", path);
    else
        rc = joule_power_states_parse(&states, text, path, err);
    joule_close(fd);
    free(text);
    if (rc == 0)
        joule_power_envelope_make(ret, &states);
    return rc;
}

static int list_states(void)
{
    struct joule_error err = {""};
    int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = joule_machine_states_print(stdout, root_fd, &err);

    joule_close(root_fd);
    return rc < 0 ? complain(&err) : 0;
}

/* ---- a process that may die ---- */

/* The process ends with SIGPROF unless this is called again. */
static void watch(time_t cpu_s)
{
    const struct itimerval timer = {.it_value.tv_sec = cpu_s};

    setitimer(ITIMER_PROF, &timer, NULL);
}

/* Three quarters of the memory of this machine are enough, where a hostile file
 * asks for more. */
static void bound_resources(void)
{
    const struct rlimit no_core = {0, 0};
    struct rlimit data;

    setrlimit(RLIMIT_CORE, &no_core);
    if (JOULE_HAS_SANITIZER)
        return;
    data.rlim_cur = data.rlim_max =
        (rlim_t)sysconf(_SC_PHYS_PAGES) / 4 * 3 * (rlim_t)sysconf(_SC_PAGESIZE);
    setrlimit(RLIMIT_DATA, &data);
}

/* The exit status of a child; -1 with a sentence: it died. */
static int wait_for(pid_t pid, const char *trace, struct joule_error *err)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return joule_error_set(err, errno, "the reader is gone: %m");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    /* Whoever read what it prints is gone. */
    if (WTERMSIG(status) == SIGPIPE)
        return 1;
    if (WTERMSIG(status) == SIGPROF)
        return joule_error_set(
            err, ETIMEDOUT, "%s is damaged: its reader came to no end", trace);
    return joule_error_set(err, EBADMSG,
                           "%s is damaged: its reader died of signal %d", trace,
                           WTERMSIG(status));
}

/* libotf2 may crash where a trace is damaged, and what a file holds may ask for more
 * than there is: [run] is called in a child.  Returns its exit status; *ret_pid is of the
 * child if it died, else 0. */
static int run_in_child(int (*run)(const struct arguments *a,
                                   const struct joule_power_envelope *envelope),
                        const struct arguments *a,
                        const struct joule_power_envelope *envelope,
                        pid_t *ret_pid)
{
    struct joule_error err = {""};
    pid_t parent = getpid(), pid;
    int status;

    *ret_pid = 0;
    fflush(stdout);
    pid = fork();
    if (pid < 0) {
        joule_error_set(&err, errno, "cannot start a reader: %m");
        return complain(&err);
    }
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(1);
        bound_resources();
        status = run(a, envelope);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            perror("joule: cannot write the output");
            status = status ? status : 1;
        }
        _exit(status);
    }
    status = wait_for(pid, a->trace, &err);
    if (status >= 0)
        return status;
    *ret_pid = pid;
    return complain(&err);
}

/* ---- reading ---- */

#ifdef HAVE_OTF2

struct collecting {
    const struct arguments *a;
    const struct joule_definitions *d;
    struct joule_wait_profile *profile; /* NULL: there is none */
    struct joule_error no_profile;      /* why; or empty: none is meant */
    struct joule_totals part[JOULE_MATCHER_PARTS_MAX];
    bool is_out_of_memory[JOULE_MATCHER_PARTS_MAX];
    const struct joule_power_envelope *envelope;
    struct joule_scratch marks; /* for --otf2 */
    struct joule_waits_paraver *paraver;
    struct joule_waits_hdf5 *hdf5;
};

/* "JOB.STEP", if the trace says which it is or its user does; else NULL. */
static const char *step_of(const struct collecting *c)
{
    if (c->a->profile.job)
        return c->a->profile.job;
    return *c->d->step ? c->d->step : NULL;
}

/* The profile of the step, if the trace says which it is or its user does. */
static void open_profile(struct collecting *c)
{
    struct joule_nodes_request request = c->a->profile;

    request.job = step_of(c);
    if (!request.job && !request.input) {
        if (c->a->wants_profile)
            joule_error_set(&c->no_profile, EINVAL,
                            "whose profile? the trace does not tell its step: "
                            "--job=JOB.STEP");
        return;
    }
    c->profile = joule_wait_profile_open(
        &request, c->d, JOULE_MATCHER_PARTS_MAX, &c->no_profile);
}

static void begin(void *arg)
{
    struct collecting *c = arg;

    open_profile(c);
    if (c->paraver)
        joule_waits_paraver_begin(c->paraver, c->d);
}

static void take_call(void *arg, unsigned part,
                      const struct joule_trace_call *call)
{
    struct collecting *c = arg;

    joule_waits_paraver_call(c->paraver, part, call);
}

static void take_message(void *arg, unsigned part,
                         const struct joule_delivery *message)
{
    struct collecting *c = arg;

    joule_waits_paraver_message(c->paraver, part, message);
}

/* What each wait has used, at its process's power. */
static void add_energy(const struct collecting *c, struct joule_totals *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct joule_total *t = &all->at[i];
        struct joule_wait_power power =
            joule_wait_profile_of(c->profile, t->process);

        if (t->pattern >= JOULE_WAIT_COMPLETIONS)
            continue;
        t->uj = (double)t->ns * power.watts / 1e3;
        t->uncertain_uj = (double)t->ns * power.uncertain / 1e3;
    }
}

static void take(void *arg, unsigned part, const struct joule_wait *wait)
{
    struct collecting *c = arg;

    if (c->a->each)
        joule_waits_print_each(c->d, wait);
    if (c->a->otf2 && wait->pattern < JOULE_WAIT_COMPLETIONS) {
        const struct joule_mark mark = joule_mark_of(wait);

        joule_scratch_add(&c->marks, part, &mark);
    }
    if (c->paraver)
        joule_waits_paraver_wait(c->paraver, part, wait);
    if (c->profile)
        joule_wait_profile_add(c->profile, part, wait);
    if (joule_totals_add(&c->part[part], c->envelope, wait) < 0)
        c->is_out_of_memory[part] = true;
}

static void go_on(void *arg)
{
    (void)arg;
    watch(ROUND_CPU_S);
}

typedef int printer(FILE *out, const struct joule_waits *w,
                    struct joule_error *err);

/* To a descriptor, which it closes. */
static int print_to(int fd, const char *path, const struct joule_waits *w,
                    printer *print, struct joule_error *err)
{
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int rc;

    if (!file) {
        joule_error_set(err, errno, "cannot write %s: %m", path);
        joule_close(fd);
        return -1;
    }
    rc = print(file, w, err);
    if (fclose(file) != 0 && rc == 0)
        rc = joule_error_set(err, errno, "cannot write %s: %m", path);
    return rc;
}

static int print_to_file(const char *path, const struct joule_waits *w,
                         printer *print, struct joule_error *err)
{
    struct joule_outfile out;
    struct joule_error why;
    int rc;

    if (joule_outfile_open(&out, path, &why) < 0)
        return joule_error_set(err, errno, "cannot write %s: %s", path,
                               why.text);
    rc = print_to(fcntl(out.fd, F_DUPFD_CLOEXEC, 3), path, w, print, err);
    if (rc == 0)
        rc = joule_outfile_commit(&out, err);
    joule_outfile_abandon(&out);
    return rc;
}

/* No file is better than half of one: it has its name when it is whole.  A device or a
 * link, as /dev/stdout, is not replaced. */
/* Whether the file is one of those that are read. */
static bool is_of_trace(const char *path, const char *trace)
{
    static const char *const names[] = {"traces", "eztrace_log"};
    char *file = realpath(path, NULL), *from = realpath(trace, NULL), *end;
    bool is_one = false;
    struct stat st;

    if (file && from && stat(from, &st) == 0 && S_ISREG(st.st_mode) &&
        (end = strrchr(from, '/')))
        *end = '\0';
    for (size_t i = 0; file && from && i < sizeof(names) / sizeof(names[0]);
         i++) {
        size_t dir = strlen(from), name = strlen(names[i]);

        is_one |= strncmp(file, from, dir) == 0 && file[dir] == '/' &&
                  strncmp(file + dir + 1, names[i], name) == 0 &&
                  strchr("./", file[dir + 1 + name]) != NULL;
    }
    free(file);
    free(from);
    return is_one;
}

static int write_file(const char *path, const struct joule_waits *w,
                      printer *print)
{
    struct joule_error err = {""};
    struct stat st;
    int rc;

    if (is_of_trace(path, w->trace)) {
        joule_error_set(&err, EEXIST, "%s is a part of the trace", path);
        return complain(&err);
    }
    if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
        rc = print_to_file(path, w, print, &err);
    else
        rc =
            print_to(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
                     path, w, print, &err);
    return rc < 0 ? complain(&err) : 0;
}

/* -1: out of memory; else the exit status. */
static int print(const struct arguments *a, struct collecting *c,
                 const struct joule_waits *w)
{
    struct joule_error err = {""};
    int rc = 0;

    if (a->otf2)
        rc = joule_waits_write_otf2(&c->marks, a->trace, a->otf2, go_on, &err);
    if (a->paraver)
        rc = joule_waits_paraver_write(c->paraver, w->facts, go_on, &err);
    if (a->hdf5)
        rc = joule_waits_hdf5_write(c->hdf5, w, step_of(c), &err);
    if (a->otf2 || a->paraver || a->hdf5)
        return rc < 0 ? complain(&err) : 0;
    if (a->html)
        return write_file(a->html, w, joule_waits_print_page);
    if (a->cubex)
        return write_file(a->cubex, w, joule_waits_print_cubex);
    if (a->each)
        return 0;
    if (a->json)
        return joule_waits_print_json(w);
    if (a->csv)
        return a->slack ? joule_waits_print_slack_csv(w)
                        : joule_waits_print_csv(w);
    return joule_waits_print_text(w);
}

static int join(struct collecting *c, size_t pieces, struct joule_totals *all)
{
    joule_totals_init(all, pieces);
    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        if (c->is_out_of_memory[i] || joule_totals_join(all, &c->part[i]) < 0)
            return -1;
    return 0;
}

/* The exit status. */
static int report(const struct arguments *a, struct collecting *c,
                  const struct joule_definitions *d,
                  const struct joule_trace_facts *facts)
{
    struct joule_totals all;
    const struct joule_waits w = {
        .trace = a->trace,
        .d = d,
        .facts = facts,
        .envelope = c->envelope,
        .profile = c->profile,
        .no_profile = &c->no_profile,
        .all = &all,
        .by = a->by,
        .slack = a->slack,
        .top = (size_t)a->top,
    };
    int rc = join(c, c->envelope ? c->envelope->pieces : 0, &all);

    if (rc == 0 && c->profile) {
        joule_wait_profile_solve(c->profile, facts->begin_ns, facts->end_ns);
        add_energy(c, &all);
    }
    if (rc == 0)
        rc = print(a, c, &w);
    if (rc < 0) {
        fputs("joule waits: out of memory\n", stderr);
        rc = 1;
    } else if (rc > 0) {
        ; /* said */
    } else if (facts->missing + facts->damaged > 0) {
        complain(&facts->first_damage);
        rc = 3;
    } else if (all.count == 0) {
        fputs("joule waits: no process has waited in MPI\n", stderr);
        rc = 1;
    } else if (a->wants_profile && *c->no_profile.text) {
        complain(&c->no_profile);
        rc = 3;
    }
    joule_totals_free(&all);
    return rc;
}

/* What is written when all is read needs room until then. */
static int prepare(struct collecting *c, struct joule_error *err)
{
    c->marks.fd = -1;
    if (c->a->otf2)
        return joule_waits_scratch(&c->marks, c->a->otf2,
                                   sizeof(struct joule_mark), err);
    if (c->a->paraver) {
        c->paraver = joule_waits_paraver_open(c->a->paraver, err);
        return c->paraver ? 0 : -1;
    }
    if (c->a->hdf5) {
        c->hdf5 = joule_waits_hdf5_open(c->a->hdf5, err);
        return c->hdf5 ? 0 : -1;
    }
    return 0;
}

static int analyse(const struct arguments *a,
                   const struct joule_power_envelope *envelope)
{
    struct joule_definitions d;
    struct collecting c = {.a = a, .d = &d, .envelope = envelope};
    const struct joule_trace_reading reading = {
        .path = a->trace,
        .threads = (unsigned)a->threads,
        .with_slack = a->slack,
        .take = take,
        .call = a->paraver ? take_call : NULL,
        .message = a->paraver ? take_message : NULL,
        .begin = begin,
        .tick = go_on,
        .arg = &c,
    };
    struct joule_trace_facts facts = {0};
    struct joule_error err = {""};
    int status = 1;

    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        joule_totals_init(&c.part[i], envelope ? envelope->pieces : 0);
    watch(OPEN_CPU_S);
    if (joule_definitions_init(&d) < 0) {
        fputs("joule waits: out of memory\n", stderr);
        return 1;
    }
    if (a->each)
        puts(JOULE_WAITS_EACH_HEAD);
    if (prepare(&c, &err) < 0 ||
        joule_trace_read(&reading, &d, &facts, &err) < 0)
        complain(&err);
    else
        status = report(a, &c, &d, &facts);
    joule_waits_paraver_close(c.paraver);
    joule_waits_hdf5_close(c.hdf5);
    joule_wait_profile_free(c.profile);
    joule_trace_facts_free(&facts);
    joule_scratch_free(&c.marks);
    joule_definitions_free(&d);
    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        joule_totals_free(&c.part[i]);
    return status;
}

#else

static int analyse(const struct arguments *a,
                   const struct joule_power_envelope *envelope)
{
    (void)a;
    (void)envelope;
    fputs("joule waits: this joule was built without OTF2 (Debian: "
          "libotf2-trace-dev)\n",
          stderr);
    return 1;
}

#endif

/* ---- what a program has left ---- */

static void tell(uint64_t count, const char *text)
{
    if (count > 0)
        fprintf(stderr, "joule waits: %llu %s\n", (unsigned long long)count,
                text);
}

static void tell_facts(const struct joule_archive_facts *f)
{
    tell(f->missing, "ranks have left no log: what others waited for them is "
                     "not known");
    if (f->unreadable > 0) {
        fprintf(stderr, "joule waits: %llu logs are left out: ",
                (unsigned long long)f->unreadable);
        joule_text_put(stderr, f->first_unreadable.text);
        fputc('\n', stderr);
    }
    tell(f->damaged, "logs are damaged: a part of what these ranks did is "
                     "left out");
    tell(f->unplaced, "communicators are left out: where a rank without its "
                      "log is in them is not known");
    tell(f->killed, "ranks did not come to MPI_Finalize, or have closed their "
                    "log: of each the last "
                    "second may be missing");
    if (f->error)
        fprintf(stderr, "joule waits: records could not be written: %s\n",
                strerror(f->error));
    tell(f->lost, f->error ? "records are lost"
                           : "records are lost: the disk was too slow "
                             "(JOULE_WAITS_MEMORY, MPI_Pcontrol)");
    tell(f->unknown, "completed requests of which nothing is known");
    tell(f->not_compared, "ranks are on nodes whose clock was not compared "
                          "with rank 0's: their waits may be wrong");
    if (f->clock_ns > 1000)
        fprintf(stderr,
                "joule waits: clocks of different nodes may differ by %.1f "
                "us\n",
                (double)f->clock_ns / 1e3);
}

static bool is_there(const char *directory, const char *name)
{
    char path[4096];

    return snprintf(path, sizeof(path), "%s/%s", directory, name) <
               (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_archive(const char *directory)
{
    return is_there(directory, "traces.otf2") ||
           is_there(directory, "eztrace_log.otf2");
}

/* -1: logs of a run that is over are there, and no archive; else the exit status. */
static int look_for_logs(const struct arguments *a)
{
    enum joule_recorded_state state = joule_recorded_state_of(a->trace);
    struct joule_error err;

    /* Damaged ones that are beside an archive were left out of it. */
    if (!is_directory(a->trace) || state == JOULE_RECORDED_NONE ||
        (state == JOULE_RECORDED_DAMAGED && has_archive(a->trace)))
        return 0;
    if (has_archive(a->trace))
        joule_error_set(&err, EEXIST,
                        "%s has a trace, and logs of another run: each step "
                        "wants a directory of its own; move those (*.waits) "
                        "into one",
                        a->trace);
    else if (state == JOULE_RECORDED_RUNS)
        joule_error_set(&err, EBUSY, "%s is being written: the step runs",
                        a->trace);
    else
        return -1;
    return complain(&err);
}

static void make_more(void)
{
    watch(ROUND_CPU_S);
}

static int make(const struct arguments *a,
                const struct joule_power_envelope *envelope)
{
    struct joule_archive_facts facts;
    struct joule_error err;

    (void)envelope;
    make_more();
    if (joule_archive_make(a->trace, a->keep_logs, make_more, &facts, &err) < 0)
        return complain(&err);
    tell_facts(&facts);
    if (a->make_archive) {
        fprintf(stderr, "joule waits: %llu calls of %u ranks: joule waits ",
                (unsigned long long)facts.calls, facts.ranks);
        joule_text_put(stderr, a->trace);
        fputc('\n', stderr);
    }
    return a->make_archive && facts.missing + facts.unreadable > 0 ? 3 : 0;
}

/* -1, but while the step runs.  srun knows that it is over, also where a process was
 * killed just now. */
static int look_for_end(const struct arguments *a)
{
    struct joule_error err;

    if (secure_getenv("JOULE_WAITS_IS_OVER") ||
        joule_recorded_state_of(a->trace) != JOULE_RECORDED_RUNS)
        return -1;
    joule_error_set(&err, EBUSY, "%s is being written: the step runs",
                    a->trace);
    return complain(&err);
}

/* The exit status; 0: there is an archive now, or there was one. */
static int make_archive(const struct arguments *a)
{
    int status = a->make_archive ? look_for_end(a) : look_for_logs(a);
    pid_t died;

    if (status >= 0)
        return status;
    status = run_in_child(make, a, NULL, &died);
    if (died)
        joule_archive_remove(a->trace, died);
    return status;
}

int joule_waits_main(int argc, char **argv)
{
    struct arguments a = {0};
    struct joule_power_envelope envelope;
    struct joule_error err = {""};
    int status = parse(&a, argc, argv);
    pid_t died;

    if (status >= 0)
        return status;
    if (a.list_states)
        return list_states();
    if (a.power_states && load_states(a.power_states, &envelope, &err) < 0)
        return complain(&err);
    status = make_archive(&a);
    if (status > 0 || a.make_archive)
        return status;
    return run_in_child(analyse, &a, a.power_states ? &envelope : NULL, &died);
}
