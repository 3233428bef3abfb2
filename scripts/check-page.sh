#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The report's page under axe-core, the checker of accessibility, in headless
# Chromium: in both colour schemes, at a window's and at a phone's width, with
# every folded part open. Ends with 1 where axe-core finds something serious or
# critical; what it finds besides is listed.
#
# axe-core comes from the npm registry, by name, into the cache. Without npm or
# Chromium this ends with 3.
#
# usage: scripts/check-page.sh NTCOPY [FILE.html]
# Without a file it is a page of one record of each experiment in bench/record.
set -eu
cd "$(dirname "$0")/.."
ntcopy=$1
package="axe-core@4"
seen=

cache=${NTCOPY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ntcopy}/axe-core
for tool in npm chromium; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "check-page: $tool is missing; on Debian: apt install npm chromium" >&2
		exit 3
	}
done
if [ ! -e "$cache/axe.min.js" ]; then
	echo "check-page: fetching $package"
	mkdir -p "$cache"
	(cd "$cache" && npm pack --silent "$package" >/dev/null && tar -xzf axe-core-*.tgz --strip-components=1)
fi
echo "check-page: $(sed -n 's/.*"version": *"\([^"]*\)".*/axe-core \1/p' "$cache/package.json" | head -n 1)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 1 ]; then
	cp "$2" "$work/page.html"
else
	set --
	for record in bench/record/*/*/; do
		experiment=$(sed -n '1s/.*"experiment":"\([^"]*\)".*/\1/p' "$record/record.jsonl")
		case " $seen " in *" $experiment "*) continue ;; esac
		seen="$seen $experiment"
		set -- "$@" "$record"
	done
	echo "check-page: a page of$seen"
	"$ntcopy" report "$@" --out "$work/page.html"
fi

# The page forbids scripts; the copy that is checked does not.
{
	sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' "$work/page.html"
	printf '<script>'
	cat "$cache/axe.min.js"
	cat <<'EOF'
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
EOF
} >"$work/checked.html"

# checked NAME SCHEME WIDTH: what axe-core says; in Chromium's settings 0 is dark and 1 is light.
checked() {
	chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
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

checked light 1 1200
checked dark 0 1200
checked phone 1 360
checked phone-dark 0 360
if grep -E '^(serious|critical) ' "$work/all" >/dev/null; then
	echo "check-page: something serious was found" >&2
	exit 1
fi
echo "check-page: nothing serious"
