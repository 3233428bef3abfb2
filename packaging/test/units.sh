#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Inside a Debian whose systemd is booted, with ntcopy, nginx and HAProxy installed as
# the distribution has them: `ntcopy advise --apply DIR --unit` writes the drop-ins,
# systemd takes them, both start under `ntcopy run`, answer as before, reload and
# restart; without the drop-ins they are as they were. A unit that is not there and a
# program that is not there are refused, and nothing is written.
#
# usage: packaging/test/units.sh
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
dropins=/etc/systemd/system

die() {
	echo "units: $*" >&2
	journalctl -q --no-pager -u nginx -u haproxy -n 30 >&2 || true
	exit 1
}

# refused WORDS ARGUMENT...: advise refuses it with 3, and writes nothing.
refused() {
	words=$1
	shift
	code=0
	ntcopy advise --apply "$work/none" "$@" >"$work/said" 2>&1 || code=$?
	[ "$code" = 3 ] || die "advise $* ends with $code: $(cat "$work/said")"
	grep -q -- "$words" "$work/said" || die "advise $* does not say '$words': $(cat "$work/said")"
	[ ! -e "$work/none" ] || die "advise $* has written something"
}

# answers NAME URL: what it says, as it said before.
answers() {
	curl -sSf --retry 50 --retry-delay 0 --retry-connrefused -o "$work/answer" "$2" || die "$1 does not answer"
	[ -e "$work/first" ] || cp "$work/answer" "$work/first"
	cmp -s "$work/first" "$work/answer" || die "$1 answers otherwise than before"
}

both_answer() {
	answers nginx http://127.0.0.1:80/
	answers haproxy http://127.0.0.1:8081/
}

# is_hinted UNIT: its main process has the library.
is_hinted() {
	grep -q libntcopy-preload.so "/proc/$(systemctl show -P MainPID "$1")/maps"
}

ip link set lo up
# Debian's own settings have no listener.
printf 'listen web\n\tbind 127.0.0.1:8081\n\tserver nginx 127.0.0.1:80\n' >>/etc/haproxy/haproxy.cfg
systemctl restart nginx haproxy || die "they do not start as they are"
both_answer

refused "there is no unit no-such-thing.service" --unit nginx --unit no-such-thing --min-bytes 64KiB
mkdir "$work/units"
printf '[Service]\nExecStart=/usr/sbin/gone -D\n' >"$work/units/gone.service"
refused "/usr/sbin/gone, which is not there" --unit "$work/units/gone.service" --min-bytes 64KiB
refused "no record says" --unit nginx

ntcopy advise --apply "$work/advice" --unit nginx --unit haproxy --min-bytes 64KiB >"$work/said" 2>&1 ||
	die "advise: $(cat "$work/said")"
for unit in nginx haproxy; do
	! is_hinted "$unit" || die "$unit has the library already"
	cp -R "$work/advice/systemd/system/$unit.service.d" "$dropins/"
done
systemctl daemon-reload
systemd-analyze verify --man=no nginx.service haproxy.service 2>"$work/said" || die "systemd: $(cat "$work/said")"
! grep 60-ntcopy "$work/said" || die "systemd has a word about the drop-ins"
systemctl restart nginx haproxy || die "they do not start under ntcopy run"
for unit in nginx haproxy; do
	is_hinted "$unit" || die "$unit runs without the library"
done
both_answer
systemctl reload nginx haproxy || die "they do not reload under ntcopy run"
both_answer
for unit in nginx haproxy; do
	is_hinted "$unit" || die "$unit has lost the library as it was reloaded"
	rm -r "$dropins/$unit.service.d"
done
systemctl daemon-reload
systemctl restart nginx haproxy
for unit in nginx haproxy; do
	! is_hinted "$unit" || die "$unit has the library without the drop-in"
done
both_answer
systemctl stop nginx haproxy
echo "units: nginx $(dpkg-query -W -f '${Version}' nginx) and HAProxy $(dpkg-query -W -f '${Version}' haproxy): hinted by a drop-in, and not without it"
