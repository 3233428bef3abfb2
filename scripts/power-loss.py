#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Loss of power under storaged: records what it writes to a disk and when it acknowledged what, makes
the disk as a loss of power could have left it, lets storaged find its way, and compares. Runs in a guest as root (scripts/power-loss.sh boots it):
it loads modules and makes devices. All of its files are in the guest's memory.

What the log says. The target log-writes (drivers/md/dm-log-writes.c in Linux, and its page
Documentation/admin-guide/device-mapper/log-writes.rst) doesn't list writes as they are submitted. A
write that has completed waits in a list; a flush takes, when it is submitted, what waits by then, and
when it has completed these writes are listed, and the flush behind them. A write with FUA is listed
when it completes, a mark when it is put. For what the log has before a point, this means:
  - all before the last flush is on the disk, and so is each FUA write: neither may be dropped;
  - each other write since that flush may be there or not, or some blocks of it: any subset may be
    dropped. A kept one is never moved behind a later one of the same place, which was submitted once
    it had completed;
  - and a FUA write that comes right behind the point was perhaps under way: some of its blocks.
What an acknowledgement waited for was listed before it was given, and so before the mark behind it.
A write that waits at the point stands in the log behind it: that it is missing there is one of the
subsets. Nothing from behind the next flush is ever moved before it: it may depend on that.
"""

import argparse
import collections
import ctypes
import http.client
import json
import mmap
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
MAGIC, VERSION = 0x6A736677736872, 1
# Disks write this number of bytes or nothing; both file systems rely on that for some blocks.
BLOCK_BYTES = 4096
# mkfs.xfs makes nothing smaller.
MIB = {"ext4": 128, "xfs": 300}
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}
FSCK = {"ext4": ["e2fsck", "-fn"], "xfs": ["xfs_repair", "-n"]}
FSCK_EVERY = 16
MUTATIONS = ("no-sync", "disk-lies")
NOT_AVAILABLE, WRONG = 3, 4
LIBC = ctypes.CDLL(None, use_errno=True)
WRITERS = 3

Entry = collections.namedtuple("Entry", "start length flags mark at")
Point = collections.namedtuple("Point", "end seed")



def call(*words, **more):
    """Runs a program; what it printed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout.strip()


def near(program, work):
    """A copy of a program, and of its libraries, in the guest's memory: the host's files are read
    anew each time that a program starts."""
    os.makedirs(f"{work}/lib", exist_ok=True)
    for line in call("ldd", program).splitlines():
        words = line.split()
        if "=>" in words:
            shutil.copy(words[2], f"{work}/lib/{words[0]}")
    return shutil.copy(program, work)


def must(result, what):
    """The result of a call of the C library."""
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def without_sync():
    """Between fork and exec: fsync and its like do nothing from here on, and say that they did."""
    calls = [74, 75, 162, 277, 306]  # fsync, fdatasync, sync, sync_file_range, syncfs of x86-64
    load, jump, give = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0)]
    code += [(jump, len(calls) - at, 0, number) for at, number in enumerate(calls)]
    code += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000)]  # allow; errno 0
    text = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(text)))
    must(LIBC.prctl(38, 1, 0, 0, 0), "no_new_privs")
    must(LIBC.prctl(22, 2, program, 0, 0), "seccomp")


class History:
    """The states that each name was to have, the first being None, and what was acknowledged."""

    def __init__(self, names, device):
        self.device, self.lock, self.marking = device, threading.Lock(), threading.Lock()
        self.states = {name: [None] for name in names}
        self.acknowledged = dict.fromkeys(names, 0)
        self.marks = []

    def begin(self, name, state):
        with self.lock:
            self.states[name].append(state)

    def done(self, name):
        with self.lock:
            self.acknowledged[name] = len(self.states[name]) - 1

    def mark(self):
        """What is acknowledged before the mark is in the log before it; what is in the log before
        the mark had begun when it was put."""
        with self.marking:
            with self.lock:
                low = dict(self.acknowledged)
            call("dmsetup", "message", self.device, "0", "mark", str(len(self.marks)))
            with self.lock:
                high = {name: len(states) - 1 for name, states in self.states.items()}
            self.marks.append((low, high))

    def bounds(self, entries, end):
        """For each name the first and the last state that it may have at that point."""
        low = next((e.mark for e in reversed(entries[:end]) if e.mark is not None), None)
        high = next((e.mark for e in entries[end:] if e.mark is not None), None)
        low = dict.fromkeys(self.states, 0) if low is None else self.marks[low][0]
        high = {n: len(s) - 1 for n, s in self.states.items()} if high is None else self.marks[high][1]
        return {name: (low[name], high[name]) for name in self.states}

    def faults(self, found, bounds):
        """What is not as it should be."""
        for name, state in found.items():
            if name not in self.states:
                yield f"{name}: it was not made by the program"
        for name, (low, high) in bounds.items():
            state = found.get(name)
            if state in self.states[name][low : high + 1]:
                continue
            which = [at for at, one in enumerate(self.states[name]) if one == state]
            what = f"state {which[-1]}" if which else f"neither of its states ({len(state)} bytes)"
            what = "not there" if state is None else what
            yield f"{name}: {what}, though state {low} was acknowledged, and {high} is the last one begun"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        self.request(method, target, body)
        answer = self.getresponse()
        return answer.status, answer.read()


class Objects:
    """PUTs of new and of present objects and DELETEs by several clients at once."""

    def __init__(self, args, rng):
        self.args, self.rng, self.socket = args, rng, f"{args.work}/socket"
        # In a folder of its writer's, in one that others use, and in one that goes with it.
        self.keys = [
            [f"own{w}/a", f"own{w}/b", f"shared/{w}", f"top{w}", f"deep{w}/er/and/o"] for w in range(WRITERS)
        ]
        self.names = [key for keys in self.keys for key in keys]
        self.steps = args.steps

    def start(self, mount, prepare=None):
        """The daemon, once it answers."""
        log = open(f"{self.args.work}/storaged.log", "w")
        words = [self.args.storaged, "--listen", f"unix:{self.socket}", "--data", f"{mount}/data"]
        daemon = subprocess.Popen([*words, "--log-level", "warn"], stdout=log, stderr=log, preexec_fn=prepare)
        while daemon.poll() is None:
            try:
                client = UnixConnection(self.socket)
                client.connect()
                return daemon, client
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"storaged does not start: {open(log.name).read().strip()}")

    def write(self, mount, history, prepare):
        daemon, _ = self.start(mount, prepare)
        failed = []

        def work(writer, rng):
            client = UnixConnection(self.socket)
            try:
                for _ in range(self.steps // WRITERS):
                    self.change(client, history, rng, rng.choice(self.keys[writer]))
            except Exception as error:  # not lost with its thread
                failed.append(f"writer {writer}: {error!r}")

        writers = [
            threading.Thread(target=work, args=(writer, random.Random(self.rng.random())))
            for writer in range(WRITERS)
        ]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        daemon.kill()
        daemon.wait()
        if failed:
            raise RuntimeError("; ".join(failed))

    @staticmethod
    def change(client, history, rng, name):
        is_there = history.states[name][-1] is not None
        body = None
        if not (is_there and rng.random() < 0.35):
            body = rng.randbytes(rng.choice([0, 1, 700, 4096, 30_000, 65_536, 150_000]))
        history.begin(name, body)
        status, text = client.ask("DELETE" if body is None else "PUT", f"/{name}", body)
        if status not in (201, 204):
            raise RuntimeError(f"{name}: {status} {text.decode()}")
        history.done(name)
        history.mark()

    def read(self, mount):
        daemon, client = self.start(mount)
        try:
            _, page = client.ask("GET", "/?limit=1000")
            listed = json.loads(page)["objects"]
            found = {}
            for name in sorted({entry["key"] for entry in listed}.union(self.names)):
                status, body = client.ask("GET", f"/{urllib.parse.quote(name)}")
                if status not in (200, 404):
                    raise RuntimeError(f"{name}: {status} {body.decode()}")
                if (status == 200) != any(entry["key"] == name for entry in listed):
                    raise RuntimeError(f"{name}: {status}, and the list says otherwise")
                if status == 200:
                    found[name] = body
            return found
        finally:
            daemon.kill()
            daemon.wait()


def record(args, kind, subject, mutation):
    """Lets the programs write, on a disk whose writes are logged."""
    base, disk, log = (f"{args.work}/{name}" for name in ("base", "disk", "log"))
    for path, mib in ((base, MIB[kind]), (log, 512)):
        with open(path, "wb") as file:
            file.truncate(mib << 20)
    call(*MKFS[kind], base)
    copy(base, disk)
    loops = [call("losetup", "-f", "--show", path) for path in (disk, log)]
    device = "power-loss"
    table = f"0 {MIB[kind] << 11} log-writes {loops[0]} {loops[1]}"
    call("dmsetup", "create", device, "--noudevsync", "--table", table)
    try:
        call("mount", "-t", kind, f"/dev/mapper/{device}", args.mount)
        history = History(subject.names, device)
        try:
            subject.write(args.mount, history, without_sync if mutation == "no-sync" else None)
        finally:
            call("umount", args.mount)
    finally:
        call("dmsetup", "remove", "--noudevsync", "--retry", device)
        for loop in loops:
            call("losetup", "-d", loop)
    return history, read_log(log)


def read_log(path):
    """The log's entries; where their data is, in the log."""
    entries = []
    with open(path, "rb") as file:
        magic, version, count, size = struct.unpack("<QQQI", file.read(28))
        if (magic, version) != (MAGIC, VERSION):
            raise RuntimeError(f"not a log of log-writes: magic {magic:x}, version {version}")
        at = size
        for _ in range(count):
            file.seek(at)
            sector, sectors, flags, length = struct.unpack("<QQQQ", file.read(32))
            mark = file.read(length).decode() if flags & MARK else ""
            # The target puts one of its own at the end.
            mark = int(mark) if mark.isdigit() else None
            # Without data a log has only flushes and marks. dm sends a flush ahead of a write that
            # is to have one; no discard was asked for.
            if flags & DISCARD or (sectors and flags & FLUSH):
                raise RuntimeError(f"entry {len(entries)}: flags {flags:x} were not expected")
            at += size
            entries.append(Entry(sector * size, sectors * size, flags, mark, at))
            at += sectors * size
    return entries


def copy(source, target):
    """A sparse file stays sparse."""
    with open(source, "rb") as old, open(target, "wb") as new:
        size = os.fstat(old.fileno()).st_size
        new.truncate(size)
        at = 0
        while True:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError:  # no more data
                return
            end = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            new.seek(at)
            while at < end:
                at += os.sendfile(new.fileno(), old.fileno(), at, end - at)


class Disk:
    """Makes the disk as it could have been, point by point, from the first to the last."""

    def __init__(self, args, entries, mutation):
        self.base, self.image, self.entries = f"{args.work}/base", f"{args.work}/image", entries
        self.mutation, self.applied = mutation, 0
        with open(f"{args.work}/log", "rb") as file:
            self.log = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        copy(self.base, self.image)
        # While no process has it open, it remembers nothing of the file.
        self.loop = call("losetup", "-f", "--show", self.image)

    def end(self):
        call("losetup", "-d", self.loop)

    def flushed(self, end):
        """What is on the disk for sure, FUA writes aside: the entries before this one."""
        back = 3 if self.mutation == "disk-lies" else 1
        for at in range(end - 1, -1, -1):
            if self.entries[at].flags & FLUSH:
                back -= 1
                if not back:
                    return at + 1
        return 0

    def put(self, file, entry, blocks=None):
        for at in range(0, entry.length, BLOCK_BYTES) if blocks else [0]:
            count = min(BLOCK_BYTES, entry.length - at) if blocks else entry.length
            if not blocks or blocks():
                from_ = entry.at + at
                os.pwrite(file.fileno(), self.log[from_ : from_ + count], entry.start + at)

    def make(self, point):
        """The image: prefixes as they are; with a seed, a subset of what was not flushed."""
        flushed = self.flushed(point.end)
        with open(self.base, "r+b") as file:
            for entry in self.entries[self.applied : flushed]:
                self.put(file, entry)
        self.applied = max(self.applied, flushed)
        copy(self.base, self.image)
        rng = random.Random(point.seed)
        kept, torn = rng.choice([0.1, 0.5, 0.9]), rng.choice([0, 0.5])
        is_prefix = point.seed is None and self.mutation != "disk-lies"
        with open(self.image, "r+b") as file:
            for entry in self.entries[flushed : point.end]:
                is_sure = is_prefix or (entry.flags & FUA and self.mutation != "disk-lies")
                if is_sure or rng.random() < kept:
                    self.put(file, entry)
                elif rng.random() < torn:
                    self.put(file, entry, lambda: rng.random() < 0.5)
            under_way = self.entries[point.end : point.end + 1]
            if point.seed is not None and under_way and under_way[0].flags & FUA:
                self.put(file, under_way[0], lambda: rng.random() < 0.5)
        return self.image


def points_of(entries, count, rng):
    """Before and behind each flush, FUA write and mark; and random ones between."""
    ends = {len(entries)}
    for at, entry in enumerate(entries):
        if entry.flags & (FLUSH | FUA | MARK):
            ends.update((at, at + 1))

    def last(end):
        """The same disk, and all that was acknowledged by then."""
        while end < len(entries) and not entries[end].length:
            end += 1
        return end

    points = [Point(end, None) for end in {last(end) for end in ends}]
    points += [Point(rng.randint(1, len(entries)), rng.getrandbits(32)) for _ in range(count)]
    return sorted(points, key=lambda point: (point.end, point.seed or 0))


def look(args, kind, subject, history, entries, point, loop):
    """Mounts the disk, has the program read it, and says what is wrong."""
    path = args.mount.encode()
    try:
        must(LIBC.mount(loop.encode(), path, kind.encode(), 0, None), "mount")
        try:
            found = subject.read(args.mount)
        finally:
            must(LIBC.umount2(path, 0), "umount")
    except (RuntimeError, OSError, ValueError, http.client.HTTPException) as error:
        return [str(error)]
    return list(history.faults(found, history.bounds(entries, point.end)))


def check(args, kind, mutation, enough):
    """On one file system; the points with faults."""
    title = kind + (f", {mutation}" if mutation else "")
    rng = random.Random(f"{args.seed} {title}")
    began = time.monotonic()
    subject = Objects(args, rng)
    history, entries = record(args, kind, subject, mutation)
    points = points_of(entries, args.points, rng)
    flushes = sum(1 for entry in entries if entry.flags & FLUSH)
    say(f"{title}: {len(history.marks)} marks, {sum(1 for e in entries if e.length)} writes, {flushes} "
        f"flushes in {time.monotonic() - began:.0f} s; {len(points)} points")  # fmt: skip
    disk, wrong, told, checked = Disk(args, entries, mutation), 0, time.monotonic(), 0
    for checked, point in enumerate(points, 1):
        image = disk.make(point)
        faults = look(args, kind, subject, history, entries, point, disk.loop)
        if not faults and checked % FSCK_EVERY == 0:
            try:
                call(*FSCK[kind], image)
            except RuntimeError as error:
                faults = [str(error)]
        wrong += bool(faults)
        for fault in faults if wrong <= 3 else []:
            subset = "" if point.seed is None else f", subset {point.seed}"
            say(f"{title}: entry {point.end}{subset}: {fault}")
        if faults and wrong == 1 and args.keep:
            copy(image, f"{args.keep}/{kind}-{point.end}.image")
        if wrong >= enough:
            break
        if time.monotonic() - told > 15:
            told = time.monotonic()
            say(f"{title}: {checked} of {len(points)} points, {wrong} wrong")
    disk.end()
    reordered = sum(1 for point in points[:checked] if point.seed is not None)
    say(f"{title}: {checked} points, {reordered} of them reordered: {wrong} wrong; "
        f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return wrong


def say(words):
    print(f"power-loss: {words}", flush=True)


def self_test(args):
    """Would it notice? Without a sync, and on a disk that lies about flushes, it must."""
    args.steps, args.points = min(args.steps, 30), min(args.points, 20)
    missed = [
        f"{kind}: {mutation} went unnoticed"
        for kind in args.kinds for mutation in MUTATIONS
        if not check(args, kind, mutation, 1)
    ]  # fmt: skip
    for words in missed:
        say(words)
    return 1 if missed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--storaged", required=True, metavar="PROGRAM")
    parser.add_argument("--keep", metavar="DIR", help="the first wrong disk goes here")
    parser.add_argument("--fs", default="ext4,xfs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60, help="changes to objects")
    parser.add_argument("--points", type=int, default=150, help="reordered ones, beside each prefix")
    parser.add_argument("--mutate", choices=MUTATIONS)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    args.kinds = args.fs.split(",")
    for word in args.kinds:
        if word not in MKFS:
            parser.error(f"{word}: none of {', '.join(MKFS)}")
    return args


def main():
    args = parse()
    args.work = "/dev/shm/power-loss"
    args.mount = f"{args.work}/mount"
    os.makedirs(args.mount)
    os.environ["DM_DISABLE_UDEV"] = "1"
    args.storaged = near(args.storaged, args.work)
    os.environ["LD_LIBRARY_PATH"] = f"{args.work}/lib"
    for module in ("dm-log-writes", "loop", *args.kinds):
        if subprocess.run(["modprobe", module], capture_output=True, check=False).returncode:
            say(f"not available here: the guest's kernel has no {module}")
            return NOT_AVAILABLE
    if args.self_test:
        return self_test(args)
    wrong = [check(args, kind, args.mutate, 1 << 30) for kind in args.kinds]
    return WRONG if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
