/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/conffile.h"
#include "common/base/file.h"

/* Rows of all the tables of one plugin; growing it is a compile-time act. */
#define OPTIONS_MAX 64
#define CONF_MAX    (1 << 20)

void joule_conf_register(const struct joule_option *options,
                         s_p_options_t **full_options, int *full_count)
{
    s_p_options_t rows[OPTIONS_MAX + 1];
    size_t i;

    memset(rows, 0, sizeof(rows));
    for (i = 0; options[i].key && i < OPTIONS_MAX; i++) {
        rows[i].key = (char *)options[i].key;
        rows[i].type = JOULE_S_P_STRING;
    }
    slurm_transfer_s_p_options(full_options, rows, full_count);
}

/* "/etc/slurm/acct_gather.conf:12", or without the line if it is not found
 * (configless nodes, values from slurmd). */
static void find_place(const char *key, char *buf, size_t size)
{
    char *path = slurm_get_extra_conf_path((char *)"acct_gather.conf");
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL;
    size_t length;
    unsigned line = 0;

    snprintf(buf, size, "acct_gather.conf");
    if (path && path[0] == '/' && root_fd >= 0)
        text = joule_file_load(root_fd, path + strspn(path, "/"), CONF_MAX,
                               &length);
    if (text)
        line = joule_conffile_line(text, length, key);
    if (line)
        snprintf(buf, size, "%s:%u", path, line);
    free(text);
    if (root_fd >= 0)
        close(root_fd);
    if (path)
        slurm_xfree((void **)&path);
}

/* One line for a key that is set and had better not be. */
static void say_notice(const struct joule_option *row)
{
    char place[512];

    find_place(row->key, place, sizeof(place));
    if (row->secret)
        slurm_error("slurm-joule: %s: %s %s", place, row->key, row->notice);
    else
        slurm_info("slurm-joule: %s: %s %s", place, row->key, row->notice);
}

static void load_option(const struct joule_option *row, void *config,
                        const s_p_hashtbl_t *table, bool quiet)
{
    struct joule_error err;
    char *text = NULL;
    char place[512], value[JOULE_OPTION_TEXT_MAX + 1];

    if (!slurm_s_p_get_string(&text, row->key, table))
        return;
    if (row->notice && !quiet)
        say_notice(row);
    if (joule_option_set(row, config, text, &err) < 0) {
        find_place(row->key, place, sizeof(place));
        joule_option_format(row, config, value, sizeof(value));
        if (quiet)
            slurm_debug("slurm-joule: %s: %s; %s is used", place, err.text,
                        value);
        else
            slurm_error("slurm-joule: %s: %s; %s is used", place, err.text,
                        value);
    }
    if (row->secret)
        explicit_bzero(text, strlen(text));
    slurm_xfree((void **)&text);
}

void joule_conf_load(const struct joule_option *options, void *config,
                     const s_p_hashtbl_t *table, bool quiet)
{
    size_t i;

    joule_option_defaults(options, config);
    for (i = 0; table && options[i].key; i++)
        load_option(&options[i], config, table, quiet);
}

void joule_conf_values(const struct joule_option *options, const void *config,
                       joule_slurm_list list)
{
    size_t i;

    for (i = 0; options[i].key; i++) {
        struct joule_slurm_key_pair *pair;
        char value[JOULE_OPTION_TEXT_MAX + 1];

        if (options[i].type == JOULE_OPTION_IGNORED)
            continue;
        joule_option_format(&options[i], config, value, sizeof(value));
        pair = slurm_xcalloc(1, sizeof(*pair), true, false, __FILE__, __LINE__,
                             __func__);
        pair->name = slurm_xstrdup(options[i].key);
        pair->value = slurm_xstrdup(value);
        slurm_list_append(list, pair);
    }
}
