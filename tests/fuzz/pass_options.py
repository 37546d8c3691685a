# SPDX-License-Identifier: Apache-2.0
"""Options of passes at random.

    pass_options.py TRAINC_OPT MODULE SECONDS SEED

Runs the passes of trainc-opt --help on the module, each time with other values of their options, some that make sense
and many that do not. Ends with 1 where trainc-opt ends by a signal or with a status other than 0 or 1, takes a minute,
fails without a word or prints the module behind an error.
"""
import random
import re
import subprocess
import sys
import time

PIPELINE = ["canonicalize", "cse", "raise-patterns", "raise-attention", "set-precision", "derive-evaluate", "differentiate",
            "form-buckets", "attach-optimizer", "decompose", "chunk-rows", "form-products", "plan-recompute",
            "split-pipeline", "fuse", "lower-to-kernels", "schedule-kernels", "order-operations", "plan-memory"]
OPTIONAL = ["canonicalize", "cse", "raise-patterns", "raise-attention", "set-precision", "chunk-rows", "plan-recompute", "split-pipeline"]

GOOD = {
    "to": ["f32", "f64"], "only": ["false", "false", "false", "0", "true", "1"], "epilogues": ["true", "false", ""],
    "kind": ["adamw", "sgd", "lamb", "adafactor", "muon", "lion"], "target": ["cpu", "cuda"],
    "level": ["none", "light", "full"], "budget": ["0", "1", "3000", "1GiB", "4 KiB"], "limit": ["0", "64", "100", "1KiB", "1"],
    "pattern": ["", ".*", "l1.*", "l[12].act|loss", "nothing"], "stages": ["1", "2", "3", "4", "4096"],
    "chunks-per-stage": ["1", "2", "3"], "cuts": ["", "l1.act", "l1.act,l2.act", "l2.act,l1.act", "loss", "nothing"],
    "schedule": ["gpipe", "1f1b", "interleaved", "zb-h1"], "micro-batches": ["1", "2", "4", "6", "64"],
    "memory-limit": ["0", "1", "2000", "1MiB"],
    # Of canonicalize, which is MLIR's.
    "top-down": ["true", "false"], "test-convergence": ["false"], "region-simplify": ["normal", "aggressive", "disabled"],
    "max-iterations": ["1", "10", "-1"], "max-num-rewrites": ["100", "-1"],
    "enable-patterns": ["a,b"], "disable-patterns": ["a,b"],
}
NUMBERS = ["0", "-0", "+1", "1", "2", "-1", "-4", "007", "1e3", "1.5", "0x10", "0b1", "NaN", "inf", "-inf", "1e400", "1,2", " 3",
           "127", "128", "255", "256", "32767", "65535", "65536", "65537", "2147483647", "2147483648", "4294967295",
           "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
           "18446744073709551615", "18446744073709551616", "9" * 400, "1" + "0" * 60, "1TiB", "9999999999TiB", "-1GiB", "GiB"]
WORDS = ["", "foo", "none", "true", "false", "cpu", "cuda", "adamw", "f32", "1f1b", "default", "null", "builtin.module"]
ODD = ["(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", "^", "$", "'", '"', "`", ",", "=", " ", "\t", "\n", "\r", "\x1b",
       "\x7f", "%", "#", "<", ">", "/", "%s", "%n", "ä", "\u202e", "\U0001f600", "\udc80", "\udcff", "\\1", "{1,", "{255}", "[a-", "[[:x:]]"]


def text(draw):
    kind = draw.randrange(5)
    if kind == 0:
        return draw.choice(NUMBERS)
    if kind == 1:
        return draw.choice(WORDS)
    if kind == 2:
        return "".join(draw.choice(ODD + WORDS + NUMBERS[:8]) for _ in range(draw.randint(1, 12)))
    if kind == 3:
        return draw.choice(ODD + ["a", "0", "9", "-"]) * draw.choice([1, 2, 100, 5000, 50000])
    return str(draw.randint(-2**draw.choice([3, 16, 31, 33, 63, 65]), 2**draw.choice([3, 16, 31, 33, 63, 65])))


def options_of(program):
    """By pass, as --help lists them."""
    found, current = {}, None
    for line in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout.splitlines():
        if match := re.match(r" {6}--([a-z-]+) +-   ", line):
            current = found.setdefault(match[1], [])
        elif current is not None and (match := re.match(r" {8}--([a-z-]+)(=<.*>)? ", line)):
            current.append(match[1])
        elif line.startswith("  --"):  # of the tool itself
            current = None
    return {name: found[name] for name in PIPELINE} | {name: options for name, options in found.items() if options}


def assignment(draw, option, wrong):
    if draw.random() >= wrong and option in GOOD:
        return option + "=" + draw.choice(GOOD[option])
    if draw.random() < 0.05:
        return draw.choice([option, option + "x=1", "=" + text(draw), text(draw)])
    return option + "=" + text(draw)


def command(draw, options):
    wrong = draw.choice([0, 0, 0.1, 0.5, 1])
    share = draw.choice([0.2, 0.8])
    passes = [one for one in PIPELINE if one not in OPTIONAL or draw.random() < 0.9]
    given = {one: " ".join(assignment(draw, option, wrong) for option in options[one] if draw.random() < share)
             for one in passes}
    if draw.random() < 0.5:
        return ["--" + one + ("=" + given[one] if given[one] else "") for one in passes]
    return ["--pass-pipeline=builtin.module(" + ",".join(one + "{" + given[one] + "}" for one in passes) + ")"]


def fault_of(run):
    said = run.stderr.decode(errors="replace")
    if run.returncode not in (0, 1):
        return f"exit status {run.returncode}"
    if run.returncode == 1 and not said.strip():
        return "failed without a word"
    if re.search(r'see current operation: ("builtin\.module"|module )', said):
        return "the module is printed behind an error"
    found = re.search(r"AddressSanitizer|runtime error:", said)
    return found and found[0]


def main():
    program, module, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    options = options_of(program)
    count = sum(len(each) for each in options.values())
    if missing := [name for name in options if name not in PIPELINE]:
        sys.exit(f"pass_options.py: passes with options that PIPELINE lacks: {', '.join(missing)}")
    if count < 16:
        sys.exit(f"pass_options.py: --help lists {count} options, which are too few")
    end, runs, good = time.monotonic() + seconds, 0, 0
    draw = random.Random(seed)
    while time.monotonic() < end or runs < 50:
        words = [word.encode("utf-8", "surrogateescape") for word in command(draw, options)]
        words = [word.replace(b"\0", b"")[:120000] for word in words]  # what a command line may hold
        try:
            run = subprocess.run([program, module, *words], capture_output=True, timeout=60, check=False)
            fault = fault_of(run)
        except subprocess.TimeoutExpired as expired:
            fault, run = "no end after a minute", expired
        if fault:
            sys.stderr.write((run.stderr or b"").decode(errors="replace")[-4000:] + "\n")
            with open("command.txt", "wb") as file:
                file.write(b"\n".join([program.encode(), module.encode(), *words]))
            sys.exit(f"pass_options.py: run {runs} of seed {seed}: {fault}; its words are lines of command.txt")
        runs += 1
        good += run.returncode == 0
    print(f"{count} options of {sum(bool(each) for each in options.values())} passes, seed {seed}: {runs} runs, of which {good} were good")
    if not good:
        sys.exit("pass_options.py: no run was good")


main()
