/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * makepage - a page of `joule waits` on standard output.
 *
 *     makepage NAME      (see samplepage.h)
 */
#include "tests/unit/samplepage.h"

int main(int argc, char **argv)
{
    struct sample_page *sample = sample_page_create(argc == 2 ? argv[1] : "");
    struct joule_error err;
    int rc;

    if (!sample) {
        fprintf(stderr, "usage: makepage small|hostile|empty|calm|one|large\n");
        return 2;
    }
    rc = joule_waits_page_write(stdout, &sample->page, &err);
    if (rc < 0)
        fprintf(stderr, "makepage: %s\n", err.text);
    sample_page_destroy(sample);
    return rc < 0;
}
