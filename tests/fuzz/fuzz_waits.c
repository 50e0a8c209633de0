/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a file of power states; and as bytes, calls of four processes for
 * the matcher: a byte for the process, one for the operations, then what these are.
 */
#include <string.h>

#include "common/waits/matcher.h"
#include "common/waits/power_states.h"
#include "tests/fuzz/fuzz.h"

#define PROCESSES 4

static void read_states(const uint8_t *data, size_t size)
{
    struct joule_power_states states, before;
    struct joule_power_envelope envelope;
    struct joule_error err = {""};
    char *text = malloc(size + 1);

    FUZZ_MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&states, 0xA5, sizeof(states));
    memcpy(&before, &states, sizeof(states));
    if (joule_power_states_parse(&states, text, "input", &err) < 0) {
        FUZZ_MUST(memcmp(&before, &states, sizeof(states)) == 0);
        fuzz_check_sentence(&err);
    } else {
        FUZZ_MUST(states.count >= 1 && states.count <= JOULE_POWER_STATES_MAX);
        joule_power_envelope_make(&envelope, &states);
        FUZZ_MUST(envelope.pieces >= 1 && envelope.piece[0].from_ns == 0);
        for (size_t i = 1; i < envelope.pieces; i++)
            FUZZ_MUST(envelope.piece[i - 1].from_ns <
                      envelope.piece[i].from_ns);
    }
    free(text);
}

struct seen {
    uint64_t waits, ns, slack_ns;
};

static void take(void *arg, unsigned part, const struct joule_wait *wait)
{
    struct seen *seen = arg;

    FUZZ_MUST(part < JOULE_MATCHER_PARTS_MAX);
    FUZZ_MUST(wait->process < PROCESSES && wait->wait_ns > 0);
    FUZZ_MUST(wait->end_ns - wait->begin_ns == wait->wait_ns);
    seen->waits++;
    seen->ns += wait->wait_ns;
}

/* Members of a communicator agree on its size, and have ranks of their own, unless
 * [is_wild]. */
static struct joule_operation make_operation(const uint8_t *at,
                                             uint32_t process, bool is_wild)
{
    return (struct joule_operation){
        .kind = (enum joule_operation_kind)(at[0] % (JOULE_COMPUTED + 1)),
        .communicator = at[1] & 1,
        .peer = at[1] >> 1 & 3,
        .tag = at[1] >> 3 & 1,
        .request = at[2] & 7,
        .collective =
            (enum joule_collective)(at[2] >> 3 & JOULE_COLLECTIVE_OTHER),
        .rank = is_wild ? process ^ (at[2] >> 7) : process,
        .size =
            (is_wild ? at[1] & 0x80 : at[1] & 1) ? PROCESSES : PROCESSES - 1,
        .is_root = at[0] & 0x80,
        .has_sent = at[0] & 0x40,
        .has_received = at[0] & 0x20,
    };
}

static uint64_t slack_of(const struct joule_matcher *m, uint32_t process)
{
    size_t count;
    const struct joule_slack_path *path =
        joule_slack_paths(joule_matcher_slack(m, process), &count);

    for (size_t i = 1; i < count; i++)
        FUZZ_MUST(path[i].slack_ns <= path[0].slack_ns);
    return path[0].slack_ns;
}

static struct seen run_calls(const uint8_t *data, size_t size, unsigned parts,
                             bool is_wild)
{
    struct seen seen = {0};
    const struct joule_matcher_config config = {.processes = PROCESSES,
                                                .parts = parts,
                                                .held_max = 5,
                                                .with_slack = parts > 1,
                                                .take = take,
                                                .arg = &seen};
    struct joule_matcher *m = joule_matcher_create(&config, NULL);
    struct joule_operation operation[8];
    uint64_t ns = 0;

    FUZZ_MUST(m);
    while (size >= 2) {
        struct joule_call call = {.process = data[0] % PROCESSES,
                                  .enter_ns = ns += data[0] >> 4,
                                  .leave_ns = ns + data[1],
                                  .is_test = data[0] & 4,
                                  .waits_for_receiver = data[0] & 8,
                                  .operation = operation};
        size_t most = data[1] % 8;

        data += 2;
        size -= 2;
        for (; call.operations < most && size >= 3; data += 3, size -= 3)
            operation[call.operations++] =
                make_operation(data, call.process, is_wild);
        FUZZ_MUST(joule_matcher_call(m, &call) == 0);
        for (unsigned i = 0; size % 7 == 0 && i < parts; i++)
            FUZZ_MUST(joule_matcher_match(m, i) == 0);
        for (unsigned i = 0; size % 7 == 0 && i < parts; i++)
            joule_matcher_collect(m, i);
    }
    FUZZ_MUST(joule_matcher_finish(m) == 0);
    for (uint32_t i = 0; i < PROCESSES && config.with_slack; i++)
        seen.slack_ns += slack_of(m, i);
    FUZZ_MUST(seen.slack_ns <= seen.ns);
    joule_matcher_destroy(m);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen one, two, three;

    read_states(data, size);
    run_calls(data, size, 3, true);
    one = run_calls(data, size, 1, false);
    two = run_calls(data, size, 2, false);
    three = run_calls(data, size, 3, false);
    FUZZ_MUST(one.waits == three.waits && one.ns == three.ns);
    FUZZ_MUST(two.slack_ns == three.slack_ns);
    return 0;
}
