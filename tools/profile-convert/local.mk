# SPDX-License-Identifier: GPL-2.0-or-later
# What slurmstepd starts at the end of a step that is profiled.
if HAVE_HDF5
joulelibexec_PROGRAMS += joule-profile-convert

joule_profile_convert_SOURCES = tools/profile-convert/main.c
joule_profile_convert_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
joule_profile_convert_LDADD = $(LIBJOULE_HDF5)
endif
