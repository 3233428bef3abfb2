#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# crates/proxyd/tests/hostile asked of proxyd, and of the distribution's HAProxy and
# nginx as they come: what each refuses, makes plain, or lets through.
#
# usage: scripts/hostile.sh
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
pid=
clear_up() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

proxy=127.0.0.1:18480
backend=127.0.0.1:18481

haproxy_config() {
	cat <<-CONFIG
		defaults
			mode http
			timeout connect 2s
			timeout client 5s
			timeout server 5s
		frontend f
			bind $proxy
			default_backend b
		backend b
			server s $backend
	CONFIG
}

nginx_config() {
	cat <<-CONFIG
		pid $work/nginx.pid;
		daemon off;
		master_process off;
		error_log /dev/null;
		events {}
		http {
			access_log off;
			client_body_temp_path $work;
			proxy_temp_path $work;
			fastcgi_temp_path $work;
			uwsgi_temp_path $work;
			scgi_temp_path $work;
			server {
				listen $proxy;
				location / {
					proxy_pass http://$backend;
					proxy_http_version 1.1;
					proxy_request_buffering off;
					# The battery ends its side once it has sent all.
					proxy_ignore_client_abort on;
				}
			}
		}
	CONFIG
}

ask() {
	HOSTILE_NAME=$1 HOSTILE_PROXY=$proxy HOSTILE_BACKEND=$backend \
		"${CARGO:-cargo}" test -q --locked -p proxyd --test hostile -- \
		--ignored --nocapture another_proxy
}

"${CARGO:-cargo}" test -q --locked -p proxyd --test hostile -- --nocapture
for name in haproxy nginx; do
	if ! command -v "$name" >/dev/null; then
		echo "hostile: no $name here; Debian: apt-get install $name"
		continue
	fi
	"${name}_config" >"$work/$name.conf"
	case $name in
	haproxy) haproxy -f "$work/haproxy.conf" -db >"$work/log" 2>&1 & ;;
	nginx) nginx -c "$work/nginx.conf" >"$work/log" 2>&1 & ;;
	esac
	pid=$!
	sleep 1
	version=$("$name" -v 2>&1 | head -n 1)
	ask "$version" || cat "$work/log"
	kill "$pid"
	wait "$pid" || true
	pid=
done
