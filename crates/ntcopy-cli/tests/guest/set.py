# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ntcopy set` on programs that run, in a kernel that has the option.

usage: python3 set.py NTCOPY TEST...
"""

import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

NTCOPY = sys.argv[1]
OPTION = 0x4E54
STREAM, DATAGRAM, MODULE_STREAM = 262144, 4096, 1 << 20
# Far beyond anything that is waited for: what never comes is a failure, and not a guest that hangs.
PATIENCE_S = 120

# Does what it is told, line by line, and answers each with the value of `r`.
OBEYS = """
import hashlib, os, signal, socket, sys, threading
r, everything = None, globals()
def option(s): return s.getsockopt(socket.SOL_SOCKET, 0x4E54)
def fork(make):
    there, here = os.pipe()
    pid = os.fork()
    if pid == 0:
        made = make()
        os.write(here, b"x")
        signal.pause()
    os.read(there, 1)
    return pid
block = bytes(range(256)) * 8192
over, sums = [], {}
def feed(s, size):
    hashed, at = hashlib.sha256(), 0
    while not over:
        part = block[at:at + size]
        s.sendall(part)
        hashed.update(part)
        at = (at + 4099) % (len(block) - size)
    s.shutdown(1)
    sums[s.fileno()] = hashed.hexdigest()
for line in sys.stdin:
    exec(line, everything)
    print(repr(r), flush=True)
"""


class Program:
    """Another process, whose sockets are looked at from here."""

    def __init__(self, *before):
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", OBEYS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return eval(self.process.stdout.readline())

    def listens(self):
        """A listener on TCP, `t`, and one on a unix socket, `u`; where they are."""
        self.do("t = socket.create_server(('127.0.0.1', 0)); u = socket.socket(socket.AF_UNIX)")
        self.do(f"u.bind('/run/set-{self.pid}'); u.listen(); c = []")
        return ("127.0.0.1", self.do("r = t.getsockname()[1]")), f"/run/set-{self.pid}"

    def accepts(self, listener, address):
        """A connection: its peer, which is ours, and the number of the program's end in `c`."""
        peer = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        peer.settimeout(PATIENCE_S)
        peer.connect(address)
        return peer, self.do(f"c.append({listener}.accept()[0]); r = len(c) - 1")


def ntcopy(*words, code=0):
    line = [NTCOPY, "set", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == code, (line, done)
    return done.stdout + done.stderr


def told(*words, code=0):
    return json.loads(ntcopy(*words, "--json", code=code))


def numbers(pid):
    """By what a socket is called: its number."""
    return {one["socket"]: one["min_bytes"] for one in told("--pid", pid, "--show")["sockets"]}


def test_there_and_back():
    with Program() as it:
        tcp, unix = it.listens()
        old, at = it.accepts("t", tcp)
        it.do("d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); own = socket.socket()")
        it.do("v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)")
        it.do("own.setsockopt(socket.SOL_SOCKET, 0x4E54, 8192)")
        all_of_it = "r = [option(s) for s in (t, u, c[0], d, own, v)]"
        assert it.do(all_of_it) == [0, 0, 0, 0, 8192, 0]
        done = told("--pid", it.pid)
        assert it.do(all_of_it) == [STREAM, STREAM, STREAM, DATAGRAM, STREAM, 0]
        assert sum(one["sockets"] for one in done["set"]) == 5, done
        assert done["other_families"] == {"udp": 1} and done["by"] == "the kernel", done
        # What is accepted from now on has it, and what is set again is not found again.
        peers = [it.accepts("t", tcp), it.accepts("u", unix)]
        assert [it.do(f"r = option(c[{number}])") for _, number in peers] == [STREAM] * 2
        told("--pid", it.pid, "--min-bytes", "64k", "--family", "tcp,unix,udp")
        assert it.do(all_of_it) == [65536] * 6
        # Somebody else's is left alone, and named.
        it.do("d.setsockopt(socket.SOL_SOCKET, 0x4E54, 12288)")
        words = ntcopy("--pid", it.pid, "--off")
        assert "somebody else has set it since" in words and "12KiB" in words, words
        assert it.do(all_of_it) == [0, 0, 0, 12288, 8192, 0]
        assert [it.do(f"r = option(c[{number}])") for _, number in peers] == [0, 0]
        assert not os.path.exists("/run/ntcopy") or not os.listdir("/run/ntcopy")
        # Nothing of it is ours any more.
        words = ntcopy("--pid", it.pid, "--off")
        assert "not set by `ntcopy set`" in words, words
        assert it.do(all_of_it) == [0, 0, 0, 12288, 8192, 0]
        old.close()


def test_what_was_accepted_gets_its_listeners():
    with Program() as it:
        tcp, unix = it.listens()
        it.do("t.setsockopt(socket.SOL_SOCKET, 0x4E54, 16384)")
        ntcopy("--pid", it.pid)
        peers = [it.accepts("t", tcp), it.accepts("u", unix)]
        restored = told("--pid", it.pid, "--off")
        assert (restored["restored"], restored["accepted"]) == (2, 2), restored
        assert it.do("r = [option(s) for s in (t, u, *c)]") == [16384, 0, 16384, 0]
        del peers


def test_descendants_and_shared_sockets():
    with Program() as it:
        it.listens()
        # The child makes a socket of its own, and shares its parent's.
        child = it.do("r = fork(socket.socket)")
        done = told("--pid", it.pid)
        assert sum(one["sockets"] for one in done["set"]) == 3, done
        assert set(numbers(child).values()) == {STREAM}
        restored = told("--pid", it.pid, "--off")
        assert restored["restored"] == 3, restored
        assert set(numbers(child).values()) == {0}
        os.kill(child, signal.SIGKILL)


def watching(pid):
    """`set --watch`, which has looked at the program once."""
    line = [NTCOPY, "set", "--pid", str(pid), "--watch", "--json"]
    watch = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert json.loads(watch.stdout.readline())["watch"] is True
    return watch


def wait_for(holds):
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < PATIENCE_S, "it does not come to that"
        time.sleep(0.01)


def ended(watch, with_signal):
    watch.send_signal(with_signal)
    out, err = watch.communicate(timeout=PATIENCE_S)
    return watch.returncode, out, err


def test_watch_sets_what_is_made_later_and_ends():
    with Program() as it, Program() as other:
        tcp, _ = other.listens()
        watch = watching(it.pid)
        child = it.do(f"own = socket.create_connection({tcp}); r = fork(socket.socket)")
        wait_for(lambda: it.do("r = option(own)") == STREAM)
        wait_for(lambda: set(numbers(child).values()) == {STREAM})
        assert ended(watch, signal.SIGINT)[0] == 0
        # Taken back by somebody else, it ends too, and sets nothing again.
        watch = watching(it.pid)
        ntcopy("--pid", it.pid, "--off")
        out, err = watch.communicate(timeout=PATIENCE_S)
        assert watch.returncode == 0 and "taken back" in err, (out, err)
        assert it.do("r = option(own)") == 0
        watch = watching(it.pid)
        os.kill(child, signal.SIGKILL)
    assert watch.communicate(timeout=PATIENCE_S) and watch.returncode == 0
    assert not os.listdir("/run/ntcopy")


def test_a_peer_sees_the_end_while_it_watches():
    with Program() as it:
        addresses = it.listens()
        watch = watching(it.pid)
        for time_of in range(100):
            listener, address = ("t", "u")[time_of % 2], addresses[time_of % 2]
            peer, number = it.accepts(listener, address)
            it.do(f"c[{number}].close()")
            assert peer.recv(1) == b""
            peer.close()
        assert ended(watch, signal.SIGTERM)[0] == 0


def processes_of(watch):
    """`set` and the process that works for it."""
    text = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in text.stdout.splitlines()]
    of_it = [row for row in rows if str(watch.pid) in row[:2]]
    return {int(pid): state for pid, _, state in of_it if not state.startswith("Z")}


def test_stopped_or_killed_at_any_point_it_holds_nothing():
    random.seed(7)
    with Program() as it:
        address, _ = it.listens()
        for time_of in range(24):
            peers = [it.accepts("t", address) for _ in range(8)]
            it.do("own = [socket.socket() for _ in range(40)]")
            line = [NTCOPY, "set", "--pid", str(it.pid), "--watch"]
            watch = subprocess.Popen(line, stdout=subprocess.DEVNULL)
            time.sleep(random.random() * 0.06)
            if time_of % 3 == 2:
                # The one that works as well, which goes on.
                for pid in processes_of(watch):
                    if pid != watch.pid:
                        os.kill(pid, signal.SIGSTOP)
            else:
                watch.send_signal((signal.SIGSTOP, signal.SIGKILL)[time_of % 3])
            it.do("[s.close() for s in (*c, *own)]; c.clear(); own.clear()")
            for peer, _ in peers:
                assert peer.recv(1) == b""
                peer.close()
            watch.kill()
            watch.wait()
            wait_for(lambda: not processes_of(watch))
        # Whatever was set is known, and goes back.
        ntcopy("--pid", it.pid, "--off")
        assert set(numbers(it.pid).values()) <= {0}


class Load:
    """Four connections of a program, that it feeds and that are drained here, all bytes hashed."""

    def __init__(self, it, listener, address, size):
        self.it, self.got, self.drains = it, {}, []
        for _ in range(4):
            peer, number = it.accepts(listener, address)
            self.drains.append(threading.Thread(target=self.drain, args=(peer, number)))
            self.drains[-1].start()
        feeds = f"f = [threading.Thread(target=feed, args=(s, {size})) for s in c]"
        it.do(f"{feeds}; [t.start() for t in f]")

    def drain(self, peer, number):
        whole = hashlib.sha256()
        while part := peer.recv(1 << 18):
            whole.update(part)
        self.got[number] = whole.hexdigest()

    def ends_with_every_byte(self):
        self.it.do("over.append(1); [t.join() for t in f]")
        [drain.join(PATIENCE_S) for drain in self.drains]
        sent = self.it.do("r = {i: sums[s.fileno()] for i, s in enumerate(c)}")
        assert self.got == sent, (self.got, sent)


def test_on_and_off_under_load_nothing_is_lost():
    with Program() as it:
        load = Load(it, "t", it.listens()[0], 300_000)
        for _ in range(100):
            ntcopy("--pid", it.pid)
            assert it.do("r = {option(s) for s in c}") == {STREAM}
            ntcopy("--pid", it.pid, "--off")
            assert it.do("r = {option(s) for s in c}") == {0}
        load.ends_with_every_byte()


def test_by_the_module_there_and_back():
    with Program() as it:
        tcp, unix = it.listens()
        peers = [it.accepts("t", tcp), it.accepts("u", unix)]
        done = told("--pid", it.pid)
        assert done["by"] == "the module" and done["not_taken"] == 2, done
        assert sum(one["sockets"] for one in done["set"]) == 2, done
        assert done["stream_min_bytes"] == MODULE_STREAM, done
        assert done["datagram_min_bytes"] is None, done
        peers.append(it.accepts("u", unix))
        assert sorted(numbers(it.pid).values()) == [MODULE_STREAM] * 3
        restored = told("--pid", it.pid, "--off")
        assert (restored["restored"], restored["accepted"]) == (2, 1), restored
        assert set(numbers(it.pid).values()) <= {0}


def bypassed():
    line = [NTCOPY, "stat", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)["bypassed_bytes"]


def test_by_the_module_under_load_nothing_is_lost():
    with Program() as it:
        load = Load(it, "u", it.listens()[1], MODULE_STREAM)
        for _ in range(10):
            before = bypassed()
            ntcopy("--pid", it.pid)
            wait_for(lambda: bypassed() > before)
            ntcopy("--pid", it.pid, "--off")
        # A send that was under way when its socket was put back has ended.
        time.sleep(0.5)
        before = bypassed()
        time.sleep(0.5)
        assert bypassed() == before
        load.ends_with_every_byte()


def main():
    for name in sys.argv[2:]:
        globals()[f"test_{name}"]()
        print("ok", name, flush=True)


main()
