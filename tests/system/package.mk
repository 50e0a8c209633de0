# SPDX-License-Identifier: GPL-2.0-or-later
# The tarball, packages made of it, and what is done with them.
dist_check_SCRIPTS += \
	tests/release \
	tests/system/debs \
	tests/system/installed \
	tests/system/overlay \
	tests/system/test_configure.sh \
	tests/system/test_dist.sh \
	tests/system/test_guide.sh \
	tests/system/test_installed.sh \
	tests/system/test_package_deb.sh \
	tests/system/test_package_rpm.sh
EXTRA_DIST += tests/system/package.sh
