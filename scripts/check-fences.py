#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shows from the machine code of a kernel that its non-temporal copies are such, and fenced.

A missing fence cannot be seen in the bytes: an x86 CPU shows its own stores to
itself in order, and to others nearly always. The code shows it: a function
that copies non-temporally without a fence says so in its name (..._unfenced, or
raw_copy_from_user_nontemporal as x86 has it); on every path from a call of one to
a return, its caller executes an sfence. And each of those that the sends use
stores with movnti or movdir64b, itself or in what it calls.

usage: scripts/check-fences.py KERNEL       an ELF file: linux or vmlinux
"""

import re
import subprocess
import sys

UNFENCED = re.compile(r"_unfenced$|^raw_copy_from_user_nontemporal$")
# What the sends of a hinted iterator copy with, and through which function.
COPIES = ("raw_copy_from_user_nontemporal", "memcpy_nontemporal_unfenced")
CALLER = "copy_from_iter_nontemporal"
NONTEMPORAL = ("movnti", "movdir64b")
FENCES = {"sfence", "mfence"}
READ_ONLY = ("cmp", "test", "push", "call", "j", "nop", "ret")
# What a called function may overwrite.
SCRATCH = {"%rax", "%rcx", "%rdx", "%rsi", "%rdi", "%r8", "%r9", "%r10", "%r11"}

HEADER = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*([^#]*)")
TARGET = re.compile(r"^([0-9a-f]+) <([^>+]+)(\+0x[0-9a-f]+)?>")
LOAD = re.compile(r"^\$0x([0-9a-f]+),(%r\w+)$")
COPY = re.compile(r"^(%r\w+),(%r\w+)$")


def base(name):
    """The name without what the compiler added to it: .isra.0, .part.0, .constprop.0."""
    return name.split(".")[0]


def is_unfenced(name):
    return bool(UNFENCED.search(base(name)))


def lines_of(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(f"check-fences: {command[0]} cannot read {command[-1]}")
    return result.stdout.splitlines()


def functions(path):
    """Each function's name with its instructions: (address, mnemonic, operands)."""
    name, code = None, []
    for line in lines_of("objdump", "-d", "--no-show-raw-insn", path):
        header = HEADER.match(line)
        if header:
            if name:
                yield name, code
            name, code = header.group(2), []
            continue
        instruction = INSTRUCTION.match(line)
        if instruction:
            address, mnemonic, operands = instruction.groups()
            code.append((int(address, 16), mnemonic, operands.strip()))
    if name:
        yield name, code


class Function:
    """Follows every path through one function."""

    def __init__(self, code, unfenced):
        self.code = code
        self.at = {line[0]: index for index, line in enumerate(code)}
        self.unfenced = unfenced
        self.calls = 0

    def calls_unfenced(self, operands, registers):
        if operands.startswith("*"):
            return operands[1:] in registers
        target = TARGET.match(operands)
        return bool(target) and int(target.group(1), 16) in self.unfenced

    def after(self, index, registers, dirty):
        """The state behind an instruction: registers that hold such functions, a debt."""
        _, mnemonic, operands = self.code[index]
        if mnemonic in FENCES:
            return registers, False
        if mnemonic.startswith("call"):
            if self.calls_unfenced(operands, registers):
                self.calls += 1
                dirty = True
            return registers - SCRATCH, dirty
        load, copy = LOAD.match(operands), COPY.match(operands)
        if mnemonic.startswith("mov") and load and int(load.group(1), 16) in self.unfenced:
            return registers | {load.group(2)}, dirty
        if mnemonic.startswith("mov") and copy and copy.group(1) in registers:
            return registers | {copy.group(2)}, dirty
        if not mnemonic.startswith(READ_ONLY):
            registers = registers - {operands.rsplit(",", 1)[-1]}
        return registers, dirty

    def successors(self, index):
        """Where the code goes after an instruction, and whether it may leave the function."""
        _, mnemonic, operands = self.code[index]
        if mnemonic.startswith(("ret", "ud2", "hlt")):
            return [], mnemonic.startswith("ret")
        follows = [index + 1] if index + 1 < len(self.code) else []
        if not mnemonic.startswith("j"):
            return follows, False
        target = TARGET.match(operands)
        where = self.at.get(int(target.group(1), 16)) if target else None
        if mnemonic.startswith("jmp"):
            follows = []
        # Out of the function, or through a register: another function's code goes on.
        return (follows, True) if where is None else (follows + [where], False)

    def leak(self):
        """The address at which the function is left with stores unfenced, or None."""
        seen, todo = set(), [(0, frozenset(), False)]
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            index = state[0]
            address, mnemonic, operands = self.code[index]
            registers, dirty = self.after(*state)
            follows, left = self.successors(index)
            if left and mnemonic.startswith("jmp") and self.calls_unfenced(operands, registers):
                self.calls += 1
                return address
            if left and dirty:
                return address
            todo += [(place, registers, dirty) for place in follows]
        return None


def unfenced_addresses(path):
    symbols = (line.split() for line in lines_of("nm", path))
    return {int(s[0], 16) for s in symbols if len(s) == 3 and is_unfenced(s[2])}


def note_stores(stores, name, code):
    """By its address: whether a function stores non-temporally, and what it names."""
    found, named = False, set()
    for _, mnemonic, operands in code:
        found |= mnemonic.startswith(NONTEMPORAL)
        load, target = LOAD.match(operands), TARGET.match(operands)
        if load or (target and not target.group(3)):
            named.add(int((load or target).group(1), 16))
    stores[code[0][0]] = (base(name), found, named)


def is_nontemporal(stores, address, seen):
    """Itself, or in a part of the copy, nt_..., that it calls."""
    if address not in stores or address in seen:
        return False
    name, found, named = stores[address]
    seen.add(address)
    if name not in COPIES and not name.startswith("nt_"):
        return False
    return found or any(is_nontemporal(stores, callee, seen) for callee in named)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    path = sys.argv[1]
    unfenced = unfenced_addresses(path)
    words = {f"{address:x}" for address in unfenced}
    checked, bad, stores = [], [], {}
    for name, code in functions(path):
        if code:
            note_stores(stores, name, code)
        if is_unfenced(name):
            continue
        # Most functions have nothing to do with it, and need not be followed.
        if not any(word in line[2] for line in code for word in words):
            continue
        function = Function(code, unfenced)
        address = function.leak()
        if address is not None:
            bad.append(f"{name}: left at {address:#x} with stores that no sfence follows")
        if function.calls:
            checked.append(name)
    good = {row[0] for address, row in stores.items() if is_nontemporal(stores, address, set())}
    bad += [f"{name}: copies with no non-temporal store" for name in COPIES if name not in good]
    if CALLER not in {base(name) for name in checked}:
        bad.append(f"{CALLER}: calls none of {', '.join(COPIES)}")
    for line in bad:
        print(f"check-fences: {line}", file=sys.stderr)
    if not checked:
        sys.exit(f"check-fences: nothing in {path} copies non-temporally")
    if bad:
        sys.exit(1)
    print(f"check-fences: {len(checked)} callers fence: {', '.join(sorted(checked))}")


main()
