#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the documents, docs/, as pages for a browser. In a copy of them their links
# to each other stay, and those to other files lead into this repository.
#
# Where there is no mdbook (Debian 12 has no package of it), it is compiled once by
# cargo, into the cache: some minutes. Nothing else is installed.
#
# usage: scripts/guide.sh      out/guide/book/index.html
#
# NTCOPY_CACHE   where that mdbook is kept; default ~/.cache/ntcopy
# Exit code: 3 mdbook is not available here.
set -eu
cd "$(dirname "$0")/.."

out=out/guide
version=0.5.4
kept=$(scripts/cache.sh)/mdbook-$version
mdbook=$(command -v mdbook || echo "$kept/bin/mdbook")
[ -x "$mdbook" ] || {
	echo "guide: mdbook is missing: cargo compiles mdbook $version into $kept"
	# Without what serves and watches a book.
	cargo install mdbook --version $version --locked --no-default-features --features search \
		--root "$kept" || {
		echo "guide: mdbook $version could not be compiled; install an mdbook, and run this again" >&2
		exit 3
	}
}

rm -rf "${out:?}/src" "${out:?}/book"
mkdir -p "$out/src"
cp docs/guide/book.toml docs/guide/wide.css "$out/"
cp docs/SUMMARY.md "$out/src/"
# mdbook takes every .md for a page of its own: of others, the folder.
folder='s|](\(\(\.\./\)\{3,\}[A-Za-z0-9_/.-]*/\)[A-Za-z0-9_-]*\.md\(#[a-z-]*\)\{0,1\}|](\1|g'
# Those files are three folders up from out/guide/book, and four from a page below it.
for page in docs/*.md; do
	[ "$page" = docs/SUMMARY.md ] || sed -e 's|](\.\./|](../../../|g' \
		-e 's|](man/|](../../../docs/man/|g' -e "$folder" "$page" >"$out/src/${page#docs/}"
done
for page in docs/guide/*.md docs/reference/*.md docs/results/*.md docs/design/*.md; do
	mkdir -p "$out/src/$(basename "$(dirname "$page")")"
	sed -e 's|](\.\./\.\./|](../../../../|g' -e 's|](\.\./man/|](../../../../docs/man/|g' \
		-e "$folder" "$page" >"$out/src/${page#docs/}"
done
cp docs/results/*.svg "$out/src/results/"
"$mdbook" build "$out"
echo "guide: $out/book/index.html"
