#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What nvcc made of kernels: registers, shared memory, the stack, instructions of a loop and products of tensor cores in
# it, how many of the accesses to global memory have 128 bits, accesses to local memory (spills are such), and atomics.
#
#   sass.py FILE [REGEX] [--arch sm_90] [--loops]
#
# FILE is a cubin, an object or a program; REGEX chooses kernels by their names. cuobjdump and nvdisasm are needed, in
# CUDA's folder or on the path. For each kernel, and each architecture, there is a line for the whole of it and one for
# its hot loop: of the loops with products, and with none of them inside, the one with most, then fewest instructions.
# Where there are no products, accesses to global memory take their place. --loops shows each loop. Instructions are
# those in the code: a loop inside counts once.
import argparse
import os
import re
import shutil
import subprocess
import sys

INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[0-9T]+)\s+)?([A-Z0-9_.]+)\s*(.*?);")
HEADER = f"{'':10}{'registers':>10}{'shared':>8}{'stack':>7}{'instructions':>14}{'HMMA':>6}{'global':>8}{'of 128':>8}" \
    f"{'local':>8}{'atomics':>9}"


def tool():
    found = shutil.which("cuobjdump", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
    return found or sys.exit("sass.py: no cuobjdump on PATH or in /usr/local/cuda/bin")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short(name):
    """A kernel's name without namespaces and parameters."""
    if shutil.which("c++filt"):
        name = output_of("c++filt", name).strip()
    name = name.replace("(anonymous namespace)::", "")
    return re.sub(r"^(void )?(\w+::)*", "", name.split("(")[0])


def read_resources(text):
    """{(architecture, kernel): {"REG": number, ...}}"""
    found, arch, kernel = {}, "", ""
    for line in text.splitlines():
        if match := re.search(r"arch = (sm_\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            kernel = match[1]
        elif "REG:" in line:
            found[arch, kernel] = {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", line)}
    return found


def read_code(text):
    """{(architecture, kernel): [(address, predicate, operation, operands)]}"""
    found, arch, code = {}, "", []
    for line in text.splitlines():
        if match := re.search(r"code for (sm_\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function : (\S+)", line):
            code = found.setdefault((arch, match[1]), [])
        elif match := INSTRUCTION.match(line):
            code.append((int(match[1], 16), match[2], match[3], match[4]))
    return found


def successors(code):
    """Of each instruction, by its place: those that may come next. A call comes back."""
    places = {instruction[0]: place for place, instruction in enumerate(code)}
    after = []
    for place, (_, predicate, operation, operands) in enumerate(code):
        name = operation.split(".")[0]
        ends = name in ("EXIT", "RET", "BRX", "JMX", "BRA", "JMP") and predicate in (None, "PT", "UPT")
        if name in ("BRA", "JMP") and re.search(r"\b[!U]*P\d", operands):
            ends = False  # a uniform branch has its predicate among the operands
        next_ones = [] if ends or place + 1 == len(code) else [place + 1]
        target = re.search(r"0x([0-9a-f]+)\s*$", operands)
        if name in ("BRA", "JMP") and target and int(target[1], 16) in places:
            next_ones.append(places[int(target[1], 16)])
        after.append(next_ones)
    return after


def dominators(after):
    """Of each reachable instruction the one that every way to it passes last (Cooper, Harvey, Kennedy, 2001)."""
    order, stack, seen = [], [(0, iter(after[0]))], {0}
    while stack:
        place, rest = stack[-1]
        step = next((one for one in rest if one not in seen), None)
        if step is None:
            order.append(stack.pop()[0])
        else:
            seen.add(step)
            stack.append((step, iter(after[step])))
    number = {place: index for index, place in enumerate(order)}
    before = {place: [] for place in order}
    for place in order:
        for one in after[place]:
            before[one].append(place)
    parent, changed = {0: 0}, True
    while changed:
        changed = False
        for place in reversed(order[:-1]):
            best = None
            for one in (one for one in before[place] if one in parent):
                while best is not None and best != one:
                    if number[best] < number[one]:
                        best = parent[best]
                    else:
                        one = parent[one]
                best = one
            if parent.get(place) != best:
                parent[place], changed = best, True
    return parent, before


def loops_of(code):
    """Sets of instructions: natural loops, those with the same first one together."""
    parent, before = dominators(successors(code))
    loops = {}
    for head in before:
        for tail in before[head]:
            place = tail
            while place not in (0, head):
                place = parent[place]
            if place != head:
                continue
            inside, work = loops.setdefault(head, {head}), [tail]
            while work:
                one = work.pop()
                if one not in inside:
                    inside.add(one)
                    work.extend(before[one])
    return list(loops.values())


def count(instructions):
    names = [operation for _, _, operation, _ in instructions if not operation.startswith("NOP")]
    accesses = [name for name in names if re.match(r"(LDG|STG|LDGSTS)\b", name)]
    return {
        "instructions": len(names),
        "HMMA": sum(name.startswith(("HMMA", "IMMA", "DMMA", "QMMA", "HGMMA")) for name in names),
        "global": len(accesses),
        "wide": sum(".128" in name for name in accesses),
        "local": sum(re.match(r"(LDL|STL)\b", name) is not None for name in names),
        "atomics": sum(re.match(r"(ATOM|ATOMG|RED|REDG)\b", name) is not None for name in names),
    }


def row(title, counts, resources=None):
    kept = "".join(f"{resources.get(key, '') if resources else '':>{width}}"
                   for key, width in (("REG", 10), ("SHARED", 8), ("STACK", 7)))
    print(f"{title:10}{kept}{counts['instructions']:>14}{counts['HMMA']:>6}{counts['global']:>8}{counts['wide']:>8}"
          f"{counts['local']:>8}{counts['atomics']:>9}")


def report(code, resources, every_loop):
    row("  kernel", count(code), resources)
    loops = [(loop, count(code[place] for place in loop)) for loop in loops_of(code)]
    key = "HMMA" if any(counts["HMMA"] for _, counts in loops) else "global"
    busy = [(loop, counts) for loop, counts in loops if counts[key] > 0]
    inner = [counts for loop, counts in busy if not any(other < loop for other, _ in busy)]
    chosen = [counts for _, counts in loops] if every_loop else inner
    chosen.sort(key=lambda counts: (-counts[key], counts["instructions"]))
    for counts in chosen if every_loop else chosen[:1]:
        row("  loop", counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("regex", nargs="?", default="")
    parser.add_argument("--arch", default="")
    parser.add_argument("--loops", action="store_true")
    options = parser.parse_args()
    resources = read_resources(output_of(tool(), "-res-usage", options.file))
    code = read_code(output_of(tool(), "-sass", options.file))
    print(HEADER)
    for (arch, kernel), instructions in sorted(code.items()):
        name = short(kernel)
        if not instructions or not re.search(options.regex, name) or options.arch not in ("", arch):
            continue
        print(f"{name} ({arch})")
        # A cubin's resources do not say the architecture.
        report(instructions, resources.get((arch, kernel), resources.get(("", kernel))), options.loops)


main()
