#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/run.sh says at its end of the results that lit wrote.

    report.py RESULTS.json TIMES.json -- LIT...

Writes the seconds of each test to TIMES.json. Prints the slowest ones and the sums of folders. A test that took too long
beside others is run again alone, by the command LIT. One that takes too long alone has failed; with LONG=1 it may. The
last line is `N passed, N failed`. Ends with 0 where none failed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds of one test alone, on slow cores without ccache
STRETCHED = LIMIT * (1 + 1 / (os.cpu_count() or 1))  # beside as many others as run.sh lets run
SLOWEST = 10
PASSED, FAILED = {"PASS", "FLAKYPASS", "XFAIL"}, {"FAIL", "TIMEOUT", "XPASS", "UNRESOLVED"}


def results_of(path):
    with open(path) as file:
        return json.load(file)["tests"]


def seconds_of(test):
    return test["elapsed"] or 0


def processor_seconds_of(test):
    return test.get("metrics", {}).get("processor_seconds", seconds_of(test))


def name_of(test):
    return test["name"].split(" :: ", 1)[1]


def folder_of(test):
    if test["name"].startswith("trainc-unit"):
        return "unit"
    parts = name_of(test).split("/")
    return "/".join(parts[:2] if parts[0] in ("train", "import") and len(parts) > 2 else parts[:1])


def print_times(tests):
    print(f"\nthe {SLOWEST} slowest tests: seconds, of a processor")
    for test in sorted(tests, key=seconds_of, reverse=True)[:SLOWEST]:
        print(f"{seconds_of(test):8.1f} {processor_seconds_of(test):8.1f}  {name_of(test)}")
    sums = {}
    for test in tests:
        entry = sums.setdefault(folder_of(test), [0, 0, 0])
        entry[0] += seconds_of(test)
        entry[1] += processor_seconds_of(test)
        entry[2] += 1
    sums["all"] = [sum(column) for column in zip(*sums.values())]
    print("\nfolders: seconds, of a processor, tests")
    for folder, (seconds, processor, count) in sorted(sums.items(), key=lambda entry: entry[1][1]):
        print(f"{seconds:8.1f} {processor:8.1f} {count:5d}  {folder}")


def busy_seconds():
    """Of all processors, whoever they worked for."""
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:]]
    user, nice, system, _, _, interrupts, soft, stolen = numbers[:8]
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def still_slow(name, lit):
    """Whether a test takes too long with nothing of ours beside it. What others take of the processors meanwhile makes it
    slower, and the limit longer."""
    begin, busy = time.monotonic(), busy_seconds()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(lit + ["--filter", "^" + re.escape(name) + "$", "-j1", "-o", file.name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        alone = results_of(file.name)
    all_seconds = (time.monotonic() - begin) * (os.cpu_count() or 1)
    others = busy_seconds() - busy - sum(processor_seconds_of(test) for test in alone)
    left = 1 - min(max(others / all_seconds, 0), 0.75)
    return any(seconds_of(test) > LIMIT / left for test in alone)


def main():
    results, times, _, *lit = sys.argv[1:]
    tests = results_of(results)
    with open(times, "w") as file:
        json.dump({name_of(test): {"seconds": round(seconds_of(test), 2),
                                   "processor_seconds": round(processor_seconds_of(test), 2)}
                   for test in tests}, file, indent=1, sort_keys=True)
    print_times(tests)
    passed = sum(test["code"] in PASSED for test in tests)
    failed = sum(test["code"] in FAILED for test in tests)
    for test in tests:
        if "LONG" not in os.environ and test["code"] == "PASS" and seconds_of(test) > STRETCHED and still_slow(test["name"], lit):
            print(f"FAILED: {name_of(test)} takes longer than {LIMIT} s alone")
            passed -= 1
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


sys.exit(main())
