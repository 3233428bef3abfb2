#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the functions of two builds of some objects, as they run while a static key is off.

Called by free-when-unused.sh, which see. Python's standard library and objdump only.

In the second build, a jump that the key patches in is a nop, and what can only be reached through
such a jump does not run. Every instruction of what is left, and of the first build, that can be
reached from a function's entry is taken, whatever its address, registers and places in memory.
The number of each kind is compared. Moves are counted and printed, but a few more or less
do not fail the comparison: the compiler allots registers anew with the least change. Landing pads
of faulting accesses are not followed, in either build.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter, namedtuple

Insn = namedtuple("Insn", "addr op args reloc target")

# Kinds of instructions that are counted together. A `test` and an `and` whose result is only looked
# at are the same thing to the compiler, and to the CPU.
KINDS = (
    ("moves", r"mov|lea\b|push|pop"),
    ("jumps", r"(bnd )?j\w+$"),
    ("conditional moves", r"cmov"),
    ("arithmetic",
     r"(test|cmp|add|sub|and|or|xor|not|neg|inc|dec|sh[lr]|sa[lr]|imul|sbb|adc)[bwlq]?\b"),
)

# Where control does not go on to the next instruction.
ENDS = ("ret", "jmp", "ud2", "int3", "hlt")


def objdump(*args):
    return subprocess.run(["objdump", *args], check=True, capture_output=True, text=True).stdout


def functions(path):
    """{name: [Insn]} of all code of an object."""
    found, code = {}, None
    for line in objdump("-dr", "--no-show-raw-insn", "-w", path).splitlines():
        head = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if head:
            code = found.setdefault(head[1], [])
            continue
        insn = re.match(r"\s+([0-9a-f]+):\t(\S+)\s*(.*)$", line)
        if insn and code is not None:
            text, _, reloc = insn[3].partition("\t")
            reloc = re.search(r"R_X86_64_\w+\s+(\S+)", reloc)
            text, _, _ = text.partition(" # ")
            target = re.match(r"([0-9a-f]+) <(.+?)(\+0x[0-9a-f]+)?>", text)
            code.append(Insn(int(insn[1], 16), *joined(insn[2], text.strip()),
                             reloc and reloc[1], target and int(target[1], 16)))
    return found


def joined(op, args):
    """`bnd jmp`, `lock xadd`, `rep stos`: the prefix belongs to the name."""
    if op in ("bnd", "notrack", "lock", "rep", "repz", "repnz", "cs", "ds"):
        first, _, rest = args.partition(" ")
        return f"{op} {first}", rest.strip()
    return op, args


def key_sites(path, key):
    """Addresses of the instructions that the key patches."""
    sections = objdump("-h", path)
    if "__jump_table" not in sections:
        return set()
    entries = re.findall(r"^[0-9a-f]+ (R_X86_64_PC\w+)\s+(\S+)",
                         objdump("-r", "-j", "__jump_table", path), re.M)
    sites = set()
    # Each entry of the table: the code, where it would jump, and the key.
    for (_, code), _, (_, name) in zip(*[iter(entries)] * 3, strict=True):
        if name.partition("+")[0] == key:
            sites.add(int(code.partition("+")[2] or "0", 16))
    return sites


def reachable(code, sites, path, name):
    """The instructions that run with the key off, and those that the key patches."""
    index = {insn.addr: at for at, insn in enumerate(code)}
    seen, todo, nops = set(), [0], 0
    while todo:
        at = todo.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        insn = code[at]
        if insn.addr in sites:
            if not re.match(r"nop|xchg", insn.op):
                sys.exit(f"free-when-unused: {path}: {name}: {insn.op} is not patched out")
            nops += 1
        op = insn.op.split()[-1]
        jumps = op.startswith("j")
        if op == "jmp" and insn.target is None and "*" in insn.args:
            # The configuration avoids them; where there is one after all, take everything.
            return [insn for insn in code if insn.addr not in sites], nops
        if jumps and insn.reloc is None and insn.target in index:
            todo.append(index[insn.target])
        if op not in ENDS:
            todo.append(at + 1)
    return [code[at] for at in sorted(seen) if code[at].addr not in sites], nops


def shape(insn):
    """What the instruction does, whatever its registers and its places in memory."""
    if re.match(r"(nop|xchg\s+%ax,%ax|data16)", f"{insn.op} {insn.args}"):
        return None
    symbol = insn.reloc and re.sub(r"[-+]0x[0-9a-f]+$", "", insn.reloc)
    if re.match(r"(bnd )?(call|j)", insn.op):
        called = symbol or re.sub(r"^[0-9a-f]+ |\*.*", "", insn.args)
        return insn.op if insn.target is not None and not symbol and insn.op.startswith("j") \
            else f"{insn.op} {called}"
    zeroed = re.fullmatch(r"(%\w+),(%\w+)", insn.args)
    if insn.op == "xor" and zeroed and zeroed[1] == zeroed[2]:
        return "mov $0x0"
    immediate = re.match(r"\$[^,]*", insn.args)
    on_stack = insn.op in ("sub", "add") and insn.args.endswith(",%rsp")
    keep = immediate and not insn.reloc and not on_stack
    return f"{insn.op} {immediate[0]}" if keep else insn.op


def kind(shape_of):
    """The kind of an instruction; calls and rare ones are each their own."""
    return next((name for name, pattern in KINDS if re.match(pattern, shape_of)), shape_of)


def net(old, new):
    """{kind: how many more there are}, without the kinds that are as many."""
    change = Counter()
    for what, count in new.items():
        change[kind(what)] += count
    for what, count in old.items():
        change[kind(what)] -= count
    return {what: count for what, count in change.items() if count}


def without_cold(code, cold):
    """Leaves out blocks that lie out of line and call one of the cold functions."""
    targets = {insn.target for insn in code if insn.op.startswith("j")}
    blocks, at_end = [[]], False
    for insn in code:
        if at_end or insn.addr in targets:
            blocks.append([])
        blocks[-1].append((insn, at_end))
        at_end = re.match(r"j|ret|ud2", insn.op) is not None
    kept, ended = [], False
    for block in blocks:
        calls = {re.sub(r"[-+]0x[0-9a-f]+$", "", insn.reloc)
                 for insn, _ in block if insn.reloc and insn.op == "call"}
        # Out of line: not entered from above.
        if not (ended and calls & cold):
            kept += [insn for insn, _ in block]
        if block:
            ended = block[-1][0].op in ENDS
    return kept


def compare(before, after, sites, cold, path, name):
    """(instructions before, after, nops, what changed)."""
    old, _ = reachable(before, set(), path, name)
    new, nops = reachable(after, sites, path, name)
    new = without_cold(new, cold)
    old, new = (Counter(filter(None, map(shape, code))) for code in (old, new))
    return sum(old.values()), sum(new.values()), nops, net(old, new)


def row(name, was, is_now, nops, change, known):
    """A line of the table, and whether the change is one that costs."""
    change = Counter(change)
    moves = change.pop("moves", 0)
    more = {what: count for what, count in change.items() if count > 0}
    less = {what: count for what, count in change.items() if count < 0}
    words = [f"{count:+} {what}" for what, count in {**more, **less}.items()]
    remark = known if more and known else ""
    text = f"{name:<32}{was:>8}{is_now:>8}{nops:>6}{moves:>+7}  {', '.join([*words, remark])}"
    return text.rstrip(" ,"), bool(more) and not known


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key", required=True, help="the static key")
    parser.add_argument("--cold", action="append", default=[], metavar="FUNCTION",
                        help="what calls it, out of line, does not run")
    parser.add_argument("--known", action="append", default=[], metavar="FUNCTION=WHY",
                        help="differs, and why")
    parser.add_argument("--must", action="append", default=[], metavar="FUNCTION",
                        help="has to be there in both builds")
    parser.add_argument("pairs", nargs="+", metavar="OLD=NEW")
    args = parser.parse_args()

    known = dict(rule.split("=", 1) for rule in args.known)
    costly, patched, names = [], 0, []
    print(f"{'function':<32}{'before':>8}{'after':>8}{'nops':>6}{'moves':>7}  others")
    for pair in args.pairs:
        old_path, new_path = pair.split("=")
        old, new = functions(old_path), functions(new_path)
        sites = key_sites(new_path, args.key)
        for name in sorted(name for name in old.keys() & new.keys() if name[0] != "."):
            names.append(name)
            found = compare(old[name], new[name], sites, set(args.cold), new_path, name)
            text, costs = row(name, *found, known.get(name))
            patched += found[2]
            if found[2] or found[3]:
                print(text)
            if costs:
                costly.append(name)
    print(f"{len(names)} functions compared: {patched} patched-out jumps")
    lost = sorted(set(args.must) - set(names))
    if lost:
        sys.exit(f"free-when-unused: not found in both builds: {', '.join(lost)}")
    if costly:
        sys.exit(f"free-when-unused: more than patched-out jumps in {', '.join(costly)}")
    if not patched:
        sys.exit(f"free-when-unused: nothing is patched by {args.key}: was the series applied?")


if __name__ == "__main__":
    main()
