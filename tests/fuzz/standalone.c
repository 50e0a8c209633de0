/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * standalone.c - runs a fuzz target without libFuzzer.
 *
 *     fuzz_x FILE...                    each file as it is
 *     fuzz_x -n N [-s SEED] [-v] FILE...  and then N mutations of them
 *
 * The same SEED gives the same inputs.  Run i is made from SEED + i alone:
 * with -v the seed of each run is printed before it, and
 * "-n 1 -s THAT_SEED" repeats the last one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX  16384
#define STEPS_MAX  8
#define CORPUS_MAX 256

struct input {
    uint8_t *data;
    size_t size;
};

/* splitmix64 (Steele, Lea, Flood: OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* 0..below-1; 0 for an empty range. */
static size_t pick(uint64_t *state, size_t below)
{
    return below ? (size_t)(next_random(state) % below) : 0;
}

/* Replace [gone] bytes at [at] by others; too long a result is cut. */
static void splice(uint8_t *buf, size_t *size, size_t at, size_t gone,
                   const uint8_t *from, size_t len)
{
    uint8_t tail[INPUT_MAX];
    size_t tail_len = *size - at - gone;

    memcpy(tail, buf + at + gone, tail_len);
    if (len > INPUT_MAX - at)
        len = INPUT_MAX - at;
    memmove(buf + at, from, len);
    if (tail_len > INPUT_MAX - at - len)
        tail_len = INPUT_MAX - at - len;
    memcpy(buf + at + len, tail, tail_len);
    *size = at + len + tail_len;
}

/* One change: text that parsers trip over, another place's bytes, or noise. */
static void mutate(uint64_t *state, uint8_t *buf, size_t *size,
                   const struct input *other)
{
    static const char *const tokens[] = {
        "\n",  "\\\n", "\"", "#",  "=",          ",",    "-",
        ":",   "/",    "-1", "0",  "4294967296", "1e9",  "0x",
        "\r",  "\t",   " ",  "..", "65535",      "0-3",  "18446744073709551616",
        "0.5", "ms",   "h",  ";",  "hypervisor", "psys", "\xFF",
    };
    size_t at = pick(state, *size + 1);
    size_t some = pick(state, *size - at + 1);
    const char *token = tokens[pick(state, sizeof(tokens) / sizeof(tokens[0]))];
    uint8_t copy[INPUT_MAX];

    if (some > 1)
        some = pick(state, some < 32 ? some : 32);
    switch (pick(state, 7)) {
    case 0:
        if (at < *size)
            buf[at] ^= (uint8_t)(1u << pick(state, 8));
        break;
    case 1:
        if (at < *size)
            buf[at] = (uint8_t)next_random(state);
        break;
    case 2:
        splice(buf, size, at, 0, (const uint8_t *)token, strlen(token));
        break;
    case 3:
        splice(buf, size, at, some, (const uint8_t *)token, strlen(token));
        break;
    case 4:
        splice(buf, size, at, some, (const uint8_t *)"", 0);
        break;
    case 5:
        memcpy(copy, buf + at, some);
        splice(buf, size, pick(state, *size + 1), 0, copy, some);
        break;
    default:
        some = pick(state, other->size + 1);
        splice(buf, size, at, *size - at, other->data + some,
               other->size - some);
        break;
    }
}

/* In memory of just that size, so that one byte too many is seen. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);

    FUZZ_MUST(exact);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int load(const char *path, struct input *ret)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return -1;
    ret->data = malloc(INPUT_MAX);
    FUZZ_MUST(ret->data);
    ret->size = fread(ret->data, 1, INPUT_MAX, file);
    fclose(file);
    return 0;
}

static void run_mutations(const struct input *corpus, size_t count,
                          uint64_t runs, uint64_t seed, bool verbose)
{
    uint8_t buf[INPUT_MAX];

    for (uint64_t i = 0; i < runs; i++) {
        uint64_t state = seed + i;
        const struct input *from = &corpus[pick(&state, count)];
        size_t size = from->size;
        size_t steps = 1 + pick(&state, STEPS_MAX);

        if (verbose)
            fprintf(stderr, "seed %" PRIu64 "\n", seed + i);
        memcpy(buf, from->data, size);
        while (steps-- > 0)
            mutate(&state, buf, &size, &corpus[pick(&state, count)]);
        run(buf, size);
    }
}

int main(int argc, char **argv)
{
    static struct input corpus[CORPUS_MAX];
    uint64_t runs = 0, seed = 1;
    size_t count = 0;
    bool verbose = false;
    int opt;

    while ((opt = getopt(argc, argv, "n:s:v")) != -1) {
        if (opt == 'v')
            verbose = true;
        else if (opt == '?' ||
                 joule_parse_u64(optarg, 0, UINT64_MAX,
                                 opt == 'n' ? &runs : &seed) < 0) {
            fprintf(stderr, "usage: %s [-n RUNS] [-s SEED] [-v] FILE...\n",
                    argv[0]);
            return 2;
        }
    }
    for (; optind < argc && count < CORPUS_MAX; optind++) {
        if (load(argv[optind], &corpus[count]) < 0) {
            fprintf(stderr, "%s: %s\n", argv[optind], strerror(errno));
            return 2;
        }
        run(corpus[count].data, corpus[count].size);
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "%s: no input files\n", argv[0]);
        return 2;
    }
    run_mutations(corpus, count, runs, seed, verbose);
    printf("%s: %zu files, %" PRIu64 " mutations\n", argv[0], count, runs);
    while (count > 0)
        free(corpus[--count].data);
    return 0;
}
