# SPDX-License-Identifier: Apache-2.0
#
# Whether a file of `trainer profile --trace`, or of `train --profile-steps`, is what it should be.
#
#   trace.py TRACE TRAINER_FOLDER --ranks N --steps N [--first STEP] [--messages MICRO_BATCHES] [--exchanges] [--batches N]
#            [--checkpoints] [--shares] [--profile FILE]
import argparse
import collections
import json
import pathlib
import re

parser = argparse.ArgumentParser()
parser.add_argument("trace")
parser.add_argument("folder")
parser.add_argument("--ranks", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--first", type=int, default=3)
parser.add_argument("--messages", type=int, default=0)
parser.add_argument("--exchanges", action="store_true")
parser.add_argument("--batches", type=int, default=0, help="that a rank reads in all steps")
parser.add_argument("--checkpoints", action="store_true")
parser.add_argument("--shares", action="store_true", help="of a large product, in f32 on a CPU")
parser.add_argument("--profile")
parser.add_argument("--numbers", action="store_true", help="the trainer had no plan that it could read")
options = parser.parse_args()

shares = []  # of the rate of a large product
events = json.load(open(options.trace))["traceEvents"]
plan = json.loads((pathlib.Path(options.folder) / "plan/plan.json").read_text())
known = {entry["entry"]: [step["computes"] for step in entry["steps"]] for entry in plan["entries"]}
counts = {name: len(steps) for name, steps in known.items()}


def ns(microseconds):
    assert abs(microseconds * 1000 - round(microseconds * 1000)) < 1e-3 * max(1, microseconds * 1e-6), microseconds
    return round(microseconds * 1000)


def slices(rank, track, kind=None):
    return [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (rank, track) and kind in (None, e["cat"])]


def end(event):
    return ns(event["ts"]) + ns(event["dur"])


def check_nesting(track):
    """As Perfetto reads them: in their order, each within the one that is open; by category."""
    depths = {"training step": 0, "action": 1, "plan": 2}
    open_ones, inside = [], collections.defaultdict(int)
    for event in track:
        while open_ones and end(open_ones[-1]) <= ns(event["ts"]):
            open_ones.pop()
        # A slice without length is closed by the next one at its time.
        assert len(open_ones) == depths[event["cat"]] or ns(event["dur"]) == 0, (event, open_ones)
        if open_ones:
            assert end(event) <= end(open_ones[-1]), (event, open_ones[-1])
            inside[id(open_ones[-1])] += ns(event["dur"])
        open_ones.append(event)
    for event in track:
        if event["cat"] == "training step":  # actions and the rest fill it
            assert abs(inside[id(event)] - ns(event["dur"])) <= 0.02 * ns(event["dur"]), event


def check_steps(rank):
    seen = collections.Counter((e["args"]["entry"], e["args"]["number"]) for e in slices(rank, 0, "plan"))
    actions = collections.Counter(e["name"] for e in slices(rank, 0, "action"))
    for entry in {entry for entry, _ in seen}:
        times = {seen[entry, number] for number in range(counts[entry])}
        role = next((role for role in ("forward_backward", "forward", "backward", "update") if entry.startswith(role)), None)
        expected = actions["backward" if role == "forward_backward" else role] if role else None
        assert times == {expected} or role is None, (entry, times, expected)
        assert max(number for name, number in seen if name == entry) < counts[entry]
    assert any(entry.startswith("update") for entry, _ in seen)


def check_details(rank):
    for event in slices(rank, 0, "plan"):
        of = event["args"]
        assert of["nodes"] == ", ".join(known[of["entry"]][of["number"]]), event
        name = re.sub("^(gradient of |recomputed )*", "", known[of["entry"]][of["number"]][0])
        assert of.get("module", "") == name.rpartition(".")[0], event
        if "share_of_product" in of:
            # Both rates were measured, maybe beside other work: a wrong unit would be a thousand.
            assert 0 <= of["share_of_product"] < 100, event
            shares.append(of["share_of_product"] / of["gflops_per_second"] if of["flops"] else 0)
        assert ns(event["dur"]) == 0 or (of["flops"] >= 0 and of["bytes"] >= 0), event
    memory = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["pid"] == rank]
    assert memory and max(memory) > 0 and all(a != b for a, b in zip(memory, memory[1:]))


def check_apart(track):
    """Slices one after the other, with bytes."""
    for before, after in zip(track, track[1:]):
        assert end(before) <= ns(after["ts"]), (before, after)
    for event in track:
        assert ns(event["ts"]) >= 0 and ns(event["dur"]) >= 0 and event["args"]["bytes"] > 0, event


def check_batches(rank):
    reads = slices(rank, 2)
    check_apart(reads)
    assert {e["name"] for e in reads} <= {"read batch"}, reads
    assert options.batches - 1 <= len(reads) <= options.batches, reads  # the first may be there before the trace begins
    assert all(0 <= e["args"]["waiting_seconds"] < 1 for e in reads), reads
    numbers = [e["args"]["batch"] for e in reads]
    assert len(numbers) == len(set(numbers)), numbers


def check_checkpoints(rank):
    work = slices(rank, 3)
    check_apart(work)
    assert all(e["name"].endswith(" checkpoint") for e in work), work
    assert bool(work) == options.checkpoints, work


def check_messages():
    flows = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            flows[event["id"]].append(event)
            around = [e for e in slices(event["pid"], 0, "action") if ns(e["ts"]) <= ns(event["ts"]) < end(e)]
            word = {"s": "send", "f": "receive"}[event["ph"]]
            assert [e["name"] for e in around] == [f"{word} {event['name']}"], (event, around)
    replicas = options.ranks // 2
    assert len(flows) == 2 * replicas * options.steps * options.messages, len(flows)
    for flow in flows.values():
        leaves, arrives = sorted(flow, key=lambda e: "sf".index(e["ph"]))
        assert (leaves["ph"], arrives["ph"], arrives["bp"]) == ("s", "f", "e"), flow
        assert (leaves["cat"], leaves["name"]) == (arrives["cat"], arrives["name"]), flow
        assert abs(leaves["pid"] - arrives["pid"]) == 1 and leaves["pid"] // 2 == arrives["pid"] // 2, flow
        assert ns(leaves["ts"]) <= ns(arrives["ts"]), flow


names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
stages = 2 if options.messages else 1
assert names == [f"rank {r} (stage {r % stages}, replica {r // stages})" for r in range(options.ranks)], names
for rank in range(options.ranks):
    track = slices(rank, 0)
    check_nesting(track)
    steps = slices(rank, 0, "training step")
    assert [e["name"] for e in steps] == [f"step {options.first + i}" for i in range(options.steps)], steps
    check_steps(rank)
    if not options.numbers:
        check_details(rank)
    check_batches(rank)
    check_checkpoints(rank)
    named = [e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == rank]
    expected = ["compute", "exchange"] + ["loader"] * (slices(rank, 2) != []) + ["checkpoint"] * options.checkpoints
    assert named == expected, (named, expected)
    assert len(slices(rank, 1)) == (options.steps if options.exchanges else 0)
# On one clock the steps of all ranks overlap.
for number in range(options.steps):
    of_ranks = [slices(rank, 0, "training step")[number] for rank in range(options.ranks)]
    assert max(ns(e["ts"]) for e in of_ranks) < min(end(e) for e in of_ranks)
check_messages()
if options.shares:
    rates = [share for share in shares if share]
    assert rates and max(rates) <= min(rates) * 1.000001, rates
if options.profile:  # which measures with the same clock
    profile = json.load(open(options.profile))
    mean = sum(ns(e["dur"]) for e in slices(0, 0, "training step")) / options.steps
    assert abs(mean * 1e-9 - profile["seconds"]) <= 0.02 * profile["seconds"]
    for report in profile["ranks"]:
        for entry in report["entries"]:
            for number, step in enumerate(entry["steps"]):
                of = [ns(e["dur"]) for e in slices(report["rank"], 0, "plan")
                      if (e["args"]["entry"], e["args"]["number"]) == (entry["entry"], number)]
                assert abs(sum(of) / len(of) * 1e-9 - step["seconds"]) <= 2e-9, (entry["entry"], number)
print(f"{options.trace}: {len(events)} events")
