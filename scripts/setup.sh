#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sees to it that everything that building, testing and the demo need is
# installed: as root it installs what is missing, by name; as anybody else it
# prints the one command that does, and ends with 3.
#
# usage: scripts/setup.sh [GROUP]...     default: build
# GROUP: build test browser c lint kernels upstream programs suites dist power
set -eu

# The oldest Rust that the workspace builds with; see rust-version in Cargo.toml.
rust_minor_wanted=88

missing=
# Whether a package comes with the security updates, which this system leaves out.
security=
apt_options=

# need PROGRAM:PACKAGE...: the packages that bring programs which are not there; PROGRAM alone, where
# its package has the same name.
need() {
	for pair; do
		command -v "${pair%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
	done
}

# need_header FILE:PACKAGE...
need_header() {
	for pair; do
		[ -e "/usr/include/${pair%:*}" ] || missing="$missing ${pair#*:}"
	done
}

is_recent_rust() {
	[ "${1:-0}" -ge "$rust_minor_wanted" ]
}

# candidate_rust PACKAGE: the 85 of 1.85.0+dfsg3, if apt knows the package.
candidate_rust() {
	apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: 1\.\([0-9]*\)\..*/\1/p'
}

# Debian 12's own cargo is too old; its cargo-web is kept recent for browsers, by
# the security updates.
need_rust() {
	if is_recent_rust "$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')"; then
		return
	fi
	if is_recent_rust "$(candidate_rust cargo)"; then
		missing="$missing cargo rustc"
		return
	fi
	missing="$missing cargo-web rustc-web"
	is_recent_rust "$(candidate_rust cargo-web)" || security=1
}

need_build() {
	need_rust
	need_header stdio.h:libc6-dev
	# The kernel: to fetch, unpack, patch, configure and build it.
	need gcc make flex bison bc xz:xz-utils patch git perl python3
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
}

# has_candidate PACKAGE: whether apt could install it.
has_candidate() {
	apt-cache policy "$1" 2>/dev/null | grep -q '^ *Candidate: [0-9]'
}

# Opens the pages of reports: as large as a compiler. Elsewhere it is no package of apt's
# (Ubuntu), and what wants it says that it was not there.
need_browser() {
	for name in chromium chromium-browser google-chrome; do
		if command -v "$name" >/dev/null 2>&1; then
			return
		fi
	done
	if has_candidate chromium; then
		missing="$missing chromium"
	else
		echo "setup: apt knows no package chromium here: pages are not opened in a browser" >&2
	fi
}

# What tests of x86 kernels ask for; the kernels themselves are made up.
need_test() {
	need_header gelf.h:libelf-dev
}

# The C library's tests: both compilers, C++, valgrind, pkg-config.
need_c() {
	need g++ clang pkg-config:pkgconf valgrind
	# The example of io_uring. The one of Go is tried where there is a go.
	need_header liburing.h:liburing-dev
}

need_lint() {
	need shellcheck sparse groff
}

# The kernels that run in QEMU: to build and boot them.
need_kernels() {
	# ccache: the tests build the same source for several kernels. dpkg-buildpackage and after it:
	# packages of a kernel, `ntcopy kernel package`.
	need ccache qemu-system-x86_64:qemu-system-x86 depmod:kmod objdump:binutils \
		dpkg-buildpackage:dpkg-dev dh_builddeb:debhelper rsync cpio openssl
	need_header libelf.h:libelf-dev openssl/evp.h:libssl-dev
	[ -e /usr/lib/qemu/virtiofsd ] || [ -e /usr/libexec/virtiofsd ] ||
		missing="$missing $(virtiofsd_package)"
}

# Debian 12 has it in QEMU's package, later ones in one of its own.
virtiofsd_package() {
	if apt-cache show virtiofsd >/dev/null 2>&1; then
		echo virtiofsd
	else
		echo qemu-system-common
	fi
}

# What the network tests of the kernel want.
need_upstream() {
	need ip:iproute2 ethtool jq sysctl:procps ping:iputils-ping tcpdump
	need_header openssl/sha.h:libssl-dev numa.h:libnuma-dev sys/capability.h:libcap-dev
}

# The programs that `ntcopy run` and `ntcopy bench app` are tried with. Their packages start their
# services.
need_programs() {
	need memcached
	# Where the search path of a user does not lead.
	[ -x /usr/sbin/nginx ] || need nginx:nginx-light
	[ -x /usr/sbin/haproxy ] || need haproxy
}

# The programs whose own test suites are run, and what these are made of. Their packages start their
# services.
need_suites() {
	need make gcc python3 dpkg-source:dpkg-dev memcached redis-server redis-benchmark:redis-tools tclsh:tcl
	need_header event.h:libevent-dev sasl/sasl.h:libsasl2-dev openssl/ssl.h:libssl-dev
	perl -MIO::Socket::SSL -e 1 2>/dev/null || missing="$missing libio-socket-ssl-perl"
}

# The Debian packages: to build them, to have them judged, to try them in a Debian of their own.
need_dist() {
	need dpkg-buildpackage:dpkg-dev dh:debhelper git xz:xz-utils objdump:binutils lintian debootstrap python3
}

# What makes the file systems that lose power, and the disk under them.
need_power() {
	# They lie where the search path of a user does not lead.
	PATH=$PATH:/usr/sbin:/sbin
	need dmsetup losetup:mount mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs python3
}

# Has apt look at the security updates too, this once: the system's lists stay as
# they are.
add_security() {
	# shellcheck disable=SC2016 # apt expands it
	mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/$') || {
		echo "setup: Rust 1.$rust_minor_wanted or later comes with this distribution's security" \
			"updates, or not at all: add them to apt's sources and run this again" >&2
		exit 3
	}
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-setup-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$work/parts" "$work/lists/partial"
	find /etc/apt/sources.list.d -type f -exec cp {} "$work/parts/" \;
	echo "deb ${mirror%/}-security $codename-security main" >"$work/parts/ntcopy-security.list"
	# apt fetches as a user of its own.
	chmod -R a+rX "$work"
	apt_options="-o Dir::Etc::sourceparts=$work/parts -o Dir::State::lists=$work/lists"
}

update_lists() {
	# Without lists nothing can be asked or installed; a fresh image has none.
	if ! apt-cache show flex >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
		apt-get update -q
	fi
}

command -v apt-get >/dev/null 2>&1 || {
	echo "setup: this is not a Debian-like system (no apt-get);" \
		"install a C compiler, make, flex, bison, bc, xz, patch, git, perl, python3 and" \
		"Rust 1.$rust_minor_wanted or later yourself" >&2
	exit 0
}

[ $# -gt 0 ] || set -- build
update_lists
for what; do
	case $what in
	build | test | browser | c | lint | kernels | upstream | programs | suites | dist | power)
		"need_$what"
		;;
	*)
		echo "setup: '$what' is none of build, test, browser, c, lint, kernels, upstream, programs, suites, dist, power" >&2
		exit 2
		;;
	esac
done

[ -n "$missing" ] || exit 0

# shellcheck disable=SC2086 # a list of names
if [ "$(id -u)" != 0 ]; then
	if [ -n "$security" ]; then
		echo "setup: Rust 1.$rust_minor_wanted or later comes with this distribution's security" \
			"updates; add them to apt's sources first" >&2
	fi
	echo "setup: missing here. This installs it:" >&2
	echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
	exit 3
fi
[ -z "$security" ] || add_security
echo "setup: installing$missing"
# shellcheck disable=SC2086 # options
apt-get $apt_options update -q >/dev/null
# shellcheck disable=SC2086 # options, and a list of names
DEBIAN_FRONTEND=noninteractive apt-get $apt_options install -yq --no-install-recommends \
	$missing >/dev/null || {
	echo "setup: these were not installed:$missing; without a network apt has nothing to take them" \
		"from; what it began, it goes on with when this is run again" >&2
	exit 3
}
