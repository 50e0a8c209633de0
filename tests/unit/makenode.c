/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * makenode - node-step files from a shell.
 *
 *     makenode write FILE NODE ROWS HZ ours|plain|slurm TASKS SEED [LATER_MS]
 *     makenode damage FROM TO SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nodefile.h"

static int damage(const char *from, const char *to, const char *seed)
{
    static unsigned char data[1 << 22];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    size_t len;

    if (!in || !out)
        return 1;
    len = fread(data, 1, sizeof(data), in);
    len = nodefile_damage(data, len, strtoull(seed, NULL, 10));
    fclose(in);
    return fwrite(data, 1, len, out) != len || fclose(out) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "damage") == 0)
        return damage(argv[2], argv[3], argv[4]);
    if ((argc == 9 || argc == 10) && strcmp(argv[1], "write") == 0) {
        struct nodefile n = {
            .node = argv[3],
            .rows = strtoull(argv[4], NULL, 10),
            .rate_hz = strtoull(argv[5], NULL, 10),
            .ours = strcmp(argv[6], "slurm") != 0,
            .plain = strcmp(argv[6], "plain") == 0,
            .tasks = (unsigned)atoi(argv[7]),
            .seed = (unsigned)atoi(argv[8]),
            .start_ns = UINT64_C(1795279470) * UINT64_C(1000000000),
        };

        if (argc == 10)
            n.start_ns += strtoull(argv[9], NULL, 10) * UINT64_C(1000000);
        return n.rate_hz == 0 || nodefile_write(argv[2], &n) < 0;
    }
    fputs("usage: makenode write FILE NODE ROWS HZ ours|plain|slurm TASKS "
          "SEED [LATER_MS]\n"
          "       makenode damage FROM TO SEED\n",
          stderr);
    return 2;
}
