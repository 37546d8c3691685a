# SPDX-License-Identifier: Apache-2.0
#
# What `tests/gpu.sh --run` does: the checks and measurements that need a GPU, most important first, each part within a
# limit of time. Needs Python alone; PyTorch only for what is measured beside it.
#
#   run.py SCRATCH [--parts REGEX] [--results FOLDER] [--limit SECONDS] [--times N] [--steps N] [--jobs N]
#
# SCRATCH holds the payload of --prepare. In the results (SCRATCH/results) are summary.txt, a line for each check with
# tables of products and kernels; results.json, the same for programs; profile-*.json, what `profile` wrote of each
# GPT-2; failures.txt, the output of what failed. All are written as soon as they are known, so a run that is cut tells
# what it had. Ends with 1 if something failed; what time did not suffice for is skipped, which the summary says.
import argparse
import os
import re
import shutil
import sys
import tarfile

import machine
import speed
from session import LONGEST, NO_TIME, Failed, Session, Skipped

# Of losses, relative; twice that of gradient norms. Not more for later steps: over 20 steps of every fixture two orders of
# summation, PyTorch's f32 and f64 (tests/models/expected), differ by 2e-7 at most in losses and 1e-6 in norms.
TOLERANCE, NARROW_TOLERANCE = 1e-5, 5e-3
SMOKE_STEPS, LONGEST_OF_SMOKE = 3, 10  # and seconds
SMOKE = ("mlp_relu_dynamo18", "gpt2_dynamo20", "resnet_script17_training")
REPEATED = ("mlp_relu_dynamo18", "gpt2_dynamo20")  # the smallest, and one with attention
# Tests of payload/kernels: attention by the type of its numbers, as all_types of the test has them, and all others.
KERNELS = (*((f"attention in {name}", f"attention_test/{number}.*") for number, name in enumerate(("f32", "f64", "bf16", "fp16"))),
           ("all others", "-attention_test/*"))
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")  # of compute-sanitizer
# Ways in which a trainer that failed is run again: what it tells about the fault.
AGAIN = (("--no-epilogues", ["--no-epilogues"], {}), ("--no-cudnn", ["--no-cudnn"], {}),
         ("CUDA_LAUNCH_BLOCKING=1", [], {"CUDA_LAUNCH_BLOCKING": "1"}))


def precision_of(fixture):
    return fixture.rpartition("-")[2] if fixture.endswith(("-bf16", "-fp16")) else "f32"


def train(session, fixture, run, *options, prefix=(), steps=20, environment=None):
    folder = f"fixtures/{fixture}"
    words = [word for line in (session.payload / folder / "data.txt").read_text().split()
             for word in ("--data", line.replace("=", "=data/", 1))]
    shutil.rmtree(session.payload / folder / run, ignore_errors=True)
    longest = LONGEST_OF_SMOKE if steps == SMOKE_STEPS and not prefix else LONGEST
    session.run([*prefix, f"{folder}/trainer", "train", *words, "--steps", steps, "--no-shuffle", "--no-progress",
                 "--no-tensorboard", "--learning-rate", "1e-3", "--weight-decay", "0.01",
                 "--run", f"{folder}/{run}", *options], longest, environment)
    return session.payload / folder / run


def compare_losses(session, fixture, steps, *options, environment=None):
    """Loss and norm of each step beside the CPU's: the worst difference, also where it is too large."""
    tolerance = TOLERANCE if precision_of(fixture) == "f32" else NARROW_TOLERANCE
    got = machine.steps_of(train(session, fixture, "first", *options, steps=steps, environment=environment) / "log.jsonl")
    expected = machine.steps_of(session.payload / "losses" / f"{fixture}.jsonl")[:steps]
    if len(got) != len(expected):
        raise Failed(f"{len(got)} steps, expected {len(expected)}")
    if [row.get("skipped", False) for row in got] != [row.get("skipped", False) for row in expected]:
        raise Failed("other steps were skipped than on the CPU")  # of fp16, whose scale was too large
    if all(row.get("skipped") for row in got):
        raise Failed("every step was skipped")
    worst, fault = 0, ""
    for key, share in (("loss", 1), ("gradient_norm", 0.5)):
        for found, wanted in zip(got, expected):
            if found.get("skipped"):
                continue
            difference = abs(found[key] - wanted[key]) / abs(wanted[key]) * share
            if not difference <= tolerance and not fault:
                fault = f"step {found['step']}: {key} {found[key]}, on the CPU {wanted[key]}"
            worst = max(worst, difference) if difference == difference else float("inf")
    if fault:
        raise Failed(f"{fault}; the worst difference is {worst:.1e}, at most {tolerance:g} is right")
    return f"{worst:.1e}"


def check_losses(session, fixture, steps):
    """And where that fails, other ways to run the same trainer."""
    if session.check(f"{fixture}: losses of the CPU, {steps} steps", lambda: compare_losses(session, fixture, steps)):
        return True
    if session.left() > 0:
        for name, options, environment in AGAIN:
            session.check(f"{fixture}: the same with {name}",
                          lambda: compare_losses(session, fixture, steps, *options, environment=environment))
    return False


def same_bits(session, fixture, run):
    if machine.bits_of(train(session, fixture, run)) != machine.bits_of(
            session.payload / "fixtures" / fixture / "first"):
        raise Failed("other parameters, optimizer state or losses")
    shutil.rmtree(session.payload / "fixtures" / fixture / run)


def check_fixture(session, fixture):
    if check_losses(session, fixture, 20):
        session.check(f"{fixture}: the same bits again", lambda: same_bits(session, fixture, "again"))


def repeat(session, fixture):
    train(session, fixture, "first")
    times = session.options.times
    outcomes = []

    def once(number):
        try:
            same_bits(session, fixture, f"run-{number}")
            outcomes.append(True)
        except Skipped:
            pass

    session.together(once, range(times))
    if len(outcomes) < times:
        raise Skipped(f"{NO_TIME} after {len(outcomes)} times")


def sanitize(session, program, fixture, tool):
    try:
        train(session, fixture, tool, "--no-checkpoints", prefix=(program, "--tool", tool, "--error-exitcode", "9"), steps=3)
    except Failed as problem:
        if "Device not supported" in str(problem):
            raise Skipped("compute-sanitizer does not support this device") from None
        raise


def check_smoke(session, fixtures):
    of_smoke = [name for name in fixtures if name.removesuffix("-bf16") in SMOKE]
    for fixture in sorted(of_smoke, key=lambda name: SMOKE.index(name.removesuffix("-bf16"))):
        check_losses(session, fixture, SMOKE_STEPS)


def check_numbers(session, fixtures):
    """First those of 16 bits, whose instructions nothing but a GPU has."""
    session.together(lambda fixture: check_fixture(session, fixture),
                     sorted(fixtures, key=lambda name: (precision_of(name) == "f32", name)))


def check_repeated(session, fixtures):
    for fixture in REPEATED:
        if fixture in fixtures:
            session.check(f"{fixture}: the same bits {session.options.times} times", lambda: repeat(session, fixture))


def check_kernels(session, _):
    """The runtime's kernels alone, beside plain loops in f64."""
    def work(tests):
        output = session.run([session.payload / "kernels", f"--gtest_filter={tests}", "--gtest_brief=1"])
        passed = re.search(r"PASSED.*?(\d+) tests?", output)[1]
        if passed == "0" and "GTEST_TOTAL_SHARDS" not in os.environ:
            raise Failed(f"no test is called {tests}\n{output}")
        return f"{passed} tests"

    if (session.payload / "kernels").exists():
        session.together(lambda pair: session.check(f"kernels alone: {pair[0]}", lambda: work(pair[1])), KERNELS)


def check_sanitizer(session, fixtures):
    program = machine.program("compute-sanitizer")
    if not program:
        return session.say("skipped compute-sanitizer: neither on PATH nor in CUDA's folder")
    session.together(lambda pair: session.check("{}: compute-sanitizer {}".format(*pair),
                                                lambda: sanitize(session, program, *pair)),
                     [(fixture, tool) for fixture in REPEATED if fixture in fixtures for tool in TOOLS])


LIMIT = 300  # seconds

# Name, seconds of these that it may take, of a longer time in proportion, and what it does: the most important first.
PARTS = (
    ("smoke", 30, check_smoke),
    ("profile", 60, lambda session, _: speed.measure(session, speed.FIRST)),
    ("kernels", 60, check_kernels),
    ("speed", 150, lambda session, _: speed.measure(session, speed.OTHERS)),
    ("numbers", 150, check_numbers),
    ("torch", 150, lambda session, _: speed.compare_torch(session)),
    ("repeats", 60, check_repeated),
    ("sanitizer", 120, check_sanitizer),
    ("counters", 60, lambda session, _: speed.count(session)),
)


def run_parts(session):
    fixtures = sorted(path.name for path in (session.payload / "fixtures").iterdir())
    for name, seconds, work in PARTS:
        if re.search(session.options.parts, name):
            with session.part(name, seconds * max(1, session.options.limit / LIMIT)):
                work(session, fixtures)


def main():
    parser = argparse.ArgumentParser(prog="tests/gpu.sh --run")
    parser.add_argument("scratch")
    parser.add_argument("--results")
    parser.add_argument("--parts", default=".", help=f"a regular expression: {', '.join(part[0] for part in PARTS)} (all)")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of everything ({LIMIT})")
    parser.add_argument("--times", type=int, default=100, help="that two fixtures run again (100)")
    parser.add_argument("--steps", type=int, default=30, help="of GPT-2 (30)")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)),
                        help="fixtures at a time")
    session = Session(parser.parse_args())
    shutil.rmtree(session.scratch / "work", ignore_errors=True)
    with tarfile.open(session.scratch / "payload.tar.xz") as file:
        file.extractall(session.scratch / "work", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    try:
        session.say(machine.description(session))
        run_parts(session)
    finally:
        shutil.rmtree(session.scratch / "work")
        session.say("{ok} passed, {FAILED} failed, {skipped} skipped".format(**session.counts))
        session.write()
    sys.exit(1 if session.counts["FAILED"] else 0)


if __name__ == "__main__":
    main()
