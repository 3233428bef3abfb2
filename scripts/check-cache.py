#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shows by the cache that hinted copies bypass it: what was sent so has to be read from memory.

In a booted kernel, one process sends 256 KiB on a unix socket, plainly or with a
hint that is obeyed, and receives them at once. A plain send leaves the bytes in
the cache, so that to receive them takes less time. Prints the median of the time
to receive, hinted relative to plain, with its interval of 95 %.

usage: scripts/check-cache.py NTCOPY [KERNEL]     default: um

Exit code 1 if the interval does not lie above 1, 3 if there is no such kernel here.
"""

import os
import random
import socket
import statistics
import subprocess
import sys
import time

MSG_NTCOPY = 0x1000000
SO_NTCOPY, FLAGGED = 0x4e54, 1
OBEY = "2"
SIZE = 256 << 10
ROUNDS = 2000
DRAWS = 1000


def receive_ns(near, far, data, into, flags):
    """The time that it takes to receive what was just sent."""
    if near.send(data, flags) != SIZE:
        raise OSError("the socket took a part of the send")
    begin = time.perf_counter_ns()
    got = far.recv_into(into, SIZE, socket.MSG_WAITALL)
    end = time.perf_counter_ns()
    if got != SIZE or into != data:
        raise OSError("other bytes arrived than were sent")
    return end - begin


def measure():
    """In the guest: a line for each round, plain and hinted in turns."""
    with open("/proc/sys/net/core/ntcopy", "w", encoding="ascii") as mode:
        mode.write(OBEY)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * SIZE)
    near.setsockopt(socket.SOL_SOCKET, SO_NTCOPY, FLAGGED)
    data, into = bytearray(os.urandom(SIZE)), bytearray(SIZE)
    for _ in range(ROUNDS):
        plain = receive_ns(near, far, data, into, 0)
        hinted = receive_ns(near, far, data, into, MSG_NTCOPY)
        print("round", plain, hinted)


def interval(ratios):
    """The bounds of the median, drawn anew from the ratios."""
    medians = sorted(
        statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(DRAWS)
    )
    return medians[DRAWS // 40], medians[-DRAWS // 40]


def main():
    if sys.argv[1:] == ["--inside"]:
        measure()
        return 0
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    kernel = sys.argv[2] if len(sys.argv) == 3 else "um"
    boot = [sys.argv[1], "kernel", "boot", "--kernel", kernel, "--timeout", "120", "--"]
    guest = [sys.executable, os.path.realpath(__file__), "--inside"]
    ran = subprocess.run(boot + guest, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        print(f"check-cache: the kernel {kernel} ended with {ran.returncode}", file=sys.stderr)
        return 3 if ran.returncode == 3 else 1
    rounds = [line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("round ")]
    # The first ones find nothing where it will be.
    ratios = [int(hinted) / int(plain) for plain, hinted in rounds[ROUNDS // 10 :]]
    low, high = interval(ratios)
    print(
        f"to receive {SIZE >> 10} KiB after a hinted send takes "
        f"{statistics.median(ratios):.2f} ({low:.2f}-{high:.2f}) of the time after a plain one"
    )
    if low > 1:
        return 0
    print("check-cache: what was sent with the hint was in the cache", file=sys.stderr)
    return 1


sys.exit(main())
