# SPDX-License-Identifier: GPL-2.0-or-later
# The RPM packages: rpmbuild -ta slurm-joule-VERSION.tar.xz
EXTRA_DIST += \
	rpm/rpmlint.toml \
	rpm/slurm-joule.spec
