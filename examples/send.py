#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sends with the hint from Python, and prints what the kernel counted. On a kernel
without MSG_NTCOPY the same sends are plain.

    python3 send.py
"""

import errno
import socket
import sys

# The numbers of uapi/ntcopy/uapi.h.
MSG_NTCOPY = 0x1000000
SO_NTCOPY = 0x4E54
NTCOPY_FLAGGED = 0x7FFFFFFF

PIECE = 64 << 10
PIECES = 256


def opt_in(sock):
    """Whether the kernel takes hints on this socket from now on."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_NTCOPY, NTCOPY_FLAGGED)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        return False
    return True


def counters():
    """What the kernel has counted so far, in bytes, by name."""
    with open("/proc/net/netstat", encoding="ascii") as file:
        names, values = file.readline().split(), file.readline().split()
    return {name: int(value) for name, value in zip(names, values) if name.startswith("Ntcopy")}


def main():
    """The exit code."""
    here, there = socket.socketpair()
    print("the kernel takes the hint" if opt_in(here)
          else "this kernel has no SO_NTCOPY: plain sends")
    before = counters()
    total = 0
    for piece in range(PIECES):
        left = memoryview(bytes([piece]) * PIECE)
        while left:
            sent = here.send(left, MSG_NTCOPY)
            if there.recv(sent, socket.MSG_WAITALL) != left[:sent]:
                print("a byte is wrong", file=sys.stderr)
                return 4
            left = left[sent:]
            total += sent
    print(f"sent {total} bytes")
    for name, count in counters().items():
        print(name, count - before[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
