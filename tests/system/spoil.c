/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spoil - make a plugin that does not fit of one that does.
 *
 *   spoil version FILE        for the release after this one: its last number
 *                             is one more (plugin_version)
 *   spoil layout FILE BYTES   that takes the fields of Slurm's record of a step
 *                             to be so many bytes further on
 *
 * Exit status 1 with a sentence if FILE has not exactly one place to change.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/step_layout.h"

static unsigned char *image;
static size_t image_size;

static int fail(const char *text)
{
    fprintf(stderr, "spoil: %s\n", text);
    return 1;
}

static int load(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size;

    if (!f)
        return -1;
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    image = size > 0 ? malloc((size_t)size) : NULL;
    image_size = (size_t)size;
    if (!image || fread(image, 1, image_size, f) != image_size) {
        fclose(f);
        return -1;
    }
    return fclose(f);
}

static int store(const char *path)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(image, 1, image_size, f) != image_size)
        return fail("cannot write the file");
    return fclose(f) ? fail("cannot write the file") : 0;
}

/* The one place where [bytes] is, or NULL. */
static unsigned char *find(const void *bytes, size_t size)
{
    unsigned char *at, *found = NULL;

    for (at = image; at + size <= image + image_size; at++) {
        if (memcmp(at, bytes, size) != 0)
            continue;
        if (found)
            return NULL;
        found = at;
    }
    return found;
}

/* Where the file has what will be at [address]. */
static unsigned char *at_address(const Elf64_Ehdr *head, Elf64_Addr address)
{
    const Elf64_Phdr *part = (const Elf64_Phdr *)(image + head->e_phoff);
    size_t i;

    for (i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && address >= part[i].p_vaddr &&
            address - part[i].p_vaddr < part[i].p_filesz)
            return image + part[i].p_offset + (address - part[i].p_vaddr);
    return NULL;
}

/* The file is one that we have linked. */
static unsigned char *find_symbol(const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + head->e_shoff);
    size_t i, j;

    for (i = 0; i < head->e_shnum; i++) {
        const Elf64_Sym *symbols =
            (const Elf64_Sym *)(image + sections[i].sh_offset);
        const char *names;

        if (sections[i].sh_type != SHT_DYNSYM)
            continue;
        names = (const char *)image + sections[sections[i].sh_link].sh_offset;
        for (j = 0; j < sections[i].sh_size / sizeof(*symbols); j++)
            if (strcmp(names + symbols[j].st_name, name) == 0)
                return at_address(head, symbols[j].st_value);
    }
    return NULL;
}

static int spoil_version(void)
{
    const uint32_t here = SLURM_VERSION_NUMBER, other = here + 1;
    unsigned char *at = find_symbol("plugin_version");

    if (!at || memcmp(at, &here, sizeof(here)) != 0)
        return fail("the file has no plugin_version of this release");
    memcpy(at, &other, sizeof(other));
    return 0;
}

static int spoil_layout(int by)
{
    const struct joule_step_layout *layout = joule_step_layout();
    uint32_t row[sizeof(*layout) / sizeof(uint32_t)];
    unsigned char *at;
    size_t i;

    at = layout ? find(layout, sizeof(*layout)) : NULL;
    if (!at)
        return fail("the file has not one layout of this release");
    memcpy(row, layout, sizeof(row));
    for (i = 2; i < sizeof(row) / sizeof(row[0]); i++)
        row[i] += (uint32_t)by;
    row[1] += by > 0 ? (uint32_t)by : 0;
    memcpy(at, row, sizeof(row));
    return 0;
}

int main(int argc, char **argv)
{
    char *end;
    long bytes;
    int rc = 2;

    if (argc < 3 || load(argv[2]) < 0)
        return fail("spoil version FILE, or layout FILE BYTES");
    if (argc == 3 && strcmp(argv[1], "version") == 0)
        rc = spoil_version();
    else if (argc == 4 && strcmp(argv[1], "layout") == 0 &&
             (bytes = strtol(argv[3], &end, 10)) != 0 && *end == '\0')
        rc = spoil_layout((int)bytes);
    if (rc == 0)
        rc = store(argv[2]);
    free(image);
    return rc;
}
