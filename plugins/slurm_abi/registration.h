/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * registration.h - a step's registration in the ledger, made of what Slurm says
 * of the step.
 */
#ifndef JOULE_SLURM_REGISTRATION_H
#define JOULE_SLURM_REGISTRATION_H

#include "common/step/step_energy.h"
#include "plugins/slurm_abi/slurm_step.h"

/*
 * Register the step.  Its CPUs and its job's are those of the cores that Slurm
 * gave them, found below root_fd; where the machine has other cores than Slurm
 * was told, only their number is known.  NULL with a sentence: ENOTSUP (the
 * cores of the step are not said) or ENOMEM.
 */
struct joule_step_energy *
joule_registration_make(int root_fd, const struct joule_slurm_step *step,
                        struct joule_error *err);

#endif
