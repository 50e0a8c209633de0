/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The input is the text of acct_gather.conf. */
#include <errno.h>
#include <string.h>

#include "common/base/conffile.h"
#include "common/sensors/energy_config.h"
#include "tests/fuzz/fuzz.h"

struct state {
    struct joule_energy_config config;
    unsigned line;
    size_t size;
};

/* What a row prints is what it reads, and means the same. */
static void check_format(const struct joule_option *row,
                         const struct joule_energy_config *config)
{
    struct joule_energy_config again;
    char text[JOULE_OPTION_TEXT_MAX + 1];

    memset(&again, 0, sizeof(again));
    joule_option_defaults(joule_energy_config_options, &again);
    joule_option_format(row, config, text, sizeof(text));
    if (row->secret || row->type == JOULE_OPTION_IGNORED)
        return;
    FUZZ_MUST(joule_option_set(row, &again, text, NULL) == 0);
    joule_option_defaults(joule_energy_config_options, &again);
    memcpy(&again, config, sizeof(again));
    FUZZ_MUST(joule_option_set(row, &again, text, NULL) == 0);
    FUZZ_MUST(memcmp(&again, config, sizeof(again)) == 0);
}

static int set(const char *key, const char *value, unsigned line, void *arg)
{
    struct state *state = arg;
    struct joule_energy_config before;
    struct joule_error err = {""};
    const struct joule_option *row;

    FUZZ_MUST(!key || key[0] != '\0');
    FUZZ_MUST((key ? strlen(key) + 1 : 0) + strlen(value) <= state->size);
    FUZZ_MUST(line >= 1 && line >= state->line);
    state->line = line;
    if (!key)
        return 0;
    row = joule_option_find(joule_energy_config_options, key);
    if (!row)
        return 0;
    memcpy(&before, &state->config, sizeof(before));
    if (joule_option_set(row, &state->config, value, &err) < 0) {
        FUZZ_MUST(errno == EINVAL || errno == ERANGE);
        FUZZ_MUST(memcmp(&before, &state->config, sizeof(before)) == 0);
        fuzz_check_sentence(&err);
        return 0;
    }
    check_format(row, &state->config);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state state;
    unsigned line;

    memset(&state, 0, sizeof(state));
    state.size = size;
    joule_option_defaults(joule_energy_config_options, &state.config);
    FUZZ_MUST(joule_conffile_walk((const char *)data, size, set, &state) == 0);
    line = joule_conffile_line((const char *)data, size, "JouleSamplePeriod");
    FUZZ_MUST(line <= state.line);
    return 0;
}
