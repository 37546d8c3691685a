# SPDX-License-Identifier: Apache-2.0
#
# What `tests/gpu.sh --run` does: the checks and measurements that need a GPU, most important first, within a limit of
# time. Needs Python alone; PyTorch only for what is measured beside it.
#
#   run.py SCRATCH [--results FOLDER] [--limit SECONDS] [--times N] [--steps N] [--jobs N]
#
# SCRATCH holds the payload of --prepare. In the results (SCRATCH/results) are summary.txt, a line for each check with
# tables of products and kernels; results.json, the same for programs; profile-*.json, what `profile` wrote of each
# GPT-2; failures.txt, the output of what failed. Ends with 1 if something failed; what time did not suffice for is
# skipped, which the summary says.
import argparse
import json
import os
import shutil
import sys
import tarfile
import time

import machine
import speed
from session import NO_TIME, Failed, Session, Skipped

TOLERANCE = 1e-5  # of losses, relative; twice that of gradient norms
REPEATED = ("mlp_relu_dynamo18", "gpt2_dynamo20")  # the smallest, and one with attention
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")  # of compute-sanitizer


def train(session, fixture, run, *options, prefix=(), steps=20):
    folder = f"fixtures/{fixture}"
    words = [word for line in (session.payload / folder / "data.txt").read_text().split()
             for word in ("--data", line.replace("=", "=data/", 1))]
    shutil.rmtree(session.payload / folder / run, ignore_errors=True)
    session.run([*prefix, f"{folder}/trainer", "train", *words, "--steps", steps, "--no-shuffle", "--no-progress",
                 "--no-tensorboard", "--learning-rate", "1e-3", "--weight-decay", "0.01",
                 "--run", f"{folder}/{run}", *options])
    return session.payload / folder / run


def compare_losses(session, fixture):
    got = machine.steps_of(train(session, fixture, "first") / "log.jsonl")
    expected = machine.steps_of(session.payload / "losses" / f"{fixture}.jsonl")
    if len(got) != len(expected):
        raise Failed(f"{len(got)} steps, expected {len(expected)}")
    worst = 0
    for key, share in (("loss", 1), ("gradient_norm", 0.5)):
        for found, wanted in zip(got, expected):
            difference = abs(found[key] - wanted[key]) / abs(wanted[key]) * share
            if not difference <= TOLERANCE:
                raise Failed(f"step {found['step']}: {key} {found[key]}, on the CPU {wanted[key]}")
            worst = max(worst, difference)
    return f"{worst:.1e}"


def same_bits(session, fixture, run):
    if machine.bits_of(train(session, fixture, run)) != machine.bits_of(
            session.payload / "fixtures" / fixture / "first"):
        raise Failed("other parameters, optimizer state or losses")
    shutil.rmtree(session.payload / "fixtures" / fixture / run)


def check_fixture(session, fixture):
    if session.check(f"{fixture}: losses of the CPU target within {TOLERANCE:g}",
                     lambda: compare_losses(session, fixture)):
        session.check(f"{fixture}: the same bits again", lambda: same_bits(session, fixture, "again"))


def repeat(session, fixture):
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


def sanitize(session, fixture, tool):
    try:
        train(session, fixture, tool, "--no-checkpoints", prefix=("compute-sanitizer", "--tool", tool,
                                                                "--error-exitcode", "9"), steps=3)
    except Failed as problem:
        if "Device not supported" in str(problem):
            raise Skipped("compute-sanitizer does not support this device") from None
        raise


def check_repeated(session, fixtures):
    for fixture in fixtures:
        session.check(f"{fixture}: the same bits {session.options.times} times", lambda: repeat(session, fixture))


def check_sanitizer(session, fixtures):
    if not shutil.which("compute-sanitizer"):
        return session.say("skipped compute-sanitizer: not on PATH")
    session.together(lambda pair: session.check("{}: compute-sanitizer {}".format(*pair),
                                                lambda: sanitize(session, *pair)),
                     [(fixture, tool) for fixture in fixtures for tool in TOOLS])


def run_parts(session):
    fixtures = sorted(path.name for path in (session.payload / "fixtures").iterdir())
    repeated = [fixture for fixture in REPEATED if fixture in fixtures]
    parts = [lambda: session.together(lambda fixture: check_fixture(session, fixture), fixtures),
             lambda: speed.measure(session),
             lambda: speed.compare_torch(session),
             lambda: check_repeated(session, repeated),
             lambda: check_sanitizer(session, repeated)]
    for part in parts:
        begin = time.monotonic()
        part()
        session.say(f"-- {time.monotonic() - begin:.0f} s, {session.left():.0f} s are left")


def main():
    parser = argparse.ArgumentParser(prog="tests/gpu.sh --run")
    parser.add_argument("scratch")
    parser.add_argument("--results")
    parser.add_argument("--limit", type=float, default=480, help="seconds of everything (480)")
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
        (session.results / "results.json").write_text(json.dumps(session.document, indent=1) + "\n")
    sys.exit(1 if session.counts["FAILED"] else 0)


if __name__ == "__main__":
    main()
