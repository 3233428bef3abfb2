#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What watches the counters, tried: the alerts by promtool's own tests; then a kernel
# that counts, `ntcopy stat --prometheus --out`, the distribution's node_exporter and
# Prometheus, which scrapes it. Every query of the dashboard must have an answer, and
# the alert must fire where hinted sends are too small for the hint, with that reason.
# Grafana is in no Debian: of the dashboard the JSON and the queries are tried.
# Everything listens on the loopback, and ends with this script.
#
# usage: scripts/check-watch.sh [NTCOPY]      default: target/release/ntcopy
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
ntcopy=${1:-$root/target/release/ntcopy}
files=$root/packaging/prometheus
# Seconds of sends that the rates are taken of, and what the rules' windows are shrunk to.
load_s=30
window=15s

say() {
	echo "watch: $*"
}

die() {
	echo "watch: $*" >&2
	for log in "$work"/*.log; do
		[ ! -s "$log" ] || tail -n 5 "$log" >&2
	done
	exit 1
}

for tool in promtool prometheus prometheus-node-exporter curl python3; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "watch: $tool is missing: scripts/setup.sh watch" >&2
		exit 3
	}
done

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-watch-XXXXXX")
started=
clear_up() {
	for process in $started; do
		kill "$process" 2>/dev/null || true
	done
	wait
	rm -rf "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

# free_port: one that nothing listens on now.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_it_answers URL
until_it_answers() {
	tries=0
	until curl -sfo /dev/null --noproxy '*' "$1"; do
		tries=$((tries + 1))
		[ "$tries" -lt 150 ] || die "$1 does not answer"
		sleep 0.2
	done
}

say "the rules, by promtool"
promtool check rules "$files/ntcopy.rules.yml" >"$work/rules.log" 2>&1 || die "the rules are wrong"
promtool test rules "$files/ntcopy.rules.test.yml" >"$work/tests.log" 2>&1 || die "the alerts fire wrongly"

# The same rules by the minute that this takes.
sed -e "s/\[5m\]/[$window]/g" -e 's/for: 10m/for: 1s/' "$files/ntcopy.rules.yml" >"$work/rules.yml"
exporter=$(free_port)
server=$(free_port)
mkdir "$work/textfile" "$work/data"
cat >"$work/prometheus.yml" <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: node
    static_configs: [{targets: ["127.0.0.1:$exporter"]}]
CONFIG
prometheus-node-exporter --collector.disable-defaults --collector.textfile \
	--collector.textfile.directory="$work/textfile" --web.listen-address="127.0.0.1:$exporter" \
	>"$work/exporter.log" 2>&1 &
started="$started $!"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
	--web.listen-address="127.0.0.1:$server" >"$work/prometheus.log" 2>&1 &
started="$started $!"
until_it_answers "http://127.0.0.1:$exporter/metrics"
until_it_answers "http://127.0.0.1:$server/-/ready"

# load BYTES COUNT: sends of BYTES bytes in a kernel that counts, for a while, and its counters
# in the exporter's folder.
load() {
	cat >"$work/load.sh" <<LOAD
end=\$((\$(date +%s) + $load_s))
while [ \$(date +%s) -lt \$end ]; do
	$ntcopy unix-nt-bench $1 $2 1 524288 524288 >/dev/null || exit 1
	$ntcopy stat --prometheus --out $work/textfile/ntcopy.prom || exit 1
	sleep 0.5
done
LOAD
	"$ntcopy" kernel boot --timeout 120 --write "$work/textfile" -- sh "$work/load.sh" >"$work/load.log" 2>&1 ||
		die "the sends failed"
}

say "sends of 1 MiB in a booted kernel, scraped for $load_s s"
load 1048576 64
promtool check metrics <"$work/textfile/ntcopy.prom" >"$work/metrics.log" 2>&1 || die "promtool on the file"
grep '^ntcopy_hinted_bytes_total{outcome="nontemporal"}' "$work/textfile/ntcopy.prom"
python3 - "$files/dashboard.json" "http://127.0.0.1:$server" "$window" <<'CHECK' || die "the dashboard"
"""Each panel of the dashboard has a place and a query, and each query an answer."""
import json
import sys
import urllib.parse
import urllib.request

path, server, window = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
dashboard = json.load(open(path, encoding="utf-8"))
assert dashboard["title"] and dashboard["uid"] and dashboard["schemaVersion"] >= 36
names = {one["name"] for one in dashboard["templating"]["list"]}
assert names == {"datasource", "instance"}, names
numbers = [panel["id"] for panel in dashboard["panels"]]
assert len(set(numbers)) == len(numbers) > 0, numbers
taken = set()
for panel in dashboard["panels"]:
    place = panel["gridPos"]
    cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
             for y in range(place["y"], place["y"] + place["h"])}
    assert place["x"] + place["w"] <= 24 and not cells & taken, f"{panel['title']} lies on another"
    taken |= cells
    for target in panel["targets"]:
        query = target["expr"]
        for name, value in {"$instance": ".*", "$__rate_interval": window, "$__range": window}.items():
            query = query.replace(name, value)
        assert "$" not in query, query
        url = f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        answer = json.load(opener.open(url, timeout=10))
        series = answer["data"]["result"]
        assert answer["status"] == "success" and series, f"{query}: {answer}"
        for one in series:
            label = ",".join(value for key, value in one["metric"].items() if key in ("instance", "outcome"))
            print(f"watch: {panel['title']}: {label} {float(one['value'][1]):.4g}")
CHECK

say "sends of 1 KiB, for which the hint does nothing, for $load_s s"
load 1024 20000
curl -sf --noproxy '*' "http://127.0.0.1:$server/api/v1/alerts" >"$work/alerts.json" || die "no alerts"
python3 - "$work/alerts.json" <<'CHECK' || die "the alert"
"""The alert fires, and says why; no other of ours does."""
import json
import sys

alerts = json.load(open(sys.argv[1], encoding="utf-8"))["data"]["alerts"]
firing = {one["labels"]["alertname"]: one for one in alerts if one["state"] == "firing"}
assert set(firing) == {"NtcopyHintsWithoutEffect"}, alerts
words = firing["NtcopyHintsWithoutEffect"]["annotations"]["description"]
assert "because: too_small " in " ".join(words.split()), words
print("watch: fired: " + " ".join(words.split()))
CHECK
say "done: $(prometheus --version 2>&1 | head -n 1)"
