#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packs folders as the layers of an OCI image, without a daemon and as anybody.

usage: scripts/image.py OUT CONFIG.json FOLDER...

OUT becomes an image layout (oci-layout, index.json, blobs/sha256). CONFIG.json has
"name", "created" (seconds), "architecture", "config" (as in the image's own
configuration) and "annotations". Everything belongs to root and has the time
`created`, so that the same folders give the same bytes.
"""

import gzip
import hashlib
import json
import os
import pathlib
import shutil
import stat
import sys
import tarfile
import tempfile
import time

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


def put(layout, data, media_type):
    """Keeps a blob by its sum; the descriptor of it."""
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def as_json(value):
    """The same bytes for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def members(folder):
    """Everything below a folder, each folder before what is in it, by name."""
    for base, folders, files in os.walk(folder):
        folders.sort()
        base = pathlib.Path(base)
        # A link to a folder is listed with the folders, and is not entered.
        for name in sorted(folders + files):
            yield base / name


def pack(folder, created):
    """The tar of a folder."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(members(folder), key=lambda path: path.relative_to(folder).parts):
                entry = tar.gettarinfo(path, str(path.relative_to(folder)))
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mtime = created
                # Two names of one file are two files: which one comes first must not matter.
                if entry.islnk():
                    entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
                if entry.isreg():
                    with path.open("rb") as content:
                        tar.addfile(entry, content)
                else:
                    tar.addfile(entry)
        file.seek(0)
        return file.read()


def make(layout, settings, folders):
    """Fills a layout."""
    (layout / "blobs/sha256").mkdir(parents=True)
    (layout / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))
    created = settings["created"]
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created))
    layers, sums = [], []
    for folder in folders:
        data = pack(folder, created)
        sums.append(f"sha256:{hashlib.sha256(data).hexdigest()}")
        layers.append(put(layout, gzip.compress(data, 9, mtime=0), LAYER))
    config = put(layout, as_json({
        "created": when,
        "architecture": settings["architecture"],
        "os": "linux",
        "config": settings["config"],
        "rootfs": {"type": "layers", "diff_ids": sums},
        "history": [{"created": when, "created_by": "scripts/image.sh"} for _ in folders],
    }), CONFIG)
    manifest = put(layout, as_json({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers,
        "annotations": settings["annotations"],
    }), MANIFEST)
    manifest["annotations"] = {"org.opencontainers.image.ref.name": settings["name"]}
    (layout / "index.json").write_bytes(as_json({"schemaVersion": 2, "manifests": [manifest]}))
    for path in [layout, *layout.rglob("*")]:
        path.chmod(0o755 if stat.S_ISDIR(path.stat().st_mode) else 0o644)
    return manifest["digest"]


def main(arguments):
    """The exit code."""
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    out, settings, *folders = map(pathlib.Path, arguments)
    settings = json.loads(settings.read_text(encoding="utf-8"))
    out.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all.
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        layout = pathlib.Path(work) / "layout"
        layout.mkdir()
        digest = make(layout, settings, folders)
        if out.exists():
            shutil.rmtree(out)
        layout.rename(out)
    print(f"image: {out}:{settings['name']} {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
