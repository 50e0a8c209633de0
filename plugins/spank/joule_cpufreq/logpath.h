/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logpath.h - SlurmdLogFile as it is written in slurm.conf.
 */
#ifndef JOULE_SPANK_LOGPATH_H
#define JOULE_SPANK_LOGPATH_H

#include <stddef.h>

/* [pattern] with %h and %n replaced.  0, or -1 and "" if it does not fit. */
int joule_logpath_expand(const char *pattern, const char *host,
                         const char *node, char *buf, size_t size);

#endif
