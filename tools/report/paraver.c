/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/paraver.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

void joule_paraver_put_date(FILE *file, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / JOULE_NS_PER_S);
    char date[32] = "01/01/1970 at 00:00";
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        strftime(date, sizeof(date), "%d/%m/%Y at %H:%M", &tm);
    fprintf(file, "#Paraver (%s):", date);
}

void joule_paraver_put_options(FILE *file)
{
    fputs("DEFAULT_OPTIONS\n\nLEVEL               THREAD\n"
          "UNITS               NANOSEC\nLOOK_BACK           100\n"
          "SPEED               1\nFLAG_ICONS          ENABLED\n"
          "NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n"
          "DEFAULT_SEMANTIC\n\nTHREAD_FUNC          State As Is\n\n",
          file);
}

void joule_paraver_put_text(FILE *file, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, file);
    fputc('\n', file);
}

int joule_paraver_write(const char *path, const char *end,
                        void (*put)(FILE *file, void *arg), void *arg,
                        struct joule_error *err)
{
    char name[4096];
    FILE *file;
    int error;

    if (snprintf(name, sizeof(name), "%s.%s", path, end) >= (int)sizeof(name))
        return joule_error_set(err, ENAMETOOLONG, "%.64s... is too long", path);
    file = fopen(name, "we");
    if (!file)
        return joule_error_set(err, errno, "cannot write %s: %m", name);
    errno = 0;
    put(file, arg);
    error = !ferror(file) ? 0 : errno ? errno : EIO;
    if (fclose(file) != 0 && error == 0)
        error = errno;
    if (error == 0)
        return 0;
    unlink(name);
    errno = error;
    return joule_error_set(err, error, "cannot write %s: %m", name);
}
