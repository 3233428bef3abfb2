#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the guide, docs/guide, as pages for a browser. It goes with the pages of
# docs/, which keep their place in the repository; in a copy of both, their links
# to each other become the book's, and those to other files lead into this
# repository.
#
# Where there is no mdbook (Debian 12 has no package of it), it is compiled once by
# cargo, into the cache: some minutes. Nothing else is installed.
#
# usage: scripts/guide.sh      out/guide/book/index.html
#
# NTCOPY_CACHE   where that mdbook is kept; default ~/.cache/ntcopy
# Exit code: 3 mdbook is not to be had here.
set -eu
cd "$(dirname "$0")/.."

# As deep as docs/guide/src, whose links to files of the repository begin with ../../../.
out=out/guide
version=0.5.4
kept=${NTCOPY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ntcopy}/mdbook-$version
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
mkdir -p "$out/src/pages"
cp docs/guide/book.toml docs/guide/wide.css "$out/"
# mdbook takes every .md for a page of its own: of others, the folder.
folder='s|](\(\(\.\./\)\{3,\}[A-Za-z0-9_/.-]*/\)[A-Za-z0-9_-]*\.md|](\1|g'
for page in docs/guide/src/*.md; do
	sed -e 's|](\.\./\.\./man/|](../../../docs/man/|g' \
		-e 's|](\.\./\.\./\([A-Z0-9-]*\.md\)|](pages/\1|g' \
		-e "$folder" \
		"$page" >"$out/src/$(basename "$page")"
done
for page in docs/*.md; do
	sed -e 's|](\.\./|](../../../../|g' \
		-e 's|](man/|](../../../../docs/man/|g' \
		-e 's|](guide/src/|](../|g' \
		-e "$folder" \
		"$page" >"$out/src/pages/$(basename "$page")"
done
"$mdbook" build "$out"
echo "guide: $out/book/index.html"
