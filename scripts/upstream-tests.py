#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Upstream's tests: which to build, run them in a guest, compare.

Called by upstream-tests.sh, which see. Python's standard library only (3.11 for tomllib).
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

# How a test says that it cannot be run here (tools/testing/selftests/kselftest.h).
SKIP = 4
DEFAULT_TIMEOUT_S = 60
# A difference is believed when it shows in this many runs of each mode: tests with real time in
# them fail now and then on a loaded machine, with the flag and without it.
RUNS = 3
MODES = ("0", "2")
COUNTERS = pathlib.Path("/proc/net/netstat")
BYPASSED = "NtcopyBypassedBytes"


def read_list(path, only=()):
    """The tests of the list, as dictionaries with every key set."""
    tests = []
    for test in tomllib.loads(pathlib.Path(path).read_text())["test"]:
        name = test["name"]
        unknown = set(test) - {"name", "run", "build", "timeout", "why", "broken"}
        if unknown:
            sys.exit(f"upstream-tests: {path}: {name}: unknown keys {sorted(unknown)}")
        test.setdefault("build", [name])
        test.setdefault("run", "./" + os.path.basename(name))
        test.setdefault("timeout", DEFAULT_TIMEOUT_S)
        if not only or name in only:
            tests.append(test)
    if not tests:
        sys.exit(f"upstream-tests: no test of {path} was asked for")
    return tests


def absent(tree, test):
    """Why the test is not run: this source does not have it, or not in a form that compiles."""
    for version, why in test.get("broken", {}).items():
        if f"linux-source-{version}_" in str(tree):
            return why
    if (tree / test["name"]).exists() or (tree / (test["name"] + ".c")).exists():
        return None
    return "not in this source"


def bypassed_bytes():
    """Bytes of sends that went past the caches so far in this network namespace."""
    # A line of names and a line of values for each group.
    lines = [line.split() for line in COUNTERS.read_text().splitlines()]
    for names, values in zip(lines, lines[1:]):
        if BYPASSED in names and names[0] == values[0]:
            return int(values[names.index(BYPASSED)])
    sys.exit(f"upstream-tests: {COUNTERS} has no {BYPASSED}")


def verdicts(output):
    """The lines in which the test says what passed and what failed, without times and numbers."""
    found = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines():
        tap = re.match(r"[#\s]*(ok|not ok)\s+\d+\s*-?\s*(.*)", line)
        if tap:
            # "# time=12ms" and the like change from run to run.
            name = re.sub(r"(#\s*)?\b(time|duration)\b.*", "", tap[2])
            found.append(f"{tap[1]} {name.strip()}")
            continue
        word = re.search(r"\[\s*(OK|PASS|FAIL|SKIP|XFAIL)\s*\]", line)
        if word:
            found.append(word[1])
    return sorted(found)


def reason(output):
    """The line that says best why a test did not pass."""
    lines = [line.strip(" #\t") for line in output.splitlines() if line.strip(" #\t")]
    # What the kernel or the machine lacks says more than what failed of it.
    lacks = r"SKIP|not found|[Nn]ot (supported|implemented|permitted)|Unknown device|No such|denied"
    fails = r"[Cc]annot|[Ee]rror|FAIL|[Ff]ailed|Expected"
    for tells in (lacks, fails):
        for line in lines:
            if re.search(tells, line) and not re.match(r"(ok|not ok) |Totals|FAILED:", line):
                return line[:100]
    return lines[-1][:100] if lines else "no output"


def run_one(tree, test, mode):
    """Runs one test in its folder; a dictionary of what came of it."""
    folder = (tree / test["name"]).parent
    before, start = bypassed_bytes(), time.monotonic()
    # A session of its own: what a test leaves behind is ended with it.
    child = subprocess.Popen(
        ["bash", "-c", test["run"]], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    timed_out = False
    try:
        output, _ = child.communicate(timeout=test["timeout"])
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(child.pid, signal.SIGTERM)
        try:
            output, _ = child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    output = output.decode(errors="replace")
    code = child.returncode
    status = "timeout" if timed_out else {0: "pass", SKIP: "skip"}.get(code, "fail")
    return {
        "name": test["name"], "mode": mode, "status": status, "code": code,
        "verdicts": verdicts(output), "reason": "" if status == "pass" else reason(output),
        "bypassed_bytes": bypassed_bytes() - before,
        "seconds": round(time.monotonic() - start, 1), "output": output[-20000:],
    }


def append(path, entry):
    """A line that survives the guest."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_results(path):
    """{(test, mode): [result, ...]}; a run that began and never ended took the guest with it."""
    runs, begun = {}, None
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.splitlines():
        entry = json.loads(line)
        if "begin" in entry:
            if begun:
                runs.setdefault(begun, []).append(died(begun))
            begun = (entry["begin"], entry["mode"])
        else:
            begun = None
            runs.setdefault((entry["name"], entry["mode"]), []).append(entry)
    if begun:
        runs.setdefault(begun, []).append(died(begun))
    return runs


def died(key):
    return {"name": key[0], "mode": key[1], "status": "died", "code": None, "verdicts": [],
            "reason": "the guest died or hung", "bypassed_bytes": 0, "seconds": 0, "output": ""}


def signature(result):
    """What must be the same with 0 and with 3."""
    return (result["status"], tuple(result["verdicts"]))


def judge(runs, name):
    """`same`, `missing` (modes to be run once more), or `different`."""
    off, on = ({signature(run) for run in runs.get((name, mode), [])} for mode in MODES)
    fewest = min(len(runs.get((name, mode), [])) for mode in MODES)
    # A test that takes too long on a loaded machine has said nothing yet.
    same = {each for each in off & on if each[0] not in ("timeout", "died") or fewest >= RUNS}
    if same:
        return "same"
    return "different" if fewest >= RUNS else "missing"


def wanted(tests, tree, runs):
    """What is still to be run: [(test, mode)]. Both modes the same number of times."""
    todo = []
    for mode in MODES:
        for test in tests:
            done = {each: len(runs.get((test["name"], each), [])) for each in MODES}
            is_open = not absent(tree, test) and judge(runs, test["name"]) == "missing"
            if is_open and done[mode] == min(done.values()):
                todo.append((test, mode))
    return todo


def cmd_programs(args):
    """The programs to build, one a line, of the tests that this source has."""
    tests = read_list(args.list, args.only)
    names = {program for test in tests if not absent(args.tree, test) for program in test["build"]}
    print("\n".join(sorted(names)))


def cmd_todo(args):
    """The modes in which something is still to be run, and the seconds that it may take."""
    tests = read_list(args.list, args.only)
    todo = wanted(tests, args.tree, read_results(args.results))
    for mode in MODES:
        limits = [test["timeout"] + 10 for test, test_mode in todo if test_mode == mode]
        if limits:
            print(mode, sum(limits))


def temporary_files(args):
    """A /tmp that knows O_TMPFILE, which the host's tree, as a guest sees it, does not."""
    paths = [pathlib.Path(path).resolve() for path in (args.list, args.tree, args.results)]
    if not any(path.is_relative_to("/tmp") for path in paths):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"], check=True)


def cmd_run(args):
    """In the guest: runs what is still to be run in this mode."""
    mode = pathlib.Path("/proc/sys/net/core/ntcopy").read_text().strip()
    if mode != args.mode:
        sys.exit(f"upstream-tests: net.core.ntcopy is {mode} in the guest, not {args.mode}")
    tests = read_list(args.list, args.only)
    temporary_files(args)
    for test, test_mode in wanted(tests, args.tree, read_results(args.results)):
        if test_mode != mode:
            continue
        append(args.results, {"begin": test["name"], "mode": mode})
        result = run_one(args.tree, test, mode)
        append(args.results, result)
        print(f"  {test['name']:<32} {mode}: {summary(result)}", flush=True)


def summary(result):
    """One cell of the table."""
    good = sum(line.startswith(("ok", "OK", "PASS")) for line in result["verdicts"])
    bad = sum(line.startswith(("not ok", "FAIL")) for line in result["verdicts"])
    if result["status"] == "pass":
        return f"pass ({good})" if good else "pass"
    if result["status"] == "skip":
        return "skip"
    return f"{result['status']} ({good} ok, {bad} not)" if good or bad else result["status"]


def rows(tests, tree, runs):
    """[(name, cell with 0, cell with 3, remark, is a difference)]."""
    out = []
    for test in tests:
        name = test["name"]
        why_not = absent(tree, test)
        if why_not:
            out.append((name, "-", "-", why_not, False))
            continue
        off, on = (runs.get((name, mode), []) for mode in MODES)
        verdict = judge(runs, name)
        if not off or not on:
            out.append((name, "-", "-", "not run", True))
            continue
        # Those that agree, if any do; best those that came to an end.
        pair = min(((a, b) for a in off for b in on),
                   key=lambda pair: (signature(pair[0]) != signature(pair[1]),
                                     pair[0]["status"] in ("timeout", "died")))
        remark = []
        if pair[0]["status"] != "pass":
            remark.append(test.get("why") or pair[0]["reason"])
        if len(off) + len(on) > 2 and verdict == "same":
            remark.append(f"same in {len(off)} runs of each: not always the same by itself")
        if verdict != "same":
            remark.append("**different**")
        out.append((name, summary(pair[0]), summary(pair[1]), "; ".join(remark),
                    verdict != "same" or "died" in (pair[0]["status"], pair[1]["status"])))
    return out


def cmd_judge(args):
    """Prints what there is; ends with 1 where 0 and 3 differ."""
    tests = read_list(args.list, args.only)
    runs = read_results(args.results)
    found = rows(tests, args.tree, runs)
    passed = sum(cells[1].startswith("pass") for cells in found)
    different = [cells for cells in found if cells[4]]
    seen = sum(run["bypassed_bytes"] for (_, mode), all_runs in runs.items() if mode == "2"
               for run in all_runs)
    leaked = sum(run["bypassed_bytes"] for (_, mode), all_runs in runs.items() if mode == "0"
                 for run in all_runs)
    for name, off, on, remark, _ in found:
        if not off.startswith("pass") or remark:
            print(f"  {name:<32} {off:<24} {on:<24} {remark}")
    print(f"upstream-tests: {args.kernel}: {passed} of {len(found)} pass with 0 and 3 alike; "
          f"with 3 they copied {seen} bytes non-temporally, with 0 {leaked}")
    if different:
        sys.exit(f"upstream-tests: {args.kernel}: "
                 f"{', '.join(cells[0] for cells in different)} not the same with 0 and 3")
    if not seen or leaked:
        sys.exit(f"upstream-tests: {args.kernel}: the sysctl did not do what it says")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    for name, function in [("programs", cmd_programs), ("todo", cmd_todo), ("run", cmd_run),
                           ("judge", cmd_judge)]:
        verb = verbs.add_parser(name)
        verb.set_defaults(function=function)
        verb.add_argument("--list", required=True)
        verb.add_argument("--tree", type=pathlib.Path, required=True)
        verb.add_argument("--results", type=pathlib.Path)
        verb.add_argument("--kernel")
        verb.add_argument("--mode")
        verb.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
