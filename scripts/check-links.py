#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every link of the documents to a file of this repository leads to one.

usage: scripts/check-links.py [ROOT]      default: the repository of this script
       scripts/check-links.py --self-test

Looked at are README.md, CHANGELOG.md, and all Markdown under docs/, kernel/,
packaging/, bench/ and crates/. For links with a '#', the heading has to be
there too. Links with a scheme (https:) are not followed. docs/SUMMARY.md has to
name every page below docs/.
"""

import pathlib
import re
import sys
import tempfile

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(r"(?<!\\)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
PLACES = ("docs", "kernel", "packaging", "bench", "crates", "LICENSES")


def documents(root):
    """The documents of the repository."""
    found = sorted(root.glob("*.md"))
    for place in PLACES:
        found += sorted((root / place).rglob("*.md"))
    return [path for path in found if "target" not in path.relative_to(root).parts]


def plain(text):
    """The text without code; labels may be code, and the link stays."""
    text = FENCE.sub("", text)
    return CODE.sub("code", text)


def anchors(path):
    """The anchors that a forge gives to a document's headings."""
    names = set()
    for line in FENCE.sub("", path.read_text(encoding="utf-8")).splitlines():
        if re.match(r"#{1,6} ", line):
            title = re.sub(r"[`*]|\]\([^)]*\)|\[", "", line.lstrip("#").strip()).lower()
            names.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return names


def wrong_links(path, root):
    """What is wrong with a document's links: (link, why)."""
    text = plain(path.read_text(encoding="utf-8"))
    for link in LINK.findall(text) + REFERENCE.findall(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if name.startswith("/") or not target.is_relative_to(root):
            yield link, "leads out of the repository"
        elif not target.exists():
            yield link, "is not there"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield link, "has no such heading"


def pages_without_a_place(root):
    """Pages of docs/ that its summary does not name."""
    docs = root / "docs"
    if not (docs / "SUMMARY.md").exists():
        return
    named = set(LINK.findall((docs / "SUMMARY.md").read_text(encoding="utf-8")))
    for page in sorted(docs.rglob("*.md")):
        name = str(page.relative_to(docs))
        if name != "SUMMARY.md" and name not in named:
            yield page


def check(root):
    """Prints what is wrong; how many links that are."""
    wrong = 0
    for path in documents(root):
        for link, why in wrong_links(path, root):
            print(f"{path.relative_to(root)}: {link} {why}", file=sys.stderr)
            wrong += 1
    for page in pages_without_a_place(root):
        print(f"{page.relative_to(root)}: docs/SUMMARY.md does not name it", file=sys.stderr)
        wrong += 1
    return wrong


def self_test():
    """Finds what is wrong, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        guide = root / "docs/guide"
        guide.mkdir(parents=True)
        (root / "README.md").write_text(
            "[a](docs/A.md) [`b`](docs/A.md#the-one-head) [web](https://example.org/x) `[c](no.md)`\n"
            "```\n[d](no.md)\n```\n[x](gone.md) [y](docs/A.md#none) [z](../out.md)\n",
            encoding="utf-8",
        )
        (root / "docs/A.md").write_text("# The *one* `head`\n[up](../README.md)\n", encoding="utf-8")
        (root / "docs/SUMMARY.md").write_text("- [a](A.md)\n- [p](guide/p.md)\n", encoding="utf-8")
        (guide / "p.md").write_text("p\n", encoding="utf-8")
        (guide / "lost.md").write_text("q\n", encoding="utf-8")
        found = [link for path in documents(root) for link, _ in wrong_links(path, root)]
        assert found == ["gone.md", "docs/A.md#none", "../out.md"], found
        lost = [page.name for page in pages_without_a_place(root)]
        assert lost == ["lost.md"], lost


def main(arguments):
    """The exit code."""
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[1]).resolve()
    return 1 if check(root) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
