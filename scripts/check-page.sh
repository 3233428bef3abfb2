#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The pages under axe-core, the checker of accessibility, in headless Chromium: a
# report of every experiment, a comparison, a survey's report; in both colour
# schemes, at a window's and at a phone's width, with every folded part open. And
# each by keyboard alone. Ends with 1 where axe-core finds something serious or
# critical, or where something cannot be reached; what it finds besides is listed.
#
# axe-core comes from the npm registry, by name, into the cache. Without npm or
# Chromium this ends with 3.
#
# usage: scripts/check-page.sh NTCOPY [FILE.html]
# With a file, that page alone.
set -eu
cd "$(dirname "$0")/.."
ntcopy=$1
package="axe-core@4"
seen=

cache=$(scripts/cache.sh)/axe-core
chromium=
for name in chromium chromium-browser google-chrome; do
	[ -n "$chromium" ] || chromium=$(command -v "$name" || true)
done
if [ -z "$chromium" ] || ! command -v npm >/dev/null 2>&1; then
	echo "check-page: npm and chromium are wanted; on Debian: scripts/setup.sh page" >&2
	exit 3
fi
if [ ! -e "$cache/axe.min.js" ]; then
	echo "check-page: fetching $package"
	mkdir -p "$cache"
	(cd "$cache" && npm pack --silent "$package" >/dev/null && tar -xzf axe-core-*.tgz --strip-components=1)
fi
echo "check-page: $(sed -n 's/.*"version": *"\([^"]*\)".*/axe-core \1/p' "$cache/package.json" | head -n 1)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One record of each experiment that the repository keeps.
every_experiment() {
	set --
	# What `ntcopy advise --check` found is kept there, too, and is no record of this kind.
	for record in bench/record/*/*/record.jsonl; do
		experiment=$(sed -n '1s/.*"experiment":"\([^"]*\)".*/\1/p' "$record")
		case " $seen " in *" $experiment "*) continue ;; esac
		seen="$seen $experiment"
		set -- "$@" "${record%record.jsonl}"
	done
	echo "check-page: a report of$seen"
	"$ntcopy" report "$@" --out "$work/report.html"
}

# Two records of the same cells, held against each other.
comparison() {
	set -- bench/record/*/memset/record.jsonl
	[ $# -ge 2 ] || {
		echo "check-page: bench/record has no two records of memset to compare" >&2
		exit 1
	}
	echo "check-page: a comparison of $(dirname "$1") and $(dirname "$2")"
	"$ntcopy" report "$(dirname "$1")" --against "$(dirname "$2")" --out "$work/compare.html"
}

# Of the records that the repository keeps.
survey() {
	echo "check-page: a survey's report"
	"$ntcopy" survey add bench/record/*/ --store "$work/survey.sqlite" >/dev/null
	"$ntcopy" survey report --store "$work/survey.sqlite" --out "$work/survey.html"
}

# The page forbids scripts; the copy that is checked does not.
with_checker() {
	sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' "$1"
	printf '<script>'
	cat "$cache/axe.min.js"
	cat <<'END'
</script><script>
document.querySelectorAll('details').forEach(one => { one.open = true; });
axe.run(document, { resultTypes: ['violations'] }).then(found => {
	const lines = found.violations.map(one =>
		`${one.impact} ${one.id} (${one.nodes.length}): ${one.help}; ${one.nodes[0].target}`);
	const said = document.createElement('pre');
	said.id = 'axe-said';
	said.textContent = '\n' + lines.concat(`rules passed: ${found.passes.length}`).join('\n') + '\n';
	document.body.append(said);
});
</script>
END
}

# checked NAME SCHEME WIDTH: what axe-core says; in Chromium's settings 0 is dark and 1 is light.
checked() {
	"$chromium" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$work/$1" \
		--blink-settings=preferredColorScheme="$2" --window-size="$3,900" \
		--virtual-time-budget=60000 --dump-dom "file://$work/checked.html" 2>/dev/null |
		sed -n '/<pre id="axe-said">/,/<\/pre>/p' | sed '1d;$d' >"$work/said"
	grep -q '^rules passed: [1-9]' "$work/said" || {
		echo "check-page: $1: axe-core did not come to an end" >&2
		exit 1
	}
	sed "s/^/check-page: $1: /" "$work/said"
	cat "$work/said" >>"$work/all"
}

# page FILE: in every look, and by keyboard.
page() {
	name=$(basename "$1" .html)
	with_checker "$1" >"$work/checked.html"
	checked "$name-light" 1 1200
	checked "$name-dark" 0 1200
	checked "$name-phone" 1 360
	checked "$name-phone-dark" 0 360
	scripts/check-keyboard.py "$chromium" "$1" || failed=1
}

failed=0
if [ $# -gt 1 ]; then
	cp "$2" "$work/page.html"
	page "$work/page.html"
else
	every_experiment
	comparison
	survey
	for file in report compare survey; do
		page "$work/$file.html"
	done
fi
if grep -E '^(serious|critical) ' "$work/all" >/dev/null; then
	echo "check-page: something serious was found" >&2
	failed=1
fi
[ "$failed" = 0 ] || exit 1
echo "check-page: nothing serious, and all of it by keyboard"
