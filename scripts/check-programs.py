#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs as they are, without `ntcopy run` and under it: same bytes, and hinted under it alone.

Called by check-programs.sh in a kernel that knows the flag. Python's standard library only.

usage: check-programs.py NTCOPY
"""

import contextlib
import http.client
import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

KIB, MIB = 1 << 10, 1 << 20
# Nothing here takes this long, on any machine.
PATIENCE_S = 120
# The part of the bytes that a program was seen to send that must be counted as hinted, at least:
# what is below a page and the like is left alone.
LEAST_HINTED = 0.5


class Failed(Exception):
    """What was not as it should be, in words."""


def expect(is_so, words):
    if not is_so:
        raise Failed(words)


def hinted_bytes(ntcopy):
    """What the kernel has counted so far, in this network namespace."""
    line = subprocess.run([ntcopy, "stat", "--once", "--json"], check=True, capture_output=True)
    return json.loads(line.stdout)["hinted_total_bytes"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    """Whether a server listens, without a connection: iperf3 --one-off serves but one."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    sockets = [line.split() for line in lines]
    return any(words[1].endswith(f":{port:04X}") and words[3] == "0A" for words in sockets)


def wait_for(port, process, log):
    """Waits until a daemon listens; its end before that is a failure."""
    begun = time.monotonic()
    while not is_listening(port):
        said = log.read_text(errors="replace")[-2000:]
        expect(process.poll() is None, f"it ended at once: {process.returncode}: {said}")
        expect(time.monotonic() - begun < PATIENCE_S, "it does not listen")
        time.sleep(0.05)


class Runner:
    """Starts programs, all in one way: plainly, or under `ntcopy run --stat`."""

    def __init__(self, ntcopy, is_hinted, folder):
        self.ntcopy, self.is_hinted, self.folder = ntcopy, is_hinted, folder
        self.logs = 0

    def line(self, words, options=()):
        words = [str(word) for word in words]
        if not self.is_hinted:
            return words
        return [self.ntcopy, "run", "--stat", *options, "--", *words]

    def run(self, words, options=()):
        """Runs a program to its end, and gives its standard output."""
        line = self.line(words, options)
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
        said = (done.stdout + done.stderr)[-2000:]
        expect(done.returncode == 0, f"{words[0]} ended with {done.returncode}: {said}")
        self.is_told(words[0], done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def daemon(self, words, port, stop_signal, options=()):
        """A program that runs meanwhile. It must end well when that signal comes, or by itself."""
        self.logs += 1
        log = self.folder / f"{pathlib.Path(words[0]).name}-{self.logs}.log"
        with log.open("w") as out:
            process = subprocess.Popen(self.line(words, options), stdout=out, stderr=out)
        try:
            wait_for(port, process, log)
            yield
            if stop_signal is not None:
                process.send_signal(stop_signal)
            code = process.wait(timeout=PATIENCE_S)
            said = log.read_text(errors="replace")
            expect(code == 0, f"{words[0]} ended with {code}: {said[-2000:]}")
            self.is_told(words[0], said)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def is_told(self, name, said):
        """`--stat` has the last word, and only there."""
        told = "meanwhile, in this network namespace:" in said
        expect(told == self.is_hinted, f"{name}: --stat: {said[-500:]!r}")


def pattern(seed, size):
    return random.Random(seed).randbytes(size)


class Redis:
    """A client of redis-server, of its protocol as much as is needed here."""

    def __init__(self, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.file = connection.makefile("rwb")

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else word.encode() for word in words]
        self.file.write(b"*%d\r\n" % len(words))
        for word in words:
            self.file.write(b"$%d\r\n%s\r\n" % (len(word), word))
        self.file.flush()
        kind, rest = (line := self.file.readline())[:1], line[1:].strip()
        expect(kind in (b"+", b":", b"$"), f"redis-server answers {line!r}")
        return rest if kind != b"$" else self.file.read(int(rest) + 2)[:-2]


def redis(runner):
    """Values go in and come back; redis-benchmark runs between."""
    port, values = free_port(), {f"value:{n}": pattern(n, MIB + n) for n in range(8)}
    server = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", runner.folder]
    server += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
    with runner.daemon(server, port, signal.SIGTERM):
        client = Redis(port)
        for name, value in values.items():
            expect(client.ask("SET", name, value) == b"OK", f"SET {name}")
        benchmark = ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-t", "set,get"]
        benchmark += ["-d", 64 * KIB, "-n", 1000, "-c", 8, "--csv"]
        table = runner.run(benchmark)
        expect('"SET"' in table and '"GET"' in table, f"redis-benchmark says {table!r}")
        for name, value in values.items():
            expect(client.ask("GET", name) == value, f"GET {name} gives other bytes")
    return sum(map(len, values.values())) + 2 * 1000 * 64 * KIB


def iperf3(runner):
    """A stream to the server and one to the client, which have to arrive; then datagrams.

    iperf3 can say nothing of the bytes themselves: its --file loses its place where a socket takes
    a part of a write, with or without a hint."""
    sent = 64 * MIB
    for more in [], ["--reverse"]:
        options = ["--length", 128 * KIB, "--bytes", sent, *more]
        end = iperf3_once(runner, options)["end"]
        there, here = end["sum_sent"]["bytes"], end["sum_received"]["bytes"]
        # It ends by a word on another connection, and what is under way then is not read.
        expect(0.8 * sent <= here <= there, f"iperf3 {more}: sent {there}, received {here}")
    datagrams = ["--udp", "--length", 16 * KIB, "--bandwidth", 0, "--bytes", 16 * MIB]
    iperf3_once(runner, datagrams, ["--udp", "--tcp"])
    return 2 * sent + 16 * MIB


def iperf3_once(runner, more, options=()):
    """One test, and what the client tells of it."""
    port = free_port()
    server = ["iperf3", "--server", "--one-off", "--bind", "127.0.0.1", "--port", port]
    client = ["iperf3", "--client", "127.0.0.1", "--port", port, "--json", *more]
    with runner.daemon(server, port, None, options):
        told = json.loads(runner.run(client, options))
    expect("error" not in told, f"iperf3 says {told.get('error')}")
    return told


# It copies only without sendfile.
NGINX = """\
daemon off; user root; worker_processes 2; pid {folder}/nginx.pid; error_log stderr error;
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile off;
    client_body_temp_path {folder}/client_body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


def nginx(runner):
    """Four clients get files over and over, and compare every byte."""
    port, root = free_port(), runner.folder / "root"
    root.mkdir(exist_ok=True)
    files = {f"{size}": pattern(size, size) for size in (20_000, MIB, 4 * MIB + 1)}
    for name, content in files.items():
        (root / name).write_bytes(content)
    config = runner.folder / "nginx.conf"
    config.write_text(NGINX.format(folder=runner.folder, port=port, root=root))
    rounds, clients, wrong = 6, 4, []
    command = ["nginx", "-e", "stderr", "-p", runner.folder, "-c", config]
    with runner.daemon(command, port, signal.SIGQUIT):
        load = [
            threading.Thread(target=get_all, args=(port, files, rounds, wrong))
            for _ in range(clients)
        ]
        for client in load:
            client.start()
        for client in load:
            client.join()
    expect(not wrong, f"nginx: {wrong[:1]}")
    return clients * rounds * sum(map(len, files.values()))


def get_all(port, files, rounds, wrong):
    """Gets every file `rounds` times over one connection; what is not as it should be goes to
    `wrong`."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        for name, content in [*files.items()] * rounds:
            connection.request("GET", f"/{name}")
            answer = connection.getresponse()
            expect(answer.status == 200, f"/{name}: {answer.status}")
            expect(answer.read() == content, f"/{name}: other bytes")
        connection.close()
    except (Failed, OSError, http.client.HTTPException) as error:
        wrong.append(repr(error))


def check(program, ntcopy, is_hinted):
    """Runs a program's check, holds the kernel's counters against it, and says what came of it."""
    name = program.__name__ + (" under ntcopy run" if is_hinted else " by itself")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        before = hinted_bytes(ntcopy)
        try:
            sent = program(Runner(ntcopy, is_hinted, pathlib.Path(folder)))
            hinted = hinted_bytes(ntcopy) - before
            if is_hinted:
                words = f"{hinted} bytes hinted, and {sent} sent"
                expect(hinted >= LEAST_HINTED * sent, words)
            else:
                expect(hinted == 0, f"{hinted} bytes hinted, and no hint was asked for")
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"FAILED  {name}: {error}", flush=True)
            return False
    print(f"ok      {name}: {sent} bytes sent, {hinted} hinted", flush=True)
    return True


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = [redis, iperf3, nginx]
    results = [check(program, sys.argv[1], way) for program in programs for way in (False, True)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
