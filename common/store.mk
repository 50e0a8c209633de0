# SPDX-License-Identifier: GPL-2.0-or-later
# The energy series of a step.  Whoever links it says $(LIBJOULESTORE).
noinst_LIBRARIES += libjoulestore.a
LIBJOULESTORE = libjoulestore.a $(LIBJOULE_PROFILE)

libjoulestore_a_SOURCES = \
	common/step/energy_series.c common/step/energy_series.h \
	common/step/pace.c common/step/pace.h
