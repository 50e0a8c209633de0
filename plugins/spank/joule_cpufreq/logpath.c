/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/spank/joule_cpufreq/logpath.h"

#include <string.h>

int joule_logpath_expand(const char *pattern, const char *host,
                         const char *node, char *buf, size_t size)
{
    size_t used = 0;

    while (*pattern) {
        const char *piece = pattern;
        size_t len = 1;

        if (pattern[0] == '%' && (pattern[1] == 'h' || pattern[1] == 'n')) {
            piece = pattern[1] == 'h' ? host : node;
            len = strlen(piece);
            pattern++;
        }
        pattern++;
        if (len >= size - used) {
            buf[0] = '\0';
            return -1;
        }
        memcpy(buf + used, piece, len);
        used += len;
    }
    buf[used] = '\0';
    return 0;
}
