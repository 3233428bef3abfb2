#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How much of a plain send's whole path is the copy? By perf, of a user-mode kernel.

A user-mode kernel is a program of the host's, so the host's perf says where its time goes:
`ntcopy bench unix --modes copy` fills sockets and drains them in one, and for some seconds every
sample of its processes is put down to the copy out of the sender's buffer, to other code of that
kernel, or to what the host does for it (system calls are dear there, and bare metal has none of
that). A hint changes the copy, and what later finds the caches as the copy left them; where the
copy is a small part, it cannot gain much. The clock takes the samples: no counter is needed.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# The user-mode kernel's copy out of the sender's memory. This program says so if none is seen.
COPIES = ("copy_chunk_from_user", "copy_to_nontemporal", "rep_movs_alternative")
# The kernel's own process, and those that stand for its programs.
COMMANDS = ("linux", "uml-userspace")
HERTZ = 997
PARTS = ("copy", "kernel", "host")


def main():
    args = arguments()
    if not shutil.which("perf"):
        fail(3, "perf is missing. This installs it:\n"
                "    apt-get install -y --no-install-recommends linux-perf")
    cells = [(family, size, sockets) for family in args.family for size in args.object
             for sockets in args.sockets]
    results = []
    for number, (family, size, sockets) in enumerate(cells, 1):
        shares = []
        for boot in range(args.boots):
            print(f"copy-share: {family}, {sockets} x {size}: cell {number} of {len(cells)}, "
                  f"boot {boot + 1} of {args.boots}", file=sys.stderr)
            parts, machine = share(args, family, size, sockets)
            shares.append(parts)
        results.append({"family": family, "object": size, "sockets": sockets, "boots": shares})
    if args.json:
        head = {"kernel": f"{machine['kernel_release']} ({args.kernel})", "dataset": args.dataset,
                "cpu": machine["cpu_signature"], "hertz": HERTZ}
        cells = ",\n".join(json.dumps(cell) for cell in results)
        print(f'{json.dumps(head)[:-1]}, "cells": [\n{cells}\n]}}')
    else:
        table(results)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: scripts/copy-share.py target/release/ntcopy --family tcp --object 1MiB\n"
               "exit codes: 0 done, 1 failed, 2 usage, 3 no perf here")
    parser.add_argument("ntcopy", help="the program, target/release/ntcopy")
    words = {"nargs": "+", "metavar": "X"}
    parser.add_argument("--kernel", default="um", help="um or um:6.12 [um]")
    parser.add_argument("--family", default=["unix", "tcp", "udp"], **words, help="[unix tcp udp]")
    parser.add_argument("--object", default=["64KiB", "1MiB"], **words, help="[64KiB 1MiB]")
    parser.add_argument("--sockets", default=["16", "64"], **words, help="[16 64]")
    parser.add_argument("--dataset", default="64MiB", help="[64MiB]")
    parser.add_argument("--boots", type=int, default=3, help="of each cell [3]")
    parser.add_argument("--seconds", type=int, default=5, help="of samples in each boot [5]")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def share(args, family, size, sockets):
    """Samples by part, of one boot, and the machine as its record has it."""
    refuse_others()
    with tempfile.TemporaryDirectory(prefix="ntcopy-share-") as folder:
        # More pairs than it gets to; a signal stops it.
        command = [args.ntcopy, "bench", "unix", "--kernel", args.kernel, "--family", family,
                   "--object", size, "--sockets", sockets, "--dataset", args.dataset,
                   "--modes", "copy", "--pairs", "100000", "--out", f"{folder}/record"]
        with open(f"{folder}/said", "w+", encoding="utf-8") as said:
            bench = subprocess.Popen(command, stdout=said, stderr=said)
            try:
                wait_for_samples(bench, f"{folder}/record/record.jsonl", said)
                data = f"{folder}/perf.data"
                machine = machine_of(f"{folder}/record/record.jsonl")
                run("perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data,
                    "--", "sleep", str(args.seconds))
                if bench.poll() is not None:
                    said.seek(0)
                    fail(1, f"ntcopy ended too early:\n{said.read()}")
            finally:
                stop(bench)
        return count(run("perf", "script", "-i", data, "-F", "comm,ip,sym,dso")), machine


def stop(bench):
    bench.send_signal(signal.SIGINT)
    try:
        bench.wait(60)
    except subprocess.TimeoutExpired:
        bench.kill()
        bench.wait()


def refuse_others():
    """Samples are distinguished by the names of processes, which others have as well. What the
    boot before leaves behind is given time to end."""
    deadline = time.monotonic() + 30
    while pid := a_kernels_process():
        if time.monotonic() > deadline:
            fail(1, f"another user-mode kernel runs here, process {pid}: wait for its end")
        time.sleep(0.2)


def a_kernels_process():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                if name.read().strip() in COMMANDS:
                    os.readlink(f"/proc/{pid}/exe")
                    return pid
        except OSError:
            continue  # It has ended; if its parent has not waited for it, readlink() fails.
    return None


def wait_for_samples(bench, record, said):
    """Until the kernel is up, the sockets are, and the first pairs are in the record."""
    deadline = time.monotonic() + 3600
    while time.monotonic() < deadline:
        if bench.poll() is not None:
            said.seek(0)
            fail(1, f"ntcopy ended with {bench.returncode}:\n{said.read()}")
        try:
            with open(record, encoding="utf-8") as lines:
                if sum('"type":"sample"' in line for line in lines) >= 2:
                    return
        except FileNotFoundError:
            pass
        time.sleep(0.2)
    fail(1, "ntcopy measured nothing within an hour")


def machine_of(record):
    with open(record, encoding="utf-8") as lines:
        return next(json.loads(line) for line in lines if line.startswith('{"type":"machine"'))


def count(script):
    parts = dict.fromkeys(PARTS, 0)
    for line in script.splitlines():
        words = line.split()
        if not words or words[0] not in COMMANDS:
            continue
        symbol, place = words[2].partition("+")[0], words[-1].strip("()")
        if symbol.startswith(COPIES):
            parts["copy"] += 1
        elif os.path.basename(place) == "linux":
            parts["kernel"] += 1
        else:
            parts["host"] += 1
    if not parts["copy"]:
        fail(1, f"not one sample of {', '.join(COPIES)}: is this kernel another one? ({parts})")
    return parts


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        code = 3 if command[0] == "perf" else 1
        fail(code, f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def table(results):
    print("| family | in flight | the copy, of everything | of the kernel's own code |")
    print("|---|---|---|---|")
    for cell in results:
        of_all = [100 * b["copy"] / sum(b.values()) for b in cell["boots"]]
        of_kernel = [100 * b["copy"] / (b["copy"] + b["kernel"]) for b in cell["boots"]]
        print(f"| {cell['family']} | {cell['sockets']} x {cell['object']} | {figure(of_all)} | "
              f"{figure(of_kernel)} |")


def figure(shares):
    return f"{statistics.median(shares):.0f} % ({min(shares):.0f}-{max(shares):.0f})"


def fail(code, why):
    print(f"copy-share: {why}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
