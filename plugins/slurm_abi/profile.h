/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile.h - the thirteen entry points of an acct_gather_profile plugin.
 *
 * A plugin is a file that defines joule_profile_name and the three variables
 * plugin_name, plugin_type and plugin_version; the entry points are linked
 * from profile.c.  Slurm holds its profile lock in some of them and not in
 * others: the adaptor has one of its own, which is never held while something
 * waits.  No entry point but node_step_end and fini waits for the disk, and
 * those for a bounded time.
 */
#ifndef JOULE_SLURM_PROFILE_H
#define JOULE_SLURM_PROFILE_H

extern const char joule_profile_name[]; /* for log lines: "joule_hdf5" */

#endif
