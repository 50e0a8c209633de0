# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian packages: dpkg-buildpackage in the unpacked tarball.
EXTRA_DIST += \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/libjoule-dev.install \
	debian/libjoule1.install \
	debian/not-installed \
	debian/rules \
	debian/slurm-joule-doc.install \
	debian/slurm-joule-plugins.install \
	debian/slurm-joule-plugins.postinst \
	debian/slurm-joule-tools.install \
	debian/slurm-joule-tools.links \
	debian/source/format
