/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/ledger_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/parse.h"
#include "tools/joule/command.h"

#define WATCH_MIN_NS (100 * JOULE_NS_PER_MS)
#define WATCH_MAX_NS (3600 * JOULE_NS_PER_S)

static const char usage[] =
    "usage: joule ledger [OPTION]...\n"
    "\n"
    "Show what the jobs on this node have been charged: root sees all of them\n"
    "and the node's sums, other users their own.\n"
    "\n"
    "  -j JOB           this job alone\n"
    "  --watch[=S]      again each S seconds (default 1), until interrupted\n"
    "  --node NAME      the NodeName (default: the only node there is, else "
    "the\n"
    "                   job's, else the host name)\n"
    "  --root DIR       look at the /proc and /run of DIR\n"
    "  --json           print a JSON document\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 well, 1 there is nothing to show, it is out of date, or "
    "it\n"
    "does not add up, 2 usage error.\n";

struct arguments {
    const char *root, *node;
    uint32_t job; /* 0: all */
    bool json;
    int64_t watch_ns; /* 0: once */
};

/* ---- one look ---- */

static int collect(struct joule_ledger_view *v, int root_fd,
                   const struct arguments *a, struct joule_error *err)
{
    return joule_ledger_collect(v, root_fd, &joule_clock_system, a->node,
                                a->job, err);
}

static void print(FILE *out, const struct joule_ledger_view *v, bool json)
{
    (json ? joule_ledger_print_json : joule_ledger_print_text)(out, v);
}

static int show(struct joule_ledger_view *v, int root_fd,
                const struct arguments *a)
{
    struct joule_error err;

    if (collect(v, root_fd, a, &err) < 0) {
        fprintf(stderr, "joule ledger: %s\n", err.text);
        return 1;
    }
    print(stdout, v, a->json);
    return joule_ledger_good(v) ? 0 : 1;
}

/* ---- again and again ---- */

/* Nothing is open that must be closed, and what is half printed stays so. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

/* In place: from the upper left corner on, each line's rest cleared, and what
 * is below.  What the window has no room for is said, and not printed: it
 * would scroll. */
static void redraw(const char *text)
{
    struct winsize window = {0};
    unsigned lines = 0, room = 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 2)
        room = window.ws_row - 2u;
    fputs("\033[H", stdout);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        if (room == 0 || lines < room)
            printf("%.*s\033[K\n", (int)(end - text), text);
        lines++;
    }
    if (room && lines > room)
        printf("... and %u more lines\033[K\n", lines - room);
    fputs("\033[J", stdout);
}

/* Stopped for a while: not all that was missed at once. */
static void sleep_until(int64_t *when_ns, int64_t step_ns)
{
    *when_ns += step_ns;
    if (joule_deadline_left(*when_ns) == 0)
        *when_ns = joule_deadline_now();
    joule_sleep_until(*when_ns);
}

static void print_look(FILE *out, struct joule_ledger_view *v, int root_fd,
                       const struct arguments *a)
{
    struct joule_error err;

    if (collect(v, root_fd, a, &err) == 0)
        print(out, v, a->json);
    else if (a->json)
        joule_ledger_print_json_error(out, err.text);
    else
        fprintf(out, "%s\n", err.text);
}

static int no_memory(void)
{
    fputs("joule ledger: out of memory\n", stderr);
    return 2;
}

static int watch(struct joule_ledger_view *v, int root_fd,
                 const struct arguments *a)
{
    bool in_place = !a->json && isatty(STDOUT_FILENO);
    int64_t when_ns;

    when_ns = joule_deadline_now();
    signal(SIGINT, on_interrupt);
    if (in_place)
        fputs("\033[2J", stdout);
    for (;;) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
            return no_memory();
        print_look(out, v, root_fd, a);
        if (!a->json && !in_place)
            putc('\n', out);
        if (fclose(out) != 0 || !text)
            return no_memory();
        if (in_place)
            redraw(text);
        else
            fputs(text, stdout);
        free(text);
        if (fflush(stdout) != 0)
            return 1;
        sleep_until(&when_ns, a->watch_ns);
    }
}

/* ---- the command ---- */

int joule_ledger_main(int argc, char **argv)
{
    struct arguments a = {.root = "/"};
    const char *job_text = NULL, *watch_text = NULL;
    const struct joule_command_option options[] = {
        {"j", .text = &job_text},
        {"watch", .text = &watch_text, .unsaid = "1"},
        {"node", .text = &a.node},
        {"root", .text = &a.root},
        {"json", .flag = &a.json},
        {NULL},
    };
    int root_fd, status = joule_command_parse(options, usage, argc, argv);
    struct joule_ledger_view *v;
    uint64_t job;

    if (status >= 0)
        return status;
    if (watch_text && joule_parse_duration_ns(watch_text, WATCH_MIN_NS,
                                              WATCH_MAX_NS, &a.watch_ns) < 0)
        return joule_command_error(argv[0], "--watch takes 0.1 to 3600");
    if (job_text && joule_parse_u64(job_text, 1, UINT32_MAX, &job) < 0)
        return joule_command_error(
            argv[0], "-j takes the number of a job (that of a task of an "
                     "array: squeue -O JobID)");
    if (job_text)
        a.job = (uint32_t)job;
    root_fd = open(a.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        fprintf(stderr, "joule ledger: cannot open %s: %s\n", a.root,
                strerror(errno));
        return 2;
    }
    v = malloc(sizeof(*v));
    if (!v)
        return no_memory();
    /* Who reads may stop reading: that is no error, even where the caller of
     * this program has it ignored. */
    signal(SIGPIPE, SIG_DFL);
    status = a.watch_ns ? watch(v, root_fd, &a) : show(v, root_fd, &a);
    free(v);
    close(root_fd);
    return status;
}
