/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * makenode - node-step files from a shell.
 *
 *     makenode write FILE NODE ROWS HZ ours|plain|slurm TASKS SEED [LATER_MS]
 *     makenode many DIRECTORY ROWS HZ ours|plain|slurm FIRST LAST
 *     makenode damage FROM TO SEED
 *
 * many: DIRECTORY/7_0_nodeN.h5 for each N from FIRST to LAST.
 */
#include <malloc.h>
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

static struct nodefile layout_of(const char *name)
{
    return (struct nodefile){
        .ours = strcmp(name, "slurm") != 0,
        .plain = strcmp(name, "plain") == 0,
        .start_ns = UINT64_C(1795279470) * UINT64_C(1000000000),
    };
}

static int many(char **args)
{
    struct nodefile n = layout_of(args[3]);
    unsigned last = (unsigned)atoi(args[5]);
    char path[4096], node[32];

    n.node = node;
    n.rows = strtoull(args[1], NULL, 10);
    n.rate_hz = strtoull(args[2], NULL, 10);
    for (n.seed = (unsigned)atoi(args[4]); n.seed <= last; n.seed++) {
        snprintf(node, sizeof(node), "node%u", n.seed);
        snprintf(path, sizeof(path), "%s/7_0_%s.h5", args[0], node);
        if (n.rate_hz == 0 || nodefile_write(path, &n) < 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    /* libhdf5 gives the top of the heap back and asks for it again with every
     * third chunk. */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 16 << 20);
    if (argc == 5 && strcmp(argv[1], "damage") == 0)
        return damage(argv[2], argv[3], argv[4]);
    if ((argc == 9 || argc == 10) && strcmp(argv[1], "write") == 0) {
        struct nodefile n = layout_of(argv[6]);

        n.node = argv[3];
        n.rows = strtoull(argv[4], NULL, 10);
        n.rate_hz = strtoull(argv[5], NULL, 10);
        n.tasks = (unsigned)atoi(argv[7]);
        n.seed = (unsigned)atoi(argv[8]);
        if (argc == 10)
            n.start_ns += strtoull(argv[9], NULL, 10) * UINT64_C(1000000);
        return n.rate_hz == 0 || nodefile_write(argv[2], &n) < 0;
    }
    if (argc == 8 && strcmp(argv[1], "many") == 0)
        return many(argv + 2);
    fputs("usage: makenode write FILE NODE ROWS HZ ours|plain|slurm TASKS "
          "SEED [LATER_MS]\n"
          "       makenode many DIRECTORY ROWS HZ ours|plain|slurm FIRST "
          "LAST\n"
          "       makenode damage FROM TO SEED\n",
          stderr);
    return 2;
}
