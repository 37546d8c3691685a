# SPDX-License-Identifier: Apache-2.0
#
# Checks within a limit of time: what each printed, how it ended, and the files that say so.
import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import threading
import time

LONGEST = 120  # seconds of one command
MOST_OUTPUT = 4000  # characters of what failed
NO_TIME = "no time is left"
HANGS = 60  # seconds after which a command that is cut off counts as one that hangs


class Failed(Exception):
    """With the output, or the reason."""


class Skipped(Exception):
    """With the reason."""


class Session:
    def __init__(self, options):
        self.options = options
        self.end = self.end_of_part = time.monotonic() + options.limit
        self.scratch = pathlib.Path(options.scratch).resolve()
        self.payload = self.scratch / "work" / "payload"
        self.results = pathlib.Path(options.results or self.scratch / "results").resolve()
        self.results.mkdir(parents=True, exist_ok=True)
        for name in ("summary.txt", "failures.txt"):  # which grow
            (self.results / name).unlink(missing_ok=True)
        self.environment = dict(os.environ, OMP_NUM_THREADS="1")
        self.counts = {"ok": 0, "FAILED": 0, "skipped": 0}
        self.lock = threading.Lock()
        self.document = {"checks": [], "speed": {}}
        self.losses = {}  # of GPT-2, by what was measured

    def left(self):
        return min(self.end, self.end_of_part) - time.monotonic()

    @contextlib.contextmanager
    def part(self, name, seconds):
        """What takes no longer than this."""
        begin = time.monotonic()
        self.end_of_part = begin + seconds
        self.say(f"-- {name}: at most {max(0, self.left()):.0f} s")
        try:
            yield
        finally:
            self.end_of_part = self.end
            self.say(f"-- {name}: {time.monotonic() - begin:.0f} s, {self.left():.0f} s are left")

    def say(self, line):
        print(line, flush=True)
        with open(self.results / "summary.txt", "a") as file:
            file.write(line + "\n")

    def write(self):
        (self.results / "results.json").write_text(json.dumps(self.document, indent=1) + "\n")

    def run(self, command, longest=LONGEST, environment=None):
        """Its output. Neither it nor what it started outlives its time."""
        seconds = min(longest, self.left())
        if seconds <= 0:
            raise Skipped(NO_TIME)
        process = subprocess.Popen([str(word) for word in command], cwd=self.payload, env={**self.environment, **(environment or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True, text=True, errors="replace")
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            if seconds < min(longest, HANGS):
                raise Skipped(NO_TIME) from None
            raise Failed(f"{output}\nnot done after {seconds:.0f} seconds") from None
        if process.returncode != 0:
            raise Failed(f"{output}\nexit code {process.returncode}")
        return output

    def check(self, name, work):
        """Whether `work` succeeds, which may return words, and lines of a table, for the summary."""
        try:
            result, detail = "ok", work()
        except Skipped as reason:
            result, detail = "skipped", str(reason)
        except Exception as problem:  # of one check alone
            result, detail = "FAILED", ""
            with self.lock, open(self.results / "failures.txt", "a") as file:
                file.write(f"== {name}\n{type(problem).__name__}: {str(problem)[-MOST_OUTPUT:]}\n\n")
        with self.lock:
            self.counts[result] += 1
            self.document["checks"].append({"check": name, "result": result, "detail": detail or ""})
            self.say(f"{result:8}{name}" + (f": {detail}" if detail else ""))
            self.write()
        return result == "ok"

    def together(self, work, items):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(work, items))
