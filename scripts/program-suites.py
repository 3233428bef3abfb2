#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs' own test suites by themselves and under `ntcopy run`: run, and held against each other.

Called by program-suites.sh; `run` in a kernel that knows the flag. Python's standard library only.

usage: program-suites.py run PROGRAM plain|hinted --ntcopy FILE --tree DIR --results DIR
                         [--turns 0] [--item NAME...]
       program-suites.py differing|judge PROGRAM --results DIR
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

WAYS = {"plain": "by itself", "hinted": "under ntcopy run"}
# As much as can be, so that also what is small takes the way of the hinted.
HINTED = ["run", "--min-bytes", "4KiB", "--family", "unix,tcp,udp", "--"]
# The guest's own, in memory: two guests share the host's files.
HOME = pathlib.Path("/run/program-suites")
TLS = "SSL_TEST=1:"


class Memcached:
    """One item for each of t/*.t, as prove would run it, and those that `make test_tls` adds."""

    limit_s = 600
    # How many points a script has may depend on time (maxconns.t). That it ran to its end is known
    # by its exit code and plan.
    absent = "passed"

    def items(self, tree):
        scripts = sorted(f"t/{path.name}" for path in tree.glob("t/*.t"))
        with_tls = [name for name in scripts if re.match(r"t/(ssl_|binary\.t|getset\.t)", name)]
        return ["testapp", *scripts, *(TLS + name for name in with_tls)]

    def command(self, item):
        if item == "testapp":
            return ["./testapp"]
        with_tls = ["env", "SSL_TEST=1"] if item.startswith(TLS) else []
        return [*with_tls, "perl", item.removeprefix(TLS)]

    def outcomes(self, output, code):
        """What TAP says, by number: the words may name a port or a time."""
        tests, planned = {}, None
        for line in output.splitlines():
            if plan := re.match(r"1\.\.(\d+)(.*)", line):
                planned = int(plan[1])
                if planned == 0:
                    tests["all"] = "skipped"
            elif point := re.match(r"(not )?ok (\d+)(.*)", line):
                is_skipped = re.search(r"# *(skip|todo)", point[3], re.IGNORECASE)
                outcome = "failed" if point[1] else "passed"
                tests[point[2]] = "skipped" if is_skipped else outcome
        is_whole = code == 0 and planned is not None and planned in (0, len(tests))
        # It fails as a whole where no point says so: it may have ended early.
        if not is_whole and "failed" not in tests.values():
            tests["all"] = "failed"
        return tests


class Redis:
    """One item for each unit of ./runtest."""

    limit_s = 1800
    absent = "absent"
    words = {"ok": "passed", "err": "failed", "exception": "failed", "TIMEOUT": "failed"}
    words |= {"skip": "skipped", "ignore": "skipped"}

    def items(self, tree):
        line = ["tclsh", "tests/test_helper.tcl", "--list-tests"]
        listed = subprocess.run(line, cwd=tree, check=True, capture_output=True, text=True)
        return listed.stdout.split()

    def command(self, item):
        return ["./runtest", "--clients", "1", "--timeout", "600", "--single", item]

    def outcomes(self, output, code):
        tests, seen = {}, collections.Counter()
        for line in output.splitlines():
            if point := re.match(r"\[(ok|err|exception|TIMEOUT|skip|ignore)\]: (.*)", line):
                # A failure adds where it is, a success how long it took.
                name = re.sub(r"( \(\d+ ms\)| in tests/\S+)$", "", point[2])
                seen[name] += 1
                name += f" #{seen[name]}" if seen[name] > 1 else ""
                tests[name] = self.words[point[1]]
        if code != 0 and "failed" not in tests.values():
            tests["the unit as a whole"] = "failed"
        return tests


PROGRAMS = {"memcached": Memcached(), "redis": Redis()}


def counted(ntcopy):
    """What the kernel has counted so far: hinted bytes, and those of sends past the caches."""
    line = subprocess.run([ntcopy, "stat", "--json"], check=True, capture_output=True)
    told = json.loads(line.stdout)
    return told["hinted_bytes"], told["bypassed_bytes"]


def end_all_others():
    """Ends what a test has left behind: this guest runs nothing else."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_program = (folder / "cmdline").read_bytes() != b""
            if is_program and int(folder.name) not in (1, os.getpid(), os.getppid()):
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def settle(arguments):
    """Moves into the guest's own memory, and takes /tmp for this guest alone."""
    (HOME / "results").mkdir(parents=True)
    source = pathlib.Path(arguments.ntcopy)
    for name in source.name, "libntcopy-preload.so":
        shutil.copy2(source.with_name(name), HOME)
    shutil.copytree(arguments.tree, HOME / "tree", symlinks=True)
    mount("--bind", arguments.results, HOME / "results")
    mount("-t", "tmpfs", "tmpfs", "/tmp")
    # The host's name servers are out of reach, and a test that looks for a name waits for them.
    (HOME / "resolv.conf").touch()
    if os.path.exists("/etc/resolv.conf"):
        mount("--bind", HOME / "resolv.conf", "/etc/resolv.conf")
    os.chdir(HOME / "tree")
    os.environ |= {"TMPDIR": "/tmp", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    return HOME / source.name, HOME / "results"


def run_item(program, item, log, before):
    """Runs an item to its end or its limit; gives its exit code."""
    with log.open("wb") as out:
        line = [*before, *program.command(item)]
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        try:
            return process.wait(timeout=program.limit_s)
        except subprocess.TimeoutExpired:
            out.write(f"\nended after {program.limit_s} s\n".encode())
            return 124
        finally:
            end_all_others()
            process.wait()


def run(arguments):
    program, way = PROGRAMS[arguments.program], arguments.way
    ntcopy, results = settle(arguments)
    logs = results / arguments.program / way
    logs.mkdir(parents=True, exist_ok=True)
    items = arguments.item or program.items(pathlib.Path())
    before = [str(ntcopy), *HINTED] if way == "hinted" else []
    there = read(arguments.program, results)[way]
    turns = map(int, arguments.turns.split(","))
    todo = [(turn, item) for turn in turns for item in items if (turn, item) not in there]
    with (results / f"{arguments.program}-{way}.jsonl").open("a") as file:
        for done, (turn, item) in enumerate(todo, 1):
            log = logs / f"{item.replace('/', '-')}.{turn}.log"
            begun, count = time.monotonic(), counted(ntcopy)
            code = run_item(program, item, log, before)
            seconds = time.monotonic() - begun
            hinted, nontemporal = (b - a for a, b in zip(count, counted(ntcopy)))
            tests = program.outcomes(log.read_text(errors="replace"), code)
            told = {"item": item, "turn": turn, "code": code, "tests": tests}
            told |= {"hinted": hinted, "nontemporal": nontemporal, "seconds": round(seconds, 1)}
            print(json.dumps(told), file=file, flush=True)
            numbers = collections.Counter(tests.values())
            said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(numbers.items()))
            words = f"{arguments.program} {WAYS[way]}: {done}/{len(todo)} {item}: {said}"
            print(f"{words}; {hinted} bytes hinted, {seconds:.0f} s", file=sys.stderr, flush=True)
            subprocess.run("rm -rf /tmp/* /tmp/.[!.]*", shell=True, check=False)


def read(program, results):
    """By way, by turn and item: the rows; and the outcome of a test that has none."""
    told = {"absent": PROGRAMS[program].absent}
    for way in WAYS:
        path = pathlib.Path(results) / f"{program}-{way}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        told[way] = {(row["turn"], row["item"]): row for row in map(json.loads, lines)}
    return told


def all_items(told):
    return sorted({item for way in WAYS for turn, item in told[way] if turn == 0})


def outcome(told, way, turn, item, test):
    row = told[way].get((turn, item))
    return "not run" if row is None else row["tests"].get(test, told["absent"])


def differences(told):
    """Each test whose first outcomes differ: item, test, outcomes by way and turn."""
    for item in all_items(told):
        rows = [told[way].get((0, item), {"tests": {}}) for way in WAYS]
        for test in {**rows[0]["tests"], **rows[1]["tests"]}:
            if len({outcome(told, way, 0, item, test) for way in WAYS}) > 1:
                yield item, test


def differing(arguments):
    print(*sorted({item for item, _ in differences(read(arguments.program, arguments.results))}))


def judge(arguments):
    name, is_alike = arguments.program, True
    told = read(name, arguments.results)
    print(f"{name:10} {'':17} tests passed failed skipped  bytes hinted  non-temporal  seconds")
    sums = {}
    for way, words in WAYS.items():
        rows = [row for (turn, _), row in told[way].items() if turn == 0]
        numbers = collections.Counter(o for row in rows for o in row["tests"].values())
        sums[way] = sum(row["hinted"] for row in told[way].values())
        columns = [numbers.total(), *(numbers[o] for o in ("passed", "failed", "skipped"))]
        columns += [sum(row[key] for row in rows) for key in ("hinted", "nontemporal", "seconds")]
        line = "{:5} {:6} {:6} {:7} {:13} {:13} {:8.0f}".format(*columns)
        print(f"{name:10} {words:17} {line}")
    for item in all_items(told):
        for test in told["plain"].get((0, item), {"tests": {}})["tests"]:
            if {outcome(told, way, 0, item, test) for way in WAYS} == {"failed"}:
                print(f"fails both ways  {item} {test}")
    for item, test in differences(told):
        seen = {way: [outcome(told, way, turn, item, test) for turn in range(4)] for way in WAYS}
        # A turn that did not come about says nothing; a test that never ran is not alike.
        is_flaky = set(seen["plain"]) & set(seen["hinted"]) - {"not run"} != set()
        is_alike = is_alike and is_flaky
        said = "; ".join(f"{WAYS[way]}: {', '.join(seen[way])}" for way in WAYS)
        print(f"{'flaky            ' if is_flaky else 'DIFFERS          '}{item} {test}: {said}")
    silent = [i for (turn, i), row in told["hinted"].items() if turn == 0 and not row["hinted"]]
    reached = len(all_items(told)) - len(silent)
    words = ["; not in:", *silent] if silent else []
    print(f"{name}: bytes were hinted in {reached} of {len(all_items(told))} files", *words)
    if sums["plain"] or not sums["hinted"] or not told["plain"]:
        print(f"FAILED  {name}: bytes hinted by itself: {sums['plain']}; under: {sums['hinted']}")
        is_alike = False
    print(f"{'ok     ' if is_alike else 'FAILED '} {name}: {'' if is_alike else 'not '}alike")
    sys.exit(not is_alike)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("verb", choices=["run", "differing", "judge"])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("way", nargs="?", choices=WAYS)
    for option in "--ntcopy", "--tree", "--results":
        parser.add_argument(option)
    parser.add_argument("--turns", default="0")
    parser.add_argument("--item", nargs="+")
    arguments = parser.parse_args()
    {"run": run, "differing": differing, "judge": judge}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
